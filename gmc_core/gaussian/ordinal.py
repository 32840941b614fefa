"""Ordered ratings: a rating is the interval that a continuous latent response falls into.

A user's latent response to an item is z = f + e with f from the Gaussian and e ~ N(0, σ²), and
the rating is the v-th value of the scale where c_{v-1} < z ≤ c_v (ordered probit). The
steps between two values need not be equal, and a latent response beyond the last cut is no
error. EM keeps the form that it has for numbers: the latent responses are filled in by their
expectation z̄ = E[z | f̃, rating], a truncated Gaussian, and take the place of y
(mean-field, as in Albert and Chib's augmentation).

f̃ at the observed places costs nothing: with the dual coefficients a = K⁻¹ (z̄ - μ) it is
z̄ - σ² a. Where there is session noise, f in these equations is f plus the error that a user's
ratings share, and K has the covariance of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtri

from gmc_core.base.errors import ConfigError, NotFiniteError, NumericalError
from gmc_core.gaussian.linalg import latent as compiled
from gmc_core.gaussian.linalg.solve import Systems

Floats = npt.NDArray[np.float64]

MAX_VALUES = 50

# Half of the distance between neighbouring values, less a rounding error: inside it a
# number is projected to the value it is near.
_NEAR = 0.499
# Ratings whose latent responses are computed at once.
_PART = 1 << 16
# Latent responses are found when filling them in once more changes none by more than this, in
# ratings. Where they were begun then makes a difference of 1e-6 in predictions, and none
# to NMAE; see docs/beyond.md.
TOLERANCE = 1e-7
ROUNDS = 100


@dataclass(frozen=True, eq=False)
class OrdinalScale:
    """The values of a rating scale that occur, and the cuts between them.

    values : (V,) rising. cuts : (V - 1,) rising; the first and the last are the
        midpoints between the values beside them, which fixes location and unit of
        the latent responses.
    """

    values: Floats
    cuts: Floats

    @classmethod
    def of(cls, ratings: npt.ArrayLike) -> OrdinalScale:
        """Cuts at which a Gaussian would give the values as often as they occur.

        Raises
        ------
        ConfigError
            If there are fewer than 3 or more than ``MAX_VALUES`` different ratings.
        """
        values, counts = np.unique(np.asarray(ratings, dtype=np.float64), return_counts=True)
        if not 3 <= len(values) <= MAX_VALUES:
            raise ConfigError(
                f"Ordered ratings need 3 to {MAX_VALUES} different values, and these have "
                f"{len(values)}. Take the model exact, which reads ratings as numbers."
            )
        scores = ndtri(np.cumsum(counts[:-1]) / counts.sum())
        first, last = (values[:2].mean(), values[-2:].mean())
        cuts = first + (scores - scores[0]) * (last - first) / (scores[-1] - scores[0])
        return cls(values, cuts)

    def bounds(self, ratings: npt.ArrayLike) -> tuple[Floats, Floats]:
        """The interval (low, high] of each rating's latent response; ± infinity at the ends.

        A rating that did not occur gets the interval of the nearest that did.
        """
        place, edges = self._places(ratings), self._edges
        return edges[place], edges[place + 1]

    @property
    def _edges(self) -> Floats:
        """(V + 1,) the ends of the values' intervals."""
        return np.concatenate([[-np.inf], self.cuts, [np.inf]])

    def _places(self, ratings: npt.ArrayLike) -> npt.NDArray[np.intp]:
        """The position of each rating, or of the nearest that occurred, among the values."""
        middles = (self.values[1:] + self.values[:-1]) / 2
        return np.searchsorted(middles, np.asarray(ratings, dtype=np.float64))

    def first_guess(self, ratings: npt.ArrayLike) -> Floats:
        """E[z | rating] under a wide Gaussian at the scale's middle, when f is not known yet."""
        edges = self._edges
        middle = np.full(len(self.values), (self.cuts[0] + self.cuts[-1]) / 2)
        sd = (self.cuts[-1] - self.cuts[0]) / 3
        return truncated_mean(middle, edges[:-1], edges[1:], sd)[self._places(ratings)]

    def point_prediction(self, latent: npt.ArrayLike, variance: float) -> Floats:
        """Ratings predicted from f̃: the Bayes decision under absolute error, refined.

        The value with the smallest expected absolute error is the median of the
        predictive distribution, the value in whose interval f̃ lies; the one with the
        smallest squared error is its mean. What is returned is the mean, moved as far as
        it takes for projection to the scale's values to give the median.

        variance : of a latent response around f̃. The median does not depend on it, the mean
            hardly does.
        """
        f = np.asarray(latent, dtype=np.float64)
        place = np.searchsorted(self.cuts, f)
        median, gaps = self.values[place], np.diff(self.values)
        mean = self.probabilities(f, variance) @ self.values
        below = np.concatenate([[np.inf], gaps])[place] * _NEAR
        above = np.concatenate([gaps, [np.inf]])[place] * _NEAR
        return np.clip(mean, median - below, median + above)

    def rating_of(self, latent: npt.ArrayLike) -> Floats:
        """The value in whose interval each latent response falls, ± infinity included."""
        return np.asarray(self.values[np.searchsorted(self.cuts, latent)])

    def probabilities(self, latent: Floats, variance: float | Floats) -> Floats:
        """(n, V) probability of each value for latent responses N(f̃, variance)."""
        sd = np.sqrt(np.broadcast_to(variance, latent.shape))[:, None]
        edges = np.exp(log_ndtr((self.cuts[None, :] - latent[:, None]) / sd))
        ends = np.zeros((len(latent), 1)), np.ones((len(latent), 1))
        return np.asarray(np.diff(np.hstack([ends[0], edges, ends[1]])))


