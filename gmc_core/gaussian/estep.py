"""E-step: the MAP estimate of every signal, the paper's equation (4).

    f̃_i = μ + Σ[:, o] a_i   with   a_i = (Σ[o, o] + Σ_w[o, o])⁻¹ (y_i - μ[o])

Only the dual coefficients a_i (N_i numbers a signal; ``weights`` in code and files) are
computed and kept; whoever needs an estimate multiplies by the rows of Σ it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import NotPositiveDefiniteError
from gmc_core.gaussian.covariance import DenseCovariance, FactoredCovariance
from gmc_core.gaussian.covariates import observed_shifts, shifts
from gmc_core.gaussian.linalg import solve
from gmc_core.gaussian.linalg.products import (
    TILE_VECTORS,
    pair_products,
    session_products,
    sparse_times_symmetric,
    tile_rows,
)
from gmc_core.gaussian.linalg.threads import ThreadPool, spans
from gmc_core.gaussian.linalg.vectors import lanes as lanes_of
from gmc_core.gaussian.noise import FULL, Noise, SessionNoise
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.signals import Signals

_NO_TIMES = np.zeros(0)
# Flops in one piece of work: about 20 ms, so that cancelling is prompt and the last
# pieces of two threads end together.
_PIECE = 5e8
# Whose factors are held at once.
_SIGNALS = 1 << 13


@dataclass(frozen=True, eq=False)
class Estimates:
    """The E-step's result for M signals.

    weights : (nnz,) the dual coefficients a_i in the order of ``signals.indices``, working
        precision.
    quadratic : (M,) r_iᵀ a_i with r_i = y_i - μ[o].
    log_det : (M,) log|Σ[o, o] + Σ_w[o, o]|.
    """

    weights: npt.NDArray[np.floating]
    quadratic: npt.NDArray[np.float64]
    log_det: npt.NDArray[np.float64]

    @property
    def log_likelihood(self) -> float:
        """Observed-data log-likelihood Σ_i log N(y_i; μ[o], Σ[o, o] + Σ_w[o, o])."""
        constant = len(self.weights) * np.log(2 * np.pi)
        return -0.5 * float(self.quadratic.sum() + self.log_det.sum() + constant)


def read_only(array: np.ndarray) -> np.ndarray:
    """A view that cannot be written.

    Compiled functions are made once per type, and read-only arrays are a type of
    their own: with all inputs read-only there is one version to compile.
    """
    view = array.view()
    view.setflags(write=False)
    return view


def compressed(
    signals: Signals, weights: npt.NDArray[np.floating]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The dual coefficients as a sparse matrix A (M × N) for compiled functions."""
    return read_only(signals.indptr), read_only(signals.indices), read_only(weights)


def e_step(signals: Signals, gaussian: Gaussian, noise: Noise, team: ThreadPool) -> Estimates:
    """MAP estimates of all signals under ``gaussian``.

    Raises
    ------
    NumericalError
        If some Σ[o, o] + Σ_w[o, o] is not positive definite.
    Cancelled
        If the pool was told to stop.
    """
    return solve_systems(signals, signals.values, gaussian, noise, team)


def solve_systems(
    signals: Signals,
    values: npt.NDArray[np.float64],
    gaussian: Gaussian,
    noise: Noise,
    team: ThreadPool,
) -> Estimates:
    """Solve (Σ[o, o] + Σ_w[o, o]) a = values - μ[o] - (B x)[o] for all signals.

    Those with most observations come first, so that the threads end together. To the progress of
    ``team`` all this is work of 1.

    Raises
    ------
    NumericalError, Cancelled
        As :func:`e_step`.
    """
    covariance = gaussian.covariance
    dtype = covariance.dtype
    systems = systems_of(signals, values, gaussian, noise)
    order = signals.heavy_first
    sizes = signals.sizes[order]
    largest = int(sizes[0]) if len(sizes) else 0
    if isinstance(covariance, FactoredCovariance):
        factor = read_only(covariance.factor)
        with np.errstate(over="ignore"):  # an infinite ε is not positive definite, which is said
            epsilon = dtype.type(covariance.epsilon)
        rank = factor.shape[1]

        def factored(batch: npt.NDArray[np.int64], space: tuple[solve.Scratch, np.ndarray]) -> None:
            check_solved(
                solve.solve_factored(batch, systems, factor, epsilon, *space), signals, dtype
            )

        diagonal = noise.kind != FULL and noise.session is None
        side = min(largest, rank) if diagonal else largest
        team.run(
            factored,
            work_pieces(order, sizes, lambda n: factored_flops(n, rank)),
            lambda: (solve.scratch(side**2, dtype), np.empty(largest * rank, dtype)),
            work=1.0,
        )
    else:
        matrix = read_only(covariance.matrix)
        lanes = lanes_of(dtype.itemsize)
        split = int(np.searchsorted(-sizes, -solve.LANE_LIMIT))
        large = work_pieces(order[:split], sizes[:split], lambda n: n**3 / 3)
        small = work_pieces(order[split:], sizes[split:], lambda n: n**3 / 3, lanes)
        widest = int(sizes[split]) + 1 if split < len(sizes) else 0

        def dense(piece: tuple[bool, npt.NDArray[np.int64]], space: solve.Scratch) -> None:
            in_lanes, batch = piece
            if in_lanes:
                failed = solve.solve_lanes(batch, systems, matrix, space.work, lanes)
            else:
                failed = solve.solve_large(batch, systems, matrix, space)
            check_solved(failed, signals, dtype)

        team.run(
            dense,
            [(False, batch) for batch in large] + [(True, batch) for batch in small],
            lambda: solve.scratch(
                max(largest**2 if split else 0, lanes * widest * (widest + 2)), dtype
            ),
            work=1.0,
        )
    return estimates_of(systems)


