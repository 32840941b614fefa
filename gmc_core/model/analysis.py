"""What a fitted Σ says of the items: correlations, partial correlations, neighbours.

All functions read a :class:`gmc_core.model.gaussian_model.GaussianModel` whose signals are rows,
so that coordinate m of (μ, Σ) is item m. Σ is the covariance of the users'
noise-free ratings, ε on its diagonal included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gmc_core.base.errors import ConfigError, DataError, NotPositiveDefiniteError
from gmc_core.gaussian.covariance import FactoredCovariance
from gmc_core.model.gaussian_model import GaussianModel

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]
Kind = Literal["covariance", "correlation", "partial"]

_SINGULAR = (
    "The covariance is singular, so partial correlations are undefined; fit with a larger ε."
)


def require_rows(model: GaussianModel) -> None:
    """Refuse a model whose coordinates are not items.

    Raises
    ------
    ConfigError
        If the signals are columns or blocks.
    """
    if model.layout.kind != "rows":
        raise ConfigError(
            f"This model has {model.layout.kind} as signals, so its covariance is not one between "
            "items; fit with rows as signals."
        )


def correlation(covariance: npt.ArrayLike) -> Floats:
    """Σ_ij / √(Σ_ii Σ_jj); NaN where a variance is 0, for then it is undefined.

    covariance : (n, n) symmetric.
    """
    matrix = np.asarray(covariance, dtype=np.float64)
    sd = np.sqrt(np.diagonal(matrix))
    with np.errstate(divide="ignore", invalid="ignore"):
        result = matrix / np.outer(sd, sd)
    result[~np.isfinite(result)] = np.nan
    np.fill_diagonal(result, np.where(sd > 0, 1.0, np.nan))
    return np.clip(result, -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Precision:
    """P[items, items] of P = Σ⁻¹ up to a factor, as base - rootᵀ root or rootᵀ root.

    root : (r, n). minus : whether P is Id - rootᵀ root.
    """

    root: Floats
    minus: bool

    @property
    def diagonal(self) -> Floats:
        """(n,) diagonal of P."""
        squares = np.einsum("ij,ij->j", self.root, self.root)
        return 1 - squares if self.minus else squares

    def quadratic(self, weights: Floats) -> Floats:
        """Bᵀ P B for B (n, k)."""
        image = self.root @ weights
        product = image.T @ image
        return weights.T @ weights - product if self.minus else product


def precision(model: GaussianModel, items: npt.ArrayLike) -> Precision:
    """The precision of ``items`` given all others, by Cholesky and triangular solves.

    - Dense Σ: with ``items`` ordered last, the last block L of the Cholesky factor
      satisfies P[items, items] = L⁻ᵀ L⁻¹ (N³/3 flops, and n³/3 for L⁻¹).
    - Σ = F Fᵀ + ε Id: ε P = Id - Wᵀ W, W = C⁻¹ Fᵀ, C Cᵀ = ε Id + Fᵀ F (R³/3 flops).

    items : (n,) positions.

    Raises
    ------
    NumericalError
        If Σ is singular.
    """
    require_rows(model)
    chosen = np.asarray(items, dtype=np.int64)
    covariance = model.gaussian.covariance
    try:
        if isinstance(covariance, FactoredCovariance):
            if covariance.epsilon <= 0:
                raise NotPositiveDefiniteError(_SINGULAR)
            core = covariance.gram + covariance.epsilon * np.eye(covariance.factor.shape[1])
            factor = scipy.linalg.cholesky(core, lower=True, overwrite_a=True)
            rows = covariance.factor[chosen].T.astype(np.float64)
            return Precision(scipy.linalg.solve_triangular(factor, rows, lower=True), minus=True)
        order = np.append(np.setdiff1d(np.arange(covariance.dimension), chosen), chosen)
        permuted = covariance.matrix[np.ix_(order, order)].astype(np.float64)
        factor = scipy.linalg.cholesky(permuted.T, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        raise NotPositiveDefiniteError(_SINGULAR) from None
    first = covariance.dimension - len(chosen)
    root, info = scipy.linalg.lapack.dtrtri(factor[first:, first:], lower=1)
    if info != 0:
        raise NotPositiveDefiniteError(_SINGULAR)
    return Precision(np.asarray(root), minus=False)


def partial_correlation(model: GaussianModel, items: npt.ArrayLike) -> Floats:
    """Correlations between ``items`` with all other items of the model held fixed.

    With the precision matrix P = Σ⁻¹, entry (i, j) is -P_ij / √(P_ii P_jj): the
    correlation of i and j given the N - 2 remaining items of the *model*, not only of
    ``items``. See :func:`precision` for the computation.

    Parameters
    ----------
    items : (n,) distinct item positions.

    Returns
    -------
    (n, n), with ones on the diagonal.

    Raises
    ------
    NumericalError
        If Σ is singular.
    """
    chosen = np.asarray(items, dtype=np.int64)
    if not len(chosen):
        return np.zeros((0, 0))
    result = -correlation(precision(model, chosen).quadratic(np.eye(len(chosen))))
    np.fill_diagonal(result, 1.0)
    return result


def submatrix(model: GaussianModel, items: npt.ArrayLike, kind: Kind) -> Floats:
    """Σ[items, items], (n, n), as covariance, correlation or partial correlation.

    items : (n,) positions.
    """
    require_rows(model)
    chosen = np.asarray(items, dtype=np.int64)
    if kind == "partial":
        return partial_correlation(model, chosen)
    block = model.gaussian.covariance.submatrix(chosen, chosen)
    return correlation(block) if kind == "correlation" else block


def common_raters(model: GaussianModel, item: int) -> Positions | None:
    """(N,) training users who rated both ``item`` and each item; at ``item``, its raters.

    None in a model without ratings.
    """
    ratings = model.ratings
    if ratings is None:
        return None
    rated = np.zeros(ratings.n_users, dtype=bool)
    rated[ratings.rows[ratings.indices == item]] = True
    return np.bincount(ratings.indices[rated[ratings.rows]], minlength=ratings.n_items).astype(
        np.int64
    )


@dataclass(frozen=True)
class Neighbour:
    """An item and how it varies with another.

    common : training users who rated both; None where the model has no ratings.
    """

    item: int
    item_id: object
    title: str
    genres: tuple[str, ...]
    correlation: float
    covariance: float
    common: int | None
    n_ratings: int


def neighbours(
    model: GaussianModel, item: int, top: int = 10, *, min_ratings: int = 0
) -> list[Neighbour]:
    """The ``top`` items most correlated with ``item``, itself left out.

    min_ratings : leave out items with fewer training ratings: a rare item's row of
        Σ says little beyond the prior.
    """
    require_rows(model)
    if not 0 <= item < len(model.items):
        raise DataError(f"Item positions must lie in 0..{len(model.items) - 1}.")
    covariance = model.gaussian.covariance
    row = covariance.rows(np.array([item]))[0].astype(np.float64)
    variance = covariance.diagonal()
    with np.errstate(divide="ignore", invalid="ignore"):
        values = row / np.sqrt(variance[item] * variance)
    eligible = np.isfinite(values) & (model.item_counts >= min_ratings)
    eligible[item] = False
    candidates = np.flatnonzero(eligible)
    ranked = candidates[np.argsort(-values[candidates], kind="stable")][: max(top, 0)]
    common = common_raters(model, item)
    ids = model.items.ids[ranked].tolist()
    return [
        Neighbour(
            item=int(other),
            item_id=ids[place],
            title=model.title(int(other)),
            genres=model.item_info.genres[other],
            correlation=float(np.clip(values[other], -1, 1)),
            covariance=float(row[other]),
            common=None if common is None else int(common[other]),
            n_ratings=int(model.item_counts[other]),
        )
        for place, other in enumerate(ranked)
    ]
