"""The model and its algorithms: signals, (μ, Σ), E-step, M-step, and the loop over them.

``settings`` says what can be tuned. ``em`` is section 2 of the paper; ``exact``, ``ordinal``,
``two_sided`` and ``mixture`` go beyond it; all of them go through the one loop of ``iterate``.
``linalg`` is compiled.
"""

from gmc_core.former import room_of_its_own_name

__getattr__ = room_of_its_own_name("gmc_core.gaussian.parameters")
