"""What each iteration of a fit has reached."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class IterationRecord:
    """What one iteration has reached; figures are None where there is no hold-out.

    iteration : t, from 1.
    nmae, nmae_se, mae, rmse, nmae_unprojected : see :class:`gmc_core.protocol.metrics.Scores`.
    log_likelihood, map_objective, penalised_objective, covariance_change : see
        :class:`gmc_core.gaussian.em.EmStep`.
    prediction_change : largest change of a held-out prediction since the iteration
        before (from the initial value at t = 1), in ratings.
    noise : mean noise variance in use.
    e_seconds, m_seconds, evaluation_seconds : wall time.
    """

    iteration: int
    nmae: float | None
    nmae_se: float | None
    mae: float | None
    rmse: float | None
    nmae_unprojected: float | None
    log_likelihood: float
    map_objective: float | None
    penalised_objective: float | None
    covariance_change: float | None
    prediction_change: float | None
    noise: float
    e_seconds: float
    m_seconds: float
    evaluation_seconds: float

    @property
    def seconds(self) -> float:
        """Wall time of the whole iteration."""
        return self.e_seconds + self.m_seconds + self.evaluation_seconds

    def as_dict(self) -> dict[str, Any]:
        """For JSON and tables."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> IterationRecord:
        """Read what :meth:`as_dict` wrote."""
        return cls(**values)
