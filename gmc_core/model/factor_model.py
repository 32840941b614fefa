"""A fitted model of low rank: posteriors of one user at the price of R equations.

With Σ = W Wᵀ + γ Id, d = γ + σ², C = (Id + W[o]ᵀ W[o] / d)⁻¹ and m = C W[o]ᵀ (y - μ[o]) / d any two
items have

    mean        μ + W m,  at a rated one γ a more,  a = (y - μ[o] - W[o] m) / d
    covariance  s_j s_k w_j C w_k,  of an item with itself γ s_j more

with s = 1, at a rated item 1 - γ / d. Nothing of size N × N_i is formed, as the dense form does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gmc_core.gaussian.covariance import FactoredCovariance
from gmc_core.model.gaussian_model import Floats, GaussianModel, Positions
from gmc_core.model.posterior import Posterior


@dataclass(frozen=True, eq=False, kw_only=True)
class FactorPosterior(Posterior):
    """The posterior of one user's ratings under Σ = W Wᵀ + γ Id.

    own : (N,) what each item has of variance besides that of the factors, γ s.
    _whitened : (R, N) a root of the rest.
    """

    own: Floats = field(repr=False)

    def covariance(self, items: Positions, others: Positions) -> Floats:
        """Posterior covariance between ``items`` and ``others``."""
        shared = self._whitened[:, items].T @ self._whitened[:, others]
        return shared + np.equal.outer(items, others) * self.own[items][:, None]


class FactorModel(GaussianModel):
    """A fitted model whose covariance is of low rank, of noise that is one variance."""

    def _posterior(
        self,
        items: Positions,
        ratings: Floats,
        covariates: npt.ArrayLike | None,
        moments: Floats | None,
    ) -> Posterior:
        covariance = self.gaussian.covariance
        assert isinstance(covariance, FactoredCovariance)
        prior_mean = self._prior_mean(covariates)
        residual = self._described(ratings, items, covariates, moments) - prior_mean[items]
        loadings, own = covariance.factor.astype(np.float64), covariance.epsilon
        every = np.arange(len(loadings))
        noise = self.noise.total_variances(every)
        spread = float(noise[0])
        total = own + spread
        rated = loadings[items]
        root = covariance.posterior_root(items, spread)
        factors = scipy.linalg.cho_solve((root, True), rated.T @ residual / total)
        weights = (residual - rated @ factors) / total
        mean = prior_mean + loadings @ factors
        mean[items] += own * weights
        whitened, apart = covariance.posterior_parts(items, spread, every, root)
        return FactorPosterior(
            observed=items,
            values=ratings,
            weights=weights,
            prior_mean=prior_mean,
            mean=mean,
            variance=np.einsum("rn,rn->n", whitened, whitened) + apart,
            noise_variance=noise,
            times=None,
            session=None,
            own=apart,
            _gaussian=self.gaussian,
            _whitened=whitened,
        )
