"""The covariance Σ of the signals, dense or as a factor, with the same methods.

``dimension`` is N and ``dtype`` the working precision. ``diagonal`` and
``submatrix`` answer in float64, ``rows`` and ``dot`` in the working precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gmc_core.base.errors import NotPositiveDefiniteError
from gmc_core.gaussian.linalg.lapack import factor_whole, invert_factor_whole
from gmc_core.gaussian.linalg.threads import ThreadPool

FloatArray = npt.NDArray[np.floating]


def unit_of(*arrays: npt.ArrayLike) -> float:
    """The power of two at the largest entry; divided by it, squares are in range.

    Dividing by a power of two changes no digit. 1 where all entries are 0.
    """
    largest = max(float(np.abs(array).max(initial=0.0)) for array in map(np.asarray, arrays))
    return math.ldexp(0.5, math.frexp(largest)[1]) if 0 < largest < math.inf else 1.0


def _log_det_and_trace_inverse(matrix: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Of a symmetric matrix that may be overwritten. tr Σ⁻¹ = ‖L⁻¹‖² (Frobenius)."""
    if factor_whole(matrix, "lower") != 0:
        raise NotPositiveDefiniteError(
            "The covariance is not positive definite, so its likelihood is undefined; raise ε."
        )
    for i in range(len(matrix)):
        matrix[i, i + 1 :] = 0
    log_det = 2 * float(np.log(np.diagonal(matrix)).sum())
    invert_factor_whole(matrix, "lower")
    return log_det, float(np.einsum("ij,ij->", matrix, matrix))


@dataclass(frozen=True, eq=False)
class DenseCovariance:
    """Σ as a full symmetric matrix (N, N)."""

    matrix: FloatArray

    @property
    def dimension(self) -> int:
        """N."""
        return len(self.matrix)

    @property
    def dtype(self) -> np.dtype:
        """The working precision."""
        return self.matrix.dtype

    def diagonal(self) -> npt.NDArray[np.float64]:
        """(N,) variances."""
        return np.diagonal(self.matrix).astype(np.float64)

    def submatrix(
        self, rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer]
    ) -> npt.NDArray[np.float64]:
        """Σ[rows, columns]."""
        return self.matrix[np.ix_(rows, columns)].astype(np.float64)

    def rows(self, coordinates: npt.NDArray[np.integer]) -> FloatArray:
        """Σ[coordinates, :]."""
        return self.matrix[coordinates]

    def dot(self, vectors: FloatArray) -> FloatArray:
        """Σ v."""
        return self.matrix @ vectors

    def log_det_and_trace_inverse(self, team: ThreadPool) -> tuple[float, float]:
        """log|Σ| and tr Σ⁻¹; about 2 N³/3 flops and one N × N copy."""
        with team.whole():
            return _log_det_and_trace_inverse(self.matrix.astype(np.float64, order="C"))


