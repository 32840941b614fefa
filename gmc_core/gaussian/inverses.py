"""The inverses K_i⁻¹ of signals' systems, in batches that fill one workspace, and the E-step
that computes them: for exact EM, and to find the latent responses behind ordered ratings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from gmc_core.gaussian.covariance import DenseCovariance
from gmc_core.gaussian.covariates import observed_shifts
from gmc_core.gaussian.estep import (
    Estimates,
    check_solved,
    estimates_of,
    read_only,
    systems_of,
    work_pieces,
)
from gmc_core.gaussian.linalg import posterior, solve
from gmc_core.gaussian.linalg.sweep import sweep_space
from gmc_core.gaussian.linalg.threads import ThreadPool, spans
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.ordinal import ROUNDS, LatentResponses
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.signals import Signals

FloatArray = npt.NDArray[np.floating]
Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]

# Numbers in the workspace, at least. Small signals would otherwise go in batches of one or
# two, and starting the threads would take longer than the work.
_ROOM = 1 << 20
# What adding a number of an inverse to G takes, in flops of an inversion, for the progress.
_ADDING = 40.0


def room_for(signals: Signals) -> int:
    """Numbers in the workspace: as many as Σ has, or more where that is little, or where
    one signal needs more; no more than all signals do."""
    squares = signals.sizes**2
    room = max(signals.dimension**2, int(squares.max(initial=0)), _ROOM)
    return min(room, int(squares.sum()))


def batches(signals: Signals) -> Iterator[Positions]:
    """The signals with observations, heavy first, as many at a time as there is room for."""
    order, room = signals.heavy_first, room_for(signals)
    squares = signals.sizes[order] ** 2
    start = 0
    while start < len(order):
        stop = start + int(np.searchsorted(np.cumsum(squares[start:]), room, side="right"))
        yield order[start:stop]
        start = stop


def invert_batch(
    batch: Positions,
    signals: Signals,
    systems: solve.Systems,
    matrix: FloatArray,
    inverses: FloatArray,
    team: ThreadPool,
    then: Callable[[Positions, Positions], object] | None = None,
    work: float = 0.0,
) -> Positions:
    """Solve the systems of a batch and leave each -K⁻¹ (lower triangle) in ``inverses``.

    matrix : Σ. inverses : flat, at least Σ_i N_i² numbers. then : called with some of the
    batch and where their inverses begin, as soon as these are computed. work : for the progress.

    Returns
    -------
    (len(batch),) where each begins.

    Raises
    ------
    NumericalError, Cancelled
        As :func:`gmc_core.gaussian.estep.e_step`.
    """
    sizes, dtype = signals.sizes[batch], matrix.dtype
    places = np.concatenate([[0], np.cumsum(sizes**2)[:-1]])

    def some(of: Positions, space: tuple[solve.Scratch, FloatArray]) -> None:
        failed = posterior.invert_systems(batch[of], places[of], systems, matrix, *space, inverses)
        check_solved(failed, signals, dtype)
        if then is not None:
            then(batch[of], places[of])

    largest = int(sizes.max())
    team.run(
        some,
        work_pieces(np.arange(len(batch)), sizes, lambda n: n**3),
        lambda: (solve.scratch(0, dtype), sweep_space(largest, dtype)),
        work=work,
    )
    return places


def inverting_e_step(
    signals: Signals,
    gaussian: Gaussian,
    noise: Noise,
    team: ThreadPool,
    *,
    sums: FloatArray | None = None,
    latent: LatentResponses | None = None,
    values: Floats | None = None,
    rounds: int = ROUNDS,
) -> Estimates:
    """MAP estimates of all signals by the inverses K_i⁻¹, which also give G and latent responses.

    Parameters
    ----------
    gaussian : with a dense Σ.
    sums : (N, N), to whose lower triangle G of :mod:`gmc_core.gaussian.exact` is added.
    latent, values : for ordered ratings. ``values`` (nnz,) are latent responses to begin
        with, which replace the signals' values and are overwritten by those under
        ``gaussian``; see :meth:`gmc_core.gaussian.ordinal.LatentResponses.settle`, also for
        ``rounds``.

    Raises
    ------
    NumericalError, Cancelled
        As :func:`gmc_core.gaussian.estep.e_step`.
    """
    assert isinstance(gaussian.covariance, DenseCovariance)
    matrix = read_only(gaussian.covariance.matrix)
    dtype = matrix.dtype
    begun = signals.values if values is None else values.copy()
    systems = systems_of(signals, begun, gaussian, noise)
    scale = dtype.type(1 / max(signals.count, 1))
    inverses = np.empty(room_for(signals), dtype)
    then = None
    if latent is not None:
        assert values is not None
        then = _settling(signals, gaussian, noise, systems, inverses, latent, values, rounds)
    adding = 0.0 if sums is None else _ADDING
    with team.progress.counting(sum(_work(signals.sizes, adding))):
        for batch in batches(signals):
            inverting, adding_up = _work(signals.sizes[batch], adding)
            places = invert_batch(
                batch, signals, systems, matrix, inverses, team, then, work=inverting
            )
            if sums is None:
                continue

            def rows(
                span: tuple[int, int],
                _: None,
                batch: Positions = batch,
                places: Positions = places,
            ) -> None:
                posterior.add_rows(*span, batch, places, systems, inverses, scale, sums)

            team.run(rows, spans(len(sums), 64)[::-1], lambda: None, work=adding_up)
    return estimates_of(systems)


def _work(sizes: Positions, adding: float) -> tuple[float, float]:
    """Of inverting the systems of these sizes, and of adding the inverses to G."""
    exact = sizes.astype(np.float64)
    return float((exact**3).sum()), adding * float((exact**2).sum())


def _settling(
    signals: Signals,
    gaussian: Gaussian,
    noise: Noise,
    systems: solve.Systems,
    inverses: FloatArray,
    latent: LatentResponses,
    values: Floats,
    rounds: int,
) -> Callable[[Positions, Positions], None]:
    """A function that finds the latent responses of signals once their inverses are computed."""
    shift = observed_shifts(signals, gaussian)
    if shift is None:
        shift = np.zeros(len(values))
    variance = float(noise.array[0, 0])

    def some(of: Positions, places: Positions) -> None:
        latent.settle(of, places, systems, inverses, shift, variance, values, rounds)

    return some