def systems_of(
    signals: Signals, values: npt.NDArray[np.float64], gaussian: Gaussian, noise: Noise
) -> solve.Systems:
    """All systems K a = values - μ[o] - (B x)[o] as compiled code takes them, with room for
    the a."""
    dtype = gaussian.covariance.dtype
    moved = observed_shifts(signals, gaussian)
    values = values if moved is None else values - moved
    times, shared = _NO_TIMES, np.zeros(2)
    if noise.session is not None:
        # Without times every observation's share is its own, as where each is unknown.
        times = np.full(len(values), np.nan) if signals.times is None else signals.times
        shared = np.array([noise.session.variance, 1 / noise.session.window])
    return solve.Systems(
        indptr=read_only(signals.indptr),
        indices=read_only(signals.indices),
        values=read_only(values),
        mean=read_only(gaussian.mean),
        noise=read_only(noise.array.astype(dtype)),
        kind=noise.kind,
        times=read_only(times),
        shared=read_only(shared),
        weights=np.zeros(len(values), dtype),
        forms=np.zeros((signals.count, 2)),
    )


def check_solved(failed: int, signals: Signals, dtype: np.dtype) -> None:
    """Raise NumericalError for the signal whose K was not positive definite (-1: none).

    dtype : working precision; where it is float32, float64 is one more remedy.
    """
    if failed >= 0:
        remedy = "Raise ε, add noise, or compute in float64."
        if dtype == np.float64:
            remedy = "Raise ε or add noise."
        raise NotPositiveDefiniteError(
            f"The covariance of a signal with {int(signals.sizes[failed]):,} observations is not "
            f"positive definite in {dtype.name}. {remedy}"
        )


def estimates_of(systems: solve.Systems) -> Estimates:
    """The results that solving has written to ``systems``."""
    forms = systems.forms
    return Estimates(systems.weights, forms[:, 0].copy(), forms[:, 1].copy())


def factored_flops(sizes: npt.NDArray[np.float64], rank: int) -> npt.NDArray[np.float64]:
    """Flops of each factored solve, in the observations' or the factor's space."""
    outside = rank * sizes**2 + sizes**3 / 3
    return np.where(sizes > rank, rank**2 * sizes + rank**3 / 3, outside)


