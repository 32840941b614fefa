"""Which column of a delimited text holds what: by name, by position, by what is in it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from gmc_core import former
from gmc_core.base.errors import DataError
from gmc_core.data.readers.dialect import Dialect, find_dialect, is_unnamed
from gmc_core.data.readers.doubts import counts_rows
from gmc_core.data.readers.numbers import parse_number
from gmc_core.data.readers.vocabulary import plain_name

# A user, an item, a rating and what else is known of it. Beyond, it is a matrix; naming each
# column of one of the width of a catalogue would take for ever.
MAX_COLUMNS = 1000
# Columns beyond those needed with which positions are still believed, by header.
SPARE_COLUMNS = {False: 2, True: 1}
EARLIEST_TIME = 1e8  # 1973 in seconds since 1970: larger than a rating or a count

# Words by which columns are known, in lower case without any other sign than letters.
_WORDS = {
    "user": """user userid uid username person personid customer customerid reviewer reviewerid
        rater raterid member memberid profile viewer viewerid""",
    "item": """item itemid iid movie movieid mid film filmid product productid asin isbn book
        bookid song songid track trackid joke jokeid business businessid anime animeid""",
    "rating": """rating ratings userrating bookrating score stars star value vote overall grade
        preference""",
    "timestamp": """timestamp time date datetime ts unixtime unixreviewtime modified created
        createdat createdon ratedat ratedon ratingdate ratingtime reviewdate reviewtime dateadded
        daterated when""",
    "title": """title name movietitle filmtitle itemtitle booktitle moviename itemname
        filmname""",
}
NAMES = {role: frozenset(words.split()) for role, words in _WORDS.items()}
_ALL_NAMES = frozenset().union(*NAMES.values())
_DATE = re.compile(r"\d{4}[-/]\d\d?[-/]\d\d?|\d{1,2}([-/.])\d{1,2}\1\d\d")


@dataclass(frozen=True)
class TextLayout:
    """How a text is laid out; ``rows`` are the first ones, without the header.

    ``decimal_given`` says whether the decimal sign was set by the person.
    """

    separator: str
    header: bool
    decimal: str
    decimal_given: bool
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def roles(
        self, given: Mapping[str, str | int | None], required: tuple[str, ...], path: str
    ) -> dict[str, int]:
        """Role → column: those given, then by name, then by position.

        Raises
        ------
        DataError
            If a given column does not exist or a required role has none.
        """
        found = {
            role: self._column(role, column, path)
            for role, column in given.items()
            if column is not None
        }
        if len(set(found.values())) < len(found):
            raise DataError("One column is given for two purposes; give each its own.", path=path)
        if self.header:
            self._add_by_name(found)
        missing = [role for role in required if role not in found]
        free = self._free(found, len(missing), "rating" in required)
        spare = SPARE_COLUMNS[self.header]
        if missing and len(free) > len(missing) + spare:
            # A wide matrix, say: positions would silently give nonsense.
            raise DataError(
                f"Which column holds the {' and the '.join(missing)} is not clear; the columns "
                f"are {', '.join(self.names[:12])}. Say which column is which.",
                path=path,
            )
        for role in required:
            if role not in found:
                if not free:
                    raise DataError(
                        f"There is no column left for the {role}: the rows have "
                        f"{len(self.names)} ({', '.join(self.names)}). Check the separator "
                        f"({self.separator!r}), or say which column is which.",
                        path=path,
                    )
                found[role] = free.pop(0)
        if "timestamp" not in found and "rating" in required:
            after = found["rating"] + 1
            if not self.header and after in free and self.looks_like_time(after):
                found["timestamp"] = after
        return found

    def _free(self, found: Mapping[str, int], wanted: int, ratings: bool) -> list[int]:
        """Columns that a role may have by position: no row numbers, no empty ones."""
        free = [
            index
            for index, name in enumerate(self.names)
            if index not in found.values()
            and not (self.header and is_unnamed(name))
            and any(row[index].strip() for row in self.rows if len(row) > index)
        ]
        if self.header and ratings and len(free) > wanted and self._counts_rows(free[0]):
            return free[1:]
        return free

    def _counts_rows(self, index: int) -> bool:
        """Whether a column numbers the rows from 0 or 1."""
        cells = [row[index].strip() for row in self.rows if len(row) > index]
        return counts_rows(cells, 3, str)

    def _column(self, role: str, column: str | int, path: str) -> int:
        if isinstance(column, int):
            if not 0 <= column < len(self.names):
                raise DataError(
                    f"There is no column {column} for the {role}; the columns are numbered from "
                    f"0 to {len(self.names) - 1}.",
                    path=path,
                )
            return column
        if self.header and column in self.names:
            return self.names.index(column)
        there = f"its columns are {', '.join(self.names)}" if self.header else "it has no header"
        raise DataError(
            f"The file has no column named {column!r} for the {role}; {there}.", path=path
        )

    def _add_by_name(self, found: dict[str, int]) -> None:
        for role, names in NAMES.items():
            if role in found:
                continue
            for index, name in enumerate(self.names):
                usable = role != "timestamp" or self.looks_like_time(index, -math.inf)
                if index not in found.values() and plain_name(name) in names and usable:
                    found[role] = index
                    break

    def looks_like_time(self, index: int, earliest: float = EARLIEST_TIME) -> bool:
        """Whether the first rows hold dates in a column, or numbers from ``earliest`` on."""
        cells = [row[index].strip() for row in self.rows if len(row) > index and row[index].strip()]
        numbers = [parse_number(cell) for cell in cells]
        dates = all(_DATE.match(cell) for cell in cells)
        large = all(number is not None and number >= earliest for number in numbers)
        return bool(cells) and (dates or large)

    def first_no_time(self, index: int) -> int | None:
        """The first row with neither a number nor a date in a column that is not blank."""
        for row, fields in enumerate(self.rows):
            cell = fields[index].strip() if len(fields) > index else ""
            if cell and not _DATE.match(cell) and parse_number(cell) is None:
                return row
        return None


def sniff(
    data: bytes,
    path: str,
    separator: str | None = None,
    header: bool | None = None,
    decimal: str | None = None,
) -> tuple[Dialect, TextLayout]:
    """Find what is None of separator, header and decimal sign of a text with ratings.

    Raises
    ------
    DataError
        As :func:`find_dialect`, or if there are more columns than ratings have.
    """
    dialect = find_dialect(
        data, path, separator=separator, header=header, decimal=decimal, names=_ALL_NAMES
    )
    text = dialect.text
    width = max(len(dialect.names), len(dialect.rows[0]) if dialect.rows else 0)
    if width > MAX_COLUMNS:
        raise DataError(
            f"The rows have {width:,} columns (separator {text.separator!r}), but ratings are read "
            "as a user, an item and a rating on each row. Give another separator, or another file.",
            path=path,
            line=1,
        )
    layout = TextLayout(
        text.separator,
        text.header,
        text.decimal,
        decimal is not None,
        dialect.names,
        dialect.rows,
    )
    return dialect, layout


__getattr__ = former.renamed(__name__, Layout="TextLayout")
