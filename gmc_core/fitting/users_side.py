"""What a two-sided fit has besides: the prior of the users' side, and predictions with both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.data.ratings import Ratings
from gmc_core.gaussian.iterate import EmState
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.lowrank import LoadingsPrior, factor_e_step, transposed
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.ordinal import OrdinalScale
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.priors import UserTarget
from gmc_core.gaussian.settings import FitSettings
from gmc_core.gaussian.signals import Signals
from gmc_core.gaussian.two_sided import TwoSidedState, UserSide
from gmc_core.gaussian.user_folding import UserFolding, joined, with_loadings


@dataclass(frozen=True, eq=False)
class UsersSide:
    """The users' side of a fit; of a model without one it changes nothing.

    signals : of the training, one for each user. noise : σ², one variance.
    """

    settings: FitSettings
    train: Ratings
    signals: Signals
    noise: Noise

    @cached_property
    def _target(self) -> UserTarget:
        return UserTarget.of(self.settings, self.train)

    @cached_property
    def prior(self) -> LoadingsPrior:
        """Of the loadings, as the settings say."""
        assert self.settings.user_strength is not None
        return LoadingsPrior(self.settings.user_strength, self._target.loadings(self.signals))

    def fits(self, state: EmState) -> bool:
        """Whether the users' side of a state, if it has one, is of this fit."""
        users = _users(state)
        if users is None:
            return True
        rank = users.loadings.shape[-1]
        right = users.loadings.shape == (self.signals.count, rank)
        right &= users.factors.shape == (self.signals.dimension, rank)
        right &= users.loadings.dtype == users.factors.dtype == self.settings.dtype
        return self.settings.model == "two-sided" and right

    def folding(self, state: EmState, team: ThreadPool) -> UserFolding | None:
        """What finds the loadings of new users; None where the state has no users' side, or none
        yet. The C_i depend on who rated what and on W alone."""
        users = _users(state)
        if users is None:
            return None
        variance = float(self.noise.array[0, 0])
        zero, each = np.zeros(len(self.signals.values)), np.full(self.signals.count, variance)
        found = factor_e_step(transposed(self.signals), zero, users.loadings, each, team)
        return self._folding(users, users.spreads(found.spreads))

    def _folding(self, users: UserSide, spreads: npt.NDArray[np.floating]) -> UserFolding:
        variance = float(self.noise.array[0, 0])
        return UserFolding.of(self._target, self.prior, users, spreads, variance)

    def seen(
        self, query: Signals, state: EmState, team: ThreadPool, ordinal: OrdinalScale | None
    ) -> tuple[Signals, Gaussian]:
        """The query set and the Gaussian with the users' side, as predictions take them."""
        users = _users(state)
        if users is None:
            return query, state.gaussian
        nobody = self._folding(users, np.zeros((0, 0))).nobody
        gaussian = joined(state.gaussian, users, nobody)
        if query is self.signals:
            return with_loadings(query, users.loadings - nobody), gaussian
        folding = self.folding(state, team)
        assert folding is not None
        found = folding.loadings(query, gaussian, self.noise, team, ordinal)
        return with_loadings(query, found), gaussian

    def of_model(self, state: EmState, team: ThreadPool) -> dict[str, Any] | None:
        """Fields of a :class:`gmc_core.model.two_sided_model.TwoSidedModel`; None without a
        users' side."""
        users = _users(state)
        if users is None:
            return None
        folding = self.folding(state, team)
        assert folding is not None
        return {
            "gaussian": joined(state.gaussian, users, folding.nobody),
            "folding": folding,
            "loadings": users.loadings - folding.nobody,
        }


def _users(state: EmState) -> UserSide | None:
    return state.users if isinstance(state, TwoSidedState) else None
