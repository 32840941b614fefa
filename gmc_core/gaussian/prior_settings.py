"""Settings of the prior of Σ; fields of :class:`gmc_core.gaussian.settings.FitSettings`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmc_core.base.kinds import Number, Numbers
from gmc_core.base.setting import Control
from gmc_core.gaussian.declaration import DENSE, EXACT, fit_setting

if TYPE_CHECKING:
    from gmc_core.data.ratings import RatingScale

_MOST_STRENGTH, _MOST_OF_LOW_RANK = 300.0, 1000.0


def usual_strength(items: int) -> float:
    """ν where it is not given: half as many as there are items, at most 300.

    Of few items the ratings tell more. The same for every kind of signal.
    """
    return min(_MOST_STRENGTH, items / 2)


def factor_strength(scale: RatingScale, items: int | None) -> float | None:
    """ν of a Gaussian of low rank: as many as there are items, at most 1,000.

    Chosen on ratings held out inside the training sets of MovieLens 1M and the sample: with less,
    later iterations learn the ratings by heart, with 3,000 the target is hardly left.
    """
    return None if items is None else min(_MOST_OF_LOW_RANK, float(items))


def _strength_of(scale: RatingScale, items: int | None) -> float | None:
    return None if items is None else usual_strength(items)


# (any: a dataclass takes its fields from these)
STRENGTH: Any = fit_setting(
    None,
    kind=Number(0, metavar="NU"),
    noun="The weight ν of the prior",
    flag="--prior-strength",
    models=EXACT,
    about="weight of the prior of Σ, in signals (users)",
    usual={**dict.fromkeys(DENSE, _strength_of), "factor": factor_strength},
    named="ν = {:.4g}",
    usual_words="half as many as there are items, at most 300; factor: as many, at most 1000",
    control=Control(
        card="model",
        label="Weight ν of the prior, in users",
        low=0,
        high=1e5,
        step=50,
        format="%g",
        help="Σ is shrunk, as if so many users more had shown it, towards a target: "
        "variance that all items share, that items rated by the same people share, and an "
        "item's own. 0 is the likelihood alone.",
    ),
)
TARGET: Any = fit_setting(
    None,
    kind=Numbers(4, metavar="O,G,R,I", example="0.15,0,0.2,0.15"),
    noun="The target of the prior",
    flag="--prior-target",
    models=EXACT,
    about="what Σ is shrunk to: variance that all items share (11ᵀ), that items of one genre "
    "share, that items rated by the same people share (implicit feedback), and of each item "
    "alone (Id)",
    usual=dict.fromkeys(EXACT, (0.15, 0.0, 0.2, 0.15)),
    scaled=True,
)
