"""MAP-EM, section 2 of the paper.

Every signal is drawn from one Gaussian, f_i ~ N(μ, Σ), and seen through y_i = U_i f_i + w_i
with w_i ~ N(0, Σ_w). With o the observed coordinates of signal i and M the number of signals:

    f̃ ← y where known, the initial value elsewhere
    for t = 1 … L:
        μ   ← (1/M) Σ_i f̃_i                                      M-step, eq. (6)
        Σ   ← (1/M) Σ_i (f̃_i - μ)(f̃_i - μ)ᵀ + ε Id               M-step, eq. (7)
        f̃_i ← μ + Σ[:, o] (Σ[o, o] + Σ_w[o, o])⁻¹ (y_i - μ[o])   E-step, eq. (4)

Both steps work on the dual coefficients a_i = (Σ[o, o] + Σ_w[o, o])⁻¹ (y_i - μ[o]), N_i numbers
a signal, in place of the f̃_i; see :mod:`gmc_core.gaussian.estep` and
:mod:`gmc_core.gaussian.mstep`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gmc_core.gaussian.covariance import FactoredCovariance
from gmc_core.gaussian.estep import Estimates, e_step
from gmc_core.gaussian.iterate import EmState as EmState
from gmc_core.gaussian.iterate import EmStep as EmStep
from gmc_core.gaussian.iterate import Figures, Spares, iterate
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.mstep import Form, choose_form, m_step
from gmc_core.gaussian.noise import NONE, Noise
from gmc_core.gaussian.objective import map_objective, observation_noise_log_det
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.signals import Signals


def initial_state(signals: Signals, initial: float, dtype: npt.DTypeLike) -> EmState:
    """Iteration 0: the estimates are y where known and ``initial`` elsewhere.

    Written as μ = initial, Σ = Id and dual coefficients y - initial, so that the first
    M-step is no special case.
    """
    mean = np.full(signals.dimension, float(initial))
    gaussian = Gaussian(mean, FactoredCovariance.identity(signals.dimension, dtype))
    return EmState(0, gaussian, (signals.values - initial).astype(dtype))


@dataclass(frozen=True, eq=False)
class MapEm:
    """MAP-EM as the two steps of :func:`gmc_core.gaussian.iterate.iterate`.

    signals : the observations. epsilon : ε ≥ 0. noise : Σ_w.
    form : the exact form of the M-step. objective : whether to compute the MAP objective
        as well (a Cholesky factorization of Σ in each iteration).
    """

    signals: Signals
    epsilon: float
    noise: Noise
    team: ThreadPool
    form: Form
    objective: bool = False
    reuses_memory = True

    def resume(self, state: EmState) -> EmState:
        """A state holds all that the M-step needs."""
        return state

    def m_step(
        self, state: EmState, spare: npt.NDArray[np.floating] | None
    ) -> tuple[EmState, float | None]:
        """(μ, Σ) from the estimates, equations (6) and (7)."""
        gaussian, change = m_step(
            self.signals, state.weights, state.gaussian, self.epsilon, self.form, self.team, spare
        )
        return EmState(state.iteration + 1, gaussian, np.zeros(0)), change

    def e_step(self, state: EmState, last: bool) -> tuple[EmState, Estimates]:
        """The estimates under (μ, Σ), equation (4)."""
        found = e_step(self.signals, state.gaussian, self.noise, self.team)
        return replace(state, weights=found.weights), found

    def figures(self, state: EmState, expected: Estimates) -> Figures:
        """The log-likelihood, and the MAP objective if it was asked for."""
        if not self.objective:
            return Figures(expected.log_likelihood)
        value, penalised = map_objective(
            self.signals, state.gaussian, expected, self.epsilon, self._noise_log_det, self.team
        )
        return Figures(expected.log_likelihood, value, penalised)

    @cached_property
    def _noise_log_det(self) -> float | None:
        if self.noise.kind == NONE:
            return None
        return observation_noise_log_det(self.signals, self.noise, self.team)


def map_em(
    signals: Signals,
    start: EmState,
    *,
    epsilon: float,
    iterations: int,
    noise: Noise,
    team: ThreadPool,
    objective: bool = False,
    form: Form | None = None,
    spares: Spares | None = None,
) -> Iterator[EmStep]:
    """Run iterations ``start.iteration + 1 … iterations`` of MAP-EM.

    Parameters are those of :class:`MapEm` and :func:`gmc_core.gaussian.iterate.iterate`, with its
    errors. start : :func:`initial_state`, or the state of an interrupted run. form : by default
    the one with the fewest flops.
    """
    form = form or choose_form(signals.sizes, signals.dimension)
    algorithm = MapEm(signals, epsilon, noise, team, form, objective)
    return iterate(algorithm, start, iterations, spares=spares)
