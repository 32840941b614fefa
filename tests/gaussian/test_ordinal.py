"""Ordered ratings: truncated means, cuts, the median decision, and what they do in a fit."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from making import random_table, ratings_of, skewed_table
from scipy import stats

from gmc_core.base.errors import ConfigError, NumericalError
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.fit import Fit
from gmc_core.gaussian import inverses
from gmc_core.gaussian.covariance import DenseCovariance
from gmc_core.gaussian.estep import solve_systems, systems_of
from gmc_core.gaussian.folding import fold_in, fold_in_latent
from gmc_core.gaussian.linalg import latent as compiled
from gmc_core.gaussian.linalg.latent import score
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.models import MODELS, settings_for
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.ordinal import (
    LatentResponses,
    OrdinalScale,
    truncated_mean,
    truncated_square,
)
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.settings import FitSettings
from gmc_core.gaussian.signals import Layout, Signals
from gmc_core.model.completion import completed_blocks
from gmc_core.model.model_file import load_model, save_model
from gmc_core.protocol.splits import strong_split, weak_split

STARS = np.arange(1.0, 6.0)


def drawn(seed: int = 0, size: int = 4000) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.choice(STARS, p=[0.05, 0.1, 0.25, 0.35, 0.25], size=size)


def test_truncated_means_are_those_of_scipy():
    rng = np.random.default_rng(1)
    mean, low = rng.normal(size=400) * 5, rng.normal(size=400) * 3
    high = low + rng.random(400) * 2 + 0.01
    low[:80], high[80:160] = -np.inf, np.inf
    expected = stats.truncnorm.mean((low - mean) / 0.7, (high - mean) / 0.7, loc=mean, scale=0.7)
    np.testing.assert_allclose(truncated_mean(mean, low, high, 0.7), expected, atol=1e-9)


def test_truncated_means_stay_inside_far_out_in_the_tails():
    mean = np.array([-1e3, 1e3, 0.0, -50.0])
    low, high = np.array([1.0, 1.0, 1.0, 1.0]), np.array([2.0, 2.0, np.inf, np.inf])
    found = truncated_mean(mean, low, high, 0.5)
    assert np.all((found >= low) & (found <= high))
    np.testing.assert_allclose(found[:2], [1.0, 2.0], atol=1e-3)


def test_truncated_squares_are_those_of_scipy():
    rng = np.random.default_rng(2)
    mean, low = rng.normal(size=400) * 3, rng.normal(size=400) * 3
    high = low + rng.random(400) * 2 + 0.01
    low[:80], high[80:160] = -np.inf, np.inf
    drawn_from = stats.truncnorm((low - mean) / 0.7, (high - mean) / 0.7, loc=mean, scale=0.7)
    expected = drawn_from.var() + (drawn_from.mean() - mean) ** 2
    near = np.abs(np.clip(mean, low, high) - mean) < 4  # beyond, scipy's own differences fail
    found = truncated_square(mean, low, high, 0.7)
    np.testing.assert_allclose(found[near], expected[near], rtol=1e-6)
    assert np.isfinite(found).all() and (found >= 0).all()
    far = truncated_square(np.array([-1e3, 1e3]), np.array([1.0, 1.0]), np.array([2.0, 2.0]), 0.5)
    np.testing.assert_allclose(far, [1001.0**2, 998.0**2], rtol=1e-5)


def test_the_learned_noise_of_latent_responses_is_the_mean_over_what_is_believed():
    """E[(z - f)²] for every rating by quadrature over z, and f's covariance from the definition."""
    split = weak_split(skewed_table(), 0)
    fit = Fit(split, replace(settings_for("ordinal"), learn_noise=True, iterations=6))
    states = []
    for _ in fit.records():
        states.append(fit.state)
    before, after = states[-2:]
    covariance, variance = before.gaussian.covariance.matrix, before.noise
    low, high = fit.ordinal.bounds(fit.signals.values)
    grid = np.linspace(-12, 12, 20_001) * np.sqrt(variance)
    bell = np.exp(-0.5 * grid**2 / variance)
    total = 0.0
    for user in range(fit.signals.count):
        own = slice(fit.signals.indptr[user], fit.signals.indptr[user + 1])
        observed = fit.signals.indices[own]
        inner = covariance[np.ix_(observed, observed)]
        K = inner + variance * np.eye(len(observed))
        f = before.gaussian.mean[observed] + inner @ before.weights[own]
        total += np.trace(inner - inner @ np.linalg.solve(K, inner))
        for mean, a, b in zip(f, low[own], high[own], strict=True):
            density = bell * ((mean + grid > a) & (mean + grid <= b))
            total += (density * grid**2).sum() / density.sum()
    assert after.noise == pytest.approx(total / len(fit.signals.values), rel=1e-3)


