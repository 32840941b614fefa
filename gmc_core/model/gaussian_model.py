"""A fitted model: predict, fold in, recommend, explain.

Everything here is one conditional Gaussian. For a user with observed items o,
ratings y and K = Σ[o, o] + Σ_w, any item m has

    mean      μ_m + Σ[m, o] a,   a = K⁻¹ (y - μ[o])     (the paper's equation (4))
    variance  Σ[m, m] - Σ[m, o] K⁻¹ Σ[o, m]

The mean is a sum over the rated items, Σ[m, j] a_j each: an exact explanation.
A new user is one such solve, without retraining.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.data.rating_times import seconds_of
from gmc_core.data.ratings import ItemInfo, Ratings, RatingScale, Vocabulary
from gmc_core.data.user_info import row_of
from gmc_core.gaussian.attributes import UserGroups
from gmc_core.gaussian.estep import predict_pairs
from gmc_core.gaussian.folding import fold_in, fold_in_latent, observed_factor
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.ordinal import OrdinalScale
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.settings import FitSettings
from gmc_core.gaussian.signals import Layout, Signals
from gmc_core.model.answers import Answers, answers
from gmc_core.model.calibration import Calibration, factor_of
from gmc_core.model.posterior import Posterior as Posterior
from gmc_core.model.recommendations import Contribution as Contribution
from gmc_core.model.recommendations import Explanation, Recommendations, model_html
from gmc_core.model.recommendations import Recommendation as Recommendation

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of pairs: NaN where the item is unknown, the item's mean where only
    the user is; the two masks say which."""

    values: Floats
    known_user: npt.NDArray[np.bool_]
    known_item: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class GaussianModel:
    """(μ, Σ) with what is needed to speak of users and items.

    ratings : the training ratings; None in a model that only folds in.
    iteration : of MAP-EM, at which (μ, Σ) was taken.
    groups : of users by their attributes, on which the mean depends by
        ``gaussian.coefficients``; None where it does not.
    ordinal : how ratings are intervals of latent responses, which are then what the Gaussian
        describes; None where it describes the ratings themselves.
    calibration : of intervals, see :func:`gmc_core.fitting.intervals.calibrated`; None without one.
    """

    gaussian: Gaussian
    noise: Noise
    layout: Layout
    items: Vocabulary
    item_info: ItemInfo
    scale: RatingScale
    ratings: Ratings | None
    settings: FitSettings
    iteration: int
    data_name: str
    data_sha256: str
    licence: str
    citation: str
    ordinal: OrdinalScale | None = None
    groups: UserGroups | None = None
    calibration: Calibration | None = None

    def _repr_html_(self) -> str:
        ratings = "kept without its ratings"
        if self.ratings is not None:
            ratings = f"{len(self.ratings):,} training ratings of {self.ratings.n_users:,} users"
        about = (
            f"Gaussian over {self.gaussian.dimension:,} coordinates ({self.layout.kind} as "
            f"signals), iteration {self.iteration}; {self.data_name}, {ratings}, scale {self.scale}"
        )
        return model_html(about, self.settings.as_dict(), self.calibration)

    @property
    def folds_in(self) -> bool:
        """Whether new users can be added: a coordinate must be an item."""
        return self.layout.kind == "rows"

    @cached_property
    def item_counts(self) -> npt.NDArray[np.int64]:
        """(N,) training ratings of each item; zeros where the model has no ratings."""
        if self.ratings is None:
            return np.zeros(len(self.items), np.int64)
        return self.ratings.item_counts

    def title(self, item: int) -> str:
        """The item's title, or its id where there is none."""
        return self.item_info.titles[item] or str(self.items.ids[item])

    # Predictions ---------------------------------------------------------------

    def answers(self, latent: npt.ArrayLike, sd: npt.ArrayLike | None = None) -> Answers:
        """What is shown of beliefs with these centres and standard deviations.

        latent, sd : of any one shape, see :func:`gmc_core.model.answers.answers`.
        """
        return answers(
            latent,
            sd,
            scale=self.scale,
            ordinal=self.ordinal,
            noise=self.noise,
            settings=self.settings,
            factor=factor_of(self.calibration),
        )

    def answers_of(self, posterior: Posterior, items: npt.ArrayLike | None = None) -> Answers:
        """What is shown of one user's ``items``, (n,) positions; None for all N."""
        at = slice(None) if items is None else np.asarray(items, dtype=np.int64)
        return self.answers(posterior.mean[at], posterior.rating_sd[at])

    def predict(
        self, user_ids: Sequence[object] | np.ndarray, item_ids: Sequence[object] | np.ndarray
    ) -> Predictions:
        """Predict pairs of original ids, in ratings, unprojected; unknown ids are flagged.

        Raises
        ------
        ConfigError
            If the model was saved without its ratings.
        """
        ratings = self._require_ratings()
        if len(user_ids) != len(item_ids):
            raise DataError("Give as many items as users.")
        users, items = ratings.users.find(user_ids), self.items.find(item_ids)
        known_user, known_item = users >= 0, items >= 0
        values = np.full(len(users), np.nan)
        both = known_user & known_item
        values[both] = self._predict_known(users[both], items[both])
        prior = known_item & ~known_user
        values[prior] = self.item_means[items[prior]]
        return Predictions(values, known_user, known_item)

    @cached_property
    def item_means(self) -> Floats:
        """(N items,) prediction for a user of whom nothing is known, in ratings."""
        if self.layout.kind == "rows":
            return self.answers(self.gaussian.mean).prediction
        ratings = self._require_ratings()
        everyone = np.arange(ratings.n_users)
        if self.layout.kind == "columns":
            return np.array(
                [
                    self._predict_known(everyone, np.full(ratings.n_users, item)).mean()
                    for item in range(len(self.items))
                ]
            )
        _, coordinates = self.layout.locate(
            np.repeat(everyone, len(self.items)), np.tile(np.arange(len(self.items)), len(everyone))
        )
        shown = self.answers(self.gaussian.mean).prediction[coordinates]
        return shown.reshape(ratings.n_users, -1).mean(axis=0)

    def _predict_known(self, users: Positions, items: Positions) -> Floats:
        signals, coordinates = self.layout.locate(users, items)
        needed, local = np.unique(signals, return_inverse=True)
        own = self._signals.take(needed)
        team = ThreadPool()
        weights = fold_in(own, self.gaussian, self.noise, team, self.ordinal)
        latent = predict_pairs(own, weights, self.gaussian, local, coordinates, team)
        return self.answers(latent).prediction

    @cached_property
    def _signals(self) -> Signals:
        return self.signals_of(self._require_ratings())

    def signals_of(self, ratings: Ratings) -> Signals:
        """Users' ratings as this model's signals, with what their attributes say."""
        signals = Signals.of(ratings, replace(self.layout, users=ratings.n_users))
        if self.noise.session is not None:
            signals = signals.at_times(ratings)
        return signals if self.groups is None else self.groups.on(signals, ratings)

    def _require_ratings(self) -> Ratings:
        if self.ratings is None:
            raise ConfigError(
                "This model was saved without its training ratings, so it knows no users; give "
                "the ratings of a user to fold in."
            )
        return self.ratings

    # One user ------------------------------------------------------------------

    def posterior(
        self,
        observed: npt.ArrayLike,
        values: npt.ArrayLike,
        covariates: npt.ArrayLike | None = None,
        times: npt.ArrayLike | None = None,
    ) -> Posterior:
        """The belief about a user who rated the items at ``observed`` positions.

        Parameters
        ----------
        observed : (n,) distinct item positions; n = 0 gives the prior.
        values : (n,) their ratings, finite and inside the scale's range.
        covariates : (G,) of the user, see
            :meth:`gmc_core.gaussian.attributes.UserGroups.covariates`; None where nothing is
            known besides the ratings.
        times : (n,) when the ratings were given, in seconds, NaN where unknown; only where the
            noise is shared by ratings of about the same time they change anything.

        Raises
        ------
        ConfigError
            If the model's signals are not rows, or it has no covariates but is given some.
        DataError
            If an item is repeated or out of range, a rating is outside the scale, or the
            covariates are not the model's.
        """
        if not self.folds_in:
            raise ConfigError(
                f"This model has {self.layout.kind} as signals, so a new user is no signal of it; "
                "fit with rows as signals to fold in users."
            )
        items = np.asarray(observed, dtype=np.int64).reshape(-1)
        ratings = np.asarray(values, dtype=np.float64).reshape(-1)
        self._check_observed(items, ratings)
        order = np.argsort(items)
        items, ratings = items[order], ratings[order]
        moments = self._moments_of(times, len(items))
        moments = None if moments is None else moments[order]
        return self._posterior(items, ratings, covariates, moments)

    def _posterior(
        self,
        items: Positions,
        ratings: Floats,
        covariates: npt.ArrayLike | None,
        moments: Floats | None,
    ) -> Posterior:
        """:meth:`posterior` of ratings that were checked, of rising items."""
        covariance = self.gaussian.covariance
        factor = observed_factor(self.gaussian, self.noise, items, moments)
        mean = self._prior_mean(covariates)
        residual = self._described(ratings, items, covariates, moments) - mean[items]
        cross = covariance.rows(items).astype(np.float64)
        whitened = scipy.linalg.solve_triangular(factor, cross, lower=True)
        forward = scipy.linalg.solve_triangular(factor, residual, lower=True)
        return Posterior(
            observed=items,
            values=ratings,
            weights=scipy.linalg.solve_triangular(factor, forward, lower=True, trans="T"),
            prior_mean=mean,
            mean=mean + forward @ whitened,
            variance=np.maximum(
                covariance.diagonal() - np.einsum("ij,ij->j", whitened, whitened), 0.0
            ),
            noise_variance=self.noise.total_variances(np.arange(len(self.items))),
            times=moments,
            session=self.noise.session,
            _gaussian=self.gaussian,
            _whitened=whitened,
        )

    def _prior_mean(self, covariates: npt.ArrayLike | None) -> Floats:
        """(N,) μ + B x."""
        mean, coefficients = self.gaussian.mean, self.gaussian.coefficients
        if covariates is None:
            return mean
        if coefficients is None:
            raise ConfigError("This model knows of no groups of users; give it ratings alone.")
        x = np.asarray(covariates, dtype=np.float64)
        if x.shape != coefficients.shape[1:] or not np.isfinite(x).all():
            raise DataError(
                f"A user has {coefficients.shape[1]} finite covariates in this model, one for each "
                "group."
            )
        return mean + coefficients @ x

    def _moments_of(self, times: npt.ArrayLike | None, count: int) -> Floats | None:
        """(n,) times of ratings where the noise reads them."""
        if times is None or self.noise.session is None:
            return None
        moments = np.asarray(times, dtype=np.float64).reshape(-1)
        if len(moments) != count:
            raise DataError("Give one time per rating; NaN where it is not known.")
        return moments

    def _described(
        self,
        ratings: Floats,
        items: Positions,
        covariates: npt.ArrayLike | None,
        times: Floats | None,
    ) -> Floats:
        """What the Gaussian describes of one user's ratings: these, or their latent responses."""
        if self.ordinal is None or not len(items):
            return ratings
        x = None if covariates is None else np.asarray(covariates, np.float64)[None]
        user = Signals(
            replace(self.layout, users=1),
            np.array([0, len(items)], np.int64),
            items.astype(np.int32),
            ratings,
            x,
            times,
        )
        return fold_in_latent(user, self.gaussian, self.noise, ThreadPool(), self.ordinal)[1]

    def posterior_of(self, user_id: object) -> Posterior:
        """The belief about a user of the training data, from their training ratings."""
        ratings = self._require_ratings()
        user = ratings.users.index(user_id)
        return self.posterior(
            *ratings.of_user(user), self.covariates_of(ratings, user), self.times_of(ratings, user)
        )

    def covariates_of(self, ratings: Ratings, user: int) -> Floats | None:
        """(G,) what the attributes of the user at a position of ``ratings`` say, if anything."""
        if self.groups is None:
            return None
        return self.groups.covariates(row_of(ratings.user_info, user), 1)[0]

    def besides_ratings(self, covariates: Floats | None) -> Floats | None:
        """Of what :meth:`covariates_of` says that which does not rest on the user's ratings."""
        return covariates

    def times_of(self, ratings: Ratings, user: int) -> Floats | None:
        """(n,) when that user's ratings were given, in seconds, NaN where unknown; None where no
        time is known or the model does not read them."""
        if self.noise.session is None or ratings.times is None:
            return None
        return seconds_of(ratings.times[ratings.indptr[user] : ratings.indptr[user + 1]])

    def _check_observed(self, items: Positions, ratings: Floats) -> None:
        if len(items) != len(ratings):
            raise DataError("Give one rating per item.")
        if len(items) and not (0 <= items.min() and items.max() < len(self.items)):
            raise DataError(f"Item positions must lie in 0..{len(self.items) - 1}.")
        if len(np.unique(items)) != len(items):
            raise DataError("An item is rated twice; keep one of the ratings.")
        if not np.all(np.isfinite(ratings)):
            raise DataError("A rating is not a number; leave unknown ratings out.")
        wrong = (ratings < self.scale.low) | (ratings > self.scale.high)
        if wrong.any():
            raise DataError(
                f"A rating must lie on the scale {self.scale}.", value=ratings[wrong][0]
            )

    def recommend(
        self, posterior: Posterior, top: int = 10, *, min_ratings: int = 0
    ) -> Recommendations:
        """The ``top`` unseen items with the highest predictions.

        Ranked by the centre of the belief. For ordered ratings that is the latent response, of
        which the predicted rating is a rising function: the order is that of the
        predictions, and items with equal ones are told apart.

        min_ratings : leave out items with fewer training ratings.
        """
        eligible = self.item_counts >= min_ratings
        eligible[posterior.observed] = False
        candidates = np.flatnonzero(eligible)
        ranked = candidates[np.argsort(-posterior.mean[candidates], kind="stable")]
        ranked = ranked[: max(top, 0)]
        shown, sd = self.answers_of(posterior, ranked), posterior.rating_sd[ranked]
        rating, (low, high) = shown.rating, shown.interval()
        return Recommendations(
            Recommendation(
                item=int(item),
                item_id=_plain(self.items.ids[item]),
                title=self.title(item),
                genres=self.item_info.genres[item],
                predicted=float(shown.prediction[k]),
                rating=float(rating[k]),
                latent=float(shown.latent[k]),
                sd=float(sd[k]),
                n_ratings=int(self.item_counts[item]),
                low=float(low[k]),
                high=float(high[k]),
            )
            for k, item in enumerate(ranked)
        )

    def explain(self, posterior: Posterior, item: int, moment: float | None = None) -> Explanation:
        """The rated items' shares in the prediction of ``item``, largest first.

        Prior mean of the item + the sum of the shares = the centre of the belief, exactly:
        the prediction, or for ordered ratings the latent response (``Recommendation.latent``), from
        which the cuts make the predicted rating.

        moment : when the rating that is explained was given, in seconds, where the model reads
            times; then the sum is the centre of the belief about that rating.
        """
        together = posterior.session_shares(moment)
        shares = posterior.contributions(item) + together
        order = np.argsort(-np.abs(shares), kind="stable")
        parts = [
            Contribution(
                item=int(posterior.observed[k]),
                item_id=_plain(self.items.ids[posterior.observed[k]]),
                title=self.title(int(posterior.observed[k])),
                rating=float(posterior.values[k]),
                share=float(shares[k]),
                session=float(together[k]),
            )
            for k in order
        ]
        start, similar = float(posterior.prior_mean[item]), posterior.of_similar_users(item)
        return Explanation(parts, start, self.title(item), similar)

    def most_informative(
        self, posterior: Posterior, candidates: Positions, top: int = 5
    ) -> list[tuple[int, float]]:
        """Which of ``candidates`` to rate next: (item, reduction of total variance).

        Rating item c lowers the sum of all posterior variances by
        Σ_m cov(m, c)² / (var(c) + noise(c)), exactly; the largest come first.
        """
        candidates = np.setdiff1d(candidates, posterior.observed)
        if not len(candidates):
            return []
        everything = np.arange(len(self.items))
        cross = posterior.covariance(candidates, everything)
        own = posterior.variance[candidates] + posterior.noise_variance[candidates]
        gain = np.einsum("ij,ij->i", cross, cross) / np.maximum(own, 1e-12)
        order = np.argsort(-gain, kind="stable")[:top]
        return [(int(candidates[k]), float(gain[k])) for k in order]


def _plain(value: object) -> object:
    """A NumPy scalar as a Python value."""
    return value.item() if isinstance(value, np.generic) else value
