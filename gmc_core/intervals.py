"""Prediction intervals that hold what they promise.

The model's posterior gives every prediction a standard deviation; how many of them an
interval needs is learned on ratings held out inside the training set (split conformal
prediction, Vovk et al. 2005; Lei et al. 2018): the interval of level p is as wide as
covers a share p of those. They are drawn from every user, each weighing alike, as the
protocol draws its test ratings (:mod:`gmc_core.holdout`): the p speaks of a random rating
of a random user, not of those who rate most.

For ordered ratings the interval is one of opinions, and a rating is covered when its
own interval of opinions touches it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gmc_core.errors import ConfigError
from gmc_core.estep import predict_pairs
from gmc_core.fit import Fit, fit
from gmc_core.folding import explained, fold_in
from gmc_core.gaussian import Gaussian
from gmc_core.holdout import hold_out
from gmc_core.linalg.threads import Team
from gmc_core.mixture import MixtureState
from gmc_core.noise import Noise
from gmc_core.ordinal import OrdinalScale
from gmc_core.ratings import Ratings
from gmc_core.settings import FitSettings
from gmc_core.signals import Signals

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spread:
    """Centre and standard deviation of each held-out prediction, of a rating or opinion."""

    centre: Floats
    sd: Floats


def spread(fit: Fit) -> Spread:
    """Of the held-out pairs of a fit; one factorization for each of their users."""
    signals, pairs = fit.shown_signals, fit.pairs
    if isinstance(fit.state, MixtureState):
        return _spread_of_mixture(fit, fit.state)
    weights = fit.state.weights
    if fit.split.shown is not None:
        weights = fold_in(signals, fit.state.gaussian, fit.noise, fit.team, fit.ordinal)
    centre = predict_pairs(signals, weights, fit.state.gaussian, *pairs, fit.team)
    variance = pair_variances(signals, fit.state.gaussian, fit.noise, *pairs)
    return Spread(centre, np.sqrt(variance))


def _spread_of_mixture(fit: Fit, state: MixtureState) -> Spread:
    """The same of a mixture: the components' variances, and that between their means."""
    signals, pairs, found = fit.shown_signals, fit.pairs, fit.memberships(state)
    shares = found.responsibilities[pairs[0]]
    components = state.mixture.components
    centres = np.stack(
        [
            predict_pairs(signals, weights, component, *pairs, fit.team)
            for weights, component in zip(found.weights, components, strict=True)
        ],
        axis=1,
    )
    inside = np.stack(
        [pair_variances(signals, component, fit.noise, *pairs) for component in components], axis=1
    )
    centre = (shares * centres).sum(axis=1)
    variance = (shares * (inside + (centres - centre[:, None]) ** 2)).sum(axis=1)
    return Spread(centre, np.sqrt(variance))


def pair_variances(
    signals: Signals,
    gaussian: Gaussian,
    noise: Noise,
    pair_signals: npt.NDArray[np.int64],
    pair_coordinates: npt.NDArray[np.int64],
) -> Floats:
    """(P,) variance of a new observation at pairs (signal, coordinate), noise included.

    Σ[c, c] - Σ[c, o] (Σ[o, o] + Σ_w)⁻¹ Σ[o, c] + Σ_w[c, c].

    Raises
    ------
    NumericalError
        If the covariance of a signal's observations is singular.
    """
    covariance = gaussian.covariance
    result = covariance.diagonal()[pair_coordinates] + noise.variances(pair_coordinates)
    order = np.argsort(pair_signals, kind="stable")
    starts = np.flatnonzero(np.diff(pair_signals[order], prepend=-1))
    for group in np.split(order, starts[1:]):
        if not len(group):
            continue
        signal = pair_signals[group[0]]
        observed = signals.indices[signals.indptr[signal] : signals.indptr[signal + 1]]
        if len(observed):
            cross = covariance.submatrix(observed, pair_coordinates[group])
            result[group] -= explained(gaussian, noise, observed, cross)
    return np.maximum(result, 0.0)


def distances(spread: Spread, actual: Floats, ordinal: OrdinalScale | None) -> Floats:
    """(n,) how many standard deviations an interval needs to cover each rating."""
    if ordinal is None:
        gap = np.abs(actual - spread.centre)
    else:
        low, high = ordinal.bounds(actual)
        gap = np.maximum(np.maximum(low - spread.centre, spread.centre - high), 0.0)
    return np.asarray(gap / np.maximum(spread.sd, 1e-12))


@dataclass(frozen=True)
class Calibration:
    """How wide an interval must be to hold what it promises.

    level : share of ratings that it shall hold, between 0 and 1.
    factor : the posterior standard deviations on either side of the prediction.
    ratings, users : on how many held-out ratings of how many users that was learned.
    """

    level: float
    factor: float
    ratings: int
    users: int


def calibrate(
    train: Ratings,
    settings: FitSettings,
    level: float = 0.9,
    *,
    seed: int = 0,
    team: Team | None = None,
) -> Calibration:
    """How wide an interval of ``level`` must be, from training ratings alone.

    Takes one fit to nearly all of them. With n users the share of ratings in the
    interval differs from ``level`` by chance, with a standard deviation of about
    √(level (1 - level) / n).

    Raises
    ------
    ConfigError
        If the level is not between 0 and 1.
    DataError
        If no user has two ratings.
    """
    if not 0 < level < 1:
        raise ConfigError(f"The level of an interval lies between 0 and 1, not {level}.")
    split, (held,) = hold_out(train, seed)
    inner = fit(split, settings, team=team)
    needed = distances(spread(inner), split.test_values, inner.ordinal)
    return Calibration(level, held.quantile(needed, level), len(held.ratings), held.users)


def covered(fit: Fit, factor: float) -> npt.NDArray[np.bool_]:
    """(n_test,) whether each held-out rating lies in its interval."""
    return np.asarray(distances(spread(fit), fit.split.test_values, fit.ordinal) <= factor)
