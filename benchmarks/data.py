"""The data sets of the benchmarks, as signals."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gmc_core.data import sample
from gmc_core.data.ratings import ItemInfo, Ratings, RatingScale, Vocabulary
from gmc_core.data.readers import load
from gmc_core.gaussian.signals import Layout, Signals
from gmc_core.protocol.filters import Filter, apply_filter

EACHMOVIE_USERS, EACHMOVIE_ITEMS, EACHMOVIE_RATINGS = 36_656, 1_621, 2_500_000


def ratings_named(name: str, ml1m: Path | None) -> Ratings:
    """ "sample", "ml-1m" (filtered as in the paper) or "eachmovie-synthetic"."""
    if name == "eachmovie-synthetic":
        return synthetic(EACHMOVIE_USERS, EACHMOVIE_ITEMS, EACHMOVIE_RATINGS)
    if name == "ml-1m":
        if ml1m is None:
            raise SystemExit("Give the path of ml-1m.zip with --ml1m.")
        return apply_filter(load(ml1m).ratings, Filter())[0]
    return apply_filter(sample.load().ratings, Filter())[0]


def signals_of(ratings: Ratings) -> Signals:
    """Rows as signals."""
    return Signals.of(ratings, Layout("rows", ratings.n_users, ratings.n_items))


def synthetic(users: int, items: int, ratings: int, seed: int = 0) -> Ratings:
    """Ratings on 1..6 of a three-taste Gaussian, as heavy-tailed as MovieLens 1M.

    Ratings per user are log-normal from 20 up (on MovieLens 1M log N_i has
    standard deviation 1); items are drawn with weights that fall as 1/(rank + 30).
    """
    rng = np.random.default_rng(seed)
    sizes = np.exp(rng.normal(size=users))
    low, high = 0.0, 1e6
    for _ in range(60):  # the factor that gives the wanted total
        middle = (low + high) / 2
        total = np.clip(middle * sizes, 20, 0.64 * items).sum()
        low, high = (middle, high) if total < ratings else (low, middle)
    sizes = np.clip(low * sizes, 20, 0.64 * items).astype(np.int64)
    weights = 1 / (np.arange(items) + 30.0)
    loadings, tastes = rng.normal(size=(items, 3)), rng.normal(size=(users, 3))
    columns = []
    for start in range(0, users, 1000):
        # The N_i smallest of exponential keys are a draw without replacement.
        keys = rng.exponential(size=(min(1000, users - start), items)) / weights
        order = np.argsort(keys, axis=1)
        columns += [
            np.sort(row[:size])
            for row, size in zip(order, sizes[start : start + 1000], strict=True)
        ]
    indices = np.concatenate(columns)
    rows = np.repeat(np.arange(users), sizes)
    means = 3.5 + 0.8 * np.einsum("ij,ij->i", tastes[rows], loadings[indices]) / np.sqrt(3)
    values = np.clip(np.round(means + rng.normal(scale=0.9, size=len(rows))), 1, 6)
    return Ratings(
        users=Vocabulary(np.arange(users), "user"),
        items=Vocabulary(np.arange(items), "item"),
        indptr=np.concatenate([[0], np.cumsum(sizes)]),
        indices=indices.astype(np.int32),
        values=values,
        scale=RatingScale(1, 6),
        item_info=ItemInfo.unknown(items),
        name="eachmovie-synthetic",
    )
