"""The same work by bare LAPACK and BLAS calls: what one iteration is compared with.

E-step: potrf and potrs on a ready matrix of every user's size, and with a factored Σ
the syrk that makes it, users in parallel, one BLAS thread each. M-step: the dense
products of the form in use (a symmetric update, two matrix products, or one of each)
on ready matrices, all threads.
"""

from __future__ import annotations

import time

import numpy as np
from numba import njit
from scipy.linalg import blas

from gmc_core.gaussian.estep import factored_flops
from gmc_core.gaussian.linalg import lapack
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.mstep import block_rows
from gmc_core.gaussian.signals import Signals


@njit(nogil=True, cache=True)
def _fill_and_solve(  # type: ignore[no-untyped-def]
    sizes, rank, template, work, right, rows, flags, integers, scalars, solve
):
    """Fill a matrix of each size; with ``solve``, also make it (rank > 0) and solve it."""
    for size in sizes:
        inner = rank > 0 and size > rank
        n = rank if inner else size
        if solve and rank > 0:
            lapack.gram(rows, size, rank, inner, work, flags, integers, scalars)
        for i in range(n):
            work[i * n : i * n + i + 1] = template[i, : i + 1]
        right[:n] = 1
        if solve:
            lapack.potrf(work, n, n, flags, integers)
            lapack.potrs(work, n, n, right, flags, integers)


def solves(signals: Signals, dtype: str, form: str, repeats: int = 3) -> float:
    """Seconds for the LAPACK and BLAS calls of every user, filling not counted."""
    sizes = np.sort(signals.sizes[signals.sizes > 0])[::-1]
    largest = int(sizes[0])
    rank = signals.count if form == "factor" else 0
    template = np.full((largest, largest), 0.1, dtype) + np.eye(largest, dtype=dtype)
    exact = sizes.astype(float)
    costs = np.cumsum(factored_flops(exact, rank) if rank else exact**3)
    cuts = np.searchsorted(costs, np.linspace(0, costs[-1], 400))
    pieces = [part for part in np.split(sizes, np.unique(cuts)[1:]) if len(part)]
    flags, scalars = lapack.letters(), np.array([1, -1, 0], dtype)

    def timed(solve: bool) -> float:
        def piece(part: np.ndarray, space: tuple) -> None:
            integers = np.empty(4, np.intc)
            _fill_and_solve(part, rank, template, *space, flags, integers, scalars, solve)

        def workspace() -> tuple:
            rows = np.ones(max(largest * rank, 1), dtype)
            return np.empty(largest**2, dtype), np.empty(largest, dtype), rows

        began = time.perf_counter()
        ThreadPool().run(piece, pieces, workspace)
        return time.perf_counter() - began

    timed(True)
    return float(np.median([timed(True) - timed(False) for _ in range(repeats)]))


def products(signals: Signals, dtype: str, form: str, repeats: int = 3) -> float:
    """Seconds for the dense products of one M-step of this form."""
    size, count = signals.dimension, signals.count
    rng = np.random.default_rng(0)
    if form == "factor":
        factor = rng.random((size, count)).astype(dtype)
        inner = rng.random((count, count)).astype(dtype)

        def work() -> None:
            factor @ inner
            factor.T @ factor
    elif form == "congruence":
        left = rng.random((size, size)).astype(dtype)
        out = np.empty_like(left)

        def work() -> None:
            np.matmul(left, left, out=out)
            np.matmul(left, left, out=out)
    else:
        syrk = blas.dsyrk if dtype == "float64" else blas.ssyrk
        block = rng.random((block_rows(count, size), size)).astype(dtype)
        moment = np.zeros((size, size), dtype)

        def work() -> None:
            for start in range(0, count, len(block)):
                rows = block[: min(len(block), count - start)]
                syrk(1.0, rows.T, beta=1, c=moment.T, trans=0, lower=0, overwrite_c=1)

    times = []
    with ThreadPool().whole():
        work()
        for _ in range(repeats):
            began = time.perf_counter()
            work()
            times.append(time.perf_counter() - began)
    return float(np.median(times))
