"""Limits of a table's columns: fills that keep to them, and draws from the truncated Gaussian.

An amount is not below 0, a share not above 1; a Gaussian knows neither. Filled means are
moved to the nearest limit; draws come from the joint posterior cut off at the limits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg
from scipy.special import log_ndtr, ndtri_exp

from gmc_core.base.errors import ConfigError
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.model.completion import Floats
from gmc_core.tables.table_model import TableModel

# A row's blanks are drawn together until all lie between the limits, at most DRAWS times more
# (rejection sampling, exact). Where none of the draws does, they are drawn one by one in SWEEPS
# rounds (Gibbs sampling, exact in the limit of many rounds).
DRAWS, SWEEPS = 20, 50


@dataclass(frozen=True, eq=False)
class Bounds:
    """low, high : (columns,) of the table, in its units; infinite where there is none."""

    low: Floats
    high: Floats

    def __post_init__(self) -> None:
        if np.isnan(self.low).any() or np.isnan(self.high).any():
            raise ConfigError("A limit is a number, or infinite where there is none, not NaN.")
        wrong = np.flatnonzero(self.low > self.high)
        if len(wrong):
            at = int(wrong[0])
            raise ConfigError(
                f"In column {at + 1} the lower limit {self.low[at]:g} is above the upper one, "
                f"{self.high[at]:g}; exchange them."
            )

    @property
    def limited(self) -> npt.NDArray[np.bool_]:
        """(columns,) which have a limit."""
        return np.isfinite(self.low) | np.isfinite(self.high)

    def clip(self, filled: Floats, given: npt.NDArray[np.bool_]) -> tuple[Floats, int]:
        """Filled entries moved to their nearest limit, and how many were; given ones stay.

        filled, given : (rows, columns).
        """
        moved = np.clip(filled, self.low, self.high)
        outside = ~given & ~np.isnan(filled) & (moved != filled)
        return np.where(outside, moved, filled), int(outside.sum())


def draw_within(
    model: TableModel, values: Floats, bounds: Bounds, rng: np.random.Generator, team: ThreadPool
) -> Floats:
    """A table whose blanks are drawn from their joint posterior, cut off at the limits.

    values : (rows, columns) with NaN where blank. Given entries stay, also beyond a limit.
    """
    given = ~np.isnan(values)
    result = model.sample_blanks(values, rng, team)
    # Constant and empty columns have one value only.
    fixed = np.ones(values.shape[1], bool)
    fixed[model.standards.informative] = False
    result[:, fixed] = bounds.clip(result, given)[0][:, fixed]
    rows = _outside(result, given, bounds)
    for _ in range(DRAWS):
        if not len(rows):
            return result
        again = model.sample_blanks(values[rows], rng, team)
        again[:, fixed] = result[np.ix_(rows, fixed)]
        result[rows] = again
        rows = rows[_outside(again, given[rows], bounds)]
    if len(rows):
        _sweep_rows(model, result, given, rows, bounds, rng)
    return result


def _outside(table: Floats, given: npt.NDArray[np.bool_], bounds: Bounds) -> npt.NDArray[np.int64]:
    """Rows with a filled entry beyond a limit."""
    beyond = ~given & ((table < bounds.low) | (table > bounds.high))
    return np.flatnonzero(beyond.any(axis=1))


def _sweep_rows(
    model: TableModel,
    table: Floats,
    given: npt.NDArray[np.bool_],
    rows: npt.NDArray[np.int64],
    bounds: Bounds,
    rng: np.random.Generator,
) -> None:
    """Gibbs sampling of the blanks of some rows, in place, in standardised units."""
    standards = model.standards
    own, scales = standards.informative, standards.scales[standards.informative]
    every = np.arange(len(own))
    sigma = model.gaussian.covariance.submatrix(every, every).astype(np.float64)
    sigma[every, every] += model.noise.variances(every)
    mean = model.gaussian.mean.astype(np.float64)
    low = (bounds.low[own] - standards.means[own]) / scales
    high = (bounds.high[own] - standards.means[own]) / scales
    standard = standards.apply(table)
    for row in rows.tolist():
        known = given[row, own]
        blank = np.flatnonzero(~known)
        centre, precision = _posterior(sigma, mean, standard[row], known)
        values = np.clip(standard[row, blank], low[blank], high[blank])
        for _ in range(SWEEPS):
            for at, column in enumerate(blank.tolist()):
                away = precision[at] @ (values - centre) - precision[at, at] * (
                    values[at] - centre[at]
                )
                spread = 1.0 / np.sqrt(precision[at, at])
                values[at] = truncated_normal(
                    centre[at] - away * spread**2, spread, low[column], high[column], rng
                )
        columns = own[blank]
        drawn = values * scales[blank] + standards.means[columns]
        table[row, columns] = np.clip(drawn, bounds.low[columns], bounds.high[columns])


def _posterior(
    sigma: Floats, mean: Floats, row: Floats, known: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Mean and precision of a row's blanks given the rest.

    sigma : (columns, columns) of an observation, noise included.
    """
    inner = sigma[np.ix_(~known, ~known)]
    centre = mean[~known]
    if known.any():
        cross = sigma[np.ix_(known, ~known)]
        factor = scipy.linalg.cho_factor(sigma[np.ix_(known, known)])
        shares = scipy.linalg.cho_solve(factor, cross)
        inner = inner - cross.T @ shares
        centre = centre + (row[known] - mean[known]) @ shares
    precision = scipy.linalg.cho_solve(scipy.linalg.cho_factor(inner), np.eye(len(inner)))
    return centre, precision


def truncated_normal(
    mean: float, sd: float, low: float, high: float, rng: np.random.Generator
) -> float:
    """One draw of N(mean, sd²) between two limits, by its quantiles, in logarithms.

    So it holds far out in a tail too.
    """
    left, right = (low - mean) / sd, (high - mean) / sd
    sign = 1.0
    if left > 0:  # mirrored: log_ndtr is precise in the lower tail only
        left, right, sign = -right, -left, -1.0
    share = rng.random()
    with np.errstate(divide="ignore"):
        height = np.logaddexp(log_ndtr(left) + np.log1p(-share), log_ndtr(right) + np.log(share))
    drawn = mean + sign * sd * float(ndtri_exp(height))
    return float(min(max(drawn, low), high))
