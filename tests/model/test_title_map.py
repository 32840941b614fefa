"""The map of the titles: against a dense reference, and what must not change it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.gaussian.covariance import DenseCovariance, FactoredCovariance
from gmc_core.model import title_map as maps
from gmc_core.model.title_map import title_map


def model_of(covariance, kind="rows"):
    """As much of a model as a map looks at."""
    return SimpleNamespace(
        gaussian=SimpleNamespace(covariance=covariance), layout=SimpleNamespace(kind=kind)
    )


def factor(n, rank=6, seed=1):
    """Loadings with a direction in common and tastes of clearly different strength."""
    rng = np.random.default_rng(seed)
    strengths = np.array([3.0, 2.0, 1.2, 0.5, 0.4, 0.3])[:rank]
    loadings = rng.standard_normal((n, rank)) * strengths
    return loadings * rng.uniform(0.5, 2.0, (n, 1)) + 1.5


def dense(n, **options):
    loadings = factor(n, **options)
    return loadings @ loadings.T + 0.5 * np.eye(n)


def reference(covariance, items):
    """Everything with dense matrices, as the module's formulas say."""
    block = covariance[np.ix_(items, items)]
    sd = np.sqrt(np.diag(block))
    correlations = block / np.outer(sd, sd)
    n = len(items)
    centring = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-0.5 * centring @ (2 - 2 * correlations) @ centring)
    order = np.argsort(values)[::-1]
    return correlations, values[order], vectors[:, order] * np.sqrt(np.maximum(values[order], 0))


@pytest.mark.parametrize("n", [40, 350])  # the whole decomposition, and Lanczos
def test_it_is_classical_scaling_of_the_correlations(n):
    covariance = dense(n)
    items = np.arange(3, n)
    found = title_map(model_of(DenseCovariance(covariance)), items)
    correlations, values, coordinates = reference(covariance, items)
    np.testing.assert_array_equal(found.items, items)
    for axis in range(2):
        sign = np.sign(found.coordinates[:, axis] @ coordinates[:, axis])
        np.testing.assert_allclose(
            found.coordinates[:, axis], sign * coordinates[:, axis], atol=2e-5
        )
    m = len(items)
    np.testing.assert_allclose(found.shares, values[:2] / m, rtol=1e-6)
    assert found.common == pytest.approx(correlations.sum() / m / m)
    # What all have in common and all dimensions together are the whole variance.
    assert found.common + values.sum() / m == pytest.approx(1)
    assert found.held == pytest.approx(values[:2].sum() / values.sum())


def test_all_dimensions_would_give_the_distances():
    covariance = dense(12)
    correlations, _, coordinates = reference(covariance, np.arange(12))
    distances = ((coordinates[:, None] - coordinates[None]) ** 2).sum(-1)
    np.testing.assert_allclose(distances, 2 - 2 * correlations, atol=1e-10)


@pytest.mark.parametrize("n", [40, 350])
def test_another_order_of_the_titles_gives_the_same_map(n):
    model = model_of(DenseCovariance(dense(n)))
    shuffled = np.random.default_rng(0).permutation(n)
    one, two = title_map(model, np.arange(n)), title_map(model, shuffled)
    np.testing.assert_allclose(one.coordinates[shuffled], two.coordinates, atol=2e-5)
    np.testing.assert_allclose(one.shares, two.shares, rtol=1e-6)
    assert one.common == pytest.approx(two.common)


def test_the_units_of_the_ratings_do_not_matter():
    covariance, scale = dense(30), np.random.default_rng(2).uniform(0.1, 10, 30)
    one = title_map(model_of(DenseCovariance(covariance)), np.arange(30))
    two = title_map(model_of(DenseCovariance(covariance * np.outer(scale, scale))), np.arange(30))
    np.testing.assert_allclose(one.coordinates, two.coordinates, atol=1e-9)


@pytest.mark.parametrize("n", [40, 350])
def test_a_factored_covariance_gives_the_map_of_the_dense_one(n):
    one = title_map(model_of(DenseCovariance(dense(n))), np.arange(n))
    two = title_map(model_of(FactoredCovariance(factor(n), 0.5)), np.arange(n))
    np.testing.assert_allclose(one.coordinates, two.coordinates, atol=2e-5)


def test_the_largest_coordinate_of_a_dimension_is_positive():
    for seed in range(5):
        found = title_map(model_of(DenseCovariance(dense(25, seed=seed))), np.arange(25))
        largest = np.argmax(np.abs(found.coordinates), axis=0)
        assert (found.coordinates[largest, [0, 1]] > 0).all()


def test_two_groups_lie_apart_along_the_first_dimension():
    sides = np.repeat([1.0, -1.0], 10)
    covariance = 1 + np.outer(sides, sides) + np.eye(20)
    found = title_map(model_of(DenseCovariance(covariance)), np.arange(20))
    across = found.coordinates[:, 0] * sides
    assert (across > 0).all() or (across < 0).all()


def test_many_titles_need_no_dense_matrix():
    """20,000 titles: a full Σ or correlation matrix would be 3 GB."""
    found = title_map(model_of(FactoredCovariance(factor(20_000, rank=4), 0.5)), np.arange(20_000))
    assert found.coordinates.shape == (20_000, 2)
    assert 0 < found.held <= 1


def test_titles_without_variance_are_left_out_and_too_few_are_refused():
    covariance = dense(5)
    covariance[2] = covariance[:, 2] = 0.0
    model = model_of(DenseCovariance(covariance))
    assert title_map(model, np.arange(5)).items.tolist() == [0, 1, 3, 4]
    for few, word in (([], "are 0"), ([1], "is 1"), ([1, 2, 3], "are 2")):
        with pytest.raises(DataError, match=f"{word}.*choose more titles"):
            title_map(model, few)
    with pytest.raises(ConfigError, match="columns as signals"):
        title_map(model_of(DenseCovariance(covariance), "columns"), np.arange(5))


def test_titles_that_are_all_alike_lie_in_one_point():
    found = title_map(model_of(DenseCovariance(np.ones((4, 4)))), np.arange(4))
    np.testing.assert_allclose(found.coordinates, 0, atol=1e-6)
    assert found.common == pytest.approx(1)
    assert found.held == 0


def test_the_limit_between_the_two_ways_makes_no_difference(monkeypatch):
    model = model_of(DenseCovariance(dense(60)))
    one = title_map(model, np.arange(60))
    monkeypatch.setattr(maps, "_DENSE", 10)
    two = title_map(model, np.arange(60))
    np.testing.assert_allclose(one.coordinates, two.coordinates, atol=2e-5)
