"""Lines of a delimited text that are no rows: comments, and rows of separators only.

A row may begin with # or % as a comment does, and a line inside of a cell may look like
either. A row taken for a comment would be lost without a word, and a comment taken for a row
is an error that names its line; so what is in doubt is a row.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence

from gmc_core.data.readers.numbers import NumberForm, parse_number, possible_forms
from gmc_core.data.readers.quotes import WHITESPACE, settle
from gmc_core.data.readers.table import Text, numbered_rows

NUMERIC_COLUMNS = 60  # that are looked at to tell separators and comments apart

_MARKS = ("#", "%")
_COMMENT = re.compile(rb"(?m)^[ \t]*[#%][^\r\n]*")

Row = list[str]
Place = tuple[int, int]


def is_marked(cell: str) -> bool:
    """Whether a line that starts with this cell begins as a comment."""
    return cell.lstrip()[:1] in _MARKS


def is_number(cell: str, forms: Sequence[NumberForm]) -> bool:
    """Whether a cell is a number in any of the forms."""
    return any(parse_number(cell, form.decimal, form.thousands) is not None for form in forms)


def comment_lines(data: bytes) -> list[str]:
    """The lines that begin as comments."""
    return [found[0].decode(errors="replace") for found in _COMMENT.finditer(data)]


class RowTest:
    """Whether a line that begins as a comment is a row all the same.

    rows : those that are known, a header first. width : how many cells a row has.
    """

    def __init__(self, rows: Sequence[Row], width: int, separator: str) -> None:
        self.width = width
        self.blanks = separator == WHITESPACE
        self.forms = possible_forms(separator, True)
        body = [row for row in rows[1:] or rows if len(row) == width]
        self.numeric = [
            index
            for index in range(1, min(width, NUMERIC_COLUMNS))
            if all(is_number(row[index], self.forms) for row in body)
        ]

    def above(self, row: Row) -> bool:
        """Of a line above all that are rows for certain.

        It is one if it is as wide, and has numbers where others have; and so is one whose
        first cell is nothing but the mark: a column named "#".
        """
        if len(row) != self.width:
            return False
        return (row[0].strip() in _MARKS and not self.blanks) or self._has_numbers(row)

    def below(self, row: Row) -> bool:
        """Of a line below one that is a row for certain.

        It is one if it is as wide, unless it is a sentence with commas. Of another width it is
        one (and an error) if it has several cells and is not written as a sentence is, with a
        blank after the mark or after the separators.
        """
        if len(row) == 1:
            return False
        name = row[0].lstrip().lstrip("#%")
        spaced = not name if self.blanks else name[:1].isspace()
        if len(row) == self.width:
            return not spaced or not (self.blanks or _is_sentence(row[1:]))
        if spaced:
            return False
        one_word = not self.blanks and not any(cell[:1].isspace() for cell in row[1:])
        return one_word or self._has_numbers(row)

    def _has_numbers(self, row: Row) -> bool:
        if not self.numeric or len(row) <= self.numeric[-1]:
            return False
        return all(is_number(row[index], self.forms) for index in self.numeric)


def _is_sentence(cells: Sequence[str]) -> bool:
    """Whether a blank follows each comma, and words without a digit follow that."""
    return all(
        cell[:1].isspace() and cell.strip() and not any(map(str.isdigit, cell)) for cell in cells
    )


def without_comments(text: Text, above: int, fits: RowTest) -> tuple[bytes, int]:
    """The text with its comments emptied, and how many there were.

    above : how many lines that begin as comments stand above the first row, which all are.
    """
    if text.data.lstrip()[:1] not in (b"#", b"%") and not re.search(rb"\n[ \t]*[#%]", text.data):
        return text.data, 0
    seen = count = 0

    def emptied(line: bytes, record: bytes) -> bytes:
        nonlocal seen, count
        seen += 1
        if seen > above:
            row = Text(record, text.path, text.separator, quotes=text.quotes and b'"' in record)
            if fits.below(next(numbered_rows(row), (0, [""]))[1]):
                return line
        count += 1
        return b""

    return _changed(text, _COMMENT, emptied), count


def without_blank_rows(text: Text) -> bytes:
    """The text with rows of separators only as blank lines."""
    data, separator = text.data, text.separator
    if separator in ("::", WHITESPACE):
        return data
    sign = re.escape(separator.encode())
    if not re.match(rb"[ \t\r\n]*" + sign, data) and not re.search(rb"\n[ \t]*" + sign, data):
        return data
    pattern = re.compile(rb"(?m)^[" + sign + rb" \t]+(?=\r?$)")
    return _changed(text, pattern, lambda line, record: b"")


def _changed(
    text: Text, pattern: re.Pattern[bytes], change: Callable[[bytes, bytes], bytes]
) -> bytes:
    """The text with each line of a pattern changed, unless it begins inside of a cell.

    change : of the line, and of the row of one or more lines that begins with it.
    """
    data = text.data
    cells = settle(data, text.separator, text.path).cells if text.quotes else ()
    starts = [start for start, _ in cells]

    def changed(found: re.Match[bytes]) -> bytes:
        place = bisect_right(starts, found.start()) - 1
        if place >= 0 and found.start() < cells[place][1]:
            return found[0]
        end = _end_of_row(data, found.end(), starts, cells)
        return change(found[0], data[found.start() : end])

    return pattern.sub(changed, data)


def _end_of_row(data: bytes, end: int, starts: Sequence[int], cells: Sequence[Place]) -> int:
    """Where the row ends whose first line ends here."""
    while (place := bisect_right(starts, end) - 1) >= 0 and end < cells[place][1]:
        end = data.find(b"\n", cells[place][1])
        if end < 0:
            return len(data)
    return end