@dataclass(frozen=True, eq=False)
class FactoredCovariance:
    """Σ = factor factorᵀ + epsilon Id, never formed; for fewer signals than coordinates.

    factor : (N, R).
    initial : whether this is the state before the first iteration, when nothing has been
        learned. Σ = Id stands in for it: with it the estimates f̃ = μ + Σ[:, o] a are the known
        ratings, and the initial value elsewhere. No change of Σ is reported from there.
    low_rank : whether R was chosen, and is small: then predictions take the way through R
        numbers a signal. In the M-step's factor form R is the number of signals.
    """

    factor: FloatArray
    epsilon: float
    initial: bool = False
    low_rank: bool = False

    @classmethod
    def identity(cls, dimension: int, dtype: npt.DTypeLike) -> FactoredCovariance:
        """Σ = Id, the state before the first iteration."""
        return cls(np.zeros((dimension, 1), dtype=dtype), 1.0, initial=True)

    @property
    def dimension(self) -> int:
        """N."""
        return len(self.factor)

    @property
    def dtype(self) -> np.dtype:
        """The working precision."""
        return self.factor.dtype

    def diagonal(self) -> npt.NDArray[np.float64]:
        """(N,) variances."""
        factor = self.factor
        return np.einsum("ij,ij->i", factor, factor, dtype=np.float64) + self.epsilon

    def submatrix(
        self, rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer]
    ) -> npt.NDArray[np.float64]:
        """Σ[rows, columns]."""
        product = (self.factor[rows] @ self.factor[columns].T).astype(np.float64)
        return product + self.epsilon * (np.asarray(rows)[:, None] == np.asarray(columns))

    def rows(self, coordinates: npt.NDArray[np.integer]) -> FloatArray:
        """Σ[coordinates, :]."""
        result = self.factor[coordinates] @ self.factor.T
        result[np.arange(len(coordinates)), coordinates] += self.dtype.type(self.epsilon)
        return result

    def dot(self, vectors: FloatArray) -> FloatArray:
        """Σ v."""
        return self.factor @ (self.factor.T @ vectors) + self.dtype.type(self.epsilon) * vectors

    @cached_property
    def gram(self) -> npt.NDArray[np.float64]:
        """factorᵀ factor (R, R): the same non-zero spectrum as factor factorᵀ."""
        return (self.factor.T @ self.factor).astype(np.float64)

    def squared_norm(self, unit: float) -> float:
        """‖Σ / unit‖² (Frobenius); see :func:`unit_of`."""
        gram, eps = self.gram / unit, self.epsilon / unit
        return float((gram**2).sum() + 2 * eps * np.trace(gram) + eps * eps * self.dimension)

    def posterior_root(
        self, observed: npt.NDArray[np.integer], noise: float
    ) -> npt.NDArray[np.float64]:
        """(R, R) lower Cholesky factor of Id + F[o]ᵀ F[o] / (epsilon + noise), F the factor.

        Given observations at o with noise of that variance, it is the inverse of a root of the
        covariance of what the factors stand for.
        """
        rated = self.factor[observed].astype(np.float64)
        inner = rated.T @ rated / (self.epsilon + noise) + np.eye(rated.shape[1])
        return np.asarray(scipy.linalg.cholesky(inner, lower=True))

    def posterior_parts(
        self,
        observed: npt.NDArray[np.integer],
        noise: float,
        coordinates: npt.NDArray[np.integer],
        root: npt.NDArray[np.float64] | None = None,
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Z (R, C) and v (C,) of the covariance Zᵀ Z + diag(v) of ``coordinates``, given
        observations at ``observed``; R equations.

        root : of :meth:`posterior_root`, where that is known.
        """
        shares = np.where(np.isin(coordinates, observed), noise / (self.epsilon + noise), 1.0)
        right = self.factor[coordinates].astype(np.float64).T * shares
        root = self.posterior_root(observed, noise) if root is None else root
        whitened = scipy.linalg.solve_triangular(root, right, lower=True)
        return np.asarray(whitened), self.epsilon * shares

    def posterior_variances(
        self,
        observed: npt.NDArray[np.integer],
        noise: float,
        coordinates: npt.NDArray[np.integer],
    ) -> npt.NDArray[np.float64]:
        """(C,) variances of ``coordinates``, as of :meth:`posterior_parts`."""
        whitened, own = self.posterior_parts(observed, noise, coordinates)
        return np.asarray(np.einsum("rc,rc->c", whitened, whitened) + own)

    def log_det_and_trace_inverse(self, team: ThreadPool) -> tuple[float, float]:
        """log|Σ| and tr Σ⁻¹ from the R × R matrix ε Id + factorᵀ factor.

        Both matrices share the eigenvalues that differ from ε; Σ has N - R more.
        """
        rank, eps = self.factor.shape[1], self.epsilon
        if eps <= 0:
            raise NotPositiveDefiniteError("With ε = 0 the covariance is singular; raise ε.")
        with team.whole():
            log_det, trace = _log_det_and_trace_inverse(self.gram + eps * np.eye(rank))
        more = self.dimension - rank
        return log_det + more * float(np.log(eps)), trace + more / eps


Covariance = DenseCovariance | FactoredCovariance


def low_rank_of(covariance: Covariance) -> FactoredCovariance | None:
    """The covariance, if it is a factor of chosen low rank."""
    if isinstance(covariance, FactoredCovariance) and covariance.low_rank:
        return covariance
    return None