class LatentResponses:
    """The latent responses behind given ratings, and how EM refines them.

    Parameters
    ----------
    scale : the cuts. ratings : (nnz,) the observed ratings.
    """

    def __init__(self, scale: OrdinalScale, ratings: npt.ArrayLike) -> None:
        self._low, self._high = scale.bounds(ratings)
        self.first_guess: Floats = scale.first_guess(ratings)

    def settle(
        self,
        batch: npt.NDArray[np.int64],
        places: npt.NDArray[np.int64],
        systems: Systems,
        inverses: npt.NDArray[np.floating],
        shift: Floats,
        noise: float,
        values: Floats,
        rounds: int = ROUNDS,
    ) -> None:
        """Find the latent responses of the signals ``batch``, and their dual coefficients.

        Parameters
        ----------
        batch, places, systems, inverses : see
            :func:`gmc_core.gaussian.linalg.posterior.invert_systems`; the systems were solved
            for ``values``.
        shift : (nnz,) what the signals' covariates add to the mean.
        noise : σ² > 0, the variance of a latent response around f.
        values : (nnz,) latent responses to begin with, overwritten. rounds : at most; 0 takes them
            as they are.

        Raises
        ------
        NumericalError
            If a latent response is not finite, as under a Gaussian that is not, or is not found
            in ``rounds``. One that by then moves by no more than 1e-4 ratings counts as found:
            it changes predictions by less than the digits that are shown.
        """
        signal, why = compiled.settle(
            batch, places, systems, inverses, (self._low, self._high), shift, noise, TOLERANCE,
            rounds, values,
        )  # fmt: skip
        if signal >= 0:
            self.refuse(why, rounds)

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """(nnz,) lowest and highest latent response of each rating."""
        return self._low, self._high

    @staticmethod
    def refuse(why: int, rounds: int) -> None:
        """Raise the error of latent responses that were not found. why : as compiled code says.

        Raises
        ------
        NumericalError
        """
        if why == compiled.NOT_FOUND:
            raise NumericalError(
                f"The latent responses behind some ratings were not found in {rounds} rounds under "
                "this model; fit it again with more noise, another ε, or in float64."
            )
        raise NotFiniteError(
            "The latent responses behind these ratings are not finite under this model; fit it "
            "again with more noise."
        )

    def squares(self, values: Floats, weights: npt.NDArray[np.floating], noise: float) -> float:
        """Mean of E[(z - f̃)² | f̃, rating] over the ratings, where the latent responses are
        z̄ = ``values`` and their dual coefficients K⁻¹ (z̄ - μ) = ``weights`` under noise σ²."""
        total = 0.0
        for of in self._parts():
            f = values[of] - noise * weights[of].astype(np.float64)
            sd = float(np.sqrt(noise))
            total += float(truncated_square(f, self._low[of], self._high[of], sd).sum())
        return total / len(values)

    def _parts(self) -> Iterator[slice]:
        """The ratings in parts: a truncated mean needs a dozen arrays of their number."""
        for start in range(0, len(self._low), _PART):
            yield slice(start, start + _PART)


def _edges(
    mean: Floats, low: Floats, high: Floats, sd: float
) -> tuple[Floats, Floats, npt.NDArray[np.bool_], Floats, Floats]:
    """Standardised ends a < b, whether they were mirrored, and φ(a)/P, φ(b)/P with
    P = Φ(b) - Φ(a), far out in the tails as well."""
    a, b = (low - mean) / sd, (high - mean) / sd
    # In the upper tail, mirrored: there differences of probabilities keep their digits.
    mirror = a > -b
    a, b = np.where(mirror, -b, a), np.where(mirror, -a, b)
    log_a, log_b = log_ndtr(a), log_ndtr(b)
    log_mass = log_b + np.log1p(-np.exp(np.minimum(log_a - log_b, -1e-300)))
    norm = 0.5 * np.log(2 * np.pi)
    at_a, at_b = (np.asarray(np.exp(-0.5 * x**2 - norm - log_mass)) for x in (a, b))
    return a, b, mirror, at_a, at_b


def truncated_mean(mean: Floats, low: Floats, high: Floats, sd: float) -> Floats:
    """E[z | low < z < high] for z ~ N(mean, sd²), far out in the tails as well."""
    _, _, mirror, at_a, at_b = _edges(mean, low, high, sd)
    shift = at_a - at_b
    result = mean + sd * np.where(mirror, -shift, shift)
    return np.clip(result, low, high)


def truncated_square(mean: Floats, low: Floats, high: Floats, sd: float) -> Floats:
    """E[(z - mean)² | low < z < high] for z ~ N(mean, sd²), far out in the tails as well."""
    a, b, _, at_a, at_b = _edges(mean, low, high, sd)
    from_a, from_b = (
        np.where(np.isfinite(x), x, 0.0) * density for x, density in ((a, at_a), (b, at_b))
    )
    # z lies between its bounds, which rounding may forget far out.
    near = np.clip(mean, low, high) - mean
    far = np.maximum(mean - low, high - mean)
    return np.clip(sd**2 * (1 + from_a - from_b), near**2, far**2)
