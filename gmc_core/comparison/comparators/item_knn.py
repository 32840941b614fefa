"""Item-based kNN: a rating from the user's ratings of the nearest items.

Koren, "Factor in the Neighbors: Scalable and Accurate Collaborative Filtering" (ACM
TKDD 4, 2010), section 2.2. With the residuals e_ui = y_ui - μ - b_u - b_i of the biases,
two items are as near as their residuals correlate over the n users who rated both,
shrunk towards 0 where these are few:

    s_ij = (n - 1) / (n - 1 + λ) · Σ_u e_ui e_uj / √(Σ_u e_ui² Σ_u e_uj²)

and the prediction is the bias plus the mean of the user's residuals on the k nearest
rated items, weighted by s, among those with s > 0:

    ŷ_um = μ + b_u + b_m + Σ_j s_mj e_uj / Σ_j s_mj
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy import sparse

from gmc_core import former
from gmc_core.base.errors import ConfigError
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.baselines import fit_biases
from gmc_core.protocol.splits import Split

FloatVector = npt.NDArray[np.float64]

VERSION = 1


@dataclass(frozen=True)
class ItemKnn:
    """k nearest items by shrunk correlation of bias-corrected ratings.

    The defaults are from the literature: λ = 100 (Koren 2010), k = 30 (Sarwar et al.,
    "Item-based collaborative filtering recommendation algorithms", WWW 2001).

    neighbours : k, 1 or more. shrinkage : λ, 0 or more, in users.
    """

    neighbours: int = 30
    shrinkage: float = 100.0
    name: str = "knn"
    label: str = "Item-based kNN"

    def __post_init__(self) -> None:
        if self.neighbours < 1:
            raise ConfigError(f"There must be at least one neighbour, not {self.neighbours}.")
        if not self.shrinkage >= 0:
            raise ConfigError(f"The shrinkage must be at least 0, not {self.shrinkage}.")

    @property
    def identity(self) -> str:
        """Name, version and settings."""
        return f"{self.name} {VERSION} {self.neighbours} {self.shrinkage!r}"

    def predict(self, split: Split, team: ThreadPool) -> FloatVector:
        """(n_test,) predictions; the bias where no rated item is near."""
        train, known = split.train, split.known
        biases = fit_biases(split)
        residuals, known_residuals = biases.residuals(split)
        by_item = sparse.csr_matrix(
            (residuals, train.indices, train.indptr), shape=(train.n_users, train.n_items)
        ).tocsc()
        by_item.sort_indices()
        table = _Table(
            train.indptr, train.indices, residuals,
            by_item.indptr.astype(np.int64), by_item.indices.astype(np.int32), by_item.data,
            known.indptr, known.indices, known_residuals,
        )  # fmt: skip
        predictions = biases.predict(split)
        order = np.argsort(split.test_items, kind="stable")
        items, starts = np.unique(split.test_items[order], return_index=True)
        groups = dict(zip(items.tolist(), np.split(order, starts[1:]), strict=True))
        # A row of similarities at a time, for the test items only: no N × N matrix.
        work = np.bincount(
            train.indices, weights=train.user_counts[train.rows], minlength=train.n_items
        )
        heavy_first = items[np.argsort(-work[items], kind="stable")]
        longest = int(known.user_counts.max(initial=0))

        def one(item: int, space: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
            group = groups[item]
            _predict_item(
                item, split.test_users[group], group, table,
                self.neighbours, float(self.shrinkage), *space, predictions,
            )  # fmt: skip

        def workspace() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            return np.zeros((train.n_items, 4)), np.empty(longest), np.empty(longest)

        team.run(one, heavy_first.tolist(), workspace)
        return predictions


class _Table(NamedTuple):
    """Residuals of the training ratings by user and by item, and of the known ones by user."""

    user_ptr: np.ndarray
    user_items: np.ndarray
    user_residuals: np.ndarray
    item_ptr: np.ndarray
    item_users: np.ndarray
    item_residuals: np.ndarray
    known_ptr: np.ndarray
    known_items: np.ndarray
    known_residuals: np.ndarray


@njit(nogil=True, cache=True)
def _similarities(item, table, shrinkage, sums):  # type: ignore[no-untyped-def]
    """s of one item with every other into ``sums[:, 0]``, whose rows must be 0 before."""
    for k in range(table.item_ptr[item], table.item_ptr[item + 1]):
        user, own = table.item_users[k], table.item_residuals[k]
        for t in range(table.user_ptr[user], table.user_ptr[user + 1]):
            other, residual = table.user_items[t], table.user_residuals[t]
            sums[other, 0] += own * residual
            sums[other, 1] += own * own
            sums[other, 2] += residual * residual
            sums[other, 3] += 1
    for other in range(len(sums)):
        scale = sums[other, 1] * sums[other, 2]
        common = sums[other, 3] - 1
        if common > 0 and scale > 0:
            sums[other, 0] *= common / (common + shrinkage) / np.sqrt(scale)
        else:
            sums[other, 0] = 0


@njit(nogil=True, cache=True)
def _predict_item(  # type: ignore[no-untyped-def]
    item, users, places, table, neighbours, shrinkage, sums, near, weights, predictions
):
    """Add the neighbours' part to the predictions of one item for several users.

    users, places : of the test ratings of this item: user, and place in ``predictions``.
    sums, near, weights : workspace; ``sums`` is (N, 4), 0 before and after.
    """
    _similarities(item, table, shrinkage, sums)
    for k in range(len(users)):
        user, found = users[k], 0
        for t in range(table.known_ptr[user], table.known_ptr[user + 1]):
            other = table.known_items[t]
            similarity = sums[other, 0]
            if other != item and similarity > 0:
                # Negative, so that sorting puts the nearest first.
                near[found], weights[found] = -similarity, table.known_residuals[t]
                found += 1
        if found == 0:
            continue
        order = np.argsort(near[:found], kind="mergesort")
        total, weight = 0.0, 0.0
        for t in order[:neighbours]:
            total -= near[t] * weights[t]
            weight -= near[t]
        predictions[places[k]] += total / weight
    sums[:] = 0


__getattr__ = former.renamed(__name__, ItemProximity="ItemKnn")
