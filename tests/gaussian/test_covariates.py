"""Covariates of the mean: one Gaussian over signal and covariates is the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from making import random_table, signals_of

from gmc_core.base.errors import ConfigError
from gmc_core.gaussian.covariance import DenseCovariance
from gmc_core.gaussian.covariates import shifts
from gmc_core.gaussian.em import initial_state
from gmc_core.gaussian.exact import ExactOptions, Prior, exact_em
from gmc_core.gaussian.iterate import EmState
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.parameters import Gaussian

USERS, ITEMS, GROUPS = 40, 9, 3
PRIOR = Prior(7.0, np.random.default_rng(5).normal(size=(ITEMS, 2)), np.full(ITEMS, 0.2))


def design(seed: int = 3) -> np.ndarray:
    members = (np.random.default_rng(seed).random((USERS, GROUPS)) < [0.3, 0.5, 0.6]).astype(float)
    return members - members.mean(axis=0)


def table() -> tuple[np.ndarray, np.ndarray]:
    return random_table(USERS, ITEMS, 0.5, 1)


def run(signals, x, strength, *, start=None, iterations=12, epsilon=0.0, **more):
    noise = more.pop("noise", Noise.of(0.3, ITEMS))
    options = ExactOptions(**(dict(prior=PRIOR, covariate_strength=strength) | more))
    start = start or EmState(
        1, Gaussian(np.full(ITEMS, 3.0), DenseCovariance(np.eye(ITEMS))), np.zeros(0)
    )
    return list(
        exact_em(
            replace(signals, covariates=x), start, epsilon=epsilon, iterations=iterations,
            noise=noise, team=ThreadPool(1), options=options,
        )
    )  # fmt: skip


def joint_steps(values, known, x, strength, iterations):
    """Dense EM of one Gaussian over (f, x), x observed without noise, seen as (μ, Σ, B) of f | x.

    The prior's target has nothing between f and x, and λ Id for x.
    """
    size, groups = values.shape[1], x.shape[1]
    # Anything positive for x: the M-step does not know of it, as x is observed.
    covariance = np.eye(size + groups)
    mean = np.concatenate([np.full(size, 3.0), np.zeros(groups)])
    target = np.zeros_like(covariance)
    target[:size, :size] = PRIOR.strength * (
        PRIOR.factor @ PRIOR.factor.T + np.diag(PRIOR.diagonal)
    )
    target[size:, size:] = strength * np.eye(groups)
    for _ in range(iterations):
        filled = np.zeros((len(values), size + groups))
        second = target.copy()
        for user, observed in enumerate(known):
            o = np.concatenate([np.flatnonzero(observed), size + np.arange(groups)])
            y = np.concatenate([values[user, observed], x[user]])
            noise = np.diag(np.concatenate([np.full(observed.sum(), 0.3), np.zeros(groups)]))
            gain = covariance[:, o] @ np.linalg.inv(covariance[np.ix_(o, o)] + noise)
            filled[user] = mean + gain @ (y - mean[o])
            second += covariance - gain @ covariance[o]
        mean = filled.mean(axis=0)
        second += (filled - mean).T @ (filled - mean)
        covariance = second / (len(values) + PRIOR.strength)
        f, g = np.arange(size), size + np.arange(groups)
        regression = covariance[np.ix_(f, g)] @ np.linalg.inv(covariance[np.ix_(g, g)])
        left = covariance[np.ix_(f, f)] - regression @ covariance[np.ix_(g, f)]
        yield mean[:size], left, regression


@pytest.mark.parametrize("strength", [0.5, 20.0])
def test_agrees_with_one_gaussian_over_signal_and_covariates(strength):
    values, known = table()
    x = design()
    found = run(signals_of(values, known), x, strength)
    expected = list(joint_steps(values, known, x, strength, len(found)))
    for step, (mean, covariance, coefficients) in zip(found, expected, strict=True):
        gaussian = step.state.gaussian
        np.testing.assert_allclose(gaussian.mean, mean, atol=1e-8)
        np.testing.assert_allclose(gaussian.covariance.matrix, covariance, atol=1e-8)
        np.testing.assert_allclose(gaussian.coefficients, coefficients, atol=1e-8)
    assert np.abs(expected[-1][2]).max() > 0.05


@pytest.mark.parametrize("prior", [None, PRIOR], ids=["likelihood", "prior"])
@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_the_penalised_likelihood_never_falls(prior, epsilon):
    x, signals = design(), signals_of(*table())
    weight = (USERS + (0.0 if prior is None else prior.strength)) * epsilon / 2
    values = []
    for step in run(signals, x, 5.0, iterations=40, epsilon=epsilon, prior=prior):
        gaussian = step.state.gaussian
        matrix, B = gaussian.covariance.matrix, gaussian.coefficients
        penalty = 0.0 if prior is None else prior.penalty(matrix)
        penalty += weight * np.trace(np.linalg.inv(matrix))
        penalty += 2.5 * np.trace(B.T @ np.linalg.solve(matrix, B))
        values.append(step.log_likelihood - penalty)
    assert np.diff(values).min() > -1e-9 * abs(values[-1])
    assert values[-1] > values[0] + 1


def test_planted_coefficients_are_found():
    rng = np.random.default_rng(2)
    members = (rng.random((3000, 2)) < [0.3, 0.6]).astype(float)
    x = members - members.mean(axis=0)
    factor = rng.normal(size=(6, 2))
    covariance = factor @ factor.T * 0.2 + 0.3 * np.eye(6)
    B = rng.normal(size=(6, 2))
    values = 3 + x @ B.T + rng.multivariate_normal(np.zeros(6), covariance, size=len(x))
    signals = signals_of(values, rng.random(values.shape) < 0.5)
    start = EmState(1, Gaussian(np.full(6, 3.0), DenseCovariance(np.eye(6))), np.zeros(0))
    found = run(
        signals, x, 1.0, start=start, iterations=80, prior=None,
        noise=Noise.of(0.0, 6), relaxation=2.5,
    )[-1].state.gaussian  # fmt: skip
    # Sampling error: sd of about sqrt(.6 / (3000 * .5 * .2)).
    np.testing.assert_allclose(found.coefficients, B, atol=0.2)
    # What the groups explain is not left in Σ.
    assert np.linalg.norm(found.covariance.matrix - covariance) < 0.15 * np.linalg.norm(covariance)


@pytest.mark.parametrize("relaxation", [1.0, 2.5])
def test_an_interrupted_run_goes_on_to_the_same_result(relaxation):
    x, signals = design(), signals_of(*table())
    settings = dict(relaxation=relaxation, warm=3, warm_epsilon=0.1)
    begin = initial_state(signals, 3.0, "float64")
    whole = run(signals, x, 5.0, iterations=9, start=begin, **settings)
    for stop in (2, 3, 4, 6):
        half = run(signals, x, 5.0, iterations=stop, start=begin, **settings)[-1].state
        more = run(signals, x, 5.0, iterations=9, start=half, **settings)[-1].state.gaussian
        last = whole[-1].state.gaussian
        assert np.array_equal(more.covariance.matrix, last.covariance.matrix)
        assert np.array_equal(more.coefficients, last.coefficients)


def test_shifts_are_the_product_at_the_pairs():
    rng = np.random.default_rng(0)
    x, B = rng.normal(size=(50, 4)), rng.normal(size=(30, 4))
    users, items = rng.integers(0, 50, 70_000), rng.integers(0, 30, 70_000)
    signals = replace(signals_of(np.zeros((50, 30)), np.ones((50, 30), bool)), covariates=x)
    gaussian = Gaussian(np.zeros(30), DenseCovariance(np.eye(30)), B)
    expected = (x @ B.T)[users, items]
    np.testing.assert_allclose(shifts(signals, gaussian, users, items), expected, atol=1e-12)
    assert shifts(signals, replace(gaussian, coefficients=None), users, items) is None


def test_float32_is_near_float64():
    x, signals = design(), signals_of(*table())
    found = []
    for dtype in ("float64", "float32"):
        begin = initial_state(signals, 3.0, dtype)
        settings = dict(start=begin, iterations=9, warm=3, warm_epsilon=0.1, relaxation=5.0)
        found.append(run(signals, x, 5.0, **settings)[-1].state.gaussian)
    exact, single = found
    assert single.covariance.dtype == np.float32 and single.coefficients.dtype == np.float64
    np.testing.assert_allclose(single.coefficients, exact.coefficients, atol=1e-4)
    np.testing.assert_allclose(single.covariance.matrix, exact.covariance.matrix, atol=1e-4)


@pytest.mark.parametrize(("x", "strength"), [(design() + 0.1, 5.0), (design(), 0.0)])
def test_covariates_that_are_none_are_refused(x, strength):
    with pytest.raises(ConfigError, match="add up to 0"):
        run(signals_of(*table()), x, strength)
