"""Compiled pieces of the M-step and of prediction, one range of rows per call.

All of them write only inside the range they are given, so that the result does
not depend on how many threads share the work.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gmc_core.gaussian.linalg.vectors import REGISTER_BYTES, fma, load, splat, store

# Vectors held in registers by `sparse_times_symmetric`: enough to keep the multiplier busy.
TILE_VECTORS = 4

# Bytes of Σ that a thread works on at a time: the second-level cache of a current core.
# Beyond it each access costs five times as much (measured with 1 MB of cache).
_CACHE_BYTES = 1 << 20

# Observations so many windows apart share e⁻¹⁶ of the session noise, less than float32 resolves.
SESSION_REACH = 16.0

# Rows and columns of the square tiles in which a whole matrix is passed over.
BLOCK = 64

# Positions are made unsigned before they index: numba then leaves out the test for
# negative indices, which costs as much as the arithmetic in these loops.


@njit(nogil=True, cache=True)
def sparse_times_dense(first, last, indptr, indices, weights, dense, out):  # type: ignore[no-untyped-def]
    """Rows first..last of A · dense, A sparse (M × N), dense (N, R), out (M, R)."""
    for signal in range(first, last):
        result = out[signal]
        result[:] = 0
        for entry in range(indptr[signal], indptr[signal + 1]):
            row = dense[indices[entry]]
            factor = weights[entry]
            for k in range(len(result)):
                result[k] += factor * row[k]


@njit(nogil=True, cache=True)
def centre_rows(first, last, by_coordinate, entries, owners, scaled, sample_weights, out, shift):  # type: ignore[no-untyped-def]
    """Rows first..last of X' from those of X (A X)ᵀ, in one pass over memory.

    Adds ε Aᵀ, takes off the mean over the signals, and weighs each signal's column.

    Parameters
    ----------
    by_coordinate, entries : as for :func:`outer_sum`.
    owners : (nnz,) the signal of each CSR position. scaled : (nnz,) ε times A's numbers.
    sample_weights : (M,) float64, what each signal counts in the mean; they sum to 1.
    out : (N, M), in: X (A X)ᵀ; out: (F - mean)ᵀ with column i times √sample_weights[i].
    shift : (N,) float64, the mean, written.
    """
    roots = np.sqrt(sample_weights).astype(out.dtype)
    for j in range(first, last):
        row = out[j]
        for q in range(by_coordinate[j], by_coordinate[j + 1]):
            row[owners[entries[q]]] += scaled[entries[q]]
        mean = 0.0
        for i in range(len(row)):
            mean += sample_weights[i] * np.float64(row[i])
        shift[j] = mean
        centre = out.dtype.type(mean)
        for i in range(len(row)):
            row[i] = (row[i] - centre) * roots[i]


def tile_rows(size: int) -> int:
    """Rows of an N × N matrix whose tile fits the cache: N in equal parts."""
    most = _CACHE_BYTES // (REGISTER_BYTES * TILE_VECTORS)
    return -(-size // -(-size // most))


@njit(nogil=True, cache=True)
def outer_sum(first, last, by_coordinate, entries, starts, indices, weights, scale, out):  # type: ignore[no-untyped-def]
    """Rows first..last of the lower triangle of scale · AᵀA, A sparse (M × N).

    Parameters
    ----------
    by_coordinate, entries, starts : A's entries by column: the q-th entry of
        column j, by_coordinate[j] <= q < by_coordinate[j + 1], stands at CSR
        position entries[q] in a row that starts at CSR position starts[q].
    indices, weights : A in CSR form.
    out : (N, N), lower triangle of the rows written.
    """
    for j in range(first, last):
        row = out[j]
        row[: j + 1] = 0
        for q in range(by_coordinate[j], by_coordinate[j + 1]):
            entry = entries[q]
            factor = weights[entry] * scale
            for k in range(starts[q], entry + 1):
                row[np.uintp(indices[k])] += factor * weights[k]


@njit(nogil=True, cache=True)
def sparse_times_symmetric(  # type: ignore[no-untyped-def]
    first, last, indptr, indices, weights, matrix, column, lanes, tile, out
):
    """out[:, column:column + width] = A[first:last] · matrix[:, column:column + width].

    width = lanes · TILE_VECTORS. The columns are packed into ``tile``, a flat
    workspace of :func:`tile_rows` (N) · width numbers, as many rows of the matrix at
    a time as the second-level cache holds, and serve all rows of A from there.
    """
    size = matrix.shape[0]
    width = lanes * TILE_VECTORS
    inside = min(width, size - column)
    depth = len(tile) // width
    cursor = indptr[first:last].copy()
    result = np.zeros(width, matrix.dtype)
    for top in range(0, size, depth):
        bottom = min(top + depth, size)
        # By symmetry the columns are rows, which stream from memory.
        for group in range(0, inside, 8):
            stop = min(group + 8, inside)
            for i in range(top, bottom):
                for j in range(group, stop):
                    tile[np.uintp((i - top) * width + j)] = matrix[column + j, i]
        for signal in range(first, last):
            entry, end = cursor[signal - first], indptr[signal + 1]
            if top > 0:
                result[:inside] = out[signal - first, column : column + inside]
            else:
                result[:] = 0
            s0, s1 = load(result, 0), load(result, lanes)
            s2, s3 = load(result, 2 * lanes), load(result, 3 * lanes)
            while entry < end and indices[entry] < bottom:
                at = (np.int64(indices[entry]) - top) * width
                factor = splat(tile, weights[entry])
                s0 = fma(s0, factor, load(tile, at))
                s1 = fma(s1, factor, load(tile, at + lanes))
                s2 = fma(s2, factor, load(tile, at + 2 * lanes))
                s3 = fma(s3, factor, load(tile, at + 3 * lanes))
                entry += 1
            cursor[signal - first] = entry
            store(result, 0, s0)
            store(result, lanes, s1)
            store(result, 2 * lanes, s2)
            store(result, 3 * lanes, s3)
            out[signal - first, column : column + inside] = result[:inside]


@njit(nogil=True, cache=True)
def covariance_rows(first, last, shift, epsilon, new, old):  # type: ignore[no-untyped-def]
    """Turn the second moment in rows first..last of ``new`` into the covariance.

    Lower triangle: new ← new - shift shiftᵀ + ε Id; the upper triangle becomes its
    mirror image. One pass over memory, in square tiles, because at real sizes the
    pass costs as much as a product. Returns Σ (new - old)² and Σ old² of the rows'
    part of the symmetric matrix (off-diagonal entries count twice).
    """
    change, norm = 0.0, 0.0
    for start in range(0, last, BLOCK):
        for i in range(first, last):
            tile_change, tile_norm = 0.0, 0.0
            for j in range(start, min(start + BLOCK, i)):
                value = new[i, j] - new.dtype.type(shift[i] * shift[j])
                new[i, j] = value
                difference = np.float64(value) - np.float64(old[i, j])
                tile_change += difference * difference
                tile_norm += np.float64(old[i, j]) * np.float64(old[i, j])
            change += 2 * tile_change
            norm += 2 * tile_norm
        for j in range(start, min(start + BLOCK, last)):
            for i in range(max(first, j + 1), last):
                new[j, i] = new[i, j]
    for i in range(first, last):
        value = new[i, i] - new.dtype.type(shift[i] * shift[i]) + new.dtype.type(epsilon)
        new[i, i] = value
        difference = np.float64(value) - np.float64(old[i, i])
        change += difference * difference
        norm += np.float64(old[i, i]) * np.float64(old[i, i])
    return change, norm


@njit(nogil=True, cache=True)
def column_sums(indices, weights, size):  # type: ignore[no-untyped-def]
    """(size,) float64 sums of a sparse matrix's columns.

    What ``numpy.bincount`` gives, without its copies of both arrays as 64-bit numbers:
    with 2.5 million ratings they were as large as two Σ of 1,600 items.
    """
    sums = np.zeros(size)
    for entry in range(len(indices)):
        sums[np.uintp(indices[entry])] += np.float64(weights[entry])
    return sums


@njit(nogil=True, cache=True)
def mirror_rows(first, last, matrix):  # type: ignore[no-untyped-def]
    """Copy rows first..last of the lower triangle to the upper one, in square tiles."""
    for start in range(0, last, BLOCK):
        for j in range(start, min(start + BLOCK, last)):
            for i in range(max(first, j + 1), last):
                matrix[j, i] = matrix[i, j]


@njit(nogil=True, cache=True)
def pair_products(  # type: ignore[no-untyped-def]
    first, last, signals, coordinates, indptr, indices, weights, covariance, out
):
    """out[p] = Σ[c, o] a for pairs first..last of (signal, coordinate c), in float64."""
    for p in range(first, last):
        row = covariance[coordinates[p]]
        total = 0.0
        for entry in range(indptr[signals[p]], indptr[signals[p] + 1]):
            total += np.float64(row[np.uintp(indices[entry])]) * weights[entry]
        out[p] = total


@njit(nogil=True, cache=True)
def session_products(first, last, signals, moments, indptr, times, weights, window, out):  # type: ignore[no-untyped-def]
    """out[p] = Σ_j exp(-|t_p - t_j| / w) a_j over the observations of each pair's signal.

    moments : (P,) t_p, NaN where unknown, which gives 0. times : (nnz,) the t_j. window : w.
    """
    for p in range(first, last):
        total = 0.0
        for entry in range(indptr[signals[p]], indptr[signals[p] + 1]):
            apart = abs(moments[p] - times[entry]) / window
            if apart < SESSION_REACH:
                total += np.exp(-apart) * weights[entry]
        out[p] = total
