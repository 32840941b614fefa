"""Mixtures of Gaussians: against a dense reference, MAP-EM and planted groups."""

from dataclasses import replace

import dense_reference as dense
import numpy as np
import pytest
from making import random_table, ratings_of, signals_of
from store_workers import cancelled_when, figures, small

from gmc_core.base.errors import ConfigError, ModelFileError, NumericalError
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.cost import estimate
from gmc_core.fitting.experiment import run_experiment
from gmc_core.fitting.fit import Fit, run_fit
from gmc_core.fitting.intervals import spread
from gmc_core.gaussian.em import initial_state, map_em
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.mixture import MixtureState, initial_mixture, mixture_em
from gmc_core.gaussian.mixture_start import features, k_means, user_groups
from gmc_core.gaussian.mstep import FORMS
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.settings import FitSettings
from gmc_core.model.completion import completed_blocks
from gmc_core.model.mixture_model import MixtureModel, MixturePosterior
from gmc_core.model.model_file import load_model, save_model
from gmc_core.model.pictures import picture
from gmc_core.protocol.filters import Filter
from gmc_core.protocol.splits import no_split, strong_split, weak_split
from gmc_core.runs.store import Store, artifacts
from gmc_core.runs.worker import work

USERS, ITEMS = 40, 12
MIXTURE = FitSettings(model="mixture", components=2, iterations=4)


@pytest.fixture(scope="module")
def ratings():
    return ratings_of(*random_table(USERS, ITEMS, 0.5, seed=3))


@pytest.fixture(scope="module")
def model(ratings):
    return run_fit(no_split(ratings), MIXTURE).model()


def dense_mixture(Y, H, groups, *, epsilon, iterations, warm, noise=0.0, initial=3.0):
    """The module's formulas, signal by signal; returns π, the (μ, Σ), r, f̃ and log-likelihood."""
    M, N = Y.shape
    K = 1
    r = np.ones((M, 1))
    F = np.where(H, Y, initial)[None].copy()
    noise = dense.noise_matrix(noise, N)
    for iteration in range(iterations):
        if iteration == warm:
            K = groups.max() + 1
            r, F = np.eye(K)[groups], np.repeat(F, K, axis=0)
        pi = (r.sum(axis=0) + 1) / (M + K)
        parts = []
        for k in range(K):
            total = r[:, k].sum()
            mu = sum(r[i, k] * F[k, i] for i in range(M)) / total
            outer = (r[i, k] * np.outer(F[k, i] - mu, F[k, i] - mu) for i in range(M))
            parts.append((mu, sum(outer) / total + epsilon * np.eye(N)))
        joint = np.zeros((M, K))
        for i in range(M):
            U = dense.masking_operator(H[i])
            for k, (mu, sigma) in enumerate(parts):
                F[k, i] = dense.map_estimate(Y[i, H[i]], U, mu, sigma, noise)
                density = dense.log_gaussian(Y[i, H[i]], U @ mu, U @ (sigma + noise) @ U.T)
                joint[i, k] = np.log(pi[k]) + density
        evidence = np.logaddexp.reduce(joint, axis=1)
        r = np.exp(joint - evidence[:, None])
    return pi, parts, r, F, evidence.sum()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("noise", "warm"), [(0.0, 0), (0.4, 0), (0.0, 2)])
