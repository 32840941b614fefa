"""A map of the titles: two dimensions in which titles that are liked alike lie side by side.

Classical scaling (Torgerson 1952) of the correlations in Σ. With C the (n, n) correlations between
the chosen titles, d²_ij = 2 (1 - C_ij) is the squared distance of two standardised ratings. Double
centring gives the inner products

    B = -½ J D² J = J C J,    J = Id - 1 1ᵀ / n,

and the coordinates are x_k = √λ_k v_k for the two largest eigenvalues of B. Centring takes away
what all titles share, that some people rate everything higher; without it that would be the first
dimension, and all titles would lie at one end of it.

What the map holds is said of the variance of the standardised ratings, tr C = n:

    n = 1ᵀ C 1 / n  +  λ_1 + λ_2  +  λ_3 + … ,

the part in common, the two dimensions of the map, and what it does not show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from gmc_core.base.errors import DataError, NumericalError
from gmc_core.model.analysis import correlation, require_rows
from gmc_core.model.gaussian_model import GaussianModel

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]

LEAST = 3  # titles: of fewer, two dimensions say nothing
_DENSE = 300  # up to so many titles the whole decomposition takes no longer


@dataclass(frozen=True, eq=False)
class TitleMap:
    """Where titles lie.

    items : (n,) item positions. coordinates : (n, 2), in standard deviations of a rating.
    common : share of the variance of the standardised ratings that all titles have in common.
    shares : (2,) share that each dimension has in it; with ``common`` at most 1.
    """

    items: Positions
    coordinates: Floats
    common: float
    shares: Floats

    @property
    def held(self) -> float:
        """Share of what is left beside the part in common that the map shows; 0 if none is."""
        left = 1 - self.common
        return float(min(self.shares.sum() / left, 1.0)) if left > 1e-9 else 0.0


def title_map(model: GaussianModel, items: npt.ArrayLike) -> TitleMap:
    """The map of some titles, by Lanczos iterations of products with Σ.

    Σ is never copied, and a factored Σ never formed: a product costs N² or 2 N R flops.

    Parameters
    ----------
    items : (n,) distinct item positions, in any order. Those without variance are left out, for
        their correlations are undefined.

    Returns
    -------
    The map, with the items in the order given. Of each dimension, the coordinate that is largest
    in size is positive.

    Raises
    ------
    ConfigError
        If the signals are not rows.
    DataError
        If fewer than three titles are left.
    NumericalError
        If the iteration does not converge.
    """
    require_rows(model)
    covariance = model.gaussian.covariance
    variance = covariance.diagonal()
    chosen = np.asarray(items, dtype=np.int64).reshape(-1)
    chosen = chosen[variance[chosen] > 0]
    n = len(chosen)
    if n < LEAST:
        raise DataError(
            f"A map needs {LEAST} titles or more, and there {'is' if n == 1 else 'are'} {n}. Lower "
            "the least number of ratings, or choose more titles."
        )
    scale = 1 / np.sqrt(variance[chosen])

    def times(vector: Floats) -> Floats:
        """C v."""
        whole = np.zeros(covariance.dimension)
        whole[chosen] = scale * vector.reshape(-1)
        image = covariance.dot(whole.astype(covariance.dtype))
        return scale * image[chosen]

    def centred(vector: Floats) -> Floats:
        """J C J v."""
        vector = vector.reshape(-1)
        image = times(vector - vector.mean())
        return image - image.mean()

    if n <= _DENSE:
        inner = correlation(covariance.submatrix(chosen, chosen))
        total = float(inner.sum())
        inner -= inner.mean(axis=0)
        inner -= inner.mean(axis=1, keepdims=True)
        values, vectors = scipy.linalg.eigh((inner + inner.T) / 2, subset_by_index=[n - 2, n - 1])
    else:
        total = float(times(np.ones(n)).sum())
        start = np.random.default_rng(0).standard_normal(n)
        operator = LinearOperator((n, n), matvec=centred, dtype=np.float64)
        try:
            values, vectors = eigsh(operator, 2, which="LA", v0=start, tol=1e-6)
        except ArpackNoConvergence:
            raise NumericalError(
                "The two dimensions of the map could not be told from the others; choose other "
                "titles, or fit again."
            ) from None
    values = np.maximum(values[::-1], 0.0)
    vectors = vectors[:, ::-1]
    largest = np.argmax(np.abs(vectors), axis=0)
    signs = np.where(vectors[largest, np.arange(2)] < 0, -1.0, 1.0)
    return TitleMap(
        items=chosen,
        coordinates=vectors * signs * np.sqrt(values),
        common=min(max(total / n**2, 0.0), 1.0),
        shares=values / n,
    )
