"""Settings of a fit: what can be tuned, its defaults and its limits."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from gmc_core.base.errors import ConfigError
from gmc_core.data.ratings import RatingScale
from gmc_core.gaussian.signals import KINDS, SignalKind

Precision = Literal["float64", "float32"]
ModelKind = Literal["paper", "exact", "ordinal", "mixture"]
MODEL_KINDS: tuple[ModelKind, ...] = ("paper", "exact", "ordinal", "mixture")

PAPER_EPSILON = 0.3
PAPER_ITERATIONS = 10
PAPER_INITIAL = 3.0
MAX_ITERATIONS = 1000
MAX_COMPONENTS = 20

# In stars; variances grow with the square of the scale. Chosen on ratings held out
# inside training sets of MovieLens 1M and of the sample, see docs/beyond.md.
EXACT_ITERATIONS = 10  # after a longest step; what the short one after it changes is small
# Longer steps were not tried.
MOST_RELAXATION = 8.0
_MOST_STRENGTH = 300.0
MODEL_DEFAULTS: dict[str, dict[str, Any]] = {
    "exact": {
        "epsilon": 0.0,
        "noise": 0.5,
        "prior_target": (0.15, 0.0, 0.2, 0.15),
        "relaxation": 5.0,
        "warm": 3,
    },
    "mixture": {"components": 2},
}


def usual_strength(items: int) -> float:
    """ν where it is not given: half as many as there are items, at most 300.

    Of few items the ratings tell more. The same for every kind of signal.
    """
    return min(_MOST_STRENGTH, items / 2)


def variance_unit(scale: RatingScale) -> float:
    """What 1 star² is on this scale: the same share of the squared range."""
    return 1.0 if scale.is_stars else ((scale.high - scale.low) / 4) ** 2


def paper_epsilon(scale: RatingScale) -> float:
    """The paper's ε, on other scales than stars the same share of the range."""
    epsilon = FitSettings().resolved(scale).epsilon
    assert epsilon is not None
    return epsilon


