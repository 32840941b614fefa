"""MAP-EM with several Gaussians: every signal is drawn from one of K.

    f_i ~ N(μ_k, Σ_k) with probability π_k

The E-step estimates every signal under each Gaussian, f̃_ik, and how probable it is
that the signal came from it, its responsibility

    r_ik ∝ π_k N(y_i; μ_k[o], Σ_k[o, o] + Σ_w[o, o]),    Σ_k r_ik = 1.

The M-step is that of MAP-EM in each group, with the responsibilities as sample weights:

    R_k = Σ_i r_ik,   π_k = (R_k + 1) / (M + K)
    μ_k' = Σ_i r_ik f̃_ik / R_k,   Σ_k' = Σ_i r_ik (f̃_ik - μ_k')(…)ᵀ / R_k + ε Id

(π under a uniform pseudo-signal in each group, a Dirichlet prior, so that no group's
probability becomes 0). A signal is predicted by Σ_k r_ik f̃_ik. With K = 1 this is
MAP-EM.

The first iterations are MAP-EM with one Gaussian. Its estimates are a better start for each
group than the initial value, from which the estimates of a group of few signals hardly move.
Then the signals are divided into groups, see :mod:`gmc_core.gaussian.mixture_start`.

See Yu, Sapiro and Mallat, Solving inverse problems with piecewise linear
estimators, for MAP-EM of mixtures where each signal takes its best Gaussian only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from gmc_core.gaussian.covariance import Covariance, DenseCovariance, FactoredCovariance
from gmc_core.gaussian.em import initial_state
from gmc_core.gaussian.estep import e_step, predict_pairs
from gmc_core.gaussian.iterate import EmState, EmStep, Figures, iterate
from gmc_core.gaussian.linalg.threads import ThreadPool, spans
from gmc_core.gaussian.mstep import Form, choose_form, m_step
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.signals import Signals

Floats = npt.NDArray[np.float64]

# Iterations before the signals are divided. On the sample, with two groups, four in ten
# lower the error by .02 of NMAE.
WARM = 4
# Smaller sample weights are taken as 0: their roots would end below the normal numbers of
# float32, where arithmetic is slow.
_LEAST_WEIGHT = 1e-30
# A component with smaller responsibilities in all keeps its Gaussian: there is nothing to
# learn it from, and signals may come nearer to it again.
_FEWEST = 0.5


@dataclass(frozen=True, eq=False)
class Mixture:
    """Σ_k π_k N(μ_k, Σ_k).

    proportions : (K,) the π_k > 0, which sum to 1. components : the K Gaussians.
    """

    proportions: Floats
    components: tuple[Gaussian, ...]

    def pooled(self, team: ThreadPool) -> Gaussian:
        """The mixture's own mean and covariance.

        μ = Σ_k π_k μ_k and Σ = Σ_k π_k (Σ_k + (μ_k - μ)(μ_k - μ)ᵀ).
        """
        first = self.components[0]
        if all(component is first for component in self.components):
            return first
        means = np.stack([component.mean for component in self.components])
        mean = self.proportions @ means
        covariances = [component.covariance for component in self.components]
        return Gaussian(mean, _pool(self.proportions, means - mean, covariances, team))


def _pool(
    proportions: Floats, between: Floats, covariances: list[Covariance], team: ThreadPool
) -> Covariance:
    """Σ_k π_k (Σ_k + b_k b_kᵀ); between : (K, N) the b_k."""
    factored = [part for part in covariances if isinstance(part, FactoredCovariance)]
    if factored:
        dtype, roots = factored[0].dtype, np.sqrt(proportions)
        columns = [
            part.factor * dtype.type(root) for part, root in zip(factored, roots, strict=True)
        ]
        columns.append((roots[:, None] * between).T.astype(dtype))
        epsilon = float(proportions @ [part.epsilon for part in factored])
        return FactoredCovariance(np.hstack(columns), epsilon)
    matrices = [part.matrix for part in covariances if isinstance(part, DenseCovariance)]
    out = np.empty_like(matrices[0])
    scaled, dtype = (proportions[:, None] * between).astype(out.dtype), out.dtype
    plain = between.astype(dtype)

    def rows(span: tuple[int, int], _: None) -> None:
        of = slice(*span)
        block = out[of]
        block[...] = 0
        for k, matrix in enumerate(matrices):
            block += dtype.type(proportions[k]) * matrix[of]
            block += scaled[k, of, None] * plain[k]

    team.run(rows, spans(len(out), 64), lambda: None)
    return DenseCovariance(out)


@dataclass(frozen=True, eq=False, kw_only=True)
class MixtureState(EmState):
    """All that the next iteration of a mixture needs.

    gaussian : the mixture's own mean and covariance, see :meth:`Mixture.pooled`.
    weights : (K, nnz) the dual coefficients a_i under each component.
    responsibilities : (M, K), rows sum to 1.
    """

    mixture: Mixture
    responsibilities: Floats


@dataclass(frozen=True, eq=False)
class Memberships:
    """The E-step's result for M signals.

    weights : (K, nnz) as in :class:`gmc_core.gaussian.estep.Estimates`, for each component.
    responsibilities : (M, K), rows sum to 1.
    log_likelihoods : (M,) log Σ_k π_k N(y_i; μ_k[o], Σ_k[o, o] + Σ_w[o, o]).
    """

    weights: npt.NDArray[np.floating]
    responsibilities: Floats
    log_likelihoods: Floats


def initial_mixture(signals: Signals, initial: float, dtype: npt.DTypeLike) -> MixtureState:
    """Iteration 0: one group, and the initial estimates of MAP-EM."""
    alone = initial_state(signals, initial, dtype)
    return MixtureState(
        0,
        alone.gaussian,
        alone.weights[None],
        mixture=Mixture(np.ones(1), (alone.gaussian,)),
        responsibilities=np.ones((signals.count, 1)),
    )


def divide(state: MixtureState, groups: npt.NDArray[np.integer]) -> MixtureState:
    """K equal components in place of a state's one, each responsible for its group.

    groups : (M,) each signal's group from 0 to K - 1; -1 for a signal that belongs to all
        groups in proportion to their sizes.
    """
    count = int(groups.max()) + 1
    responsibilities = (groups[:, None] == np.arange(count)).astype(np.float64)
    responsibilities[groups < 0] = responsibilities.sum(axis=0) / np.count_nonzero(groups >= 0)
    return replace(
        state,
        weights=np.tile(state.weights, (count, 1)),
        mixture=Mixture(_proportions(responsibilities), state.mixture.components * count),
        responsibilities=responsibilities,
    )


def _proportions(responsibilities: Floats) -> Floats:
    count, size = responsibilities.shape
    return np.asarray((responsibilities.sum(axis=0) + 1) / (count + size))


@dataclass(frozen=True, eq=False)
class MixtureEm:
    """MAP-EM of a mixture as the two steps of :func:`gmc_core.gaussian.iterate.iterate`.

    signals, epsilon, noise, team, form : as of :class:`gmc_core.gaussian.em.MapEm`.
    groups : (M,) where the components start from, see :func:`divide`.
    warm : that many iterations before, with one Gaussian.
    """

    signals: Signals
    epsilon: float
    noise: Noise
    team: ThreadPool
    form: Form
    groups: npt.NDArray[np.integer]
    warm: int
    reuses_memory = False

    def resume(self, state: MixtureState) -> MixtureState:
        """A state holds all that the M-step needs."""
        return state

    def m_step(
        self, state: MixtureState, spare: npt.NDArray[np.floating] | None
    ) -> tuple[MixtureState, float | None]:
        """The components and their proportions; the mean relative change of the Σ_k."""
        if state.iteration >= self.warm and len(state.mixture.components) == 1:
            state = divide(state, self.groups)
        mixture, change = mixture_m_step(self.signals, state, self.epsilon, self.form, self.team)
        # The pooled Gaussian is left for the end of the E-step, or its Σ would take memory
        # beside the workspace of the solves.
        empty = np.zeros((len(mixture.components), 0))
        return replace(state, iteration=state.iteration + 1, weights=empty, mixture=mixture), change

    def e_step(self, state: MixtureState, last: bool) -> tuple[MixtureState, Memberships]:
        """The estimates under each component, the responsibilities, and the pooled Gaussian."""
        found = mixture_e_step(self.signals, state.mixture, self.noise, self.team)
        new = replace(
            state,
            gaussian=state.mixture.pooled(self.team),
            weights=found.weights,
            responsibilities=found.responsibilities,
        )
        return new, found

    def figures(self, state: MixtureState, expected: Memberships) -> Figures:
        """The log-likelihood of the observed data under the mixture."""
        return Figures(float(expected.log_likelihoods.sum()))


def mixture_em(
    signals: Signals,
    start: MixtureState,
    *,
    epsilon: float,
    iterations: int,
    noise: Noise,
    team: ThreadPool,
    groups: npt.NDArray[np.integer],
    warm: int | None = None,
    form: Form | None = None,
) -> Iterator[EmStep]:
    """Run iterations ``start.iteration + 1 … iterations`` of MAP-EM of a mixture.

    Parameters are those of :class:`MixtureEm` and :func:`gmc_core.gaussian.iterate.iterate`, with
    its errors. start : :func:`initial_mixture`, or the state of an interrupted run. warm : by
    default :func:`warm_up`. form : by default the one with the fewest flops.
    """
    form = form or choose_form(signals.sizes, signals.dimension)
    warm = warm_up(iterations) if warm is None else warm
    return iterate(MixtureEm(signals, epsilon, noise, team, form, groups, warm), start, iterations)


def warm_up(iterations: int) -> int:
    """Iterations with one Gaussian, of so many in all: ``WARM``, but no more than half."""
    return min(WARM, iterations // 2)


def mixture_m_step(
    signals: Signals, state: MixtureState, epsilon: float, form: Form, team: ThreadPool
) -> tuple[Mixture, float | None]:
    """New components from the estimates and responsibilities of ``state``.

    Returns
    -------
    The mixture, and the components' mean relative change of Σ_k (None from the
    initial state).
    """
    responsibilities = state.responsibilities
    proportions = _proportions(responsibilities)
    components, change = [], 0.0
    with team.progress.counting(len(proportions)):
        for k, old in enumerate(state.mixture.components):
            total = responsibilities[:, k].sum()
            if total < _FEWEST and state.iteration:
                components.append(old)
                continue
            sample_weights = None  # equal: MAP-EM of one Gaussian, to the last digit
            if len(proportions) > 1:
                sample_weights = responsibilities[:, k] / total
                sample_weights[sample_weights < _LEAST_WEIGHT] = 0.0
            new, own = m_step(
                signals, state.weights[k], old, epsilon, form, team, sample_weights=sample_weights
            )
            components.append(new)
            change += float(proportions[k]) * (own or 0.0)
    return Mixture(proportions, tuple(components)), change if state.iteration else None


def mixture_e_step(
    signals: Signals, mixture: Mixture, noise: Noise, team: ThreadPool
) -> Memberships:
    """Estimates of all signals under each component, and the responsibilities.

    The same for signals that the mixture was not learned from: they are folded in.

    Raises
    ------
    NumericalError, Cancelled
        As :func:`gmc_core.gaussian.estep.e_step`.
    """
    weights, joint = [], np.empty((signals.count, len(mixture.components)))
    constant = signals.sizes * np.log(2 * np.pi)
    with team.progress.counting(len(mixture.components)):
        for k, component in enumerate(mixture.components):
            found = e_step(signals, component, noise, team)
            weights.append(found.weights)
            joint[:, k] = -0.5 * (found.quadratic + found.log_det + constant)
    joint += np.log(mixture.proportions)
    evidence = logsumexp(joint, axis=1)
    responsibilities = np.exp(joint - evidence[:, None])
    # The exponentials of large numbers sum to 1 but for their rounding errors.
    responsibilities /= responsibilities.sum(axis=1, keepdims=True)
    return Memberships(np.stack(weights), responsibilities, evidence)


def predict_mixture(
    signals: Signals,
    weights: npt.NDArray[np.floating],
    responsibilities: Floats,
    mixture: Mixture,
    pair_signals: npt.NDArray[np.int64],
    pair_coordinates: npt.NDArray[np.int64],
    team: ThreadPool,
) -> Floats:
    """Σ_k r_ik f̃_ik at pairs (signal, coordinate).

    Shapes as for :func:`gmc_core.gaussian.estep.predict_pairs`, with weights (K, nnz) and
    responsibilities (M, K).
    """
    result = np.zeros(len(pair_signals))
    for k, component in enumerate(mixture.components):
        own = predict_pairs(signals, weights[k], component, pair_signals, pair_coordinates, team)
        result += responsibilities[pair_signals, k] * own
    return result
