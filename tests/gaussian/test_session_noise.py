"""Noise that ratings of about the same time share, against a dense reference."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg

from gmc_core.base.errors import ConfigError
from gmc_core.data.rating_times import UNKNOWN_TIME
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.fit import Fit, run_fit
from gmc_core.fitting.intervals import calibrate, spread
from gmc_core.gaussian.covariance import DenseCovariance
from gmc_core.gaussian.estep import e_step, predict_pairs
from gmc_core.gaussian.exact import exact_e_step
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.noise import Noise, SessionNoise
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.settings import FitSettings
from gmc_core.gaussian.signals import Layout, Signals
from gmc_core.model.model_file import load_model, save_model
from gmc_core.protocol.splits import no_split, strong_split, weak_split
from gmc_core.protocol.validation import hold_out

USERS, ITEMS = 40, 12
SESSION = SessionNoise(0.4, 50.0)
TEAM = ThreadPool(2)


def table(seed: int = 0, *, mood: float = 1.0, users: int = USERS, days: int = 4) -> Ratings:
    """Ratings whose errors are those of the hour in which they were given."""
    rng = np.random.default_rng(seed)
    known = rng.random((users, ITEMS)) < 0.7
    known[:, 0] = True
    day = rng.integers(0, days, (users, ITEMS))
    moods = mood * rng.standard_normal((users, days))
    taste = rng.standard_normal((users, 2)) @ rng.standard_normal((2, ITEMS)) * 0.5
    values = 3 + taste + np.take_along_axis(moods, day, axis=1)
    values = np.clip(np.round(values + 0.3 * rng.standard_normal(values.shape)), 1, 5)
    times = day * 100_000 + rng.integers(0, 60, day.shape)
    rows, columns = np.nonzero(known)
    return Ratings.from_triplets(
        rows, columns, values[known], RatingScale(1, 5, 1), times=times[known] + 10**9
    )


def described(ratings: Ratings) -> Signals:
    layout = Layout("rows", ratings.n_users, ratings.n_items)
    return Signals.of(ratings, layout).at_times(ratings)


def gaussian(dtype: str = "float64") -> Gaussian:
    rng = np.random.default_rng(3)
    factor = rng.standard_normal((ITEMS, ITEMS)) * 0.4
    matrix = (factor @ factor.T + 0.2 * np.eye(ITEMS)).astype(dtype)
    return Gaussian(rng.normal(3, 0.3, ITEMS), DenseCovariance(matrix))


def dense_systems(signals: Signals, model: Gaussian, noise: Noise):
    """For each signal: its coordinates, K written out entry by entry, and y - μ."""
    assert signals.times is not None
    sigma = model.covariance.submatrix(np.arange(ITEMS), np.arange(ITEMS)).astype(float)
    for i in range(signals.count):
        own = slice(signals.indptr[i], signals.indptr[i + 1])
        at, times = signals.indices[own], signals.times[own]
        kernel = sigma[np.ix_(at, at)] + noise.array[0, 0] * np.eye(len(at))
        for j in range(len(at)):
            for k in range(len(at)):
                apart = abs(times[j] - times[k])
                share = 1.0 if j == k else 0.0 if np.isnan(apart) else np.exp(-apart / 50.0)
                kernel[j, k] += 0.4 * share
        yield own, at, times, kernel, signals.values[own] - model.mean[at], sigma


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 2e-4)])
@pytest.mark.parametrize("exact", [False, True])
def test_equals_a_dense_reference(dtype, tolerance, exact):
    ratings = table()
    unknown = ratings.times.copy()
    unknown[::7] = UNKNOWN_TIME
    signals = described(replace(ratings, times=unknown))
    model, noise = gaussian(dtype), Noise.of(0.3, ITEMS, SESSION)
    sums = np.zeros((ITEMS, ITEMS))
    if exact:
        found, compiled = exact_e_step(signals, model, noise, TEAM)
    else:
        found = e_step(signals, model, noise, TEAM)
    likelihood = 0.0
    for i, (own, at, _, kernel, residual, _) in enumerate(dense_systems(signals, model, noise)):
        inverse = scipy.linalg.inv(kernel)
        weights = inverse @ residual
        np.testing.assert_allclose(found.weights[own], weights, atol=tolerance * 10)
        sums[np.ix_(at, at)] += (np.outer(weights, weights) - inverse) / signals.count
        likelihood -= 0.5 * (residual @ weights + np.linalg.slogdet(2 * np.pi * kernel)[1])
        assert found.log_det[i] == pytest.approx(np.linalg.slogdet(kernel)[1], abs=tolerance * 30)
    assert found.log_likelihood == pytest.approx(likelihood, rel=tolerance)
    if exact:
        np.testing.assert_allclose(np.tril(compiled), np.tril(sums), atol=tolerance * 10)


def test_large_systems_equal_small_ones():
    """Above the size that is solved in lanes, and where Σ is a factor."""
    rng = np.random.default_rng(1)
    items = 300
    values = rng.integers(1, 6, (3, items)).astype(float)
    ratings = Ratings.from_triplets(
        *np.nonzero(values),
        values.ravel(),
        RatingScale(1, 5),
        times=rng.integers(0, 400, 3 * items),
    )
    signals = Signals.of(ratings, Layout("rows", 3, items)).at_times(ratings)
    factor = rng.standard_normal((items, 5))
    model = Gaussian(np.full(items, 3.0), DenseCovariance(factor @ factor.T + np.eye(items)))
    noise = Noise.of(0.3, items, SESSION)
    found = e_step(signals, model, noise, TEAM)
    times = signals.times[:items]
    kernel = model.covariance.matrix + noise.submatrix(np.arange(items), times)
    np.testing.assert_allclose(found.weights[:items], np.linalg.solve(kernel, values[0] - 3))


def test_predictions_share_the_error_of_their_session():
    ratings = table()
    signals, model, noise = described(ratings), gaussian(), Noise.of(0.3, ITEMS, SESSION)
    weights = e_step(signals, model, noise, TEAM).weights
    pairs = np.arange(USERS), np.full(USERS, 5)
    times = np.where(np.arange(USERS) % 3 == 0, np.nan, 10**9 + 20.0)
    found = predict_pairs(signals, weights, model, *pairs, TEAM, session=SESSION, pair_times=times)
    for i, (_, at, when, kernel, residual, sigma) in enumerate(
        dense_systems(signals, model, noise)
    ):
        share = np.nan_to_num(0.4 * np.exp(-np.abs(times[i] - when) / 50.0))
        expected = model.mean[5] + (sigma[5, at] + share) @ np.linalg.solve(kernel, residual)
        assert found[i] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("model", ["paper", "exact", "ordinal"])
def test_planted_moods_are_used(model):
    """Where errors are of the day, reading the times predicts better; without moods no worse."""
    split = weak_split(table(2, users=300), 0)
    plain = replace(settings_for(model), iterations=6, noise=0.3)
    errors = []
    for variance in (0.0, 0.8):
        fit = Fit(split, replace(plain, session_noise=variance))
        errors.append([record for record in fit.records()][-1].rmse)
    assert errors[1] < 0.9 * errors[0]


def test_the_likelihood_never_falls():
    fit = Fit(
        no_split(table(4)),
        replace(
            settings_for("exact"), session_noise=0.3, relaxation=1.0, prior_strength=0.0, noise=0.3,
            iterations=15, warm=1,
        ),
    )  # fmt: skip
    found = [record.log_likelihood for record in fit.records()][1:]
    assert np.all(np.diff(found) > -1e-7 * abs(found[0]))


def test_without_session_noise_times_change_nothing():
    ratings = table()
    timeless = replace(ratings, times=None)
    for model in ("paper", "exact", "ordinal"):
        found = []
        for own in (ratings, timeless):
            fit = Fit(weak_split(own, 0), replace(settings_for(model), iterations=4))
            for _ in fit.records():
                pass
            found.append(fit.predictions)
        assert np.array_equal(*found)


@pytest.mark.parametrize("model", ["exact", "ordinal"])
@pytest.mark.parametrize("split_of", [weak_split, strong_split])
def test_the_saved_model_is_the_one_that_was_evaluated(model, split_of, tmp_path):
    """A user's belief from the ratings with their times, and a held-out rating's own time."""
    split = split_of(table(), 0)
    fit = Fit(split, replace(settings_for(model), iterations=4, session_noise=0.3))
    for _ in fit.records():
        pass
    loaded = load_model(save_model(fit.model(), tmp_path / "model.npz"))
    assert loaded.noise.session == SessionNoise(0.3, FitSettings().session_window)
    known = split.known
    for place, (user, item) in enumerate(zip(split.test_users, split.test_items, strict=True)):
        belief = loaded.posterior(*known.of_user(user), times=loaded.times_of(known, user))
        moment = float(split.test_times[place])
        latent = belief.mean[item] + belief.session_shares(moment).sum()
        shown = loaded.answers([latent]).prediction[0]
        assert shown == pytest.approx(fit.predictions[place], abs=1e-6)
        deviation = spread(fit).sd[place]
        assert deviation < belief.rating_sd[item] + 1e-9  # the own time tells something more
        explanation = loaded.explain(belief, int(item), moment)
        assert explanation.total == pytest.approx(latent, abs=1e-8)


def test_an_interrupted_fit_goes_on_to_the_same_digits():
    split = weak_split(table(), 0)
    settings = replace(settings_for("ordinal"), iterations=6, session_noise=0.3)
    whole, first = Fit(split, settings), Fit(split, settings)
    for _ in whole.records():
        pass
    for record in first.records():
        if record.iteration == 4:
            break
    rest = Fit(split, settings, start=first.state)
    for _ in rest.records():
        pass
    assert np.array_equal(rest.predictions, whole.predictions)


def test_refusals():
    timeless = replace(table(), times=None)
    with pytest.raises(ConfigError, match="have no times"):
        Fit(weak_split(timeless, 0), FitSettings(session_noise=0.1))
    with pytest.raises(ConfigError, match="take rows as signals"):
        FitSettings(session_noise=0.1, signals="columns")
    with pytest.raises(ConfigError, match="MAP objective"):
        FitSettings(session_noise=0.1, objective=True)
    with pytest.raises(ConfigError, match="paper, exact and ordinal"):
        FitSettings(session_noise=0.1, model="mixture")
    for wrong in ((0.0, 60.0), (np.inf, 60.0), (0.1, 0.0)):
        with pytest.raises(ConfigError):
            SessionNoise(*wrong)


def test_keys_count_the_times_only_where_they_are_read():
    plain = ExperimentConfig(fit=FitSettings(noise=0.5))
    timed = replace(plain, fit=FitSettings(noise=0.5, session_noise=0.1))
    assert plain.key("a", "b", "c") == plain.key("a", "b")
    assert len({timed.key("a", "b", "c"), timed.key("a", "b", "d"), plain.key("a", "b")}) == 3


def test_intervals_are_learned_as_they_are_shown():
    """Of ratings without a time: what a saved model believes of a pair, and not what the times of
    the held-out ratings tell besides."""
    split = weak_split(table(users=120), 0)
    fit = run_fit(split, replace(settings_for("exact"), iterations=4, session_noise=0.3))
    model, plain = fit.model(), spread(fit, timed=False)
    users, items = split.train.users.ids[split.test_users], split.train.items.ids[split.test_items]
    shown = model.predict(users, items).values
    np.testing.assert_allclose(plain.centre, shown, atol=1e-8)
    assert np.abs(spread(fit).centre - shown).max() > 0.01
    found = calibrate(split.train, fit.settings, level=0.8)
    inner, (held,) = hold_out(split.train, 0)
    own = run_fit(inner, fit.settings)
    needed = np.abs(inner.test_values - spread(own, timed=False).centre)
    needed /= spread(own, timed=False).sd
    assert found.factor == pytest.approx(held.quantile(needed, 0.8), rel=0.1)
