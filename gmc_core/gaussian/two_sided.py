"""Two-sided: users resemble each other, as items do.

The response of user u to item i is

    z_ui = μ_i + (B x_u)_i + g_u[i] + h_i[u] + e,   e ~ N(0, σ²)

g_u ~ N(0, Σ) over the items says which items go together, as in :mod:`gmc_core.gaussian.exact`;
h_i ~ N(0, T) over the users says which users do, the same thing of the transposed table. A dense
T has M² numbers and takes the inverses of systems as large as an item has raters; here it has
low rank, T = W Wᵀ: h_i[u] = w_u · x_i with loadings w_u of each user and factors
x_i ~ N(0, Id) of each item, see :mod:`gmc_core.gaussian.lowrank`. What a user has of its own in
h is, at one rating of each item, indistinguishable from e, and is part of it.

g and h are estimated in turn, each given the other's expectation (mean-field). With
q(g) q(x) in place of the posterior of both, an iteration is

    W ← M-step of the factors from z - μ - B x - g,   then their E-step: x, h = W x
    (μ, Σ, B) ← M-step of exact EM,                   then its E-step on z - h: g, z

At the ratings z - μ - B x - g is h + σ² a, with the dual coefficients a of exact EM. With steps of
length 1 and responses that are given none of the four lowers

    Σ_u log N(z_u - h_u; μ + B x_u, Σ + σ² Id) - ½ Σ_i (|m_i|² + log|C_i⁻¹|)

less the penalties of the priors: a lower bound of the log-likelihood, and what is reported as
such. It is the first term with h at its expectation, less Σ_ui w_uᵀ C_i w_u / 2σ² and less the
divergence of x_i ~ N(m_i, C_i) from N(0, Id), with C_i⁻¹ = Id + Σ_u w_u w_uᵀ / σ².
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError
from gmc_core.gaussian.estep import Estimates
from gmc_core.gaussian.exact import ExactEm, ExactOptions
from gmc_core.gaussian.iterate import EmState, Figures
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.lowrank import (
    FactorPosteriors,
    LoadingsPrior,
    factor_e_step,
    loadings_m_step,
    products_at,
    transposed,
)
from gmc_core.gaussian.noise import SCALAR, Noise
from gmc_core.gaussian.signals import Signals

FloatArray = npt.NDArray[np.floating]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class UserSide:
    """What users have in common: h_i[u] = w_u · x_i.

    loadings : W (M, R). factors : (N, R), the means m_i of the x_i. Both in the working
        precision.
    share : what of h counts, in (0, 1]: less than 1 after the last step of
        :mod:`gmc_core.gaussian.averaged`. The factors are multiplied by it.
    """

    loadings: FloatArray
    factors: FloatArray
    share: float = 1.0

    def at(
        self, users: npt.NDArray[np.integer], items: npt.NDArray[np.integer], team: ThreadPool
    ) -> Floats:
        """(P,) h at pairs of user and item."""
        return products_at(items, users, self.factors, self.loadings, team)

    def lessened(self, share: float) -> UserSide:
        """With this share of h."""
        factors = self.factors * self.factors.dtype.type(share)
        return replace(self, factors=factors, share=self.share * share)

    @property
    def whole_factors(self) -> FloatArray:
        """(N, R) the means m_i that the M-step needs, of all of h."""
        return (
            self.factors if self.share == 1 else self.factors / self.factors.dtype.type(self.share)
        )

    def spreads(self, of_whole: FloatArray) -> FloatArray:
        """The covariances of the ``factors``, from the C_i of all of h, packed."""
        return of_whole if self.share == 1 else of_whole * of_whole.dtype.type(self.share**2)


@dataclass(frozen=True, eq=False)
class TwoSidedState(EmState):
    """All that the next iteration needs.

    users : None where there is the items' side alone, as before the users' side joins in.
    """

    users: UserSide | None = None


class TwoSidedEm(ExactEm):
    """Exact EM of both sides in turn, as the two steps of
    :func:`gmc_core.gaussian.iterate.iterate`.

    signals, epsilon, noise, team, options : as of :class:`gmc_core.gaussian.exact.ExactEm`.
    prior : of W, whose target W starts from.
    alone : iterations of the items' side before the users' side joins in, the warm-up included,
        during which it does not. A Σ that has hardly begun leaves to the users what is the items'.

    Raises
    ------
    ConfigError
        If the noise is not one variance above 0, or is to be learned.
    """

    def __init__(
        self,
        signals: Signals,
        epsilon: float,
        noise: Noise,
        team: ThreadPool,
        options: ExactOptions,
        prior: LoadingsPrior,
        alone: int = 1,
    ) -> None:
        super().__init__(signals, epsilon, noise, team, options)
        if noise.kind != SCALAR or options.learn_noise:
            raise ConfigError("A two-sided model needs one noise variance above 0, as given.")
        self._prior, self._alone = prior, max(alone, options.warm)
        self._variance = float(noise.array[0, 0])
        self._columns = transposed(signals)
        self._each = np.full(signals.count, self._variance)
        # Of the last E-step of the users' side: what the next M-step needs besides the state.
        self._spreads: FloatArray | None = None
        self._bound = 0.0

    def observed(self, state: EmState) -> Signals:
        """The signals with h at the ratings as a part that the Gaussian does not describe."""
        if not isinstance(state, TwoSidedState) or state.users is None:
            return self.signals
        signals = self.signals
        known = state.users.at(signals.owners, signals.indices, self.team)
        return replace(signals, offsets=known)

    def resume(self, state: EmState) -> EmState:
        """The state with what the first M-step needs: that of exact EM, and the C_i."""
        state = super().resume(state)
        if isinstance(state, TwoSidedState) and state.users is not None:
            # The C_i depend on W alone, so those of any residuals are the same to the last digit.
            zero = np.zeros(len(self.signals.values))
            self._spreads = self._believe(state.users.loadings, zero).spreads
        return state

    def m_step(
        self, state: EmState, spare: FloatArray | None
    ) -> tuple[TwoSidedState, float | None]:
        """W and x, then (μ, Σ, B)."""
        users = None
        if state.iteration >= self._alone:
            users = self._users_step(state)
        new, change = super().m_step(state, spare)
        return (
            TwoSidedState(
                new.iteration, new.gaussian, new.weights, new.values, new.noise, users=users
            ),
            change,
        )

    def figures(self, state: EmState, expected: Estimates) -> Figures:
        """The lower bound of the log-likelihood."""
        return Figures(expected.log_likelihood + self._bound)

    def _users_step(self, state: EmState) -> UserSide:
        """M-step and E-step of the users' side."""
        before = state.users if isinstance(state, TwoSidedState) else None
        left = self._variance * state.weights.astype(np.float64)
        _, entries, _ = self.signals.by_coordinate
        if before is None:
            loadings = self._prior.loadings.astype(state.weights.dtype)
        else:
            signals = self.signals
            left += before.at(signals.owners, signals.indices, self.team)
            assert self._spreads is not None
            none = np.zeros(0)
            believed = FactorPosteriors(before.whole_factors, self._spreads, none, none)
            with self.team.whole():
                terms = self._prior.terms(before.loadings.astype(np.float64), self._variance)
            loadings = loadings_m_step(
                self._columns, left[entries], believed, self._each, terms, self.team
            )
        believed = self._believe(loadings, left[entries])
        self._spreads = believed.spreads
        means = believed.means.astype(np.float64)
        log_dets = believed.log_det - self._columns.sizes * np.log(self._variance)
        self._bound = -0.5 * float((means**2).sum() + log_dets.sum())
        return UserSide(loadings, believed.means)

    def _believe(self, loadings: FloatArray, residuals: Floats) -> FactorPosteriors:
        return factor_e_step(self._columns, residuals, loadings, self._each, self.team)
