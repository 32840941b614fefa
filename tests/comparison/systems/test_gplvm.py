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
POINT = np.concatenate([np.random.default_rng(0).normal(size=9 * Q), [-0.5, 0.1, -1.0, -0.7]])


def kernel(point: np.ndarray) -> np.ndarray:
    places, logs = point[:-4].reshape(-1, Q), point[-4:]
    squares = cdist(places, places, "sqeuclidean")
    return np.exp(logs[1] - 0.5 * np.exp(logs[3]) * squares) + np.exp(logs[2])


def value_of(point: np.ndarray) -> float:
    """½ ‖X‖² - log L, user by user."""
    process, matrix, total = ItemProcess(TRAIN), kernel(point), 0.5 * (point[:-4] ** 2).sum()
    for user in range(TRAIN.n_users):
        items, values = TRAIN.of_user(user)
        if len(items):
            covariance = matrix[np.ix_(items, items)] + np.exp(point[-4]) * np.eye(len(items))
            total -= stats.multivariate_normal.logpdf(values, process.means[items], covariance)
    return float(total)


def test_the_objective_and_its_gradient():
    process = ItemProcess(TRAIN)
    value, gradient = process.objective(POINT, Q, ONE)
    assert value == pytest.approx(value_of(POINT))
    apart = check_grad(value_of, lambda point: process.objective(point, Q, ONE)[1], POINT)
    assert apart < 1e-4 * np.linalg.norm(gradient)


def test_the_covariance_is_the_kernel():
    gaussian, noise = ItemProcess(TRAIN).gaussian(POINT, Q, ONE)
    np.testing.assert_allclose(gaussian.covariance.matrix, kernel(POINT), atol=1e-12)
    assert noise.array[0, 0] == pytest.approx(np.exp(-0.5))


def test_a_novel_user_is_predicted_by_the_process(monkeypatch):
    system = Gplvm(dimensions=(Q,), iterations=5)
    monkeypatch.setattr("gmc_core.comparison.systems.gplvm.descend", lambda *_: POINT)
    found = system.predict(SPLIT, ONE)
    means, matrix, query = ItemProcess(TRAIN).means, kernel(POINT), SPLIT.query
    assert query is not None
    for place, (user, item) in enumerate(zip(SPLIT.test_users, SPLIT.test_items, strict=True)):
        items, values = query.of_user(user)
        covariance = matrix[np.ix_(items, items)] + np.exp(-0.5) * np.eye(len(items))
        weights = np.linalg.solve(covariance, values - means[items])
        assert found[place] == pytest.approx(means[item] + matrix[item, items] @ weights)
