"""The directions in which users differ: leading eigenvectors of Σ as taste axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from gmc_core.base.errors import ConfigError, NumericalError
from gmc_core.model.analysis import require_rows
from gmc_core.model.gaussian_model import GaussianModel

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Leading eigenpairs of Σ.

    values : (k,) eigenvalues, largest first, in squared ratings.
    vectors : (N, k) of unit length; the entry largest in size is positive.
    trace : sum of all N eigenvalues, the total variance.
    """

    values: Floats
    vectors: Floats
    trace: float

    @property
    def shares(self) -> Floats:
        """(k,) share of each eigenvalue in the total variance."""
        return self.values / self.trace


def spectrum(model: GaussianModel, k: int = 20) -> Spectrum:
    """The ``k`` largest eigenvalues of Σ with their eigenvectors (Lanczos).

    Σ enters only through products, so a factored Σ is never formed. k ≥ N - 1 falls
    back on the full decomposition.

    Raises
    ------
    NumericalError
        If the iteration does not converge.
    """
    require_rows(model)
    covariance = model.gaussian.covariance
    n = covariance.dimension
    k = min(k, n)
    if k < 1:
        raise ConfigError("Ask for at least one eigenvalue.")
    if k >= n - 1 or n <= 200:
        everything = np.arange(n)
        values, vectors = scipy.linalg.eigh(covariance.submatrix(everything, everything))
        values, vectors = values[-k:], vectors[:, -k:]
    else:
        operator = LinearOperator((n, n), matvec=covariance.dot, dtype=covariance.dtype)
        start = np.random.default_rng(0).standard_normal(n).astype(covariance.dtype)
        try:
            values, vectors = eigsh(operator, k, which="LA", v0=start, tol=1e-6)
        except ArpackNoConvergence:
            raise NumericalError(
                "The leading eigenvalues did not converge; ask for fewer of them."
            ) from None
    order = np.argsort(-values, kind="stable")
    vectors = np.asarray(vectors[:, order], dtype=np.float64)
    largest = np.argmax(np.abs(vectors), axis=0)
    vectors *= np.where(vectors[largest, np.arange(k)] < 0, -1.0, 1.0)
    return Spectrum(
        values=np.asarray(values[order], dtype=np.float64),
        vectors=vectors,
        trace=float(covariance.diagonal().sum()),
    )


@dataclass(frozen=True)
class AxisEnd:
    """An item near one end of a taste axis.

    effect : √λ v_m, the change of the item's rating, in ratings, for a user one
        standard deviation up the axis.
    """

    item: int
    title: str
    genres: tuple[str, ...]
    effect: float
    n_ratings: int


@dataclass(frozen=True)
class TasteAxis:
    """A leading eigenvector of Σ: a direction in which users differ.

    number : from 1. share : of the total variance. low, high : the items at its
        ends, outermost first; an axis along which all ratings rise has no low end.
    """

    number: int
    eigenvalue: float
    share: float
    low: tuple[AxisEnd, ...]
    high: tuple[AxisEnd, ...]


def taste_axes(
    model: GaussianModel, leading: Spectrum, *, ends: int = 8, min_ratings: int = 0
) -> list[TasteAxis]:
    """The items at the ends of each eigenvector of ``leading``.

    ``low`` holds negative effects only and ``high`` positive ones.
    min_ratings : leave out items with fewer training ratings.
    """
    eligible = np.flatnonzero(model.item_counts >= min_ratings)

    def end(effects: Floats, positions: Positions) -> tuple[AxisEnd, ...]:
        return tuple(
            AxisEnd(
                item=int(m),
                title=model.title(int(m)),
                genres=model.item_info.genres[m],
                effect=float(effects[m]),
                n_ratings=int(model.item_counts[m]),
            )
            for m in positions
        )

    axes = []
    for number, (value, share) in enumerate(zip(leading.values, leading.shares, strict=True), 1):
        effects = np.sqrt(max(value, 0.0)) * leading.vectors[:, number - 1]
        ranked = eligible[np.argsort(effects[eligible], kind="stable")]
        low, high = ranked[:ends], ranked[::-1][:ends]
        axes.append(
            TasteAxis(
                number=number,
                eigenvalue=float(value),
                share=float(share),
                low=end(effects, low[effects[low] < 0]),
                high=end(effects, high[effects[high] > 0]),
            )
        )
    return axes


@dataclass(frozen=True, eq=False)
class VarianceProfile:
    """(N,) each: training ratings, μ and the diagonal of Σ."""

    counts: Positions
    mean: Floats
    variance: Floats


def variance_profile(model: GaussianModel) -> VarianceProfile:
    """Mean and variance of every item beside its number of ratings.

    The variance is of the fitted Σ: small where few ratings move the estimate away
    from the mean, with ε as its floor.
    """
    require_rows(model)
    return VarianceProfile(
        counts=model.item_counts,
        mean=model.gaussian.mean,
        variance=model.gaussian.covariance.diagonal(),
    )
