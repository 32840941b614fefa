"""A Gaussian of low rank: against dense references, what never falls, and ordered ratings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gmc_core.base.errors import ConfigError
from gmc_core.gaussian import factor as module
from gmc_core.gaussian.covariance import DenseCovariance, FactoredCovariance
from gmc_core.gaussian.em import initial_state
from gmc_core.gaussian.estep import e_step, predict_pairs
from gmc_core.gaussian.exact import ExactOptions, exact_em
from gmc_core.gaussian.factor import FactorEm, FactorOptions, believe
from gmc_core.gaussian.folding import fold_in_latent
from gmc_core.gaussian.iterate import iterate
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.lowrank import LoadingsPrior
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.ordinal import LatentResponses, OrdinalScale
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.signals import Signals

USERS, ITEMS, RANK = 40, 12, 3
OWN, NOISE = 0.2, 0.5
TEAM = ThreadPool(2)


def table(fill: float = 0.5, users: int = USERS, items: int = ITEMS, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(users, RANK)) @ rng.normal(size=(RANK, items)) * 0.6
    full = 3 + taste + rng.normal(size=(users, items)) * 0.7
    full[rng.random(full.shape) > fill] = np.nan
    full[:, 0] = np.where(np.arange(users) == 0, 3.0, np.nan)  # an item with one rating
    full[1] = np.nan  # a user without
    return full


def signals_of(covariates: bool = False, **how) -> Signals:
    signals = Signals.of_table(table(**how))
    if not covariates:
        return signals
    known = np.random.default_rng(5).normal(size=(signals.count, 2))
    return replace(signals, covariates=known - known.mean(axis=0))


def gaussian_of(dtype: str = "float64", coefficients: bool = False) -> Gaussian:
    rng = np.random.default_rng(1)
    factor = rng.normal(size=(ITEMS, RANK)).astype(dtype)
    effects = factor.astype(float) @ rng.normal(size=(RANK, 2)) if coefficients else None
    covariance = FactoredCovariance(factor, OWN, low_rank=True)
    return Gaussian(rng.normal(3, 0.3, ITEMS), covariance, effects)


def dense(gaussian: Gaussian) -> Gaussian:
    every = np.arange(gaussian.dimension)
    matrix = gaussian.covariance.submatrix(every, every)
    return replace(gaussian, covariance=DenseCovariance(matrix))


def options_of(strength: float = 20.0, **more) -> FactorOptions:
    loadings = np.random.default_rng(2).normal(size=(ITEMS, RANK)) * 0.5
    return FactorOptions(LoadingsPrior(strength, loadings), OWN, **more)


def noise_of(variance: float = NOISE, size: int = ITEMS) -> Noise:
    return Noise.of(variance, size)


def expected_of_factors(signals: Signals, gaussian: Gaussian):
    """(M, R) E[x], (M, R, R) covariances, by dense matrices."""
    loadings, rank = gaussian.covariance.factor.astype(float), RANK
    means, spreads = np.zeros((signals.count, rank)), np.zeros((signals.count, rank, rank))
    effects = None
    if gaussian.coefficients is not None:
        effects = np.linalg.lstsq(loadings, gaussian.coefficients, rcond=None)[0]
    for i in range(signals.count):
        own = slice(signals.indptr[i], signals.indptr[i + 1])
        W, items = loadings[signals.indices[own]], signals.indices[own]
        start = np.zeros(rank) if effects is None else effects @ signals.covariates[i]
        inverse = np.linalg.inv(np.eye(rank) + W.T @ W / (OWN + NOISE))
        left = signals.values[own] - gaussian.mean[items] - W @ start
        means[i], spreads[i] = start + inverse @ W.T @ left / (OWN + NOISE), inverse
    return means, spreads


@pytest.mark.parametrize("covariates", [False, True])
def test_the_e_step_is_that_of_the_dense_gaussian(covariates):
    signals, gaussian = signals_of(covariates), gaussian_of(coefficients=covariates)
    found, sums = believe(signals, gaussian, noise_of(), TEAM, sums=True)
    reference = e_step(signals, dense(gaussian), noise_of(), TEAM)
    np.testing.assert_allclose(found.weights, reference.weights, atol=1e-10)
    assert found.log_likelihood == pytest.approx(reference.log_likelihood, abs=1e-8)
    means, spreads = expected_of_factors(signals, gaussian)
    np.testing.assert_allclose(sums.factors, means, atol=1e-10)
    whole = spreads.sum(axis=0) + means.T @ means
    np.testing.assert_allclose(sums.whole, whole, atol=1e-8)
    rows, columns = np.tril_indices(RANK + 1)
    for item in range(ITEMS):
        raters = signals.owners[signals.indices == item]
        x = np.hstack([means[raters], np.ones((len(raters), 1))])
        second = x.T @ x
        second[:RANK, :RANK] += spreads[raters].sum(axis=0)
        np.testing.assert_allclose(sums.moments[item], second[rows, columns], atol=1e-8)
        left = signals.values[signals.indices == item] - gaussian.mean[item]
        np.testing.assert_allclose(sums.pulls[item], left @ x, atol=1e-8)


def test_the_m_step_is_the_regressions_it_is_said_to_be():
    signals, gaussian, options = signals_of(True), gaussian_of(coefficients=True), options_of()
    algorithm = FactorEm(signals, noise_of(), TEAM, options)
    state = replace(initial_state(signals, 3.0, "float64"), iteration=4, gaussian=gaussian)
    after, _ = algorithm.m_step(algorithm.resume(state), None)
    means, spreads = expected_of_factors(signals, gaussian)
    W, d, nu = gaussian.covariance.factor, OWN + NOISE, options.prior.strength
    V, size = options.prior.loadings, ITEMS
    T, K = V @ V.T + d * np.eye(size), W @ W.T + d * np.eye(size)
    beta = W.T @ np.linalg.inv(K)
    second = nu * (np.eye(RANK) - beta @ W + beta @ T @ beta.T)
    pulled = nu * T @ beta.T
    loadings, mean = np.zeros((size, RANK)), np.zeros(size)
    middle, kappa = signals.values.mean(), options.mean_strength
    for item in range(size):
        raters = signals.owners[signals.indices == item]
        x = np.hstack([means[raters], np.ones((len(raters), 1))])
        left = x.T @ x
        left[:RANK, :RANK] += spreads[raters].sum(axis=0) + second
        left[RANK, RANK] += kappa
        right = x.T @ signals.values[signals.indices == item]
        right[:RANK] += pulled[item]
        right[RANK] += kappa * middle
        *loadings[item], mean[item] = np.linalg.solve(left, right)
    c = signals.covariates
    effects = means.T @ c @ np.linalg.inv(c.T @ c + options.covariate_strength * np.eye(2))
    off = means - c @ effects.T
    spread = spreads.sum(axis=0) + off.T @ off + effects @ effects.T * options.covariate_strength
    spread = (spread + second) / (signals.count + nu)
    new = after.gaussian
    np.testing.assert_allclose(new.mean, mean, atol=1e-9)
    every = np.arange(size)
    np.testing.assert_allclose(
        new.covariance.submatrix(every, every),
        loadings @ spread @ loadings.T + OWN * np.eye(size), atol=1e-8,
    )  # fmt: skip
    np.testing.assert_allclose(new.coefficients, loadings @ effects, atol=1e-8)


@pytest.mark.parametrize("covariates", [False, True])
@pytest.mark.parametrize("strength", [0.0, 20.0])
def test_what_it_climbs_never_falls(covariates, strength):
    signals = signals_of(covariates)
    algorithm = FactorEm(signals, noise_of(), TEAM, options_of(strength))
    heights = [
        step.log_likelihood - algorithm.penalty(step.state.gaussian)
        for step in iterate(algorithm, initial_state(signals, 3.0, "float64"), 25)
    ]
    assert np.all(np.diff(heights) > -1e-8 * abs(heights[0]))
    assert heights[-1] > heights[0] + 1


def test_with_as_many_factors_as_items_it_ends_where_exact_em_does():
    signals = Signals.of_table(table(users=80, items=5, fill=0.8)[:, 1:])
    noise, start = noise_of(0.3, 4), initial_state(signals, 3.0, "float64")
    options = FactorOptions(LoadingsPrior(0.0, np.eye(4)), 0.0, mean_strength=1e-9)
    *_, low = iterate(FactorEm(signals, noise, TEAM, options), start, 1000)
    found = exact_em(
        signals, start, epsilon=0.0, iterations=1000, noise=noise, team=TEAM,
        options=ExactOptions(warm_epsilon=0.3),
    )  # fmt: skip
    *_, full = found
    assert low.log_likelihood == pytest.approx(full.log_likelihood, abs=1e-6)
    every = np.arange(4)
    np.testing.assert_allclose(
        low.state.gaussian.covariance.submatrix(every, every),
        full.state.gaussian.covariance.submatrix(every, every), atol=1e-6,
    )  # fmt: skip


def ordered() -> tuple[Signals, OrdinalScale]:
    signals = signals_of()
    grades = np.clip(np.round(signals.values), 1, 5)
    return replace(signals, values=grades), OrdinalScale.of(grades)


@pytest.mark.parametrize(("dtype", "near"), [("float64", 1e-6), ("float32", 1e-3)])
def test_latent_responses_are_those_of_the_dense_gaussian(dtype, near):
    signals, scale = ordered()
    gaussian = gaussian_of(dtype)
    weights, latent = fold_in_latent(signals, gaussian, noise_of(), TEAM, scale)
    reference = fold_in_latent(signals, dense(gaussian), noise_of(), TEAM, scale)
    np.testing.assert_allclose(latent, reference[1], atol=near)
    np.testing.assert_allclose(weights, reference[0], atol=near * 10)


def test_predictions_of_pairs_are_those_of_the_dense_gaussian():
    signals, gaussian = signals_of(True), gaussian_of(coefficients=True)
    weights = e_step(signals, gaussian, noise_of(), TEAM).weights
    users, items = (grid.ravel() for grid in np.mgrid[:USERS, :ITEMS])
    found = predict_pairs(signals, weights, gaussian, users, items, TEAM)
    reference = predict_pairs(signals, weights, dense(gaussian), users, items, TEAM)
    np.testing.assert_allclose(found, reference, atol=1e-10)


def iterated(signals, latent, dtype="float64", iterations=6, start=None):
    algorithm = FactorEm(signals, noise_of(), TEAM, options_of(latent=latent))
    return list(iterate(algorithm, start or initial_state(signals, 3.0, dtype), iterations))


@pytest.mark.parametrize("with_grades", [False, True])
def test_a_resumed_run_goes_on_to_the_same_result(with_grades):
    signals, scale = ordered()
    latent = LatentResponses(scale, signals.values) if with_grades else None
    whole = iterated(signals, latent)
    rest = iterated(signals, latent, start=whole[2].state)
    assert len(rest) == 3
    assert np.array_equal(rest[-1].state.weights, whole[-1].state.weights)
    assert rest[-1].log_likelihood == whole[-1].log_likelihood


def test_users_in_blocks_and_single_precision_change_only_rounding(monkeypatch):
    signals, scale = ordered()
    latent = LatentResponses(scale, signals.values)
    whole = iterated(signals, latent)[-1].state
    single = iterated(signals, latent, "float32")[-1].state
    assert single.weights.dtype == np.float32
    np.testing.assert_allclose(single.weights, whole.weights, atol=2e-3)
    monkeypatch.setattr(module, "BLOCK_BYTES", 1)
    blocks = iterated(signals, latent)[-1].state
    np.testing.assert_allclose(blocks.weights, whole.weights, atol=1e-7)


def test_noise_that_is_no_single_variance_is_refused():
    with pytest.raises(ConfigError, match="one noise variance"):
        FactorEm(signals_of(), Noise.of(np.full(ITEMS, 0.5), ITEMS), TEAM, options_of())
