"""A Gaussian of low rank: Σ = W Wᵀ + γ Id, learned by exact EM; for tables of any width.

    f_i = μ + W x_i + u_i,   x_i ~ N(Γ c_i, Id) of R factors,   u_i ~ N(0, γ Id)

and a rating is f plus noise of variance σ², or the interval that it falls into (:mod:`.ordinal`);
c_i are what is known of a user besides ratings. Factor analysis with missing data (Rubin and Thayer
1982), with d = γ + σ² for every item. A dense Σ takes Σ_i N_i³ flops and N² numbers; this nnz R²
and N R² / 2. Given the ratings, x_i ~ N(m_i, C_i), see :mod:`gmc_core.gaussian.linalg.factor`, and

    (w_j, μ_j) ← regression of the ratings of item j on the (x_i, 1) of its raters
    Γ          ← regression of the x_i on the c_i
    S          ← mean of (x_i - Γ c_i)(x_i - Γ c_i)ᵀ, and then W ← W S^½, Γ ← S^-½ Γ

all under the belief about x. The last line is parameter expansion (Liu, Rubin and Wu 1998): the x_i
are given a covariance S of their own, which W then takes over. With R = N it alone is the M-step of
exact EM on a dense Σ. Without it W would need many times as many iterations to reach its size.

Σ is shrunk as in :mod:`gmc_core.gaussian.exact`: ν users more whose second moment is a target,
here V Vᵀ + d Id (:class:`gmc_core.gaussian.lowrank.LoadingsPrior`); V is also where W begins. The
mean of an item is shrunk to the mean of all by κ ratings more. With numbers no iteration lowers

    log-likelihood - ν/2 (log|W Wᵀ + d Id| + tr((W Wᵀ + d Id)⁻¹ T))
                   - λ/2 tr(ΓᵀΓ) - κ/2d Σ_j (μ_j - m)²

The posteriors of all users never exist at once: those of a block are added to the items' sums
before the next block begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gmc_core.base.errors import ConfigError, NotPositiveDefiniteError
from gmc_core.data.ratings import frozen
from gmc_core.gaussian.covariance import FactoredCovariance
from gmc_core.gaussian.covariates import observed_shifts
from gmc_core.gaussian.estep import (
    Estimates,
    check_solved,
    estimates_of,
    read_only,
    systems_of,
    work_pieces,
)
from gmc_core.gaussian.iterate import EmState, Figures
from gmc_core.gaussian.linalg import factor as compiled
from gmc_core.gaussian.linalg import solve
from gmc_core.gaussian.linalg.sweep import sweep_space
from gmc_core.gaussian.linalg.threads import ThreadPool, spans
from gmc_core.gaussian.lowrank import LoadingsPrior
from gmc_core.gaussian.noise import SCALAR, Noise
from gmc_core.gaussian.ordinal import ROUNDS, TOLERANCE, LatentResponses
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.signals import Signals

FloatArray = npt.NDArray[np.floating]
Floats = npt.NDArray[np.float64]
Space = tuple[solve.Scratch, FloatArray, FloatArray, FloatArray]

# Bytes of the users' second moments that are held at once.
BLOCK_BYTES = 1 << 26
# Between iterations latent responses need not be found further than their next move.
_ON_THE_WAY = 1e-4


@dataclass(frozen=True, eq=False)
class FactorOptions:
    """What is maximised besides the likelihood.

    prior : of W, whose target W starts from; its loadings are (N, R).
    own : γ ≥ 0, variance of each item alone.
    mean_strength : κ > 0, as a number of ratings. Chosen on ratings held out inside the training
        sets of the sample and of MovieLens 1M, where it hardly matters.
    latent : the latent responses behind ordered ratings.
    covariate_strength : λ > 0 where the signals have covariates.
    """

    prior: LoadingsPrior
    own: float
    mean_strength: float = 4.0
    latent: LatentResponses | None = None
    covariate_strength: float = 1.0


@dataclass(frozen=True, eq=False)
class Sums:
    """What an E-step leaves to the M-step.

    moments : (N, (R + 1)(R + 2) / 2) packed Σ_i E[(x_i, 1)(x_i, 1)ᵀ] over the raters of each item.
    pulls : (N, R + 1) Σ_i (y_ij - μ_j) E[(x_i, 1)]. whole : (R, R) Σ_i E[x_i x_iᵀ] over all users.
    factors : (M, R) E[x_i].
    """

    moments: FloatArray
    pulls: FloatArray
    whole: Floats
    factors: FloatArray


class SharedBeliefs(Protocol):
    """The E-step of a low-rank Gaussian, done by somebody else, such as several workers."""

    def __call__(
        self,
        gaussian: Gaussian,
        values: Floats | None,
        iterations: tuple[int, int],
        *,
        rounds: int,
        tolerance: float,
        sums: bool,
    ) -> tuple[Estimates, Sums | None]:
        """As :func:`believe` of all signals.

        iterations : of which the latent responses ``values`` are, and are afterwards; with
            them, who has found them need not be given them again.
        """


class FactorEm:
    """Exact EM of a low-rank Gaussian, as the two steps of
    :func:`gmc_core.gaussian.iterate.iterate`.

    signals : the observations. noise : σ², one variance. team : cores.
    shared : who does the E-step, if not this process.

    Raises
    ------
    ConfigError
        If the noise is not one variance, or nothing is left of it and γ.
    """

    reuses_memory = False

    def __init__(
        self,
        signals: Signals,
        noise: Noise,
        team: ThreadPool,
        options: FactorOptions,
        shared: SharedBeliefs | None = None,
    ) -> None:
        variance = check_noise(noise, options.own)
        self.signals, self.noise, self.team, self.options = signals, noise, team, options
        self._total = variance + options.own
        self._shared = shared
        self._sums: Sums | None = None

    def resume(self, state: EmState) -> EmState:
        """The state with the sums that the first M-step needs; they are not stored."""
        latent = self.options.latent
        if state.values is None and latent is not None:
            state = replace(state, values=latent.first_guess)
        if state.iteration:
            values = None if state.values is None else state.values.copy()
            t = state.iteration
            found, self._sums = self._believe(
                state.gaussian, values, (t, t), 0, TOLERANCE, sums=True
            )
            state = replace(state, weights=found.weights)
        return state

    def m_step(self, state: EmState, spare: FloatArray | None) -> tuple[EmState, float | None]:
        """(μ, W, Γ)."""
        if state.iteration == 0:
            return replace(state, iteration=1, gaussian=self._begin(state)), None
        sums, self._sums = self._sums, None
        assert sums is not None
        old = _factored(state.gaussian)
        gaussian = self._update(state.gaussian, old, sums)
        change = _distance(_factored(gaussian), old)
        return EmState(state.iteration + 1, gaussian, np.zeros(0), state.values), change

    def e_step(self, state: EmState, last: bool) -> tuple[EmState, Estimates]:
        """The estimates, the latent responses of ordered ratings, and the sums over the users."""
        values = None if state.values is None else state.values.copy()
        tolerance = TOLERANCE if last else _ON_THE_WAY
        t = state.iteration
        found, self._sums = self._believe(
            state.gaussian, values, (t - 1, t), ROUNDS, tolerance, sums=not last
        )
        return replace(state, weights=found.weights, values=values), found

    def figures(self, state: EmState, expected: Estimates) -> Figures:
        """The log-likelihood."""
        return Figures(expected.log_likelihood)

    def penalty(self, gaussian: Gaussian) -> float:
        """What the priors take off the log-likelihood."""
        covariance, options = _factored(gaussian), self.options
        loadings = covariance.factor.astype(np.float64)
        off = gaussian.mean - self._centre
        lost = options.prior.penalty(loadings, self._total)
        lost += 0.5 * options.mean_strength / self._total * float(off @ off)
        effects = _effects(gaussian)
        if effects is not None:
            lost += 0.5 * options.covariate_strength * float((effects**2).sum())
        return lost

    @property
    def _centre(self) -> float:
        """What the items' means are shrunk to."""
        latent = self.options.latent
        values = self.signals.values if latent is None else latent.first_guess
        return float(values.mean()) if len(values) else 0.0

    def _begin(self, state: EmState) -> Gaussian:
        """W = V, and the items' means."""
        signals, centre, kappa = self.signals, self._centre, self.options.mean_strength
        values = signals.values if state.values is None else state.values
        sums = np.bincount(signals.indices, values - centre, signals.dimension)
        counts = np.bincount(signals.indices, minlength=signals.dimension)
        mean = centre + sums / (counts + kappa)
        factor = self.options.prior.loadings.astype(state.gaussian.covariance.dtype)
        return Gaussian(mean, FactoredCovariance(factor, self.options.own, low_rank=True))

    def _believe(
        self,
        gaussian: Gaussian,
        values: Floats | None,
        iterations: tuple[int, int],
        rounds: int,
        tolerance: float,
        sums: bool,
    ) -> tuple[Estimates, Sums | None]:
        if self._shared is not None:
            return self._shared(
                gaussian, values, iterations, rounds=rounds, tolerance=tolerance, sums=sums
            )
        with self.team.progress.counting(1.0):
            return believe(
                self.signals, gaussian, self.noise, self.team, self.options.latent, values,
                rounds=rounds, tolerance=tolerance, sums=sums,
            )  # fmt: skip

    def _update(self, gaussian: Gaussian, old: FactoredCovariance, sums: Sums) -> Gaussian:
        """The M-step."""
        options, signals, team = self.options, self.signals, self.team
        dtype = old.dtype
        with team.whole():
            penalty, pulls = options.prior.terms(old.factor.astype(np.float64), self._total)
        second = penalty * self._total  # of the prior's users, ν times
        off = self._centre - gaussian.mean
        loadings, shifts = _regressed(sums, second, pulls * self._total, options, off, team)
        moment = sums.whole
        effects = None
        if signals.covariates is not None:
            known, strength = signals.covariates, options.covariate_strength
            inner = known.T @ known + strength * np.eye(known.shape[1])
            cross = sums.factors.astype(np.float64).T @ known
            effects = scipy.linalg.solve(inner, cross.T, assume_a="pos").T
            # E[(x - Γc)(x - Γc)ᵀ] and λ Γ Γᵀ: the regression takes Γ (CᵀC + λ Id) Γᵀ off.
            moment = moment - effects @ cross.T
        root = scipy.linalg.cholesky(
            (moment + second) / (signals.count + options.prior.strength), lower=True
        )
        with team.whole():
            factor = np.ascontiguousarray(loadings @ root.astype(dtype))
            coefficients = None
            if effects is not None:
                effects = scipy.linalg.solve_triangular(root, effects, lower=True)
                coefficients = factor.astype(np.float64) @ effects
        covariance = FactoredCovariance(frozen(factor), options.own, low_rank=True)
        return Gaussian(gaussian.mean + shifts, covariance, coefficients)


