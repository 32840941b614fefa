"""Orders of the items for a picture of Σ, and Σ pooled to a small picture."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.spatial.distance import squareform

from gmc_core.base.errors import ConfigError
from gmc_core.model.analysis import Kind, precision, require_rows, submatrix
from gmc_core.model.gaussian_model import GaussianModel

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]
Order = Literal["popularity", "genre", "year", "title", "similarity"]
ORDERS: tuple[Order, ...] = ("popularity", "genre", "year", "title", "similarity")

MAX_POOLED = 500
MAX_CLUSTERED = 200


def ordered(model: GaussianModel, order: Order, items: npt.ArrayLike | None = None) -> Positions:
    """The ``items`` (all, by default) in an order in which blocks of Σ can be seen.

    popularity : most training ratings first.
    genre : by the first genre, then by popularity; items without one last.
    year : oldest first, then by popularity; items without one last.
    title : alphabetical, without regard to case.
    similarity : correlated items side by side; see :func:`clustered_order` (up to
        200 items) and :func:`spectral_order` (more).

    Returns
    -------
    (n,) item positions, a permutation of ``items``.
    """
    require_rows(model)
    chosen = np.arange(len(model.items)) if items is None else np.asarray(items, dtype=np.int64)
    if order == "similarity":
        if len(chosen) <= MAX_CLUSTERED:
            return chosen[clustered_order(submatrix(model, chosen, "correlation"))]
        rank = np.empty(len(model.items), dtype=np.int64)
        rank[spectral_order(model)] = np.arange(len(model.items))
        return chosen[np.argsort(rank[chosen])]
    if order == "title":
        titles = [model.title(int(m)).casefold() for m in chosen]
        return chosen[np.array(sorted(range(len(chosen)), key=titles.__getitem__), np.int64)]
    popularity = -model.item_counts[chosen]
    if order == "popularity":
        return chosen[np.lexsort((chosen, popularity))]
    if order == "genre":
        first = [model.item_info.genres[m][:1] for m in chosen]
        names = sorted({genre for genres in first for genre in genres})
        place = {name: rank for rank, name in enumerate(names)}
        ranks = np.array([place[g[0]] if g else len(names) for g in first], dtype=np.int64)
        return chosen[np.lexsort((chosen, popularity, ranks))]
    if order == "year":
        years = np.asarray(model.item_info.years, dtype=np.float64)[chosen]
        return chosen[np.lexsort((chosen, popularity, years))]  # NaN sorts last
    raise ConfigError(f"The order is {', '.join(ORDERS)}, not {order!r}.")


def clustered_order(correlations: Floats) -> Positions:
    """Leaves of an average-linkage clustering with distance 1 - correlation, in the
    optimal leaf order (Bar-Joseph et al. 2001), which puts similar leaves side by side.

    correlations : (n, n), n ≤ 200 or so: the optimal order takes O(n³). An undefined
        correlation counts as 0.
    """
    if len(correlations) < 3:
        return np.arange(len(correlations))
    distance = np.clip(1 - np.nan_to_num(correlations), 0.0, 2.0)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    return np.asarray(leaves_list(tree), dtype=np.int64)


def spectral_order(model: GaussianModel) -> Positions:
    """All N items, sorted by the second eigenvector of the normalised affinity.

    The affinity is A = (1 + correlation)/2 ≥ 0 and the eigenvector is of
    D^(-½) A D^(-½), D the row sums of A (Fiedler's order of a graph Laplacian). A is
    never formed: a product with it costs one product with Σ. The end with the more
    rated items comes first.
    """
    require_rows(model)
    covariance = model.gaussian.covariance
    n = covariance.dimension
    if n < 4:
        return np.arange(n)
    sd = np.sqrt(covariance.diagonal())
    scale = np.where(sd > 0, 1 / np.where(sd > 0, sd, 1), 0.0)

    def affinity(vector: Floats) -> Floats:
        vector = vector.reshape(-1)
        inner = covariance.dot((scale * vector).astype(covariance.dtype))
        return (vector.sum() + scale * inner) / 2

    root = 1 / np.sqrt(np.maximum(affinity(np.ones(n)), 1e-12))
    operator = LinearOperator((n, n), matvec=lambda v: root * affinity(root * v.reshape(-1)))
    start = np.random.default_rng(0).standard_normal(n)
    _, vectors = eigsh(operator, 2, which="LA", v0=start, tol=1e-6)
    fiedler = vectors[:, 0] * root  # eigsh sorts upwards: column 0 is the second largest
    order = np.argsort(fiedler, kind="stable")
    half = n // 2
    counts = model.item_counts
    return order if counts[order[:half]].sum() >= counts[order[half:]].sum() else order[::-1]


def pooled(
    source: Floats | GaussianModel, order: npt.ArrayLike, size: int = 300, kind: Kind = "covariance"
) -> Floats:
    """Mean of Σ over blocks of neighbouring items: a picture of at most ``size`` pixels.

    Parameters
    ----------
    source : (N, N) matrix, taken as it is, or a model, whose Σ is shown as ``kind``
        and, if factored, never formed.
    order : (n,) item positions in the order to show; n > size is cut into ``size``
        runs of (nearly) equal length.
    size : at most 500.

    Returns
    -------
    (s, s), s = min(size, n). A diagonal block's mean includes the diagonal.
    """
    if not 1 <= size <= MAX_POOLED:
        raise ConfigError(f"A picture has 1 to {MAX_POOLED} pixels a side, not {size}.")
    positions = np.asarray(order, dtype=np.int64)
    size = min(size, len(positions))
    if not size:
        return np.zeros((0, 0))
    starts = np.arange(size) * len(positions) // size
    lengths = np.diff(np.append(starts, len(positions)))
    if isinstance(source, np.ndarray):
        block = source[np.ix_(positions, positions)]
        sums = np.add.reduceat(np.add.reduceat(block, starts, axis=0), starts, axis=1)
        return np.asarray(sums / np.outer(lengths, lengths), dtype=np.float64)
    if kind == "partial":
        return _pooled_partial(source, positions, lengths)
    require_rows(source)
    covariance = source.gaussian.covariance
    weights = np.repeat(1 / lengths, lengths)
    if kind == "correlation":
        sd = np.sqrt(covariance.diagonal()[positions])
        weights = weights / np.where(sd > 0, sd, np.nan)
    # Σ pooled = Bᵀ Σ B; column b of B averages the items of run b.
    runs = np.repeat(np.arange(size), lengths)
    average = sparse.csc_matrix((weights, (positions, runs)), shape=(covariance.dimension, size))
    image = covariance.dot(average.toarray().astype(covariance.dtype))
    return np.asarray(average.T @ image, dtype=np.float64)


def _pooled_partial(model: GaussianModel, positions: Positions, lengths: Positions) -> Floats:
    """The pooled partial correlations, from Bᵀ P B; (n, n) partial correlations are not kept."""
    inverse = precision(model, positions)
    average = np.zeros((len(positions), len(lengths)))
    runs = np.repeat(np.arange(len(lengths)), lengths)
    average[np.arange(len(positions)), runs] = 1 / (
        np.sqrt(inverse.diagonal) * np.repeat(lengths, lengths)
    )
    # Scaled to ones on its diagonal, P shows minus the partial correlations off it.
    return np.diag(2 / lengths) - inverse.quadratic(average)
