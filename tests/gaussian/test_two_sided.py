"""Two-sided EM: the bound never falls, the dense definition agrees, planted users are found."""

from __future__ import annotations

from dataclasses import replace

import dense_reference as dense
import numpy as np
import pytest
from making import random_table, signals_of

from gmc_core.base.errors import ConfigError
from gmc_core.gaussian.em import initial_state
from gmc_core.gaussian.estep import predict_pairs
from gmc_core.gaussian.exact import ExactEm, ExactOptions, Prior
from gmc_core.gaussian.iterate import iterate
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.lowrank import LoadingsPrior
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.ordinal import LatentResponses, OrdinalScale
from gmc_core.gaussian.two_sided import TwoSidedEm

USERS, ITEMS, RANK, NOISE = 30, 9, 3, 0.4


def start_of_users(seed=4):
    return LoadingsPrior(6.0, 0.4 * np.random.default_rng(seed).normal(size=(USERS, RANK)))


def algorithm(signals, prior, *, threads=1, **options):
    noise = Noise.of(NOISE, signals.dimension)
    options = ExactOptions(**{"prior": _items(signals.dimension), **options})
    return TwoSidedEm(signals, 0.0, noise, ThreadPool(threads), options, prior)


def _items(size):
    return Prior(7.0, np.full((size, 1), 0.4), np.full(size, 0.2))


def steps(signals, prior, iterations=8, start=None, **options):
    start = start or initial_state(signals, 3.0, "float64")
    return list(iterate(algorithm(signals, prior, **options), start, iterations))


def test_the_bound_is_that_of_the_definition_and_never_falls():
    """The bound less the penalties, from dense matrices: E over q(g) q(x) of log p(z, g, x), plus
    the entropies."""
    values, known = random_table(USERS, ITEMS, 0.5, 1)
    signals, prior = signals_of(values, known), start_of_users()
    before = -np.inf
    for step in steps(signals, prior, iterations=25):
        state = step.state
        if state.users is None:
            continue
        gaussian, W, X = state.gaussian, state.users.loadings, state.users.factors
        covariance, bound = gaussian.covariance.matrix, 0.0
        for u in range(USERS):
            o = np.flatnonzero(known[u])
            K = covariance[np.ix_(o, o)] + NOISE * np.eye(len(o))
            bound += dense.log_gaussian(values[u, o], gaussian.mean[o] + X[o] @ W[u], K)
        for i in range(ITEMS):
            own = W[known[:, i]]
            C = np.linalg.inv(np.eye(RANK) + own.T @ own / NOISE)
            bound -= np.trace(own @ C @ own.T) / (2 * NOISE)
            log_det = np.linalg.slogdet(C)[1]
            bound -= 0.5 * (np.trace(C) + X[i] @ X[i] - RANK - log_det)
        np.testing.assert_allclose(step.log_likelihood, bound, rtol=1e-10)
        now = bound - prior.penalty(W, NOISE) - _items(ITEMS).penalty(covariance)
        assert now >= before - 1e-8
        before = now
    assert np.isfinite(before)


def test_an_iteration_is_that_of_the_definition():
    """W and x from the residuals of the state before, one user and one item at a time."""
    values, known = random_table(USERS, ITEMS, 0.5, 2)
    signals, prior = signals_of(values, known), start_of_users()
    found = [step.state for step in steps(signals, prior, iterations=5)]
    old, new = found[-2], found[-1]
    W, X = old.users.loadings, old.users.factors
    left = np.zeros((USERS, ITEMS))
    left[known] = NOISE * old.weights + (W @ X.T)[known]
    P, p = prior.terms(W, NOISE)
    spreads = [np.linalg.inv(np.eye(RANK) + W[k].T @ W[k] / NOISE) for k in known.T]
    for u in range(USERS):
        o = np.flatnonzero(known[u])
        second = NOISE * P + sum((spreads[i] + np.outer(X[i], X[i]) for i in o), np.zeros_like(P))
        linear = NOISE * p[u] + left[u, o] @ X[o]
        np.testing.assert_allclose(
            new.users.loadings[u], np.linalg.solve(second, linear), atol=1e-8
        )
    for i in range(ITEMS):
        own = new.users.loadings[known[:, i]]
        mean = np.linalg.solve(own.T @ own + NOISE * np.eye(RANK), own.T @ left[known[:, i], i])
        np.testing.assert_allclose(new.users.factors[i], mean, atol=1e-8)


