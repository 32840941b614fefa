"""Slow, dense reference for the paper's section 2, written from its formulas alone.

Equation numbers are those of Leger, Yu, Sapiro, "Efficient Matrix Completion with Gaussian
Models": (1) Y = H . F + W, (2) y_i = U_i f_i + w_i, (3) Gaussian density, (4) MAP estimate,
(5)-(6) maximum-likelihood mean and covariance, (7) Sigma <- Sigma + eps Id.
It shares no code with the package: the fast implementation is tested against it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class State:
    """One iteration: the M-step's mu and Sigma, then the E-step's F under them."""

    mu: Array  # (N,)
    Sigma: Array  # (N, N), after (7)
    F: Array  # (M, N), equation (4), every coordinate
    log_likelihood: float  # sum_i log N(y_i; U_i mu, U_i Sigma U_i^T + Sigma_w)
    map_objective: float  # sum_i log p(f_i | mu, Sigma) [+ sum_i log p(y_i | f_i)]
    penalised_objective: float  # map_objective - (M eps / 2) tr Sigma^-1
    penalised_likelihood: float  # log_likelihood - (M eps / 2) tr Sigma^-1


def noise_matrix(noise: ArrayLike, N: int) -> Array:
    """Sigma_w (N x N) from a scalar variance, N variances, or the covariance itself."""
    w = np.asarray(noise, dtype=np.float64)
    if w.ndim == 0:
        return float(w) * np.eye(N)
    if w.shape == (N,):
        return np.diag(w)
    if w.shape == (N, N):
        return w
    raise ValueError(f"noise has shape {w.shape}; expected (), ({N},) or ({N}, {N})")


def masking_operator(h: ArrayLike) -> Array:
    """U_i of (2), N_i x N: row k has its single 1 at the k-th non-zero entry of h_i."""
    observed: Mask = np.asarray(h, dtype=bool)
    U: Array = np.eye(observed.size)[observed]
    return U


def log_gaussian(x: Array, mean: Array, covariance: Array) -> float:
    """Log of the density (3)."""
    d = x - mean
    _, log_determinant = np.linalg.slogdet(covariance)
    quadratic = d @ np.linalg.solve(covariance, d)
    return float(-0.5 * (x.size * np.log(2 * np.pi) + log_determinant + quadratic))


def map_estimate(y: Array, U: Array, mu: Array, Sigma: Array, Sigma_w: Array) -> Array:
    """(4), last line: mu + Sigma U^T (U Sigma U^T + U Sigma_w U^T)^-1 (y - U mu)."""
    K = U @ Sigma @ U.T + U @ Sigma_w @ U.T
    return mu + Sigma @ U.T @ np.linalg.solve(K, y - U @ mu)


def posterior_covariance(U: Array, Sigma: Array, Sigma_w: Array) -> Array:
    """Covariance of f_i given y_i: Sigma - Sigma U^T (U (Sigma + Sigma_w) U^T)^-1 U Sigma."""
    K = U @ Sigma @ U.T + U @ Sigma_w @ U.T
    return Sigma - Sigma @ U.T @ np.linalg.solve(K, U @ Sigma)


def posterior_variance(mu: Array, Sigma: Array, noise: ArrayLike, observed_idx: ArrayLike) -> Array:
    """Diagonal of the posterior covariance, (N,); it does not depend on the values observed."""
    N = len(mu)
    h = np.zeros(N, dtype=bool)
    h[np.asarray(observed_idx, dtype=int)] = True
    return np.diag(posterior_covariance(masking_operator(h), Sigma, noise_matrix(noise, N))).copy()


def m_step(F: Array, epsilon: float) -> tuple[Array, Array]:
    """(6), then (7)."""
    M, N = F.shape
    mu = sum((F[i] for i in range(M)), np.zeros(N)) / M
    Sigma = sum((np.outer(F[i] - mu, F[i] - mu) for i in range(M)), np.zeros((N, N))) / M
    return mu, Sigma + epsilon * np.eye(N)


def complete_log_density(
    F: Array, Y: Array, H: Mask, mu: Array, Sigma: Array, Sigma_w: Array
) -> float:
    """What (4) maximises, summed over i; log p(y_i | f_i) only if Sigma_w is positive definite."""
    total = sum(log_gaussian(f, mu, Sigma) for f in F)
    if _positive_definite(Sigma_w):
        for f, y, h in zip(F, Y, H, strict=True):
            U = masking_operator(h)
            total += log_gaussian(U @ y, U @ f, U @ Sigma_w @ U.T)
    return float(total)


def map_em(
    Y: Array,
    H: Mask,
    *,
    epsilon: float,
    iterations: int,
    noise: ArrayLike = 0.0,
    initial: float = 3.0,
) -> list[State]:
    """The paper's MAP-EM: `iterations` times an M-step (6)-(7), then an E-step (4)."""
    return _em(Y, H, epsilon, iterations, noise, initial, exact=False)


