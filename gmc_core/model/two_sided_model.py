"""A fitted two-sided model: predict, fold in, recommend, explain.

For a user with loadings w (see :mod:`gmc_core.gaussian.two_sided`) everything is as in
:mod:`gmc_core.model.gaussian_model`, about the mean μ + B x + h:

    mean      μ_m + (B x)_m + h_m + Σ[m, o] a,   h_m = w · x_m
    variance  that of the items' side + wᵀ C_m w

A user of the training data has the loadings of the training; those of anybody else are found from
their ratings, see :mod:`gmc_core.gaussian.user_folding`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import DataError
from gmc_core.data.ratings import Ratings
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.signals import Signals
from gmc_core.gaussian.user_folding import UserFolding, with_loadings
from gmc_core.model.gaussian_model import Floats, GaussianModel, Positions
from gmc_core.model.posterior import Posterior


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoSidedPosterior(Posterior):
    """The posterior of one user's ratings, with what similar users add to it.

    prior_mean : (N,) μ + B x, without that.
    similar : (N,) h, what users who resemble this one like more or less than others.
    similar_variance : (N,) of h; h of different items are independent.
    """

    similar: Floats
    similar_variance: Floats = field(repr=False)

    def of_similar_users(self, item: int) -> float:
        """h of the item."""
        return float(self.similar[item])

    def covariance(self, items: Positions, others: Positions) -> Floats:
        """Posterior covariance between ``items`` and ``others``."""
        same = np.equal.outer(items, others)
        return super().covariance(items, others) + same * self.similar_variance[items][:, None]


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoSidedModel(GaussianModel):
    """A two-sided model with what is needed to speak of users and items.

    gaussian : of the items' side; its ``coefficients`` are B, then the items' factors, see
        :func:`gmc_core.gaussian.user_folding.joined`.
    folding : for people who were not in the training data.
    loadings : (M, R) float64 of those who were, less those of nobody; None in a model without
        its ratings.
    """

    folding: UserFolding
    loadings: Floats | None = None

    def signals_of(self, ratings: Ratings) -> Signals:
        """Users' ratings as this model's signals, with attributes and loadings."""
        signals = super().signals_of(ratings)
        if self.loadings is not None and self._trained_on(ratings):
            return with_loadings(signals, self.loadings)
        return with_loadings(signals, self._folded(signals))

    def posterior(
        self,
        observed: npt.ArrayLike,
        values: npt.ArrayLike,
        covariates: npt.ArrayLike | None = None,
        times: npt.ArrayLike | None = None,
    ) -> TwoSidedPosterior:
        """The belief about a user who rated the items at ``observed`` positions.

        covariates : (G,) as of :meth:`GaussianModel.posterior`, or (G + R,) with the user's
            loadings as :meth:`covariates_of` gives them. Without these they are found from the
            ratings.

        Raises
        ------
        ConfigError, DataError
            As :meth:`GaussianModel.posterior`.
        """
        items = np.asarray(observed, dtype=np.int64).reshape(-1)
        ratings = np.asarray(values, dtype=np.float64).reshape(-1)
        self._check_observed(items, ratings)
        known = self._completed(items, ratings, covariates)
        found = super().posterior(items, ratings, known, times)
        assert self.gaussian.coefficients is not None
        count, coefficients = len(known) - self.folding.rank, self.gaussian.coefficients
        own = known[count:]
        similar = coefficients[:, count:] @ own
        spread = self.folding.variances_of_all(own[None])[0]
        described = {one.name: getattr(found, one.name) for one in fields(Posterior)}
        described["prior_mean"] = self.gaussian.mean + coefficients[:, :count] @ known[:count]
        described["variance"] = found.variance + spread
        return TwoSidedPosterior(**described, similar=similar, similar_variance=spread)

    def covariates_of(self, ratings: Ratings, user: int) -> Floats | None:
        """What the attributes of the user at a position of ``ratings`` say and, for a user of the
        training data, the loadings after that."""
        known = super().covariates_of(ratings, user)
        if self.loadings is None or not self._trained_on(ratings):
            return known
        return np.concatenate([self._attributes(known), self.loadings[user]])

    def besides_ratings(self, covariates: Floats | None) -> Floats | None:
        """The attributes, without loadings; None where the model knows of no attributes."""
        count = len(self._attributes(None))
        return covariates[:count] if covariates is not None and count else None

    def pair_variances(self, signals: Signals, users: Positions, items: Positions) -> Floats:
        """(P,) what h adds to the variance at pairs of signal and item."""
        assert signals.covariates is not None
        return self.folding.variances(signals.covariates[:, -self.folding.rank :], users, items)

    def variances(self, signals: Signals) -> Floats:
        """(M, N) what h adds to the variance, for every item."""
        assert signals.covariates is not None
        return self.folding.variances_of_all(signals.covariates[:, -self.folding.rank :])

    def _trained_on(self, ratings: Ratings) -> bool:
        """Whether these are the training ratings, perhaps read again."""
        own = self.ratings
        if own is None or ratings is own:
            return own is not None
        return ratings.n_users == own.n_users and ratings.sha256 == own.sha256

    def _attributes(self, covariates: npt.ArrayLike | None) -> Floats:
        """(G,) the x of attributes; zeros where nothing is known of them."""
        assert self.gaussian.coefficients is not None
        count = self.gaussian.coefficients.shape[1] - self.folding.rank
        if covariates is None:
            return np.zeros(count)
        return np.asarray(covariates, dtype=np.float64)

    def _completed(
        self, items: Positions, ratings: Floats, covariates: npt.ArrayLike | None
    ) -> Floats:
        """(G + R,) attributes and loadings of one user."""
        assert self.gaussian.coefficients is not None
        known = self._attributes(covariates)
        width = self.gaussian.coefficients.shape[1]
        if known.shape == (width,):
            return known
        if known.shape != (width - self.folding.rank,):
            raise DataError(
                f"A user has {width - self.folding.rank} covariates in this model, one for each "
                f"group, or {width} with the loadings."
            )
        order = np.argsort(items)
        user = Signals(
            replace(self.layout, users=1),
            np.array([0, len(items)], np.int64),
            items[order].astype(np.int32),
            ratings[order],
            known[None],
        )
        return np.concatenate([known, self._folded(user)[0]])

    def _folded(self, signals: Signals) -> Floats:
        return self.folding.loadings(signals, self.gaussian, self.noise, ThreadPool(), self.ordinal)
