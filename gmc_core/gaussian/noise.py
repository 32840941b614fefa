"""The observation noise Σ_w of the paper's equation (1), assumed known.

Besides a part of the coordinates (one variance, one of each, or a matrix) it may have one of
the times at which the observations were made: people rate a page of films in one mood, so
ratings that were given within a minute share an error, see :class:`SessionNoise`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError

NONE, SCALAR, PER_COORDINATE, FULL = range(4)


@dataclass(frozen=True)
class SessionNoise:
    """Noise that observations of one signal share the more the closer in time they were made.

    The covariance of the observations at t and t' is τ² exp(-|t - t'| / w). It is that of an
    Ornstein-Uhlenbeck process, so it is a covariance whatever the times; an observation whose
    time is unknown shares its τ² with none.

    variance : τ² > 0. window : w > 0, in seconds.
    """

    variance: float
    window: float

    def __post_init__(self) -> None:
        if not (self.variance > 0 and np.isfinite(self.variance)):
            raise ConfigError(f"The session noise must be finite and above 0, not {self.variance}.")
        if not (self.window > 0 and np.isfinite(self.window)):
            raise ConfigError(f"The session window must be above 0 seconds, not {self.window}.")

    @classmethod
    def of(cls, variance: float, window: float) -> SessionNoise | None:
        """None where the variance is 0, as in the settings of a fit without it."""
        return cls(variance, window) if variance else None

    def covariance(
        self, times: npt.NDArray[np.float64], others: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """(n, m) between distinct observations made at these times; 0 where one is NaN, unknown."""
        apart = np.abs(times[:, None] - others[None, :])
        return np.nan_to_num(self.variance * np.exp(-apart / self.window), nan=0.0)


@dataclass(frozen=True, eq=False)
class Noise:
    """Σ_w in the form the compiled code takes.

    kind : ``NONE`` (the paper's choice), ``SCALAR`` (one variance),
        ``PER_COORDINATE`` (one variance per signal coordinate) or ``FULL``.
    array : (1, 1), (1, 1), (1, N) or (N, N) float64.
    dimension : N.
    session : what observations share that were made at about the same time; None for nothing.
        It comes on top of the others.
    """

    kind: int
    array: npt.NDArray[np.float64]
    dimension: int
    session: SessionNoise | None = None

    @classmethod
    def of(
        cls,
        value: float | npt.ArrayLike,
        dimension: int,
        session: SessionNoise | None = None,
    ) -> Noise:
        """Build from a variance, N variances or an N × N covariance matrix.

        Parameters
        ----------
        value : scalar ≥ 0, (N,) ≥ 0 or (N, N) symmetric positive semi-definite.
        dimension : N, the signals' dimension.
        session : see :class:`Noise`.

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
            return cls(kind, array.reshape(1, 1), dimension, session)
        if array.ndim == 1:
            if array.shape != (dimension,):
                raise ConfigError(
                    f"There are {array.size:,} noise variances for signals of {dimension:,} "
                    "coordinates; give one per coordinate."
                )
            if np.any(array < 0):
                raise ConfigError(f"Noise variances must not be negative (found {array.min():g}).")
            return cls(PER_COORDINATE, array.reshape(1, -1), dimension, session)
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
        return cls(FULL, np.ascontiguousarray((array + array.T) / 2), dimension, session)

    def total_variances(self, coordinates: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
        """Variance of the noise of one observation of each of ``coordinates``, τ² included."""
        return self.variances(coordinates) + (self.session.variance if self.session else 0.0)

    def variances(self, coordinates: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
        """The same without what observations share by their times: the diagonal of the rest."""
        if self.kind in (NONE, SCALAR):
            return np.full(len(coordinates), self.array[0, 0])
        if self.kind == PER_COORDINATE:
            return self.array[0, coordinates]
        return self.array[coordinates, coordinates]

    def submatrix(
        self,
        coordinates: npt.NDArray[np.integer],
        times: npt.NDArray[np.float64] | None = None,
    ) -> npt.NDArray[np.float64]:
        """Σ_w[o, o] as a dense matrix.

        times : (n,) of the observations in seconds, NaN where unknown; None if all are.
        """
        if self.kind == FULL:
            matrix = self.array[np.ix_(coordinates, coordinates)]
        else:
            matrix = np.diag(self.variances(coordinates))
        if self.session is not None:
            if times is not None:
                shared = self.session.covariance(times, times)
                np.fill_diagonal(shared, 0.0)
                matrix = matrix + shared
            matrix = matrix + self.session.variance * np.eye(len(coordinates))
        return matrix
