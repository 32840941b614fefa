"""IPCF against its formulas, entry by entry."""

from __future__ import annotations

import numpy as np
import pytest
from making import random_table, ratings_of

from gmc_core.comparison.systems.ipcf import Ipcf
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.splits import Split, strong_split, weak_split

GAMMA = 4.0
NEAREST = 3
TABLE = ratings_of(*random_table(30, 14, 0.5, 3))


def dense(ratings) -> np.ndarray:
    """The ratings with NaN where there is none."""
    table = np.full((ratings.n_users, ratings.n_items), np.nan)
    table[ratings.rows, ratings.indices] = ratings.values
    return table


def reference(split: Split) -> np.ndarray:
    """The docstring's formulas with plain loops."""
    train, known = dense(split.train), dense(split.known)
    centred = train - np.array([row[~np.isnan(row)].mean() for row in train])[:, None]
    means = [
        column[~np.isnan(column)].mean() if (~np.isnan(column)).any() else np.nanmean(train)
        for column in train.T
    ]
    found = []
    for user, item in zip(split.test_users, split.test_items, strict=True):
        near = []
        for other in np.flatnonzero(~np.isnan(known[user])):
            both = ~np.isnan(train[:, item]) & ~np.isnan(train[:, other])
            a, b = centred[both, item], centred[both, other]
            root = np.sqrt((a @ a) * (b @ b))
            if both.any() and root > 0 and a @ b > 0:
                weight = a @ b / root * min(both.sum(), GAMMA) / GAMMA
                near.append((weight, known[user, other] - means[other]))
        near = np.array(sorted(near)[-NEAREST:]).reshape(-1, 2)
        found.append(means[item] + (near[:, 0] @ near[:, 1] / near[:, 0].sum() if len(near) else 0))
    return np.array(found)


@pytest.mark.parametrize(
    "split", [weak_split(TABLE, 1), strong_split(TABLE, 1, 20, 8)], ids=lambda one: one.protocol
)
def test_it_agrees_with_plain_loops(split):
    found = Ipcf(settings=((NEAREST, GAMMA),)).predict(split, ThreadPool(1))
    np.testing.assert_allclose(found, reference(split), atol=1e-10)
