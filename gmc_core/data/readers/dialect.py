"""How a delimited text is written: one way of finding it, for ratings and for wide tables.

A text is first read as each separator would have it; the separator that divides the rows
most evenly is taken, and with it what follows from it: which quotation marks enclose cells
(:mod:`quotes`), which lines are comments, whether the first row holds names, and how
numbers are written (:mod:`numbers`). What a person has said of the text is taken as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from gmc_core.base.errors import DataError
from gmc_core.data.readers.numbers import NumberForm, find_form, parse_number, possible_forms
from gmc_core.data.readers.table import WHITESPACE, Text, numbered_rows, settled
from gmc_core.data.readers.vocabulary import plain_name

SEPARATORS = ("::", "\t", ";", "|", ",", WHITESPACE)
SAMPLE_ROWS = 100
SAMPLE_BYTES = 1 << 18
SAMPLE_LINES = 400
MIN_AGREEMENT = 0.8  # share of rows with the same number of columns
NUMERIC_COLUMNS = 60  # that are looked at to tell separators apart

# The first line by which spreadsheet programs say the separator.
_SEPARATOR_LINE = re.compile(rb'\A\s*"?sep=([^\r\n])"?[ \t;,|]*(?=[\r\n]|\Z)', re.I)
_COMMENT = re.compile(rb"(?m)^[ \t]*[#%][^\r\n]*")

Row = list[str]


@dataclass(frozen=True)
class Dialect:
    """A text and how it is written.

    text : the whole text with its layout; comments are emptied, so that lines keep their
        numbers. names : of the columns, as many as a row has cells; without a header line
        "column 1", …; "" where the header has none. rows : the first ones below the header,
        as they are written. notes : what a person may want to know, a sentence each.
    """

    text: Text
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Divided:
    """The first rows of a text as a separator divides it: comments apart, blank rows left out."""

    separator: str
    quoted: bool
    rows: list[Row]
    comments_before: list[str]

    @property
    def width(self) -> int:
        return _width(self.rows)[0]


def find_dialect(
    data: bytes,
    path: str,
    *,
    separator: str | None = None,
    header: bool | None = None,
    decimal: str | None = None,
    names: frozenset[str] = frozenset(),
    table: bool = False,
) -> Dialect:
    """Find what is None of separator, header line and decimal sign.

    data : UTF-8 without a mark. names : plain words that columns are known by.
    table : whether it is a table of quantities, in which a cell may be blank and so may a
        row; without, it holds ratings.

    Raises
    ------
    DataError
        If there are no rows, no separator divides them into columns, or a quotation mark
        encloses rows.
    """
    data, declared = _without_separator_line(settled(Text(data, path, ",")).data)
    separator = separator or declared
    sample = _sample(data)
    if not sample.strip():
        raise DataError("The file holds only blank lines; give a file with a table.", path=path)
    if separator is None:
        divided = _best(sample, path, decimal, table)
    else:
        divided = _divide(sample, separator, path)
    if not divided.rows:
        raise DataError("No row holds anything; give a file with a table.", path=path)
    data, emptied = _without_comments(data, divided)
    head = _commented_header(divided, names) if header in (None, True) else None
    if head is not None:
        data = _uncommented(data, divided, head)
        divided = replace(divided, rows=[head, *divided.rows])
        emptied -= 1
        header = True
    elif header is None:
        header = has_header(divided.rows, divided.separator, names)
    if not table:
        data = _without_blank_rows(data, divided.separator)
    text = Text(
        data,
        path,
        divided.separator,
        header=header,
        quotes=b'"' in data,
        emptied=emptied + (declared is not None),
    )
    text = settled(text)
    body = divided.rows[1:] if header else divided.rows
    found = column_names(divided.rows[0], body) if header else _numbered(divided.width)
    if decimal == "," == divided.separator and not text.quotes:
        raise DataError(
            "The comma cannot be both the separator and the decimal sign where no cell is in "
            "quotation marks; give another separator, or the point as decimal sign.",
            path=path,
        )
    form = _form_of_rows(body, divided, decimal)
    text = replace(text, decimal=form.decimal, thousands=form.thousands)
    notes = _notes(text, emptied)
    return Dialect(text, tuple(found), tuple(map(tuple, body)), notes)


def _notes(text: Text, comments: int) -> tuple[str, ...]:
    notes = []
    if comments > 0:
        notes.append(f"{comments:,} comment lines (# or %) skipped")
    if text.odd:
        what = "quotation marks that close nowhere were" if text.odd > 1 else (
            "quotation mark that closes nowhere was"
        )  # fmt: skip
        notes.append(f"{text.odd:,} {what} taken as text (line {text.first_odd})")
    return tuple(notes)


def _without_separator_line(data: bytes) -> tuple[bytes, str | None]:
    found = _SEPARATOR_LINE.match(data)
    if found is None or found[1] in (b'"', b" "):
        return data, None
    return b"\n" * found[0].count(b"\n") + data[found.end() :], found[1].decode("latin-1")


def _sample(data: bytes) -> bytes:
    sample = data[:SAMPLE_BYTES]
    if len(data) > SAMPLE_BYTES and b"\n" in sample:
        sample = sample[: sample.rindex(b"\n") + 1]
    filled, place = 0, 0
    while filled < SAMPLE_LINES:
        end = sample.find(b"\n", place)
        if end < 0:
            return sample
        line = sample[place:end].lstrip()
        filled += bool(line) and line[:1] not in (b"#", b"%")
        place = end + 1
    return sample[:place]


def _divide(sample: bytes, separator: str, path: str) -> _Divided:
    text = settled(Text(sample, path, separator, quotes=b'"' in sample))
    rows = [fields for _, fields in islice(numbered_rows(text), 4 * SAMPLE_ROWS)]
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    marked = [_is_marked(row) for row in rows]
    before: list[str] = []
    if any(marked) and not all(marked):
        kept = [row for row, mark in zip(rows, marked, strict=True) if not mark]
        if sum(marked) > len(kept):
            kept = rows  # ids that begin so
        fits = _RowTest(kept, separator)
        first = next((n for n, row in enumerate(rows) if not _is_marked(row) or fits(row)), 0)
        before = _comment_lines(sample)[:first]
        rows = [row for row in rows if not _is_marked(row) or fits(row)]
    return _Divided(separator, text.quotes, rows[:SAMPLE_ROWS], before)


def _comment_lines(sample: bytes) -> list[str]:
    return [found[0].decode(errors="replace") for found in _COMMENT.finditer(sample)]


def _is_marked(row: Row) -> bool:
    return row[0].lstrip()[:1] in ("#", "%")


class _RowTest:
    """Whether a line that begins as a comment is a row: as wide, and numbers where others have.

    So is one whose first cell is nothing but the mark: a column named "#".
    """

    def __init__(self, rows: list[Row], separator: str) -> None:
        self.width = _width(rows)[0]
        body = rows[1:] or rows
        forms = possible_forms(separator, True)
        self.numeric = [
            index
            for index in range(1, min(self.width, NUMERIC_COLUMNS))
            if all(_number(row[index], forms) for row in body if len(row) == self.width)
        ]
        self.forms = forms
        self.blanks = separator == WHITESPACE

    def __call__(self, row: Row) -> bool:
        if len(row) != self.width:
            return False
        if row[0].strip() in ("#", "%") and not self.blanks:
            return True
        if not self.numeric:
            return False
        return all(_number(row[index], self.forms) for index in self.numeric)


def _number(cell: str, forms: Sequence[NumberForm]) -> bool:
    return any(parse_number(cell, form.decimal, form.thousands) is not None for form in forms)


def _without_comments(data: bytes, divided: _Divided) -> tuple[bytes, int]:
    """The text with its comments emptied, and how many there were."""
    if data.lstrip()[:1] not in (b"#", b"%") and not re.search(rb"\n[ \t]*[#%]", data):
        return data, 0
    if sum(map(_is_marked, divided.rows)) > len(divided.rows) / 2:
        return data, 0
    fits, count = _RowTest(divided.rows, divided.separator), 0

    def emptied(found: re.Match[bytes]) -> bytes:
        nonlocal count
        line = Text(found[0], "", divided.separator, quotes=divided.quoted)
        row = next(numbered_rows(line), (0, [""]))[1]
        if _is_marked(row) and fits(row):
            return found[0]
        count += 1
        return b""

    return _COMMENT.sub(emptied, data), count


def _commented_header(divided: _Divided, names: frozenset[str]) -> Row | None:
    """The names in the last comment above the rows, where the rows have none of their own."""
    if not divided.comments_before or has_header(divided.rows, divided.separator, names):
        return None
    line = divided.comments_before[-1].lstrip(" \t#%")
    text = Text(line.encode(), "", divided.separator, quotes='"' in line)
    head = next(numbered_rows(text), (0, [""]))[1]
    known = sum(plain_name(cell) in names for cell in head)
    number = any(_number_like(cell, divided.separator) for cell in head)
    fits = len(head) == divided.width and not number and all(cell.strip() for cell in head)
    return head if fits and (known > 1 or not names) else None


def _uncommented(data: bytes, divided: _Divided, head: Row) -> bytes:
    """The same with the header where its comment stood, on the line above the first row."""
    start = len(data) - len(data.lstrip())
    if start == 0:
        return data
    line = divided.comments_before[-1].lstrip(" \t#%").encode()
    above = max(data.rfind(b"\n", 0, start), 0)
    above -= data[max(above - 1, 0) : above] == b"\r"
    return data[:above] + line + data[above:]


def _without_blank_rows(data: bytes, separator: str) -> bytes:
    """Rows of separators only as blank lines."""
    if separator in ("::", WHITESPACE):
        return data
    sign = separator.encode()
    if not data.lstrip(b" \t\r\n").startswith(sign) and not re.search(
        rb"\n[ \t]*" + re.escape(sign), data
    ):
        return data
    signs = rb"[" + re.escape(sign) + rb" \t]+"
    return re.sub(rb"(?m)^" + signs + rb"(?=\r?$)", b"", data)


def _width(rows: list[Row]) -> tuple[int, float]:
    """The most frequent number of columns, and the share of rows that have it."""
    body = rows[1:] or rows  # a header may have one name fewer
    head = rows[:1] if len(rows) > 1 else []
    one_fewer = bool(head) and len(body[0]) == len(head[0]) + 1
    order = [*body, *head] if one_fewer else [*head, *body]  # which counts where both are as many
    width = Counter(len(row) for row in order).most_common(1)[0][0]
    count = sum(len(row) == width for row in body) + sum(width - len(r) in (0, 1) for r in head)
    return width, count / len(rows)


def _numbered(width: int) -> list[str]:
    return [f"column {index + 1}" for index in range(width)]


def column_names(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """A name for every column of the rows, from a header that may have fewer or more.

    One name fewer than the rows have cells: the first column has none, as R writes the
    names of rows, or the last, where every row ends in a separator.
    """
    names = [name.strip() for name in head]
    if not body:
        return names
    width = Counter(len(row) for row in body).most_common(1)[0][0]
    while len(names) > width and not names[-1]:
        names.pop()
    if len(names) == width - 1:
        ends_blank = all(not row[-1].strip() for row in body if len(row) == width)
        return [*names, ""] if ends_blank else ["", *names]
    return [*names, *_numbered(width)[len(names) :]]


def is_unnamed(name: str) -> bool:
    """Whether a column has no name of its own, or the one that pandas gives to such."""
    return not name.strip() or re.fullmatch(r"Unnamed: \d+", name.strip()) is not None


def _form_of_rows(body: list[Row], divided: _Divided, decimal: str | None) -> NumberForm:
    """How most numbers of the first rows are written."""
    forms = possible_forms(divided.separator, divided.quoted, decimal)
    columns = range(min(divided.width, NUMERIC_COLUMNS))
    cells: list[str] = []
    for index in columns:
        column = [row[index] for row in body if len(row) > index and row[index].strip()]
        if sum(_number(cell, forms) for cell in column) >= MIN_AGREEMENT * len(column):
            cells += column
    return find_form(cells, forms, divided.separator)[0]


def _numeric_columns(rows: list[Row], forms: Sequence[NumberForm], width: int) -> int:
    """How many columns hold numbers in (nearly) all rows."""
    count = 0
    for index in range(min(width, NUMERIC_COLUMNS)):
        cells = [row[index] for row in rows if len(row) > index]
        filled = [cell for cell in cells if cell.strip()]
        numeric = sum(_number(cell, forms) for cell in filled)
        count += bool(filled) and numeric >= MIN_AGREEMENT * len(filled)
    return count


def _best(sample: bytes, path: str, decimal: str | None, table: bool) -> _Divided:
    fallback: tuple[tuple[float, int], _Divided] | None = None
    best: tuple[tuple[bool, bool, bool, int, int], _Divided] | None = None
    problem: DataError | None = None
    for rank, separator in enumerate(SEPARATORS):
        try:
            divided = _divide(sample, separator, path)
        except DataError as error:  # perhaps of another separator's cells
            problem = problem or error
            continue
        rows = divided.rows
        if not rows or (decimal == "," == separator and not divided.quoted):
            continue
        width, agreement = _width(rows)
        agrees = agreement >= MIN_AGREEMENT
        if width > 1 and separator not in ("::", WHITESPACE) and len(rows[0]) > 1:
            fallback = max(
                fallback or ((0.0, 0), divided),
                ((agreement, -rank), divided),
                key=lambda entry: entry[0],
            )
        # Of a few rows with one bad among them, the bad one is to be named later.
        if width < 2 or not (agrees or (width >= 3 and agreement >= 0.5)):
            continue
        body = rows[1:] if len(rows) > 1 else rows  # the first row may hold names
        numeric = _numeric_columns(body, possible_forms(separator, divided.quoted, decimal), width)
        # Blanks stand inside of names too, where they would divide one column into two.
        score = (agrees, width >= 3, separator != WHITESPACE, numeric, -rank)
        if best is None or score > best[0]:
            best = (score, divided)
    if best is None and table:
        if fallback is not None:  # the row that does not fit is to be named later
            return fallback[1]
        raise problem or DataError(
            "The header line has one column only; a table needs at least two, divided by tab, "
            "semicolon, comma, | or blanks. Give the separator if it is another.",
            path=path,
            line=1,
            value=sample[:60].decode(errors="replace").split("\n")[0],
        )
    if best is None:
        raise problem or DataError(
            "No separator divides the rows into the same number of columns; tried :: tab ; | , "
            "and blanks. Give the separator, or check that this is a table with several columns.",
            path=path,
            line=1,
            value=sample[:60].decode(errors="replace").split("\n")[0],
        )
    return best[1]


def has_header(rows: Sequence[Row], separator: str, names: frozenset[str] = frozenset()) -> bool:
    """Whether the first row holds no number while rows below it do.

    A first row with a number and a bad value is data with an error, not a header.
    """
    if any(_number_like(cell, separator) for cell in rows[0]):
        return False
    body = rows[1:]
    if not body:
        return any(plain_name(cell) in names for cell in rows[0])
    if any(_number_like(cell, separator) for row in body for cell in row):
        return True
    # Ratings that are all texts, such as 4/5: their names tell the header.
    return sum(plain_name(cell) in names for cell in rows[0]) > 1


def _number_like(cell: str, separator: str) -> bool:
    text = cell.strip().lower().lstrip("+-")
    return text in ("nan", "inf", "infinity") or _number(cell, possible_forms(separator, True))
