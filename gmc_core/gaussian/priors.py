"""The prior of Σ that the settings describe, and how ratings become its signals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, svds

from gmc_core.data.ratings import Ratings
from gmc_core.gaussian.exact import Prior
from gmc_core.gaussian.lowrank import LoadingsPrior
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.settings import FitSettings
from gmc_core.gaussian.signals import Layout, Signals

# Directions of who rated what. On MovieLens 1M 150 do no better.
IMPLICIT_DIRECTIONS = 60
# Up to this many users or items all directions are computed, which cannot fail to converge.
_SMALL = 300
# A direction with a smaller singular value (the largest is 1) is rounding, as the root of
# what is left of 1 in float64 is.
_NOTHING = 1e-6


def prior_of(settings: FitSettings, ratings: Ratings, layout: Layout) -> Prior | None:
    """T = offset · 11ᵀ + genres · G Gᵀ + implicit · Q Qᵀ + own · Id, as ν signals.

    ``settings.prior_target`` holds the four variances. G (N × genres) gives an item
    of g genres 1/√g in each, so that its variance is the same for every g; Q are the
    :func:`implicit_directions`. Signals that are no rows have neither. None where ν = 0.
    """
    if not settings.prior_strength:
        return None
    assert settings.prior_target is not None
    offset, genres, implicit, own = settings.prior_target
    parts = [np.full((layout.dimension, 1), np.sqrt(offset))]
    if genres > 0 and layout.kind == "rows":
        parts.append(np.sqrt(genres) * genre_matrix(ratings))
    if implicit > 0 and layout.kind == "rows":
        parts.append(np.sqrt(implicit) * implicit_directions(ratings))
    diagonal = np.full(layout.dimension, own)
    return Prior(settings.prior_strength, np.hstack(parts), diagonal)


def factor_prior(settings: FitSettings, ratings: Ratings) -> LoadingsPrior:
    """The same target with what it has of each item alone in γ, as the prior of W (N, R).

    The rank bounds the directions of who rated what. What is left of it beyond all that the
    target has are columns of nothing, which stay so.
    """
    assert settings.prior_strength is not None and settings.prior_target is not None
    assert settings.rank is not None
    offset, genres, implicit, _ = settings.prior_target
    parts = [np.full((ratings.n_items, 1), np.sqrt(offset))]
    if genres > 0:
        parts.append(np.sqrt(genres) * genre_matrix(ratings))
    left = settings.rank - sum(part.shape[1] for part in parts)
    if implicit > 0 and left > 0 and len(ratings):
        directions = _of_length_1(_directions(*_who_rated_what(ratings), left))
        parts.append(np.sqrt(implicit) * directions)
    return LoadingsPrior(settings.prior_strength, np.hstack(parts)[:, : settings.rank])


def latent_variance(noise: Noise, settings: FitSettings) -> float:
    """Of a latent response around its prediction, nearly: the noise and the item's own variance."""
    assert settings.prior_target is not None
    shared = 0.0 if noise.session is None else noise.session.variance
    return float(noise.array[0, 0]) + shared + settings.prior_target[-1]


def genre_matrix(ratings: Ratings) -> np.ndarray:
    """(N items, genres) with 1/√g for each of an item's g genres."""
    names = sorted({genre for genres in ratings.item_info.genres for genre in genres})
    place = {name: index for index, name in enumerate(names)}
    matrix = np.zeros((ratings.n_items, len(names)))
    for item, genres in enumerate(ratings.item_info.genres):
        for genre in genres:
            matrix[item, place[genre]] = 1 / np.sqrt(len(genres))
    return matrix


def implicit_directions(ratings: Ratings) -> npt.NDArray[np.float64]:
    """(N items, R) rows of length 1, near to each other where the same people rated.

    What a person chose to rate says what the items have in common before any value is
    read: the implicit feedback of SVD++ (Koren, KDD 2008), here as a prior. With B the
    M × N table of rated or not, each entry divided by the roots of its user's and its
    item's number of ratings, the roots of these numbers are singular vectors of B with
    the largest singular value, 1; they say only how often somebody or something was
    rated, and are taken off. An item's row are its ``IMPLICIT_DIRECTIONS`` leading right
    singular vectors of what is left, each times its singular value. An item that no
    direction knows has a row of zeros.
    """
    if not len(ratings):
        return np.zeros((ratings.n_items, 0))
    return _of_length_1(_directions(*_who_rated_what(ratings)))


