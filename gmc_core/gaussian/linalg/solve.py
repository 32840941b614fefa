"""The E-step's linear systems: a = (Σ[o, o] + Σ_w[o, o])⁻¹ (y - μ[o]) for every signal.

Each signal has its own index set o of N_i observed coordinates. There are three exact
Cholesky solves, for what is known of K = Σ[o, o] + Σ_w[o, o]:

- small systems are solved ``lanes`` at a time, one in each lane of the vector registers: a
  factorization of 50 × 50 alone leaves most of the processor idle;
- large ones one by one, by :func:`gmc_core.gaussian.linalg.cholesky.cholesky_solve`;
- where Σ is a factor with fewer columns than the signal has observations, the same in the
  factor's space (Woodbury's identity).

Where K⁻¹ itself is needed, :mod:`gmc_core.gaussian.linalg.sweep` computes it and solves in one
pass. Gather and solve are one pass too: the sub-matrix exists only in a workspace that stays
in cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from gmc_core.gaussian.linalg.cholesky import cholesky_solve, panel_space
from gmc_core.gaussian.linalg.lapack import gram, letters
from gmc_core.gaussian.linalg.products import SESSION_REACH
from gmc_core.gaussian.linalg.vectors import (
    fnma,
    load,
    mul,
    reciprocal,
    square_root,
    store,
)

# Largest system for the lanes. Measured on AVX-512: in lanes 22 GFLOP/s (float64) and
# 50 (float32) from N_i = 50 up; LAPACK passes that between 200 and 300.
LANE_LIMIT = 256


class Systems(NamedTuple):
    """The systems of all M signals, and where their answers go.

    indptr, indices : observed coordinates (CSR, rising in each signal).
    values, mean : (nnz,) y and (N,) μ, float64; the right-hand side is y - μ[o].
    noise, kind : Σ_w, see :class:`gmc_core.gaussian.noise.Noise`.
    times, shared : what observations share by their times: when each was made (nnz,), NaN where
        unknown, and (τ², 1/w) of :class:`gmc_core.gaussian.noise.SessionNoise`. With τ² = 0 the
        times are not read.
    weights : (nnz,) the a's, written.
    forms : (M, 2) rᵀ K⁻¹ r and log|K| of each signal, written.
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    mean: np.ndarray
    noise: np.ndarray
    kind: int
    times: np.ndarray
    shared: np.ndarray
    weights: np.ndarray
    forms: np.ndarray


class Scratch(NamedTuple):
    """What the solves of one thread share, see
    :func:`gmc_core.gaussian.linalg.cholesky.cholesky_solve`.

    work : flat, room for the largest matrix.
    """

    work: np.ndarray
    packed: np.ndarray
    flags: np.ndarray
    integers: np.ndarray
    scalars: np.ndarray


def scratch(numbers: int, dtype: np.dtype) -> Scratch:
    """Scratch with room for a matrix of so many ``numbers``."""
    return Scratch(
        work=np.empty(numbers, dtype),
        packed=panel_space(dtype),
        flags=letters(),
        integers=np.empty(4, np.intc),
        scalars=np.array([1, -1, 0], dtype),
    )


@njit(nogil=True, cache=True)
def _cholesky(n, right, space):  # type: ignore[no-untyped-def]
    """Solve the system in ``space.work`` in place; whether it is positive definite."""
    info = cholesky_solve(
        space.work, right, n, space.packed, space.flags, space.integers, space.scalars
    )
    return info == 0


@njit(nogil=True, cache=True)
def _variance(systems, coordinate):  # type: ignore[no-untyped-def]
    """Diagonal entry of Σ_w: kind 1 has one variance, kind 2 one per coordinate."""
    return systems.noise[0, 0] if systems.kind == 1 else systems.noise[0, coordinate]


@njit(nogil=True, cache=True)
def _shared(systems, entry, other):  # type: ignore[no-untyped-def]
    """Covariance τ² exp(-|t - t'| / w) of the errors of two observations of one signal."""
    apart = abs(systems.times[entry] - systems.times[other]) * systems.shared[1]
    return (
        systems.shared[0] * np.exp(-apart) if apart < SESSION_REACH else 0.0
    )  # NaN shares nothing


@njit(nogil=True, cache=True)
def gather(systems, signal, covariance, work):  # type: ignore[no-untyped-def]
    """Lower triangle of Σ[o, o] to ``work``, flat with stride N_i."""
    observed = systems.indices[systems.indptr[signal] : systems.indptr[signal + 1]]
    n = len(observed)
    for i in range(n):
        row = covariance[observed[i]]
        base = i * n
        for j in range(i + 1):
            work[base + j] = row[np.uintp(observed[j])]


