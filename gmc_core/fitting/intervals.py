"""Prediction intervals with the coverage that they state, by split conformal prediction.

The model's posterior gives every prediction a standard deviation; how many of them an
interval needs is learned on ratings held out inside the training set (split conformal
prediction, Vovk et al. 2005; Lei et al. 2018): the interval of level p is as wide as
covers a share p of those. They are drawn from every user, each weighing alike, as the
protocol draws its test ratings (:mod:`gmc_core.protocol.validation`): the p speaks of a random
rating of a random user, not of those who rate most.

For ordered ratings the interval is one of latent responses, and a rating is covered when its
own interval of latent responses touches it.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError, ModelFileError
from gmc_core.base.files import PART
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.fitting.fit import Fit, run_fit
from gmc_core.gaussian.covariance import low_rank_of
from gmc_core.gaussian.estep import predict_pairs
from gmc_core.gaussian.folding import explained, fold_in
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.mixture import Memberships, Mixture, MixtureState, mixture_e_step
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.ordinal import OrdinalScale
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.settings import FitSettings
from gmc_core.gaussian.signals import Signals
from gmc_core.model.calibration import USUAL_LEVEL, Calibration
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.model.mixture_model import MixtureModel
from gmc_core.model.model_file import load_model, save_model
from gmc_core.model.two_sided_model import TwoSidedModel
from gmc_core.protocol.validation import hold_out

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Spread:
    """Centre and standard deviation of each held-out prediction, of a rating or latent response."""

    centre: Floats
    sd: Floats


def spread(fit: Fit, *, timed: bool = True) -> Spread:
    """Of the held-out pairs of a fit; one factorization for each of their users.

    timed : whether noise that ratings of about the same time share may be told from when the
        held-out ones were given. What a saved model shows is of ratings without a time.
    """
    times = fit.pair_times if timed else None
    signals, pairs = fit.query_signals, fit.pairs
    if isinstance(fit.state, MixtureState):
        found = fit.memberships(fit.state)
        return _spread_of_mixture(signals, pairs, found, fit.state.mixture, fit.noise, fit.team)
    weights, (signals, gaussian), folding = fit.state.weights, fit.seen(), fit.user_folding()
    if fit.split.query is not None:
        weights = fold_in(signals, gaussian, fit.noise, fit.team, fit.ordinal)
    centre = predict_pairs(
        signals, weights, gaussian, *pairs, fit.team,
        session=fit.noise.session, pair_times=times,
    )  # fmt: skip
    variance = pair_variances(signals, gaussian, fit.noise, *pairs, times)
    if folding is not None:
        assert signals.covariates is not None
        variance += folding.variances(signals.covariates[:, -folding.rank :], *pairs)
    return Spread(centre, np.sqrt(variance))


def _spread_of_mixture(
    signals: Signals,
    pairs: tuple[Positions, Positions],
    found: Memberships | MixtureState,
    mixture: Mixture,
    noise: Noise,
    team: ThreadPool,
) -> Spread:
    """The same of a mixture: the components' variances, and that between their means."""
    shares = found.responsibilities[pairs[0]]
    centres = np.stack(
        [
            predict_pairs(signals, weights, component, *pairs, team)
            for weights, component in zip(found.weights, mixture.components, strict=True)
        ],
        axis=1,
    )
    inside = np.stack(
        [pair_variances(signals, component, noise, *pairs) for component in mixture.components],
        axis=1,
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
    pair_times: Floats | None = None,
) -> Floats:
    """(P,) variance of a new observation at pairs (signal, coordinate), noise included.

    Σ[c, c] - Σ[c, o] (Σ[o, o] + Σ_w)⁻¹ Σ[o, c] + Σ_w[c, c]; where the noise is shared by
    observations of about the same time, with Σ_w[c, o] added to Σ[c, o].

    pair_times : (P,) when the new observations are made, NaN where unknown; None if all are.

    Raises
    ------
    NumericalError
        If the covariance of a signal's observations is singular.
    """
    covariance = gaussian.covariance
    result = covariance.diagonal()[pair_coordinates] + noise.total_variances(pair_coordinates)
    low_rank = low_rank_of(covariance)
    order = np.argsort(pair_signals, kind="stable")
    starts = np.flatnonzero(np.diff(pair_signals[order], prepend=-1))
    for group in np.split(order, starts[1:]):
        if not len(group):
            continue
        signal = pair_signals[group[0]]
        own = slice(signals.indptr[signal], signals.indptr[signal + 1])
        observed = signals.indices[own]
        if low_rank is not None:
            at = pair_coordinates[group]
            shared = low_rank.posterior_variances(observed, float(noise.array[0, 0]), at)
            result[group] = shared + noise.total_variances(at)
        elif len(observed):
            cross = covariance.submatrix(observed, pair_coordinates[group])
            times = None if signals.times is None else signals.times[own]
            if noise.session is not None and times is not None and pair_times is not None:
                cross = cross + noise.session.covariance(times, pair_times[group])
            result[group] -= explained(gaussian, noise, observed, cross, times)
    return np.maximum(result, 0.0)