def exact_em(
    Y: Array,
    H: Mask,
    *,
    epsilon: float,
    iterations: int,
    noise: ArrayLike = 0.0,
    initial: float = 3.0,
) -> list[State]:
    """Textbook EM: the M-step adds the mean posterior covariance (zero at the first) to (6)."""
    return _em(Y, H, epsilon, iterations, noise, initial, exact=True)


def columns(Y: Array, H: Mask) -> tuple[Array, Mask]:
    """Signals are the columns of the matrix: N signals of dimension M."""
    return np.array(Y).T.copy(), np.array(H, dtype=bool).T.copy()


def blocks(Y: Array, H: Mask, h: int, w: int) -> tuple[Array, Mask]:
    """Signals are disjoint h x w blocks, taken row-major and each read row-major.

    Blocks that overhang the matrix hold 0, marked unobserved, outside it.
    """
    M, N = np.shape(Y)
    signals, masks = [], []
    for top in range(0, M, h):
        for left in range(0, N, w):
            signal, mask = np.zeros(h * w), np.zeros(h * w, dtype=bool)
            for r in range(h):
                for c in range(w):
                    if top + r < M and left + c < N:
                        signal[r * w + c] = Y[top + r, left + c]
                        mask[r * w + c] = H[top + r, left + c]
            signals.append(signal)
            masks.append(mask)
    return np.array(signals).reshape(-1, h * w), np.array(masks, dtype=bool).reshape(-1, h * w)


def from_blocks(S: Array, shape: tuple[int, int], h: int, w: int) -> Array:
    """Inverse of `blocks` for values or masks: the matrix of this shape, padding dropped."""
    M, N = shape
    blocks_per_row = -(-N // w)
    out = np.empty(shape, dtype=S.dtype)
    for m in range(M):
        for n in range(N):
            out[m, n] = S[(m // h) * blocks_per_row + n // w, (m % h) * w + n % w]
    return out


def _positive_definite(A: Array) -> bool:
    try:
        np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return False
    return True


def _em(
    Y: Array,
    H: Mask,
    epsilon: float,
    iterations: int,
    noise: ArrayLike,
    initial: float,
    *,
    exact: bool,
) -> list[State]:
    H = np.asarray(H, dtype=bool)
    Y = np.where(H, np.asarray(Y, dtype=np.float64), 0.0)  # unobserved entries may be NaN
    M, N = Y.shape
    Sigma_w = noise_matrix(noise, N)
    U = [masking_operator(h) for h in H]
    y = [U[i] @ Y[i] for i in range(M)]

    F = np.where(H, Y, initial)  # section 2.2.3: unknown entries take the initial value
    C = np.zeros((N, N))  # mean posterior covariance of the f_i: exact EM only
    states = []
    for _ in range(iterations):
        mu, Sigma = m_step(F, epsilon)
        Sigma = Sigma + C
        F = np.array([map_estimate(y[i], U[i], mu, Sigma, Sigma_w) for i in range(M)])
        if exact:
            C = sum((posterior_covariance(U[i], Sigma, Sigma_w) for i in range(M)), 0 * C) / M
        log_likelihood = sum(
            log_gaussian(y[i], U[i] @ mu, U[i] @ (Sigma + Sigma_w) @ U[i].T) for i in range(M)
        )
        map_objective = complete_log_density(F, Y, H, mu, Sigma, Sigma_w)
        penalty = 0.5 * M * epsilon * float(np.trace(np.linalg.inv(Sigma)))
        states.append(
            State(
                mu=mu,
                Sigma=Sigma,
                F=F,
                log_likelihood=float(log_likelihood),
                map_objective=map_objective,
                penalised_objective=map_objective - penalty,
                penalised_likelihood=float(log_likelihood) - penalty,
            )
        )
    return states
