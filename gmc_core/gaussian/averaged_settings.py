"""The setting of :mod:`gmc_core.gaussian.averaged`; a field of
:class:`gmc_core.gaussian.settings.FitSettings`."""

from __future__ import annotations

from typing import Any

from gmc_core.base.kinds import Whole
from gmc_core.base.setting import Control
from gmc_core.gaussian.declaration import DENSE, fit_setting

# Of the preset for the lowest error; chosen inside a training set of MovieLens 1M.
BEST_RANK = 101

# (any: a dataclass takes its fields from these)
RANK: Any = fit_setting(
    0,
    kind=Whole(0, 1000, metavar="R"),
    noun="The rank of the fit to average with",
    flag="--average-rank",
    models=DENSE,
    about="fit Σ of this rank too, and end with the mean of both estimates; 0 does not",
    named="averaged with rank {}",
    control=Control(
        card="model",
        label="Average with a fit of rank R",
        low=0,
        high=200,
        step=10,
        help="The last iteration takes the mean of μ, Σ and B and those of a low-rank fit of the "
        "same ratings, whose errors are others: the lowest error that was measured. 0 does not.",
    ),
)
