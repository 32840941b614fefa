"""Compiled pieces of the M-step and of prediction, one range of rows per call.

All of them write only inside the range they are given, so that the result does
not depend on how many threads share the work.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gmc_core.linalg.vectors import fma, load, splat, store

# Vectors held in registers by `sparse_times_symmetric`: enough to keep the multiplier
# busy while a column tile of Σ, N × 4 vectors, still fits the second-level cache.
TILE_VECTORS = 4


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
                row[indices[k]] += factor * weights[k]


@njit(nogil=True, cache=True)
def sparse_times_symmetric(  # type: ignore[no-untyped-def]
    first, last, indptr, indices, weights, matrix, column, lanes, tile, out
):
    """out[:, column:column + width] = A[first:last] · matrix[:, column:column + width].

    ``tile`` is a flat workspace of N · width numbers, width = lanes · TILE_VECTORS:
    the columns are packed into it once and stay in cache for all rows of A.
    """
    size = matrix.shape[0]
    width = lanes * TILE_VECTORS
    inside = min(width, size - column)
    for i in range(size):
        for j in range(inside):
            tile[i * width + j] = matrix[i, column + j]
    result = np.zeros(width, matrix.dtype)
    zero = splat(tile, matrix.dtype.type(0))
    for signal in range(first, last):
        s0, s1, s2, s3 = zero, zero, zero, zero
        for entry in range(indptr[signal], indptr[signal + 1]):
            at = np.int64(indices[entry]) * width
            factor = splat(tile, weights[entry])
            s0 = fma(s0, factor, load(tile, at))
            s1 = fma(s1, factor, load(tile, at + lanes))
            s2 = fma(s2, factor, load(tile, at + 2 * lanes))
            s3 = fma(s3, factor, load(tile, at + 3 * lanes))
        store(result, 0, s0)
        store(result, lanes, s1)
        store(result, 2 * lanes, s2)
        store(result, 3 * lanes, s3)
        out[signal - first, column : column + inside] = result[:inside]


@njit(nogil=True, cache=True)
def finish_rows(first, last, shift, epsilon, new, old):  # type: ignore[no-untyped-def]
    """Turn the second moment in rows first..last of ``new`` into the covariance.

    Lower triangle: new ← new - shift shiftᵀ + ε Id. Returns Σ (new - old)² and
    Σ old² over the whole symmetric rows' share (off-diagonal entries count twice).
    """
    change, norm = 0.0, 0.0
    for i in range(first, last):
        row_change, row_norm = 0.0, 0.0
        for j in range(i):
            value = new[i, j] - new.dtype.type(shift[i] * shift[j])
            new[i, j] = value
            difference = np.float64(value) - old[i, j]
            row_change += difference * difference
            row_norm += np.float64(old[i, j]) * old[i, j]
        value = new[i, i] - new.dtype.type(shift[i] * shift[i]) + new.dtype.type(epsilon)
        new[i, i] = value
        difference = np.float64(value) - old[i, i]
        change += 2 * row_change + difference * difference
        norm += 2 * row_norm + np.float64(old[i, i]) * old[i, i]
    return change, norm


@njit(nogil=True, cache=True)
def mirror(first, last, matrix):  # type: ignore[no-untyped-def]
    """Copy the lower triangle to the upper one, for columns first..last of the lower."""
    size = matrix.shape[0]
    block = 32
    for start in range(first, size, block):
        for i in range(start, min(start + block, size)):
            for j in range(first, min(last, i)):
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
            total += np.float64(row[indices[entry]]) * weights[entry]
        out[p] = total
