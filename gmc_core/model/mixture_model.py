"""A fitted mixture: predict, fold in, recommend, explain.

For a user with ratings y of the items o the belief is a mixture of the components'
conditional Gaussians, with the responsibilities r_k of this user as weights. Any item
has

    mean      m = Σ_k r_k m_k
    variance  Σ_k r_k (v_k + (m_k - m)²)

with the mean m_k and variance v_k under component k, see :mod:`gmc_core.model.gaussian_model`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.mixture import Mixture, mixture_e_step, predict_mixture
from gmc_core.gaussian.signals import Signals
from gmc_core.model.gaussian_model import Floats, GaussianModel, Positions, Posterior


@dataclass(frozen=True, eq=False, kw_only=True)
class MixturePosterior(Posterior):
    """The posterior of one user's ratings under a mixture, given those of the items ``observed``.

    The fields of :class:`gmc_core.model.gaussian_model.Posterior` are those of the whole mixture;
    weights : (n,) the components' mean weights.
    responsibilities : (K,) probability that the user is of each component.
    parts : the belief under each component.
    """

    responsibilities: Floats
    parts: tuple[Posterior, ...]
    _prior_means: Floats = field(repr=False)  # (K, N)
    _proportions: Floats = field(repr=False)

    def contributions(self, item: int) -> Floats:
        """(n,) share of each rated item in the prediction; they sum to mean - μ.

        Σ_k r_k Σ_k[m, j] a_kj, and what the user's responsibilities move the mean by,
        Σ_k (r_k - π_k) μ_k: they rest on all ratings, so each has an equal part of it.
        """
        shares = np.zeros(len(self.observed))
        for share, part in zip(self.responsibilities, self.parts, strict=True):
            shares += share * part.contributions(item)
        moved = (self.responsibilities - self._proportions) @ self._prior_means[:, item]
        return shares + moved / max(len(shares), 1)

    def covariance(self, items: Positions, others: Positions) -> Floats:
        """(n, m) posterior covariance between n ``items`` and m ``others``, by position."""
        result = np.zeros((len(items), len(others)))
        for share, part in zip(self.responsibilities, self.parts, strict=True):
            left, right = (part.mean[at] - self.mean[at] for at in (items, others))
            result += share * (part.covariance(items, others) + np.outer(left, right))
        return result


@dataclass(frozen=True, eq=False, kw_only=True)
class MixtureModel(GaussianModel):
    """A mixture of Gaussians with what is needed to speak of users and items.

    gaussian : the mixture's own mean and covariance, for whoever looks at Σ as a
        whole; predictions use the components.

    Which item tells most (:meth:`GaussianModel.most_informative`) is exact for one
    Gaussian and here judged by the posterior covariance alone.
    """

    mixture: Mixture

    def posterior(
        self,
        observed: npt.ArrayLike,
        values: npt.ArrayLike,
        covariates: npt.ArrayLike | None = None,
        times: npt.ArrayLike | None = None,
    ) -> MixturePosterior:
        """The belief about a user who rated the items at ``observed`` positions.

        Parameters and errors are those of :meth:`GaussianModel.posterior`; a mixture has
        no covariates and reads no times.
        """
        parts = tuple(model.posterior(observed, values, covariates) for model in self._components)
        shares = self._responsibilities(parts[0])
        means = np.stack([part.mean for part in parts])
        mean = shares @ means
        return MixturePosterior(
            observed=parts[0].observed,
            values=parts[0].values,
            weights=shares @ np.stack([part.weights for part in parts]),
            prior_mean=self.gaussian.mean,
            mean=mean,
            variance=shares @ (np.stack([part.variance for part in parts]) + (means - mean) ** 2),
            noise_variance=parts[0].noise_variance,
            times=None,
            session=None,
            responsibilities=shares,
            parts=parts,
            _gaussian=self.gaussian,
            _whitened=np.zeros((0, len(mean))),
            _prior_means=np.stack([part.mean for part in self.mixture.components]),
            _proportions=self.mixture.proportions,
        )

    @property
    def _components(self) -> list[GaussianModel]:
        """The model as if there were only this component, for each."""
        names = [name for name in GaussianModel.__dataclass_fields__ if name != "gaussian"]
        described = {name: getattr(self, name) for name in names}
        return [
            GaussianModel(gaussian=component, **described) for component in self.mixture.components
        ]

    def _responsibilities(self, user: Posterior) -> Floats:
        """(K,) of the user with these ratings."""
        size = len(user.observed)
        signals = Signals(
            replace(self.layout, users=1),
            np.array([0, size], np.int64),
            user.observed.astype(np.int32),
            user.values,
        )
        found = mixture_e_step(signals, self.mixture, self.noise, ThreadPool())
        return np.asarray(found.responsibilities[0])

    def _predict_known(self, users: Positions, items: Positions) -> Floats:
        signals, coordinates = self.layout.locate(users, items)
        needed, local = np.unique(signals, return_inverse=True)
        own, team = self._signals.take(needed), ThreadPool()
        found = mixture_e_step(own, self.mixture, self.noise, team)
        latent = predict_mixture(
            own, found.weights, found.responsibilities, self.mixture, local, coordinates, team
        )
        return self.answers(latent).prediction
