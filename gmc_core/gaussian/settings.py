"""Settings of a fit: what can be tuned, its defaults and its limits.

Each is declared once, in :class:`FitSettings`; see :mod:`gmc_core.base.setting` for what follows
from that. NumPy is not imported, so that help texts come at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from gmc_core.base.errors import ConfigError
from gmc_core.base.kinds import Number, NumberOrFile, OneOf, Size, Whole, YesNo, listed
from gmc_core.base.setting import Control, check, declared
from gmc_core.gaussian.averaged_settings import RANK as AVERAGE_RANK
from gmc_core.gaussian.declaration import (
    EITHER,
    EXACT,
    Above,
    FitSetting,
    fit_setting,
)
from gmc_core.gaussian.declaration import MAX_ITERATIONS as MAX_ITERATIONS
from gmc_core.gaussian.declaration import MODEL_KINDS as MODEL_KINDS
from gmc_core.gaussian.declaration import ModelKind as ModelKind
from gmc_core.gaussian.declaration import variance_unit as variance_unit
from gmc_core.gaussian.exact_settings import LEARN_NOISE, STEP_LENGTH, WARM_UP
from gmc_core.gaussian.factor_settings import RANK as FACTOR_RANK
from gmc_core.gaussian.prior_settings import STRENGTH as PRIOR_STRENGTH
from gmc_core.gaussian.prior_settings import TARGET as PRIOR_TARGET
from gmc_core.gaussian.prior_settings import usual_strength as usual_strength
from gmc_core.gaussian.session_settings import NOISE as SESSION_NOISE
from gmc_core.gaussian.session_settings import USUAL_SESSION_NOISE as USUAL_SESSION_NOISE
from gmc_core.gaussian.session_settings import WINDOW as SESSION_WINDOW
from gmc_core.gaussian.two_sided_settings import ORDERED, RANK, START, STRENGTH, TARGET

if TYPE_CHECKING:
    from gmc_core.data.ratings import RatingScale
    from gmc_core.gaussian.signals import SignalKind

Precision = Literal["float64", "float32"]

PAPER_EPSILON = 0.3
PAPER_ITERATIONS = 10
PAPER_INITIAL = 3.0
MAX_COMPONENTS = 20
EXACT_ITERATIONS = 10  # after a longest step; what the short one after it changes is small


def paper_epsilon(scale: RatingScale) -> float:
    """The paper's ε, on other scales than stars the same share of the range."""
    return PAPER_EPSILON * variance_unit(scale)


def _start_of(scale: RatingScale, items: int | None) -> float:
    return PAPER_INITIAL if scale.is_stars else scale.midpoint


# What as_dict has always written.
_ALWAYS = (
    "epsilon", "iterations", "noise", "initial", "signals", "block", "dtype", "objective", "model",
    "prior_strength", "prior_target", "relaxation", "warm", "components", "learn_noise",
    "attributes",
)  # fmt: skip
_AS_FLOATS = ("epsilon", "initial")


