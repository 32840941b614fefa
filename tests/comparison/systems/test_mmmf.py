"""MMMF's objective, its way down, and the ensemble."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from making import random_table, ratings_of
from scipy.optimize import check_grad

from gmc_core.comparison.systems.ensemble import EnsembleMmmf
from gmc_core.comparison.systems.mmmf import Margins, Mmmf
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.splits import strong_split, weak_split

ONE = ThreadPool(1)
TABLE = ratings_of(*random_table(24, 9, 0.5, 3))
TRAIN = strong_split(TABLE, 0, 14, 8).train
PENALTY, RANK = 1.5, 3


def hinge(z: np.ndarray) -> np.ndarray:
    return np.where(z <= 0, 0.5 - z, np.where(z < 1, 0.5 * (1 - z) ** 2, 0.0))


def value_of(users: np.ndarray, items: np.ndarray) -> float:
    """The docstring's formula, with levels 1 … V."""
    x = np.einsum("tf,tf->t", users[TRAIN.rows, :RANK], items[TRAIN.indices])
    total = 0.5 * PENALTY * ((users[:, :RANK] ** 2).sum() + (items**2).sum())
    for r in range(1, 5):
        sign = np.where(r >= TRAIN.values, 1.0, -1.0)
        total += hinge(sign * (users[TRAIN.rows, RANK + r - 1] - x)).sum()
    return float(total)


def test_value_and_gradient():
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(TRAIN.n_users, RANK + 4)), rng.normal(size=(9, RANK))
    model, size = Margins(TRAIN, RANK, PENALTY), users.size

    def parts(point):
        return point[:size].reshape(users.shape), point[size:].reshape(items.shape)

    def gradient(point):
        return np.concatenate([part.ravel() for part in model.objective(*parts(point), ONE)[1:]])

    point = np.concatenate([users.ravel(), items.ravel()])
    assert model.objective(users, items, ONE)[0] == pytest.approx(value_of(users, items))
    apart = check_grad(lambda p: value_of(*parts(p)), gradient, point)
    assert apart < 1e-4 * np.linalg.norm(gradient(point))


def test_learning_goes_down_and_folding_in_finds_what_was_learned():
    model = Margins(TRAIN, RANK, PENALTY)
    values = []
    for iterations in (1, 5, 20, 400):
        users = model.learn(0, iterations, ONE)
        values.append(model.objective(users, model.items, ONE)[0])
    assert np.all(np.diff(values) < 0)
    # The u of a training user is the minimum for its ratings, as a novel user's would be.
    again = model.fold_in(TRAIN, 400, ONE)
    assert model.objective(again, model.items, ONE)[0] == pytest.approx(values[-1], rel=1e-4)
    np.testing.assert_allclose(again[:, :RANK], users[:, :RANK], atol=0.05)


def test_predictions_are_the_levels_between_thresholds():
    split = weak_split(TABLE, 0)
    found = Mmmf(rank=RANK, penalties=(1.0,), iterations=20).predict(split, ONE)
    assert set(found) <= {1.0, 2.0, 3.0, 4.0, 5.0}


def test_an_ensemble_is_the_mean_of_its_members():
    split = weak_split(TABLE, 0)
    ensemble = EnsembleMmmf(seed=2, members=3, rank=RANK, penalties=(1.0,), iterations=10)
    one = Mmmf(rank=RANK, penalties=(1.0,), iterations=10)
    members = [replace(one, seed=seed).predict(split, ONE) for seed in (6, 7, 8)]
    np.testing.assert_allclose(ensemble.predict(split, ONE), np.mean(members, axis=0))
