"""Folding in: the E-step for new signals, which leaves the model as it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gmc_core.base.errors import NotPositiveDefiniteError
from gmc_core.gaussian.covariance import FactoredCovariance
from gmc_core.gaussian.estep import e_step
from gmc_core.gaussian.factor import believe
from gmc_core.gaussian.inverses import inverting_e_step
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.ordinal import LatentResponses, OrdinalScale
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.signals import Signals


def fold_in(
    signals: Signals,
    gaussian: Gaussian,
    noise: Noise,
    team: ThreadPool,
    ordinal: OrdinalScale | None = None,
) -> npt.NDArray[np.floating]:
    """(nnz,) the dual coefficients a_i of ``signals``: one E-step, for ordered ratings with the
    latent responses behind them.

    Raises
    ------
    NumericalError, Cancelled
        As :func:`gmc_core.gaussian.estep.e_step`.
    """
    if ordinal is None:
        return e_step(signals, gaussian, noise, team).weights
    return fold_in_latent(signals, gaussian, noise, team, ordinal)[0]


def fold_in_latent(
    signals: Signals, gaussian: Gaussian, noise: Noise, team: ThreadPool, ordinal: OrdinalScale
) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.float64]]:
    """(nnz,) dual coefficients and (nnz,) latent responses of signals of ordered ratings; a first
    guess at the responses where Σ is a factor, as before the first iteration.

    Raises
    ------
    NumericalError, Cancelled
        As :func:`gmc_core.gaussian.estep.e_step`.
    """
    latent = LatentResponses(ordinal, signals.values)
    values = latent.first_guess
    covariance = gaussian.covariance
    if isinstance(covariance, FactoredCovariance):
        if covariance.initial:
            guess = replace(signals, values=values)
            return e_step(guess, gaussian, noise, team).weights, values
        return believe(signals, gaussian, noise, team, latent, values)[0].weights, values
    found = inverting_e_step(signals, gaussian, noise, team, latent=latent, values=values)
    return found.weights, values


def observed_factor(
    gaussian: Gaussian,
    noise: Noise,
    observed: npt.NDArray[np.integer],
    times: npt.NDArray[np.float64] | None = None,
) -> npt.NDArray[np.float64]:
    """(n, n) lower Cholesky factor L of K = Σ[o, o] + Σ_w[o, o] of one signal, in float64.

    With it K⁻¹ r is two triangular solves, and L⁻¹ Σ[o, :] gives variances too. The compiled
    solves of the E-step have one right-hand side a signal and the working precision.

    times : (n,) of the observations, see :meth:`gmc_core.gaussian.noise.Noise.submatrix`.

    Raises
    ------
    NumericalError
        If the covariance of the observations is singular.
    """
    kernel = gaussian.covariance.submatrix(observed, observed) + noise.submatrix(observed, times)
    try:
        return np.asarray(scipy.linalg.cholesky(kernel, lower=True, overwrite_a=True))
    except np.linalg.LinAlgError:
        raise NotPositiveDefiniteError(
            "The covariance of these ratings is singular under this model; fit with a larger ε."
        ) from None


def explained(
    gaussian: Gaussian,
    noise: Noise,
    observed: npt.NDArray[np.integer],
    cross: npt.NDArray[np.float64],
    times: npt.NDArray[np.float64] | None = None,
) -> npt.NDArray[np.float64]:
    """(C,) diagonal of Σ[c, o] (Σ[o, o] + Σ_w)⁻¹ Σ[o, c]: the variance that o explains.

    observed : (n,) coordinates o. cross : Σ[o, c] (n, C), overwritten; with the noise that c
        shares with o where that is to be explained too.
    times : (n,) of the observations, see :func:`observed_factor`.

    Raises
    ------
    NumericalError
        As :func:`observed_factor`.
    """
    factor = observed_factor(gaussian, noise, observed, times)
    whitened = scipy.linalg.solve_triangular(factor, cross, lower=True, overwrite_b=True)
    return np.asarray(np.einsum("ij,ij->j", whitened, whitened))
