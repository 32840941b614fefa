"""Settings that the two-sided model alone has; fields of
:class:`gmc_core.gaussian.settings.FitSettings`, each declared here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmc_core.base.kinds import Number, Numbers, Whole, YesNo
from gmc_core.base.setting import Control
from gmc_core.gaussian.declaration import EITHER, ModelKind, fit_setting

if TYPE_CHECKING:
    from gmc_core.data.ratings import RatingScale

TWO_SIDED: tuple[ModelKind, ...] = ("two-sided",)


def ordered_by_default(scale: RatingScale, items: int | None) -> bool:
    """Whether the scale has so few values that ratings are grades."""
    from gmc_core.gaussian.ordinal import MAX_VALUES  # NumPy, which help texts do without

    return scale.levels is not None and 3 <= len(scale.levels) <= MAX_VALUES


# (any: a dataclass takes its fields from these)
ORDERED: Any = fit_setting(
    None,
    kind=YesNo(),
    noun="Reading ratings as ordered",
    flag="--ordered",
    models=EITHER,
    about="a rating is the interval that a latent response falls into, as with ordinal; "
    "--no-ordered reads it as a number, as exact does",
    usual=dict.fromkeys(EITHER, ordered_by_default),
    usual_words="on for scales of few values",
    control=Control(
        card="model",
        label="Ratings are ordered values",
        filled=True,
        help="A rating is the interval that a latent response falls into, and the prediction the "
        "median. Off: ratings are numbers.",
    ),
)
RANK: Any = fit_setting(
    None,
    kind=Whole(1, 500, metavar="R"),
    noun="The rank of the users' side",
    flag="--user-rank",
    models=TWO_SIDED,
    about="directions in which users resemble each other: to begin with the one that all share and "
    "the leading ones of who rated what",
    usual=dict.fromkeys(TWO_SIDED, 61),
    named="user rank {}",
    control=Control(
        card="model",
        label="Rank of the users' side",
        low=1,
        high=200,
        step=10,
        help="The covariance of the users is W Wᵀ with so many columns. More take longer and "
        "hardly help.",
    ),
)
STRENGTH: Any = fit_setting(
    None,
    kind=Number(0, above=True, metavar="NU"),
    noun="The weight ν of the users' prior",
    flag="--user-strength",
    models=TWO_SIDED,
    about="weight of the prior of T, the users' covariance, in items",
    usual=dict.fromkeys(TWO_SIDED, 1000.0),
    named="user ν = {:.4g}",
    control=Control(
        card="model",
        label="Weight ν of the users' prior, in items",
        low=1,
        high=1e6,
        step=100,
        format="%g",
        help="T is shrunk, as if so many items more had shown it, towards variance that all users "
        "share, and that users who rated the same items share.",
    ),
)
TARGET: Any = fit_setting(
    None,
    kind=Numbers(2, metavar="O,R", example="0.1,0.1"),
    noun="The target of the users' prior",
    flag="--user-target",
    models=TWO_SIDED,
    about="what T is shrunk to: variance that all users share (11ᵀ), and that users who rated the "
    "same items share (implicit feedback)",
    usual=dict.fromkeys(TWO_SIDED, (0.1, 0.1)),
    scaled=True,
)
START: Any = fit_setting(
    None,
    kind=Whole(1, 1000, metavar="L"),
    noun="The start of the users' side",
    flag="--user-start",
    models=TWO_SIDED,
    about="iterations of the items' side alone, its warm-up included, before the users' side "
    "joins in",
    usual=dict.fromkeys(TWO_SIDED, 6),
    named="users from {}",
)
