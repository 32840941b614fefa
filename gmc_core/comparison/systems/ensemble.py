"""E-MMMF: an ensemble of maximum margin factorisations.

DeCoste, "Collaborative Prediction Using Ensembles of Maximum Margin Matrix Factorizations" (ICML
2006). The factors of :mod:`gmc_core.comparison.systems.mmmf` are learned from other random starts
and not to the end, which leaves members that err differently; the prediction is the mean of
theirs.

Assumed, the paper not being at hand: 30 factors, few enough for the minima to differ (with as many
as MMMF takes, all starts end at about the same one), and for all members the λ with which the mean
of four does best inside training. The paper has about 100 members; 20 show most of what they bring.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gmc_core.base.errors import ConfigError
from gmc_core.comparison.systems.mmmf import PENALTIES, Mmmf, predict_levels
from gmc_core.comparison.systems.system import Floats, System
from gmc_core.data.ratings import Ratings
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.splits import Split

# Members with which a setting is tried.
_CHOOSING = 4


@dataclass(frozen=True)
class EnsembleMmmf(System):
    """The mean of several factorisations, not run to their ends.

    members : 1 or more. Others as of :class:`gmc_core.comparison.systems.mmmf.Mmmf`.
    """

    name: str = "e-mmmf"
    label: str = "E-MMMF"
    seed: int = 0
    members: int = 20
    rank: int = 30
    penalties: tuple[float, ...] = PENALTIES
    iterations: int = 30
    version: ClassVar[int] = Mmmf.version

    def __post_init__(self) -> None:
        if self.members < 1:
            raise ConfigError("An ensemble has at least one member.")
        # For one member alone the settings mean the same.
        Mmmf(rank=self.rank, penalties=self.penalties, iterations=self.iterations)

    @property
    def candidates(self) -> Sequence[float]:
        """Each λ."""
        return self.penalties

    def choose(self, train: Ratings, team: ThreadPool) -> float:
        """The λ of least NMAE of a few members."""
        if self.members > _CHOOSING:
            return replace(self, members=_CHOOSING).choose(train, team)
        return float(super().choose(train, team))

    def attempt(self, split: Split, setting: float, team: ThreadPool) -> Floats:
        """(n_test,) means of the members' levels."""
        total = np.zeros(split.n_test)
        for member in range(self.members):
            seed = self.seed * self.members + member
            total += predict_levels(split, self.rank, setting, self.iterations, seed, team)
        return total / self.members
