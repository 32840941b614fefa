"""The sweep operator against a dense inverse, and what exact EM gets from it."""

from __future__ import annotations

import dense_reference as dense
import numpy as np
import pytest
from making import random_table, signals_of

from gmc_core.base.errors import NumericalError
from gmc_core.gaussian.covariance import DenseCovariance
from gmc_core.gaussian.exact import exact_e_step
from gmc_core.gaussian.linalg import solve
from gmc_core.gaussian.linalg.sweep import PIVOTS, sweep, sweep_space
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.parameters import Gaussian


def matrix_of(n: int, seed: int = 0) -> np.ndarray:
    factor = np.random.default_rng(seed).normal(size=(n, n))
    return factor @ factor.T / n + 0.5 * np.eye(n)


def swept(matrix: np.ndarray, right: np.ndarray, dtype) -> tuple[np.ndarray, np.ndarray, tuple]:
    """What becomes of the lower triangle and of r; the upper triangle must not be read."""
    n, dtype = len(right), np.dtype(dtype)
    flat = np.where(np.tri(n, dtype=bool), matrix, np.nan).astype(dtype).ravel()
    vector, space = right.astype(dtype), solve.scratch(0, dtype)
    forms = sweep(
        flat, vector, n, sweep_space(n, dtype), space.packed, space.flags, space.integers,
        space.scalars,
    )  # fmt: skip
    return np.tril(flat.reshape(n, n)), vector, forms


@pytest.mark.parametrize("n", [1, 2, PIVOTS - 1, PIVOTS, PIVOTS + 1, 2 * PIVOTS, 151])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-11), ("float32", 1e-4)])
def test_is_inverse_and_solve(n, dtype, tolerance):
    matrix, right = matrix_of(n), np.random.default_rng(1).normal(size=n)
    found, answer, (quadratic, log_det) = swept(matrix, right, dtype)
    inverse = np.linalg.inv(matrix)
    np.testing.assert_allclose(-found, np.tril(inverse), atol=tolerance)
    np.testing.assert_allclose(answer, inverse @ right, atol=tolerance)
    assert quadratic == pytest.approx(right @ inverse @ right, rel=tolerance)
    assert log_det == pytest.approx(np.linalg.slogdet(matrix)[1], abs=100 * tolerance)


@pytest.mark.parametrize("bad", [0, 40, 70])
def test_a_matrix_that_is_not_positive_definite_gives_nan(bad):
    matrix = matrix_of(71)
    matrix[bad, bad] = -1.0
    assert np.isnan(swept(matrix, np.ones(71), "float64")[2]).all()


def noises(size: int) -> dict[str, Noise]:
    full = matrix_of(size, 4)
    return {
        "none": Noise.of(0.0, size),
        "one": Noise.of(0.3, size),
        "per item": Noise.of(np.linspace(0.1, 0.9, size), size),
        "full": Noise.of(full, size),
    }


@pytest.mark.parametrize("kind", ["none", "one", "per item", "full"])
def test_the_sums_of_the_e_step_are_their_definition(kind):
    size = 45  # user 1 rates all of them, more than one block of pivots
    values, known = random_table(30, size, 0.4, 3)
    noise, mean, covariance = noises(size)[kind], np.full(size, 3.2), matrix_of(size, 2)
    gaussian = Gaussian(mean, DenseCovariance(covariance))
    estimates, sums = exact_e_step(signals_of(values, known), gaussian, noise, ThreadPool(2))
    expected, weights = np.zeros((size, size)), []
    everywhere = noise.submatrix(np.arange(size))
    for user, observed in enumerate(known):
        U = dense.masking_operator(observed)
        inverse = np.linalg.inv(U @ (covariance + everywhere) @ U.T)
        a = inverse @ (values[user, observed] - mean[observed])
        expected += U.T @ (np.outer(a, a) - inverse) @ U
        weights.append(a)
    np.testing.assert_allclose(np.tril(sums), np.tril(expected) / len(known), atol=1e-11)
    np.testing.assert_allclose(estimates.weights, np.concatenate(weights), atol=1e-10)


def test_a_singular_covariance_is_an_error_that_says_what_to_do():
    signals = signals_of(*random_table(30, 45, 0.4, 3))
    gaussian = Gaussian(np.full(45, 3.0), DenseCovariance(np.ones((45, 45))))
    with pytest.raises(NumericalError, match="Raise ε"):
        exact_e_step(signals, gaussian, Noise.of(0.0, 45), ThreadPool(1))
