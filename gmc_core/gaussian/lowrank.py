"""Partly observed vectors under W Wᵀ + D: factor analysis with missing data, by EM.

A signal is r_i = W[o] x_i + e with x_i ~ N(0, Id) of R numbers, its factors, and
e ~ N(0, D[o]), D diagonal (Rubin and Thayer 1982). With what is observed of it

    E-step   C_i = (Id + W[o]ᵀ D[o]⁻¹ W[o])⁻¹,  m_i = C_i W[o]ᵀ D[o]⁻¹ r_i
    M-step   w_j = (Σ_i [C_i + m_i m_iᵀ] + d_j P)⁻¹ (Σ_i r_ij m_i + d_j p_j)

over the signals that have coordinate j. All solves have R equations: nnz R² + (M + N) R³ flops a
step, where a dense covariance takes Σ_i N_i³. Without P and p an iteration never lowers the
log-likelihood of what is observed.

P and p are a prior of W (:class:`LoadingsPrior`): ν signals more, completely observed, whose
second moment is a target T = V Vᵀ + D. Their E-step is the same with β = Wᵀ (W Wᵀ + D)⁻¹:

    P = (ν / d) (Id - β W + β T βᵀ),   p = (ν / d) T βᵀ

and what never falls is the log-likelihood less ν/2 (log|W Wᵀ + D| + tr((W Wᵀ + D)⁻¹ T)). With
D = d Id, W = V is its optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gmc_core.base.errors import ConfigError, NotPositiveDefiniteError
from gmc_core.data.ratings import frozen
from gmc_core.gaussian.estep import read_only, work_pieces
from gmc_core.gaussian.linalg import lowrank, solve
from gmc_core.gaussian.linalg.sweep import sweep_space
from gmc_core.gaussian.linalg.threads import ThreadPool, spans
from gmc_core.gaussian.signals import Layout, Signals

FloatArray = npt.NDArray[np.floating]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FactorPosteriors:
    """What is believed of the factors of M signals: x_i ~ N(m_i, C_i).

    means : m (M, R). spreads : (M, R (R + 1) / 2) the lower triangles of the C_i, row after row.
        Both in the working precision.
    quadratic : (M,) r_iᵀ K_i⁻¹ r_i with K_i = W[o] W[o]ᵀ + D[o]. log_det : (M,) log|K_i|.
    """

    means: FloatArray
    spreads: FloatArray
    quadratic: Floats
    log_det: Floats

    def log_likelihood(self, observations: int) -> float:
        """Σ_i log N(r_i; 0, K_i) of so many observations in all."""
        constant = observations * np.log(2 * np.pi)
        return -0.5 * float(self.quadratic.sum() + self.log_det.sum() + constant)


@dataclass(frozen=True, eq=False)
class LoadingsPrior:
    """W is shrunk towards ν signals more, of the second moment V Vᵀ + D.

    strength : ν ≥ 0, as a number of signals. loadings : V (N, K).
    """

    strength: float
    loadings: Floats

    def __post_init__(self) -> None:
        if not (self.strength >= 0 and np.isfinite(self.strength)):
            raise ConfigError(f"The strength of a prior is at least 0, not {self.strength}.")
        if self.loadings.ndim != 2 or not np.isfinite(self.loadings).all():
            raise ConfigError("The loadings that W is shrunk towards are a finite matrix.")

    def terms(self, loadings: Floats, noise: float) -> tuple[Floats, Floats]:
        """(R, R) P and (N, R) p under W, with D = ``noise`` · Id.

        Nothing of size N × N is formed: β = (Id + WᵀW/d)⁻¹ Wᵀ / d.
        """
        rank = loadings.shape[1]
        gram = loadings.T @ loadings + noise * np.eye(rank)
        beta = scipy.linalg.solve(gram, loadings.T, assume_a="pos")
        pulled = self.loadings @ (beta @ self.loadings).T + noise * beta.T
        second = np.eye(rank) - beta @ loadings + beta @ pulled
        weight = self.strength / noise
        return weight * (second + second.T) / 2, weight * pulled

    def penalty(self, loadings: Floats, noise: float) -> float:
        """ν/2 (log|W Wᵀ + D| + tr((W Wᵀ + D)⁻¹ T)), D = ``noise`` · Id."""
        if not self.strength:
            return 0.0
        size, rank = loadings.shape
        root = scipy.linalg.cholesky(np.eye(rank) + loadings.T @ loadings / noise, lower=True)
        log_det = size * np.log(noise) + 2 * float(np.log(np.diag(root)).sum())
        # tr(K⁻¹ V Vᵀ) and tr(K⁻¹ d) by Woodbury's identity, K = W Wᵀ + d Id.
        half = scipy.linalg.solve_triangular(root, loadings.T @ self.loadings, lower=True)
        shared = float((self.loadings**2).sum() - (half**2).sum() / noise) / noise
        inverse = scipy.linalg.solve_triangular(root, np.eye(rank), lower=True)
        own = size - rank + float((inverse**2).sum())
        return 0.5 * self.strength * (log_det + shared + own)


def factor_e_step(
    signals: Signals,
    residuals: Floats,
    loadings: FloatArray,
    noise: Floats,
    team: ThreadPool,
) -> FactorPosteriors:
    """What the observations say of the factors of each signal.

    Parameters
    ----------
    residuals : (nnz,) r, in the place of the signals' values. loadings : W (N, R), whose
        precision is the working one. noise : (N,) D > 0.

    Raises
    ------
    NotPositiveDefiniteError
        If the numbers of a signal are not finite in the working precision.
    Cancelled
        If the pool was told to stop.
    """
    dtype, rank = loadings.dtype, loadings.shape[1]
    means = np.zeros((signals.count, rank), dtype)
    spreads = np.zeros((signals.count, rank * (rank + 1) // 2), dtype)
    forms = np.zeros((signals.count, 2))
    roots = read_only(1 / np.sqrt(noise))
    sizes = signals.sizes
    order = np.argsort(-sizes, kind="stable")  # also of those without observations
    largest = int(sizes.max(initial=0))

    def some(batch: npt.NDArray[np.int64], space: tuple[solve.Scratch, FloatArray]) -> None:
        scratch, rows = space
        failed = lowrank.factor_posteriors(
            batch, read_only(signals.indptr), read_only(signals.indices), read_only(residuals),
            read_only(loadings), roots, scratch, rows, sweep_space(rank, dtype), means, spreads,
            forms,
        )  # fmt: skip
        if failed >= 0:
            raise NotPositiveDefiniteError(
                f"The factors of a signal with {int(sizes[failed]):,} observations are not finite "
                f"in {dtype.name}. Add noise, or compute in float64."
            )

    team.run(
        some,
        work_pieces(order, sizes[order], lambda n: rank**2 * n + rank**3),
        lambda: (solve.scratch(rank**2, dtype), np.empty(largest * rank, dtype)),
    )
    return FactorPosteriors(means, spreads, forms[:, 0].copy(), forms[:, 1].copy())


def loadings_m_step(
    signals: Signals,
    residuals: Floats,
    believed: FactorPosteriors,
    noise: Floats,
    terms: tuple[Floats, Floats] | None,
    team: ThreadPool,
) -> FloatArray:
    """(N, R) the new W.

    Parameters
    ----------
    signals, residuals, noise : as of :func:`factor_e_step`. believed : its result.
    terms : P and p of a prior, see :meth:`LoadingsPrior.terms`; None for none.

    Raises
    ------
    NotPositiveDefiniteError
        If nothing determines the loadings of a coordinate, as without a prior and without
        observations.
    Cancelled
        If the pool was told to stop.
    """
    dtype, rank, size = believed.means.dtype, believed.means.shape[1], signals.dimension
    if terms is None:
        terms = np.zeros((rank, rank)), np.zeros((size, rank))
    penalty = np.ascontiguousarray(terms[0][np.tril_indices(rank)], dtype)
    pulls = np.ascontiguousarray(terms[1], dtype)
    pointers, entries, _ = signals.by_coordinate
    sizes = np.diff(pointers)
    order = np.argsort(-sizes, kind="stable")
    found = np.zeros((size, rank), dtype)

    def some(batch: npt.NDArray[np.int64], space: tuple[solve.Scratch, FloatArray]) -> None:
        scratch, packed = space
        failed = lowrank.loading_rows(
            batch, read_only(pointers), read_only(entries), read_only(signals.owners),
            read_only(residuals), read_only(believed.means), read_only(believed.spreads),
            read_only(noise), read_only(penalty), read_only(pulls), scratch,
            sweep_space(rank, dtype), packed, found,
        )  # fmt: skip
        if failed >= 0:
            raise NotPositiveDefiniteError(
                f"Nothing determines the loadings of a coordinate with {int(sizes[failed]):,} "
                "observations. Give the prior a weight above 0."
            )

    team.run(
        some,
        work_pieces(order, sizes[order], lambda n: rank**2 * n + rank**3),
        lambda: (solve.scratch(rank**2, dtype), np.empty(len(penalty), dtype)),
    )
    return found


def products_at(
    signals: npt.NDArray[np.integer],
    coordinates: npt.NDArray[np.integer],
    means: FloatArray,
    loadings: FloatArray,
    team: ThreadPool,
) -> Floats:
    """(P,) m_i · w_j at pairs of signal i and coordinate j, in float64."""
    found = np.empty(len(signals))

    def some(span: tuple[int, int], _: None) -> None:
        lowrank.factor_products(
            *span, read_only(signals), read_only(coordinates), read_only(means),
            read_only(loadings), found,
        )  # fmt: skip

    team.run(some, spans(len(signals), 1 << 15), lambda: None)
    return found


def transposed(signals: Signals) -> Signals:
    """The same observations with coordinates as signals, and signals as coordinates.

    Position k of the result is position ``entries[k]`` of the signals given, with the entries of
    :attr:`gmc_core.gaussian.signals.Signals.by_coordinate`.
    """
    pointers, entries, _ = signals.by_coordinate
    layout = Layout("rows", signals.dimension, signals.count)
    owners, values = signals.owners[entries], signals.values[entries]
    return Signals(layout, pointers, frozen(owners), frozen(values))
