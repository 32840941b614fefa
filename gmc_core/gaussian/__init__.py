"""The model and its algorithm: signals, (μ, Σ), E-step, M-step, and the loops over them.

``settings`` says what can be tuned, ``em`` reads like section 2 of the paper; ``exact``,
``ordinal`` and ``mixture`` go beyond it; ``linalg`` is compiled.
"""

from gmc_core.former import room_of_its_own_name

__getattr__ = room_of_its_own_name("gmc_core.gaussian.parameters")