def distances(
    spread: Spread, actual: Floats, scale: RatingScale, ordinal: OrdinalScale | None
) -> Floats:
    """(n,) how many standard deviations an interval needs to cover each rating.

    As it is shown (:meth:`gmc_core.model.answers.Answers.interval`): clipped to the scale, so that
    one wholly beyond an end of it stands for that end.
    """
    if ordinal is None:
        low = np.where(actual <= scale.low, -np.inf, actual)
        high = np.where(actual >= scale.high, np.inf, actual)
    else:
        low, high = ordinal.bounds(actual)
    gap = np.maximum(np.maximum(low - spread.centre, spread.centre - high), 0.0)
    return np.asarray(gap / np.maximum(spread.sd, 1e-12))


def calibrate(
    train: Ratings,
    settings: FitSettings,
    level: float = USUAL_LEVEL,
    *,
    seed: int = 0,
    team: ThreadPool | None = None,
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
        If no user has two ratings, or the users are too few for the level.
    """
    if not 0 < level < 1:
        raise ConfigError(f"The level of an interval lies between 0 and 1, not {level}.")
    split, (held,) = hold_out(train, seed)
    held.check_level(level)  # before the fit
    inner = run_fit(split, settings, team=team)
    # Intervals are shown of ratings to come, whose time is nobody's, so they are learned like that.
    needed = distances(spread(inner, timed=False), split.test_values, train.scale, inner.ordinal)
    factor = held.quantile(needed, level)
    return Calibration(level, factor, len(held.ratings), held.users, time.time())


def calibrated(
    model: GaussianModel,
    level: float = USUAL_LEVEL,
    *,
    seed: int = 0,
    team: ThreadPool | None = None,
) -> GaussianModel:
    """The same model with the width of its intervals learned; takes one more fit.

    Raises
    ------
    ConfigError
        If the model has no ratings to learn on, or the level is not between 0 and 1.
    DataError
        If no user has two ratings, or the users are too few for the level.
    """
    if model.ratings is None:
        raise ConfigError(
            "This model was saved without its training ratings, on which the width of intervals is "
            "learned. Calibrate it where they are: gmc fit does before it leaves them out."
        )
    settings = replace(model.settings, iterations=model.iteration)
    found = calibrate(model.ratings, settings, level, seed=seed, team=team)
    return replace(model, calibration=found)


def calibrate_file(
    path: Path,
    level: float = USUAL_LEVEL,
    *,
    team: ThreadPool | None = None,
    replacing: Callable[[], AbstractContextManager[bool]] = lambda: nullcontext(True),
) -> GaussianModel | None:
    """Calibrate the intervals of a saved model, in place.

    Parameters
    ----------
    replacing : held while the file is replaced, which takes no time; says whether it still
        may be.

    Returns
    -------
    The model as it is now in the file; None, and the file as it is, where it has been
    replaced or removed meanwhile, or may not be replaced any more.

    Raises
    ------
    GmcError
        As :func:`calibrated`, and where the file cannot be read or written.
    OSError
        If it cannot be replaced.
    Cancelled
        If the pool was told to stop; the file is then as it was.
    """
    path = Path(os.path.realpath(path))
    before = _stamp(path)
    model = calibrated(load_model(path), level, team=team)
    if _stamp(path) != before:
        return None
    part = path.with_name(f"{PART}{secrets.token_hex(4)}")
    try:
        save_model(model, part)
        with replacing() as may:
            if not may or _stamp(path) != before:
                return None
            with suppress(OSError):  # another user's file, whose permissions cannot be copied
                part.chmod(stat.S_IMODE(path.stat().st_mode))
            part.replace(path)
    except ModelFileError as error:
        raise ModelFileError(str(error).replace(str(part), str(path))) from error
    finally:
        with suppress(OSError):
            part.unlink()
    return model


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Changes whenever a file's content does; None where there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def pair_intervals(
    model: GaussianModel,
    user_ids: Sequence[object] | npt.NDArray[Any],
    item_ids: Sequence[object] | npt.NDArray[Any],
) -> tuple[Floats, Floats]:
    """(P,) lowest and highest rating of the interval of each pair of original ids.

    NaN where the item is unknown. An unknown user has the interval of one of whom nothing is
    known; NaN where such a user is no signal of the model.

    Raises
    ------
    ConfigError
        If the model was saved without its ratings.
    """
    found = model.predict(user_ids, item_ids)
    assert model.ratings is not None
    users, items = model.ratings.users.find(user_ids), model.items.find(item_ids)
    latent, sd = np.full(len(users), np.nan), np.full(len(users), np.nan)
    both = found.known_user & found.known_item
    known = _spread_of_model(model, users[both], items[both])
    latent[both], sd[both] = known.centre, known.sd
    prior = found.known_item & ~found.known_user
    if model.folds_in:
        at = items[prior]
        latent[prior] = model.gaussian.mean[at]
        own = model.gaussian.covariance.diagonal()[at] + model.noise.total_variances(at)
        if isinstance(model, TwoSidedModel):
            nobody = np.zeros((1, model.folding.rank))
            own = own + model.folding.variances(nobody, np.zeros(len(at), np.int64), at)
        sd[prior] = np.sqrt(own)
    low, high = (np.full(len(users), np.nan) for _ in range(2))
    sure = np.isfinite(sd)
    low[sure], high[sure] = model.answers(latent[sure], sd[sure]).interval()
    return low, high


def _spread_of_model(model: GaussianModel, users: Positions, items: Positions) -> Spread:
    """Of pairs of a model's own users and items, by position."""
    assert model.ratings is not None
    signals = model.signals_of(model.ratings)
    at, coordinates = model.layout.locate(users, items)
    needed, local = np.unique(at, return_inverse=True)
    own, team, pairs = signals.take(needed), ThreadPool(), (local.reshape(-1), coordinates)
    if isinstance(model, MixtureModel):
        found = mixture_e_step(own, model.mixture, model.noise, team)
        return _spread_of_mixture(own, pairs, found, model.mixture, model.noise, team)
    weights = fold_in(own, model.gaussian, model.noise, team, model.ordinal)
    centre = predict_pairs(own, weights, model.gaussian, *pairs, team)
    variance = pair_variances(own, model.gaussian, model.noise, *pairs)
    if isinstance(model, TwoSidedModel):
        variance += model.pair_variances(own, *pairs)
    return Spread(np.asarray(centre, dtype=np.float64), np.sqrt(variance))


def covered(fit: Fit, factor: float) -> npt.NDArray[np.bool_]:
    """(n_test,) whether each held-out rating lies in its interval."""
    split = fit.split
    needed = distances(spread(fit), split.test_values, split.train.scale, fit.ordinal)
    return np.asarray(needed <= factor)
