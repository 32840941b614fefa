"""The two steps of the model that the settings name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.data.ratings import Ratings
from gmc_core.fitting.users_side import UsersSide
from gmc_core.gaussian.averaged import AveragedEm
from gmc_core.gaussian.em import MapEm
from gmc_core.gaussian.exact import ExactEm, ExactOptions
from gmc_core.gaussian.factor import FactorEm, FactorOptions, SharedBeliefs
from gmc_core.gaussian.iterate import EmAlgorithm, EmState
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.mixture import MixtureEm, warm_up
from gmc_core.gaussian.mstep import choose_form
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.ordinal import LatentResponses, OrdinalScale
from gmc_core.gaussian.priors import factor_prior, prior_of
from gmc_core.gaussian.settings import FitSettings, paper_epsilon
from gmc_core.gaussian.signals import Signals
from gmc_core.gaussian.two_sided import TwoSidedEm


def algorithm(
    settings: FitSettings,
    train: Ratings,
    signals: Signals,
    noise: Noise,
    team: ThreadPool,
    *,
    ordinal: OrdinalScale | None,
    clusters: npt.NDArray[np.int64] | None,
    users: UsersSide,
    start: Callable[[], EmState],
    shared: SharedBeliefs | None = None,
) -> EmAlgorithm[Any, Any]:
    """The algorithm, with priors made of the training ratings.

    settings : resolved. signals : of ``train``. ordinal : the cuts of ordered ratings. clusters :
    where the Gaussians of a mixture begin; None for one Gaussian. users : of a two-sided model.
    start : makes the initial state, from which a low-rank fit beside a dense one begins.
    shared : who does the E-step of a low-rank one, if not this process.
    """
    assert settings.epsilon is not None
    if settings.average_rank:
        beside = settings.low_rank_beside(train.scale, train.n_items)
        shared_by_both: dict[str, Any] = dict(
            ordinal=ordinal, clusters=clusters, users=users, start=start
        )
        itself = replace(settings, average_rank=0)
        dense = algorithm(itself, train, signals, noise, team, **shared_by_both)
        # An error that ratings of a session share is not of low rank.
        plain = replace(noise, session=None)
        low_rank = algorithm(beside, train, signals, plain, team, **shared_by_both)
        assert isinstance(dense, ExactEm) and isinstance(low_rank, FactorEm)
        return AveragedEm(dense, low_rank, start(), settings.iterations)
    if not settings.is_exact:
        form = choose_form(signals.sizes, signals.dimension)
        if clusters is None:
            return MapEm(signals, settings.epsilon, noise, team, form, settings.objective)
        warm = warm_up(settings.iterations)
        return MixtureEm(signals, settings.epsilon, noise, team, form, clusters, warm)
    latent = None if ordinal is None else LatentResponses(ordinal, signals.values)
    strength = settings.attributes_strength or 1.0
    if settings.model == "factor":
        assert settings.prior_target is not None
        with team.whole():
            loadings = factor_prior(settings, train)
        own = settings.epsilon + settings.prior_target[-1]
        options = FactorOptions(loadings, own, latent=latent, covariate_strength=strength)
        return FactorEm(signals, noise, team, options, shared)
    with team.whole():
        prior = prior_of(settings, train, signals.layout)
    exact = ExactOptions(
        prior=prior,
        relaxation=settings.relaxation or 1.0,
        warm=settings.warm or 1,
        warm_epsilon=paper_epsilon(train.scale),
        latent=latent,
        learn_noise=settings.learn_noise,
        covariate_strength=strength,
    )
    if settings.model == "two-sided":
        with team.whole():
            both = users.prior
        alone = settings.user_start or 1
        return TwoSidedEm(signals, settings.epsilon, noise, team, exact, both, alone)
    return ExactEm(signals, settings.epsilon, noise, team, exact)
