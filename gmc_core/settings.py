"""Settings of a fit: what can be tuned, its defaults and its limits."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from gmc_core.errors import ConfigError
from gmc_core.ratings import RatingScale
from gmc_core.signals import KINDS, SignalKind

Precision = Literal["float64", "float32"]

PAPER_EPSILON = 0.3
PAPER_ITERATIONS = 10
PAPER_INITIAL = 3.0
MAX_ITERATIONS = 1000


@dataclass(frozen=True)
class FitSettings:
    """What a person can tune in one fit. The defaults are the paper's.

    epsilon : ε ≥ 0 of equation (7); None for the scale's default (.3 on star
        scales, otherwise .3 ((high - low) / 4)², the same share of the range).
    iterations : L ≥ 0; 0 predicts the initial value.
    noise : Σ_w: a variance, or the path of a ``.csv`` of variances or an ``.npy``
        matrix.
    initial : the initial value of unknown entries; None for the scale's default
        (3 on star scales, otherwise the midpoint).
    signals, block : see :class:`gmc_core.signals.Layout`.
    dtype : working precision of Σ and the solves.
    objective : whether to compute the MAP objective at every iteration; it costs a
        Cholesky factorization of Σ.
    """

    epsilon: float | None = None
    iterations: int = PAPER_ITERATIONS
    noise: float | str = 0.0
    initial: float | None = None
    signals: SignalKind = "rows"
    block: tuple[int, int] = (16, 16)
    dtype: Precision = "float64"
    objective: bool = False

    def __post_init__(self) -> None:
        if self.epsilon is not None and not (self.epsilon >= 0 and math.isfinite(self.epsilon)):
            raise ConfigError(f"ε must be a number of at least 0, not {self.epsilon}.")
        if isinstance(self.iterations, bool) or not isinstance(self.iterations, int):
            raise ConfigError(f"The number of iterations must be whole, not {self.iterations!r}.")
        if not 0 <= self.iterations <= MAX_ITERATIONS:
            raise ConfigError(
                f"The number of iterations must lie in 0..{MAX_ITERATIONS}, not {self.iterations}."
            )
        if not isinstance(self.noise, str) and not (self.noise >= 0 and math.isfinite(self.noise)):
            raise ConfigError(f"The noise variance must be at least 0, not {self.noise}.")
        if self.initial is not None and not math.isfinite(self.initial):
            raise ConfigError(f"The initial value must be finite, not {self.initial}.")
        if self.signals not in KINDS:
            raise ConfigError(f"Signals are {', '.join(KINDS)}, not {self.signals!r}.")
        if self.dtype not in ("float64", "float32"):
            raise ConfigError(f"The precision is float64 or float32, not {self.dtype!r}.")
        object.__setattr__(self, "block", tuple(self.block))

    def resolved(self, scale: RatingScale) -> FitSettings:
        """The same with the scale's defaults filled in."""
        epsilon, initial = self.epsilon, self.initial
        if epsilon is None:
            spread = (scale.high - scale.low) / 4
            epsilon = PAPER_EPSILON if scale.is_stars else PAPER_EPSILON * spread**2
        if initial is None:
            initial = PAPER_INITIAL if scale.is_stars else scale.midpoint
        return replace(self, epsilon=float(epsilon), initial=float(initial))

    def as_dict(self) -> dict[str, Any]:
        """For JSON; :meth:`from_dict` is the way back."""
        return {**asdict(self), "block": list(self.block)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> FitSettings:
        """Read what :meth:`as_dict` wrote; unknown names are an error."""
        unknown = set(values) - set(cls.__dataclass_fields__)
        if unknown:
            raise ConfigError(f"Unknown settings: {', '.join(sorted(unknown))}.")
        return cls(**{**values, "block": tuple(values.get("block", (16, 16)))})
