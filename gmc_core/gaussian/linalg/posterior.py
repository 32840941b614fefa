"""Exact EM's part of the E-step: the inverses K_i⁻¹, and their sum over the signals.

An inverse is what the method asks for here, not a way to solve: the posterior
covariance of a signal's unknown part is Σ - Σ[:, o] K⁻¹ Σ[o, :], and its average
over the signals needs Σ_i U_iᵀ K_i⁻¹ U_i.

Signals are taken in batches that fill one workspace: first each K_i⁻¹ is computed
in its place, then the rows of the sum are added up. Every entry of the sum is added
in the same order, whatever the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gmc_core.gaussian.linalg.solve import gather, prepare
from gmc_core.gaussian.linalg.sweep import sweep


@njit(nogil=True, cache=True)
def invert_systems(batch, places, systems, covariance, space, rows, inverses):  # type: ignore[no-untyped-def]
    """Solve the systems of ``batch`` and leave each -K⁻¹ (lower triangle) in ``inverses``.

    Parameters
    ----------
    batch : positions of the signals. places : (len(batch),) where each matrix of
        N_i² numbers begins in ``inverses``, a flat workspace.
    systems, covariance, space : as for :func:`gmc_core.gaussian.linalg.solve.solve_large`.
    rows : :func:`gmc_core.gaussian.linalg.sweep.sweep_space` of the largest N_i.

    Returns
    -------
    -1, or the position of the first signal whose matrix is not positive definite.
    """
    for k in range(len(batch)):
        signal = batch[k]
        n = systems.indptr[signal + 1] - systems.indptr[signal]
        work = inverses[places[k] : places[k] + n * n]
        gather(systems, signal, covariance, work)
        quadratic, log_det = sweep(
            work, prepare(systems, signal, work), n, rows, space.packed, space.flags,
            space.integers, space.scalars,
        )  # fmt: skip
        systems.forms[signal, 0], systems.forms[signal, 1] = quadratic, log_det
        if not np.isfinite(quadratic + log_det):
            return signal
    return -1


@njit(nogil=True, cache=True)
def add_rows(first, last, batch, places, systems, inverses, scale, out):  # type: ignore[no-untyped-def]
    """Rows first..last (lower triangle) of out ← out + scale Σ_i U_iᵀ (a_i a_iᵀ - K_i⁻¹) U_i.

    The sum is over ``batch``; ``systems.weights`` holds the a_i and
    ``inverses`` the -K_i⁻¹.
    """
    for k in range(len(batch)):
        start, stop = systems.indptr[batch[k]], systems.indptr[batch[k] + 1]
        observed, weights = systems.indices[start:stop], systems.weights[start:stop]
        n = stop - start
        i = np.searchsorted(observed, first)
        while i < n and observed[i] < last:
            row = out[observed[i]]
            negative = inverses[places[k] + i * n : places[k] + (i + 1) * n]
            factor = weights[i]
            for j in range(i + 1):
                row[np.uintp(observed[j])] += scale * (factor * weights[j] + negative[j])
            i += 1