def test_the_noise_of_latent_responses_is_learned_and_kept(tmp_path):
    split = weak_split(skewed_table(), 0)
    fit, records = fitted(split, learn_noise=True)
    noises = [record.noise for record in records]
    assert noises[:3] == [0.5] * 3 and len(set(noises)) > 5
    assert 0.1 < noises[-1] < 1
    assert fit.settings.noise == 0.5
    assert fit.model().noise.array[0, 0] == pytest.approx(noises[-1])
    loaded = load_model(save_model(fit.model(), tmp_path / "model.npz"))
    assert loaded.noise.array[0, 0] == fit.model().noise.array[0, 0]
    plain, _ = fitted(split)
    assert fit.scores().nmae < plain.scores().nmae + 0.02


def test_the_cuts_give_every_value_its_frequency():
    ratings = drawn()
    scale = OrdinalScale.of(ratings)
    assert scale.cuts[0] == 1.5 and scale.cuts[-1] == 4.5
    shares = np.cumsum(np.unique(ratings, return_counts=True)[1])[:-1] / len(ratings)
    scores = stats.norm.ppf(shares)
    spacing = np.diff(scale.cuts) / np.diff(scores)
    np.testing.assert_allclose(spacing, spacing[0])


def test_the_decision_minimises_the_expected_absolute_error():
    scale = OrdinalScale.of(drawn())
    latent = np.linspace(-1, 7, 400)
    decided = RatingScale(1, 5).project(scale.point_prediction(latent, 0.7))
    chances = scale.probabilities(latent, 0.7)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    expected = np.abs(STARS[:, None] - STARS[None, :]) @ chances.T  # (decision, latent response)
    chosen = expected[decided.astype(int) - 1, np.arange(len(latent))]
    np.testing.assert_allclose(chosen, expected.min(axis=0), atol=1e-9)


def test_the_raw_prediction_is_the_mean_where_mean_and_median_agree():
    scale = OrdinalScale.of(drawn())
    latent = np.linspace(-1, 7, 400)
    mean = scale.probabilities(latent, 0.7) @ STARS
    raw = scale.point_prediction(latent, 0.7)
    moved = raw != mean
    assert 0 < moved.mean() < 0.3
    assert np.abs(raw - mean).max() < 0.6


def test_scores_are_the_truncated_mean_and_their_slope():
    rng = np.random.default_rng(3)
    mean, low = rng.normal(size=400) * 5, rng.normal(size=400) * 3
    high = low + rng.random(400) * 2 + 0.01
    low[:80], high[80:160] = -np.inf, np.inf
    ends = list(zip(mean, low, high, strict=True))
    slope, bent = np.array([score(*end, 0.7) for end in ends]).T
    np.testing.assert_allclose(mean + 0.49 * slope, truncated_mean(mean, low, high, 0.7), atol=1e-9)
    ahead, behind = (
        np.array([score(m + step, a, b, 0.7)[0] for m, a, b in ends]) for step in (1e-5, -1e-5)
    )
    np.testing.assert_allclose(bent, (behind - ahead) / 2e-5, atol=1e-6)
    far = np.array([score(m, 1.0, np.inf, 0.7)[0] for m in (-1e3, 1e3)])
    np.testing.assert_allclose(-1e3 + 0.49 * far[0], 1.0, atol=1e-2)
    assert far[1] == 0


def test_the_latent_response_of_a_lonely_rating_is_found():
    """One rating, f ~ N(μ, s), z = f + e: the mean-field fixed point, by brute force."""
    scale = OrdinalScale.of(drawn())
    mean, variance, noise = 3.0, 0.6, 0.5
    gaussian = Gaussian(np.array([mean]), DenseCovariance(np.array([[variance]])))
    layout = Layout("rows", 1, 1)
    one = Signals(layout, np.array([0, 1]), np.array([0], np.int32), np.array([5.0]))
    _, values = fold_in_latent(one, gaussian, Noise.of(noise, 1), ThreadPool(1), scale)
    f = mean + variance / (variance + noise) * (values - mean)
    low = (scale.cuts[-1] - f) / np.sqrt(noise)
    expected = stats.truncnorm.mean(low, np.inf, loc=f, scale=np.sqrt(noise))
    np.testing.assert_allclose(values, expected, atol=1e-7)


