"""The column of times: what decides between repeated ratings, and what is kept as their times.

Any number or date orders ratings. As times of ratings are kept only what can be placed in time:
dates, and numbers that are seconds (or milli-, micro-, nanoseconds) since 1970 or days written
20050906. Numbers that are all below :data:`EARLIEST` may count anything, so they only order. A 0 or
-1 among real times is what programs write for "unknown".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped, unused-ignore]

from gmc_core.base.errors import DataError
from gmc_core.data.rating_times import UNKNOWN_TIME, Times, are_days, day_text, known_mask
from gmc_core.data.readers.scales import BLOCK
from gmc_core.data.readers.sniff import EARLIEST_TIME as EARLIEST
from gmc_core.data.readers.table import Column, Text, line_of_row, numbered_rows, read_table

# Dates as they occur in the EachMovie votes and in files exported by hand;
# ISO 8601 is recognised before these. The month is first with strokes, unless a day above 12
# says otherwise; with points and dashes the day is.
DAYS = (
    *("%m/%d/%y", "%m/%d/%Y", "%d/%m/%y", "%d/%m/%Y", "%Y/%m/%d"),
    *("%d.%m.%y", "%d.%m.%Y", "%d-%m-%y", "%d-%m-%Y"),
)
DATE_FORMATS = tuple(day + time for day in DAYS for time in ("", " %H:%M:%S", " %H:%M"))

# From the years 1 and 9999: what lies beyond is no time, such as the first moment that a
# program's clock can tell, written for "unknown".
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
# (typical size from which numbers are in this unit, units a second).
FIRST_DAY, LAST_DAY = 19000101, 21001231  # of days written as numbers
UNKNOWN_MARKS = (0.0, -1.0)  # what programs write for a time that is not known
UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
SAME = "the times in the file are all the same, so they tell nothing and are not kept"
BLANK = "the column of times has no entries, so no times are known"
NO_UNIT = (
    f"the times in the file are numbers below {EARLIEST:,.0f}, which are no dates; they order "
    "repeated ratings and are not kept"
)


@dataclass(frozen=True, eq=False)
class TimeColumn:
    """A column of times as it was read.

    Attributes
    ----------
    order : (rows,) float64 numbers that rise with time, -infinity where there is none (known
        times are later); None if the column holds no times.
    dates : whether they come from dates, so that they are seconds since 1970.
    note : a sentence on what could not be read; "" if there is nothing to say.
    """

    order: npt.NDArray[np.float64] | None = None
    dates: bool = False
    note: str = ""

    def rows(self, keep: npt.NDArray[np.generic]) -> TimeColumn:
        """Only these rows, given as positions or a mask."""
        if keep.dtype == bool and keep.all():
            return self
        return replace(self, order=None if self.order is None else self.order[keep])


# Called with whether the times decide between repeated ratings: what cannot be read is an
# error only then.
ReadTimes = Callable[[bool], TimeColumn]


def no_times(deciding: bool) -> TimeColumn:
    """For a layout without times."""
    return TimeColumn()


def times_reader(text: Text, index: int) -> ReadTimes:
    """A function that reads the column of times of a known layout, if the copy has one."""

    def read(deciding: bool) -> TimeColumn:
        start = next(numbered_rows(replace(text, data=text.data[:4096])), None)
        if start is None or len(start[1]) <= index:
            return TimeColumn()  # a copy without the column of times
        try:
            column = read_table(text, [Column(index, "time", "any")]).columns["time"]
        except DataError as error:
            if deciding:
                raise
            return TimeColumn(note=f"the times cannot be read and are not kept: {error}")
        found = as_times(column)
        if found.order is not None or found.note:
            return found
        return TimeColumn(note=no_times_note(column, text, deciding))

    return read


def as_times(column: pa.ChunkedArray) -> TimeColumn:
    """Numbers or dates (blank: -infinity); without an order if they are neither."""
    kind = column.type
    dates = False
    if column.null_count == len(column):
        return TimeColumn(note=BLANK)
    if pa.types.is_string(kind):
        column = _parse_dates(column)
        if column is None:
            return TimeColumn()
        kind = column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
        dates = True
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return TimeColumn()
    values = column.cast(pa.float64(), safe=False).fill_null(-np.inf).to_numpy()
    return TimeColumn(np.asarray(values, dtype=np.float64), dates)


def seconds(found: TimeColumn) -> tuple[Times | None, str]:
    """Times as ``Ratings.times`` has them, and a sentence on them for the report.

    found : of the ratings that are kept, one row each. A time beyond the years 1..9999, an
        infinite one and NaN are unknown.
    """
    order = found.order
    if order is None:
        return None, found.note
    marks = np.isin(order, UNKNOWN_MARKS)
    if np.any(np.abs(order[np.isfinite(order) & ~marks]) >= FIRST_DAY):
        order = np.where(marks, -np.inf, order)
    else:
        marks = np.zeros(len(order), dtype=bool)
    finite = np.isfinite(order)
    numbers = order if finite.all() else order[finite]
    if not len(numbers):
        return None, found.note or BLANK
    if numbers.min() == numbers.max() and len(order) > 1:
        return None, SAME
    scaled, how = (order, "") if found.dates else _scaled(order, numbers)
    if scaled is None:
        return None, NO_UNIT
    times = np.full(len(scaled), UNKNOWN_TIME, dtype=np.int64)
    for start in range(0, len(scaled), BLOCK):
        some = scaled[start : start + BLOCK]
        with np.errstate(invalid="ignore"):
            inside = (some >= FIRST_SECOND) & (some <= LAST_SECOND)  # NaN is not
        times[start : start + BLOCK][inside] = np.floor(some[inside]).astype(np.int64)
    known = known_mask(times)
    if not known.any():
        return None, "no time in the file lies in the years 1 to 9999; none is kept"
    unknown = len(times) - int(known.sum())
    first = times.min(where=known, initial=LAST_SECOND)
    return times, (
        f"times from {day_text(first)} to {day_text(times.max())} (UTC){how}"
        + (", days without hours" if are_days(times) else "")
        + (f"; {unknown:,} ratings have none" if unknown else "")
        + (f" ({int(marks.sum()):,} of them 0 or -1 in the file)" if marks.any() else "")
    )


def _scaled(
    order: npt.NDArray[np.float64], numbers: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64] | None, str]:
    """Numbers as seconds since 1970, with what they were; None if that is not to be told.

    numbers : those of ``order`` that are finite.
    """
    if numbers.max() < EARLIEST:
        days = _written_days(order, numbers)
        return days, ", written as YYYYMMDD" if days is not None else ""
    if max(numbers.max(), -numbers.min()) < UNITS[-1][0]:
        return order, ""  # and so is the typical size
    typical = float(np.median(np.abs(numbers)))
    for least, unit in UNITS:
        if typical >= least:
            return order / unit, f", from numbers of 1/{unit:,.0f} s"
    return order, ""


def _written_days(
    order: npt.NDArray[np.float64], numbers: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64] | None:
    """Midnights of days written as numbers such as 20050906; None if one is no such day."""
    if numbers.min() < FIRST_DAY or numbers.max() > LAST_DAY or np.any(numbers % 1):
        return None
    distinct, codes = np.unique(numbers.astype(np.int64), return_inverse=True)
    texts = [f"{day // 10000:04}-{day // 100 % 100:02}-{day % 100:02}" for day in distinct.tolist()]
    try:
        midnights = np.array(texts, dtype="datetime64[s]").astype(np.int64)
    except ValueError:
        return None
    days = np.full(len(order), -np.inf)
    days[np.isfinite(order)] = midnights[codes]
    return days


def _parse_dates(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    blank = pc.equal(pc.utf8_trim_whitespace(column), "")
    filled = pc.if_else(blank, pa.scalar(None, pa.string()), column)
    for pattern in DATE_FORMATS:
        try:
            return pc.strptime(filled, format=pattern, unit="s")
        except pa.ArrowInvalid:
            continue
    return None


def first_no_time(column: pa.ChunkedArray) -> tuple[int, str]:
    """Row and text of the first entry that is no time as most others are.

    column : one for which :func:`as_times` finds no order.
    """
    if not pa.types.is_string(column.type):
        return 0, str(column[0].as_py())
    texts = pc.utf8_trim_whitespace(column)
    tried = [
        pc.is_null(pc.strptime(texts, format=pattern, unit="s", error_is_null=True))
        for pattern in (*DATE_FORMATS, "%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")
    ]
    number = r"^[+-]?\d+(\.\d*)?$"
    tried.append(pc.invert(pc.match_substring_regex(texts, number)))
    wrong = min(tried, key=lambda failed: pc.sum(failed).as_py())
    rows = np.flatnonzero(pc.and_(wrong, pc.not_equal(texts, "")).to_numpy())
    row = int(rows[0]) if len(rows) else 0
    return row, str(column[row].as_py())


def no_times_note(column: pa.ChunkedArray, text: Text, deciding: bool) -> str:
    """Why no times are kept of a column for which :func:`as_times` finds no order.

    text : that it is a column of. deciding : whether the times were to decide between repeated
        ratings.
    """
    row, value = first_no_time(column)
    return (
        f"the timestamp {value!r} (line {line_of_row(text, row)}) is neither a number nor a date "
        "as the others are, so "
        + (
            "the position in the file decided between repeated ratings"
            if deciding
            else "no times are kept"
        )
    )
