"""The reference itself, held to closed forms and to the ascent properties of (MAP-)EM."""

from itertools import pairwise

import numpy as np
import pytest
from dense_reference import (
    blocks,
    columns,
    complete_log_density,
    exact_em,
    from_blocks,
    log_gaussian,
    m_step,
    map_em,
    masking_operator,
    noise_matrix,
    posterior_variance,
)

M, N, EPS = 14, 5, 0.3
_A = np.random.default_rng(5).normal(size=(N, N))
FULL_NOISE = 0.05 * (_A @ _A.T) + 0.1 * np.eye(N)
VARIANCES = np.linspace(0.1, 0.9, N)
NOISES = [0.0, 0.4, VARIANCES, FULL_NOISE]
NOISE_IDS = ["none", "scalar", "diagonal", "full"]


def problem(seed=0):
    rng = np.random.default_rng(seed)
    F = 3 + rng.normal(size=(M, 2)) @ rng.normal(size=(2, N)) + 0.2 * rng.normal(size=(M, N))
    H = rng.random((M, N)) < 0.6
    H[0], H[1] = False, True
    return np.where(H, F, np.nan), H


def penalty(Sigma):
    return 0.5 * M * EPS * np.trace(np.linalg.inv(Sigma))


def test_two_movies_by_hand():
    """Filled with 3, rows (5,4) (1,2) (5,3): mu = (11/3, 3), cov = [[32/9, 4/3], [4/3, 2/3]]."""
    Y = np.array([[5.0, 4.0], [1.0, 2.0], [5.0, np.nan]])
    H = np.array([[True, True], [True, True], [True, False]])
    (state,) = map_em(Y, H, epsilon=0.5, iterations=1)
    a, b, c = 32 / 9 + 0.5, 4 / 3, 2 / 3 + 0.5
    np.testing.assert_allclose(state.mu, [11 / 3, 3])
    np.testing.assert_allclose(state.Sigma, [[a, b], [b, c]])
    expected = [[5, 4], [1, 2], [5, 3 + b / a * (5 - 11 / 3)]]
    np.testing.assert_allclose(state.F, expected)
    np.testing.assert_allclose(
        posterior_variance(state.mu, state.Sigma, 0.0, [0]), [0, c - b * b / a], atol=1e-12
    )
    det, d = a * c - b * b, np.array([[4 / 3, 1], [-8 / 3, -1]])
    quadratic = (c * d[:, 0] ** 2 - 2 * b * d[:, 0] * d[:, 1] + a * d[:, 1] ** 2) / det
    pair = -np.log(2 * np.pi) - 0.5 * np.log(det) - 0.5 * quadratic
    single = -0.5 * (np.log(2 * np.pi * a) + (4 / 3) ** 2 / a)
    assert state.log_likelihood == pytest.approx(pair.sum() + single)


def test_two_movies_with_noise():
    """Scalar noise shrinks the observed entry and its neighbour by Sigma / (a + s)."""
    Y, H = np.array([[5.0, 0.0], [1.0, 0.0]]), np.array([[True, False], [True, False]])
    (state,) = map_em(Y, H, epsilon=0.5, iterations=1, noise=2.0)
    np.testing.assert_allclose(state.mu, [3, 3])
    np.testing.assert_allclose(state.Sigma, [[4.5, 0], [0, 0.5]])
    np.testing.assert_allclose(state.F, [[3 + 4.5 / 6.5 * 2, 3], [3 - 4.5 / 6.5 * 2, 3]])
    variance = posterior_variance(state.mu, state.Sigma, 2.0, [0])
    np.testing.assert_allclose(variance, [4.5 * 2 / 6.5, 0.5])


@pytest.mark.parametrize("noise", NOISES[1:], ids=NOISE_IDS[1:])
def test_estimate_and_variance_in_information_form(noise):
    """(4), third line, solved as normal equations: independent of the last line's form."""
    Y, H = problem()
    state = map_em(Y, H, epsilon=EPS, iterations=2, noise=noise)[-1]
    precision, Sigma_w = np.linalg.inv(state.Sigma), noise_matrix(noise, N)
    for i in range(M):
        U = masking_operator(H[i])
        W = U.T @ np.linalg.inv(U @ Sigma_w @ U.T)
        A = W @ U + precision
        f = np.linalg.solve(A, W @ Y[i][H[i]] + precision @ state.mu)
        np.testing.assert_allclose(state.F[i], f, atol=1e-9)
        variance = posterior_variance(state.mu, state.Sigma, noise, np.flatnonzero(H[i]))
        np.testing.assert_allclose(variance, np.diag(np.linalg.inv(A)), atol=1e-9)


@pytest.mark.parametrize("em", [map_em, exact_em])
def test_observed_and_empty_rows(em):
    Y, H = problem()
    for state in em(Y, H, epsilon=EPS, iterations=3):
        np.testing.assert_allclose(state.F[H], Y[H], atol=1e-10)
        np.testing.assert_array_equal(state.F[0], state.mu)
    assert em(Y, H, epsilon=EPS, iterations=0) == []
    noisy = em(Y, H, epsilon=EPS, iterations=1, noise=0.5)[0]
    assert np.abs(noisy.F[H] - Y[H]).max() > 1e-2
    np.testing.assert_array_equal(noisy.F[0], noisy.mu)


