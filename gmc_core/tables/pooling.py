"""Rubin's rules: one estimate with its error from several completed tables.

D. B. Rubin, Multiple Imputation for Nonresponse in Surveys (1987), chapter 3; the degrees
of freedom for small tables are those of Barnard and Rubin (Biometrika 86, 1999).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gmc_core.base.errors import ConfigError
from gmc_core.base.quantiles import student_quantile


@dataclass(frozen=True)
class Pooled:
    """An estimate over several completed tables.

    estimate : the mean of the tables' estimates.
    within, between : the mean of their variances, and the variance of their estimates.
    degrees : degrees of freedom of Student's t.
    missing : share of the variance that is due to the missing entries.
    """

    estimate: float
    within: float
    between: float
    degrees: float
    missing: float
    tables: int

    @property
    def sd(self) -> float:
        """Standard error of the estimate: √(within + (1 + 1/m) between)."""
        return math.sqrt(self.within + (1 + 1 / self.tables) * self.between)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The interval that holds the true value with this probability."""
        reach = student_quantile(0.5 + level / 2, self.degrees) * self.sd
        return self.estimate - reach, self.estimate + reach


def pool(
    estimates: Sequence[float], variances: Sequence[float], *, degrees: float = math.inf
) -> Pooled:
    """Pool the same estimate of m completed tables.

    Parameters
    ----------
    estimates, variances : (m,) each table's estimate, and the square of its standard
        error.
    degrees : degrees of freedom that the estimate would have without missing entries
        (n - 1 for a mean, n - k for a regression); infinite for many rows.

    Raises
    ------
    ConfigError
        For fewer than two tables, other lengths, or variances that are none.
    """
    found, own = np.asarray(estimates, np.float64), np.asarray(variances, np.float64)
    if found.ndim != 1 or found.shape != own.shape or len(found) < 2:
        raise ConfigError("Give one estimate and one variance of each of at least two tables.")
    if not (np.isfinite(found).all() and np.isfinite(own).all() and (own >= 0).all()):
        raise ConfigError("Estimates are finite numbers, and variances at least 0.")
    if not degrees > 0:
        raise ConfigError(f"The degrees of freedom are above 0, not {degrees}.")
    tables = len(found)
    within, between = float(own.mean()), float(found.var(ddof=1))
    apart = (1 + 1 / tables) * between
    missing = apart / (within + apart) if apart > 0 else 0.0
    many = (tables - 1) / missing**2 if missing > 0 else math.inf
    complete = (degrees + 1) / (degrees + 3) * degrees if math.isfinite(degrees) else math.inf
    complete *= 1 - missing
    if (
        math.isfinite(complete) and complete > 0
    ):  # else all of the error is that of the missing entries
        many = 1 / (1 / many + 1 / complete)
    return Pooled(float(found.mean()), within, between, many, missing, tables)
