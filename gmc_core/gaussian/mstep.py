"""M-step: the empirical mean and covariance of the estimates, equations (6) and (7).

    μ' = (1/M) Σ_i f̃_i,    Σ' = (1/M) Σ_i (f̃_i - μ')(f̃_i - μ')ᵀ + ε Id

The estimates f̃_i = μ + Σ[:, o] a_i are never stored: with A the sparse M × N
matrix of the dual coefficients a_i, row i of F = A Σ is f̃_i - μ, and three exact forms of
the same result follow. :func:`choose_form` takes the one with the fewest flops.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import blas

from gmc_core.gaussian.covariance import DenseCovariance, FactoredCovariance, unit_of
from gmc_core.gaussian.estep import compressed, deviations, factored_flops, read_only
from gmc_core.gaussian.linalg import products
from gmc_core.gaussian.linalg.threads import ThreadPool, spans
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.signals import Signals

Form = Literal["product", "congruence", "factor"]
FORMS: tuple[Form, ...] = ("product", "congruence", "factor")

# Between these, sums of squares have lost nothing that counts to the limits of float64.
_SQUARES = (1e-280, 1e300)
# What adding up products of sparse weights takes, in flops of a dense product, for the progress.
_SPARSE = 40.0


def step_flops(sizes: npt.NDArray[np.integer], dimension: int) -> dict[Form, tuple[float, float]]:
    """Flops of the E-step and of the M-step in each exact form.

    Parameters
    ----------
    sizes : (M,) the N_i. dimension : N.

    The E-step is Σ_i N_i³/3 with a dense Σ, and then the M-step
    "product": F = A Σ, then Fᵀ F as a symmetric update, 2 nnz N + M N²;
    "congruence": Σ (AᵀA) Σ, Σ_i N_i² + 3 N³ (the second product only below the
    diagonal). "factor", for M < N: Σ is never formed; the E-step takes M N_i² more
    for each user's sub-matrix, or M² N_i + M³/3 in all for users with more than M
    observations, and the M-step 2 nnz M + 3 M² N.
    """
    m, n = float(len(sizes)), float(dimension)
    exact = sizes.astype(np.float64)
    ratings, squares = float(exact.sum()), float((exact**2).sum())
    solves = float((exact**3).sum() / 3)
    flops: dict[Form, tuple[float, float]] = {
        "product": (solves, 2 * ratings * n + m * n**2),
        "congruence": (solves, squares + 3 * n**3),
    }
    if m < n:
        inside = float(factored_flops(exact, len(sizes)).sum())
        flops["factor"] = (inside, 2 * ratings * m + 3 * m**2 * n)
    return flops


def choose_form(sizes: npt.NDArray[np.integer], dimension: int, *, dense: bool = False) -> Form:
    """The exact form with the fewest flops; with ``dense``, of those that form Σ."""
    flops = step_flops(sizes, dimension)
    forms = [form for form in flops if not (dense and form == "factor")]
    return min(forms, key=lambda form: sum(flops[form]))


def block_rows(signals: int, dimension: int) -> int:
    """Rows of F held at once by the "product" form.

    Half of Σ at most; and no more than a second or two of symmetric update, which
    cannot be interrupted.
    """
    return min(signals, max(64, min(dimension // 2, int(1e11 / dimension**2))))


def m_step(
    signals: Signals,
    weights: npt.NDArray[np.floating],
    gaussian: Gaussian,
    epsilon: float,
    form: Form,
    team: ThreadPool,
    spare: npt.NDArray[np.floating] | None = None,
    sample_weights: npt.NDArray[np.float64] | None = None,
) -> tuple[Gaussian, float | None]:
    """New (μ, Σ) from the estimates f̃_i = μ + Σ[:, o] a_i.

    ``spare`` is an N × N matrix that may be overwritten with the new Σ: memory that
    the system hands out anew costs as much time as a small product. ``sample_weights`` (M,)
    are what the signals count in the mean and the covariance, which sum to 1; None
    weighs all alike.

    Returns
    -------
    The new Gaussian, and ‖Σ' - Σ‖ / ‖Σ‖ (Frobenius; None from Σ = 0, and from the
    initial state, where Σ = Id only stands for "f̃ = y where known, the initial value
    elsewhere").
    """
    if form == "factor":
        # Fewer signals than coordinates, as in the embedded sample: Σ is never formed.
        return _factor_form(signals, weights, gaussian, epsilon, team, sample_weights)
    old = gaussian.covariance
    matrix = old.matrix if isinstance(old, DenseCovariance) else None
    counted, total = weights, signals.count
    if sample_weights is not None:
        # In second moments a weight counts twice, so its root goes to the rows of A.
        each = np.repeat(sample_weights, signals.sizes)
        counted, total = (weights * each).astype(old.dtype), 1
        weights = (weights * np.sqrt(each * signals.count)).astype(old.dtype)
    sums = products.column_sums(read_only(signals.indices), read_only(counted), signals.dimension)
    with team.whole():
        shift = old.dot((sums / total).astype(old.dtype)).astype(np.float64)
    moment = np.empty((old.dimension, old.dimension), old.dtype) if spare is None else spare
    with team.progress.counting(1.0):
        if matrix is None:  # from the initial state, Σ = Id
            _outer_sum(signals, weights, moment, team, 1.0)
        elif form == "product":
            _product_moment(signals, weights, matrix, moment, team)
        else:
            _congruence_moment(signals, weights, matrix, moment, team)
    change = moment_to_covariance(moment, matrix, shift, epsilon, team)
    return Gaussian(gaussian.mean + shift, DenseCovariance(moment)), change


def _outer_sum(
    signals: Signals,
    weights: npt.NDArray[np.floating],
    out: npt.NDArray[np.floating],
    team: ThreadPool,
    work: float,
) -> None:
    """Lower triangle of AᵀA / M, from the sparse weights alone, into ``out``."""
    scale = weights.dtype.type(1 / signals.count)
    _, indices, values = compressed(signals, weights)

    def rows(span: tuple[int, int], _: None) -> None:
        products.outer_sum(*span, *signals.by_coordinate, indices, values, scale, out)

    team.run(rows, spans(len(out), 16), lambda: None, work=work)


def _product_moment(
    signals: Signals,
    weights: npt.NDArray[np.floating],
    matrix: npt.NDArray[np.floating],
    out: npt.NDArray[np.floating],
    team: ThreadPool,
) -> None:
    """Lower triangle of FᵀF / M, F = A Σ in blocks of rows, into ``out``."""
    size, dtype = len(matrix), matrix.dtype
    syrk = blas.dsyrk if dtype == np.float64 else blas.ssyrk
    block = np.empty((block_rows(signals.count, size), size), dtype)
    for start, stop in spans(signals.count, len(block)):
        rows = block[: stop - start]
        deviations(signals, weights, matrix, start, stop, rows, team)
        with team.whole():
            # Row-major lower is column-major upper: no copy is made.
            beta = 1.0 if start else 0.0
            syrk(1 / signals.count, rows.T, beta=beta, c=out.T, trans=0, lower=0, overwrite_c=1)
        team.progress.add((stop - start) / signals.count)


def _congruence_moment(
    signals: Signals,
    weights: npt.NDArray[np.floating],
    matrix: npt.NDArray[np.floating],
    out: npt.NDArray[np.floating],
    team: ThreadPool,
) -> None:
    """Lower triangle of Σ G Σ with G = AᵀA / M, into ``out``."""
    sparse, dense = _SPARSE * float((signals.sizes**2).sum()), 3.0 * len(out) ** 3
    share = sparse / (sparse + dense)
    _outer_sum(signals, weights, out, team, share)
    congruence(matrix, out, np.empty_like(out), team, 1 - share)


def congruence(
    matrix: npt.NDArray[np.floating],
    out: npt.NDArray[np.floating],
    half: npt.NDArray[np.floating],
    team: ThreadPool,
    work: float,
) -> None:
    """out ← lower triangle of Σ G Σ, where ``out`` holds the lower triangle of G on entry.

    matrix : Σ, both triangles. half : N × N workspace. work : for the progress.
    """

    def mirror(span: tuple[int, int], _: None) -> None:
        products.mirror_rows(*span, out)

    team.run(mirror, spans(len(out), products.BLOCK)[::-1], lambda: None)
    panel = max(128, len(out) // 16)
    for start, stop in spans(len(out), panel):
        with team.whole():
            np.matmul(out[start:stop], matrix, out=half[start:stop])
        team.progress.add(work * 2 / 3 * (stop - start) / len(out))
    for start, stop in spans(len(out), panel):
        with team.whole():
            np.matmul(matrix[start:stop], half[:, :stop], out=out[start:stop, :stop])
        team.progress.add(work / 3 * (stop**2 - start**2) / len(out) ** 2)


def moment_to_covariance(
    moment: npt.NDArray[np.floating],
    old: npt.NDArray[np.floating] | None,
    shift: npt.NDArray[np.float64],
    epsilon: float,
    team: ThreadPool,
) -> float | None:
    """Second moment to covariance in place, both triangles; the relative change."""
    pieces = spans(len(moment), products.BLOCK)
    sums = np.zeros((len(pieces), 2))
    reference = read_only(moment if old is None else old)

    def rows(piece: tuple[int, tuple[int, int]], _: None) -> None:
        index, span = piece
        sums[index] = products.covariance_rows(*span, shift, epsilon, moment, reference)

    # Long rows first: the triangle's last rows hold the most entries.
    team.run(rows, list(enumerate(pieces))[::-1], lambda: None)
    change, norm = sums.sum(axis=0)
    if old is None:
        return None
    if _SQUARES[0] < norm < _SQUARES[1] and change < _SQUARES[1]:
        return float(np.sqrt(change / norm))
    return _extreme_change(moment, old)


def _extreme_change(new: npt.NDArray[np.floating], old: npt.NDArray[np.floating]) -> float | None:
    """‖new - old‖ / ‖old‖ where squares of entries leave the range of float64; ≤ 1e300."""
    before = old.astype(np.float64)
    apart = new.astype(np.float64) - before
    if not np.any(before):
        return None
    own, unit = unit_of(apart), unit_of(before)
    ratio = np.linalg.norm(apart / own) / np.linalg.norm(before / unit)
    return min(own / unit * float(ratio), _SQUARES[1])


def _factor_form(
    signals: Signals,
    weights: npt.NDArray[np.floating],
    gaussian: Gaussian,
    epsilon: float,
    team: ThreadPool,
    sample_weights: npt.NDArray[np.float64] | None,
) -> tuple[Gaussian, float | None]:
    """The form that keeps Σ = X Xᵀ + ε Id with X (N × M) = (F - mean)ᵀ / √M.

    With sample weights each column has the root of its own in place of 1 / √M.
    """
    old = gaussian.covariance
    assert isinstance(old, FactoredCovariance)
    dtype, count = old.dtype, signals.count
    inner = np.empty((count, old.factor.shape[1]), dtype)  # A X
    left, right = compressed(signals, weights), read_only(old.factor)

    def rows(span: tuple[int, int], _: None) -> None:
        products.sparse_times_dense(*span, *left, right, inner)

    team.run(rows, spans(count, 16), lambda: None)
    with team.whole():
        # Fᵀ = Σ Aᵀ = X (A X)ᵀ + ε Aᵀ, and X' is what is left of it after centring.
        new = old.factor @ inner.T
    owners = read_only(np.repeat(np.arange(count, dtype=np.int32), signals.sizes))
    scaled = read_only(dtype.type(old.epsilon) * weights)
    each = read_only(np.full(count, 1 / count) if sample_weights is None else sample_weights)
    shift = np.zeros(old.dimension)

    def centre(span: tuple[int, int], _: None) -> None:
        products.centre_rows(*span, *signals.by_coordinate[:2], owners, scaled, each, new, shift)

    team.run(centre, spans(old.dimension, 64), lambda: None)
    with team.whole():
        covariance = FactoredCovariance(new, epsilon)
        gaussian = Gaussian(gaussian.mean + shift, covariance)
        if old.initial:
            return gaussian, None
        # XᵀX' from R × R matrices: Xᵀ Fᵀ = (XᵀX + ε Id) (A X)ᵀ.
        gram = old.gram + old.epsilon * np.eye(len(old.gram))
        mean = (old.factor.T @ shift.astype(dtype)).astype(np.float64)
        cross = gram @ inner.T.astype(np.float64) - mean[:, None]
        unit = unit_of(covariance.gram, old.gram)
        cross /= unit
        if sample_weights is None:
            both = (cross**2).sum() / count
        else:
            both = (cross**2).sum(axis=0) @ sample_weights
        squared = ((covariance.gram / unit) ** 2).sum() - 2 * both + ((old.gram / unit) ** 2).sum()
    own = unit_of(old.gram, old.epsilon)
    norm = old.squared_norm(own)
    change = float(np.sqrt(max(squared, 0.0) / norm)) * (unit / own) if norm else None
    return gaussian, change