@pytest.mark.parametrize("em", [map_em, exact_em])
def test_noise_forms_agree_and_unobserved_values_are_ignored(em):
    Y, H = problem()
    runs = [
        em(y, H, epsilon=EPS, iterations=3, noise=s)[-1]
        for y, s in [(Y, 0.4), (np.where(H, Y, 1e6), np.full(N, 0.4)), (Y, 0.4 * np.eye(N))]
    ]
    for run in runs[1:]:
        np.testing.assert_allclose(run.F, runs[0].F, atol=1e-10)
        assert run.map_objective == pytest.approx(runs[0].map_objective)
    assert noise_matrix([1, 2], 2).tolist() == [[1, 0], [0, 2]]
    with pytest.raises(ValueError, match="noise has shape"):
        noise_matrix(np.ones(N + 1), N)


@pytest.mark.parametrize("noise", NOISES, ids=NOISE_IDS)
def test_penalised_objective_rises_in_both_steps(noise):
    Y, H = problem()
    states = map_em(Y, H, epsilon=EPS, iterations=12, noise=noise)
    Sigma_w, rng = noise_matrix(noise, N), np.random.default_rng(1)
    Y0 = np.where(H, Y, 0.0)

    def objective(F, mu, Sigma):
        return complete_log_density(F, Y0, H, mu, Sigma, Sigma_w) - penalty(Sigma)

    for old, new in pairwise(states):
        assert objective(old.F, old.mu, old.Sigma) == pytest.approx(old.penalised_objective)
        after_m = objective(old.F, new.mu, new.Sigma)
        assert old.penalised_objective < after_m < new.penalised_objective
        for _ in range(5):  # the M-step is the maximum at fixed F, not merely an ascent
            B = 0.1 * rng.normal(size=(N, N))
            Sigma = (np.eye(N) + B) @ new.Sigma @ (np.eye(N) + B).T
            assert objective(old.F, new.mu + 0.1 * rng.normal(size=N), Sigma) < after_m


@pytest.mark.parametrize("noise", NOISES, ids=NOISE_IDS)
@pytest.mark.parametrize("seed", range(4))
def test_exact_em_never_lowers_the_penalised_likelihood(noise, seed):
    Y, H = problem(seed)
    states = exact_em(Y, H, epsilon=EPS, iterations=30, noise=noise)
    values = [s.log_likelihood - penalty(s.Sigma) for s in states]
    np.testing.assert_allclose(values, [s.penalised_likelihood for s in states])
    assert np.all(np.diff(values) >= -1e-9)
    assert values[-1] > values[0]


def test_first_iteration_shared_and_full_data_in_one_step():
    Y, H = problem()
    one, other = (em(Y, H, epsilon=EPS, iterations=2, noise=0.4) for em in (map_em, exact_em))
    np.testing.assert_array_equal(one[0].F, other[0].F)
    assert np.abs(one[1].Sigma - other[1].Sigma).max() > 1e-3
    full = np.where(H, Y, 2.0)
    for em in (map_em, exact_em):
        state = em(full, np.ones_like(H), epsilon=EPS, iterations=3)[-1]
        np.testing.assert_allclose(state.mu, full.mean(0))
        expected = np.cov(full.T, bias=True) + EPS * np.eye(N)
        np.testing.assert_allclose(state.Sigma, expected, atol=1e-9)
        density = sum(log_gaussian(f, state.mu, state.Sigma) for f in full)
        assert state.log_likelihood == pytest.approx(density)
        assert state.map_objective == pytest.approx(density)


def test_exact_em_m_step_by_hand():
    Y, H = problem()
    first, second = exact_em(Y, H, epsilon=EPS, iterations=2, noise=VARIANCES)
    mu, Sigma = m_step(first.F, EPS)
    np.testing.assert_allclose(second.mu, mu)
    extra = [posterior_variance(mu, first.Sigma, VARIANCES, np.flatnonzero(h)) for h in H]
    np.testing.assert_allclose(np.diag(second.Sigma - Sigma), np.mean(extra, axis=0), atol=1e-10)


def test_columns_and_blocks_by_hand():
    Y = np.arange(1.0, 7.0).reshape(2, 3)
    H = np.array([[True, False, True], [True, True, True]])
    S, K = columns(Y, H)
    assert S.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert K.tolist() == [[True, True], [False, True], [True, True]]
    S, K = blocks(Y, H, 2, 2)
    assert S.tolist() == [[1, 2, 4, 5], [3, 0, 6, 0]]
    assert K.tolist() == [[True, False, True, True], [True, False, True, False]]


@pytest.mark.parametrize(("h", "w"), [(1, 1), (1, N), (M, 1), (2, 5), (3, 2), (4, 7), (20, 20)])
def test_blocks_round_trip(h, w):
    Y, H = problem()
    S, K = blocks(Y, H, h, w)
    assert S.shape == K.shape == (-(-M // h) * -(-N // w), h * w)
    assert K.sum() == H.sum()
    np.testing.assert_array_equal(from_blocks(S, (M, N), h, w), Y)
    np.testing.assert_array_equal(from_blocks(K, (M, N), h, w), H)
    if (h, w) == (1, N):
        np.testing.assert_array_equal(S, Y)
    if (h, w) == (M, 1):
        np.testing.assert_array_equal(S, columns(Y, H)[0])