@dataclass(frozen=True)
class FitSettings:
    """What a person can tune in one fit. The defaults are the paper's.

    Each field's declaration says what it is, its range and its default; ``docs/cli.md`` has them in
    a table. What is None is the model's default, which :meth:`resolved` fills in.

    Raises
    ------
    ConfigError
        If a value is out of its range, or has no meaning beside the others.
    """

    epsilon: float | None = fit_setting(
        None,
        kind=Number(0, metavar="E"),
        noun="ε",
        flag="--epsilon",
        about="added to the covariance's diagonal, equation (7)",
        usual={"paper": PAPER_EPSILON, "mixture": PAPER_EPSILON, **dict.fromkeys(EXACT, 0.0)},
        scaled=True,
        control=Control(
            card="m_step",
            label="Regularization ε (log scale)",
            models=("paper", "mixture"),
            help=f"Added to the diagonal of Σ. The paper takes {PAPER_EPSILON:g} for stars and "
            "finds the results insensitive to it; the Sensitivity page checks that on your data.",
        ),
    )
    iterations: int = fit_setting(
        PAPER_ITERATIONS,
        kind=Whole(0, MAX_ITERATIONS, metavar="L"),
        noun="The number of iterations",
        flag="--iterations",
        about="M-steps and E-steps; 0 predicts the initial value",
        control=Control(
            card="m_step",
            label="Iterations L",
            low=0,
            high=100,
            slider=True,
            help="How often M-step and E-step alternate. The paper takes 10; 0 predicts the "
            "initial value.",
        ),
    )
    noise: float | str | None = fit_setting(
        0.0,
        kind=NumberOrFile(0, (".csv", ".npy"), metavar="VARIANCE|FILE"),
        noun="The noise variance",
        flag="--noise",
        about="noise Σ_w of a rating: a variance, a .csv of item,variance lines, or an .npy matrix",
        usual={"paper": 0.0, "mixture": 0.0, **dict.fromkeys(EXACT, 0.5)},
        scaled=True,
        control=Control(
            card="e_step",
            label="Noise variance σ²",
            low=0,
            high=100,
            step=0.1,
            filled=True,
            constant=True,
            help="Variance of the noise in a known rating, Σ_w = σ² I. The paper neglects it (0).",
        ),
    )
    initial: float | None = fit_setting(
        None,
        kind=Number(),
        noun="The initial value",
        flag="--init",
        about="initial value of unknown ratings",
        usual=dict.fromkeys(MODEL_KINDS, _start_of),
        usual_words="3 on star scales, else the midpoint",
        named="start {:.4g}",
        control=Control(
            card="start",
            label="Initial value of unknown ratings",
            step=0.5,
            constant=True,
            help="The paper starts at 3 and finds the result insensitive to it.",
        ),
    )
    signals: SignalKind = fit_setting(
        "rows",
        kind=OneOf(("rows", "columns", "blocks")),
        noun="The kind of signals",
        flag="--signals",
        about="what one draw of the Gaussian is: a row (user), a column (item), or a block",
        control=Control(
            card="start",
            label="Signals",
            constant=True,
            names={"rows": "Rows (users)", "columns": "Columns (items)", "blocks": "Blocks"},
            help="What one Gaussian vector is. Rows are the paper's choice, slightly better than "
            "the others there.",
        ),
    )
    block: tuple[int, int] = fit_setting(
        (16, 16),
        kind=Size(),
        noun="The size of a block",
        flag="--block",
        about="height and width of a block",
        needs=("signals", "blocks"),
        control=Control(
            card="start",
            label="Block",
            constant=True,
        ),
    )
    dtype: Precision = fit_setting(
        "float64",
        kind=OneOf(("float64", "float32")),
        noun="The precision",
        flag="--dtype",
        about="precision of Σ and the solves; float32 halves the memory",
        control=Control(
            card="arithmetic",
            label="Precision",
            key="precision",
            constant=True,
            help="float32 takes half the memory and about half the time.",
        ),
    )
    objective: bool = fit_setting(
        False,
        kind=YesNo(),
        noun="The paper's MAP objective",
        flag="--objective",
        models=("paper",),
        about="also compute the paper's MAP objective at every iteration, which costs a Cholesky "
        "factorization of Σ",
        control=Control(
            card="e_step",
            label="MAP objective at every iteration",
            help="log p(f̃ | μ, Σ), what MAP-EM climbs. It costs a Cholesky factorization of Σ per "
            "iteration; the log-likelihood of the known ratings is free.",
        ),
    )
    model: ModelKind = fit_setting(
        "paper",
        kind=OneOf(MODEL_KINDS),
        noun="The model",
        flag="--model",
        about="paper: MAP-EM; exact: exact EM with a prior; ordinal: the same on ordered ratings; "
        "factor: the same of low rank, for large tables; "
        "two-sided: users resemble each other too; mixture: several Gaussians. Sets the defaults "
        "of the others",
    )
    prior_strength: float | None = PRIOR_STRENGTH
    prior_target: tuple[float, float, float, float] | None = PRIOR_TARGET
    # This field and the next keep the names that stored runs, models and scripts have for them.
    relaxation: float | None = STEP_LENGTH
    warm: int | None = WARM_UP
    components: int | None = fit_setting(
        None,
        kind=Whole(1, MAX_COMPONENTS, metavar="K"),
        noun="The number of Gaussians",
        flag="--components",
        models=("mixture",),
        about="Gaussians of a mixture",
        usual={"mixture": 2},
        control=Control(
            card="model",
            label="Gaussians K",
            low=1,
            high=10,
            filled=True,
            help="Groups of users, each with its own μ and Σ. K = 1 is MAP-EM.",
        ),
    )
    learn_noise: bool = LEARN_NOISE
    attributes: bool = fit_setting(
        True,
        kind=YesNo(),
        noun="Using users' attributes",
        flag="--attributes",
        models=EXACT,
        about="the mean depends on what is known of users besides ratings (age, gender, …)",
        control=Control(
            card="model",
            label="Use what is known of the users",
        ),
    )
    # Chosen on ratings held out inside the training set of MovieLens 1M, see docs/beyond.md.
    attributes_strength: float | None = fit_setting(
        None,
        kind=Number(0, above=True, metavar="LAMBDA"),
        noun="The weight λ of users' attributes",
        flag="--attributes-strength",
        models=EXACT,
        needs=("attributes", True),
        about="weight of the prior of what groups of users like, in users: of few users little is "
        "believed",
        usual=dict.fromkeys(EXACT, 100.0),
        named="λ = {:.4g}",
        control=Control(
            card="model",
            label="Weight λ of the users' attributes, in users",
            low=1,
            high=1e5,
            step=50,
            format="%g",
            help="What a group of n users likes more than others do is believed by about "
            "n / (n + λ).",
        ),
    )

    session_noise: float = SESSION_NOISE
    session_window: float = SESSION_WINDOW
    ordered: bool | None = ORDERED
    rank: int | None = FACTOR_RANK
    user_rank: int | None = RANK
    user_strength: float | None = STRENGTH
    user_target: tuple[float, float] | None = TARGET
    user_start: int | None = START
    average_rank: int = AVERAGE_RANK

    def __post_init__(self) -> None:
        check(self)
        self._check_together()

    @property
    def is_exact(self) -> bool:
        """Whether the M-step keeps the posterior covariance."""
        return self.model in EXACT

    @property
    def is_ordered(self) -> bool:
        """Whether a rating is the interval that a latent response falls into."""
        return self.model == "ordinal" or (self.model in EITHER and self.ordered is not False)

    @property
    def uses_attributes(self) -> bool:
        """Whether the mean depends on users' attributes, where these make groups."""
        return self.is_exact and self.attributes and self.signals == "rows"

    @property
    def reads_times(self) -> bool:
        """Whether predictions depend on when ratings were given, those to be predicted included."""
        return self.session_noise > 0

    def _check_together(self) -> None:
        for name, one in settings_of_a_fit().items():
            if self.model not in one.models and getattr(self, name) != one.default:
                several = len(one.models) > 1
                raise ConfigError(
                    f"{one.noun} belongs to the model{'s' * several} {listed(one.models, 'and')}, "
                    f"not to {self.model}; take {'one of them' if several else 'that one'}, or "
                    "leave it out."
                )
        one_variance = not (isinstance(self.noise, str) or self.noise == 0)
        if self.learn_noise and not one_variance:
            raise ConfigError("Learning the noise begins with one variance above 0; give that.")
        if self.session_noise and self.signals != "rows":
            raise ConfigError(
                "Session noise is about the ratings of one user; take rows as signals."
            )
        if self.session_noise and self.objective:
            raise ConfigError(
                "The MAP objective is computed for noise that ratings do not share; leave it out, "
                "or the session noise."
            )
        if (self.is_ordered or self.model in EITHER) and not one_variance:
            raise ConfigError(
                "Ordered ratings, low rank and two-sided models need one noise variance above 0, "
                "the spread of a latent value."
            )
        if self.model == "factor" and self.signals != "rows":
            raise ConfigError("The factors of a low rank are those of users; take rows as signals.")
        if self.model == "factor" and self.session_noise:
            raise ConfigError(
                "Noise that ratings of one session share is not of low rank; take another model, "
                "or leave it out."
            )
        if self.model == "two-sided" and self.signals != "rows":
            raise ConfigError("A two-sided model has both sides already; take rows as signals.")
        if self.average_rank and self.signals != "rows":
            raise ConfigError("A fit to average with has factors of users; take rows as signals.")
        if self.average_rank and (isinstance(self.noise, str) or self.learn_noise):
            raise ConfigError(
                "A fit of low rank to average with takes one noise variance, as given; leave it "
                "out, or give a variance."
            )

    def resolved(self, scale: RatingScale, items: int | None = None) -> FitSettings:
        """The same with the defaults filled in that depend on model and data.

        items : N; without it the prior's strength stays as it is.
        """
        missing = {
            name: one.usual_for(self.model, scale, items)
            for name, one in settings_of_a_fit().items()
            if getattr(self, name) is None
        }
        # 1 and 1.0 differ in JSON, and with it in the keys of stored runs, so numbers become
        # floats. Of the settings in _ALWAYS all but two have been stored as given, and still are.
        known = {
            name: float(value)
            for name, one in settings_of_a_fit().items()
            if isinstance(one.kind, Number) and (name in _AS_FLOATS or name not in _ALWAYS)
            if (value := getattr(self, name)) is not None
        }
        return replace(self, **{**missing, **known})

    def check_needed(self, names: Iterable[str]) -> None:
        """Refuse settings that were given by ``names`` and have no meaning beside the others.

        Raises
        ------
        ConfigError
            If one needs another that is not there, as a window does session noise.
        """
        for name in names:
            one = settings_of_a_fit()[name]
            if one.needs is None or one.has_needed(lambda other: getattr(self, other)):
                continue
            other, wanted = one.needs
            needed = settings_of_a_fit()[other]
            if isinstance(wanted, Above):
                words = f"{needed.flag} above {wanted.limit:g}"
            else:
                (words,) = needed.words(wanted)
            raise ConfigError(f"{one.noun} ({one.flag}) needs {words}; give that, or leave it out.")

    def low_rank_beside(self, scale: RatingScale, items: int) -> FitSettings:
        """The low-rank fit that a resolved one with ``average_rank`` is averaged with.

        What both have is the same, but for the weight of the prior, which is that of low rank.
        """
        shared = {
            name: getattr(self, name)
            for name, one in settings_of_a_fit().items()
            if "factor" in one.models and name not in ("model", "prior_strength", "ordered", "rank")
        }
        beside = FitSettings(
            **shared, model="factor", ordered=self.is_ordered, rank=self.average_rank
        )
        return beside.resolved(scale, items)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; :meth:`from_dict` is the way back.

        Keys of stored runs are hashes of this: a setting that came after ``_ALWAYS`` is left out
        where it is the default, and reads back as None, so that older runs are still found.
        """
        given = {name: getattr(self, name) for name in settings_of_a_fit()}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in given.items()
            if name in _ALWAYS or not settings_of_a_fit()[name].is_usual(value, self.model)
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FitSettings:
        """Read what :meth:`as_dict` wrote; unknown names are an error.

        Older settings have three variances in the target, none for implicit feedback.
        """
        unknown = set(values) - set(settings_of_a_fit())
        if unknown:
            raise ConfigError(f"Unknown settings: {', '.join(sorted(unknown))}.")
        target = values.get("prior_target")
        if isinstance(target, list | tuple) and len(target) == 3:
            offset, genres, own = target
            values = {**values, "prior_target": (offset, genres, 0.0, own)}
        return cls(**values)


def settings_of_a_fit() -> Mapping[str, FitSetting]:
    """Field of :class:`FitSettings` → its declaration."""
    return cast("Mapping[str, FitSetting]", declared(FitSettings))
