"""The observation noise Σ_w of the paper's equation (1), assumed known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError

NONE, SCALAR, PER_COORDINATE, FULL = range(4)


@dataclass(frozen=True, eq=False)
class Noise:
    """Σ_w in the form the compiled code takes.

    kind : ``NONE`` (the paper's choice), ``SCALAR`` (one variance),
        ``PER_COORDINATE`` (one variance per signal coordinate) or ``FULL``.
    array : (1, 1), (1, 1), (1, N) or (N, N) float64.
    dimension : N.
    """

    kind: int
    array: npt.NDArray[np.float64]
    dimension: int

    @classmethod
    def of(cls, value: float | npt.ArrayLike, dimension: int) -> Noise:
        """Build from a variance, N variances or an N × N covariance matrix.

        Parameters
        ----------
        value : scalar ≥ 0, (N,) ≥ 0 or (N, N) symmetric positive semi-definite.
        dimension : N, the signals' dimension.

        Raises
        ------
        ConfigError
            If the shape does not fit or the matrix is not a covariance.
        """
        array = np.asarray(value, dtype=np.float64)
        if not np.all(np.isfinite(array)):
            raise ConfigError("The noise must be finite; give a variance of 0 for none.")
        if array.ndim == 0:
            if array < 0:
                raise ConfigError(f"The noise variance must not be negative, but is {array:g}.")
            kind = SCALAR if array > 0 else NONE
            return cls(kind, array.reshape(1, 1), dimension)
        if array.ndim == 1:
            if array.shape != (dimension,):
                raise ConfigError(
                    f"There are {array.size:,} noise variances for signals of {dimension:,} "
                    "coordinates; give one per coordinate."
                )
            if np.any(array < 0):
                raise ConfigError(f"Noise variances must not be negative (found {array.min():g}).")
            return cls(PER_COORDINATE, array.reshape(1, -1), dimension)
        if array.shape != (dimension, dimension):
            raise ConfigError(
                f"The noise matrix has shape {array.shape}; signals of {dimension:,} coordinates "
                f"need ({dimension}, {dimension})."
            )
        scale = float(np.abs(array).max())
        if np.abs(array - array.T).max() > 1e-8 * max(scale, 1e-300):
            raise ConfigError("The noise matrix is not symmetric, so it is not a covariance.")
        lowest = float(np.linalg.eigvalsh(array)[0])
        if lowest < -1e-8 * scale:
            raise ConfigError(
                f"The noise matrix has a negative eigenvalue ({lowest:g}), so it is not a "
                "covariance."
            )
        return cls(FULL, np.ascontiguousarray((array + array.T) / 2), dimension)

    def variances(self, coordinates: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
        """Diagonal of Σ_w at ``coordinates``."""
        if self.kind in (NONE, SCALAR):
            return np.full(len(coordinates), self.array[0, 0])
        if self.kind == PER_COORDINATE:
            return self.array[0, coordinates]
        return self.array[coordinates, coordinates]

    def submatrix(self, coordinates: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
        """Σ_w[o, o] as a dense matrix."""
        if self.kind == FULL:
            return self.array[np.ix_(coordinates, coordinates)]
        return np.diag(self.variances(coordinates))
