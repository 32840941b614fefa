"""The setting that the factor model alone has; a field of
:class:`gmc_core.gaussian.settings.FitSettings`."""

from __future__ import annotations

from typing import Any

from gmc_core.base.kinds import Whole
from gmc_core.base.setting import Control
from gmc_core.gaussian.declaration import ModelKind, fit_setting

FACTOR: tuple[ModelKind, ...] = ("factor",)

# (any: a dataclass takes its fields from these)
RANK: Any = fit_setting(
    None,
    kind=Whole(1, 1000, metavar="R"),
    noun="The rank of Σ",
    flag="--rank",
    models=FACTOR,
    about="columns of W in Σ = W Wᵀ + γ Id: to begin with what all items share, their genres and "
    "the leading directions of who rated what",
    usual=dict.fromkeys(FACTOR, 61),
    named="rank {}",
    control=Control(
        card="model",
        label="Rank R of Σ",
        low=1,
        high=200,
        step=10,
        help="Σ is W Wᵀ, with so many columns, and a variance of each item alone. More take "
        "longer and hardly help.",
    ),
)