@dataclass(frozen=True, eq=False)
class UserTarget:
    """What the users' covariance T is shrunk to: offset · 11ᵀ + implicit · Q Qᵀ.

    Q are the :func:`implicit_directions` of the transposed table: users are near to each other
    who rated the same items. Kept by the items, so that somebody who was not there has a row too.

    offset, implicit : variances. ratings : how many the directions were made of.
    items : (N, K) their singular vectors over the items, by falling singular value.
    counts : (N,) float64, ratings of each item.
    """

    offset: float
    implicit: float
    ratings: int
    items: npt.NDArray[np.float64]
    counts: npt.NDArray[np.float64]

    @classmethod
    def of(cls, settings: FitSettings, ratings: Ratings) -> UserTarget:
        """As the settings say, T of their rank; of less where the ratings have fewer directions."""
        assert settings.user_rank is not None and settings.user_target is not None
        offset, implicit = settings.user_target
        count, items = settings.user_rank - 1, np.zeros((ratings.n_items, 0))
        if len(ratings) and count:
            rated, by_user, by_item = _who_rated_what(ratings)
            scores = _directions(rated.T.tocsr(), by_item, by_user, count)
            scores = scores[:, np.argsort(-np.linalg.norm(scores, axis=0), kind="stable")]
            left = rated.T @ scores - np.outer(by_item, by_user @ scores)
            items = left / np.maximum(np.linalg.norm(left, axis=0), _NOTHING)
        counts = ratings.item_counts.astype(np.float64)
        return cls(offset, implicit, len(ratings), items, counts)

    def loadings(self, signals: Signals) -> npt.NDArray[np.float64]:
        """(M, 1 + K) V of the users that are the signals: T = V Vᵀ between any of them.

        A user without ratings, or whom no direction knows, has only what all share.
        """
        total = max(self.ratings, 1)
        roots = np.sqrt(np.maximum(self.counts, 1))
        sizes = np.sqrt(np.maximum(signals.sizes, 1))
        entries = 1 / (sizes[signals.owners] * roots[signals.indices])
        known = np.sqrt(self.counts / total) @ self.items
        found = signals.matrix(entries) @ self.items
        found -= np.outer(np.sqrt(signals.sizes / total), known)
        level = np.full((signals.count, 1), np.sqrt(self.offset))
        return np.hstack([level, np.sqrt(self.implicit) * _of_length_1(found)])


def _who_rated_what(
    ratings: Ratings,
) -> tuple[sparse.csr_matrix, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """B (M × N) of :func:`implicit_directions`, and its leading singular vectors."""
    users, items = ratings.n_users, ratings.n_items
    per_user, per_item = np.maximum(ratings.user_counts, 1), np.maximum(ratings.item_counts, 1)
    entries = 1 / np.sqrt(per_user[ratings.rows] * per_item[ratings.indices])
    rated = sparse.csr_matrix((entries, ratings.indices, ratings.indptr), shape=(users, items))
    by_user, by_item = (
        np.sqrt(counts / len(ratings)) for counts in (ratings.user_counts, ratings.item_counts)
    )
    return rated, by_user, by_item


def _directions(
    rated: sparse.csr_matrix,
    by_user: npt.NDArray[np.float64],
    by_item: npt.NDArray[np.float64],
    count: int = IMPLICIT_DIRECTIONS,
) -> npt.NDArray[np.float64]:
    """(N, R) leading right singular vectors of what is left, times their singular values."""
    users, items = rated.shape
    if min(users, items) <= max(_SMALL, count):
        return _all_directions(rated, by_user, by_item, count)
    left = LinearOperator(
        rated.shape,
        matvec=lambda x: rated @ x.ravel() - by_user * (by_item @ x.ravel()),
        rmatvec=lambda x: rated.T @ x.ravel() - by_item * (by_user @ x.ravel()),
        dtype=np.float64,
    )
    # A start of its own, or the result would depend on what was drawn before.
    start = np.random.Generator(np.random.PCG64(0)).normal(size=min(users, items))
    _, sizes, vectors = svds(left, k=count, v0=start)
    return np.asarray((vectors * sizes[:, None]).T[:, sizes > _NOTHING])


def _of_length_1(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Each row divided by its length; one of nearly nothing becomes zeros."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > _NOTHING)


def _all_directions(
    rated: sparse.csr_matrix,
    by_user: npt.NDArray[np.float64],
    by_item: npt.NDArray[np.float64],
    count: int,
) -> npt.NDArray[np.float64]:
    """The leading directions times their singular values, from the smaller Gram matrix."""
    few_items = rated.shape[1] <= rated.shape[0]
    gram = (rated.T @ rated if few_items else rated @ rated.T).toarray()
    known = by_item if few_items else by_user
    squares, vectors = np.linalg.eigh(gram - np.outer(known, known))
    kept = np.flatnonzero(squares > _NOTHING**2)[-count:]
    if few_items:
        return np.asarray(vectors[:, kept] * np.sqrt(squares[kept]))
    return np.asarray(rated.T @ vectors[:, kept])
