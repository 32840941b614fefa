"""Exact EM: the likelihood never falls, the dense reference agrees, a planted Gaussian is found."""

from __future__ import annotations

import itertools

import dense_reference as dense
import numpy as np
import pytest
from making import random_table, signals_of

from gmc_core.base.errors import ConfigError, NumericalError
from gmc_core.gaussian.em import initial_state, map_em
from gmc_core.gaussian.exact import ExactOptions, Prior, exact_em, step_length
from gmc_core.gaussian.iterate import EmState
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.signals import Layout, Signals

PRIOR = Prior(7.0, np.random.default_rng(5).normal(size=(9, 2)), np.full(9, 0.2))


def table(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    return random_table(40, 9, 0.5, seed)


def steps(signals, *, noise=0.3, epsilon=0.01, iterations=12, threads=1, start=None, **more):
    start = start or initial_state(signals, 3.0, "float64")
    noise = Noise.of(noise, signals.dimension)
    return list(
        exact_em(
            signals, start, epsilon=epsilon, iterations=iterations, noise=noise,
            team=ThreadPool(threads), options=ExactOptions(**more),
        )
    )  # fmt: skip


def one_dense_step(values, known, mean, covariance, noise, epsilon, prior):
    """(μ, Σ) → (μ', Σ') from the definition, user by user."""
    filled, posterior = np.zeros(values.shape), np.zeros_like(covariance)
    for user, observed in enumerate(known):
        U = dense.masking_operator(observed)
        Sigma_w = noise * np.eye(len(mean))
        filled[user] = dense.map_estimate(values[user, observed], U, mean, covariance, Sigma_w)
        posterior += dense.posterior_covariance(U, covariance, Sigma_w)
    new, count = filled.mean(axis=0), len(values)
    second = (filled - new).T @ (filled - new) + posterior
    if prior is not None:
        target = prior.factor @ prior.factor.T + np.diag(prior.diagonal)
        second += prior.strength * target
        count += prior.strength
    return new, second / count + epsilon * np.eye(len(mean))


@pytest.mark.parametrize("prior", [None, PRIOR], ids=["likelihood", "prior"])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_agrees_with_the_dense_definition(prior, noise):
    values, known = table()
    signals = signals_of(values, known)
    epsilon = 0.05
    before = None
    for step in steps(signals, noise=noise, epsilon=epsilon, prior=prior):
        gaussian = step.state.gaussian
        if before is not None:
            mean, covariance = one_dense_step(values, known, *before, noise, epsilon, prior)
            np.testing.assert_allclose(gaussian.mean, mean, atol=1e-8)
            np.testing.assert_allclose(gaussian.covariance.matrix, covariance, atol=1e-8)
        before = (gaussian.mean, gaussian.covariance.matrix.copy())


@pytest.mark.parametrize("prior", [None, PRIOR], ids=["likelihood", "prior"])
@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_the_penalised_likelihood_never_falls(prior, epsilon):
    signals = signals_of(*table())
    strength = 0.0 if prior is None else prior.strength
    values = []
    for step in steps(signals, epsilon=epsilon, iterations=40, prior=prior):
        covariance = step.state.gaussian.covariance.matrix
        penalty = 0.0 if prior is None else prior.penalty(covariance)
        weight = (signals.count + strength) * epsilon / 2
        penalty += weight * np.trace(np.linalg.inv(covariance))
        values.append(step.log_likelihood - penalty)
    # The first step is the paper's.
    assert np.diff(values)[1:].min() > -1e-9 * abs(values[-1])
    assert values[-1] > values[1] + 1


def planted(users: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(6, 2))
    covariance = factor @ factor.T + 0.5 * np.eye(6)
    mean = rng.normal(size=6) + 3
    values = rng.multivariate_normal(mean, covariance, size=users)
    return values, rng.random((users, 6)) < 0.5, mean, covariance


def test_a_planted_gaussian_is_found_where_the_papers_m_step_underestimates_it():
    values, known, mean, covariance = planted(2500, 3)
    indices = [np.flatnonzero(row) for row in known]
    signals = Signals(
        Layout("rows", *values.shape),
        np.concatenate([[0], np.cumsum(known.sum(axis=1))]).astype(np.int64),
        np.concatenate(indices).astype(np.int32),
        values[known],
    )
    exact = steps(signals, noise=0.0, epsilon=0.0, iterations=60, relaxation=2.5)[-1]
    found = exact.state.gaussian
    # Sampling error of a covariance from half of 2,500 users: a few per cent.
    np.testing.assert_allclose(found.mean, mean, atol=0.15)
    assert np.linalg.norm(found.covariance.matrix - covariance) < 0.1 * np.linalg.norm(covariance)
    paper = list(
        map_em(
            signals, initial_state(signals, 3.0, "float64"), epsilon=1e-6, iterations=30,
            noise=Noise.of(0.0, 6), team=ThreadPool(1),
        )
    )[-1].state.gaussian  # fmt: skip
    true, short = np.trace(covariance), np.trace(paper.covariance.submatrix(*2 * [np.arange(6)]))
    assert short < 0.9 * true
    assert abs(np.trace(found.covariance.matrix) - true) < 0.06 * true


def test_relaxation_ends_at_the_same_place_in_fewer_iterations():
    signals = signals_of(*table())
    plain = steps(signals, iterations=500, prior=PRIOR)[-1]
    quick = steps(signals, iterations=120, prior=PRIOR, relaxation=5.0)
    matrix = quick[-1].state.gaussian.covariance.matrix
    np.testing.assert_allclose(matrix, plain.state.gaussian.covariance.matrix, atol=0.02)
    slow = steps(signals, iterations=30, prior=PRIOR)[-1]
    assert quick[29].log_likelihood - PRIOR.penalty(
        quick[29].state.gaussian.covariance.matrix
    ) > slow.log_likelihood - PRIOR.penalty(slow.state.gaussian.covariance.matrix)


def test_a_relaxed_step_that_would_leave_the_cone_is_not_relaxed():
    rng = np.random.default_rng(0)
    values = 3 + 1e-3 * rng.normal(size=(30, 4))  # Σ must shrink a lot, and all is known
    signals = signals_of(values, np.ones(values.shape, bool))
    start = steps(signals, iterations=2, epsilon=1.0)[-1].state
    found = steps(signals, iterations=12, epsilon=0.0, relaxation=8.0, start=start)
    for step in found:
        assert np.linalg.eigvalsh(step.state.gaussian.covariance.matrix)[0] > 0
    plain = steps(signals, iterations=3, epsilon=0.0, start=start)[0].state.gaussian
    old, new = start.gaussian, found[0].state.gaussian
    moved = plain.covariance.matrix - old.covariance.matrix
    length = ((new.covariance.matrix - old.covariance.matrix) / moved).ravel()
    # The whole length would leave the cone; half of what it has beyond EM's need not.
    full = step_length(8.0, 1)
    assert np.ptp(length) < 1e-6
    shares = [1.0, (full + 3) / 4, (full + 1) / 2, full]
    assert min(abs(length[0] - share) for share in shares) < 1e-6
    reach = old.covariance.matrix + full * moved
    assert (length[0] < full) == (np.linalg.eigvalsh(reach)[0] <= 0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_threads_do_not_change_the_result(dtype):
    signals = signals_of(*random_table(300, 60, 0.4, 2))
    start = initial_state(signals, 3.0, dtype)
    one, two = (
        steps(signals, start=start, iterations=5, threads=threads)[-1].state for threads in (1, 2)
    )
    tolerance = 1e-9 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(
        one.gaussian.covariance.matrix, two.gaussian.covariance.matrix, rtol=tolerance, atol=1e-9
    )


def test_an_interrupted_run_goes_on_to_the_same_result():
    signals = signals_of(*table())
    whole = steps(signals, iterations=9, prior=PRIOR, relaxation=2.4, warm=3)
    for stop in (1, 3, 4, 6):
        half = steps(signals, iterations=stop, prior=PRIOR, relaxation=2.4, warm=3)[-1].state
        more = steps(
            signals, iterations=9, prior=PRIOR, relaxation=2.4, warm=3,
            start=EmState(half.iteration, half.gaussian, half.weights),
        )  # fmt: skip
        assert np.array_equal(
            more[-1].state.gaussian.covariance.matrix, whole[-1].state.gaussian.covariance.matrix
        )


def test_errors_say_what_to_do():
    signals = signals_of(*table())
    with pytest.raises(ConfigError, match="at least one iteration"):
        steps(signals, warm=0)
    with pytest.raises(ConfigError, match="strength"):
        Prior(-1.0, PRIOR.factor, PRIOR.diagonal)
    everyone = signals_of(np.full((5, 3), 3.0), np.ones((5, 3), bool))
    with pytest.raises(NumericalError, match=r"Iteration \d+: .*Raise ε"):
        steps(everyone, noise=0.0, epsilon=0.0)


def dense_noise(values, known, mean, covariance, noise):
    """Mean of E[(y - f)²] over the ratings, from the definition."""
    total = 0.0
    for user, observed in enumerate(known):
        U = dense.masking_operator(observed)
        Sigma_w = noise * np.eye(len(mean))
        y = values[user, observed]
        left = y - dense.map_estimate(y, U, mean, covariance, Sigma_w)[observed]
        own = dense.posterior_covariance(U, covariance, Sigma_w)
        total += left @ left + np.diagonal(own)[observed].sum()
    return total / known.sum()


@pytest.mark.parametrize("prior", [None, PRIOR], ids=["likelihood", "prior"])
def test_learned_noise_agrees_with_the_dense_definition(prior):
    values, known = table()
    before = None
    for step in steps(signals_of(values, known), iterations=8, prior=prior, learn_noise=True):
        state = step.state
        if before is not None:
            assert state.noise == pytest.approx(dense_noise(values, known, *before), abs=1e-8)
        before = (state.gaussian.mean, state.gaussian.covariance.matrix.copy(), state.noise)


@pytest.mark.parametrize("prior", [None, PRIOR], ids=["likelihood", "prior"])
def test_the_penalised_likelihood_never_falls_while_the_noise_is_learned(prior):
    signals = signals_of(*table())
    values = []
    for step in steps(signals, epsilon=0.0, iterations=60, prior=prior, learn_noise=True):
        matrix = step.state.gaussian.covariance.matrix
        values.append(step.log_likelihood - (0.0 if prior is None else prior.penalty(matrix)))
    assert np.diff(values)[1:].min() > -1e-9 * abs(values[-1])


def test_planted_noise_is_found():
    rng = np.random.default_rng(8)
    factor = rng.normal(size=(8, 2))
    values = 3 + rng.normal(size=(3000, 2)) @ factor.T + 0.6 * rng.normal(size=(3000, 8))
    signals = signals_of(values, rng.random(values.shape) < 0.8)
    # Σ and the noise are only told apart where Σ is held near rank 2.
    prior = Prior(1e5, factor, np.full(8, 1e-3))
    last = steps(
        signals, noise=2.0, epsilon=0.0, iterations=60, prior=prior, learn_noise=True,
        relaxation=2.5,
    )[-1]  # fmt: skip
    assert last.state.noise == pytest.approx(0.36, rel=0.05)


def test_a_run_with_learned_noise_goes_on_to_the_same_result():
    signals = signals_of(*table())
    more = dict(prior=PRIOR, relaxation=2.4, warm=3, learn_noise=True)
    whole = steps(signals, iterations=9, **more)[-1].state
    for stop in (1, 3, 4, 6):
        half = steps(signals, iterations=stop, **more)[-1].state
        rest = steps(signals, iterations=9, start=half, **more)[-1].state
        assert rest.noise == whole.noise != 0.3
        assert np.array_equal(rest.gaussian.covariance.matrix, whole.gaussian.covariance.matrix)


def test_learning_needs_a_variance_to_begin_with():
    with pytest.raises(ConfigError, match="one variance above 0"):
        steps(signals_of(*table()), noise=0.0, learn_noise=True)


def test_four_steps_reduce_the_error_as_far_as_four_can():
    for longest in (1.0, 1.7, 5.0, 8.0):
        lengths = np.array([step_length(longest, done) for done in range(8)])
        assert np.array_equal(lengths[:4], lengths[4:])
        assert lengths.max() == pytest.approx(longest) and lengths.min() >= 1
        assert lengths.argmax() == 2 or longest == 1
        # The least of all polynomials of degree 4 with p(0) = 1 on [a, 1] is Chebyshev's.
        nodes = np.sort(1 / lengths[:4])
        a = (nodes[0] - (1 - np.cos(np.pi / 8)) / 2) * 2 / (1 + np.cos(np.pi / 8))
        x = np.linspace(a, 1, 1001)
        left = np.abs(np.prod(1 - x[:, None] * lengths[:4], axis=1)).max()
        if longest > 1:
            best = 1 / np.polynomial.chebyshev.chebval((1 + a) / (1 - a), [0, 0, 0, 0, 1])
            assert left == pytest.approx(best, rel=1e-6)


def test_relaxed_steps_have_these_lengths():
    signals = signals_of(*table())
    states = [step.state for step in steps(signals, iterations=7, prior=PRIOR, relaxation=2.5)]
    for done, (before, relaxed) in enumerate(itertools.pairwise(states)):
        length = step_length(2.5, done)
        plain = steps(signals, iterations=before.iteration + 1, prior=PRIOR, start=before)[-1].state
        old, found, wanted = (
            state.gaussian.covariance.matrix for state in (before, relaxed, plain)
        )
        np.testing.assert_allclose(found - old, length * (wanted - old), atol=1e-9)
        np.testing.assert_allclose(
            relaxed.gaussian.mean - before.gaussian.mean,
            length * (plain.gaussian.mean - before.gaussian.mean),
            atol=1e-9,
        )
