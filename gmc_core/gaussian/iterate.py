"""The one loop of all EM algorithms: M-step, E-step, and so on, as a generator of steps.

    for t = 1 … L:
        θ_t    ← m_step(θ_{t-1}, expectations under θ_{t-1})
        expectations under θ_t ← e_step(θ_t)

An algorithm (:class:`EmAlgorithm`) is its two steps: MAP-EM in :mod:`gmc_core.gaussian.em`,
exact EM in :mod:`gmc_core.gaussian.exact`, mixtures in :mod:`gmc_core.gaussian.mixture`. The
loop owns what they have in common: timing, errors that name the iteration, the record of
each iteration, and the memory of covariances. Whoever iterates over it owns progress,
storage and stopping.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import NumericalError
from gmc_core.gaussian.covariance import DenseCovariance
from gmc_core.gaussian.linalg.progress import StepProgress
from gmc_core.gaussian.parameters import Gaussian

FloatArray = npt.NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class EmState:
    """All that the next iteration needs.

    iteration : t, 0 before the first. gaussian : (μ_t, Σ_t).
    weights : (nnz,) the dual coefficients a_i = K_i⁻¹ (y_i - μ[o]) of the E-step under
        (μ_t, Σ_t); with them the estimates are f̃_i = μ + Σ[:, o] a_i.
    values : (nnz,) what stood in for y in that E-step; None where it was y itself.
    noise : its noise variance where that is learned; None where it is given.
    """

    iteration: int
    gaussian: Gaussian
    weights: FloatArray
    values: npt.NDArray[np.float64] | None = None
    noise: float | None = None


@dataclass(frozen=True, eq=False)
class Figures:
    """What an E-step says of the Gaussian it was done under.

    log_likelihood : Σ_i log N(y_i; μ[o], Σ[o, o] + Σ_w[o, o]), observed data.
    map_objective : log p(f̃ | μ, Σ), plus log p(y | f̃) where there is noise: what
        the E-step of MAP-EM maximises; None unless asked for.
    penalised_objective : the same less (M ε / 2) tr Σ⁻¹, what its M-step maximises.
    """

    log_likelihood: float
    map_objective: float | None = None
    penalised_objective: float | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class EmStep(Figures):
    """One finished iteration: its state, its :class:`Figures`, and its cost.

    covariance_change : ‖Σ_t - Σ_{t-1}‖ / ‖Σ_{t-1}‖ (Frobenius), None at t = 1.
    e_seconds, m_seconds : wall time of the two steps.
    """

    state: EmState
    covariance_change: float | None
    e_seconds: float
    m_seconds: float


State = TypeVar("State", bound=EmState)
Expected = TypeVar("Expected")


class EmAlgorithm(Protocol[State, Expected]):
    """The two steps of one algorithm.

    Both steps raise :class:`gmc_core.base.errors.NumericalError` where a matrix loses positive
    definiteness, and :class:`gmc_core.gaussian.linalg.threads.Cancelled` where the threads are
    told to stop. They change nothing in the states that they are given.
    """

    @property
    def reuses_memory(self) -> bool:
        """Whether the M-step can write the new Σ into a matrix that it is given."""

    def resume(self, state: State) -> State:
        """``state`` with all that the M-step needs, which a stored one may lack.

        Called once, before the first M-step; its time counts as the E-step's.
        """

    def m_step(self, state: State, spare: FloatArray | None) -> tuple[State, float | None]:
        """The next state, whose E-step is still to come, and the relative change of Σ.

        spare : N × N in the working precision, to be overwritten with the new Σ; None
            for new memory.
        """

    def e_step(self, state: State, last: bool) -> tuple[State, Expected]:
        """The state with its E-step done, and what :meth:`figures` needs of it.

        last : whether no M-step follows, so that nothing must be computed for one.
        """

    def figures(self, state: State, expected: Expected) -> Figures:
        """What is reported of the iteration. It is part of neither step and not timed."""


class Spares:
    """Memory of covariances that nobody needs any more, for those to come.

    Fresh memory costs as much time as a small product. Whose memory may be written over
    is said, never guessed: a Σ is taken from here only after its owner has put it here.
    """

    def __init__(self) -> None:
        self._matrix: FloatArray | None = None

    def put(self, gaussian: Gaussian) -> None:
        """Give up a Gaussian: its Σ may be written over from now on, by whoever takes it."""
        if isinstance(gaussian.covariance, DenseCovariance):
            self._matrix = gaussian.covariance.matrix

    def take(self, like: Gaussian) -> FloatArray | None:
        """An N × N matrix in the precision of ``like`` that is nobody's, if there is one."""
        matrix, self._matrix = self._matrix, None
        if matrix is None or matrix.shape != (like.dimension, like.dimension):
            return None
        usable = matrix.dtype == like.covariance.dtype and matrix.flags.writeable
        return matrix if usable else None


def iterate(
    algorithm: EmAlgorithm[State, Expected],
    start: State,
    iterations: int,
    *,
    spares: Spares | None = None,
    after_m_step: Callable[[], object] | None = None,
    progress: StepProgress | None = None,
) -> Iterator[EmStep]:
    """Run iterations ``start.iteration + 1 … iterations`` of ``algorithm``.

    Parameters
    ----------
    start : the state before the first iteration, or that of an interrupted run, which goes
        on to exactly the same result.
    iterations : L ≥ 0.
    spares : where the caller puts the covariances that it has done with; the next Σ is
        written into one, if the algorithm can. Without it every Σ is new memory, and all
        that were yielded stay as they are.
    after_m_step : called between M-step and E-step. The loop itself holds nothing of the
        iteration before from there on; a caller who does may drop its weights, which can be
        as large as Σ, if it can do that E-step again.
    progress : is told which step goes on.

    Raises
    ------
    NumericalError
        If a matrix loses positive definiteness; names the iteration. All steps
        yielded before stay valid.
    Cancelled
        If the threads were told to stop.
    """
    state, resumed = start, False
    del start  # a generator's arguments live as long as it does, and so would this Σ
    progress = progress or StepProgress()
    while state.iteration < iterations:
        iteration = state.iteration + 1
        try:
            began = time.perf_counter()
            if not resumed:
                progress.begin("E-step")
                state, resumed = algorithm.resume(state), True
            spare = None
            if spares is not None and algorithm.reuses_memory:
                spare = spares.take(state.gaussian)
            ready = time.perf_counter()
            progress.begin("M-step")
            state, change = algorithm.m_step(state, spare)  # lets go of the old Σ and weights
            del spare  # it is the new Σ now, or no longer wanted
            if after_m_step is not None:
                after_m_step()
            between = time.perf_counter()
            progress.begin("E-step")
            state, expected = algorithm.e_step(state, iteration == iterations)
            ended = time.perf_counter()
            progress.begin()
            figures = algorithm.figures(state, expected)
            del expected  # its arrays would live through the next iteration
        except NumericalError as error:
            raise error.during(f"Iteration {iteration}", iteration) from error
        finally:
            progress.begin()
        yield EmStep(
            log_likelihood=figures.log_likelihood,
            map_objective=figures.map_objective,
            penalised_objective=figures.penalised_objective,
            state=state,
            covariance_change=change,
            e_seconds=(ready - began) + (ended - between),
            m_seconds=between - ready,
        )
