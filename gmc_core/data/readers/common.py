"""Steps that the formats with fixed columns share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped, unused-ignore]

from gmc_core.base.errors import DataError
from gmc_core.data.ratings import RatingScale
from gmc_core.data.readers.scales import first_off_scale, off_scale_error
from gmc_core.data.readers.source import Member, Source
from gmc_core.data.readers.table import Column, Text, line_of_row, numbered_rows, read_table

# Dates as they occur in the EachMovie votes and in files exported by hand;
# ISO 8601 is recognised before these. The month is first with strokes, unless a day above 12
# says otherwise; with points and dashes the day is.
DAYS = (
    *("%m/%d/%y", "%m/%d/%Y", "%d/%m/%y", "%d/%m/%Y", "%Y/%m/%d"),
    *("%d.%m.%y", "%d.%m.%Y", "%d-%m-%y", "%d-%m-%Y"),
)
DATE_FORMATS = tuple(day + time for day in DAYS for time in ("", " %H:%M:%S", " %H:%M"))


def needed(source: Source, name: str, format_name: str) -> Member:
    """The member with a base name.

    Raises
    ------
    DataError
        If there is none; the message lists what is there.
    """
    member = source.find(name)
    if member is None:
        there = ", ".join(source.names()[:10]) or "nothing"
        raise DataError(
            f"The format {format_name} needs a file {name}, which was not found; there is: "
            f"{there}. Give the folder or zip that holds it, or another format.",
            path=source.path,
        )
    return member


def check_scale(values: npt.NDArray[np.float64], scale: RatingScale, text: Text) -> None:
    """Raise a DataError with the line of the first value that the scale does not have."""
    row = first_off_scale(values, scale)
    if row is not None:
        raise off_scale_error(float(values[row]), scale, text.path, line_of_row(text, row))


def times_reader(text: Text, index: int) -> Callable[[], npt.NDArray[np.float64] | None]:
    """A function that reads a column of times, as needed only if ratings repeat.

    It gives seconds since 1970 or whatever number the file has, with -infinity
    for a blank (known times are later), or None if the column holds no times.
    """

    def read() -> npt.NDArray[np.float64] | None:
        start = next(numbered_rows(replace(text, data=text.data[:4096])), None)
        if start is None or len(start[1]) <= index:
            return None  # a copy without the column of times
        return as_times(read_table(text, [Column(index, "time", "any")]).columns["time"])

    return read


def as_times(column: pa.ChunkedArray) -> npt.NDArray[np.float64] | None:
    """Numbers or dates as float64 (blank: -infinity), or None if they are neither."""
    kind = column.type
    if pa.types.is_null(kind):
        return None
    if pa.types.is_string(kind):
        column = _parse_dates(column)
        if column is None:
            return None
        kind = column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    values = column.cast(pa.float64(), safe=False).fill_null(-np.inf).to_numpy()
    return np.asarray(values, dtype=np.float64)


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

    column : one for which :func:`as_times` is None.
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
    return int(rows[0]), str(column[int(rows[0])].as_py())


def triplet_columns(user: int, item: int, rating: int) -> Sequence[Column]:
    """The columns of a file whose ids are whole numbers."""
    return (
        Column(user, "user id", "integer id"),
        Column(item, "item id", "integer id"),
        Column(rating, "rating", "number"),
    )
