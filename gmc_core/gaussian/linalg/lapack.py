"""LAPACK and BLAS inside compiled code, without the GIL.

SciPy's Python wrappers of these routines hold the GIL, so threads over them
gain nothing. SciPy also exports the routines to compiled code; here they are
given names that numba links to, so that the compiled functions can be cached
on disk.

Matrices are flat row-major arrays with only the lower triangle in use. To
Fortran that is the upper triangle of a column-major matrix, hence UPLO = 'U'.
Callers keep BLAS at one thread (see :mod:`gmc_core.gaussian.linalg.threads`).
"""

from __future__ import annotations

import ctypes
from typing import Literal

import llvmlite.binding as llvm
import numpy as np
from numba import types
from numba.extending import get_cython_function_address, overload

Triangle = Literal["upper", "lower"]
# A row-major matrix is a transposed one to Fortran.
_FORTRAN: dict[Triangle, bytes] = {"upper": b"L", "lower": b"U"}
_ARGUMENTS = {"potrf": 5, "potrs": 8, "syrk": 10, "gemm": 13}


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


def factor_whole(matrix: np.ndarray, triangle: Triangle = "upper") -> int:
    """Factor a symmetric matrix in place, all BLAS threads; > 0 if it is not positive definite.

    The figures are those of SciPy's wrapper, but the GIL is free meanwhile, for which a large
    matrix takes seconds: a thread that says what goes on is not held up.

    matrix : (n, n), row-major. triangle : where L stands afterwards (above the diagonal as Lᵀ),
        with the diagonal; the other one stays as it is.
    """
    size = np.array([len(matrix)], np.intc)
    return _without_gil("potrf", matrix, _FORTRAN[triangle], size, matrix)


def invert_factor_whole(factor: np.ndarray, triangle: Triangle = "upper") -> int:
    """L⁻¹ in place of L, likewise; > 0 if a diagonal entry is 0. Arguments as
    :func:`factor_whole` has left them."""
    size = np.array([len(factor)], np.intc)
    return _without_gil("trtri", factor, _FORTRAN[triangle], b"N", size, factor)


def _without_gil(routine: str, matrix: np.ndarray, *arguments: bytes | np.ndarray) -> int:
    """Call a LAPACK routine whose last arguments are the leading dimension and INFO.

    ctypes lets the GIL go, and SciPy's wrappers do not.
    """
    assert matrix.flags.c_contiguous
    name = ("d" if matrix.dtype == np.float64 else "s") + routine
    address = get_cython_function_address("scipy.linalg.cython_lapack", name)
    leading, info = (np.array([value], np.intc) for value in (max(len(matrix), 1), 0))
    given = [
        ctypes.cast(ctypes.c_char_p(each), ctypes.c_void_p)
        if isinstance(each, bytes)
        else each.ctypes.data
        for each in (*arguments, leading, info)
    ]
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(given))(address)(*given)
    return int(info[0])


def letters() -> np.ndarray:
    """The letters that LAPACK's flags point to: Upper, Transposed, Not transposed."""
    return np.frombuffer(b"UTN", dtype=np.uint8).copy()


def potrf(matrix, n, ld, flags, integers):  # type: ignore[no-untyped-def]
    """Factor the leading n × n block in place; > 0 where it is not positive definite."""
    raise NotImplementedError("compiled code only")


@overload(potrf, inline="always")
def _potrf_overload(matrix, n, ld, flags, integers):  # type: ignore[no-untyped-def]
    routine = _EXTERNAL["potrf", matrix.dtype]

    def implementation(matrix, n, ld, flags, integers):  # type: ignore[no-untyped-def]
        integers[0], integers[1], integers[2] = n, ld, 0
        routine(
            flags.ctypes, integers.ctypes, matrix.ctypes, integers[1:].ctypes,
            integers[2:].ctypes,
        )  # fmt: skip
        return integers[2]

    return implementation


def potrs(matrix, n, ld, right, flags, integers):  # type: ignore[no-untyped-def]
    """Solve with the factor, one right-hand side, in place."""
    raise NotImplementedError("compiled code only")


@overload(potrs, inline="always")
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


def subtract_gram(rows, out, width, n, strides, anew, flags, integers, scalars):  # type: ignore[no-untyped-def]
    """out ← out - rows · rowsᵀ (lower triangle), or with ``anew`` 1 only - rows · rowsᵀ.

    rows : n × width. out : n × n. strides : of both.
    """
    raise NotImplementedError("compiled code only")


@overload(subtract_gram, inline="always")
def _subtract_gram_overload(rows, out, width, n, strides, anew, flags, integers, scalars):  # type: ignore[no-untyped-def]
    syrk = _EXTERNAL["syrk", rows.dtype]

    def implementation(rows, out, width, n, strides, anew, flags, integers, scalars):  # type: ignore[no-untyped-def]
        integers[0], integers[1], integers[2], integers[3] = width, n, strides[0], strides[1]
        before = scalars[2 * anew :]
        syrk(
            flags.ctypes,
            flags[1:].ctypes,
            integers[1:].ctypes,
            integers.ctypes,
            scalars[1:].ctypes,
            rows.ctypes,
            integers[2:].ctypes,
            before.ctypes,
            out.ctypes,
            integers[3:].ctypes,
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
        form = flags[1:]
        if inner:
            order, depth = integers[1:], integers
            form = flags[2:]
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


def multiply(rows, square, out, n, width, transposed, flags, integers, scalars):  # type: ignore[no-untyped-def]
    """out ← rows · square, or with ``transposed`` 1 rows · squareᵀ.

    rows, out : n × width. square : width × width.
    """
    raise NotImplementedError("compiled code only")


@overload(multiply, inline="always")
def _multiply_overload(rows, square, out, n, width, transposed, flags, integers, scalars):  # type: ignore[no-untyped-def]
    gemm = _EXTERNAL["gemm", rows.dtype]

    def implementation(rows, square, out, n, width, transposed, flags, integers, scalars):  # type: ignore[no-untyped-def]
        # To Fortran all three are transposed: outᵀ = squareᵀ · rowsᵀ.
        integers[0], integers[1] = width, n
        form = flags[2 - transposed :]
        gemm(
            form.ctypes,
            flags[2:].ctypes,
            integers.ctypes,
            integers[1:].ctypes,
            integers.ctypes,
            scalars.ctypes,
            square.ctypes,
            integers.ctypes,
            rows.ctypes,
            integers.ctypes,
            scalars[2:].ctypes,
            out.ctypes,
            integers.ctypes,
        )

    return implementation