def work_pieces(
    order: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    flops: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]],
    multiple: int = 1,
) -> list[npt.NDArray[np.int64]]:
    """Cut ``order`` into pieces of about ``_PIECE`` flops, of a multiple of ``multiple`` signals.

    sizes : the N_i in this order, falling. flops : of systems of N_i equations.
    """
    cost = np.cumsum(flops(sizes.astype(np.float64)))
    cut, start = [], 0
    while start < len(order):
        done = cost[start - 1] if start else 0.0
        stop = int(np.searchsorted(cost, done + _PIECE))
        stop = start + max(multiple, (stop - start) // multiple * multiple)
        # Short systems cost overhead rather than flops; the cap keeps the pieces many.
        stop = min(stop, start + 64 * multiple, len(order))
        cut.append(order[start:stop])
        start = stop
    return cut


def predict_pairs(
    signals: Signals,
    weights: npt.NDArray[np.floating],
    gaussian: Gaussian,
    pair_signals: npt.NDArray[np.int64],
    pair_coordinates: npt.NDArray[np.int64],
    team: ThreadPool,
    *,
    session: SessionNoise | None = None,
    pair_times: npt.NDArray[np.float64] | None = None,
) -> npt.NDArray[np.float64]:
    """f̃ at pairs (signal, coordinate): (μ + B x)_c + Σ[c, o] a, in float64.

    Shapes: ``pair_signals`` and ``pair_coordinates`` (P,), result (P,). A signal
    without observations predicts the mean.

    session, pair_times : where the noise is shared by observations of about the same time, and
        when those to be predicted are made, (P,) in seconds, NaN where unknown. Then what
        is predicted is f̃ and the error that they share with the known ones,
        (Σ[c, o] + τ² exp(-|t - t_o| / w)) a.
    """
    covariance = gaussian.covariance
    result = gaussian.mean[pair_coordinates].copy()
    moved = shifts(signals, gaussian, pair_signals, pair_coordinates)
    if moved is not None:
        result += moved
    if session is not None and pair_times is not None:
        result += session_parts(signals, weights, session, pair_signals, pair_times, team)
    if isinstance(covariance, DenseCovariance):
        products = np.zeros(len(result))

        def some(span: tuple[int, int], _: None) -> None:
            pair_products(
                *span, read_only(pair_signals), read_only(pair_coordinates),
                *compressed(signals, weights), read_only(covariance.matrix), products,
            )  # fmt: skip

        team.run(some, spans(len(result), 256), lambda: None)
        return result + products
    if covariance.low_rank:
        return result + _pairs_by_factors(
            signals, weights, covariance, pair_signals, pair_coordinates
        )
    products = np.zeros(len(result))
    for pair, (signal, coordinate) in enumerate(zip(pair_signals, pair_coordinates, strict=True)):
        own = slice(signals.indptr[signal], signals.indptr[signal + 1])
        row = covariance.submatrix(np.array([coordinate]), signals.indices[own])[0]
        products[pair] = row @ weights[own].astype(np.float64)
    return result + products


def _pairs_by_factors(
    signals: Signals,
    weights: npt.NDArray[np.floating],
    covariance: FactoredCovariance,
    pair_signals: npt.NDArray[np.int64],
    pair_coordinates: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    """(P,) Σ[c, o] a with Σ = W Wᵀ + γ Id: what the factors m = W[o]ᵀ a say, and the own part of
    a coordinate that was observed."""
    matrix, factor = signals.matrix(weights.astype(np.float64)), covariance.factor
    wide = factor.astype(np.float64)
    needed, places = np.unique(pair_signals, return_inverse=True)
    found = np.empty(len(pair_signals))
    for span in spans(len(needed), _SIGNALS):
        rows = matrix[needed[slice(*span)]]
        means = rows @ wide
        of = np.flatnonzero((places >= span[0]) & (places < span[1]))
        at, coordinates = places[of] - span[0], pair_coordinates[of]
        own = np.asarray(rows[at, coordinates]).reshape(-1)
        found[of] = np.einsum("pr,pr->p", means[at], factor[coordinates])
        found[of] += covariance.epsilon * own
    return found


def session_parts(
    signals: Signals,
    weights: npt.NDArray[np.floating],
    session: SessionNoise,
    pair_signals: npt.NDArray[np.int64],
    pair_times: npt.NDArray[np.float64],
    team: ThreadPool,
) -> npt.NDArray[np.float64]:
    """(P,) Σ_j τ² exp(-|t - t_j| / w) a_j: the error shared with what was rated at that time."""
    parts = np.zeros(len(pair_signals))
    times = signals.times
    if times is None:
        return parts

    def some(span: tuple[int, int], _: None) -> None:
        session_products(
            *span, read_only(pair_signals), read_only(pair_times), read_only(signals.indptr),
            read_only(times), read_only(weights), session.window, parts,
        )  # fmt: skip

    team.run(some, spans(len(parts), 256), lambda: None)
    return session.variance * parts


def deviations(
    signals: Signals,
    weights: npt.NDArray[np.floating],
    matrix: npt.NDArray[np.floating],
    start: int,
    stop: int,
    out: npt.NDArray[np.floating],
    team: ThreadPool,
) -> None:
    """Whole estimates of signals start..stop, less the mean: out ← rows of F = A Σ.

    matrix : Σ, dense (N, N). out : (stop - start, N) in its precision, written.
    """
    size, dtype = len(matrix), matrix.dtype
    lanes = lanes_of(dtype.itemsize)
    width = lanes * TILE_VECTORS

    def tile(columns: tuple[int, int], space: np.ndarray) -> None:
        sparse_times_symmetric(
            start, stop, *compressed(signals, weights), read_only(matrix), columns[0],
            lanes, space, out,
        )  # fmt: skip

    team.run(tile, spans(size, width), lambda: np.zeros(tile_rows(size) * width, dtype))
