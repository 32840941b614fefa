"""LAPACK and BLAS inside compiled code, without the GIL.

SciPy's Python wrappers of these routines hold the GIL, so threads over them
gain nothing. SciPy also exports the routines to compiled code; here they are
given names that numba links to, so that the compiled functions can be cached
on disk.

Matrices are flat row-major arrays with only the lower triangle in use. To
Fortran that is the upper triangle of a column-major matrix, hence UPLO = 'U'.
Callers keep BLAS at one thread (see :mod:`gmc_core.linalg.threads`).
"""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
from numba import njit, types
from numba.extending import get_cython_function_address, overload

_ARGUMENTS = {"potrf": 5, "potrs": 8, "trsm": 11, "syrk": 10}


def _external(routine: str, prefix: str) -> types.ExternalFunction:
    library = "cython_lapack" if routine.startswith("po") else "cython_blas"
    address = get_cython_function_address(f"scipy.linalg.{library}", prefix + routine)
    llvm.add_symbol(f"gmc_{prefix}{routine}", address)
    signature = types.void(*[types.voidptr] * _ARGUMENTS[routine])
    return types.ExternalFunction(f"gmc_{prefix}{routine}", signature)


_EXTERNAL = {
    (routine, dtype): _external(routine, prefix)
    for routine in _ARGUMENTS
    for dtype, prefix in ((types.float64, "d"), (types.float32, "s"))
}

# Above this size the factorization is done in panels whose trailing update is one
# symmetric product: measured 5-15 % faster than LAPACK's own blocking from 200 up.
_PANEL = 96


def letters() -> np.ndarray:
    """The letters that LAPACK's flags point to: Upper, Left, Transposed, Non-unit or plain."""
    return np.frombuffer(b"ULTN", dtype=np.uint8).copy()


def _potrf(matrix, n, ld, flags, integers):  # type: ignore[no-untyped-def]
    """Factor the leading n × n block in place; > 0 where it is not positive definite."""
    raise NotImplementedError("compiled code only")


@overload(_potrf, inline="always")
def _potrf_overload(matrix, n, ld, flags, integers):  # type: ignore[no-untyped-def]
    routine = _EXTERNAL["potrf", matrix.dtype]

    def implementation(matrix, n, ld, flags, integers):  # type: ignore[no-untyped-def]
        integers[0], integers[1], integers[2] = n, ld, 0
        routine(
            flags.ctypes, integers.ctypes, matrix.ctypes, integers[1:].ctypes, integers[2:].ctypes
        )
        return integers[2]

    return implementation


def _potrs(matrix, n, ld, right, flags, integers):  # type: ignore[no-untyped-def]
    """Solve with the factor, one right-hand side, in place."""
    raise NotImplementedError("compiled code only")


@overload(_potrs, inline="always")
def _potrs_overload(matrix, n, ld, right, flags, integers):  # type: ignore[no-untyped-def]
    routine = _EXTERNAL["potrs", matrix.dtype]

    def implementation(matrix, n, ld, right, flags, integers):  # type: ignore[no-untyped-def]
        integers[0], integers[1], integers[2], integers[3] = n, ld, 0, 1
        routine(
            flags.ctypes,
            integers.ctypes,
            integers[3:].ctypes,
            matrix.ctypes,
            integers[1:].ctypes,
            right.ctypes,
            integers.ctypes,
            integers[2:].ctypes,
        )

    return implementation


def _eliminate_panel(diagonal, panel, rest, width, below, ld, flags, integers, scalars):  # type: ignore[no-untyped-def]
    """panel ← panel · L⁻ᵀ, rest ← rest - panel · panelᵀ, with L the factored diagonal."""
    raise NotImplementedError("compiled code only")


@overload(_eliminate_panel, inline="always")
def _eliminate_panel_overload(  # type: ignore[no-untyped-def]
    diagonal, panel, rest, width, below, ld, flags, integers, scalars
):
    trsm = _EXTERNAL["trsm", diagonal.dtype]
    syrk = _EXTERNAL["syrk", diagonal.dtype]

    def implementation(  # type: ignore[no-untyped-def]
        diagonal, panel, rest, width, below, ld, flags, integers, scalars
    ):
        integers[0], integers[1], integers[2] = width, below, ld
        upper, left, transposed, plain = flags, flags[1:], flags[2:], flags[3:]
        one, minus_one = scalars, scalars[1:]
        trsm(
            left.ctypes,
            upper.ctypes,
            transposed.ctypes,
            plain.ctypes,
            integers.ctypes,
            integers[1:].ctypes,
            one.ctypes,
            diagonal.ctypes,
            integers[2:].ctypes,
            panel.ctypes,
            integers[2:].ctypes,
        )
        syrk(
            upper.ctypes,
            transposed.ctypes,
            integers[1:].ctypes,
            integers.ctypes,
            minus_one.ctypes,
            panel.ctypes,
            integers[2:].ctypes,
            one.ctypes,
            rest.ctypes,
            integers[2:].ctypes,
        )

    return implementation


def gram(rows, n, rank, inner, out, flags, integers, scalars):  # type: ignore[no-untyped-def]
    """Lower triangle of rows · rowsᵀ (n × n), or of rowsᵀ · rows (rank × rank).

    rows : flat row-major n × rank. inner : whether to take the second product.
    """
    raise NotImplementedError("compiled code only")


@overload(gram, inline="always")
def _gram_overload(rows, n, rank, inner, out, flags, integers, scalars):  # type: ignore[no-untyped-def]
    syrk = _EXTERNAL["syrk", rows.dtype]

    def implementation(rows, n, rank, inner, out, flags, integers, scalars):  # type: ignore[no-untyped-def]
        # To Fortran ``rows`` is rank × n: a plain product for rowsᵀ rows.
        integers[0], integers[1] = n, rank
        order, depth = integers, integers[1:]
        form = flags[2:]
        if inner:
            order, depth = integers[1:], integers
            form = flags[3:]
        syrk(
            flags.ctypes,
            form.ctypes,
            order.ctypes,
            depth.ctypes,
            scalars.ctypes,
            rows.ctypes,
            integers[1:].ctypes,
            scalars[2:].ctypes,
            out.ctypes,
            order.ctypes,
        )

    return implementation


@njit(nogil=True, cache=True)
def cholesky_solve(matrix, right, n, flags, integers, scalars):  # type: ignore[no-untyped-def]
    """Factor K = L Lᵀ and solve K a = r, both in place.

    Parameters
    ----------
    matrix : flat (≥ n²,), K's lower triangle in row-major order with stride n; L on exit.
    right : (n,) r on entry, a on exit.
    flags : :func:`letters`; integers : (4,) intc scratch; scalars : (1, -1, 0) of the dtype.

    Returns
    -------
    0, or the 1-based row at which K turned out not to be positive definite.
    """
    start = 0
    while start < n:
        width = min(_PANEL, n - start)
        below = n - start - width
        diagonal = matrix[start * n + start :]
        info = _potrf(diagonal, width, n, flags, integers)
        if info != 0:
            return start + info
        if below > 0:
            _eliminate_panel(
                diagonal,
                matrix[(start + width) * n + start :],
                matrix[(start + width) * n + start + width :],
                width,
                below,
                n,
                flags,
                integers,
                scalars,
            )
        start += width
    _potrs(matrix, n, n, right, flags, integers)
    return 0
