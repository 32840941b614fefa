"""A low-rank Gaussian's users and items: Σ = W Wᵀ + γ Id, K = W[o] W[o]ᵀ + d Id with d = γ + σ².

With rows R = W[o] / √d a signal's factors have the posterior N(C Rᵀ r / √d, C) with
C = (Id + RᵀR)⁻¹, and its dual coefficients are a = (r - W[o] m) / d: R equations a signal, however
many observations it has. Symmetric matrices are kept packed, as in
:mod:`gmc_core.gaussian.linalg.lowrank`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from gmc_core.gaussian.linalg.latent import NOT_FINITE, climb, times
from gmc_core.gaussian.linalg.lowrank import posterior
from gmc_core.gaussian.linalg.sweep import sweep


@njit(nogil=True, cache=True)
def factor_beliefs(  # type: ignore[no-untyped-def]
    batch, first, systems, loadings, variances, ends, shift, settling, space, rows, sweeping, room,
    values, centres, factors, moments,
):  # fmt: skip
    """Factors, dual coefficients and latent responses of the signals in ``batch``.

    Parameters
    ----------
    systems : see :class:`gmc_core.gaussian.linalg.solve.Systems`; ``weights`` and ``forms`` are
        written. loadings : W (N, R). variances : (σ², d).
    ends, shift, settling : of ordered ratings: (low, high) of each rating's latent response, what
        covariates add to the mean, and (tolerance, rounds); with 0 rounds the responses are taken
        as they are. Of numbers the shift is empty.
    space : :func:`gmc_core.gaussian.linalg.solve.scratch` of R² numbers. rows : at least N_i · R
        numbers. sweeping : :func:`gmc_core.gaussian.linalg.sweep.sweep_space` of R rows.
    room : 2 R numbers.
    values : (nnz,) latent responses, overwritten; not read with rounds of 0.
    centres : (M, R) prior means α of the factors, or (0, R) for zeros.
    factors : (M, R) written with α + m.
    moments : of signal ``first`` and those after it, the second moments of (α + x, 1), packed,
        (.., (R + 1)(R + 2) / 2), written; (0, ..) where they are not wanted.

    Returns
    -------
    The first signal that was not solved, or -1, and why, as
    :func:`gmc_core.gaussian.linalg.latent.settle`.
    """
    rank, work = loadings.shape[1], space.work
    noise, total = variances
    root = 1 / math.sqrt(total)
    factor = rows.dtype.type(root)
    for signal in batch:
        start, stop = systems.indptr[signal], systems.indptr[signal + 1]
        n, mean = stop - start, factors[signal]
        mean[:] = 0
        for i in range(n):
            item = systems.indices[start + i]
            own, row = loadings[item], rows[i * rank : (i + 1) * rank]
            weight = rows.dtype.type((systems.values[start + i] - systems.mean[item]) * root)
            for k in range(rank):
                row[k] = own[k] * factor
                mean[k] += row[k] * weight
        form, log_det = posterior(rows, n, rank, mean, space, sweeping)
        if not math.isfinite(form):
            return signal, NOT_FINITE
        if len(shift):
            if settling[1] > 0:
                a, f, low, high = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
                for i in range(n):
                    a[i] = _left(systems, start + i, rows, i, mean, rank, root) / total
                    f[i] = systems.values[start + i] - noise * a[i]
                    low[i] = ends[0][start + i] - shift[start + i]
                    high[i] = ends[1][start + i] - shift[start + i]
                inverse = rows, work, room, total
                took = climb(f, a, low, high, noise, inverse, rows, settling[0], settling[1])
                if took < 0:
                    return signal, took
                for i in range(n):
                    systems.values[start + i] = f[i] + noise * a[i]
                    values[start + i] = systems.values[start + i] + shift[start + i]
            # Also of responses that are taken as they are, so that both give the same digits.
            _factors(systems, start, n, rows, work, rank, root, room[:rank], mean)
        quadratic = 0.0
        for i in range(n):
            r = systems.values[start + i] - systems.mean[systems.indices[start + i]]
            answer = _left(systems, start + i, rows, i, mean, rank, root) / total
            systems.weights[start + i] = answer
            quadratic += r * answer
        systems.forms[signal, 0] = quadratic
        systems.forms[signal, 1] = log_det + n * math.log(total)
        if not math.isfinite(quadratic + log_det):
            return signal, NOT_FINITE
        if len(centres):
            for k in range(rank):
                mean[k] += centres[signal, k]
        if len(moments):
            moment, at = moments[signal - first], 0
            for k in range(rank):
                own = mean[k]
                for j in range(k + 1):
                    moment[at + j] = own * mean[j] - work[k * rank + j]
                at += k + 1
            moment[at : at + rank] = mean
            moment[at + rank] = 1
    return -1, 0


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _factors(systems, start, n, rows, spread, rank, root, inner, mean):  # type: ignore[no-untyped-def]
    """mean ← C Rᵀ r / √d, with -C in ``spread``."""
    inner[:] = 0
    for i in range(n):
        r = systems.values[start + i] - systems.mean[systems.indices[start + i]]
        weight = rows.dtype.type(r * root)
        for k in range(rank):
            inner[k] += rows[i * rank + k] * weight
    times(spread, rank, inner, mean)


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _left(systems, at, rows, i, mean, rank, root):  # type: ignore[no-untyped-def]
    """Of observation ``at`` what the factors do not explain, r - W m."""
    explained = rows.dtype.type(0)
    for k in range(rank):
        explained += rows[i * rank + k] * mean[k]
    return systems.values[at] - systems.mean[systems.indices[at]] - explained / root


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def add_moments(  # type: ignore[no-untyped-def]
    first, last, cursors, pointers, entries, owners, end, start, values, mean, moments, factors,
    sums, pulls,
):  # fmt: skip
    """Add what a block of signals says of the coordinates first..last.

    Parameters
    ----------
    cursors, pointers, entries, owners : the observations by coordinate; the next of each that was
        not added, moved on. end : position, in the order of the signals, at which the block ends.
    start : the first signal of the block, whose ``moments`` are the first.
    values, mean : y and μ. factors : (M, R).
    sums : (N, (R + 1)(R + 2) / 2), pulls : (N, R + 1); Σ_i of the moments and of (y - μ)(x, 1).
    """
    rank = factors.shape[1]
    for coordinate in range(first, last):
        q, stop = cursors[coordinate], pointers[coordinate + 1]
        own, pull, level = sums[coordinate], pulls[coordinate], mean[coordinate]
        while q < stop and entries[q] < end:
            signal = owners[entries[q]]
            moment, x = moments[signal - start], factors[signal]
            for k in range(len(own)):
                own[k] += moment[k]
            left = pulls.dtype.type(values[entries[q]] - level)
            for k in range(rank):
                pull[k] += left * x[k]
            pull[rank] += left
            q += 1
        cursors[coordinate] = q


@njit(nogil=True, cache=True)
def regress(batch, sums, pulls, penalty, priors, space, sweeping, loadings, shifts):  # type: ignore[no-untyped-def]
    """(w_j, Δμ_j) of the coordinates in ``batch``: (sums_j + penalty)⁻¹ (pulls_j + priors_j).

    penalty : packed. priors : (N, R + 1). loadings : (N, R), shifts : (N,), written.
    Returns -1, or the first coordinate whose matrix is not positive definite.
    """
    size, work = pulls.shape[1], space.work
    row = np.empty(size, work.dtype)
    for coordinate in batch:
        at = 0
        for k in range(size):
            row[k] = pulls[coordinate, k] + priors[coordinate, k]
            for other in range(k + 1):
                work[k * size + other] = sums[coordinate, at] + penalty[at]
                at += 1
        form, _ = sweep(
            work, row, size, sweeping, space.packed, space.flags, space.integers, space.scalars
        )
        if not math.isfinite(form):
            return coordinate
        loadings[coordinate] = row[: size - 1]
        shifts[coordinate] = row[size - 1]
    return -1
