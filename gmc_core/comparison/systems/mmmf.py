"""MMMF: maximum margin matrix factorization, by the gradient of its factors ("fast MMMF").

Rennie and Srebro, "Fast Maximum Margin Matrix Factorization for Collaborative Prediction" (ICML
2005). A user u and an item j meet in x = u·v_j, and the user's V - 1 thresholds cut the line of x
into the V levels. Minimised over u, v and θ is

    λ/2 (Σ ‖u‖² + Σ ‖v_j‖²) + Σ_uj Σ_r h(T_r (θ_ur - x_uj)),   T_r = 1 if r ≥ y_uj else -1

over the ratings, y = 1 … V, with the smooth hinge h(z) = ½ - z for z ≤ 0, ½ (1 - z)² for
0 < z < 1, and 0 from 1 on. The prediction is the level that x falls into. A novel user's u and θ
are the minimum of the same with the v as they are, which is convex.

As in the paper the factors are so many that the minimum is that of the convex problem with the
trace norm ‖X‖, to which the two penalties add up. Its steps were those of conjugate gradients
(100 at most); here they are L-BFGS's on the same objective. λ is chosen inside training from a
part of the published grid (10^¼)^{3 … 8}, each from a random start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit
from scipy import sparse

from gmc_core.base.errors import ConfigError
from gmc_core.comparison.systems.system import (
    Floats,
    Rows,
    System,
    by_user,
    codes,
    descend,
    generator,
    levels_of,
    over_rows,
)
from gmc_core.data.ratings import Ratings
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.splits import Split

# Of the factors at the start, so that x has a variance of .1 whatever their number.
_START_VARIANCE = 0.1
# λ = (10^¼)^k, k = 7 … 4: around the best of the published grid on the data of the tables.
PENALTIES = tuple(round(10 ** (k / 4), 3) for k in (7, 6, 5, 4))


@dataclass(frozen=True)
class Mmmf(System):
    """Maximum margin factors, and thresholds of each user.

    rank : number of factors, 1 or more. penalties : the λ to choose from, above 0.
    iterations : of L-BFGS, 1 or more.
    """

    name: str = "mmmf"
    label: str = "MMMF"
    seed: int = 0
    rank: int = 100
    penalties: tuple[float, ...] = PENALTIES
    iterations: int = 100
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.rank < 1 or self.iterations < 1:
            raise ConfigError("MMMF takes at least one factor and one iteration.")
        if not self.penalties or not min(self.penalties) > 0:
            raise ConfigError("The λ of MMMF must be above 0.")

    @property
    def candidates(self) -> Sequence[float]:
        """Each λ."""
        return self.penalties

    def attempt(self, split: Split, setting: float, team: ThreadPool) -> Floats:
        """(n_test,) levels."""
        return predict_levels(split, self.rank, setting, self.iterations, self.seed, team)


def predict_levels(
    split: Split, rank: int, penalty: float, iterations: int, seed: int, team: ThreadPool
) -> Floats:
    """(n_test,) the levels that one factorisation, from a random start, predicts."""
    levels = levels_of(split.train.scale, "MMMF")
    model = Margins(split.train, rank, penalty)
    users = model.learn(seed, iterations, team)
    if split.query is not None:
        users = model.fold_in(split.query, iterations, team)
    own = users[split.test_users]
    x = np.einsum("pf,pf->p", own[:, :rank], model.items[split.test_items])
    return np.asarray(levels[(own[:, rank:] < x[:, None]).sum(axis=1)])


class Margins:
    """The items' side of a factorisation.

    items : v (N, R). A user is R factors and V - 1 thresholds, (R + V - 1,).
    """

    def __init__(self, train: Ratings, rank: int, penalty: float) -> None:
        self.rank, self.penalty = rank, penalty
        self._users = by_user(train, codes(train))
        self._cuts = len(levels_of(train.scale, "MMMF")) - 1
        self._size = train.n_items
        self.items = np.zeros((train.n_items, rank))
        # Where x = 0 is in the middle of the scale, a unit for each level.
        self._thresholds = np.arange(self._cuts) - (self._cuts - 1) / 2

    def objective(
        self, users: Floats, items: Floats, team: ThreadPool
    ) -> tuple[float, Floats, Floats]:
        """What is minimised, and its gradients with respect to users (M, R + V - 1) and items."""
        slopes = np.empty(len(self._users.values))
        value, of_users = self._users_objective(self._users, users, items, slopes, team)
        table = sparse.csr_matrix(
            (slopes, self._users.indices, self._users.indptr), shape=(len(users), self._size)
        )
        of_items = table.T @ users[:, : self.rank] + self.penalty * items
        return value + 0.5 * self.penalty * float((items**2).sum()), of_users, of_items

    def learn(self, seed: int, iterations: int, team: ThreadPool) -> Floats:
        """The items, kept, and the training users, (M, R + V - 1)."""
        shape = (self._users.size, self.rank + self._cuts)
        random, deviation = generator(seed), (_START_VARIANCE / self.rank) ** 0.25
        users: Floats = np.tile(
            np.concatenate([np.zeros(self.rank), self._thresholds]), (shape[0], 1)
        )
        users[:, : self.rank] = random.normal(0, deviation, (shape[0], self.rank))
        items: Floats = random.normal(0, deviation, (self._size, self.rank))
        size = users.size

        def both(point: Floats) -> tuple[float, Floats]:
            value, of_users, of_items = self.objective(
                point[:size].reshape(shape), point[size:].reshape(items.shape), team
            )
            return value, np.concatenate([of_users.ravel(), of_items.ravel()])

        start = np.concatenate([users.ravel(), items.ravel()])
        found = descend(both, start, iterations, team)
        self.items = found[size:].reshape(self._size, self.rank)
        users = found[:size].reshape(shape)
        self._thresholds = users[:, self.rank :].mean(axis=0)
        return users

    def fold_in(self, query: Ratings, iterations: int, team: ThreadPool) -> Floats:
        """(users, R + V - 1) other users, with the items as they are."""
        rows, shape = by_user(query, codes(query)), (query.n_users, self.rank + self._cuts)
        slopes = np.empty(len(rows.values))

        def some(point: Floats) -> tuple[float, Floats]:
            value, gradient = self._users_objective(
                rows, point.reshape(shape), self.items, slopes, team
            )
            return value, gradient.ravel()

        start = np.tile(np.concatenate([np.zeros(self.rank), self._thresholds]), (shape[0], 1))
        return descend(some, start.ravel(), iterations, team).reshape(shape)

    def _users_objective(
        self, rows: Rows, users: Floats, items: Floats, slopes: Floats, team: ThreadPool
    ) -> tuple[float, Floats]:
        """The users' part and its gradient; the slope of each rating's loss into ``slopes``."""
        gradient, losses = np.zeros_like(users), np.empty(rows.size)

        def some(start: int, stop: int) -> None:
            user_margins(start, stop, rows, users, items, gradient, slopes, losses)

        over_rows(rows, some, team)
        factors = users[:, : self.rank]
        gradient[:, : self.rank] += self.penalty * factors
        return float(losses.sum() + 0.5 * self.penalty * (factors**2).sum()), gradient


@njit(nogil=True, cache=True)
def user_margins(start, stop, rows, users, items, gradient, slopes, losses):  # type: ignore[no-untyped-def]
    """Hinge losses of the ratings of users start..stop, and their slopes.

    rows : levels 0 … V - 1 by user. users : (M, R + V - 1). items : (N, R).
    gradient : as users, added to. slopes : (nnz,) by x, written. losses : (M,), written.
    """
    rank = items.shape[1]
    for user in range(start, stop):
        own, into, total = users[user], gradient[user], 0.0
        for t in range(rows.indptr[user], rows.indptr[user + 1]):
            item, level = items[rows.indices[t]], int(rows.values[t])
            x, slope = 0.0, 0.0
            for f in range(rank):
                x += own[f] * item[f]
            for r in range(len(own) - rank):
                sign = 1.0 if r >= level else -1.0
                z = sign * (own[rank + r] - x)
                if z < 1.0:
                    # - h'(z), which is 1 up to z = 0 and falls to 0 at 1.
                    steep = 1.0 if z <= 0.0 else 1.0 - z
                    total += 0.5 - z if z <= 0.0 else 0.5 * steep * steep
                    into[rank + r] -= sign * steep
                    slope += sign * steep
            slopes[t] = slope
            for f in range(rank):
                into[f] += slope * item[f]
        losses[user] = total