def planted(seed=0, users=40, items=200):
    """Few users and many items, so that which items go together cannot be learned, and something
    that is known of the users: their tastes, as noisy as they are wide."""
    rng = np.random.default_rng(seed)
    tastes = rng.normal(size=(users, 2))
    truth = 3 + tastes @ rng.normal(size=(2, items))
    noisy = truth + rng.normal(scale=np.sqrt(NOISE), size=truth.shape)
    known = rng.random(truth.shape) < 0.25
    known[0] = True
    return truth, noisy, known, tastes + rng.normal(size=tastes.shape)


def test_what_users_have_in_common_is_found():
    truth, noisy, known, features = planted()
    signals, pairs = signals_of(noisy, known), np.nonzero(~known)
    noise, errors = Noise.of(NOISE, signals.dimension), []
    options = ExactOptions(prior=_items(signals.dimension))
    for chosen in (
        ExactEm(signals, 0.0, noise, ThreadPool(1), options),
        TwoSidedEm(signals, 0.0, noise, ThreadPool(1), options, LoadingsPrior(6.0, features)),
    ):
        state = list(iterate(chosen, initial_state(signals, 3.0, "float64"), 10))[-1].state
        found = predict_pairs(signals, state.weights, state.gaussian, *pairs, ThreadPool(1))
        users = getattr(state, "users", None)
        if users is not None:
            found = found + users.at(*pairs, ThreadPool(1))
        errors.append(float(np.sqrt(np.mean((found - truth[pairs]) ** 2))))
    assert errors[1] < 0.93 * errors[0]


@pytest.mark.parametrize("ordered", [False, True])
def test_an_interrupted_fit_goes_on_to_the_same_digits(ordered):
    values, known = random_table(USERS, ITEMS, 0.6, 3)
    signals, prior = signals_of(values, known), start_of_users()
    options = {"relaxation": 5.0}
    start = initial_state(signals, 3.0, "float64")
    if ordered:
        options["latent"] = LatentResponses(OrdinalScale.of(signals.values), signals.values)
        guess = replace(signals, values=options["latent"].first_guess)
        start = initial_state(guess, 3.0, "float64")
    whole = steps(signals, prior, 7, start, **options)
    for at in (1, 2, 5):  # in the warm-up's place, at its end, and later
        rest = steps(signals, prior, 7, whole[at - 1].state, **options)
        assert [step.log_likelihood for step in rest] == [
            step.log_likelihood for step in whole[at:]
        ]
        for name in ("loadings", "factors"):
            left, right = (getattr(run[-1].state.users, name) for run in (rest, whole))
            np.testing.assert_array_equal(left, right)
        np.testing.assert_array_equal(rest[-1].state.weights, whole[-1].state.weights)


def test_the_order_of_users_and_items_does_not_matter():
    values, known = random_table(USERS, ITEMS, 0.5, 5)
    rng = np.random.default_rng(6)
    users, items = rng.permutation(USERS), rng.permutation(ITEMS)
    prior = start_of_users()
    turned = LoadingsPrior(prior.strength, prior.loadings[users])
    first = steps(signals_of(values, known), prior, 6)[-1].state
    at = np.ix_(users, items)
    second = steps(signals_of(values[at], known[at]), turned, 6, threads=2)[-1].state
    np.testing.assert_allclose(second.users.loadings, first.users.loadings[users], atol=1e-8)
    np.testing.assert_allclose(second.users.factors, first.users.factors[items], atol=1e-8)
    np.testing.assert_allclose(second.gaussian.mean, first.gaussian.mean[items], atol=1e-8)


def test_the_noise_is_one_variance():
    signals = signals_of(*random_table(USERS, ITEMS, 0.5, 1))
    for noise, learn in ((0.0, False), (np.full(ITEMS, 0.3), False), (0.3, True)):
        with pytest.raises(ConfigError):
            TwoSidedEm(
                signals, 0.0, Noise.of(noise, ITEMS), ThreadPool(1),
                ExactOptions(learn_noise=learn), start_of_users(),
            )  # fmt: skip
