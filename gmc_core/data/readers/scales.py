"""The rating scale: found from the values, or checked against them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import DataError
from gmc_core.data.ratings import RatingScale

STARS = RatingScale(1, 5, 1)
HALF_STARS = RatingScale(0.5, 5, 0.5)

# Steps that rating scales use in practice. A coarser step than 1 is believed
# only where a step of 1 would give too many levels: of a handful of ratings
# 1, 3 and 5 the scale is 1..5, not "every second".
FINE_STEPS = (1.0, 0.5, 0.25, 0.2, 0.1, 0.05, 0.01)
COARSE_STEPS = (50.0, 25.0, 20.0, 10.0, 5.0, 2.0)
MAX_LEVELS = 51
TOLERANCE = 1e-6
# Beyond it whole numbers are not exact, and squares leave the range of float32.
LARGEST = 1e15
BLOCK = 1 << 20  # values at once: what is computed of them takes more memory than they do


def find_scale(values: npt.NDArray[np.float64]) -> tuple[RatingScale, str]:
    """The scale that the ratings seem to have, and how it was found, in words.

    Whole numbers from 1 whose largest is 5 are taken as stars, multiples of a
    half whose largest is 5 as half stars, even if not every level occurs.
    """
    distinct = np.unique(values)
    low, high = float(distinct[0]), float(distinct[-1])
    if high == 5 and low >= 1 and _fits(distinct, 0, 1):
        return STARS, "found: whole stars up to 5"
    if high == 5 and low >= 0.5 and _fits(distinct, 0, 0.5):
        return HALF_STARS, "found: half stars up to 5"
    if low == high:
        return RatingScale(low, high, 1), f"found: all ratings equal {low:g}"
    step = find_step(distinct)
    how = f"found: lowest and highest of {len(distinct):,} distinct values"
    return RatingScale(low, high, step), how


def find_step(distinct: npt.NDArray[np.float64]) -> float | None:
    """The largest usual step that all values, from the lowest, are multiples of.

    None (continuous) if there is none, or it would give more than 51 levels.
    """
    low = float(distinct[0])
    span = float(distinct[-1]) - low
    for step in FINE_STEPS:
        # Values that differ by less than half a step fit it within the tolerance, by accident.
        if span > step / 2 and _fits(distinct, low, step):
            if span / step + 1 <= MAX_LEVELS:
                return step
            if step == 1.0:
                return _coarse(distinct, low, span)
            return None
    return None


def _coarse(distinct: npt.NDArray[np.float64], low: float, span: float) -> float | None:
    for step in COARSE_STEPS:
        if _fits(distinct, low, step) and span / step + 1 <= MAX_LEVELS:
            return step
    return None


def _fits(values: npt.NDArray[np.float64], low: float, step: float) -> bool:
    steps = (values - low) / step
    return bool(np.all(np.abs(steps - np.round(steps)) < TOLERANCE))


def first_off_scale(values: npt.NDArray[np.float64], scale: RatingScale) -> int | None:
    """The row of the first value that the scale does not have, None if all fit."""
    for start in range(0, len(values), BLOCK):
        some = values[start : start + BLOCK]
        bad = (some < scale.low - TOLERANCE) | (some > scale.high + TOLERANCE)
        if scale.step is not None:
            steps = (some - scale.low) / scale.step
            bad |= np.abs(steps - np.round(steps)) > TOLERANCE
        if bad.any():
            return start + int(np.argmax(bad))
    return None


def off_scale_error(value: float, scale: RatingScale, path: str, line: int) -> DataError:
    """The error for a value that the scale does not have."""
    return DataError(
        f"The rating is not on the scale {scale}. Correct the line, or read the file as "
        "'delimited' and give its scale.",
        path=path,
        line=line,
        value=f"{value:g}",
    )
