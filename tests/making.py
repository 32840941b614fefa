"""Small ratings and signals for the tests, made from a seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gmc_core.data.ratings import Ratings, RatingScale, Vocabulary
from gmc_core.gaussian.signals import Layout, Signals

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


def movielens_folder(path: Path, users: int = 120, items: int = 30, seed: int = 0) -> Path:
    """Ratings with titles and users in the layout of MovieLens 1M, of which the women like
    the first half of the titles more and the men the second."""
    rng = np.random.default_rng(seed)
    woman = rng.random(users) < 0.4
    liking = np.where(woman[:, None] == (np.arange(items) < items // 2)[None], 0.8, -0.8)
    values = np.clip(np.round(3 + liking + rng.normal(size=liking.shape)), 1, 5).astype(int)
    known = rng.random(values.shape) < 0.7
    path.mkdir(parents=True, exist_ok=True)
    (path / "ratings.dat").write_text(
        "".join(
            f"{u + 1}::{m + 1}::{values[u, m]}::0\n"
            for u, m in zip(*np.nonzero(known), strict=True)
        )
    )
    (path / "movies.dat").write_text(
        "".join(f"{m + 1}::Title {m + 1} (19{70 + m % 30})::Drama\n" for m in range(items))
    )
    (path / "users.dat").write_text(
        "".join(
            f"{u + 1}::{'F' if woman[u] else 'M'}::{(18, 25, 35)[u % 3]}::{u % 2}::0{u:04d}\n"
            for u in range(users)
        )
    )
    return path


def skewed_table(seed: int = 0):
    """Latent responses of two tastes, cut unevenly: half of all ratings are 5."""
    rng = np.random.default_rng(seed)
    responses = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 30)) + 0.5 * rng.normal(
        size=(400, 30)
    )
    values = 1.0 + np.searchsorted([-3.0, -2.0, -1.0, 0.0], responses)
    return ratings_of(values, rng.random(values.shape) < 0.5)
