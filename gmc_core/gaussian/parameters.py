"""The model's parameters: (μ, Σ), and B where signals have covariates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gmc_core.gaussian.covariance import Covariance


@dataclass(frozen=True, eq=False)
class Gaussian:
    """N(μ, Σ), from which the paper's equation (3) draws every signal.

    mean : (N,) float64. covariance : N × N in the working precision.
    coefficients : B (N, G) float64 where a signal with covariates x has the mean
        μ + B x, see :mod:`gmc_core.gaussian.covariates`; None where there are none.
    """

    mean: npt.NDArray[np.float64]
    covariance: Covariance
    coefficients: npt.NDArray[np.float64] | None = None

    @property
    def dimension(self) -> int:
        """N."""
        return len(self.mean)
