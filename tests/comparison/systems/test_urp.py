"""URP's variational EM: the bound, and exact posteriors of a tiny problem."""

from __future__ import annotations

import numpy as np
import pytest
from making import STARS, random_table, ratings_of
from scipy.special import digamma, gammaln

from gmc_core.comparison.systems.system import Rows, codes
from gmc_core.comparison.systems.urp import Profiles, _digamma, believe_rows
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.splits import weak_split

ONE = ThreadPool(1)
TRAIN = weak_split(ratings_of(*random_table(60, 15, 0.5, 3)), 0).train


def test_no_iteration_lowers_the_bound():
    model = Profiles(TRAIN, 4, 2.0, 0)
    bounds = [model.iterate(ONE) for _ in range(30)]
    assert bounds[-1] > bounds[0] + 20
    assert np.diff(bounds).min() > -1e-8 * abs(bounds[0])
    np.testing.assert_allclose(model.patterns.sum(axis=1), 1, atol=1e-12)
    assert (model.patterns > 0).all() and (model.concentration > 0).all()


def test_the_beliefs_of_a_user_are_a_fixed_point_and_the_bound_its_formula():
    model = Profiles(TRAIN, 3, 2.0, 0)
    for _ in range(5):
        model.iterate(ONE)
    user = 4
    items, _ = TRAIN.of_user(user)
    levels = codes(TRAIN)[TRAIN.indptr[user] : TRAIN.indptr[user + 1]].astype(int)
    beta, alpha = model.patterns[items, levels], model.concentration
    gamma = model.fold_in(TRAIN, ONE)[user]
    logs = digamma(gamma) - digamma(gamma.sum())
    phi = beta * np.exp(logs)
    phi /= phi.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(gamma, alpha + phi.sum(axis=0), atol=2e-4)
    bound = (phi * (logs + np.log(beta) - np.log(phi))).sum()
    bound += gammaln(alpha.sum()) - gammaln(alpha).sum() + (alpha - 1) @ logs
    bound -= gammaln(gamma.sum()) - gammaln(gamma).sum() + (gamma - 1) @ logs
    found, shares, beliefs = np.empty(1), np.empty((1, 3)), gamma[None].copy()
    rows = Rows(np.array([0, len(items)]), items, levels.astype(float))
    for array in rows:
        array.setflags(write=False)
    believe_rows(0, 1, rows, model.patterns, alpha, 0, beliefs, shares, found)
    assert found[0] == pytest.approx(bound, abs=1e-6)
    np.testing.assert_allclose(shares[0], np.exp(logs), atol=1e-12)


def test_one_attitude_is_the_items_own_frequencies():
    model = Profiles(TRAIN, 1, 1e-6, 0)
    model.iterate(ONE)
    counts = np.zeros((TRAIN.n_items, 5))
    np.add.at(counts, (TRAIN.indices, codes(TRAIN).astype(int)), 1)
    rated = counts.sum(axis=1) > 0
    shares = counts[rated] / counts[rated].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.patterns[rated, :, 0], shares, atol=1e-5)


def test_the_compiled_digamma():
    x = np.array([1e-4, 0.3, 1.0, 2.5, 9.99, 40.0, 1e4])
    np.testing.assert_allclose([_digamma(one) for one in x], digamma(x), rtol=1e-11)


def test_levels_are_counted_from_the_lowest():
    assert STARS.low == 1
    np.testing.assert_array_equal(codes(TRAIN), TRAIN.values - 1)
