"""The inverses K_i⁻¹ of signals' systems, in batches that fill one workspace."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gmc_core.estep import check_solved, pieces
from gmc_core.linalg import posterior, solve
from gmc_core.linalg.sweep import sweep_space
from gmc_core.linalg.threads import Team
from gmc_core.signals import Signals

FloatArray = npt.NDArray[np.floating]
Positions = npt.NDArray[np.int64]

# Numbers in the workspace, at least. Many small signals would otherwise go in batches of
# one or two, each with the overhead of a team's run.
_ROOM = 1 << 20


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


def invert(
    batch: Positions,
    signals: Signals,
    systems: solve.Systems,
    matrix: FloatArray,
    inverses: FloatArray,
    team: Team,
) -> Positions:
    """Solve the systems of a batch and leave each -K⁻¹ (lower triangle) in ``inverses``.

    matrix : Σ. inverses : flat, at least Σ_i N_i² numbers.

    Returns
    -------
    (len(batch),) where each begins.

    Raises
    ------
    NumericalError, Cancelled
        As :func:`gmc_core.estep.e_step`.
    """
    sizes, dtype = signals.sizes[batch], matrix.dtype
    places = np.concatenate([[0], np.cumsum(sizes**2)[:-1]])

    def some(of: Positions, space: tuple[solve.Scratch, FloatArray]) -> None:
        failed = posterior.invert(batch[of], places[of], systems, matrix, *space, inverses)
        check_solved(failed, signals, dtype)

    largest = int(sizes.max())
    team.run(
        some,
        pieces(np.arange(len(batch)), sizes, lambda n: n**3),
        lambda: (solve.scratch(0, dtype), sweep_space(largest, dtype)),
    )
    return places
