"""The latent responses behind ordered ratings under one Gaussian, found to convergence.

A signal's latent responses are z = f + e with e ~ N(0, σ²), its ratings say low < z ≤ high,
and f ~ N(m, S) at the observed places. What is wanted is the f of highest posterior density
and with it z = E[z | f, rating]: the one fixed point of filling z in and estimating f
from it. K⁻¹ with K = S + σ² Id has been computed before. Where there is session noise, f is
the Gaussian plus the error that a user's ratings share, and S the covariance of the sum.

With the dual coefficients a, f = m + S a, and the scores s = d log P(rating | f) / df the gradient
is r = s - a, and filling in once more is the step Δa = σ² K⁻¹ r, Δf = σ² (r - σ² K⁻¹ r):
the gradient preconditioned by K. Conjugate gradients on it (Polak and Ribière, with a
Newton step along each direction) need a third of the rounds, one product with K⁻¹ each.
The density is log-concave, so where they begin does not matter.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, types
from numba.extending import overload

_ROOT2 = math.sqrt(2.0)
_NORM = 1 / math.sqrt(2 * math.pi)
# From here on Mills' ratio comes from its continued fraction, which 24 terms exhaust.
_FAR = 5.0
_TERMS = 24
# Times that a step is cut back which went beyond where the density rises; then it is
# halved until the density rises to its end.
_CUTS = 6
_HALVINGS = 60
# After the last round a residual this many times the tolerance still counts as found.
_LOOSE = 1000.0
# What becomes of a signal's latent responses.
NOT_FINITE, NOT_FOUND = -1, -2


@njit(nogil=True, cache=True)
def _mills(t):  # type: ignore[no-untyped-def]
    """(1 - Φ(t)) / φ(t) for t ≥ 0."""
    if t < _FAR:
        return 0.5 * math.erfc(t / _ROOT2) * math.exp(0.5 * t * t) / _NORM
    below = t
    for k in range(_TERMS, 0, -1):
        below = t + k / below
    return 1 / below


@njit(nogil=True, cache=True)
def score(mean, low, high, sd):  # type: ignore[no-untyped-def]
    """d log P / d mean and -d² log P / d mean², P = P(low < z < high) for z ~ N(mean, sd²).

    E[z | low < z < high] is mean + sd² times the first; the second lies in 0..1/sd².
    """
    a, b = (low - mean) / sd, (high - mean) / sd
    sign = 1.0
    if a > -b:  # mirrored, so that differences of probabilities keep their digits
        a, b, sign = -b, -a, -1.0
    if b > 0:
        mass = 0.5 * (math.erf(b / _ROOT2) - math.erf(a / _ROOT2))
        at_a = _NORM * math.exp(-0.5 * a * a) / mass
        at_b = _NORM * math.exp(-0.5 * b * b) / mass
    else:
        ratio = math.exp(0.5 * (b - a) * (b + a))  # φ(a) / φ(b)
        mass = _mills(-b) - (ratio * _mills(-a) if ratio > 0 else 0.0)
        if not mass > 0:  # so far out that both ends are one number: the nearer counts
            mass, ratio = _mills(-b), 0.0
        at_b = 1 / mass
        at_a = ratio * at_b
    shift = at_a - at_b
    bent = shift * shift
    if at_a > 0:
        bent -= a * at_a
    if at_b > 0:
        bent += b * at_b
    return sign * shift / sd, min(max(bent, 0.0), 1.0) / (sd * sd)


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def times(inverse, n, right, answer):  # type: ignore[no-untyped-def]
    """answer ← K⁻¹ right from -K⁻¹ (lower triangle, n × n flat)."""
    answer[:n] = 0
    for i in range(n):
        row = inverse[i * n : i * n + i]
        total = inverse[i * n + i] * right[i]
        own = right[i]
        for j in range(i):
            total += row[j] * right[j]
            answer[j] -= row[j] * own
        answer[i] -= total


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _times_factored(inverse, n, right, answer):  # type: ignore[no-untyped-def]
    """The same where K = d (Id + R Rᵀ): K⁻¹ = (Id - R C Rᵀ) / d, C = (Id + Rᵀ R)⁻¹.

    inverse : R (flat, n × rank), -C (flat, lower triangle), room for twice the rank, and d.
    """
    rows, spread, room, variance = inverse
    rank = len(room) // 2
    inner, outer = room[:rank], room[rank:]
    inner[:] = 0
    for i in range(n):
        row, own = rows[i * rank : (i + 1) * rank], right[i]
        for k in range(rank):
            inner[k] += row[k] * own
    times(spread, rank, inner, outer)
    for i in range(n):
        row = rows[i * rank : (i + 1) * rank]
        total = right[i]
        for k in range(rank):
            total -= row[k] * outer[k]
        answer[i] = total / variance


def _product(inverse, n, right, answer):  # type: ignore[no-untyped-def]
    """answer ← K⁻¹ right in either form."""
    (times if isinstance(inverse, np.ndarray) else _times_factored)(inverse, n, right, answer)


@overload(_product, inline="always")
def _product_overload(inverse, n, right, answer):  # type: ignore[no-untyped-def]
    if isinstance(inverse, types.Array):
        return lambda inverse, n, right, answer: times(inverse, n, right, answer)
    return lambda inverse, n, right, answer: _times_factored(inverse, n, right, answer)


@njit(nogil=True, cache=True)
def _residual(f, a, low, high, sd, r, bent):  # type: ignore[no-untyped-def]
    """r ← s(f) - a and the curvatures; the largest |r|."""
    largest = 0.0
    for i in range(len(f)):
        s, bent[i] = score(f[i], low[i], high[i], sd)
        r[i] = s - a[i]
        largest = max(largest, abs(r[i]))
        if not math.isfinite(r[i]):
            return math.inf
    return largest


@njit(nogil=True, cache=True)
def _halved(f, a, p_f, p_a, moved, low, high, sd, r, bent):  # type: ignore[no-untyped-def]
    """Halve a step until the density still rises at its end; the largest |r|.

    As the density is log-concave it is then no lower than at the step's beginning. Where
    rounding leaves no such step, none is taken.
    """
    for _ in range(_HALVINGS):
        for i in range(len(f)):
            f[i] -= 0.5 * moved * p_f[i]
            a[i] -= 0.5 * moved * p_a[i]
        moved *= 0.5
        largest = _residual(f, a, low, high, sd, r, bent)
        ahead = 0.0
        for i in range(len(f)):
            ahead += r[i] * p_f[i]
        if ahead >= 0:
            return largest
    for i in range(len(f)):
        f[i] -= moved * p_f[i]
        a[i] -= moved * p_a[i]
    return _residual(f, a, low, high, sd, r, bent)


@njit(nogil=True, cache=True)
def climb(f, a, low, high, variance, inverse, like, tolerance, rounds):  # type: ignore[no-untyped-def]
    """Move f and a of one signal to the fixed point; the rounds it took.

    inverse : -K⁻¹, or as :func:`_times_factored` takes it. like : an array in its precision.

    NOT_FINITE if it is none, NOT_FOUND if it was not reached: after ``rounds`` filling in
    once more changes a latent response by more than ``_LOOSE`` tolerances.
    """
    n, sd = len(f), math.sqrt(variance)
    r, bent, before = np.empty(n), np.empty(n), np.zeros(n)
    p_f, p_a = np.zeros(n), np.zeros(n)
    right, u = np.empty(n, like.dtype), np.empty(n, like.dtype)
    largest, last = _residual(f, a, low, high, sd, r, bent), 0.0
    for done in range(rounds):
        if not largest < math.inf:
            return NOT_FINITE
        if variance * largest <= tolerance:
            return done
        for i in range(n):
            right[i] = r[i]
        _product(inverse, n, right, u)
        gain = changed = 0.0
        for i in range(n):
            d = variance * (r[i] - variance * u[i])
            gain += r[i] * d
            changed += before[i] * d
        beta = max(0.0, (gain - changed) / last) if last > 0 else 0.0
        slope = 0.0
        for i in range(n):
            p_f[i] = variance * (r[i] - variance * u[i]) + beta * p_f[i]
            p_a[i] = variance * u[i] + beta * p_a[i]
            slope += r[i] * p_f[i]
        if not slope > 0:  # no ascent: begin again with the plain step
            slope = gain
            for i in range(n):
                p_f[i], p_a[i] = variance * (r[i] - variance * u[i]), variance * u[i]
        curvature = 0.0
        for i in range(n):
            curvature += p_f[i] * (p_a[i] + bent[i] * p_f[i])
            before[i] = r[i]
        last = gain
        step = slope / curvature if curvature > 0 else 1.0
        moved = ahead = 0.0
        for _ in range(_CUTS):
            for i in range(n):
                f[i] += (step - moved) * p_f[i]
                a[i] += (step - moved) * p_a[i]
            moved = step
            largest = _residual(f, a, low, high, sd, r, bent)
            ahead = 0.0
            for i in range(n):
                ahead += r[i] * p_f[i]
            if ahead >= -0.5 * slope:
                break
            step = step * slope / (slope - ahead)
        if ahead < -0.5 * slope:
            largest = _halved(f, a, p_f, p_a, moved, low, high, sd, r, bent)
            last = 0.0  # from there the plain step
    if not largest < math.inf:
        return NOT_FINITE
    return rounds if variance * largest <= _LOOSE * tolerance else NOT_FOUND


@njit(nogil=True, cache=True)
def settle(batch, places, systems, inverses, ends, shift, variance, tolerance, rounds, values):  # type: ignore[no-untyped-def]
    """The latent responses z of the signals of ``batch``, and their dual coefficients K⁻¹ (z - m).

    Parameters
    ----------
    batch, places, systems, inverses : as :func:`gmc_core.gaussian.linalg.posterior.invert_systems`
        has left them, with the dual coefficients of ``values``, where this begins.
    ends : (low, high) of each rating's latent response. shift : what covariates add to the mean.
    variance : σ² > 0. tolerance : of a latent response's change by one more filling in.
    rounds : at most; 0 leaves the latent responses as they are.
    values : (nnz,) the latent responses z, overwritten.

    Returns
    -------
    The first signal whose latent responses were not computed, or -1, and why: 0, NOT_FINITE
    or NOT_FOUND.
    """
    for k in range(len(batch)):
        signal = batch[k]
        start, stop = systems.indptr[signal], systems.indptr[signal + 1]
        n = stop - start
        inverse = inverses[places[k] : places[k] + n * n]
        own, moved = values[start:stop], shift[start:stop]
        if rounds > 0:
            a = systems.weights[start:stop].astype(np.float64)
            f = own - moved - variance * a
            low, high = ends[0][start:stop] - moved, ends[1][start:stop] - moved
            took = climb(f, a, low, high, variance, inverse, inverse, tolerance, rounds)
            if took < 0:
                return signal, took
            for i in range(n):
                own[i] = f[i] + variance * a[i] + moved[i]
        right, answer = np.empty(n, inverses.dtype), systems.weights[start:stop]
        for i in range(n):
            right[i] = own[i] - moved[i] - systems.mean[systems.indices[start + i]]
        times(inverse, n, right, answer)
        form = 0.0
        for i in range(n):
            form += float(right[i]) * float(answer[i])
        systems.forms[signal, 0] = form
        if not math.isfinite(form):
            return signal, NOT_FINITE
    return -1, 0
