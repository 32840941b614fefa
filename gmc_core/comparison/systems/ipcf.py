"""IPCF: item proximity by adjusted cosine.

Park and Pennock, "Applying Collaborative Filtering Techniques to Movie Search for Better Ranking
and Browsing" (KDD 2007), after Sarwar, Karypis, Konstan and Riedl, "Item-based collaborative
filtering recommendation algorithms" (WWW 2001). Two items are as near as the ratings of the n
users who rated both agree, each less the user's mean r̄_u:

    s_ij = Σ_u (r_ui - r̄_u)(r_uj - r̄_u) / √(Σ_u (r_ui - r̄_u)² Σ_u (r_uj - r̄_u)²)

and a rating is the item's mean and the weighted mean of how the user's other ratings differ from
those items' means, over the k nearest items that the user rated, of those with s_ij > 0:

    r̂_ui = r̄_i + Σ_j w_ij (r_uj - r̄_j) / Σ_j w_ij,   w_ij = s_ij min(n, γ) / γ

Assumed, the paper not being at hand: the weight for few common users is that of Herlocker et al.
(SIGIR 1999); nearest are those of largest weight, as many as Sarwar et al. try. γ and k are chosen
inside training. A novel user needs no learning: the items' side is that of the training users.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from scipy import sparse

from gmc_core.base.errors import ConfigError
from gmc_core.comparison.systems.system import Floats, System
from gmc_core.data.ratings import Ratings
from gmc_core.gaussian.linalg.threads import ThreadPool, spans
from gmc_core.protocol.splits import Split

# Predictions made at once, each with a row of similarities to all items.
_BLOCK = 128


@dataclass(frozen=True)
class Ipcf(System):
    """Item means and the residuals on items near by adjusted cosine.

    settings : pairs (k, γ) to choose from, each 1 or more: the nearest rated items that count, and
        the common users from which on a similarity counts in full.
    """

    name: str = "ipcf"
    label: str = "IPCF"
    seed: int = 0
    settings: tuple[tuple[int, float], ...] = ((20, 25.0), (20, 50.0), (40, 25.0), (40, 50.0))
    version: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not self.settings or not all(min(one) >= 1 for one in self.settings):
            raise ConfigError(
                "IPCF takes at least one near item, and counts a similarity in full from one "
                "common user on, or more."
            )

    @property
    def candidates(self) -> Sequence[tuple[int, float]]:
        """Each (k, γ)."""
        return self.settings

    def attempt(self, split: Split, setting: tuple[int, float], team: ThreadPool) -> Floats:
        """(n_test,) predictions; the item's mean where no rated item is near."""
        train, known = split.train, split.known
        most, enough = setting
        overall = float(train.values.mean())
        counts = np.maximum(train.item_counts, 1)
        totals = np.bincount(train.indices, train.values - overall, train.n_items)
        means = overall + totals / counts
        proximity = _Proximity(train)
        residuals = _table(known, known.values - means[known.indices])
        predictions = means[split.test_items]
        order = np.argsort(split.test_items, kind="stable")
        for start, stop in spans(len(order), _BLOCK):
            team.check()
            some = order[start:stop]
            items, place = np.unique(split.test_items[some], return_inverse=True)
            weights = proximity.weights(items, enough)[place]
            own = residuals[split.test_users[some]]
            rated = np.repeat(np.arange(len(some)), np.diff(own.indptr))
            near_by = _largest(weights[rated, own.indices], own.indptr, most)
            # Row sums of the products of what was rated with its weights.
            near, found = (np.bincount(rated, near_by * one, len(some)) for one in (1.0, own.data))
            predictions[some] += np.divide(found, near, out=np.zeros(len(some)), where=near > 0)
        return np.asarray(predictions)


class _Proximity:
    """Adjusted cosines of some items with all, from the training ratings."""

    def __init__(self, train: Ratings) -> None:
        totals = np.bincount(train.rows, train.values, train.n_users)
        means = totals / np.maximum(train.user_counts, 1)
        centred = train.values - means[train.rows]
        # As item × user, so that products with a few items' columns are (N, few).
        self._centred = _table(train, centred).T.tocsr()
        self._squares = _table(train, centred**2).T.tocsr()
        self._rated = _table(train, np.ones(len(train))).T.tocsr()

    def weights(self, items: np.ndarray, enough: float) -> Floats:
        """(len(items), N) w_ij ≥ 0, 0 with the item itself."""
        centred, squares, rated = (
            table[items].T.toarray() for table in (self._centred, self._squares, self._rated)
        )
        common = self._rated @ rated
        lengths = np.sqrt((self._squares @ rated) * (self._rated @ squares))
        products = np.maximum(self._centred @ centred, 0)
        products *= np.minimum(common, enough) / enough
        # Products of users who gave all items one rating are 0 but for rounding.
        weights = np.divide(
            products, lengths, out=np.zeros_like(products), where=lengths > 1e-12 * common
        )
        weights[items, np.arange(len(items))] = 0
        return np.asarray(weights.T)


def _largest(weights: Floats, indptr: np.ndarray, most: int) -> Floats:
    """The weights of rows in compressed form, 0 but for the ``most`` largest of each row.

    Of equal ones at the edge any are kept that come to ``most``.
    """
    kept = np.zeros_like(weights)
    for start, stop in pairwise(indptr.tolist()):
        row = weights[start:stop]
        if len(row) > most:
            largest = start + np.argpartition(row, len(row) - most)[-most:]
            kept[largest] = weights[largest]
        else:
            kept[start:stop] = row
    return kept


def _table(ratings: Ratings, values: Floats) -> sparse.csr_matrix:
    """(users, items) with these numbers in place of the ratings."""
    shape = (ratings.n_users, ratings.n_items)
    return sparse.csr_matrix((values, ratings.indices, ratings.indptr), shape=shape)
