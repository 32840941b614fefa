"""Covariates of the mean in exact EM: f_i = μ + B x_i + g_i with g_i ~ N(0, Σ).

The E-step subtracts B x from the observations and knows no more of it. The M-step is
the regression of the estimates on x. With rows F of the estimates less μ + B x,
X (M × G) with columns that add up to 0, and λ/2 tr(Bᵀ Σ⁻¹ B) off the log-likelihood,

    ΔB = (Fᵀ X - λ B) H,   H = (XᵀX + λ Id)⁻¹

and in (M + ν) Σ' the moment FᵀF becomes FᵀF - ΔB H⁻¹ ΔBᵀ + λ B Bᵀ, as that of the
mean loses M d dᵀ. It is the M-step of one Gaussian over (f, x), written for f given x.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gmc_core.base.errors import ConfigError
from gmc_core.gaussian.linalg.threads import ThreadPool, spans
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.signals import Signals

Floats = npt.NDArray[np.float64]

# Pairs whose rows of X and B are held at once.
_PAIRS = 1 << 15


def shifts(
    signals: Signals,
    gaussian: Gaussian,
    pair_signals: npt.NDArray[np.integer],
    pair_coordinates: npt.NDArray[np.integer],
) -> Floats | None:
    """(P,) B x of signal and coordinate at each pair; None where all of them are 0."""
    covariates, coefficients = signals.covariates, gaussian.coefficients
    if covariates is None or coefficients is None:
        return None
    result = np.empty(len(pair_signals))
    for span in spans(len(pair_signals), _PAIRS):
        of = slice(*span)
        left, right = covariates[pair_signals[of]], coefficients[pair_coordinates[of]]
        np.einsum("pg,pg->p", left, right, out=result[of])
    return result


def observed_shifts(signals: Signals, gaussian: Gaussian) -> Floats | None:
    """(nnz,) B x and the known part of each observation; None where all of them are 0."""
    moved = shifts(signals, gaussian, signals.owners, signals.indices)
    if signals.offsets is None:
        return moved
    return signals.offsets if moved is None else moved + signals.offsets


class Regression:
    """What the M-step needs of the signals' covariates.

    Parameters
    ----------
    covariates : (M, G), columns that add up to 0.
    strength : λ > 0, as a number of signals.

    Raises
    ------
    ConfigError
        If the strength is not above 0, or a column does not add up to 0.
    """

    def __init__(self, covariates: Floats, strength: float) -> None:
        near = np.abs(covariates.sum(axis=0)) <= 1e-9 * (1 + np.abs(covariates).sum(axis=0))
        if not strength > 0 or not near.all():
            raise ConfigError("Covariates add up to 0 and have a prior with a weight above 0.")
        self.covariates, self.strength = covariates, strength
        gram = covariates.T @ covariates + strength * np.eye(covariates.shape[1])
        self._root: Floats = scipy.linalg.cholesky(gram, lower=True)

    def coefficients(self, gaussian: Gaussian) -> Floats:
        """B (N, G); 0 before it was first estimated."""
        if gaussian.coefficients is None:
            return np.zeros((gaussian.dimension, self.covariates.shape[1]))
        return gaussian.coefficients

    def step(
        self,
        signals: Signals,
        weights: npt.NDArray[np.floating],
        gaussian: Gaussian,
        team: ThreadPool,
    ) -> tuple[Floats, Floats]:
        """ΔB, and ΔB times a root of H⁻¹, both (N, G), from the dual coefficients a_i."""
        matrix = signals.matrix(weights)
        with team.whole():
            summed = matrix.T @ self.covariates.astype(weights.dtype)
            moment = gaussian.covariance.dot(summed).astype(np.float64)
        moment -= self.strength * self.coefficients(gaussian)
        rooted = scipy.linalg.solve_triangular(self._root, moment.T, lower=True)
        step = scipy.linalg.solve_triangular(self._root, rooted, lower=True, trans="T")
        return np.ascontiguousarray(step.T), np.ascontiguousarray(rooted.T)
