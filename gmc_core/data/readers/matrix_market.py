"""Matrix Market (``.mtx``): a sparse matrix of ratings, users in rows and items in columns."""

from __future__ import annotations

import re

import numpy as np

from gmc_core.base.errors import DataError
from gmc_core.data.readers.assemble import Parts
from gmc_core.data.readers.scales import LARGEST, find_scale
from gmc_core.data.readers.source import Member, Source
from gmc_core.data.readers.table import WHITESPACE, Column, Text, line_of_row, read_table
from gmc_core.data.readers.text import to_utf8

NAME = "matrix-market"
BANNER = b"%%matrixmarket"
COLUMNS = (
    Column(0, "user id", "integer id"),
    Column(1, "item id", "integer id"),
    Column(2, "rating", "number"),
)
_REFUSED = {
    "pattern": "says only which entries there are, without ratings",
    "complex": "holds complex numbers, which are no ratings",
    "array": "is dense, so that it does not say which ratings are missing",
}
_ENDS = re.compile(rb"\r\n?|\n")


def matches(source: Source) -> bool:
    """Whether a file starts with ``%%MatrixMarket``."""
    return any(is_matrix(member.head()) for member in _candidates(source))


def is_matrix(start: bytes) -> bool:
    """Whether a file starts as the format demands."""
    return start.lstrip()[: len(BANNER)].lower() == BANNER


def _candidates(source: Source) -> list[Member]:
    if source.single is not None:
        return [source.single]
    return [member for member in source.members if member.name.lower().endswith(".mtx")]


def read(source: Source) -> Parts:
    """Read a coordinate matrix of real numbers or integers; indices count from 1."""
    members = _candidates(source)
    if len(members) != 1:
        there = ", ".join(member.name for member in members[:10]) or "none"
        raise DataError(
            f"The format matrix-market needs one file .mtx; there is {there}. Give the path of "
            "the one to read.",
            path=source.path,
        )
    member = members[0]
    data, encoding = to_utf8(member.read(), member.label)
    lines, start = _preface(data, member.label)
    users, items, entries = _dimensions(*lines[-1], member.label)
    # Blank lines in place of those above the entries: errors count the file's own lines.
    text = Text(b"\n" * len(lines) + data[start:], member.label, WHITESPACE)
    if not data[start:].strip():
        raise DataError("The matrix has no entries; give one with ratings.", path=member.label)
    table = read_table(text, COLUMNS)
    values = table.numbers("rating")
    if table.rows != entries:
        raise DataError(
            f"The matrix should have {entries:,} entries and has {table.rows:,}, so the file may "
            "be incomplete; get a fresh copy, or correct the number.",
            path=member.label,
            line=len(lines),
        )
    for role, size in (("user id", users), ("item id", items)):
        ids = table.encoded(role).values()
        wrong = (ids < 1) | (ids > size)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"The {role} must lie in 1..{size:,}, as the line of the dimensions says. Correct "
                "the line.",
                path=member.label,
                line=line_of_row(text, row),
                value=int(ids[row]),
            )
    large = np.abs(values) > LARGEST
    if large.any():
        row = int(np.argmax(large))
        raise DataError(
            f"The rating is larger than {LARGEST:g}. Correct the line.",
            path=member.label,
            line=line_of_row(text, row),
            value=f"{values[row]:g}",
        )
    scale, scale_found = find_scale(values)
    return Parts(
        source=member.label,
        format=NAME,
        encoding=encoding,
        users=table.encoded("user id"),
        items=table.encoded("item id"),
        values=values,
        scale=scale,
        scale_found=scale_found,
        line_of=lambda row: line_of_row(text, row),
        blank_lines=max(0, table.blank_lines - len(lines)),
        notes=("rows are taken as users and columns as items",),
    )


def _preface(data: bytes, path: str) -> tuple[list[tuple[int, bytes]], int]:
    """Banner, comments and the line of the dimensions, and where the entries start."""
    lines, start = [], 0
    ends = [(match.start(), match.end()) for match in _ENDS.finditer(data, 0, 1 << 20)]
    for number, (end, following) in enumerate([*ends, (len(data), len(data))], 1):
        line = data[start:end].strip()
        lines.append((number, line))
        start = following
        if line and not line.startswith(b"%"):
            break
        if line[: len(BANNER)].lower() == BANNER:
            _check_banner(line.decode(errors="replace"), path, number)
    return lines, start


def _check_banner(line: str, path: str, number: int) -> None:
    words = [*line.lower().split(), "", "", "", ""][1:5]
    for word in words[1:3]:
        if word in _REFUSED:
            raise DataError(
                f"This Matrix Market file {_REFUSED[word]} ({word}); ratings are read from a "
                "coordinate matrix of real numbers or integers.",
                path=path,
                line=number,
            )
    known = words[0] == "matrix" and words[1] == "coordinate" and words[2] in ("real", "integer")
    if not known or words[3] not in ("general", ""):
        raise DataError(
            "Of Matrix Market, a 'matrix coordinate real general' (or integer) is read: users in "
            "rows, items in columns. Write the ratings in this form.",
            path=path,
            line=number,
            value=line,
        )


def _dimensions(number: int, line: bytes, path: str) -> tuple[int, int, int]:
    """Rows, columns and entries."""
    words = line.split()
    if len(words) != 3 or not all(word.isdigit() and len(word) < 16 for word in words):
        raise DataError(
            "The first line without % should give rows, columns and number of entries. Correct it.",
            path=path,
            line=number,
            value=line[:60].decode(errors="replace"),
        )
    users, items, entries = (int(word) for word in words)
    return users, items, entries