@dataclass(frozen=True)
class FitSettings:
    """What a person can tune in one fit. The defaults are the paper's.

    epsilon : ε ≥ 0 of equation (7); None for the scale's default (.3 on star
        scales, otherwise .3 ((high - low) / 4)², the same share of the range).
    iterations : L ≥ 0; 0 predicts the initial value.
    noise : Σ_w: a variance, or the path of a ``.csv`` of variances or an ``.npy``
        matrix; None for the model's default (0, in exact EM half a star², scaled).
    initial : the initial value of unknown entries; None for the scale's default
        (3 on star scales, otherwise the midpoint).
    signals, block : see :class:`gmc_core.gaussian.signals.Layout`.
    dtype : working precision of Σ and the solves.
    objective : whether to compute the MAP objective at every iteration; it costs a
        Cholesky factorization of Σ. For the paper's recipe only.
    model : "paper", the recipe; "exact", exact EM; "ordinal", exact EM on ordered
        ratings; "mixture", the recipe with several Gaussians.
    attributes : in exact EM with users as signals, whether the mean depends on what is
        known of a user besides ratings, see :mod:`gmc_core.gaussian.attributes`.
    learn_noise : in exact EM, whether ``noise`` is only where it begins, and every M-step
        takes a new variance.
    The others may be None for the model's default, see ``MODEL_DEFAULTS``:

    prior_strength : ν ≥ 0 signals, the weight of the prior of exact EM; see
        :func:`usual_strength`.
    prior_target : what Σ is shrunk towards: variance that all items share (11ᵀ), that
        items of one genre share, that items rated by the same people share, and of each
        item alone (Id).
    relaxation : 1 ≤ η ≤ 8, the longest of every four steps of exact EM, see
        :func:`gmc_core.gaussian.exact.step_length`. At 5 less than half of the iterations
        is enough.
    warm : iterations of the paper's recipe, without noise, before exact EM; 1 or more.
    components : K, Gaussians of a mixture.
    """

    epsilon: float | None = None
    iterations: int = PAPER_ITERATIONS
    noise: float | str | None = 0.0
    initial: float | None = None
    signals: SignalKind = "rows"
    block: tuple[int, int] = (16, 16)
    dtype: Precision = "float64"
    objective: bool = False
    model: ModelKind = "paper"
    prior_strength: float | None = None
    prior_target: tuple[float, float, float, float] | None = None
    relaxation: float | None = None
    warm: int | None = None
    components: int | None = None
    learn_noise: bool = False
    attributes: bool = True

    def __post_init__(self) -> None:
        if self.epsilon is not None and not (self.epsilon >= 0 and math.isfinite(self.epsilon)):
            raise ConfigError(f"ε must be a number of at least 0, not {self.epsilon}.")
        if isinstance(self.iterations, bool) or not isinstance(self.iterations, int):
            raise ConfigError(f"The number of iterations must be whole, not {self.iterations!r}.")
        if not 0 <= self.iterations <= MAX_ITERATIONS:
            raise ConfigError(
                f"The number of iterations must lie in 0..{MAX_ITERATIONS}, not {self.iterations}."
            )
        if isinstance(self.noise, float | int) and not (
            self.noise >= 0 and math.isfinite(self.noise)
        ):
            raise ConfigError(f"The noise variance must be at least 0, not {self.noise}.")
        if self.initial is not None and not math.isfinite(self.initial):
            raise ConfigError(f"The initial value must be finite, not {self.initial}.")
        if self.signals not in KINDS:
            raise ConfigError(f"Signals are {', '.join(KINDS)}, not {self.signals!r}.")
        if self.dtype not in ("float64", "float32"):
            raise ConfigError(f"The precision is float64 or float32, not {self.dtype!r}.")
        object.__setattr__(self, "block", tuple(self.block))
        if self.prior_target is not None:
            object.__setattr__(self, "prior_target", tuple(map(float, self.prior_target)))
        self._check_model()

    @property
    def is_exact(self) -> bool:
        """Whether the M-step keeps the posterior covariance."""
        return self.model in ("exact", "ordinal")

    @property
    def uses_attributes(self) -> bool:
        """Whether the mean depends on users' attributes, where these make groups."""
        return self.is_exact and self.attributes and self.signals == "rows"

    def _check_model(self) -> None:
        if self.model not in MODEL_KINDS:
            raise ConfigError(f"The model is {', '.join(MODEL_KINDS)}, not {self.model!r}.")
        exact_only = (self.prior_strength, self.prior_target, self.relaxation, self.warm)
        if not self.is_exact and (
            self.learn_noise
            or not self.attributes
            or any(value is not None for value in exact_only)
        ):
            raise ConfigError(
                "A prior, relaxation, a warm start, learned noise and users' attributes belong to "
                "exact EM; take the model exact or ordinal."
            )
        for what, value in (
            ("learn the noise", self.learn_noise),
            ("use users' attributes", self.attributes),
        ):
            if not isinstance(value, bool):
                raise ConfigError(f"Whether to {what} is true or false, not {value!r}.")
        if self.learn_noise and (isinstance(self.noise, str) or self.noise == 0):
            raise ConfigError("Learning the noise begins with one variance above 0; give that.")
        strength, target = self.prior_strength, self.prior_target
        if strength is not None and not (strength >= 0 and math.isfinite(strength)):
            raise ConfigError(f"A prior's strength is at least 0, not {strength}.")
        if target is not None and not (
            len(target) == 4 and all(part >= 0 and math.isfinite(part) for part in target)
        ):
            raise ConfigError("The prior's target is four variances of at least 0.")
        if self.relaxation is not None and not 1 <= self.relaxation <= MOST_RELAXATION:
            raise ConfigError(
                f"The relaxation must lie in 1 ≤ η ≤ {MOST_RELAXATION:g}, not {self.relaxation}."
            )
        if self.warm is not None and not 1 <= self.warm <= MAX_ITERATIONS:
            raise ConfigError(f"The warm start takes 1..{MAX_ITERATIONS} iterations.")
        if self.components is not None and self.model != "mixture":
            raise ConfigError("Several Gaussians are a mixture; take the model mixture.")
        if self.components is not None and not 1 <= self.components <= MAX_COMPONENTS:
            raise ConfigError(f"A mixture has 1..{MAX_COMPONENTS} Gaussians.")
        if self.model == "ordinal" and (isinstance(self.noise, str) or self.noise == 0):
            raise ConfigError(
                "Ordered ratings need one noise variance above 0, the spread of an opinion."
            )
        if self.objective and self.model != "paper":
            raise ConfigError("The paper's MAP objective belongs to the model paper.")

    def resolved(self, scale: RatingScale, items: int | None = None) -> FitSettings:
        """The same with the defaults filled in that depend on the data.

        items : N; without it the prior's strength stays as it is.
        """
        unit = variance_unit(scale)
        defaults: dict[str, Any] = {
            "epsilon": PAPER_EPSILON * unit,
            "initial": PAPER_INITIAL if scale.is_stars else scale.midpoint,
            "noise": 0.0,
        }
        if self.is_exact:
            defaults |= MODEL_DEFAULTS["exact"]
            defaults["noise"] *= unit
            defaults["prior_target"] = tuple(part * unit for part in defaults["prior_target"])
            if items is not None:
                defaults["prior_strength"] = usual_strength(items)
        elif self.model == "mixture":
            defaults |= MODEL_DEFAULTS["mixture"]
        missing = {name: value for name, value in defaults.items() if getattr(self, name) is None}
        # One number, one key of stored runs: 1 and 1.0 are written differently.
        given = {name: getattr(self, name) for name in ("epsilon", "initial")}
        known = {name: float(value) for name, value in given.items() if value is not None}
        return replace(self, **{**known, **missing})

    def as_dict(self) -> dict[str, Any]:
        """For JSON; :meth:`from_dict` is the way back."""
        return {
            **asdict(self),
            "block": list(self.block),
            "prior_target": self.prior_target and list(self.prior_target),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> FitSettings:
        """Read what :meth:`as_dict` wrote; unknown names are an error.

        Before the target knew of raters it had three variances.
        """
        unknown = set(values) - set(cls.__dataclass_fields__)
        if unknown:
            raise ConfigError(f"Unknown settings: {', '.join(sorted(unknown))}.")
        if len(values.get("prior_target") or ()) == 3:
            offset, genres, own = values["prior_target"]
            values = {**values, "prior_target": (offset, genres, 0.0, own)}
        tuples: dict[str, Any] = {
            name: tuple(values[name])
            for name in ("block", "prior_target")
            if values.get(name) is not None
        }
        return cls(**{**values, **tuples})
