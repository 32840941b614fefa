"""Attitude: ratings from a product of attitudes, as a softmax of what a user feels about an item.

Marlin, "Collaborative Filtering: A Machine Learning Perspective" (MSc thesis, Toronto 2004), the
model that the later tables call Attitude. A user has K real-valued attitudes, and each level of
each item a weight for each of them:

    a_u ~ N(0, Id),   P(r_uj = v | a_u) = exp(w_jv·a_u + b_jv) / Σ_v' exp(w_jv'·a_u + b_jv')

Learned is the most probable (a, w, b), that is the least

    - Σ log P(r_uj | a_u) + ½ Σ ‖a_u‖² + λ/2 Σ ‖w_jv‖² + ½ Σ (b_jv - log f_jv)²

by L-BFGS, with gradients p - [v = r] of the exponents; λ and K are chosen inside training. The
prediction is the median level. A novel user's a is the minimum of the same with w and b as they
are, which is convex.

Assumed, the thesis not being at hand: that this is its likelihood; point estimates in place of a
variational bound; and the priors of w and of b, whose mean is the log of the item's frequencies
f_jv, smoothed by five ratings drawn from all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from gmc_core.base.errors import ConfigError
from gmc_core.comparison.systems.system import (
    Floats,
    Rows,
    System,
    by_item,
    by_user,
    codes,
    descend,
    frequencies,
    generator,
    levels_of,
    medians,
    over_rows,
)
from gmc_core.data.ratings import Ratings
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.splits import Split

_START_DEVIATION = 0.1


@dataclass(frozen=True)
class Attitude(System):
    """Softmax of real-valued attitudes.

    settings : pairs (K, λ) to choose from, K ≥ 1 and λ > 0. iterations : of L-BFGS, 1 or more.
    """

    name: str = "attitude"
    label: str = "Attitude"
    seed: int = 0
    settings: tuple[tuple[int, float], ...] = ((2, 3.0), (2, 10.0), (5, 3.0), (5, 30.0))
    iterations: int = 100
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        valid = [count >= 1 and penalty > 0 for count, penalty in self.settings]
        if not valid or not all(valid) or self.iterations < 1:
            raise ConfigError("Attitude takes at least one attitude and a λ above 0.")

    @property
    def candidates(self) -> Sequence[tuple[int, float]]:
        """Each (K, λ)."""
        return self.settings

    def attempt(self, split: Split, setting: tuple[int, float], team: ThreadPool) -> Floats:
        """(n_test,) medians."""
        levels = levels_of(split.train.scale, self.label)
        model = Attitudes(split.train, *setting)
        random, shape = generator(self.seed), (split.train.n_users, model.count)
        attitudes = random.normal(0, _START_DEVIATION, shape)
        model.weights[:, :, :-1] = random.normal(
            0, _START_DEVIATION, model.weights[:, :, :-1].shape
        )
        attitudes = model.learn(attitudes, self.iterations, team)
        if split.query is not None:
            attitudes = model.fold_in(split.query, self.iterations, team)
        items = model.weights[split.test_items]
        exponents = items[:, :, -1] + np.einsum(
            "pvk,pk->pv", items[:, :, :-1], attitudes[split.test_users]
        )
        exponents -= exponents.max(axis=1, keepdims=True)
        return medians(np.exp(exponents), levels)


class Attitudes:
    """The items' side.

    weights : (N, V, K + 1), w and in the last place b.
    """

    def __init__(self, train: Ratings, count: int, penalty: float) -> None:
        self.count, self.penalty = count, penalty
        level = codes(train)
        self._users, self._items = by_user(train, level), by_item(train, level)
        self._prior = np.log(frequencies(train))
        self.weights = np.zeros((*self._prior.shape, count + 1))
        self.weights[:, :, -1] = self._prior

    def objective(
        self, attitudes: Floats, weights: Floats, team: ThreadPool
    ) -> tuple[float, Floats, Floats]:
        """What is minimised, and its gradients with respect to a (M, K) and w, b (N, V, K + 1)."""
        value, of_users = self._users_objective(self._users, attitudes, weights, team)
        of_items = self.penalty * weights
        apart = weights[:, :, -1] - self._prior
        of_items[:, :, -1] = apart
        value += 0.5 * self.penalty * float((weights[:, :, :-1] ** 2).sum())
        value += 0.5 * float((apart**2).sum())

        def some(start: int, stop: int) -> None:
            item_gradients(start, stop, self._items, weights, attitudes, of_items)

        over_rows(self._items, some, team)
        return value, of_users, of_items

    def learn(self, attitudes: Floats, iterations: int, team: ThreadPool) -> Floats:
        """The weights, kept, and the attitudes of the training users, (M, K)."""
        size, shape = attitudes.size, self.weights.shape

        def both(point: Floats) -> tuple[float, Floats]:
            value, of_users, of_items = self.objective(
                point[:size].reshape(attitudes.shape), point[size:].reshape(shape), team
            )
            return value, np.concatenate([of_users.ravel(), of_items.ravel()])

        start = np.concatenate([attitudes.ravel(), self.weights.ravel()])
        found = descend(both, start, iterations, team)
        self.weights = found[size:].reshape(shape)
        return found[:size].reshape(attitudes.shape)

    def fold_in(self, query: Ratings, iterations: int, team: ThreadPool) -> Floats:
        """(users, K) attitudes of other users, under the weights as they are."""
        rows, shape = by_user(query, codes(query)), (query.n_users, self.count)

        def users(point: Floats) -> tuple[float, Floats]:
            value, gradient = self._users_objective(rows, point.reshape(shape), self.weights, team)
            return value, gradient.ravel()

        return descend(users, np.zeros(shape).ravel(), iterations, team).reshape(shape)

    def _users_objective(
        self, rows: Rows, attitudes: Floats, weights: Floats, team: ThreadPool
    ) -> tuple[float, Floats]:
        """The users' part, and its gradient with respect to a."""
        gradient, losses = attitudes.copy(), np.empty(rows.size)

        def some(start: int, stop: int) -> None:
            user_gradients(start, stop, rows, attitudes, weights, gradient, losses)

        over_rows(rows, some, team)
        return float(losses.sum() + 0.5 * (attitudes**2).sum()), gradient