@pytest.mark.parametrize("ratings", [[3.0, 3.0], [1.0, 2.0], np.arange(60.0)])
def test_too_few_or_too_many_values_are_refused(ratings):
    with pytest.raises(ConfigError, match="Take the model exact"):
        OrdinalScale.of(ratings)


def fitted(split, name="ordinal", **changes):
    values = {**settings_for(name).as_dict(), "iterations": 12, **changes}
    fit = Fit(split, FitSettings.from_dict(values))
    records = list(fit.records())
    return fit, records


def test_uneven_ratings_are_predicted_better_as_ordered():
    split = weak_split(skewed_table(), 0)
    ordinal, _ = fitted(split)
    exact, _ = fitted(split, "exact")
    assert ordinal.scores().nmae < exact.scores().nmae - 0.02


def test_new_users_are_folded_in_like_known_ones():
    split = strong_split(skewed_table(), 0)
    fit, _ = fitted(split)
    user = int(split.test_users[0])
    observed, values = split.query.of_user(user)
    posterior = fit.model().posterior(observed, values)
    shown = fit.model().answers_of(posterior, split.test_items[:1])
    np.testing.assert_allclose(shown.prediction, fit.predictions[:1], atol=1e-9)


def test_model_files_keep_the_cuts(tmp_path):
    fit, _ = fitted(weak_split(skewed_table(), 0), prior_strength=200.0)
    model = load_model(save_model(fit.model(), tmp_path / "model.npz"))
    np.testing.assert_array_equal(model.ordinal.cuts, fit.ordinal.cuts)
    split = fit.split
    users, items = split.train.users.ids[split.test_users], split.train.items.ids[split.test_items]
    found = model.predict(users, items).values
    np.testing.assert_array_equal(found, fit.model().predict(users, items).values)
    np.testing.assert_allclose(found, fit.predictions, atol=1e-6)


def test_explanations_sum_to_the_prediction():
    fit, _ = fitted(weak_split(skewed_table(), 0))
    model = fit.model()
    posterior = model.posterior([0, 3, 4], [5.0, 1.0, 2.0])
    shares = sum(part.share for part in model.explain(posterior, 7))
    assert model.gaussian.mean[7] + shares == pytest.approx(posterior.mean[7])


def test_a_completed_table_holds_the_predictions():
    fit, _ = fitted(weak_split(skewed_table(), 0), prior_strength=200.0)
    table = np.vstack([block.values for block in completed_blocks(fit.model())])
    users, items = fit.split.test_users[:20], fit.split.test_items[:20]
    np.testing.assert_allclose(table[users, items], fit.predictions[:20], atol=1e-6)
    assert table.min() >= 1 and table.max() <= 5


@pytest.mark.parametrize("name", MODELS)
def test_every_named_model_fits_other_scales(name):
    settings = settings_for(name).resolved(RatingScale(-10, 10, 1))
    assert settings.epsilon is not None and settings.noise is not None
    fit, records = fitted(weak_split(skewed_table(), 1), name, iterations=3)
    assert len(records) == 3
    assert np.isfinite(fit.predictions).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model": "other"},
            "The model must be paper, exact, ordinal, factor, 'two-sided' or mixture, not 'other'",
        ),
        (
            {"prior_strength": 3.0},
            "prior belongs to the models exact, ordinal, factor and two-sided",
        ),
        ({"model": "exact", "relaxation": 9.0}, "a number from 1 to 8, not 9"),
        (
            {"model": "exact", "prior_target": (0.1, -1.0, 0.0, 0.0)},
            "four numbers of at least 0, not",
        ),
        ({"model": "exact", "warm": 0}, "warm-up iterations must be a whole number from 1"),
        ({"learn_noise": True}, "noise belongs to the models exact and ordinal"),
        ({"model": "exact", "noise": 0.0, "learn_noise": True}, "one variance above 0"),
        ({"model": "exact", "learn_noise": "False"}, "true or false"),
        ({"model": "ordinal", "noise": 0.0}, "one noise variance above 0"),
        ({"components": 3}, "belongs to the model mixture, not to paper; take that one"),
        ({"model": "exact", "objective": True}, "belongs to the model paper"),
    ],
)
def test_settings_without_meaning_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        FitSettings(**changes)


