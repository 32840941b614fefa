"""What the pages say of Σ: correlations, orders, pictures, neighbours, taste axes."""

from dataclasses import replace

import numpy as np
import pytest

from gmc_core.base.errors import ConfigError, DataError, NumericalError
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.experiment import run_experiment
from gmc_core.gaussian.covariance import DenseCovariance, FactoredCovariance
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.settings import FitSettings
from gmc_core.model import analysis, item_orders, taste
from gmc_core.protocol.filters import Filter


@pytest.fixture(scope="module")
def model():
    config = ExperimentConfig(fit=FitSettings(iterations=3), filter=Filter(max_items=120))
    return run_experiment(config)[1].model()


@pytest.fixture(scope="module")
def matrix(model):
    return model.gaussian.covariance.submatrix(*[np.arange(len(model.items))] * 2)


def with_covariance(model, covariance):
    return replace(model, gaussian=Gaussian(model.gaussian.mean, covariance))


def both_forms(model, dtype=np.float64):
    """The same Σ dense and as a factor."""
    factor = np.random.default_rng(3).standard_normal((len(model.items), 7)).astype(dtype)
    eps = 0.25
    dense = factor @ factor.T + eps * np.eye(len(factor), dtype=dtype)
    return (
        with_covariance(model, DenseCovariance(dense)),
        with_covariance(model, FactoredCovariance(factor, eps)),
    )


def test_correlation_has_ones_and_the_right_values():
    result = analysis.correlation([[4.0, 1.0], [1.0, 9.0]])
    np.testing.assert_allclose(result, [[1, 1 / 6], [1 / 6, 1]])


def test_correlation_is_undefined_without_variance():
    result = analysis.correlation([[0.0, 0.0], [0.0, 1.0]])
    assert np.isnan(result[0]).all()
    assert result[1, 1] == 1


def explicit_partial(matrix):
    precision = np.linalg.inv(matrix)
    result = -precision / np.sqrt(np.outer(np.diagonal(precision), np.diagonal(precision)))
    np.fill_diagonal(result, 1.0)
    return result


def test_partial_correlation_is_given_all_other_items(model, matrix):
    items = np.array([5, 2, 90, 41])
    result = analysis.partial_correlation(model, items)
    np.testing.assert_allclose(result, explicit_partial(matrix)[np.ix_(items, items)], atol=1e-10)