@njit(nogil=True, cache=True)
def _loss(weights, attitude, level, slopes):  # type: ignore[no-untyped-def]
    """- log P of one rating; its slopes p_v - [v = level] with respect to the exponents (V,)."""
    count, highest = len(attitude), -np.inf
    for v in range(len(slopes)):
        exponent = weights[v, count]
        for k in range(count):
            exponent += weights[v, k] * attitude[k]
        slopes[v] = exponent
        highest = max(highest, exponent)
    own, total = slopes[level] - highest, 0.0
    for v in range(len(slopes)):
        slopes[v] = np.exp(slopes[v] - highest)
        total += slopes[v]
    for v in range(len(slopes)):
        slopes[v] /= total
    slopes[level] -= 1.0
    return np.log(total) - own


@njit(nogil=True, cache=True)
def user_gradients(start, stop, rows, attitudes, weights, gradient, losses):  # type: ignore[no-untyped-def]
    """Add the users' gradients to ``gradient`` (M, K); ``losses`` (M,) are written."""
    slopes = np.empty(weights.shape[1])
    for user in range(start, stop):
        total = 0.0
        for t in range(rows.indptr[user], rows.indptr[user + 1]):
            own = weights[rows.indices[t]]
            total += _loss(own, attitudes[user], int(rows.values[t]), slopes)
            for v in range(len(slopes)):
                for k in range(attitudes.shape[1]):
                    gradient[user, k] += slopes[v] * own[v, k]
        losses[user] = total


@njit(nogil=True, cache=True)
def item_gradients(start, stop, rows, weights, attitudes, gradient):  # type: ignore[no-untyped-def]
    """Add the items' gradients to ``gradient`` (N, V, K + 1)."""
    count = attitudes.shape[1]
    slopes = np.empty(weights.shape[1])
    for item in range(start, stop):
        for t in range(rows.indptr[item], rows.indptr[item + 1]):
            attitude = attitudes[rows.indices[t]]
            _loss(weights[item], attitude, int(rows.values[t]), slopes)
            for v in range(len(slopes)):
                for k in range(count):
                    gradient[item, v, k] += slopes[v] * attitude[k]
                gradient[item, v, count] += slopes[v]
