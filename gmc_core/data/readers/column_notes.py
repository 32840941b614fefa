"""Sentences on the columns of ratings: what looks odd, what was taken, what was left."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import DataError
from gmc_core.data.readers import doubts
from gmc_core.data.readers.not_rated import is_code
from gmc_core.data.readers.numbers import parse_number, possible_forms
from gmc_core.data.readers.sniff import NAMES, TextLayout
from gmc_core.data.readers.table import Column, Text, line_of_row, read_table
from gmc_core.data.readers.vocabulary import Encoded, plain_name

# First cells of a row that sums up those above it.
_SUMMARIES = frozenset({"total", "totals", "grand total", "sum", "mean", "average", "avg"})


def value_notes(
    layout: TextLayout,
    roles: Mapping[str, int],
    users: Encoded,
    items: Encoded,
    values: npt.NDArray[np.float64],
    line_of: Callable[[int], int],
) -> list[str]:
    """What looks odd in the ids and ratings, and was believed all the same.

    (rows,) users, items and values; line_of : the line of a row.
    """
    notes = []
    for role, column in (("user", users), ("item", items)):
        ruined = [] if column.are_integers else doubts.ruined_ids(column.ids.tolist())
        if ruined:
            rows = np.isin(column.codes, np.flatnonzero(np.isin(column.ids, ruined)))
            first = int(np.argmax(rows))
            own = [str(column.ids[column.codes[first]]), *ruined[1:]]
            notes.append(doubts.ruined_note(role, own, line_of(first)))
    single = doubts.single_ratings_note(users, len(values), layout.names[roles["user"]])
    odd = doubts.far_off(values)
    if single is not None:
        notes.append(single)
    if odd is not None:
        same = values == odd
        notes.append(doubts.far_off_note(odd, int(same.sum()), values[~same]))
    last = len(values) - 1
    for column in (users, items):
        label = str(column.ids[column.codes[last]])
        if is_summary(label):
            notes.append(summary_note(label, line_of(last)))
    return notes


def is_summary(label: str) -> bool:
    """Whether a row that begins so may sum up the others."""
    return label.strip().rstrip(":").lower() in _SUMMARIES


def summary_note(label: str, line: int) -> str:
    """A sentence on a last row that may sum up the others."""
    return (
        f"the last row (line {line}, {label!r}) is read like the others; remove it if it sums "
        "them up"
    )


def repeated_names(layout: TextLayout, roles: Mapping[str, int]) -> list[str]:
    """A sentence for each role whose column has the name of another one."""
    notes = []
    for role, index in roles.items():
        same = [n for n, name in enumerate(layout.names) if name == layout.names[index]]
        if layout.header and len(same) > 1:
            there = ", ".join(str(n + 1) for n in same)
            notes.append(
                f"the columns {there} are all named {layout.names[index]!r}; column {index + 1} "
                f"is taken for the {role}. If it is another one, say so (--columns {role}=NUMBER)"
            )
    return notes


def left_times(layout: TextLayout, roles: Mapping[str, int], text: Text) -> list[str]:
    """A sentence for each column that looks like times, by name or content, and has no role."""
    notes = []
    for index, name in enumerate(layout.names):
        if index in roles.values():
            continue
        named = layout.header and plain_name(name) in NAMES["timestamp"]
        what = f"the column {name!r}" if layout.header else f"column {index + 1}"
        word = name if layout.header else str(index + 1)
        if layout.looks_like_time(index, -math.inf if named else math.inf):
            notes.append(
                f"{what} looks like times and is not used; if it tells when the ratings were "
                f"given, say so (--columns timestamp={word})"
            )
        elif named:
            row = layout.first_no_time(index)
            told = "has no entries"
            if row is not None:
                told = (
                    f"is named like times, but {layout.rows[row][index].strip()!r} (line "
                    f"{line_of_row(text, row)}) is neither a number nor a date"
                )
            notes.append(f"{what} {told}: it is not used")
    return notes


def unmatched_codes(text: Text, rating: int, codes: Sequence[str]) -> list[str]:
    """A sentence on values that were said to mean "not rated" and do not occur."""
    if not codes:
        return []
    found = read_table(text, [Column(rating, "rating", "label")]).encoded("rating").ids.tolist()
    none = [
        code
        for code in codes
        if not any(is_code(cell, (code,), text.decimal, text.thousands) for cell in found)
    ]
    told = ", ".join(f"{code!r} (0)" if code else "a blank (0)" for code in none)
    return [f"marked as not rated, but not found: {told}"] if none else []


def no_numbers(
    layout: TextLayout, rating: int, text: Text, codes: Sequence[str]
) -> DataError | None:
    """The error for a rating column of texts, such as 4/5; None if it holds a number."""
    # The first row may be a header that was not known as one.
    start = 0 if layout.header or len(layout.rows) < 2 else 1
    first: int | None = None
    for row, cells in enumerate(layout.rows[start:], start):
        cell = cells[rating].strip() if len(cells) > rating else ""
        if not cell or is_code(cell, codes):
            continue
        forms = possible_forms("", True)
        if any(parse_number(cell, form.decimal, form.thousands) is not None for form in forms):
            return None
        first = row if first is None else first
    if first is None:
        return None
    name = f" ({layout.names[rating]})" if layout.header else ""
    return DataError(
        f"The rating in column {rating + 1}{name} is not a finite number, and no other one of the "
        "first rows is. Write each as one number, 4 instead of 4/5, say; if this is not the column "
        "of the rating, say which one is.",
        path=text.path,
        line=line_of_row(text, first),
        value=layout.rows[first][rating].strip(),
    )
