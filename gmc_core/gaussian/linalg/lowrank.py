"""Partly observed vectors under W Wᵀ + D: posteriors of their factors, and the rows of W.

A signal is r = W[o] x + e with x ~ N(0, Id) of R numbers and e ~ N(0, D[o]), D diagonal. All
solves have R equations, however many observations a signal has (Woodbury's identity).
Symmetric R × R matrices are kept packed: the rows of the lower triangle one after the other.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gmc_core.gaussian.linalg.lapack import gram
from gmc_core.gaussian.linalg.sweep import sweep


@njit(nogil=True, cache=True)
def posterior(rows, n, rank, mean, space, sweeping):  # type: ignore[no-untyped-def]
    """mean ← C mean, and -C left in ``space.work`` (lower triangle), with C = (Id + RᵀR)⁻¹.

    rows : R (n × rank, flat). Others as of :func:`factor_posteriors`.

    Returns
    -------
    meanᵀ C mean of what was given, and log|Id + RᵀR|.
    """
    work = space.work
    if n > 0:
        gram(rows, n, rank, True, work, space.flags, space.integers, space.scalars)
    else:
        work[: rank * rank] = 0
    for k in range(rank):
        work[k * rank + k] += 1
    return sweep(
        work, mean, rank, sweeping, space.packed, space.flags, space.integers, space.scalars
    )


@njit(nogil=True, cache=True)
def factor_posteriors(  # type: ignore[no-untyped-def]
    batch, indptr, indices, residuals, loadings, roots, space, rows, sweeping, means, spreads, forms
):
    """Posterior of the factors x of the signals in ``batch``.

    With C = (Id + W[o]ᵀ D[o]⁻¹ W[o])⁻¹ and b = W[o]ᵀ D[o]⁻¹ r it is N(C b, C).

    Parameters
    ----------
    indptr, indices, residuals : the observations r (CSR), float64.
    loadings : W (N, R). roots : (N,) 1/√D, float64.
    space : :func:`gmc_core.gaussian.linalg.solve.scratch` of R² numbers. rows : at least
        N_i · R numbers. sweeping : :func:`gmc_core.gaussian.linalg.sweep.sweep_space` of R rows.
    means : (M, R) C b, written. spreads : (M, R (R + 1) / 2) C packed, written.
    forms : (M, 2) rᵀ K⁻¹ r and log|K|, K = W[o] W[o]ᵀ + D[o], written.

    Returns
    -------
    -1, or the position of the first signal whose numbers are not finite.
    """
    rank, work = loadings.shape[1], space.work
    for signal in batch:
        first, last = indptr[signal], indptr[signal + 1]
        mean = means[signal]
        mean[:] = 0
        quadratic, log_det = 0.0, 0.0
        for i in range(last - first):
            root, own = roots[indices[first + i]], loadings[indices[first + i]]
            scaled = residuals[first + i] * root
            row = rows[i * rank : (i + 1) * rank]
            factor, weight = rows.dtype.type(root), rows.dtype.type(scaled)
            for k in range(rank):
                row[k] = own[k] * factor
                mean[k] += row[k] * weight
            quadratic += scaled * scaled
            log_det -= 2 * np.log(root)
        explained, inner = posterior(rows, last - first, rank, mean, space, sweeping)
        forms[signal, 0], forms[signal, 1] = quadratic - explained, log_det + inner
        if not np.isfinite(quadratic - explained + log_det + inner):
            return signal
        spread, at = spreads[signal], 0
        for k in range(rank):
            for other in range(k + 1):
                spread[at] = -work[k * rank + other]
                at += 1
    return -1


@njit(nogil=True, cache=True)
def loading_rows(  # type: ignore[no-untyped-def]
    batch, by_coordinate, entries, owners, residuals, means, spreads, noise, penalty, pulls,
    space, sweeping, packed, out,
):  # fmt: skip
    """Rows of W for the coordinates in ``batch``, from the posteriors N(m_i, C_i) of all signals.

    w_j = (Σ_i [C_i + m_i m_iᵀ] + d_j P)⁻¹ (Σ_i r_ij m_i + d_j p_j) over the signals that have j.

    Parameters
    ----------
    by_coordinate : (N + 1,). entries : (nnz,) positions of the coordinates' observations among
        all. owners : (nnz,) the signal of each observation. residuals : (nnz,) r.
    means, spreads : as :func:`factor_posteriors` has written them. noise : (N,) D.
    penalty : P packed. pulls : (N, R) p_j. space, sweeping : as there.
    packed : workspace of R (R + 1) / 2 numbers. out : (N, R), written.

    Returns
    -------
    -1, or the first coordinate whose matrix is not positive definite.
    """
    rank, work = means.shape[1], space.work
    for coordinate in batch:
        row, own = out[coordinate], out.dtype.type(noise[coordinate])
        for k in range(len(packed)):
            packed[k] = penalty[k] * own
        for k in range(rank):
            row[k] = pulls[coordinate, k] * own
        for q in range(by_coordinate[coordinate], by_coordinate[coordinate + 1]):
            signal = owners[entries[q]]
            spread, mean = spreads[signal], means[signal]
            weight = out.dtype.type(residuals[entries[q]])
            at = 0
            for k in range(rank):
                factor = mean[k]
                row[k] += factor * weight
                for other in range(k + 1):
                    place = np.uintp(at + other)
                    packed[place] += spread[place] + factor * mean[np.uintp(other)]
                at += k + 1
        at = 0
        for k in range(rank):
            for other in range(k + 1):
                work[k * rank + other] = packed[at]
                at += 1
        form, _ = sweep(
            work, row, rank, sweeping, space.packed, space.flags, space.integers, space.scalars
        )
        if not np.isfinite(form):
            return coordinate
    return -1


@njit(nogil=True, cache=True)
def factor_products(first, last, signals, coordinates, means, loadings, out):  # type: ignore[no-untyped-def]
    """out[p] = x_i · w_j for pairs first..last of signal i and coordinate j, in float64."""
    for p in range(first, last):
        mean, row = means[signals[p]], loadings[coordinates[p]]
        total = 0.0
        for k in range(len(row)):
            total += np.float64(mean[k]) * np.float64(row[k])
        out[p] = total
