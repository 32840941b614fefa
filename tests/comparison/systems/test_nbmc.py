"""NBMC's draws against the exact posterior of a tiny problem."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from making import STARS, ratings_of
from scipy import stats

from gmc_core.comparison.systems.nbmc import Nbmc, _Chain, draw_rows
from gmc_core.comparison.systems.system import Rows, drawn_precision
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.splits import strong_split, weak_split

ATOMS = np.array([[0.8, -0.5], [0.3, 0.9], [-0.6, 0.4]])
OTHER_BIAS = np.array([0.2, -0.1, 0.3])
VALUES = np.array([1.1, 0.4, -0.7])
ODDS = np.array([-0.4, 0.3])
WEIGHT, NOISE, BIAS = 1.3, 2.0, 1.5


def exact() -> tuple[np.ndarray, np.ndarray, float]:
    """P(z = 1), E[z s] and E[b], by all four z and the Gaussians of y given each."""
    total, active, weights, bias = 0.0, np.zeros(2), np.zeros(2), 0.0
    y = VALUES - OTHER_BIAS
    for z in product((0, 1), repeat=2):
        on = np.array(z, dtype=float)
        regressors = np.column_stack([ATOMS * on, np.ones(3)])
        prior = np.diag([1 / WEIGHT, 1 / WEIGHT, 1 / BIAS])
        covariance = regressors @ prior @ regressors.T + np.eye(3) / NOISE
        density = stats.multivariate_normal.pdf(y, np.zeros(3), covariance)
        density *= np.exp(on @ ODDS)
        mean = prior @ regressors.T @ np.linalg.solve(covariance, y)
        total += density
        active += density * on
        weights += density * on * mean[:2]
        bias += density * mean[2]
    return active / total, weights / total, bias / total


def test_the_draws_have_the_moments_of_the_exact_posterior():
    count, sweeps = 4000, 30
    rows = Rows(
        np.arange(count + 1) * 3,
        np.tile(np.arange(3, dtype=np.int32), count),
        np.tile(VALUES, count),
    )
    for array in rows:
        array.setflags(write=False)
    rng = np.random.default_rng(0)
    weights, bias, errors = np.zeros((count, 2)), np.zeros(count), np.zeros(count)
    active, means, biases = np.zeros(2), np.zeros(2), 0.0
    for sweep in range(sweeps):
        draw_rows(
            0, count, rows, ATOMS, OTHER_BIAS, ODDS, WEIGHT, NOISE, BIAS,
            rng.random((count, 2)), rng.standard_normal((count, 3)),
            np.empty((2, 3)), np.empty(3), weights, bias, errors,
        )  # fmt: skip
        if sweep >= 10:
            active += (weights != 0).mean(axis=0)
            means += weights.mean(axis=0)
            biases += bias.mean()
    left = VALUES - OTHER_BIAS - bias[0] - ATOMS @ weights[0]
    assert errors[0] == pytest.approx(left @ left)
    expected = exact()
    np.testing.assert_allclose(active / 20, expected[0], atol=0.01)
    np.testing.assert_allclose(means / 20, expected[1], atol=0.01)
    assert biases / 20 == pytest.approx(expected[2], abs=0.01)


def test_a_precision_is_drawn_from_its_posterior():
    rng = np.random.default_rng(0)
    drawn = [drawn_precision(50, 20.0, rng) for _ in range(4000)]
    assert np.mean(drawn) == pytest.approx(2.5, rel=0.02)
    assert np.var(drawn) == pytest.approx(25 / 10**2, rel=0.1)


def test_one_atom_that_all_users_have():
    values = np.outer(np.tile([1.0, -1.0], 20), np.tile([2.0, -2.0], 6)) + 3
    split = weak_split(ratings_of(values, np.ones(values.shape, bool), STARS), 0)
    found = Nbmc(atoms=1, sweeps=40, burn_in=20).predict(split, ThreadPool(1))
    np.testing.assert_allclose(found, split.test_values, atol=0.3)


def test_items_are_drawn_without_the_novel_users():
    rng = np.random.default_rng(0)
    values = rng.integers(1, 6, (30, 8)).astype(float)
    split = strong_split(ratings_of(values, rng.random(values.shape) < 0.7, STARS), 0, 20, 8)
    chains = []
    for query in (split.query.values, 6 - split.query.values):
        chain = _Chain(split, 3, np.random.default_rng(1))
        chain.known.rows = chain.known.rows._replace(values=query - chain.mean)
        for _ in range(5):
            chain.sweep(ThreadPool(1))
        chains.append(chain)
    np.testing.assert_array_equal(chains[0].items.weights, chains[1].items.weights)
    assert np.abs(chains[0].known.bias - chains[1].known.bias).max() > 0.01
