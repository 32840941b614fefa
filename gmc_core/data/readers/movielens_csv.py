"""MovieLens latest-small, latest, 20M, 25M and 32M: ``ratings.csv`` and ``movies.csv``."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import DataError
from gmc_core.data.readers.assemble import Parts
from gmc_core.data.readers.common import check_scale, needed, triplet_columns
from gmc_core.data.readers.pieces import read_pieces
from gmc_core.data.readers.scales import HALF_STARS, first_off_scale
from gmc_core.data.readers.source import Member, Source
from gmc_core.data.readers.table import Text, line_of_row, read_table
from gmc_core.data.readers.text import BOM, Companions, Item, decode, split_genres, to_utf8, year_of
from gmc_core.data.readers.time_column import ReadTimes, TimeColumn, times_reader
from gmc_core.data.readers.vocabulary import Encoded

NAME = "movielens-csv"
HEADER = ["userId", "movieId", "rating", "timestamp"]


def matches(source: Source) -> bool:
    """Whether there is a ``ratings.csv`` with MovieLens's header."""
    if source.single is not None and source.single.name.lower() != "ratings.csv":
        return False
    member = source.find("ratings.csv")
    return member is not None and _header(member.head()) == HEADER


def _header(data: bytes) -> list[str]:
    first = data[:4096].removeprefix(BOM).split(b"\n")[0].decode("latin-1")
    return [name.strip().strip('"') for name in first.split(",")]


def read(source: Source) -> Parts:
    """Read the ratings, with titles if there is a ``movies.csv``; the scale is .5..5."""
    member = needed(source, "ratings.csv", NAME)
    return _read_pieces(source, member) or _read_whole(source, member)


def _read_pieces(source: Source, member: Member) -> Parts | None:
    """What is read of a large file without holding its text; None where that must be seen whole."""
    if _header(member.head()) != HEADER:
        return None
    found = read_pieces(member, ",")
    if found is None or first_off_scale(found[2], HALF_STARS) is not None:
        return None
    users, items, values, times = found

    def line_of(row: int) -> int:
        text, _ = _text(member)
        return line_of_row(text, row)

    return _parts(
        source, member, "ascii", users, items, values, line_of, lambda deciding: TimeColumn(times)
    )


def _read_whole(source: Source, member: Member) -> Parts:
    text, encoding = _text(member)
    table = read_table(text, triplet_columns(0, 1, 2))
    values = table.numbers("rating")
    check_scale(values, HALF_STARS, text)
    parts = _parts(
        source,
        member,
        encoding,
        table.encoded("user id"),
        table.encoded("item id"),
        values,
        lambda row: line_of_row(text, row),
        times_reader(text, 3),
    )
    return replace(parts, blank_lines=table.blank_lines)


def _text(member: Member) -> tuple[Text, str]:
    raw = member.read()
    if _header(raw) != HEADER:
        raise DataError(
            f"The first line should be {','.join(HEADER)}. Read the file as 'delimited' if its "
            "columns are others.",
            path=member.label,
            line=1,
        )
    data, encoding = to_utf8(raw, member.label)
    return Text(data, member.label, ",", header=True, quotes=b'"' in data), encoding


def _parts(
    source: Source,
    member: Member,
    encoding: str,
    users: Encoded,
    items: Encoded,
    values: npt.NDArray[np.float64],
    line_of: Callable[[int], int],
    times: ReadTimes,
) -> Parts:
    about = companions(source)
    return Parts(
        source=member.label,
        format=NAME,
        encoding=encoding,
        users=users,
        items=items,
        values=values,
        scale=HALF_STARS,
        scale_found="known: MovieLens half stars",
        line_of=line_of,
        times=times,
        known_items=about.items,
        notes=about.notes,
    )


def companions(source: Source) -> Companions:
    """Titles from ``movies.csv``, if there is one with MovieLens's columns."""
    movies = source.find("movies.csv")
    if movies is None:
        return Companions()
    known, used = _read_movies(movies)
    return Companions(known, notes=(f"titles from {movies.label}, encoding {used}",))


def _read_movies(member: Member) -> tuple[dict[str, Item], str]:
    content, encoding = decode(member.read(), member.label)
    reader = csv.reader(io.StringIO(content, newline=""))
    known = {}
    try:
        rows = [(reader.line_num, fields) for fields in reader]
    except csv.Error as error:
        raise DataError(
            f"The row cannot be divided into columns ({error}); a quotation mark may not be "
            "closed.",
            path=member.label,
            line=reader.line_num,
        ) from error
    for line, fields in rows:
        if not any(fields) or fields[:2] == ["movieId", "title"]:
            continue
        if len(fields) != 3:
            raise DataError(
                "A movie needs movieId,title,genres, with quotes around a title that holds a "
                "comma. Correct the line or delete it.",
                path=member.label,
                line=line,
                value=",".join(fields),
            )
        known[fields[0].strip()] = Item(fields[1], year_of(fields[1]), split_genres(fields[2]))
    return known, encoding
