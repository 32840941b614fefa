"""Prediction intervals that hold what they promise.

The model's posterior gives every prediction a standard deviation; how many of them an
interval needs is learned on ratings held out inside the training set (split conformal
prediction, Vovk et al. 2005; Lei et al. 2018): the interval of level p is as wide as
covers a share p of those.

For ordered ratings the interval is one of opinions, and a rating is covered when its
own interval of opinions touches it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gmc_core.auto import hold_out
from gmc_core.errors import ConfigError
from gmc_core.estep import predict_pairs
from gmc_core.fit import Fit, fit
from gmc_core.folding import explained, fold_in
from gmc_core.gaussian import Gaussian
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


def calibrate(
    train: Ratings, settings: FitSettings, level: float, *, seed: int = 0, team: Team | None = None
) -> float:
    """Standard deviations that an interval of ``level`` needs, from training ratings alone.

    Raises
    ------
    ConfigError
        If the level is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ConfigError(f"The level of an interval lies between 0 and 1, not {level}.")
    inner = fit(hold_out(train, seed), settings, team=team)
    needed = np.sort(distances(spread(inner), inner.split.test_values, inner.ordinal))
    rank = int(np.ceil((len(needed) + 1) * level)) - 1
    return float(needed[min(rank, len(needed) - 1)])


def covered(fit: Fit, factor: float) -> npt.NDArray[np.bool_]:
    """(n_test,) whether each held-out rating lies in its interval."""
    return np.asarray(distances(spread(fit), fit.split.test_values, fit.ordinal) <= factor)