def test_partial_correlation_of_all_items(model, matrix):
    result = analysis.partial_correlation(model, np.arange(len(matrix)))
    np.testing.assert_allclose(result, explicit_partial(matrix), atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dense_and_factored_agree(model, dtype):
    dense, factored = both_forms(model, dtype)
    items = np.array([3, 70, 11])
    tolerance = 1e-8 if dtype == np.float64 else 2e-3
    for kind in ("covariance", "correlation", "partial"):
        np.testing.assert_allclose(
            analysis.submatrix(dense, items, kind),
            analysis.submatrix(factored, items, kind),
            atol=tolerance,
        )
        order = item_orders.ordered(dense, "title")
        np.testing.assert_allclose(
            item_orders.pooled(dense, order, 13, kind),
            item_orders.pooled(factored, order, 13, kind),
            atol=tolerance,
        )
    one, two = taste.spectrum(dense, 5), taste.spectrum(factored, 5)
    np.testing.assert_allclose(one.values, two.values, rtol=1e-4)
    np.testing.assert_allclose(one.vectors, two.vectors, atol=1e-3)
    first = [n.item for n in analysis.neighbours(dense, 4, 5)]
    assert first == [n.item for n in analysis.neighbours(factored, 4, 5)]


def test_singular_covariance_is_a_sentence(model):
    ones = np.ones((len(model.items), 1))
    for covariance in (DenseCovariance(ones @ ones.T), FactoredCovariance(ones, 0.0)):
        with pytest.raises(NumericalError, match="larger ε"):
            analysis.partial_correlation(with_covariance(model, covariance), [0, 1])


def test_no_items_give_an_empty_matrix(model):
    assert analysis.submatrix(model, [], "partial").shape == (0, 0)
    assert analysis.submatrix(model, [], "correlation").shape == (0, 0)


def test_neighbours_are_the_largest_correlations(model, matrix):
    found = analysis.neighbours(model, 7, 6)
    row = analysis.correlation(matrix)[7].copy()
    row[7] = -np.inf
    assert [n.item for n in found] == list(np.argsort(-row)[:6])
    np.testing.assert_allclose([n.correlation for n in found], np.sort(row)[::-1][:6])
    np.testing.assert_allclose([n.covariance for n in found], matrix[7][[n.item for n in found]])


def test_common_raters_are_counted(model):
    ratings = model.ratings
    raters = [set(ratings.rows[ratings.indices == m].tolist()) for m in (7, 19)]
    common = analysis.common_raters(model, 7)
    assert common[19] == len(raters[0] & raters[1])
    assert common[7] == len(raters[0])
    assert analysis.common_raters(replace(model, ratings=None), 7) is None


def test_neighbours_leave_out_rare_items_and_unknown_positions(model):
    least = int(np.sort(model.item_counts)[-10])
    assert all(n.n_ratings >= least for n in analysis.neighbours(model, 7, 50, min_ratings=least))
    with pytest.raises(DataError):
        analysis.neighbours(model, len(model.items))


def test_other_signals_are_refused():
    fit = FitSettings(iterations=1, signals="columns")
    other = run_experiment(ExperimentConfig(fit=fit, filter=Filter(max_items=20)))[1].model()
    with pytest.raises(ConfigError, match="columns as signals"):
        analysis.neighbours(other, 0)
    with pytest.raises(ConfigError, match="rows"):
        item_orders.ordered(other, "title")


@pytest.mark.parametrize("order", item_orders.ORDERS)
def test_orders_are_permutations(model, order):
    everything = item_orders.ordered(model, order)
    assert sorted(everything) == list(range(len(model.items)))
    some = np.array([9, 3, 50, 17])
    assert sorted(item_orders.ordered(model, order, some)) == sorted(some)


def test_orders_follow_their_names(model):
    counts = model.item_counts[item_orders.ordered(model, "popularity")]
    assert (np.diff(counts) <= 0).all()
    years = model.item_info.years[item_orders.ordered(model, "year")]
    assert (np.diff(years[np.isfinite(years)]) >= 0).all()
    titles = [model.title(int(m)).casefold() for m in item_orders.ordered(model, "title")]
    assert titles == sorted(titles)
    genres = [model.item_info.genres[m][:1] for m in item_orders.ordered(model, "genre")]
    named = [g[0] for g in genres if g]
    assert named == sorted(named)
    with pytest.raises(ConfigError, match="popularity"):
        item_orders.ordered(model, "colour")


def blocks(model):
    """A model of two groups of items, correlated inside and against each other."""
    group = np.arange(len(model.items)) % 2
    factor = np.where(group == 0, 1.0, -1.0)[:, None]
    return group, with_covariance(model, FactoredCovariance(factor, 0.5))


def test_similarity_puts_groups_side_by_side(model):
    group, two = blocks(model)
    assert np.count_nonzero(np.diff(group[item_orders.ordered(two, "similarity")])) == 1
    assert np.count_nonzero(np.diff(group[item_orders.spectral_order(two)])) == 1


@pytest.mark.parametrize("kind", ["covariance", "correlation", "partial"])
@pytest.mark.parametrize("size", [1, 7, 120, 500])
def test_pooled_is_the_mean_over_blocks(model, kind, size):
    order = item_orders.ordered(model, "popularity")
    whole = analysis.submatrix(model, order, kind)
    expected = item_orders.pooled(whole, np.arange(len(order)), size)
    np.testing.assert_allclose(item_orders.pooled(model, order, size, kind), expected, atol=1e-10)
    assert len(expected) == min(size, len(order))
    starts = np.arange(len(expected)) * len(order) // len(expected)
    stop = starts[1] if len(starts) > 1 else len(order)
    assert expected[0, 0] == pytest.approx(whole[:stop, :stop].mean())


def test_pooled_has_a_limit(model):
    with pytest.raises(ConfigError, match="500"):
        item_orders.pooled(model, np.arange(3), 501)
    assert item_orders.pooled(model, [], 10).shape == (0, 0)


def test_spectrum_is_the_decomposition(model, matrix):
    full = taste.spectrum(model, len(matrix))
    np.testing.assert_allclose(full.values.sum(), full.trace)
    np.testing.assert_allclose(full.vectors * full.values @ full.vectors.T, matrix, atol=1e-9)
    few = taste.spectrum(model, 4)
    np.testing.assert_allclose(few.values, full.values[:4])
    assert (few.vectors[np.abs(few.vectors).argmax(axis=0), range(4)] > 0).all()
    with pytest.raises(ConfigError):
        taste.spectrum(model, 0)


def test_lanczos_agrees_with_the_decomposition():
    config = ExperimentConfig(fit=FitSettings(iterations=2), filter=Filter(max_items=260))
    large = run_experiment(config)[1].model()
    everything = np.arange(len(large.items))
    expected = np.linalg.eigvalsh(large.gaussian.covariance.submatrix(everything, everything))
    found = taste.spectrum(large, 6)
    np.testing.assert_allclose(found.values, expected[::-1][:6], rtol=1e-6)
    again = taste.spectrum(large, 6)
    np.testing.assert_array_equal(found.vectors, again.vectors)


def test_taste_axes_name_the_ends(model):
    leading = taste.spectrum(model, 3)
    least = int(np.median(model.item_counts))
    axes = taste.taste_axes(model, leading, ends=4, min_ratings=least)
    assert [axis.number for axis in axes] == [1, 2, 3]
    for axis in axes:
        assert len(axis.high) <= 4
        assert all(end.effect > 0 and end.n_ratings >= least for end in axis.high)
        assert all(end.effect < 0 for end in axis.low)
        effects = [end.effect for end in axis.high]
        assert effects == sorted(effects, reverse=True)
        end = axis.high[0]
        loading = leading.vectors[end.item, axis.number - 1]
        assert end.effect == pytest.approx(np.sqrt(axis.eigenvalue) * loading)


def test_variance_profile(model, matrix):
    profile = taste.variance_profile(model)
    np.testing.assert_allclose(profile.variance, np.diagonal(matrix))
    np.testing.assert_array_equal(profile.counts, model.ratings.item_counts)
    np.testing.assert_array_equal(profile.mean, model.gaussian.mean)
