"""Small ratings and signals for the tests, made from a seed."""

from __future__ import annotations

import numpy as np

from gmc_core.ratings import Ratings, RatingScale, Vocabulary
from gmc_core.signals import Layout, Signals

STARS = RatingScale(1, 5)


def random_table(users: int, items: int, fill: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ratings Y (users × items, on 1..5) and which of them are known, H.

    User 0 knows nothing, user 1 knows everything, and nobody has rated item 0
    but user 1.
    """
    rng = np.random.default_rng(seed)
    tastes = rng.normal(size=(users, 2)) @ rng.normal(size=(2, items))
    values = np.clip(np.round(3 + tastes + rng.normal(scale=0.5, size=tastes.shape)), 1, 5)
    known = rng.random((users, items)) < fill
    known[0], known[:, 0], known[1] = False, False, True
    return values, known


def ratings_of(values: np.ndarray, known: np.ndarray, scale: RatingScale = STARS) -> Ratings:
    """The known entries as ratings; users and items keep their positions."""
    users, items = np.nonzero(known)
    return Ratings.from_triplets(
        users,
        items,
        values[known],
        scale,
        users=Vocabulary(np.arange(len(values)), "user"),
        items=Vocabulary(np.arange(values.shape[1]), "item"),
    )


def signals_of(values: np.ndarray, known: np.ndarray, layout: Layout | None = None) -> Signals:
    """The known entries as signals, by default rows."""
    return Signals.of(ratings_of(values, known), layout or Layout("rows", *values.shape))


def estimates_of(signals: Signals, state) -> np.ndarray:
    """All estimates f̃ (M × N) of a state, densely."""
    dimension = signals.dimension
    everything = np.arange(dimension)
    covariance = state.gaussian.covariance.submatrix(everything, everything)
    weights = np.zeros((signals.count, dimension))
    rows = np.repeat(np.arange(signals.count), signals.sizes)
    weights[rows, signals.indices] = state.weights
    return state.gaussian.mean + weights @ covariance
