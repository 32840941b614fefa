"""The layout of a delimited text, guessed from its first rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from gmc_core.errors import DataError
from gmc_core.readers.table import WHITESPACE, Text, numbered_rows, parse_number

SEPARATORS = ("::", "\t", ";", "|", ",", WHITESPACE)
SAMPLE_ROWS = 100
SAMPLE_BYTES = 1 << 18
# A user, an item, a rating and what else is known of it. Beyond, it is a matrix; naming each
# column of one of the width of a catalogue would take for ever.
MAX_COLUMNS = 1000
MIN_AGREEMENT = 0.8  # share of rows with the same number of columns
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
        createdat ratedat""",
    "title": """title name movietitle filmtitle itemtitle booktitle moviename itemname
        filmname""",
}
NAMES = {role: frozenset(words.split()) for role, words in _WORDS.items()}


@dataclass(frozen=True)
class Layout:
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
        free = [index for index in range(len(self.names)) if index not in found.values()]
        missing = [role for role in required if role not in found]
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
            if not self.header and after in free and self._looks_like_time(after):
                found["timestamp"] = after
        return found

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
                usable = role != "timestamp" or self._looks_like_time(index, 0)
                if index not in found.values() and _plain(name) in names and usable:
                    found[role] = index
                    break

    def _looks_like_time(self, index: int, earliest: float = EARLIEST_TIME) -> bool:
        cells = [row[index].strip() for row in self.rows if len(row) > index and row[index].strip()]
        numbers = [parse_number(cell) for cell in cells]
        dates = all(re.match(r"\d{4}[-/]\d\d[-/]\d\d|\d{1,2}/\d{1,2}/\d\d", c) for c in cells)
        large = all(number is not None and number >= earliest for number in numbers)
        return bool(cells) and (dates or large)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def sniff(
    data: bytes,
    path: str,
    separator: str | None = None,
    header: bool | None = None,
    decimal: str | None = None,
) -> Layout:
    """Find what is None of separator, header and decimal sign.

    Raises
    ------
    DataError
        If there are no rows, or no separator divides them into columns.
    """
    sample = data[:SAMPLE_BYTES]
    if len(data) > SAMPLE_BYTES and b"\n" in sample:
        sample = sample[: sample.rindex(b"\n")]
    if not sample.strip():
        raise DataError("The file holds only blank lines; give a file with ratings.", path=path)
    if separator is None:
        separator, rows = _best_rows(sample, path, decimal)
    else:
        rows = _rows(sample, separator, path)
    if not rows:
        raise DataError("No row holds anything; give a file with ratings.", path=path)
    width = max(_width(rows)[0], len(rows[0]))
    if width > MAX_COLUMNS:
        raise DataError(
            f"The rows have {width:,} columns (separator {separator!r}), but ratings are read as a "
            "user, an item and a rating on each row. Give another separator, or another file.",
            path=path,
            line=1,
        )
    width = _width(rows)[0]
    if header is None:
        header = _has_header(rows, separator)
    body = rows[1:] if header else rows
    signs = [decimal] if decimal else _decimals(separator)
    sign = max(signs, key=lambda s: _numeric_columns(body, s, width))
    assert sign is not None
    names = rows[0] if header else [f"column {index + 1}" for index in range(width)]
    if len(names) < width:  # rows longer than the header
        names = [*names, *(f"column {index + 1}" for index in range(len(names), width))]
    return Layout(
        separator,
        header,
        sign,
        decimal is not None,
        tuple(name.strip() for name in names),
        tuple(tuple(row) for row in body),
    )


def _rows(sample: bytes, separator: str, path: str) -> list[list[str]]:
    text = Text(sample, path, separator, quotes=b'"' in sample)
    return [fields for _, fields in islice(numbered_rows(text), SAMPLE_ROWS)]


def _width(rows: list[list[str]]) -> tuple[int, float]:
    """The most frequent number of columns, and the share of rows that have it."""
    width, count = Counter(len(row) for row in rows).most_common(1)[0]
    return width, count / len(rows)


def _decimals(separator: str) -> list[str]:
    return ["."] if separator == "," else [".", ","]


def _numeric_columns(rows: list[list[str]], decimal: str, width: int) -> int:
    """How many columns hold numbers in (nearly) all rows."""
    count = 0
    for index in range(width):
        cells = [row[index] for row in rows if len(row) > index]
        numeric = sum(parse_number(cell, decimal) is not None for cell in cells)
        count += bool(cells) and numeric >= MIN_AGREEMENT * len(cells)
    return count


def _best_rows(sample: bytes, path: str, decimal: str | None) -> tuple[str, list[list[str]]]:
    best: tuple[tuple[bool, bool, bool, int, int], str, list[list[str]]] | None = None
    for rank, separator in enumerate(SEPARATORS):
        if decimal == "," and separator == ",":
            continue
        rows = _rows(sample, separator, path)
        if not rows:
            continue
        width, agreement = _width(rows)
        agrees = agreement >= MIN_AGREEMENT
        # Of a few rows with one bad among them, the bad one is to be named later.
        if width < 2 or not (agrees or (width >= 3 and agreement >= 0.5)):
            continue
        body = rows[1:] if len(rows) > 1 else rows  # the first row may hold names
        signs = [decimal] if decimal else _decimals(separator)
        numeric = max(_numeric_columns(body, sign, width) for sign in signs)
        # Blanks stand inside of names too, where they would divide one column into two.
        score = (agrees, width >= 3, separator != WHITESPACE, numeric, -rank)
        if best is None or score > best[0]:
            best = (score, separator, rows)
    if best is None:
        raise DataError(
            "No separator divides the rows into the same number of columns; tried :: tab ; | , "
            "and blanks. Give the separator, or check that this is a table with a user, an item "
            "and a rating on each row.",
            path=path,
            line=1,
            value=sample[:60].decode(errors="replace").split("\n")[0],
        )
    return best[1], best[2]


def _has_header(rows: list[list[str]], separator: str) -> bool:
    """Whether the first row holds no number while rows below it do.

    A first row with a number and a bad value is data with an error, not a header.
    """
    if any(_number_like(cell, separator) for cell in rows[0]):
        return False
    body = rows[1:]
    if not body:
        return any(_plain(cell) in names for cell in rows[0] for names in NAMES.values())
    return any(_number_like(cell, separator) for row in body for cell in row)


def _number_like(cell: str, separator: str) -> bool:
    text = cell.strip().lower().lstrip("+-")
    return text in ("nan", "inf", "infinity") or any(
        parse_number(cell, sign) is not None for sign in _decimals(separator)
    )
