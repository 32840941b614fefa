"""Attitude's objective: its value, its gradients and its way down."""

from __future__ import annotations

import numpy as np
import pytest
from making import random_table, ratings_of
from scipy.optimize import check_grad
from scipy.special import log_softmax

from gmc_core.comparison.systems.attitude import Attitudes
from gmc_core.comparison.systems.system import codes, frequencies
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.splits import strong_split

ONE = ThreadPool(1)
SPLIT = strong_split(ratings_of(*random_table(24, 9, 0.5, 3)), 0, 14, 8)
PENALTY = 2.0


def made() -> tuple[Attitudes, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    model = Attitudes(SPLIT.train, 2, PENALTY)
    shape = model.weights.shape
    return model, rng.normal(size=(SPLIT.train.n_users, 2)), rng.normal(size=shape)


def test_the_objective_is_its_formula():
    model, attitudes, weights = made()
    train = SPLIT.train
    exponents = weights[train.indices, :, -1] + np.einsum(
        "tvk,tk->tv", weights[train.indices, :, :-1], attitudes[train.rows]
    )
    logs = log_softmax(exponents, axis=1)[np.arange(len(train)), codes(train).astype(int)]
    apart = weights[:, :, -1] - np.log(frequencies(train))
    expected = -logs.sum() + 0.5 * (attitudes**2).sum()
    expected += 0.5 * PENALTY * (weights[:, :, :-1] ** 2).sum() + 0.5 * (apart**2).sum()
    assert model.objective(attitudes, weights, ONE)[0] == pytest.approx(expected)


def test_the_gradients_are_those_of_differences():
    model, attitudes, weights = made()
    size = attitudes.size

    def parts(point):
        return point[:size].reshape(attitudes.shape), point[size:].reshape(weights.shape)

    def gradient(point):
        return np.concatenate([part.ravel() for part in model.objective(*parts(point), ONE)[1:]])

    point = np.concatenate([attitudes.ravel(), weights.ravel()])
    apart = check_grad(lambda p: model.objective(*parts(p), ONE)[0], gradient, point)
    assert apart < 1e-4 * np.linalg.norm(gradient(point))


def test_learning_goes_down_and_folding_in_finds_what_was_learned():
    model, attitudes, weights = made()
    model.weights = weights
    before = model.objective(attitudes, weights, ONE)[0]
    values = []
    for _ in range(4):
        attitudes = model.learn(attitudes, 15, ONE)
        values.append(model.objective(attitudes, model.weights, ONE)[0])
    assert values[0] < before and np.all(np.diff(values) <= 1e-9)
    attitudes = model.learn(attitudes, 500, ONE)
    again = model.fold_in(SPLIT.train, 500, ONE)
    np.testing.assert_allclose(again, attitudes, atol=0.02)
