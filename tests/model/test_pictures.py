"""Pictures of Σ: the pooled means, half precision in the file, the spectrum."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from gmc_core.base.errors import ConfigError
from gmc_core.data.sample import load
from gmc_core.fitting.fit import run_fit
from gmc_core.gaussian.covariance import DenseCovariance, FactoredCovariance
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.settings import FitSettings
from gmc_core.model.item_orders import pooled
from gmc_core.model.pictures import HeatmapBinner, Picture, picture, picture_orders
from gmc_core.protocol.filters import Filter, apply_filter
from gmc_core.protocol.splits import no_split


def problem(size: int, rank: int = 7) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(size)
    factor = rng.standard_normal((size, rank)) * np.linspace(3, 0.5, rank)
    orders = {"a": rng.permutation(size), "b": np.arange(size)}
    return factor, factor @ factor.T + 0.3 * np.eye(size), orders


@pytest.mark.parametrize("size", [1, 2, 5, 31, 64, 257])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("bins", [1, 7, 250])
def test_dense_and_factored_pictures_are_the_means_over_bins(
    size: int, dtype: str, bins: int
) -> None:
    factor, sigma, orders = problem(size)
    sd = np.sqrt(np.diagonal(sigma))
    mean = np.arange(size) / 7
    for covariance in (
        DenseCovariance(sigma.astype(dtype)),
        FactoredCovariance(factor.astype(dtype), 0.3),
    ):
        made = HeatmapBinner(orders, bins, ThreadPool(2)).binned(Gaussian(mean, covariance))
        for name, items in orders.items():
            for kind, matrix in (("covariance", sigma), ("correlation", sigma / np.outer(sd, sd))):
                expected = pooled(matrix, items, min(bins, size))
                np.testing.assert_allclose(made.matrix(kind, name), expected, rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(made.variances, np.diagonal(sigma), rtol=1e-5)
        np.testing.assert_allclose(made.mean, mean, rtol=1e-6)


def test_the_spectrum_converges_over_iterations_and_never_exceeds_the_truth() -> None:
    factor, sigma, orders = problem(120, rank=30)
    truth = np.linalg.eigvalsh(sigma)[::-1][:10]
    binner = HeatmapBinner(orders)
    gaussian = Gaussian(np.zeros(120), DenseCovariance(sigma))
    for _ in range(12):
        spectrum = binner.binned(gaussian).spectrum
        assert np.all(spectrum <= truth * (1 + 1e-9))
    np.testing.assert_allclose(spectrum[:5], truth[:5], rtol=1e-3)


def test_a_file_keeps_it_to_half_precision(tmp_path: Path) -> None:
    _, sigma, orders = problem(90)
    big = 1e7 * sigma  # beyond the range of a 16-bit number
    made = HeatmapBinner(orders, 40).binned(Gaussian(np.zeros(90), DenseCovariance(big)))
    file = io.BytesIO()
    made.save(file)
    (tmp_path / "p.npz").write_bytes(file.getvalue())
    read = Picture.load(tmp_path / "p.npz")
    for order in orders:
        scale = np.abs(made.covariance[order]).max()
        np.testing.assert_allclose(
            read.covariance[order], made.covariance[order], atol=5e-4 * scale
        )
        np.testing.assert_allclose(read.correlation[order], made.correlation[order], atol=5e-4)
        assert np.array_equal(read.order_items[order], orders[order])
        assert np.array_equal(read.correlation[order], read.correlation[order].T)
    assert np.array_equal(read.spectrum, made.spectrum)
    assert read.orders == ("a", "b")


def test_an_item_without_variance_has_no_correlation_and_harms_no_other() -> None:
    sigma = np.diag([1.0, 0.0, 2.0])
    made = HeatmapBinner({"index": np.arange(3)}).binned(
        Gaussian(np.zeros(3), DenseCovariance(sigma))
    )
    correlation = made.correlation["index"]
    assert np.isnan(correlation[1]).all()
    assert correlation[0, 0] == pytest.approx(1.0)
    assert correlation[0, 2] == 0
    assert np.array_equal(made.covariance["index"], sigma.astype(np.float32))


def test_a_model_of_the_sample() -> None:
    ratings, _ = apply_filter(load().ratings, Filter(max_items=120))
    model = run_fit(no_split(ratings), FitSettings(iterations=2)).model()
    made = picture(model, 60)
    assert made.orders == ("popularity", "genre", "year", "title")
    for items in picture_orders(model).values():
        assert np.array_equal(np.sort(items), np.arange(120))
    first = made.order_items["popularity"][:2]
    assert model.item_counts[first].min() >= np.sort(model.item_counts)[-2]
    columns = run_fit(no_split(ratings), FitSettings(iterations=1, signals="columns")).model()
    assert picture(columns).orders == ("index",)


def test_too_many_bins_are_refused() -> None:
    with pytest.raises(ConfigError, match="500"):
        HeatmapBinner({"index": np.arange(3)}, 501)
