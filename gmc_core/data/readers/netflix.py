"""The Netflix Prize: a line ``1:`` names a movie, ``user,rating,date`` follow below it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from gmc_core.base.errors import DataError
from gmc_core.data.readers.assemble import Parts
from gmc_core.data.readers.common import check_scale
from gmc_core.data.readers.scales import STARS
from gmc_core.data.readers.source import Member, Source
from gmc_core.data.readers.table import Column, Table, Text, line_of_row, read_table
from gmc_core.data.readers.text import BOM, Item, decode, numbered_lines, to_utf8
from gmc_core.data.readers.time_column import times_reader
from gmc_core.data.readers.vocabulary import Encoded

NAME = "netflix"
NAMED = re.compile(r"(mv_\d+|combined_data_\d+)\.txt")
COLUMNS = (Column(0, "user id", "integer id"), Column(1, "rating", "number"))
_MOVIE = re.compile(rb"(?m)^[ \t]*(\d{1,18}):[ \t]*\r?$")
_START = re.compile(rb"\s*\d{1,18}:[ \t]*[\r\n]\s*\d+[ \t]*([,\r\n]|$)")
_ROW = re.compile(rb"(?m)^.*\S")


def matches(source: Source) -> bool:
    """Whether the file starts with a movie's line, or the folder holds files named so."""
    if source.single is not None:
        return is_netflix(source.single.head().removeprefix(BOM))
    return bool(_candidates(source))


def is_netflix(start: bytes) -> bool:
    """Whether a file starts with a movie's line and a user's below it."""
    return _START.match(start) is not None


def _candidates(source: Source) -> list[Member]:
    if source.single is not None:
        return [source.single]
    named = [member for member in source.members if NAMED.fullmatch(member.name.lower())]
    return sorted(named, key=lambda member: member.name)


def read(source: Source) -> Parts:
    """Read one file, or all ``mv_*.txt`` and ``combined_data_*.txt`` of a folder or zip.

    The scale is 1..5. Of the files ``probe.txt`` and ``qualifying.txt``, which hold no ratings,
    neither is read.
    """
    members = _candidates(source)
    if not members:
        raise DataError(
            "The format netflix needs files mv_0000001.txt, … or combined_data_1.txt, …, which "
            "were not found; give the folder or zip that holds them, or one of them.",
            path=source.path,
        )
    contents = [to_utf8(member.read(), member.label) for member in members]
    label = members[0].label
    if len(members) > 1:
        label += f" and {len(members) - 1:,} more files"
    # One text for all: a table of its own for each of 17,770 files would take minutes.
    joined = b"\n".join(content.rstrip(b"\r\n") for content, _ in contents)
    try:
        text, table, items, movies = _read(joined, label)
    except DataError:
        if len(members) > 1:
            for member, (content, _) in zip(members, contents, strict=True):
                _read(content, member.label)  # raises where the fault is
        raise
    values = table.numbers("rating")
    known_items, notes = _titles(source)
    return Parts(
        source=label,
        format=NAME,
        encoding=", ".join(sorted({encoding for _, encoding in contents})),
        users=table.encoded("user id"),
        items=items,
        values=values,
        scale=STARS,
        scale_found="known: Netflix",
        line_of=lambda row: line_of_row(text, row),
        times=times_reader(text, 2),
        known_items=known_items,
        blank_lines=max(0, text.data.count(b"\n") + 1 - table.rows - movies),
        notes=notes,
    )


def _read(data: bytes, label: str) -> tuple[Text, Table, Encoded, int]:
    """The rows, as a text whose movies' lines are blank, and each row's movie, and their lines."""
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    movies = list(_MOVIE.finditer(data))
    start = data[: movies[0].start()] if movies else data
    if start.strip():
        raise DataError(
            "The first line should be a movie's number with a colon, such as 1:. Correct the "
            "line, or read the file as 'delimited'.",
            path=label,
            line=start.count(b"\n", 0, len(start) - len(start.lstrip())) + 1,
        )
    text = Text(_MOVIE.sub(b"", data), label, ",")
    first = _ROW.search(text.data)
    if first is not None and b"," not in first[0].strip().partition(b",")[2]:
        raise DataError(
            "Below each movie stand users without ratings, as in the Prize's probe.txt and "
            "qualifying.txt; give the training set (mv_*.txt or combined_data_*.txt).",
            path=label,
            line=data.count(b"\n", 0, data.find(first[0].strip())) + 1,
            value=first[0].strip().decode(errors="replace"),
        )
    table = read_table(text, COLUMNS)
    check_scale(table.numbers("rating"), STARS, text)
    ids = np.array([int(movie[1]) for movie in movies], dtype=np.int64)
    ends = [movie.start() for movie in movies[1:]] + [len(data)]
    counts = _counts(data, [movie.end() for movie in movies], ends, table.rows)
    distinct, codes = np.unique(ids, return_inverse=True)
    items = Encoded(distinct, codes.astype(np.int32).repeat(counts))
    return text, table, items.take(np.ones(table.rows, dtype=bool)), len(movies)


def _counts(data: bytes, starts: Sequence[int], ends: Sequence[int], rows: int) -> list[int]:
    """Rows below each movie's line."""
    counts = [
        data.count(b"\n", start + 1, end) + (end == len(data) and not data.endswith(b"\n"))
        for start, end in zip(starts, ends, strict=True)
    ]
    if sum(counts) != rows:  # blank lines
        counts = [
            sum(1 for _ in _ROW.finditer(data, start, end))
            for start, end in zip(starts, ends, strict=True)
        ]
    return counts


def _titles(source: Source) -> tuple[dict[str, Item], tuple[str, ...]]:
    """``movie_titles.txt`` or ``.csv``: id,year,title; a title may hold commas."""
    member = source.find("movie_titles.txt", "movie_titles.csv")
    if member is None:
        return {}, ("there is no movie_titles.txt, so items have no titles",)
    content, used = decode(member.read(), member.label)
    known = {}
    for line, row in numbered_lines(content):
        fields = row.strip().split(",", 2)
        if len(fields) < 3 or not fields[0].strip().isdecimal():
            raise DataError(
                "A movie needs id,year,title. Correct the line or delete it.",
                path=member.label,
                line=line,
                value=row,
            )
        year = float(fields[1]) if fields[1].strip().isdecimal() else float("nan")
        known[fields[0].strip()] = Item(fields[2].strip(), year)
    return known, (f"titles from {member.label}, encoding {used}",)
