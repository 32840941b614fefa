"""The posterior of one user's ratings: every item's conditional mean and variance, and why.

Made by :meth:`gmc_core.model.gaussian_model.GaussianModel.posterior`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gmc_core.gaussian.noise import SessionNoise
from gmc_core.gaussian.parameters import Gaussian

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of one user's ratings, given the ratings of the items ``observed``.

    observed : (n,) item positions. values : (n,) ratings. weights : (n,) the a_j.
    prior_mean : (N,) the same before any rating, μ or μ + B x.
    mean : (N,) f̃, the centre of the belief about every item: its prediction, or for
        ordered ratings the latent response. What is shown comes from
        :meth:`GaussianModel.answers_of`.
    variance : (N,) of the item's noise-free value f; 0 at observed items if Σ_w = 0.
    noise_variance : (N,) of a new rating or latent response around f.
    times : (n,) when the ratings were given, in seconds, NaN where unknown; None where that
        changes nothing. session : the noise that reads them.
    """

    observed: Positions
    values: Floats
    weights: Floats
    prior_mean: Floats
    mean: Floats
    variance: Floats
    noise_variance: Floats
    times: Floats | None
    session: SessionNoise | None
    _gaussian: Gaussian = field(repr=False)
    _whitened: Floats = field(repr=False)

    @property
    def rating_sd(self) -> Floats:
        """(N,) sd of a new rating or latent response: root of posterior variance plus noise."""
        return np.sqrt(self.variance + self.noise_variance)

    def contributions(self, item: int) -> Floats:
        """(n,) share of each rated item in ``mean``; they sum to mean - prior mean, less what
        :meth:`of_similar_users` says."""
        row = self._gaussian.covariance.submatrix(np.array([item]), self.observed)[0]
        return row * self.weights

    def of_similar_users(self, item: int) -> float | None:
        """What users who resemble this one add to ``mean``; None where the model knows of none."""
        return None

    def session_shares(self, moment: float | None) -> Floats:
        """(n,) what each rating says of the error of one given at ``moment``, in seconds: what
        they share for having been given at about the same time, τ² exp(-|t - t_j| / w) a_j.

        It comes on top of ``mean`` for a rating that was given then; 0 where times are not read
        or ``moment`` is None.
        """
        if self.session is None or self.times is None or moment is None:
            return np.zeros(len(self.observed))
        return self.session.covariance(np.array([moment]), self.times)[0] * self.weights

    def covariance(self, items: Positions, others: Positions) -> Floats:
        """(n, m) posterior covariance between n ``items`` and m ``others``, by position."""
        prior = self._gaussian.covariance.submatrix(items, others)
        return prior - self._whitened[:, items].T @ self._whitened[:, others]