def test_it_agrees_with_the_dense_formulas(form, noise, warm):
    users, items = (8, 14) if form == "factor" else (30, 10)
    values, known = random_table(users, items, 0.5, seed=1)
    known[0, 2] = True
    signals, groups = signals_of(values, known), np.arange(users) % 3 // 2
    start = initial_mixture(signals, 3.0, np.float64)
    noise_of = Noise.of(noise, items)
    settings = {"epsilon": 0.3, "iterations": 5, "noise": noise_of, "team": ThreadPool(2)}
    *_, step = mixture_em(signals, start, groups=groups, warm=warm, form=form, **settings)
    pi, parts, r, _, likelihood = dense_mixture(
        values, known, groups, epsilon=0.3, iterations=5, noise=noise, warm=warm
    )
    state = step.state
    np.testing.assert_allclose(state.mixture.proportions, pi, atol=1e-9)
    np.testing.assert_allclose(state.responsibilities, r, atol=1e-8)
    assert step.log_likelihood == pytest.approx(likelihood, rel=1e-9)
    everything = np.arange(items)
    for component, (mu, sigma) in zip(state.mixture.components, parts, strict=True):
        np.testing.assert_allclose(component.mean, mu, atol=1e-8)
        np.testing.assert_allclose(
            component.covariance.submatrix(everything, everything), sigma, atol=1e-8
        )
    mean = sum(p * mu for p, (mu, _) in zip(pi, parts, strict=True))
    pooled = sum(
        p * (sigma + np.outer(mu - mean, mu - mean))
        for p, (mu, sigma) in zip(pi, parts, strict=True)
    )
    np.testing.assert_allclose(state.gaussian.mean, mean, atol=1e-8)
    found = state.gaussian.covariance.submatrix(everything, everything)
    np.testing.assert_allclose(found, pooled, atol=1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_the_change_of_the_covariance_is_the_mean_of_the_components(form):
    values, known = random_table(9, 14, 0.6, seed=2)
    known[0, 3] = True
    signals, groups = signals_of(values, known), np.arange(9) % 2
    start = initial_mixture(signals, 3.0, np.float64)
    settings = {"epsilon": 0.3, "iterations": 3, "noise": Noise.of(0.1, 14), "team": ThreadPool(1)}
    settings |= {"groups": groups, "warm": 0}
    first, second, third = mixture_em(signals, start, form=form, **settings)
    assert first.covariance_change is None
    everything = np.arange(14)
    changes = [
        np.linalg.norm(new - old) / np.linalg.norm(old)
        for old, new in zip(
            *(
                [c.covariance.submatrix(everything, everything) for c in s.state.mixture.components]
                for s in (second, third)
            ),
            strict=True,
        )
    ]
    assert third.covariance_change == pytest.approx(third.state.mixture.proportions @ changes)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_one_component_is_map_em_to_the_last_digit(ratings, dtype):
    split = weak_split(ratings, 0)
    plain = run_fit(split, FitSettings(iterations=4, dtype=dtype))
    one = Fit(split, replace(MIXTURE, components=1, dtype=dtype))
    records = list(one.records())
    np.testing.assert_array_equal(one.predictions, plain.predictions)
    np.testing.assert_array_equal(one.state.weights, plain.state.weights)
    assert records[-1].nmae == plain.scores().nmae


def test_the_loop_of_one_component_is_map_em():
    signals = signals_of(*random_table(USERS, ITEMS, 0.5, seed=3))
    settings = {
        "epsilon": 0.3,
        "iterations": 3,
        "noise": Noise.of(0.0, ITEMS),
        "team": ThreadPool(1),
    }
    groups = np.where(signals.sizes > 0, 0, -1)
    start = initial_mixture(signals, 3.0, np.float64)
    steps = mixture_em(signals, start, groups=groups, **settings)
    for one, plain in zip(
        steps, map_em(signals, initial_state(signals, 3.0, np.float64), **settings), strict=True
    ):
        component = one.state.mixture.components[0]
        np.testing.assert_array_equal(one.state.weights[0], plain.state.weights)
        np.testing.assert_array_equal(component.mean, plain.state.gaussian.mean)
        np.testing.assert_array_equal(
            component.covariance.matrix, plain.state.gaussian.covariance.matrix
        )
        assert one.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-12)
        assert one.covariance_change == plain.covariance_change


# Groups --------------------------------------------------------------------------


