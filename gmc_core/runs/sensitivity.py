"""The sensitivity curve of NMAE over ε, from the results of a sweep.

The table has one line per fit: columns ``epsilon``, ``iterations``, ``seed``,
``nmae`` and ``nmae_se``. A cell is a pair (ε, L); its NMAE is the mean over seeds.

Two fits with the same seed predict the same test ratings, so the difference of two
cells is far better known than either NMAE. With two seeds or more in common, its
standard error is taken over the seeds' paired differences:

    d_s = NMAE(cell, s) - NMAE(best, s),    SE = sd(d_s) / √S.

With fewer, the standard error of the best cell over its test ratings stands in,
which is too large, since it ignores the pairing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from gmc_core import former
from gmc_core.base.errors import DataError

COLUMNS = ("epsilon", "iterations", "seed", "nmae", "nmae_se")

Method = Literal["paired", "pooled"]


@dataclass(frozen=True)
class Cell:
    """One pair (ε, L) of a sweep.

    epsilon, iterations : ε and L.
    seeds : number of finished fits.
    nmae : mean over the seeds.
    se : its standard error: over seeds from two on, else over the test ratings;
        NaN where there is neither.
    gap : mean difference to the best cell over the seeds in common; 0 for the best.
    gap_se : standard error of ``gap``, see the module.
    method : how ``gap_se`` was computed.
    each : NMAE of each seed, by rising seed.
    """

    epsilon: float
    iterations: int
    seeds: int
    nmae: float
    se: float
    gap: float
    gap_se: float
    method: Method
    each: tuple[float, ...] = ()

    @property
    def within(self) -> bool:
        """Whether the cell is within one standard error of the best."""
        return self.gap <= 0 or self.gap <= self.gap_se


@dataclass(frozen=True)
class SensitivityCurve:
    """The best cell, and the interval of ε around it, at the best cell's L.

    cells : all cells, ordered by L, then ε.
    best : the cell with the smallest NMAE of those with the most seeds.
    low, high : the smallest and largest ε of the grid that can be reached from the
        best ε through cells within one standard error of it.
    open_low, open_high : whether that end is the end of the grid, so that the
        interval may go on beyond it.
    worst : the cell with the largest NMAE at the best cell's L.
    """

    cells: tuple[Cell, ...]
    best: Cell
    low: float
    high: float
    open_low: bool
    open_high: bool
    worst: Cell

    @property
    def decades(self) -> float:
        """Width of the interval, log10(high / low); 0 for a single value."""
        return math.log10(self.high / self.low)

    @property
    def spread(self) -> float:
        """NMAE of the worst ε of the grid minus that of the best, at the best L."""
        return self.worst.nmae - self.best.nmae

    @property
    def relative_spread(self) -> float:
        """``spread`` as a share of the best NMAE."""
        return self.spread / self.best.nmae

    @property
    def flat(self) -> bool:
        """Whether every ε of the grid is within one standard error of the best."""
        return all(cell.within for cell in self.at(self.best.iterations))

    def at(self, iterations: int) -> tuple[Cell, ...]:
        """The cells with this L, by ε."""
        return tuple(cell for cell in self.cells if cell.iterations == iterations)

    def find(self, epsilon: float, iterations: int | None = None) -> Cell | None:
        """The cell with this ε (to 1 %) and L (default the best one's), if any."""
        wanted = self.best.iterations if iterations is None else iterations
        for cell in self.at(wanted):
            if abs(math.log(cell.epsilon / epsilon)) < 0.01:
                return cell
        return None


def sensitivity_curve(results: pd.DataFrame) -> SensitivityCurve | None:
    """The sensitivity curve of a sweep, finished or not.

    Parameters
    ----------
    results : one line per fit, see the module; lines without NMAE are not finished
        and left out.

    Returns
    -------
    None while no fit has a result.

    Raises
    ------
    DataError
        If a column is missing, an ε is not positive, or a fit occurs twice.
    """
    table = _checked(results)
    if table.empty:
        return None
    pairs = {(int(t), float(e)) for t, e in zip(table.iterations, table.epsilon, strict=True)}
    groups = {(t, e): table[(table["iterations"] == t) & (table["epsilon"] == e)] for t, e in pairs}
    most = max(len(group) for group in groups.values())
    complete = {key: group for key, group in groups.items() if len(group) == most}
    best_key = min(complete, key=lambda key: (float(complete[key]["nmae"].mean()), key))
    cells = tuple(_cell(key, groups[key], groups[best_key]) for key in sorted(groups))
    best = next(c for c in cells if (c.iterations, c.epsilon) == best_key)
    line = [cell for cell in cells if cell.iterations == best.iterations]
    first = last = line.index(best)
    while first > 0 and line[first - 1].within:
        first -= 1
    while last < len(line) - 1 and line[last + 1].within:
        last += 1
    return SensitivityCurve(
        cells=cells,
        best=best,
        low=line[first].epsilon,
        high=line[last].epsilon,
        open_low=first == 0,
        open_high=last == len(line) - 1,
        worst=max(line, key=lambda cell: cell.nmae),
    )


def _checked(results: pd.DataFrame) -> pd.DataFrame:
    """The finished lines, after checking the columns and values."""
    missing = [name for name in COLUMNS if name not in results]
    if missing:
        raise DataError(f"The sweep's results lack the columns {', '.join(missing)}.")
    table = results.loc[:, list(COLUMNS)].dropna(subset=["nmae"])
    if (table["epsilon"] <= 0).any():
        raise DataError("A sweep over ε on a log scale needs every ε above 0.")
    if table.duplicated(["epsilon", "iterations", "seed"]).any():
        raise DataError("A fit occurs twice in the sweep's results; keep one of each.")
    return table


def _cell(key: tuple[int, float], group: pd.DataFrame, best: pd.DataFrame) -> Cell:
    own, other = group.set_index("seed"), best.set_index("seed")
    difference = (own["nmae"] - other["nmae"]).dropna().to_numpy(dtype=np.float64)
    method: Method = "paired" if len(difference) > 1 else "pooled"
    if len(difference):
        gap = float(difference.mean())
    else:
        gap = float(own["nmae"].mean() - other["nmae"].mean())
    return Cell(
        epsilon=key[1],
        iterations=key[0],
        seeds=len(group),
        nmae=float(own["nmae"].mean()),
        se=_standard_error(group),
        gap=gap,
        gap_se=_mean_error(difference) if method == "paired" else _standard_error(best),
        method=method,
        each=tuple(group.sort_values("seed")["nmae"].tolist()),
    )


def _standard_error(group: pd.DataFrame) -> float:
    """Of the mean NMAE of a cell."""
    if len(group) > 1:
        return _mean_error(group["nmae"].to_numpy(dtype=np.float64))
    value = group["nmae_se"].iloc[0]
    return float("nan") if pd.isna(value) else float(value)


def _mean_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))


__getattr__ = former.renamed(__name__, Valley="SensitivityCurve", valley="sensitivity_curve")