@njit(nogil=True, cache=True)
def prepare(systems, signal, work):  # type: ignore[no-untyped-def]
    """K from Σ[o, o] in ``work`` (lower triangle), and r in the place of the weights.

    Returns the view of the signal's weights.
    """
    first, last = systems.indptr[signal], systems.indptr[signal + 1]
    n = last - first
    observed, values = systems.indices[first:last], systems.values[first:last]
    answer, mean = systems.weights[first:last], systems.mean
    if systems.kind == 3:
        for i in range(n):
            for j in range(i + 1):
                work[i * n + j] += systems.noise[observed[i], observed[j]]
    elif systems.kind > 0:
        for i in range(n):
            work[i * n + i] += _variance(systems, observed[i])
    if systems.shared[0] > 0:
        for i in range(n):
            for j in range(i):
                work[i * n + j] += _shared(systems, first + i, first + j)
            work[i * n + i] += systems.shared[0]
    for i in range(n):
        answer[i] = values[i] - mean[observed[i]]
    return answer


@njit(nogil=True, cache=True)
def _solve_one(systems, signal, space):  # type: ignore[no-untyped-def]
    """Add Σ_w[o, o] to Σ[o, o] in the workspace, solve, and write the signal's answers.

    False if the matrix is not positive definite.
    """
    work = space.work
    first, last = systems.indptr[signal], systems.indptr[signal + 1]
    n = last - first
    observed, values = systems.indices[first:last], systems.values[first:last]
    mean = systems.mean
    answer = prepare(systems, signal, work)
    if not _cholesky(n, answer, space):
        return False
    quadratic, log_det = 0.0, 0.0
    for i in range(n):
        quadratic += (values[i] - mean[observed[i]]) * answer[i]
        log_det += 2 * np.log(np.float64(work[i * n + i]))
    systems.forms[signal, 0], systems.forms[signal, 1] = quadratic, log_det
    return np.isfinite(quadratic + log_det)


@njit(nogil=True, cache=True)
def solve_large(batch, systems, covariance, space):  # type: ignore[no-untyped-def]
    """Solve the systems of the signals in ``batch`` one by one.

    Parameters
    ----------
    batch : positions of the signals to solve.
    covariance : (N, N), lower triangle read.
    space : :func:`scratch` of at least N_i² numbers.

    Returns
    -------
    -1, or the position of the first signal whose matrix is not positive definite.
    """
    for signal in batch:
        gather(systems, signal, covariance, space.work)
        if not _solve_one(systems, signal, space):
            return signal
    return -1


@njit(nogil=True, cache=True)
def solve_factored(batch, systems, factor, epsilon, space, rows):  # type: ignore[no-untyped-def]
    """As :func:`solve_large` for Σ = factor factorᵀ + ε Id, which is never formed.

    A signal with more observations than the factor has columns is solved in the
    factor's space, which is smaller, unless Σ_w is a full matrix or has entries off the diagonal
    that observations share by their times.

    ``factor`` is (N, R); ``space`` holds max(min(N_i, R)²) numbers, or N_i² with a
    Σ_w that is not diagonal; ``rows`` at least N_i · R.
    """
    rank = factor.shape[1]
    for signal in batch:
        observed = systems.indices[systems.indptr[signal] : systems.indptr[signal + 1]]
        n = len(observed)
        for i in range(n):
            rows[i * rank : (i + 1) * rank] = factor[observed[i]]
        if n > rank and systems.kind != 3 and not systems.shared[0] > 0:
            solved = _solve_inside(systems, signal, epsilon, rank, rows, space)
        else:
            gram(rows, n, rank, False, space.work, space.flags, space.integers, space.scalars)
            for i in range(n):
                space.work[i * n + i] += epsilon
            solved = _solve_one(systems, signal, space)
        if not solved:
            return signal
    return -1


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _dot(flat, start, vector):  # type: ignore[no-untyped-def]
    """Σ_k flat[start + k] vector[k] in float64, in the order that vectors of numbers allow."""
    total = 0.0
    for k in range(len(vector)):
        total += np.float64(flat[np.uintp(start + k)]) * np.float64(vector[k])
    return total


