"""GPLVM: its gradient by differences, and its predictions as those of Gaussian processes."""

from __future__ import annotations

import numpy as np
import pytest
from making import random_table, ratings_of
from scipy import stats
from scipy.optimize import check_grad
from scipy.spatial.distance import cdist

from gmc_core.comparison.systems.gplvm import Gplvm, ItemProcess
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.splits import strong_split

ONE = ThreadPool(1)
SPLIT = strong_split(ratings_of(*random_table(24, 9, 0.5, 3)), 0, 14, 8)
TRAIN = SPLIT.train
Q = 2
GAMMA = 0.4
POINT = np.concatenate([np.random.default_rng(0).normal(size=9 * Q), [-0.5, -1.0]])


def kernel(point: np.ndarray) -> np.ndarray:
    places = point[:-2].reshape(-1, Q)
    signal = 0.3 * ItemProcess(TRAIN, Q, GAMMA).variance
    squares = cdist(places, places, "sqeuclidean")
    return signal * np.exp(-0.5 * GAMMA * squares) + np.exp(point[-1])


def value_of(point: np.ndarray) -> float:
    """½ ‖X‖² - log L, user by user."""
    process, matrix = ItemProcess(TRAIN, Q, GAMMA), kernel(point)
    total = 0.5 * (point[:-2] ** 2).sum()
    for user in range(TRAIN.n_users):
        items, values = TRAIN.of_user(user)
        if len(items):
            covariance = matrix[np.ix_(items, items)] + np.exp(point[-2]) * np.eye(len(items))
            total -= stats.multivariate_normal.logpdf(values, process.means[items], covariance)
    return float(total)


def test_the_objective_and_its_gradient():
    process = ItemProcess(TRAIN, Q, GAMMA)
    value, gradient = process.objective(POINT, ONE)
    assert value == pytest.approx(value_of(POINT))
    apart = check_grad(value_of, lambda point: process.objective(point, ONE)[1], POINT)
    assert apart < 1e-4 * np.linalg.norm(gradient)


def test_the_covariance_is_the_kernel():
    gaussian, noise = ItemProcess(TRAIN, Q, GAMMA).gaussian(POINT, ONE)
    np.testing.assert_allclose(gaussian.covariance.matrix, kernel(POINT), atol=1e-12)
    assert noise.array[0, 0] == pytest.approx(np.exp(-0.5))


def test_a_novel_user_is_predicted_by_the_process(monkeypatch):
    system = Gplvm(settings=((Q, GAMMA),), iterations=5)
    monkeypatch.setattr("gmc_core.comparison.systems.gplvm.descend", lambda *_: POINT)
    found = system.predict(SPLIT, ONE)
    means, matrix, query = ItemProcess(TRAIN, Q, GAMMA).means, kernel(POINT), SPLIT.query
    assert query is not None
    for place, (user, item) in enumerate(zip(SPLIT.test_users, SPLIT.test_items, strict=True)):
        items, values = query.of_user(user)
        covariance = matrix[np.ix_(items, items)] + np.exp(-0.5) * np.eye(len(items))
        weights = np.linalg.solve(covariance, values - means[items])
        assert found[place] == pytest.approx(means[item] + matrix[item, items] @ weights)
