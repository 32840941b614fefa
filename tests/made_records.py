"""Made-up records of iterations."""

from __future__ import annotations

from gmc_core.fitting.fit import IterationRecord


def record(iteration, nmae=0.5, **values):
    defaults = {
        "iteration": iteration,
        "nmae": nmae,
        "nmae_se": 0.01,
        "mae": 0.8,
        "rmse": 1.0,
        "nmae_unprojected": 0.5,
        "log_likelihood": -1000.0 + iteration,
        "map_objective": None,
        "penalised_objective": None,
        "covariance_change": None if iteration == 1 else 0.1 / iteration,
        "prediction_change": 1.0 / iteration,
        "noise": 0.0,
        "e_seconds": 2.0,
        "m_seconds": 1.0,
        "evaluation_seconds": 0.5,
    }
    return IterationRecord(**{**defaults, **values})
