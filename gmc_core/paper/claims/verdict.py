"""Verdicts, and the rules by which they are made: nobody writes one by hand.

A rule sees only a 95 % interval and a margin. What lies on one side of the margin as a
whole is decided; what straddles it is not resolved. Fewer than three values give no useful
interval; their range is shown instead, and is called a range.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gmc_core.base.signs import signed
from gmc_core.protocol.metrics import PairedDifference, mean_with_interval

Word = Literal["holds", "does not hold", "not resolved", "not measured"]
WORDS: tuple[Word, ...] = ("holds", "does not hold", "not resolved", "not measured")

# The largest difference of NMAE that the paper itself calls marginal (section 3.3).
MARGIN = 0.005
# Student's interval is made of at least so many values: of two it would be 12.7 times as wide as
# they lie apart.
FEWEST = 3


@dataclass(frozen=True)
class Line:
    """One figure behind a verdict: what it is of, its value, and its 95 % interval.

    low, high : None where the figure is exact, or has no interval.
    unit : as :attr:`Verdict.unit`.
    range_of : 0, or the number of values that low and high are the smallest and the largest
        of, which is no 95 % interval.
    """

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    unit: str = "NMAE"
    range_of: int = 0

    @classmethod
    def of(cls, label: str, difference: PairedDifference) -> Line:
        """A paired difference under a label."""
        return cls(label, difference.mean, difference.low, difference.high)

    @classmethod
    def over_splits(cls, label: str, values: npt.ArrayLike, unit: str) -> Line:
        """The mean of a figure over splits, with Student's 95 % interval from three on; two
        have a range, one has neither."""
        own = np.asarray(values, dtype=np.float64)
        if len(own) >= FEWEST:
            found = mean_with_interval(own)
            return cls(label, found.mean, found.low, found.high, unit)
        if len(own) == 1:
            return cls(label, float(own[0]), unit=unit)
        ends = float(own.min()), float(own.max())
        return cls(label, float(own.mean()), *ends, unit, range_of=len(own))

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high); an exact figure is an interval of length 0."""
        low = self.value if self.low is None else self.low
        high = self.value if self.high is None else self.high
        return low, high


@dataclass(frozen=True)
class Verdict:
    """What the measurement says of a claim.

    verdict : one of ``WORDS``.
    sentence : what was found, for people.
    unit : of value, low and high: "NMAE" (a difference), "times", "%", "GFLOP", or what
        is counted.
    value, low, high, range_of : of the figure that decided, see :class:`Line`; None where
        there is none.
    lines : all figures behind it.
    runs : ids of the runs that they come from. comparison : id of the comparison.
    """

    verdict: Word
    sentence: str
    unit: str = "NMAE"
    value: float | None = None
    low: float | None = None
    high: float | None = None
    lines: tuple[Line, ...] = ()
    runs: tuple[str, ...] = ()
    comparison: str = ""
    range_of: int = 0

    @classmethod
    def by(
        cls,
        deciding: Line,
        verdict: Word,
        sentence: str,
        lines: Iterable[Line],
        runs: tuple[str, ...] = (),
        comparison: str = "",
    ) -> Verdict:
        """A verdict that one of its ``lines`` has decided."""
        low, high = deciding.low, deciding.high
        return cls(
            verdict, sentence, deciding.unit, deciding.value, low, high, tuple(lines), runs,
            comparison, deciding.range_of,
        )  # fmt: skip

    @property
    def figure(self) -> str:
        """The figure that decided, with its unit; "" without one."""
        return "" if self.value is None else f"{number(self.value, self.unit)} {self.unit}"

    @property
    def interval(self) -> str:
        """The 95 % interval, or the range with its name; "" without one."""
        return interval_text(self.low, self.high, self.unit, self.range_of)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


# Units of figures that are counted.
COUNTED = ("falls", "steps", "breakdowns", "fits")


def number(value: float, unit: str) -> str:
    """A figure in its unit for people; differences of NMAE have a sign."""
    if math.isnan(value):
        return "–"
    if unit == "NMAE":
        return signed(value, 4)
    if unit in COUNTED:
        return f"{value:g}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def interval_text(low: float | None, high: float | None, unit: str, range_of: int = 0) -> str:
    """An interval in its unit for people, a range with its name; "" without either."""
    if low is None or high is None:
        return ""
    if range_of:
        return f"range of {range_of}: {number(low, unit)} to {number(high, unit)}"
    return f"[{number(low, unit)}, {number(high, unit)}]"


# Rules ---------------------------------------------------------------------------------


def within(line: Line, margin: float = MARGIN) -> Word:
    """Whether |figure| ≤ margin: two settings differ by no more than that."""
    low, high = line.interval
    if -margin <= low and high <= margin:
        return "holds"
    return "does not hold" if low > margin or high < -margin else "not resolved"


def at_most(line: Line, margin: float = MARGIN) -> Word:
    """Whether figure ≤ margin: a gain or a gap is no more than that."""
    low, high = line.interval
    if high <= margin:
        return "holds"
    return "does not hold" if low > margin else "not resolved"


def above(line: Line, bound: float = 0.0) -> Word:
    """Whether figure > bound: one setting is worse than another."""
    low, high = line.interval
    if low > bound:
        return "holds"
    return "does not hold" if high < bound else "not resolved"


def all_of(words: Iterable[Word]) -> Word:
    """Of several conditions: one that fails decides, then one that is not resolved.

    Raises
    ------
    ValueError
        If there are none.
    """
    found = list(words)
    if not found:
        raise ValueError("A verdict needs at least one condition.")
    for word in ("does not hold", "not measured", "not resolved"):
        if word in found:
            return word  # type: ignore[return-value]
    return "holds"
