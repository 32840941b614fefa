"""W Wᵀ + D from partly observed vectors: the dense definition agrees, no step lowers the
likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from making import random_table, signals_of

from gmc_core.base.errors import ConfigError, NotPositiveDefiniteError
from gmc_core.gaussian.linalg.threads import Cancelled, ThreadPool
from gmc_core.gaussian.lowrank import (
    FactorPosteriors,
    LoadingsPrior,
    factor_e_step,
    loadings_m_step,
    products_at,
    transposed,
)

SIGNALS, SIZE, RANK = 30, 8, 3


def problem(seed=0):
    """Signals (the last without observations), W, and D, another for every coordinate."""
    values, known = random_table(SIGNALS, SIZE, 0.5, seed)
    known[-1] = False
    rng = np.random.default_rng(seed)
    return signals_of(values, known), rng.normal(size=(SIZE, RANK)), rng.uniform(0.2, 1, SIZE)


def unpacked(packed, rank=RANK):
    matrix = np.zeros((rank, rank))
    matrix[np.tril_indices(rank)] = packed
    return matrix + np.tril(matrix, -1).T


def own(signals, i):
    rows = slice(signals.indptr[i], signals.indptr[i + 1])
    return signals.indices[rows], signals.values[rows]


def test_the_posterior_is_that_of_the_dense_joint_gaussian():
    signals, W, D = problem()
    found = factor_e_step(signals, signals.values, W, D, ThreadPool(1))
    total = 0.0
    for i in range(signals.count):
        o, r = own(signals, i)
        K = W[o] @ W[o].T + np.diag(D[o])
        cross = W[o].T @ np.linalg.inv(K)
        np.testing.assert_allclose(found.means[i], cross @ r, atol=1e-10)
        np.testing.assert_allclose(
            unpacked(found.spreads[i]), np.eye(RANK) - cross @ W[o], atol=1e-10
        )
        sign, log_det = np.linalg.slogdet(K)
        np.testing.assert_allclose(found.log_det[i], log_det, atol=1e-9)
        total -= 0.5 * (r @ np.linalg.solve(K, r) + log_det + len(o) * np.log(2 * np.pi))
    np.testing.assert_allclose(found.log_likelihood(len(signals.values)), total, rtol=1e-12)


def test_the_m_step_maximises_the_expected_likelihood_with_the_prior():
    """Each row of W is the optimum of a quadratic, written out with dense matrices."""
    signals, W, D = problem()
    found = factor_e_step(signals, signals.values, W, D, ThreadPool(1))
    rng = np.random.default_rng(1)
    root = rng.normal(size=(RANK, RANK))
    P, p = root @ root.T, rng.normal(size=(SIZE, RANK))
    new = loadings_m_step(signals, signals.values, found, D, (P, p), ThreadPool(1))
    for j in range(SIZE):
        second, linear = D[j] * P, D[j] * p[j]
        for i in range(signals.count):
            o, r = own(signals, i)
            if j in o:
                second = second + unpacked(found.spreads[i]) + np.outer(*[found.means[i]] * 2)
                linear = linear + r[list(o).index(j)] * found.means[i]
        np.testing.assert_allclose(new[j], np.linalg.solve(second, linear), atol=1e-9)


def test_the_prior_is_as_many_signals_more_completely_observed():
    """Its terms are the moments of the dense E-step of signals with second moment T."""
    _, W, _ = problem()
    V, d, strength = np.random.default_rng(2).normal(size=(SIZE, 2)), 0.4, 5.0
    T = V @ V.T + d * np.eye(SIZE)
    beta = W.T @ np.linalg.inv(W @ W.T + d * np.eye(SIZE))
    P, p = LoadingsPrior(strength, V).terms(W, d)
    np.testing.assert_allclose(P, strength / d * (np.eye(RANK) - beta @ W + beta @ T @ beta.T))
    np.testing.assert_allclose(p, strength / d * T @ beta.T)
    K = W @ W.T + d * np.eye(SIZE)
    penalty = strength / 2 * (np.linalg.slogdet(K)[1] + np.trace(np.linalg.solve(K, T)))
    np.testing.assert_allclose(LoadingsPrior(strength, V).penalty(W, d), penalty)


def test_the_target_of_the_prior_is_its_optimum():
    _, W, _ = problem()
    prior = LoadingsPrior(5.0, W)
    P, p = prior.terms(W, 0.4)
    np.testing.assert_allclose(np.linalg.solve(P, p.T).T, W, atol=1e-10)
    assert prior.penalty(W, 0.4) < prior.penalty(1.1 * W, 0.4)


@pytest.mark.parametrize("strength", [0.0, 6.0])
def test_the_penalised_likelihood_never_falls(strength):
    signals, W, _ = problem()
    V = np.random.default_rng(3).normal(size=(SIZE, RANK))
    prior, noise, team = LoadingsPrior(strength, V), np.full(SIZE, 0.5), ThreadPool(1)
    before = -np.inf
    for _ in range(30):
        found = factor_e_step(signals, signals.values, W, noise, team)
        now = found.log_likelihood(len(signals.values)) - prior.penalty(W, 0.5)
        assert now >= before - 1e-9
        before = now
        terms = prior.terms(W, 0.5)
        W = loadings_m_step(signals, signals.values, found, noise, terms, team)


def test_threads_and_precision():
    signals, W, D = problem()
    one = factor_e_step(signals, signals.values, W, D, ThreadPool(1))
    two = factor_e_step(signals, signals.values, W, D, ThreadPool(2))
    np.testing.assert_array_equal(one.means, two.means)
    np.testing.assert_array_equal(one.spreads, two.spreads)
    single = factor_e_step(signals, signals.values, W.astype(np.float32), D, ThreadPool(1))
    assert single.means.dtype == single.spreads.dtype == np.float32
    np.testing.assert_allclose(single.means, one.means, atol=1e-4)
    penalty = np.eye(RANK), np.zeros((SIZE, RANK))
    rows = [
        loadings_m_step(signals, signals.values, found, D, penalty, ThreadPool(2))
        for found in (one, single)
    ]
    assert rows[1].dtype == np.float32
    np.testing.assert_allclose(rows[1], rows[0], atol=1e-3)


def test_coordinates_become_signals():
    signals, W, _ = problem()
    turned = transposed(signals)
    assert (turned.count, turned.dimension) == (SIZE, SIGNALS)
    table = signals.matrix(signals.values).toarray()
    np.testing.assert_array_equal(turned.matrix(turned.values).toarray(), table.T)
    x = np.random.default_rng(0).normal(size=(SIGNALS, RANK))
    found = products_at(signals.owners, signals.indices, x, W, ThreadPool(1))
    np.testing.assert_allclose(found, (x @ W.T)[signals.owners, signals.indices])


def test_what_cannot_be_computed_is_said():
    signals, W, D = problem()
    with pytest.raises(NotPositiveDefiniteError, match="factors of a signal"):
        factor_e_step(signals, signals.values, W * np.nan, D, ThreadPool(1))
    none = np.zeros(0)
    nothing = FactorPosteriors(np.zeros((SIGNALS, RANK)), np.zeros((SIGNALS, 6)), none, none)
    with pytest.raises(NotPositiveDefiniteError, match="determines the loadings"):
        loadings_m_step(signals, signals.values, nothing, D, None, ThreadPool(1))
    with pytest.raises(ConfigError):
        LoadingsPrior(-1.0, W)
    with pytest.raises(Cancelled):
        factor_e_step(signals, signals.values, W, D, ThreadPool(1, lambda: True))
