"""M³F's draws against the exact posterior of a tiny problem."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from gmc_core.comparison.systems.m3f import _Beliefs, _Side, draw_rows
from gmc_core.comparison.systems.system import Rows

FACTORS = np.array([[0.8, -0.5], [0.3, 0.9]])
BIASES = np.array([[0.9, -0.8], [-0.4, 0.6]])  # by the own side's two topics
SHARES = np.array([[0.7, 0.3], [0.4, 0.6]])  # of the other side's two topics
VALUES = np.array([1.4, -0.9])
OWN = np.array([0.35, 0.65])
MEAN, PRECISION = np.array([0.2, -0.1]), np.array([[1.5, 0.4], [0.4, 1.2]])
NOISE, BIAS = 3.0, 1.1


def exact() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """E[a], E[c] and the mean number of ratings in each own topic, over all sixteen topics."""
    total, factors, biases, counts = 0.0, np.zeros(2), np.zeros(2), np.zeros(2)
    prior = np.zeros((4, 4))
    prior[:2, :2], prior[2:, 2:] = np.linalg.inv(PRECISION), np.eye(2) / BIAS
    start = np.concatenate([MEAN, np.zeros(2)])
    for topics in product(product((0, 1), repeat=2), repeat=2):
        own, other = (np.array(part) for part in zip(*topics, strict=True))
        regressors = np.column_stack([FACTORS, np.eye(2)[other]])
        y = VALUES - BIASES[np.arange(2), own]
        covariance = regressors @ prior @ regressors.T + np.eye(2) / NOISE
        density = stats.multivariate_normal.pdf(y, regressors @ start, covariance)
        density *= OWN[own].prod() * SHARES[np.arange(2), other].prod()
        mean = start + prior @ regressors.T @ np.linalg.solve(covariance, y - regressors @ start)
        total += density
        factors += density * mean[:2]
        biases += density * mean[2:]
        counts += density * np.bincount(own, minlength=2)
    return factors / total, biases / total, counts / total


def test_the_draws_have_the_moments_of_the_exact_posterior():
    count, sweeps, burn_in = 4000, 40, 15
    rng = np.random.default_rng(0)
    rows = Rows(
        np.arange(count + 1) * 2,
        np.tile(np.arange(2, dtype=np.int32), count),
        np.tile(VALUES, count),
    )
    for array in rows:
        array.setflags(write=False)
    side = _Side(rows, 2, 2, 2, rng)
    side.shares[:] = OWN
    sums = [np.zeros(2), np.zeros(2), np.zeros(2)]
    for sweep in range(sweeps):
        draw_rows(
            0, count, rows, FACTORS, BIASES, SHARES, MEAN, PRECISION, BIAS, NOISE,
            rng.random(2 * count), rng.standard_normal((count, 4)), np.empty(2),
            np.empty((2, 2), np.int64), side.factors, side.bias, side.shares, side.counts,
            side.errors,
        )  # fmt: skip
        if sweep >= burn_in:
            for total, drawn in zip(sums, (side.factors, side.bias, side.counts), strict=True):
                total += drawn.mean(axis=0)
    for total, expected in zip(sums, exact(), strict=True):
        np.testing.assert_allclose(total / (sweeps - burn_in), expected, atol=0.012)


def test_factors_hyperparameters_are_drawn_around_those_of_the_factors():
    rng = np.random.default_rng(0)
    covariance = np.array([[2.0, 0.5], [0.5, 0.3]])
    side = _Side(Rows(np.zeros(2001, np.int64), np.zeros(0, np.int32), np.zeros(0)), 2, 1, 1, rng)
    side.factors = rng.multivariate_normal([1.0, -2.0], covariance, 2000)
    side.bias = rng.normal(0, 0.5, (2000, 1))
    beliefs, drawn = _Beliefs.first(2), []
    for _ in range(200):
        beliefs.draw(side, rng)
        drawn.append((beliefs.mean, np.linalg.inv(beliefs.precision), beliefs.bias_precision))
    mean, found, bias = (np.mean([one[k] for one in drawn], axis=0) for k in range(3))
    np.testing.assert_allclose(mean, [1.0, -2.0], atol=0.1)
    np.testing.assert_allclose(found, covariance, atol=0.15)
    assert bias == pytest.approx(4.0, rel=0.1)