def filled_in(signals, fit, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Latent responses and dual coefficients by filling in again and again, as defined."""
    gaussian, ordinal, team = fit.state.gaussian, fit.ordinal, ThreadPool(2)
    low, high = ordinal.bounds(signals.values)
    values = ordinal.first_guess(signals.values)
    for _ in range(rounds):
        weights = solve_systems(signals, values, gaussian, fit.noise, team).weights
        values = truncated_mean(values - 0.5 * weights, low, high, np.sqrt(0.5))
    return values, weights


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_folding_in_ends_where_filling_in_again_and_again_does(dtype, monkeypatch):
    values, known = random_table(150, 40, 0.4, 3)
    fit = Fit(
        weak_split(ratings_of(values, known), 0), replace(settings_for("ordinal"), dtype=dtype)
    )
    for _ in fit.records():
        pass
    monkeypatch.setattr(inverses, "_ROOM", 1)  # several batches
    signals = fit.signals.take(np.arange(fit.signals.count)[::-1])
    assert len(list(inverses.batches(signals))) > 3
    weights, found = fold_in_latent(
        signals, fit.state.gaussian, fit.noise, ThreadPool(2), fit.ordinal
    )
    expected, expected_weights = filled_in(signals, fit, 300)
    tolerance = 1e-6 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(found, expected, atol=tolerance)
    np.testing.assert_allclose(weights, expected_weights, atol=tolerance)
    # The fit began elsewhere, with the latent responses of the iteration before.
    own = fold_in(fit.signals, fit.state.gaussian, fit.noise, ThreadPool(1), fit.ordinal)
    np.testing.assert_allclose(fit.state.weights, own, atol=tolerance)


def test_scores_far_out_are_numbers():
    for mean in (1e9, 1e20, 1e150):
        for low, high in ((1.0, 2.0), (-np.inf, 2.0), (1.0, np.inf)):
            for at in (mean, -mean):
                assert np.isfinite(score(at, low, high, 0.7)).all()


def test_a_step_that_goes_too_far_is_not_taken(monkeypatch):
    """The interval 5..15 with the mean 0 far below: the first step leaves it for f = 0."""
    monkeypatch.setattr(compiled, "_CUTS", 1)
    f, a = np.array([14.0]), np.array([0.14])
    inverse = np.array([-1 / 100.01])
    ends = np.array([5.0]), np.array([15.0])
    found = compiled.climb.py_func(f, a, *ends, 0.01, inverse, inverse, 1e-7, 1)
    assert 5 < f[0] < 14  # nearer to the mean, and still in the interval
    assert f[0] == pytest.approx(100 * a[0])
    assert found == compiled.NOT_FOUND


def one_rating():
    """The latent response, the system and the signal of a single rating of 3, under N(0, 1)."""
    latent = LatentResponses(OrdinalScale.of(drawn()), np.array([3.0]))
    gaussian = Gaussian(np.zeros(1), DenseCovariance(np.eye(1)))
    one = Signals(Layout("rows", 1, 1), np.array([0, 1]), np.zeros(1, np.int32), np.array([3.0]))
    return latent, systems_of(one, one.values, gaussian, Noise.of(0.5, 1))


@pytest.mark.parametrize(("rounds", "found"), [(1, False), (100, True)])
def test_latent_responses_that_are_not_found_are_an_error(rounds, found):
    latent, systems = one_rating()
    at, values = np.zeros(1, np.int64), np.array([30.0])
    systems.weights[:] = 20.0
    told = nullcontext() if found else pytest.raises(NumericalError, match="not found in 1 round")
    with told:
        latent.settle(
            at, at, systems, np.array([-1 / 1.5]), np.zeros(1), 0.5, values, rounds=rounds
        )


def test_latent_responses_beyond_all_numbers_are_an_error():
    latent, systems = one_rating()
    at = np.zeros(1, np.int64)
    with pytest.raises(NumericalError, match="not finite under this model"):
        latent.settle(
            at, at, systems, np.array([-1 / 1.5]), np.array([np.inf]), 0.5, np.array([3.0])
        )
