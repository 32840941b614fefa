"""MAP-EM: the paper's algorithm as a generator of immutable steps.

    f̃ ← y where known, the initial value elsewhere
    for t = 1 … L:
        (μ, Σ) ← mean and covariance of the f̃, + ε Id          M-step, eq. (6), (7)
        f̃_i    ← μ + Σ[:, o] (Σ[o, o] + Σ_w)⁻¹ (y_i - μ[o])    E-step, eq. (4)

Whoever iterates owns progress, storage and stopping.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import NumericalError
from gmc_core.gaussian.covariance import DenseCovariance, FactoredCovariance
from gmc_core.gaussian.estep import Estimates, e_step, observation_noise_log_det
from gmc_core.gaussian.linalg.threads import Team
from gmc_core.gaussian.mstep import Form, choose_form, m_step
from gmc_core.gaussian.noise import NONE, Noise
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.signals import Signals


@dataclass(frozen=True, eq=False)
class EmState:
    """All that the next iteration needs.

    iteration : t, 0 before the first. gaussian : (μ_t, Σ_t).
    weights : (nnz,) the a_i of the E-step under (μ_t, Σ_t); with them the
        estimates are f̃_i = μ + Σ[:, o] a_i.
    values : (nnz,) what stood in for y in that E-step; None where it was y itself.
    noise : its noise variance where that is learned; None where it is given.
    """

    iteration: int
    gaussian: Gaussian
    weights: npt.NDArray[np.floating]
    values: npt.NDArray[np.float64] | None = None
    noise: float | None = None


@dataclass(frozen=True, eq=False)
class EmStep:
    """One finished iteration.

    log_likelihood : Σ_i log N(y_i; μ[o], Σ[o, o] + Σ_w[o, o]), observed data.
    map_objective : log p(f̃ | μ, Σ), plus log p(y | f̃) where there is noise: what
        the E-step maximises; None unless asked for.
    penalised_objective : the same less (M ε / 2) tr Σ⁻¹, what the regularised
        M-step maximises.
    covariance_change : ‖Σ_t - Σ_{t-1}‖ / ‖Σ_{t-1}‖ (Frobenius), None at t = 1.
    e_seconds, m_seconds : wall time of the two steps.
    """

    state: EmState
    log_likelihood: float
    map_objective: float | None
    penalised_objective: float | None
    covariance_change: float | None
    e_seconds: float
    m_seconds: float


class Spares:
    """Memory of covariances that nobody needs any more, for those to come.

    Fresh memory costs as much time as a small product. Whose memory may be written over
    is said, never guessed: a Σ is taken from here only after its owner has put it here.
    """

    def __init__(self) -> None:
        self._matrix: npt.NDArray[np.floating] | None = None

    def put(self, gaussian: Gaussian) -> None:
        """Give up a Gaussian: its Σ may be written over from now on, by whoever takes it."""
        if isinstance(gaussian.covariance, DenseCovariance):
            self._matrix = gaussian.covariance.matrix

    def take(self, dimension: int, like: Gaussian) -> npt.NDArray[np.floating] | None:
        """A matrix of N × N numbers of the kind of ``like`` that is nobody's, if there is one."""
        matrix, self._matrix = self._matrix, None
        fits = matrix is not None and matrix.shape == (dimension, dimension)
        if matrix is None or not fits or matrix.dtype != like.covariance.dtype:
            return None
        return matrix if matrix.flags.writeable else None


def initial_state(signals: Signals, initial: float, dtype: npt.DTypeLike) -> EmState:
    """Iteration 0: the estimates are y where known and ``initial`` elsewhere.

    Written as μ = initial, Σ = Id and weights y - initial, so that the first
    M-step is no special case.
    """
    mean = np.full(signals.dimension, float(initial))
    gaussian = Gaussian(mean, FactoredCovariance.identity(signals.dimension, dtype))
    return EmState(0, gaussian, (signals.values - initial).astype(dtype))


def map_em(
    signals: Signals,
    start: EmState,
    *,
    epsilon: float,
    iterations: int,
    noise: Noise,
    team: Team,
    objective: bool = False,
    form: Form | None = None,
    let_go: Callable[[], object] | None = None,
    spares: Spares | None = None,
) -> Iterator[EmStep]:
    """Run iterations ``start.iteration + 1 … iterations`` of MAP-EM.

    Parameters
    ----------
    signals : the observations.
    start : :func:`initial_state`, or the state of an interrupted run.
    epsilon : ε ≥ 0. iterations : L. noise : Σ_w.
    objective : also compute the MAP objective (a Cholesky factorization of Σ).
    form : the exact form of the M-step; default the one with the fewest flops.
    let_go : called between M-step and E-step. From there on the weights of the iteration
        before are needed by nobody who can do that E-step again, and they may be as
        large as Σ.
    spares : where the caller puts the matrices that it has done with; the next Σ is written
        into one. Without it every Σ is new memory, and all that were yielded stay as they are.

    Raises
    ------
    NumericalError
        If a matrix loses positive definiteness; names the iteration. All steps
        yielded before stay valid.
    Cancelled
        If the team was told to stop.
    """
    form = form or choose_form(signals.sizes, signals.dimension)
    noise_log_det = None
    state = start
    del start  # or its Σ would live as long as the generator
    while state.iteration < iterations:
        iteration = state.iteration + 1
        try:
            began = time.perf_counter()
            spare = None if spares is None else spares.take(signals.dimension, state.gaussian)
            gaussian, change = m_step(
                signals, state.weights, state.gaussian, epsilon, form, team, spare
            )
            del spare  # it is the new Σ now, or no longer wanted
            state = EmState(iteration, gaussian, np.zeros(0))  # frees the old Σ and weights
            if let_go is not None:
                let_go()
            between = time.perf_counter()
            estimates = e_step(signals, gaussian, noise, team)
            ended = time.perf_counter()
            state = EmState(iteration, gaussian, estimates.weights)
            log_likelihood = estimates.log_likelihood
            value = penalised = None
            if objective:
                if noise.kind != NONE and noise_log_det is None:
                    noise_log_det = observation_noise_log_det(signals, noise, team)
                value, penalised = map_objective(
                    signals, gaussian, estimates, epsilon, noise_log_det, team
                )
            del estimates  # or its weights would live through the next iteration
        except NumericalError as error:
            raise error.during(f"Iteration {iteration}", iteration) from error
        yield EmStep(
            state=state,
            log_likelihood=log_likelihood,
            map_objective=value,
            penalised_objective=penalised,
            covariance_change=change,
            e_seconds=ended - between,
            m_seconds=between - began,
        )


def map_objective(
    signals: Signals,
    gaussian: Gaussian,
    estimates: Estimates,
    epsilon: float,
    noise_log_det: float | None,
    team: Team,
) -> tuple[float, float]:
    """The paper's MAP objective at f̃, and the same less (M ε / 2) tr Σ⁻¹.

    With K a = r the quadratic terms of log p(f̃ | μ, Σ) and log p(y | f̃) add up to
    -½ rᵀ a. ``noise_log_det`` is None without noise, and then log p(y | f̃) is
    left out: f̃ equals y where it is observed.
    """
    log_det, trace = gaussian.covariance.log_det_and_trace_inverse(team)
    count, size = signals.count, signals.dimension
    value = -0.5 * (estimates.quadratic.sum() + count * (log_det + size * np.log(2 * np.pi)))
    if noise_log_det is not None:
        value -= 0.5 * (noise_log_det + len(signals.values) * np.log(2 * np.pi))
    return float(value), float(value - count * epsilon / 2 * trace)