@njit(nogil=True, cache=True)
def _solve_inside(systems, signal, epsilon, rank, z, space):  # type: ignore[no-untyped-def]
    """K a = r for K = Z Zᵀ + D with D diagonal, through the R × R matrix.

    With Z, r and a scaled by D^-½ (Woodbury's identity): a = r - Z t with
    (Id + ZᵀZ) t = Zᵀ r, and log|K| = log|Id + ZᵀZ| + log|D|.
    """
    first, last = systems.indptr[signal], systems.indptr[signal + 1]
    n = last - first
    observed, values = systems.indices[first:last], systems.values[first:last]
    answer, mean = systems.weights[first:last], systems.mean
    projected = np.zeros(rank)
    log_det = 0.0
    for i in range(n):
        variance = np.float64(epsilon)
        if systems.kind > 0:
            variance += _variance(systems, observed[i])
        if not variance > 0:
            return False
        log_det += np.log(variance)
        scale = z.dtype.type(1 / np.sqrt(variance))
        answer[i] = (values[i] - mean[observed[i]]) * scale
        row = z[i * rank : (i + 1) * rank]
        for k in range(rank):
            row[k] *= scale
            projected[k] += np.float64(row[k]) * answer[i]
    work = space.work
    gram(z, n, rank, True, work, space.flags, space.integers, space.scalars)
    for k in range(rank):
        work[k * rank + k] += 1
    inside = projected.astype(z.dtype)
    if not _cholesky(rank, inside, space):
        return False
    for k in range(rank):
        log_det += 2 * np.log(np.float64(work[k * rank + k]))
    quadratic = 0.0
    for i in range(n):
        part = _dot(z, i * rank, inside)
        variance = np.float64(epsilon)
        if systems.kind > 0:
            variance += _variance(systems, observed[i])
        answer[i] = (answer[i] - part) / np.sqrt(variance)
        quadratic += (values[i] - mean[observed[i]]) * answer[i]
    systems.forms[signal, 0], systems.forms[signal, 1] = quadratic, log_det
    return np.isfinite(quadratic + log_det)


@njit(nogil=True, cache=True)
def solve_lanes(signals, systems, covariance, work, lanes):  # type: ignore[no-untyped-def]
    """The same as :func:`solve_large` for small systems, ``lanes`` signals at once.

    Signals of similar N_i should be neighbours in ``signals``: a batch is padded
    to its largest system with rows of the identity. ``work`` holds at least
    lanes · n (n + 2) numbers, n the largest N_i rounded up to an even number.
    """
    for start in range(0, len(signals), lanes):
        batch = signals[start : start + lanes]
        n = 0
        for signal in batch:
            n = max(n, systems.indptr[signal + 1] - systems.indptr[signal])
        n += n % 2
        right = work[n * n * lanes :]
        _gather(batch, systems, covariance, work, right, n, lanes)
        _factor_and_solve(work, right, n, lanes)
        for lane in range(len(batch)):
            signal = batch[lane]
            first, last = systems.indptr[signal], systems.indptr[signal + 1]
            quadratic, log_det = 0.0, 0.0
            for i in range(last - first):
                answer = right[i * lanes + lane]
                systems.weights[first + i] = answer
                residual = systems.values[first + i] - systems.mean[systems.indices[first + i]]
                quadratic += residual * answer
                log_det -= 2 * np.log(np.float64(work[(i * n + i) * lanes + lane]))
            systems.forms[signal, 0], systems.forms[signal, 1] = quadratic, log_det
            if not np.isfinite(quadratic + log_det):
                return signal
    return -1


@njit(nogil=True, cache=True)
def _gather(batch, systems, covariance, work, right, n, lanes):  # type: ignore[no-untyped-def]
    """Entry (i, j) of lane l to work[(i·n + j)·lanes + l]; the same for y - μ[o]."""
    for lane in range(lanes):
        size, first = 0, 0
        if lane < len(batch):
            first = systems.indptr[batch[lane]]
            size = systems.indptr[batch[lane] + 1] - first
        observed = systems.indices[first : first + size]
        for i in range(size):
            row = covariance[observed[i]]
            at = i * n * lanes + lane
            for j in range(i + 1):
                work[np.uintp(at + j * lanes)] = row[np.uintp(observed[j])]
            if systems.kind == 3:
                for j in range(i + 1):
                    work[at + j * lanes] += systems.noise[observed[i], observed[j]]
            elif systems.kind > 0:
                work[at + i * lanes] += _variance(systems, observed[i])
            if systems.shared[0] > 0:
                for j in range(i):
                    work[at + j * lanes] += _shared(systems, first + i, first + j)
                work[at + i * lanes] += systems.shared[0]
            right[i * lanes + lane] = systems.values[first + i] - systems.mean[observed[i]]
        for i in range(size, n):
            at = i * n * lanes + lane
            for j in range(i):
                work[at + j * lanes] = 0
            work[at + i * lanes] = 1
            right[i * lanes + lane] = 0