def planted(users=300, items=20, seed=0, fill=0.6):
    """Two groups whose tastes are opposite: what one likes the other does not."""
    rng = np.random.default_rng(seed)
    group = np.arange(users) % 2
    likes = np.where(np.arange(items) < items // 2, 1.0, -1.0)
    shared = rng.normal(size=(users, 1)) * 0.3
    values = 3 + likes * np.where(group == 0, 0.8, -0.8)[:, None] + shared
    values = np.clip(values + rng.normal(scale=0.5, size=values.shape), 1, 5)
    known = rng.random(values.shape) < fill
    return values, known, group


def test_planted_groups_are_recovered():
    values, known, group = planted()
    kinds = np.stack([np.arange(20) < 10, np.arange(20) >= 10], axis=1).astype(float)
    signals = signals_of(values, known)
    start = initial_mixture(signals, 3.0, np.float64)
    settings = {"epsilon": 0.1, "iterations": 6, "noise": Noise.of(0.1, 20), "team": ThreadPool(1)}
    settings["groups"] = user_groups(signals, 2, kinds)
    *_, step = mixture_em(signals, start, **settings)
    found = step.state.responsibilities.argmax(axis=1)
    assert max((found == group).mean(), (found != group).mean()) > 0.98
    order = [0, 1] if (found == group).mean() > 0.5 else [1, 0]
    for k, own in enumerate(order):
        expected = values[group == own].mean(axis=0)
        np.testing.assert_allclose(step.state.mixture.components[k].mean, expected, atol=0.12)
    np.testing.assert_allclose(step.state.mixture.proportions, 0.5, atol=0.02)


def test_groups_with_tastes_of_their_own_are_predicted_better_than_by_one_gaussian():
    rng = np.random.default_rng(1)
    users, items, tastes = 600, 20, 3
    group = np.arange(users) % 2
    loadings = rng.normal(size=(2, tastes, items)) / np.sqrt(tastes)
    scores = rng.normal(size=(users, tastes)) * 0.6
    values = np.einsum("ut,uti->ui", scores, loadings[group])
    values += np.where(group == 0, 3.8, 2.2)[:, None] + rng.normal(scale=0.1, size=values.shape)
    values = np.clip(values, 1, 5)
    split = weak_split(ratings_of(values, rng.random(values.shape) < 0.4), 0)
    one = run_fit(split, FitSettings(iterations=8, epsilon=0.1)).scores()
    two = run_fit(split, replace(MIXTURE, iterations=8, epsilon=0.1)).scores()
    assert two.rmse < 0.9 * one.rmse


def test_responsibilities_sum_to_one_and_those_who_rated_nothing_follow_the_shares(ratings):
    running = Fit(no_split(ratings), MIXTURE)
    for _ in running.records():
        state = running.state
        assert isinstance(state, MixtureState)
        np.testing.assert_allclose(state.responsibilities.sum(axis=1), 1.0, rtol=1e-14)
        assert state.responsibilities.min() >= 0
        silent = running.signals.sizes == 0
        assert silent.any()
        components = 1 if state.iteration <= 2 else 2  # half of the iterations are MAP-EM
        assert len(state.mixture.components) == components
        expected = np.broadcast_to(state.mixture.proportions, (silent.sum(), components))
        np.testing.assert_allclose(state.responsibilities[silent], expected)
        assert state.mixture.proportions.sum() == pytest.approx(1.0)


def test_a_component_that_loses_everyone_keeps_its_gaussian():
    signals = signals_of(*random_table(USERS, ITEMS, 0.5, seed=3))
    settings = {"epsilon": 0.3, "noise": Noise.of(0.0, ITEMS), "team": ThreadPool(1)}
    settings["groups"] = np.arange(USERS) % 2
    start = initial_mixture(signals, 3.0, np.float64)
    *_, step = mixture_em(signals, start, iterations=2, **settings)
    alone = np.zeros((USERS, 2))
    alone[:, 0] = 1.0
    state = replace(step.state, responsibilities=alone)
    *_, after = mixture_em(signals, state, iterations=3, **settings)
    lonely = after.state.mixture.components[1]
    assert lonely is step.state.mixture.components[1]
    assert after.state.mixture.proportions[1] == pytest.approx(1 / (USERS + 2))
    assert np.isfinite(after.log_likelihood)


def test_groups_come_from_level_spread_and_kinds():
    rng = np.random.default_rng(0)
    values = np.where(np.arange(60)[:, None] < 30, 4.0, 2.0) + rng.uniform(-1, 1, (60, 20))
    known = rng.random(values.shape) < 0.6
    signals = signals_of(values, known)
    by_level = user_groups(signals, 2)
    assert np.all(by_level[:30] == 1) and np.all(by_level[30:] == 0)
    columns = features(signals)
    np.testing.assert_allclose(columns.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(columns.std(axis=0), 1)
    np.testing.assert_array_equal(by_level, user_groups(signals, 2))
    kinds = np.eye(20)
    assert features(signals, kinds).shape == (60, 22)


def test_every_group_has_somebody():
    same = np.zeros((7, 3))
    assert set(k_means(same, 4)) == {0, 1, 2, 3}
    points = np.concatenate([np.zeros((50, 2)), [[9.0, 9.0]]])
    assert sorted(np.bincount(k_means(points, 2))) == [1, 50]


def test_more_groups_than_users_are_refused():
    values, known = random_table(4, 6, 0.6, seed=2)
    with pytest.raises(ConfigError, match="fewer components"):
        Fit(no_split(ratings_of(values, known)), replace(MIXTURE, components=4))


def test_a_singular_component_names_the_iteration(ratings):
    with pytest.raises(NumericalError, match=r"Iteration \d: .*Raise ε"):
        run_fit(no_split(ratings), replace(MIXTURE, epsilon=0.0, iterations=40, components=8))


# Everywhere a model is -------------------------------------------------------------


@pytest.mark.parametrize("stop", [1, 2, 3])
@pytest.mark.parametrize("users", [USERS, 9])
def test_a_fit_goes_on_from_its_saved_state_to_the_same_digits(tmp_path, users, stop):
    split = weak_split(ratings_of(*random_table(users, ITEMS, 0.5, seed=3)), 0)
    whole = Fit(split, MIXTURE)  # two iterations of one Gaussian, then two of two
    records = list(whole.records())
    half = Fit(split, MIXTURE)
    for record in half.records():
        if record.iteration == stop:
            break
    state = artifacts.Checkpoint("key", 0, tuple(records[:stop]), half.state)
    artifacts.save_checkpoint(tmp_path, state)
    found = artifacts.load_checkpoint(tmp_path, "key")
    assert found is not None and found.records == tuple(records[:stop])
    resumed = Fit(split, MIXTURE, start=found.state)
    np.testing.assert_array_equal(resumed.predictions, half.predictions)
    again = list(resumed.records())
    figures = ("nmae", "log_likelihood", "covariance_change", "prediction_change")
    for one, two in zip(again, records[stop:], strict=True):
        assert [getattr(one, name) for name in figures] == [getattr(two, name) for name in figures]
    np.testing.assert_array_equal(resumed.predictions, whole.predictions)
    np.testing.assert_array_equal(resumed.state.responsibilities, whole.state.responsibilities)
    everything = np.arange(ITEMS)
    old, new = (f.state.gaussian.covariance for f in (whole, resumed))
    np.testing.assert_array_equal(
        old.submatrix(everything, everything), new.submatrix(everything, everything)
    )


def test_held_out_users_are_folded_in(ratings):
    split = strong_split(ratings, 0, 28, 8)
    running = run_fit(split, MIXTURE)
    model = running.model()
    assert len(running.predictions)
    held = spread(running)
    for k, (user, item) in enumerate(zip(split.test_users, split.test_items, strict=True)):
        posterior = model.posterior(*split.query.of_user(user))
        assert posterior.mean[item] == pytest.approx(running.predictions[k], abs=1e-9)
        assert posterior.mean[item] == pytest.approx(held.centre[k], abs=1e-9)
        assert posterior.rating_sd[item] == pytest.approx(held.sd[k], abs=1e-7)


@pytest.mark.parametrize("kind", ["columns", "blocks"])
def test_other_signals_than_rows(ratings, kind):
    split = weak_split(ratings, 0)
    settings = replace(MIXTURE, signals=kind, block=(8, 6))
    running = run_fit(split, settings)
    model = running.model()
    users = split.train.users.ids[split.test_users]
    found = model.predict(users, split.test_items).values
    np.testing.assert_allclose(found, running.predictions, atol=1e-9)


def test_the_belief_is_a_mixture_of_conditional_gaussians(ratings, model):
    items, values = ratings.of_user(5)
    known = np.zeros(ITEMS, bool)
    known[items] = True
    posterior = model.posterior(items, values)
    assert isinstance(posterior, MixturePosterior)
    everything = np.arange(ITEMS)
    mean, second, weights = np.zeros(ITEMS), np.zeros((ITEMS, ITEMS)), []
    for component, p in zip(model.mixture.components, model.mixture.proportions, strict=True):
        sigma = component.covariance.submatrix(everything, everything)
        U = dense.masking_operator(known)
        density = dense.log_gaussian(values, U @ component.mean, U @ sigma @ U.T)
        weights.append(p * np.exp(density))
    for r, component in zip(
        np.array(weights) / sum(weights), model.mixture.components, strict=True
    ):
        sigma = component.covariance.submatrix(everything, everything)
        own = dense.map_estimate(values, U, component.mean, sigma, np.zeros((ITEMS, ITEMS)))
        mean += r * own
        inner = dense.posterior_covariance(U, sigma, np.zeros((ITEMS, ITEMS)))
        second += r * (inner + np.outer(own, own))
    covariance = second - np.outer(mean, mean)
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-9)
    np.testing.assert_allclose(posterior.variance, np.diag(covariance), atol=1e-9)
    np.testing.assert_allclose(posterior.covariance(everything, everything), covariance, atol=1e-9)
    np.testing.assert_allclose(posterior.mean[items], values, atol=1e-9)


def test_shares_sum_to_the_prediction(ratings, model):
    posterior = model.posterior(*ratings.of_user(7))
    for item in range(ITEMS):
        shares = model.explain(posterior, item)
        total = model.gaussian.mean[item] + sum(part.share for part in shares)
        assert total == pytest.approx(posterior.mean[item], abs=1e-9)
    assert len(model.recommend(posterior, 3)) == 3


def test_before_any_rating_the_belief_is_the_mixture_itself(model):
    prior = model.posterior([], [])
    np.testing.assert_allclose(prior.mean, model.gaussian.mean, atol=1e-12)
    np.testing.assert_allclose(prior.variance, model.gaussian.covariance.diagonal())
    np.testing.assert_allclose(prior.responsibilities, model.mixture.proportions)
    np.testing.assert_allclose(model.item_means, prior.mean)
    assert prior.contributions(0).shape == (0,)
    assert model.most_informative(prior, np.arange(ITEMS), 3)


def test_the_completed_table_is_what_the_model_predicts(model):
    (block,) = completed_blocks(model, sd=True)
    for user in (3, 9):
        posterior = model.posterior_of(user)
        np.testing.assert_allclose(block.values[user], posterior.mean, atol=1e-9)
        np.testing.assert_allclose(block.sd[user] ** 2, posterior.variance, atol=1e-9)


@pytest.mark.parametrize("users", [USERS, 9])
def test_a_model_survives_its_file(tmp_path, users):
    ratings = ratings_of(*random_table(users, ITEMS, 0.5, seed=3))
    model = run_fit(no_split(ratings), MIXTURE).model()
    path = save_model(model, tmp_path / "mixture.npz")
    again = load_model(path)
    assert isinstance(again, MixtureModel)
    assert again.settings == model.settings
    everyone = np.divmod(np.arange(users * ITEMS), ITEMS)
    np.testing.assert_array_equal(again.predict(*everyone).values, model.predict(*everyone).values)
    everything = np.arange(ITEMS)
    old, new = (m.gaussian.covariance.submatrix(everything, everything) for m in (model, again))
    np.testing.assert_array_equal(old, new)
    bare = load_model(save_model(model, tmp_path / "bare.npz", with_ratings=False))
    posterior = bare.posterior([1, 2], [4.0, 2.0])
    np.testing.assert_array_equal(posterior.mean, model.posterior([1, 2], [4.0, 2.0]).mean)


def test_a_file_whose_proportions_cannot_be_is_refused(tmp_path, model):
    broken = replace(model.mixture, proportions=np.array([0.5, 0.6]))
    path = save_model(replace(model, mixture=broken), tmp_path / "broken.npz")
    with pytest.raises(ModelFileError, match="the proportions"):
        load_model(path)


def test_the_picture_is_of_the_mixtures_own_covariance(model):
    found = picture(model, bins=ITEMS)
    np.testing.assert_allclose(found.variances, model.gaussian.covariance.diagonal(), rtol=1e-5)
    order = found.order_items["popularity"]
    expected = model.gaussian.covariance.submatrix(order, order)
    np.testing.assert_allclose(found.covariance["popularity"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_the_cost_is_of_all_components(form):
    sizes = np.full(50, 20)
    one = estimate(sizes, 100, form=form, threads=1)
    three = estimate(sizes, 100, form=form, threads=1, components=3)
    assert three.flops == pytest.approx(3 * one.flops)
    gaussians = 50 * 100 * 8 if form == "factor" else 100**2 * 8
    assert three.memory_bytes >= 8 * gaussians  # three and their common one, twice


def test_an_experiment_takes_it_by_name():
    config = ExperimentConfig(
        data="sample",
        protocol="strong",
        filter=Filter(20, 2, 60),
        fit=FitSettings(model="mixture", components=3, iterations=2),
        repetitions=1,
    )
    result, running = run_experiment(config)
    assert 0 < result["summary"]["nmae"] < 1
    assert isinstance(running.model(), MixtureModel)


def test_a_worker_goes_on_with_a_cancelled_run_to_the_same_figures(tmp_path):
    config = small(model="mixture", components=2, iterations=8)
    quiet, store = Store(tmp_path / "quiet"), Store(tmp_path / "noisy")
    expected, run = quiet.submit(config), store.submit(config)
    work(quiet, idle_seconds=0, polite=False)
    with cancelled_when(store, run.id, lambda record: record.iteration >= 3):
        work(store, idle_seconds=0, polite=False)
    assert store.run(run.id).state == "cancelled"
    partial = store.model(run.id)
    assert isinstance(partial, MixtureModel) and 3 <= partial.iteration < 8
    store.resume(run.id)
    work(store, idle_seconds=0, polite=False)
    assert figures(store, run.id) == figures(quiet, expected.id)
    assert len(artifacts.picture_index(store.folder(run.id))) == 8
