"""The model's parameters (μ, Σ)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gmc_core.covariance import Covariance


@dataclass(frozen=True, eq=False)
class Gaussian:
    """N(μ, Σ), from which the paper's equation (3) draws every signal.

    mean : (N,) float64. covariance : N × N in the working precision.
    """

    mean: npt.NDArray[np.float64]
    covariance: Covariance

    @property
    def dimension(self) -> int:
        """N."""
        return len(self.mean)