@njit(nogil=True, cache=True)
def _factor_and_solve(w, right, n, lanes):  # type: ignore[no-untyped-def]
    """Cholesky, then the two triangular solves, of ``lanes`` systems of even size n.

    Left-looking: two columns at a time, four rows below them at a time, so that
    eight sums stay in registers. The diagonal of ``w`` ends as 1 / L[i, i]; a
    system that is not positive definite ends as NaN or inf in its lane.
    """
    for j in range(0, n, 2):
        row0, row1 = j * n * lanes, (j + 1) * n * lanes
        at0, at1 = j * lanes, (j + 1) * lanes
        d00, d10, d11 = load(w, row0 + at0), load(w, row1 + at0), load(w, row1 + at1)
        r0, r1 = load(right, at0), load(right, at1)
        for k in range(0, j * lanes, lanes):
            a, b, r = load(w, row0 + k), load(w, row1 + k), load(right, k)
            d00 = fnma(d00, a, a)
            d10 = fnma(d10, a, b)
            d11 = fnma(d11, b, b)
            r0 = fnma(r0, a, r)
            r1 = fnma(r1, b, r)
        i0 = reciprocal(square_root(d00))
        d10 = mul(d10, i0)
        i1 = reciprocal(square_root(fnma(d11, d10, d10)))
        store(w, row0 + at0, i0)
        store(w, row1 + at0, d10)
        store(w, row1 + at1, i1)
        # The forward solve rides along: r is one more row of the matrix.
        r0 = mul(r0, i0)
        store(right, at0, r0)
        store(right, at1, mul(fnma(r1, d10, r0), i1))
        i = j + 2
        while i + 4 <= n:
            x = i * n * lanes
            y, z, u = x + n * lanes, x + 2 * n * lanes, x + 3 * n * lanes
            x0, x1 = load(w, x + at0), load(w, x + at1)
            y0, y1 = load(w, y + at0), load(w, y + at1)
            z0, z1 = load(w, z + at0), load(w, z + at1)
            u0, u1 = load(w, u + at0), load(w, u + at1)
            for k in range(0, j * lanes, lanes):
                a, b = load(w, row0 + k), load(w, row1 + k)
                c = load(w, x + k)
                x0, x1 = fnma(x0, a, c), fnma(x1, b, c)
                c = load(w, y + k)
                y0, y1 = fnma(y0, a, c), fnma(y1, b, c)
                c = load(w, z + k)
                z0, z1 = fnma(z0, a, c), fnma(z1, b, c)
                c = load(w, u + k)
                u0, u1 = fnma(u0, a, c), fnma(u1, b, c)
            x0, y0, z0, u0 = mul(x0, i0), mul(y0, i0), mul(z0, i0), mul(u0, i0)
            store(w, x + at0, x0)
            store(w, y + at0, y0)
            store(w, z + at0, z0)
            store(w, u + at0, u0)
            store(w, x + at1, mul(fnma(x1, d10, x0), i1))
            store(w, y + at1, mul(fnma(y1, d10, y0), i1))
            store(w, z + at1, mul(fnma(z1, d10, z0), i1))
            store(w, u + at1, mul(fnma(u1, d10, u0), i1))
            i += 4
        while i < n:
            x = i * n * lanes
            x0, x1 = load(w, x + at0), load(w, x + at1)
            for k in range(0, j * lanes, lanes):
                c = load(w, x + k)
                x0 = fnma(x0, load(w, row0 + k), c)
                x1 = fnma(x1, load(w, row1 + k), c)
            x0 = mul(x0, i0)
            store(w, x + at0, x0)
            store(w, x + at1, mul(fnma(x1, d10, x0), i1))
            i += 1
    for i in range(n - 1, -1, -1):
        row = i * n * lanes
        answer = mul(load(right, i * lanes), load(w, row + i * lanes))
        store(right, i * lanes, answer)
        for k in range(0, i * lanes, lanes):
            store(right, k, fnma(load(right, k), load(w, row + k), answer))