def check_noise(noise: Noise, own: float) -> float:
    """σ², which with γ is above 0.

    Raises
    ------
    ConfigError
        If the noise is not one variance, or nothing is left of it and γ.
    """
    if noise.kind != SCALAR or noise.session is not None:
        raise ConfigError("A Gaussian of low rank needs one noise variance above 0, as given.")
    variance = float(noise.array[0, 0])
    if not variance + own > 0:
        raise ConfigError("A Gaussian of low rank needs noise or an own variance of the items.")
    return variance


def believe(
    signals: Signals,
    gaussian: Gaussian,
    noise: Noise,
    team: ThreadPool,
    latent: LatentResponses | None = None,
    values: Floats | None = None,
    *,
    rounds: int = ROUNDS,
    tolerance: float = TOLERANCE,
    sums: bool = False,
) -> tuple[Estimates, Sums | None]:
    """E-step under a Gaussian of low rank.

    Parameters
    ----------
    gaussian : with a :class:`gmc_core.gaussian.covariance.FactoredCovariance`.
    latent, values, rounds, tolerance : for ordered ratings; ``values`` (nnz,) are latent responses
        to begin with, which replace the signals' and are overwritten, see
        :meth:`gmc_core.gaussian.ordinal.LatentResponses.settle`.
    sums : whether to compute what an M-step needs, else None takes its place.

    Raises
    ------
    NumericalError
        If something is not finite in the working precision, or responses are not found.
    Cancelled
        If the pool was told to stop.
    """
    covariance = _factored(gaussian)
    factor, dtype, rank = read_only(covariance.factor), covariance.dtype, covariance.factor.shape[1]
    begun = signals.values if values is None else values
    moved = observed_shifts(signals, gaussian)
    own = begun.copy() if moved is None else begun - moved
    plain = replace(signals, covariates=None)
    systems = systems_of(plain, own, gaussian, noise)._replace(values=own)
    none = np.zeros(0)
    shift = none if latent is None else (np.zeros(len(begun)) if moved is None else moved)
    ends = (none, none) if latent is None else latent.ends
    settling = (tolerance, rounds if latent is not None else 0)
    variance = float(noise.array[0, 0])
    variances = variance, variance + covariance.epsilon
    effects = _effects(gaussian)
    centres = np.zeros((0, rank), dtype)
    if effects is not None and signals.covariates is not None:
        centres = (signals.covariates @ effects.T).astype(dtype)
    factors = np.zeros((signals.count, rank), dtype)
    packed = (rank + 1) * (rank + 2) // 2
    found: Sums | None = None
    if sums:
        size = signals.dimension
        found = Sums(
            np.zeros((size, packed), dtype), np.zeros((size, rank + 1), dtype),
            np.zeros((rank, rank)), factors,
        )  # fmt: skip
    largest, ratings = int(signals.sizes.max(initial=0)), len(begun)
    work = float(ratings * (1 + sums) + signals.count * rank) or 1.0  # flops / R²

    def block(first: int, last: int, moments: FloatArray) -> None:
        def some(batch: npt.NDArray[np.int64], space: Space) -> None:
            failed, why = compiled.factor_beliefs(
                batch, first, systems, factor, variances, ends, shift, settling, *space,
                none if values is None else values, read_only(centres), factors, moments,
            )  # fmt: skip
            if failed >= 0 and latent is not None:
                latent.refuse(why, rounds)
            check_solved(failed, signals, dtype)

        sizes = signals.sizes[first:last]
        order = np.argsort(-sizes, kind="stable")
        team.run(
            some,
            work_pieces(first + order, sizes[order], lambda n: rank**2 * n + rank**3),
            lambda: (
                solve.scratch(rank**2, dtype), np.empty(largest * rank, dtype),
                sweep_space(rank, dtype), np.empty(2 * rank, dtype),
            ),
            work=float(sizes.sum() + (last - first) * rank) / work,
        )  # fmt: skip

    if found is None:
        block(0, signals.count, np.zeros((0, packed), dtype))
        return estimates_of(systems), None
    pointers, entries, _ = signals.by_coordinate
    cursors = pointers[:-1].copy()
    height, total = max(1, BLOCK_BYTES // (packed * dtype.itemsize)), np.zeros(packed)
    for first, last in spans(signals.count, height):
        moments = np.empty((last - first, packed), dtype)
        block(first, last, moments)
        end = int(signals.indptr[last])

        def add(span: tuple[int, int], _: None, moments: FloatArray = moments, end: int = end,
                first: int = first) -> None:  # fmt: skip
            compiled.add_moments(
                *span, cursors, read_only(pointers), read_only(entries), read_only(signals.owners),
                end, first, read_only(begun), read_only(gaussian.mean), moments, factors,
                found.moments, found.pulls,
            )  # fmt: skip

        added = float(end - signals.indptr[first]) / work
        team.run(add, spans(signals.dimension, 64), lambda: None, work=added)
        total += moments.sum(axis=0, dtype=np.float64)
    _unpack(total, found.whole)
    return estimates_of(systems), found


def _regressed(
    sums: Sums,
    second: Floats,
    pulls: Floats,
    options: FactorOptions,
    off: Floats,
    team: ThreadPool,
) -> tuple[FloatArray, Floats]:
    """W (N, R) and Δμ (N,).

    second, pulls : of the prior's users. off : (N,) from μ to its prior.
    """
    size, rank = sums.factors.shape[1] + 1, sums.factors.shape[1]
    dtype, count = sums.moments.dtype, len(sums.moments)
    penalty = np.zeros((size, size))
    penalty[:rank, :rank] = second
    penalty[rank, rank] = options.mean_strength
    packed = np.ascontiguousarray(penalty[np.tril_indices(size)], dtype)
    priors = np.empty((count, size), dtype)
    priors[:, :rank], priors[:, rank] = pulls, options.mean_strength * off
    loadings, shifts = np.empty((count, rank), dtype), np.empty(count)

    def some(batch: npt.NDArray[np.int64], space: tuple[solve.Scratch, FloatArray]) -> None:
        failed = compiled.regress(
            batch, sums.moments, sums.pulls, packed, priors, *space, loadings, shifts
        )
        if failed >= 0:
            raise NotPositiveDefiniteError(
                "Nothing determines the loadings of an item. Give the prior a weight above 0."
            )

    order = np.arange(count)
    team.run(
        some,
        work_pieces(order, np.full(count, size), lambda n: n**3),
        lambda: (solve.scratch(size**2, dtype), sweep_space(size, dtype)),
        work=1.0,
    )
    return loadings, shifts


def _factored(gaussian: Gaussian) -> FactoredCovariance:
    assert isinstance(gaussian.covariance, FactoredCovariance)
    return gaussian.covariance


def _effects(gaussian: Gaussian) -> Floats | None:
    """Γ (R, G) of B = W Γ."""
    if gaussian.coefficients is None:
        return None
    loadings = _factored(gaussian).factor.astype(np.float64)
    return np.asarray(scipy.linalg.lstsq(loadings, gaussian.coefficients)[0])


def _distance(new: FactoredCovariance, old: FactoredCovariance) -> float:
    """‖Σ' - Σ‖ / ‖Σ‖ (Frobenius)."""
    cross = (old.factor.T @ new.factor).astype(np.float64)
    apart = float((new.gram**2).sum() + (old.gram**2).sum() - 2 * (cross**2).sum())
    return float(np.sqrt(max(apart, 0.0) / old.squared_norm(1.0)))


def _unpack(packed: Floats, out: Floats) -> None:
    """The leading part of a packed symmetric matrix, both triangles."""
    rank = len(out)
    rows, columns = np.tril_indices(rank)
    out[rows, columns] = packed[: len(rows)]
    out[columns, rows] = packed[: len(rows)]
