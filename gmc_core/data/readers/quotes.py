"""Quotation marks: which of them enclose a cell, and which are only text.

A cell that opens with a quotation mark by accident (a name, inches) would take the
rows below it into itself, down to the next mark, and they would be lost unnoticed. So every
cell that does not close on its own line is looked at before a text is read.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import islice

from gmc_core.base.errors import DataError

WHITESPACE = "whitespace"
_BLANK_LINE = re.compile(rb"\n[ \t]*\r?(?=\n)")
WIDTH_LINES = 200  # from which the number of columns is taken


@dataclass(frozen=True)
class Settled:
    """A text in which every quotation mark at the start of a cell encloses a cell.

    data : the text; cells that open and never close are enclosed whole.
    quotes : whether any cell is enclosed.
    inner_lines : line ends inside of cells. inner_blank : blank lines inside of cells.
    cells : where cells of several lines begin and end, in the text as it was given.
    odd, first_odd : marks taken as text, and the line of the first (0: none).
    """

    data: bytes
    quotes: bool
    inner_lines: int = 0
    odd: int = 0
    first_odd: int = 0
    inner_blank: int = 0
    cells: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class _Patterns:
    unclosed: re.Pattern[bytes]  # an opening mark that is not closed on its line
    closed: re.Pattern[bytes]  # an enclosed cell on one line
    spanning: re.Pattern[bytes]  # an enclosed cell of one or more lines
    proper: re.Pattern[bytes]  # "closed" between separators
    end: re.Pattern[bytes]  # of a cell that is not enclosed


@cache
def _patterns(separator: str) -> _Patterns:
    sign = rb" \t" if separator == WHITESPACE else re.escape(separator.encode())
    start = rb"(?:\A|(?<=[" + sign + rb"\n]))"
    after = rb"(?=[" + sign + rb"\r\n]|\Z)"
    one_line = rb'"[^"\n]*(?:""[^"\n]*)*"'
    lines = rb'"[^"]*(?:""[^"]*)*"'
    return _Patterns(
        re.compile(start + rb'"(?!' + one_line[1:] + after + rb")"),
        re.compile(one_line),
        re.compile(lines + after),
        re.compile(start + one_line + after),
        re.compile(rb"[" + sign + rb"\n]|\Z"),
    )


def settle(data: bytes, separator: str, path: str) -> Settled:
    """Decide on every quotation mark of a text whose line ends are line feeds.

    A mark that never closes is text, and so is one in a text divided by tabs that encloses
    no cell elsewhere.

    Raises
    ------
    DataError
        If a mark opens on one line and closes on another, and the lines between are rows
        by themselves.
    """
    if b'"' not in data or separator == "::":
        return Settled(data, False)
    patterns = _patterns(separator)
    if patterns.unclosed.search(data) is None:
        return Settled(data, patterns.proper.search(data) is not None)
    enclosing = patterns.proper.search(data) is not None
    width = _width(data, patterns)
    edits: list[tuple[int, int]] = []
    cells: list[tuple[int, int]] = []
    place = 0
    while hit := patterns.unclosed.search(data, place):
        start = max(place, data.rfind(b"\n", 0, hit.start()) + 1)
        opening = _unclosed(data, start, patterns)
        if opening is None:  # it stands inside of a cell
            place = _next_line(data, start)
            continue
        cell = patterns.spanning.match(data, opening)
        if cell is not None and separator != WHITESPACE:
            first = data.rfind(b"\n", 0, opening) + 1
            if not _are_rows(data[first : _next_line(data, cell.end())], width, patterns):
                cells.append((opening, cell.end()))
                place = _after_cell(data, cell.end())
                continue
            if enclosing or separator != "\t":
                raise _encloses_rows(data, opening, cell.end(), path)
        end = patterns.end.search(data, opening)
        assert end is not None
        edits.append((opening, end.start()))
        place = _after_cell(data, end.start())
    line = data.count(b"\n", 0, edits[0][0]) + 1 if edits else 0
    if edits and not enclosing and not cells:
        return Settled(data, False, 0, len(edits), line)
    inner = sum(data.count(b"\n", *cell) for cell in cells)
    blank = sum(len(_BLANK_LINE.findall(data, *cell)) for cell in cells)
    return Settled(_enclosed(data, edits), True, inner, len(edits), line, blank, tuple(cells))


def _next_line(data: bytes, place: int) -> int:
    end = data.find(b"\n", place)
    return len(data) if end < 0 else end + 1


def _after_cell(data: bytes, end: int) -> int:
    return end + 1 if end < len(data) else end


def _unclosed(data: bytes, place: int, patterns: _Patterns) -> int | None:
    """Where, from a cell's start to the end of its line, a cell opens that does not close."""
    while place < len(data):
        if data[place : place + 1] == b'"':
            closed = patterns.closed.match(data, place)
            if closed is None:
                return place
            place = closed.end()
        end = patterns.end.search(data, place)
        assert end is not None
        if end.start() == len(data) or data[end.start() : end.end()] == b"\n":
            return None
        place = end.end()
    return None


def _columns(line: bytes, patterns: _Patterns) -> int:
    return len(patterns.end.findall(patterns.proper.sub(b"x", line.rstrip(b"\r\n"))))


def _width(data: bytes, patterns: _Patterns) -> int:
    """The usual number of columns of a line."""
    lines = [line for line in data[: 1 << 18].split(b"\n") if line.strip()]
    whole = [line for line in lines if line.count(b'"') % 2 == 0] or lines
    counts = Counter(_columns(line, patterns) for line in islice(whole, WIDTH_LINES))
    return counts.most_common(1)[0][0]


def _are_rows(lines: bytes, width: int, patterns: _Patterns) -> bool:
    """Whether each of the lines has as many columns as a row, if its marks are text."""
    each = lines.rstrip(b"\r\n").split(b"\n")
    return width > 1 and all(_columns(line, patterns) == width for line in each if line.strip())


def _encloses_rows(data: bytes, opening: int, end: int, path: str) -> DataError:
    closing = data.count(b"\n", 0, end) + 1
    return DataError(
        f"A quotation mark opens a cell here that closes in line {closing}, around what are rows "
        'by themselves. Remove the mark, or write the cell as "…" with every mark inside doubled.',
        path=path,
        line=data.count(b"\n", 0, opening) + 1,
        value=data[opening : opening + 40].split(b"\n")[0].decode(errors="replace"),
    )


def _enclosed(data: bytes, edits: list[tuple[int, int]]) -> bytes:
    parts, place = [], 0
    for start, end in edits:
        cell = data[start:end]
        tail = b"\r" if cell.endswith(b"\r") else b""
        cell = cell.removesuffix(b"\r").replace(b'"', b'""')
        parts += [data[place:start], b'"', cell, b'"', tail]
        place = end
    return b"".join([*parts, data[place:]])
