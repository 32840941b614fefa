"""Cholesky factorization and solve of one large system in compiled code.

K = L Lᵀ in panels of columns: factor the diagonal block, solve the rows below it,
subtract their products from the rest. The last step is BLAS's symmetric update and
holds most of the flops; the second is done here, many rows in the lanes of the
vector registers, because the triangular solves of BLAS take as long as the update
at these sizes. Diagonal blocks are factored the same way with narrower panels.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gmc_core.gaussian.linalg.lapack import potrf, potrs, subtract_gram
from gmc_core.gaussian.linalg.vectors import REGISTER_BYTES, fnma, load, mul, splat, store

_PANEL = 96
_NARROW = 32

# Rows solved together, in registers: as many vectors hide the latency of the arithmetic.
_GROUP = 4


def panel_space(dtype: np.dtype) -> np.ndarray:
    """Workspace of :func:`cholesky_solve`: a group of rows of one panel."""
    return np.zeros(_PANEL * _GROUP * REGISTER_BYTES // dtype.itemsize, dtype)


@njit(nogil=True, cache=True)
def solve_rows(matrix, corner, width, below, ld, packed):  # type: ignore[no-untyped-def]
    """Rows below a factored diagonal block L: each row x ← the solution of L z = x.

    ``corner`` is the flat position of the block's first entry. Groups of rows are
    packed column by column, so that one vector holds a column of many rows.
    """
    lanes = REGISTER_BYTES // matrix.itemsize
    group = _GROUP * lanes
    for top in range(0, below, group):
        rows = min(group, below - top)
        base = corner + (width + top) * ld
        for r in range(rows):
            for j in range(width):
                packed[np.uintp(j * group + r)] = matrix[np.uintp(base + r * ld + j)]
        for j in range(width):
            at = j * group
            x0, x1 = load(packed, at), load(packed, at + lanes)
            x2, x3 = load(packed, at + 2 * lanes), load(packed, at + 3 * lanes)
            row = corner + j * ld
            for t in range(j):
                factor = splat(packed, matrix[np.uintp(row + t)])
                z = t * group
                x0 = fnma(x0, factor, load(packed, z))
                x1 = fnma(x1, factor, load(packed, z + lanes))
                x2 = fnma(x2, factor, load(packed, z + 2 * lanes))
                x3 = fnma(x3, factor, load(packed, z + 3 * lanes))
            inverse = splat(packed, 1 / matrix[np.uintp(row + j)])
            store(packed, at, mul(x0, inverse))
            store(packed, at + lanes, mul(x1, inverse))
            store(packed, at + 2 * lanes, mul(x2, inverse))
            store(packed, at + 3 * lanes, mul(x3, inverse))
        for r in range(rows):
            for j in range(width):
                matrix[np.uintp(base + r * ld + j)] = packed[np.uintp(j * group + r)]


@njit(nogil=True, cache=True)
def _factor_block(matrix, corner, size, ld, packed, flags, integers, scalars):  # type: ignore[no-untyped-def]
    """Factor one diagonal block in narrow panels; > 0 where it is not positive definite."""
    for start in range(0, size, _NARROW):
        width = min(_NARROW, size - start)
        below = size - start - width
        here = corner + start * (ld + 1)
        info = potrf(matrix[here:], width, ld, flags, integers)
        if info != 0:
            return start + info
        if below > 0:
            solve_rows(matrix, here, width, below, ld, packed)
            panel = matrix[here + width * ld :]
            rest = matrix[here + width * (ld + 1) :]
            subtract_gram(panel, rest, width, below, (ld, ld), 0, flags, integers, scalars)
    return 0


@njit(nogil=True, cache=True)
def cholesky_solve(matrix, right, n, packed, flags, integers, scalars):  # type: ignore[no-untyped-def]
    """Factor K = L Lᵀ and solve K a = r, both in place.

    Parameters
    ----------
    matrix : flat (≥ n²,), K's lower triangle in row-major order with stride n; L on exit.
    right : (n,) r on entry, a on exit.
    packed : :func:`panel_space`.
    flags : :func:`gmc_core.gaussian.linalg.lapack.letters`; integers : (4,) intc scratch.
    scalars : (1, -1, 0) of the dtype.

    Returns
    -------
    0, or the 1-based row at which K turned out not to be positive definite.
    """
    for start in range(0, n, _PANEL):
        width = min(_PANEL, n - start)
        below = n - start - width
        corner = start * (n + 1)
        info = _factor_block(matrix, corner, width, n, packed, flags, integers, scalars)
        if info != 0:
            return start + info
        if below > 0:
            solve_rows(matrix, corner, width, below, n, packed)
            panel = matrix[corner + width * n :]
            rest = matrix[corner + width * (n + 1) :]
            subtract_gram(panel, rest, width, below, (n, n), 0, flags, integers, scalars)
    potrs(matrix, n, n, right, flags, integers)
    return 0
