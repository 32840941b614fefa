"""Exact EM: the paper's loop with the posterior covariance in the M-step.

The paper's M-step treats the estimates f̃_i as if they were the signals. They are
their conditional means, which vary less: what is left out is the posterior
covariance C_i = Σ - Σ[:, o] K_i⁻¹ Σ[o, :], K_i = Σ[o, o] + Σ_w. Exact EM (Little and
Rubin, Statistical Analysis with Missing Data) puts it back:

    Σ' = (1/M) Σ_i [(f̃_i - μ')(f̃_i - μ')ᵀ + C_i] + ε Id
       = Σ + Σ G Σ - d dᵀ + ε Id,   G = (1/M) Σ_i U_iᵀ (a_i a_iᵀ - K_i⁻¹) U_i

with the dual coefficients a_i = K_i⁻¹ (y_i - μ[o]), d = Σ ā and ā their mean. With ε = 0 an
iteration never lowers the log-likelihood of the observed data; with ε it never
lowers log-likelihood - (M ε / 2) tr Σ⁻¹.

An inverse-Wishart prior shrinks Σ towards a target T with the weight of ν signals:
Σ' = (M S + ν T) / (M + ν) + ε Id, S the average above; then the quantity that never
falls is log-likelihood - ν/2 log|Σ| - ½ tr(Σ⁻¹ (ν T + (M + ν) ε Id)).

The noise variance can be learned in the same M-step, as the mean of (y - f)² over the
ratings under the belief about f. With n ratings and Σ_w = σ² Id that needs G's diagonal
alone: σ²' = σ² + σ⁴ M tr G / n. Where there is session noise, f there is f plus the error that
a user's ratings share, and σ² the variance of what each has of its own; Σ_w in K_i has both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError, NotPositiveDefiniteError, NumericalError
from gmc_core.gaussian.covariance import DenseCovariance
from gmc_core.gaussian.covariates import Regression
from gmc_core.gaussian.estep import Estimates, e_step, read_only
from gmc_core.gaussian.inverses import inverting_e_step
from gmc_core.gaussian.iterate import EmState, EmStep, Figures, iterate
from gmc_core.gaussian.linalg import products
from gmc_core.gaussian.linalg.lapack import factor_whole
from gmc_core.gaussian.linalg.threads import ThreadPool, spans
from gmc_core.gaussian.mstep import choose_form, congruence, m_step, moment_to_covariance
from gmc_core.gaussian.noise import SCALAR, Noise
from gmc_core.gaussian.ordinal import ROUNDS, LatentResponses
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.signals import Signals

FloatArray = npt.NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Prior:
    """What Σ is shrunk towards: T = factor factorᵀ + diag(diagonal).

    strength : ν ≥ 0, as a number of signals; 0 is no prior.
    factor : (N, R). diagonal : (N,) ≥ 0.
    """

    strength: float
    factor: npt.NDArray[np.float64]
    diagonal: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        if not (self.strength >= 0 and np.isfinite(self.strength)):
            raise ConfigError(f"The strength of a prior is at least 0, not {self.strength}.")
        if self.factor.ndim != 2 or len(self.factor) != len(self.diagonal):
            raise ConfigError("The parts of the prior's target have different dimensions.")
        if not (np.isfinite(self.factor).all() and np.all(self.diagonal >= 0)):
            raise ConfigError("The prior's target is no covariance.")

    def penalty(self, covariance: npt.NDArray[np.float64]) -> float:
        """ν/2 (log|Σ| + tr(Σ⁻¹ T)), what the prior takes off the log-likelihood."""
        sign, log_det = np.linalg.slogdet(covariance)
        if sign <= 0:
            raise NotPositiveDefiniteError(
                "Σ is not positive definite, so the prior has no density."
            )
        target = self.factor @ self.factor.T + np.diag(self.diagonal)
        trace = float(np.trace(np.linalg.solve(covariance, target)))
        return 0.5 * self.strength * (float(log_det) + trace)


@dataclass(frozen=True, eq=False)
class ExactOptions:
    """What exact EM maximises besides the likelihood, and how it gets there.

    prior : of Σ; None for the likelihood alone.
    relaxation : η ≥ 1, how many times as long as EM's the longest of every four steps is
        (over-relaxation), see :func:`step_length`. At 1 the likelihood never falls; at 5 less
        than half of the iterations is enough.
    warm : that many iterations of MAP-EM first, without noise; they get near the optimum
        faster than exact EM does. At least 1 from the initial state, which is no Gaussian.
    warm_epsilon : ε of these, by default the same.
    latent : the latent responses behind ordered ratings, see :mod:`gmc_core.gaussian.ordinal`.
        From the end of the warm-up on, and after the last iteration in any case, the state's
        are those under its own Gaussian, as whoever predicts with it finds them anew; the
        log-likelihood is that of these responses, which change.
    learn_noise : begin with the given noise, which is then one variance above 0, and take a
        new one in every M-step of exact EM.
    covariate_strength : λ > 0 where the signals have covariates, see
        :mod:`gmc_core.gaussian.covariates`. B is learned from the first step of exact EM on, and
        λ/2 tr(Bᵀ Σ⁻¹ B) comes off the quantity that never falls.
    """

    prior: Prior | None = None
    relaxation: float = 1.0
    warm: int = 1
    warm_epsilon: float | None = None
    latent: LatentResponses | None = None
    learn_noise: bool = False
    covariate_strength: float = 1.0


PLAIN = ExactOptions()


class ExactEm:
    """Exact EM as the two steps of :func:`gmc_core.gaussian.iterate.iterate`.

    signals, epsilon, noise, team : as of :class:`gmc_core.gaussian.em.MapEm`.

    Raises
    ------
    ConfigError
        If the noise shall be learned from another than one variance above 0.
    """

    reuses_memory = False  # G becomes the new Σ in its own place

    def __init__(
        self,
        signals: Signals,
        epsilon: float,
        noise: Noise,
        team: ThreadPool,
        options: ExactOptions = PLAIN,
    ) -> None:
        if options.learn_noise and noise.kind != SCALAR:
            raise ConfigError("Learning the noise starts from one variance above 0.")
        self.signals, self.epsilon, self.team, self.options = signals, epsilon, team, options
        self._given_noise = noise
        self._form = choose_form(signals.sizes, signals.dimension, dense=True)
        self._regression: Regression | None = None
        if signals.covariates is not None:
            self._regression = Regression(signals.covariates, options.covariate_strength)
        # G of the last E-step, as large as Σ, until the M-step after it overwrites it.
        self._sums: FloatArray | None = None

    def resume(self, state: EmState) -> EmState:
        """The state with what the first M-step needs: responses, noise, and G.

        Raises
        ------
        ConfigError
            If Σ is no matrix and there is no iteration of MAP-EM before exact EM.
        """
        options, latent = self.options, self.options.latent
        dense = isinstance(state.gaussian.covariance, DenseCovariance)
        if not dense and (options.warm < 1 or state.iteration):
            raise ConfigError("Exact EM starts from at least one iteration of the paper's M-step.")
        if options.learn_noise and state.noise is None:
            state = replace(state, noise=float(self._given_noise.array[0, 0]))
        if latent is not None and state.values is None:
            state = replace(state, values=latent.first_guess)
        if state.iteration >= options.warm:
            # G is not stored. The responses are, so they are taken as they are.
            found, self._sums = exact_e_step(
                self.observed(state), state.gaussian, self._noise(state), self.team,
                latent, state.values, rounds=0,
            )  # fmt: skip
            state = replace(state, weights=found.weights)
        return state

    def m_step(self, state: EmState, spare: FloatArray | None) -> tuple[EmState, float | None]:
        """(μ, Σ, B), and the noise if it is learned."""
        options, variance, done = self.options, state.noise, state.iteration - self.options.warm
        if done < 0:
            epsilon = self.epsilon if options.warm_epsilon is None else options.warm_epsilon
            gaussian, change = m_step(
                self.signals, state.weights, state.gaussian, epsilon, self._form, self.team
            )
        else:
            sums, self._sums = self._sums, None
            assert sums is not None
            if options.learn_noise:
                variance = learned_noise(self.signals, state, sums, options.latent)
            gaussian, change = exact_m_step(
                self.signals, state.weights, state.gaussian, sums, self.epsilon, self.team,
                options.prior, step_length(options.relaxation, done), self._regression,
            )  # fmt: skip
        return EmState(state.iteration + 1, gaussian, np.zeros(0), state.values, variance), change

    def e_step(self, state: EmState, last: bool) -> tuple[EmState, Estimates]:
        """The estimates, the latent responses of ordered ratings, and G for an M-step to come."""
        signals, gaussian, values = self.observed(state), state.gaussian, state.values
        latent, warming = self.options.latent, state.iteration < self.options.warm
        if warming and (latent is None or not last):
            # MAP-EM in the warm-up knows of no noise, and takes the first responses as data.
            at = signals if values is None else replace(signals, values=values)
            found = e_step(at, gaussian, Noise.of(0.0, signals.dimension), self.team)
        elif last and latent is None:
            found = e_step(signals, gaussian, self._noise(state), self.team)
        else:
            if values is not None:
                values = values.copy()  # overwritten, while earlier states keep theirs
            noise = self._noise(state)
            if last:
                found = inverting_e_step(
                    signals, gaussian, noise, self.team, latent=latent, values=values
                )
            else:
                found, self._sums = exact_e_step(
                    signals, gaussian, noise, self.team, latent, values
                )
        return replace(state, weights=found.weights, values=values), found

    def figures(self, state: EmState, expected: Estimates) -> Figures:
        """The log-likelihood."""
        return Figures(expected.log_likelihood)

    def observed(self, state: EmState) -> Signals:
        """The signals as the E-step of ``state`` takes them."""
        return self.signals

    def _noise(self, state: EmState) -> Noise:
        """As given, or as learned so far."""
        if state.noise is None:
            return self._given_noise
        return Noise.of(state.noise, self.signals.dimension, self._given_noise.session)


def exact_em(
    signals: Signals,
    start: EmState,
    *,
    epsilon: float,
    iterations: int,
    noise: Noise,
    team: ThreadPool,
    options: ExactOptions = PLAIN,
) -> Iterator[EmStep]:
    """Run iterations ``start.iteration + 1 … iterations`` of exact EM.

    Parameters are those of :class:`ExactEm` and :func:`gmc_core.gaussian.iterate.iterate`, with
    their errors. start : :func:`gmc_core.gaussian.em.initial_state`, any state with a dense Σ,
    or that of an interrupted run.
    """
    return iterate(ExactEm(signals, epsilon, noise, team, options), start, iterations)


# What of an M-step the products with Σ are, about; the rest cannot be counted as it goes on.
_CONGRUENCE = 0.85
# Cosines of the four Chebyshev nodes, in the order in which their steps are taken. A long step
# overshoots in the components that EM's own length nearly solves at once; the short step after
# it corrects that.
_NODES = np.cos(np.pi * np.array([5, 3, 7, 1]) / 8)


def step_length(relaxation: float, done: int) -> float:
    """Length of the step after ``done`` steps of exact EM, in EM's own.

    Near the optimum a step of length η multiplies each component of the error by
    1 - η x with x in (0, 1]; with EM's own length, η = 1, the components with small x
    vanish slowly. Four steps whose lengths are the reciprocals of the Chebyshev nodes on [a, 1]
    reduce all components with x ≥ a as far as four steps can (Richardson's iteration);
    a is such that the longest step is ``relaxation``.
    """
    widest = _NODES[3]
    a = (2 / relaxation - 1 + widest) / (1 + widest)
    return float(2 / ((1 + a) + (1 - a) * _NODES[done % 4]))


def exact_e_step(
    signals: Signals,
    gaussian: Gaussian,
    noise: Noise,
    team: ThreadPool,
    latent: LatentResponses | None = None,
    values: npt.NDArray[np.float64] | None = None,
    rounds: int = ROUNDS,
) -> tuple[Estimates, FloatArray]:
    """MAP estimates of all signals, and the lower triangle of G (N × N).

    Parameters and errors are those of :func:`gmc_core.gaussian.inverses.inverting_e_step`.
    """
    if not isinstance(gaussian.covariance, DenseCovariance):
        raise ConfigError("Exact EM needs Σ as a dense matrix.")
    sums = np.zeros_like(gaussian.covariance.matrix)
    found = inverting_e_step(
        signals, gaussian, noise, team, sums=sums, latent=latent, values=values, rounds=rounds
    )
    return found, sums


def learned_noise(
    signals: Signals, state: EmState, sums: FloatArray, latent: LatentResponses | None = None
) -> float:
    """The noise variance that the E-step of ``state`` asks for, which had σ² = ``state.noise``.

    Parameters
    ----------
    sums : G, at least its diagonal.

    Returns
    -------
    The mean over the ratings of E[(y - f)²] = (y - f̃)² + C_jj, where y - f̃ = σ² a and
    C_jj = σ² - σ⁴ K⁻¹_jj; for a latent response z in place of y, of E[(z - f̃)²] + C_jj.

    Raises
    ------
    NumericalError
        If nothing is left of it.
    """
    assert state.noise is not None
    variance, weights = state.noise, state.weights.astype(np.float64)
    squares = float(weights @ weights)
    trace = signals.count * float(np.trace(sums, dtype=np.float64))
    left = variance * (1 - variance * (squares - trace) / len(weights))
    if latent is None:
        found = left + variance**2 * squares / len(weights)
    else:
        assert state.values is not None
        found = left + latent.squares(state.values, weights, variance)
    if not found > 0:
        raise NumericalError("The learned noise vanished. Give a noise variance instead.")
    return found


def exact_m_step(
    signals: Signals,
    weights: FloatArray,
    gaussian: Gaussian,
    sums: FloatArray,
    epsilon: float,
    team: ThreadPool,
    prior: Prior | None = None,
    length: float = 1.0,
    regression: Regression | None = None,
) -> tuple[Gaussian, float | None]:
    """New (μ, Σ, B) from the dual coefficients a_i and G.

    sums : lower triangle of G, overwritten with the new Σ. length : of the step, in EM's own,
        see :func:`step_length`; shorter where Σ would not stay positive definite.

    Returns
    -------
    The new Gaussian, and ‖Σ' - Σ‖ / ‖Σ‖ (Frobenius).
    """
    old = gaussian.covariance
    assert isinstance(old, DenseCovariance)
    matrix, dtype = old.matrix, old.dtype
    means = products.column_sums(read_only(signals.indices), read_only(weights), signals.dimension)
    with team.whole():
        shift = old.dot((means / signals.count).astype(dtype)).astype(np.float64)
    half = np.empty_like(matrix)
    with team.progress.counting(1.0):
        congruence(matrix, sums, half, team, _CONGRUENCE)
    strength = 0.0 if prior is None else prior.strength
    data_weight = signals.count / (signals.count + strength)
    added, taken = [], []  # factors of what comes to Σ' and what goes off
    if prior is not None:
        added.append(prior.factor * np.sqrt(1 - data_weight))
    coefficients, step = gaussian.coefficients, None
    if regression is not None:
        coefficients = regression.coefficients(gaussian)
        step, rooted = regression.step(signals, weights, gaussian, team)
        total = signals.count + strength
        added.append(coefficients * np.sqrt(regression.strength / total))
        taken.append(rooted / np.sqrt(total))
    plus, minus = (np.hstack(parts).astype(dtype) if parts else None for parts in (added, taken))

    def rows(span: tuple[int, int], _: None) -> None:
        first, last = span
        block = sums[first:last, :last]
        block += matrix[first:last, :last]
        if data_weight < 1:
            block *= dtype.type(data_weight)
        if plus is not None:
            block += plus[first:last] @ plus[:last].T
        if minus is not None:
            block -= minus[first:last] @ minus[:last].T
        if prior is not None:
            at = np.arange(first, last)
            sums[at, at] += ((1 - data_weight) * prior.diagonal[at]).astype(dtype)

    team.run(rows, spans(len(sums), 128)[::-1], lambda: None)
    change = moment_to_covariance(sums, matrix, shift * np.sqrt(data_weight), epsilon, team)
    length = _lengthen(sums, matrix, length, half, team)
    shift, change = shift * length, None if change is None else change * length
    if coefficients is not None and step is not None:
        coefficients = coefficients + step * length
    return Gaussian(gaussian.mean + shift, DenseCovariance(sums), coefficients), change


def _lengthen(
    new: FloatArray, old: FloatArray, longest: float, space: FloatArray, team: ThreadPool
) -> float:
    """new ← old + η (new - old) with a step length η ≥ 1 that leaves it positive definite.

    ``longest`` is tried first, then shorter ones; space : N × N workspace.

    Returns
    -------
    η, which is 1 where no longer step is possible.
    """
    pieces = spans(len(new), 128)
    for eta in (longest, (longest + 1) / 2, (longest + 3) / 4):
        if eta <= 1:
            return 1.0
        length = new.dtype.type(eta)

        def rows(span: tuple[int, int], _: None, length=length) -> None:  # type: ignore[no-untyped-def]
            of = slice(*span)
            np.subtract(new[of], old[of], out=space[of])
            space[of] *= length
            space[of] += old[of]

        team.run(rows, pieces, lambda: None)
        with team.whole():
            # Overwrites one triangle and the diagonal.
            diagonal = np.diagonal(space).copy()
            info = factor_whole(space)
        if info == 0:
            break
    else:
        return 1.0

    def keep(span: tuple[int, int], _: None) -> None:
        first, last = span
        # The factor stands above the diagonal; the triangle below it is untouched.
        np.copyto(new[first:last, :first], space[first:last, :first])
        new[:first, first:last] = space[first:last, :first].T
        for i in range(first, last):
            new[i, first:i] = space[i, first:i]
            new[first:i, i] = space[i, first:i]
            new[i, i] = diagonal[i]

    team.run(keep, pieces, lambda: None)
    return float(eta)
