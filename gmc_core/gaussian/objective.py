"""The paper's MAP objective, which neither step of MAP-EM lowers once ε is accounted for.

    log p(f̃ | μ, Σ) + log p(y | f̃)

is what the E-step maximises over f̃. The M-step with ε maximises the first term less
(M ε / 2) tr Σ⁻¹.
"""

from __future__ import annotations

import numpy as np

from gmc_core.base.errors import NumericalError
from gmc_core.gaussian.covariance import DenseCovariance
from gmc_core.gaussian.estep import Estimates, solve_systems
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.noise import FULL, Noise
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.signals import Signals


def map_objective(
    signals: Signals,
    gaussian: Gaussian,
    estimates: Estimates,
    epsilon: float,
    noise_log_det: float | None,
    team: ThreadPool,
) -> tuple[float, float]:
    """The MAP objective at f̃, and the same less (M ε / 2) tr Σ⁻¹.

    With K a = r the quadratic terms of log p(f̃ | μ, Σ) and log p(y | f̃) add up to
    -½ rᵀ a. ``noise_log_det`` is that of :func:`observation_noise_log_det`, None without
    noise, and then log p(y | f̃) is left out: f̃ equals y where it is observed.

    Raises
    ------
    NumericalError
        If Σ is not positive definite.
    """
    log_det, trace = gaussian.covariance.log_det_and_trace_inverse(team)
    count, size = signals.count, signals.dimension
    value = -0.5 * (estimates.quadratic.sum() + count * (log_det + size * np.log(2 * np.pi)))
    if noise_log_det is not None:
        value -= 0.5 * (noise_log_det + len(signals.values) * np.log(2 * np.pi))
    return float(value), float(value - count * epsilon / 2 * trace)


def observation_noise_log_det(signals: Signals, noise: Noise, team: ThreadPool) -> float:
    """Σ_i log|Σ_w[o_i, o_i]|: part of log p(y | f̃).

    Raises
    ------
    NumericalError
        If Σ_w is singular, so that p(y | f̃) has no density.
    """
    if noise.kind != FULL:
        variances = noise.variances(signals.indices)
        if np.any(variances <= 0):
            raise NumericalError("A noise variance is 0, so log p(y | f) is undefined.")
        return float(np.log(variances).sum())
    model = Gaussian(np.zeros(signals.dimension), DenseCovariance(noise.array))
    none = Noise.of(0.0, signals.dimension)
    zero = np.zeros(len(signals.values))
    return float(solve_systems(signals, zero, model, none, team).log_det.sum())
