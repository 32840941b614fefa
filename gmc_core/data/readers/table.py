"""Delimited text to columns: a fast path, and a slow one that finds the bad line.

The fast path is Arrow's CSV parser, which checks the number of columns of each
row and keeps no Python object per row. It cannot say on which line a value is
wrong; when it fails, the slow path reads the text again row by row and names
line, column and value.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
from pyarrow import csv as arrow_csv

from gmc_core.base.errors import DataError
from gmc_core.data.readers.not_rated import is_code
from gmc_core.data.readers.numbers import parse_number
from gmc_core.data.readers.quotes import WHITESPACE, settle
from gmc_core.data.readers.vocabulary import Encoded, encode_texts, is_canonical_integer

__all__ = [
    "WHITESPACE",
    "Column",
    "Table",
    "Text",
    "line_of_row",
    "numbered_rows",
    "parse_number",
    "read_table",
    "settled",
]

UNIT = b"\x1f"  # ASCII "unit separator": in no known data file
BLOCK_BYTES = 4 << 20
PIECE_BYTES = 16 << 20  # of a large text, which Arrow needs a copy of

Kind = Literal["id", "integer id", "number", "label", "any"]


@dataclass(frozen=True)
class Column:
    """A column to read: its 0-based position, what it is called in messages, its kind.

    Kinds: ``id`` (opaque), ``integer id``, ``number`` (finite float), ``label``
    (any text), ``any`` (whatever it looks like, blanks allowed). codes : texts that
    stand for no number in a column of numbers, which are read as NaN.
    """

    index: int
    role: str
    kind: Kind
    codes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Text:
    """UTF-8 text with its layout.

    ``separator`` is one character, ``"::"`` or ``"whitespace"`` (runs of blanks);
    ``header`` says whether the first line that is not blank holds names, ``quotes``
    whether quotation marks can enclose cells; see :func:`settled`. ``thousands``
    stands between groups of digits. ``emptied`` lines were comments before.
    ``inner_lines`` are line ends inside of cells (None: not counted yet), ``inner_blank``
    blank lines inside of cells, ``odd`` marks that were taken as text, the first in line
    ``first_odd``.
    """

    data: bytes
    path: str
    separator: str
    header: bool = False
    decimal: str = "."
    quotes: bool = False
    thousands: str = ""
    emptied: int = 0
    inner_lines: int | None = None
    inner_blank: int = 0
    odd: int = 0
    first_odd: int = 0


@dataclass(frozen=True)
class Table:
    """Columns by role, all of ``rows`` entries.

    Ids and labels are :class:`Encoded`, numbers float64 arrays, "any" columns
    Arrow arrays.
    """

    columns: dict[str, Any]
    rows: int
    blank_lines: int

    def encoded(self, role: str) -> Encoded:
        """An id or label column."""
        column = self.columns[role]
        assert isinstance(column, Encoded)
        return column

    def numbers(self, role: str) -> npt.NDArray[np.float64]:
        """A number column."""
        column = self.columns[role]
        assert isinstance(column, np.ndarray)
        return column


def settled(text: Text) -> Text:
    """The same with line feeds as line ends and every quotation mark decided on.

    Raises
    ------
    DataError
        If a quotation mark encloses what are rows by themselves.
    """
    if text.inner_lines is not None:
        return text
    data = _without_lone_returns(text.data)
    if not text.quotes:
        return replace(text, data=data, inner_lines=0)
    found = settle(data, text.separator, text.path)
    return replace(
        text,
        data=found.data,
        quotes=found.quotes,
        inner_lines=found.inner_lines,
        inner_blank=found.inner_blank,
        odd=found.odd,
        first_odd=found.first_odd,
    )


def read_table(text: Text, columns: Sequence[Column]) -> Table:
    """Read some columns of a delimited text.

    Raises
    ------
    DataError
        If there is no row, or a row has another number of columns, a blank id or
        a number that is not one (NaN and infinity included); the message names
        line and value. Also if the numbers of rows and of lines disagree.
    """
    text = settled(text)
    body, leading = _single_byte_separated(text)
    names = {column.role: f"f{column.index}" for column in columns}
    types = {
        f"f{column.index}": pa.float64()
        if column.kind == "number" and not (text.thousands or column.codes)
        else pa.dictionary(pa.int32(), pa.string())
        for column in columns
        if column.kind != "any"
    }
    try:
        parsed = _parsed(text, body, types, list(names.values()))
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise find_problem(text, columns, str(error)) from None
    if not parsed.num_rows:
        raise _no_rows(text)
    blank = _blank_lines(body) - text.inner_blank
    _check_count(text, body, blank, parsed.num_rows)
    result = {column.role: _convert(parsed[names[column.role]], column, text) for column in columns}
    if any(value is None for value in result.values()):
        raise find_problem(text, columns, "a value is blank or not a finite number")
    return Table(result, parsed.num_rows, leading + blank - text.emptied)


def _parsed(text: Text, body: bytes, types: dict[str, pa.DataType], wanted: list[str]) -> pa.Table:
    """The columns ``wanted`` of a text, by the names f0, f1, …; of a large one, piece by piece."""

    def read(piece: bytes, skip: bool, kinds: dict[str, pa.DataType], width: int = 0) -> pa.Table:
        return arrow_csv.read_csv(
            arrow_memory(piece),
            read_options=arrow_csv.ReadOptions(
                autogenerate_column_names=not width,
                column_names=[f"f{index}" for index in range(width)] or None,
                skip_rows=1 if skip else 0,
                block_size=BLOCK_BYTES,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=_delimiter(text.separator),
                quote_char='"' if text.quotes else False,
                newlines_in_values=text.quotes and b'"' in body,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=kinds,
                include_columns=wanted,
                null_values=[""],
                strings_can_be_null=False,
                decimal_point=text.decimal,
                check_utf8=False,
            ),
        )

    if text.quotes or len(body) <= PIECE_BYTES:
        return read(body, text.header, types)
    width = body[: body.find(b"\n")].count(_delimiter(text.separator).encode()) + 1
    tables: list[pa.Table] = []
    kinds, place = types, 0
    try:
        while place < len(body):
            end = body.rfind(b"\n", place, place + PIECE_BYTES) + 1 or len(body)
            tables.append(read(body[place:end], text.header and not place, kinds, width))
            # What the first rows look like, all have to.
            kinds = {name: tables[0].schema.field(name).type for name in wanted}
            place = end
    except pa.ArrowInvalid:  # blank lines alone, or what has no place in a table: the whole tells
        return read(body, text.header, types)
    return pa.concat_tables(tables)


def arrow_memory(data: bytes) -> pa.Buffer:
    """A copy that belongs to Arrow alone.

    Arrow's reading threads may let go of the buffer after the table is there. If it were
    Python's, they would need the interpreter for that, and a thread that asks for it
    while the program ends takes the whole process down (exit 134).
    """
    buffer = pa.allocate_buffer(len(data))
    memoryview(buffer).cast("B")[:] = data
    return buffer


def _single_byte_separated(text: Text) -> tuple[bytes, int]:
    """The text with one-byte separators and without odd blank lines.

    Returns the bytes and the number of blank lines removed from the front.
    """
    data = text.data
    if b"\n" not in data:
        data += b"\n"  # Arrow takes a single row without a line end for no row
    if data[:1] in b" \t\r\n" or b"\n " in data or b"\n\t" in data:
        # Arrow skips empty lines, but not lines of blanks only.
        data = re.sub(rb"(?m)^[ \t]+(?=\r?$)", b"", data)
    start = re.match(rb"(?:\r?\n)+", data)
    leading = start[0].count(b"\n") if start else 0
    if start:
        data = data[start.end() :]
    if text.separator == "::":
        if UNIT in data:
            raise _holds_unit(text)
        data = data.replace(b"::", UNIT)
    elif text.separator == WHITESPACE:
        if UNIT in data:
            raise _holds_unit(text)
        # First the runs, then the ends: the other way round takes quadratic time for long runs.
        if text.quotes:
            data = _QUOTED_OR_BLANK.sub(lambda m: m[0] if m[0][:1] == b'"' else UNIT, data)
        else:
            data = re.sub(rb"[ \t]+", UNIT, data)
        data = re.sub(rb"(?m)^\x1f|\x1f(?=\r?$)", b"", data)
    return data, leading


# An enclosed cell, or a run of blanks: the blanks inside of the first are none.
_QUOTED_OR_BLANK = re.compile(rb'(?:\A|(?<=[ \t\n]))"[^"\n]*(?:""[^"\n]*)*"|[ \t]+')
_QUOTED_OR_WORD = re.compile(r'(?:\A|(?<=\s))"([^"]*(?:""[^"]*)*)"(?=\s|\Z)|(\S+)')


def _without_lone_returns(data: bytes) -> bytes:
    """The same with a line feed for each carriage return that stands alone, as Arrow takes it."""
    if data.count(b"\r") == data.count(b"\r\n"):
        return data
    return re.sub(rb"\r(?!\n)", b"\n", data)


def _holds_unit(text: Text) -> DataError:
    return DataError("The file contains the control character 1F; remove it.", path=text.path)


def _delimiter(separator: str) -> str:
    return UNIT.decode() if separator in ("::", WHITESPACE) else separator


def _blank_lines(body: bytes) -> int:
    if b"\n\n" not in body and b"\n\r\n" not in body:
        return 0
    return len(re.findall(rb"(?<=\n)\r?\n", body))


def _check_count(text: Text, body: bytes, blank: int, rows: int) -> None:
    """Rows are counted by the line ends as well: none may be lost inside of another."""
    lines = body.count(b"\n") + (not body.endswith(b"\n"))
    expected = lines - blank - (text.inner_lines or 0) - text.header
    if rows == expected:
        return
    raise DataError(
        f"{rows:,} rows were read of {expected:,} lines that hold one: quotation marks may run "
        "over several lines. Check them, or save the file without.",
        path=text.path,
    )


def _no_rows(text: Text) -> DataError:
    what = "a header line but no ratings" if text.header else "no ratings"
    return DataError(f"The file holds {what}; give a file with ratings.", path=text.path)


def _convert(column: pa.ChunkedArray, wanted: Column, text: Text) -> Any:
    """The column in its final form, or None if a value is not acceptable."""
    if wanted.kind == "any":
        return column
    if wanted.kind == "number" and not pa.types.is_dictionary(column.type):
        values: npt.NDArray[np.float64] = column.to_numpy()
        return values if column.null_count == 0 and bool(np.isfinite(values).all()) else None
    unified = column.unify_dictionaries()
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in unified.chunks])
    texts = unified.chunk(0).dictionary.to_pylist()
    if wanted.kind == "number":
        return _numbers(texts, codes, wanted, text)
    if wanted.kind == "label":
        return Encoded(np.array(texts, dtype=object), codes)
    encoded = encode_texts(texts, codes)
    if encoded is None or (wanted.kind == "integer id" and not encoded.are_integers):
        return None
    return encoded


def _numbers(
    texts: Sequence[str], codes: npt.NDArray[np.integer], wanted: Column, text: Text
) -> npt.NDArray[np.float64] | None:
    """The numbers of a column of texts, NaN for a code; None if one is no number."""
    numbers = []
    for value in texts:
        number = parse_number(value, text.decimal, text.thousands)
        if is_code(value, wanted.codes, text.decimal, text.thousands):
            number = np.nan
        elif number is None:
            return None
        numbers.append(number)
    return np.array(numbers, dtype=np.float64)[codes]


def numbered_rows(text: Text, *, blank: bool = False) -> Iterator[tuple[int, list[str]]]:
    """(1-based line in the file, fields) of every row that is not blank, header included.

    blank : also rows of separators only.
    """
    text = settled(text)
    data = text.data
    # Line by line: a large file must not become a list of all its lines.
    lines = (line.decode(errors="replace") for line in io.BytesIO(data))
    if text.quotes and text.separator == WHITESPACE:
        for line, row in enumerate(lines, 1):
            if row.strip():
                yield (
                    line,
                    [
                        word or quoted.replace('""', '"')
                        for quoted, word in _QUOTED_OR_WORD.findall(row)
                    ],
                )
        return
    if text.quotes:
        reader = csv.reader(lines, delimiter=text.separator)
        before = 0
        try:
            for fields in reader:
                line, before = before + 1, reader.line_num
                if any(field.strip() for field in fields) or (blank and len(fields) > 1):
                    yield line, fields
        except csv.Error as error:
            raise DataError(
                f"The row cannot be divided into columns ({error}); a quotation mark may not be "
                "closed.",
                path=text.path,
                line=before + 1,
            ) from error
        return
    separator = None if text.separator == WHITESPACE else text.separator
    for line, row in enumerate(lines, 1):
        if row.strip():
            yield line, row.rstrip("\r\n").split(separator)


def line_of_row(text: Text, row: int) -> int:
    """The 1-based line in the file of a row, counted from 0 without the header."""
    line, _ = next(islice(numbered_rows(text), row + text.header, None))
    return line


def find_problem(text: Text, columns: Sequence[Column], reason: str) -> DataError:
    """The error for the first row that cannot be read (slow, used only after a failure).

    ``reason`` is the fast parser's own account, for the case that no row is found.
    """
    text = settled(text)
    rows = numbered_rows(text)
    header = next(rows, (0, []))[1] if text.header else []
    head = list(islice(rows, 100))
    if not head:
        return _no_rows(text)
    width = Counter(len(fields) for _, fields in head).most_common(1)[0][0]
    last = max(columns, key=lambda column: column.index)
    if width <= last.index:
        return DataError(
            f"The rows have {width} columns, but the {last.role} was looked for in column "
            f"{last.index + 1}. Check the separator "
            f"({text.separator!r}) and the columns.",
            path=text.path,
            line=head[0][0],
        )
    for line, fields in (*head, *rows):
        if len(fields) != width:
            return DataError(
                f"This row has {len(fields)} columns where the others have {width}. Correct the "
                "line or delete it.",
                path=text.path,
                line=line,
                value=text.separator.join(fields) if len(text.separator) < 3 else " ".join(fields),
            )
        for column in columns:
            problem = _value_problem(fields[column.index], column, text)
            if problem:
                header = ["", *header] if len(header) == width - 1 else header
                name = header[column.index : column.index + 1]
                where = f"column {column.index + 1}" + (f" ({name[0]})" if name else "")
                return DataError(
                    f"The {column.role} in {where} {problem}. Correct the line or delete it; if "
                    "this is not the column of the "
                    f"{column.role}, say which one is.",
                    path=text.path,
                    line=line,
                    value=fields[column.index],
                )
    return DataError(f"The file cannot be read as a table: {reason}.", path=text.path)


def _value_problem(value: str, column: Column, text: Text) -> str | None:
    decimal, thousands = text.decimal, text.thousands
    if column.kind in ("any", "label") or is_code(value, column.codes, decimal, thousands):
        return None
    if not value.strip():
        return "is blank"
    if column.kind == "number" and parse_number(value, decimal, thousands) is None:
        other = "a decimal comma" if decimal == "." else "a decimal point"
        hint = ""
        if parse_number(value, "," if decimal == "." else ".") is not None:
            hint = f" (it has {other}; set the decimal sign)"
        return f"is not a finite number{hint}"
    if column.kind == "integer id" and not is_canonical_integer(value.strip()):
        return "is not a whole number"
    return None
