"""Files that come with ratings and hold none, and lists of one person: refused by their layout.

Read as a plain table they would load, with movies as users and numbers of another catalogue as
ratings.
"""

from __future__ import annotations

import re

from gmc_core.base.errors import DataError
from gmc_core.data.readers import delimited, matrix_market, netflix
from gmc_core.data.readers.doubts import NO_RATINGS
from gmc_core.data.readers.one_person import kind_of
from gmc_core.data.readers.source import Member, Source
from gmc_core.data.readers.text import BOM

# Name → its first line, what it holds, where the ratings are.
_BY_NAME = {
    "movies.dat": (rb"\d+::.*::", "titles of MovieLens", "ratings.dat"),
    "users.dat": (rb"\d+::[MF]::", "users of MovieLens", "ratings.dat"),
    "tags.dat": (rb"\d+::\d+::", "tags of MovieLens", "ratings.dat"),
    "u.item": (rb"\d+\|", "titles of MovieLens", "u.data"),
    "u.user": (rb"\d+\|", "users of MovieLens", "u.data"),
    "u.genre": (rb"[^|]*\|\d+", "genres of MovieLens", "u.data"),
    "movie.txt": (rb"(\d+|ID)\t", "movies of EachMovie", "vote.txt"),
    "person.txt": (rb"(\d+|ID)\t", "people of EachMovie", "vote.txt"),
    "movie_titles.txt": (rb"\d+,", "titles of Netflix", "combined_data_1.txt or mv_*.txt"),
    "movie_titles.csv": (rb"\d+,", "titles of Netflix", "combined_data_1.txt or mv_*.txt"),
}
ONE_PERSON = (
    "This is one person's list ({kind}), and a model needs the ratings of many people. Fit a model "
    "to other data, then rate with this list: gmc recommend --ratings-file FILE, or an upload on "
    "the Recommend page; a few titles with gmc recommend --rate."
)


def refuse_companion(source: Source) -> None:
    """Raise where all that could be read comes beside ratings, or is one person's list.

    Raises
    ------
    DataError
        With what the file holds and where the ratings are.
    """
    members = [source.single] if source.single is not None else delimited.candidates(source)
    held = [_holds(member) for member in members]
    if members and all(held):
        holds, ratings = next(entry for entry in held if entry)
        what = "This file holds" if len(members) == 1 else "None of the files here holds ratings;"
        which = "" if len(members) == 1 else f"{members[0].name} has "
        raise DataError(
            f"{what} {which}{holds}, no ratings; give {ratings}, or the folder with both.",
            path=members[0].label if len(members) == 1 else source.path,
        )
    if len(members) == 1:
        refuse_one_person(members[0])


def _holds(member: Member) -> tuple[str, str] | None:
    """What a file holds instead of ratings, and which file of its set holds these."""
    start = member.head().removeprefix(BOM)
    of_movielens = NO_RATINGS.get(tuple(name.lower() for name in _header(start)))
    if of_movielens is not None:
        return f"{of_movielens} (of MovieLens)", "ratings.csv"
    pattern, holds, ratings = _BY_NAME.get(member.name.lower(), (b"", "", ""))
    return (holds, ratings) if holds and re.match(pattern, start) else None


def _header(start: bytes) -> list[str]:
    """Names in a first line with commas."""
    first = start[:4096].lstrip().split(b"\n")[0].decode("latin-1")
    return [name.strip().strip('"') for name in first.split(",")]


def refuse_one_person(member: Member) -> None:
    """Raise for a list of one person's ratings, with the way to use it."""
    kind = kind_of(member.head())
    if kind is not None:
        raise DataError(ONE_PERSON.format(kind=kind), path=member.label)


def refuse_ratings(member: Member) -> None:
    """Raise, for a plain table, where a file holds ratings in a layout that is no table.

    Raises
    ------
    DataError
        With the way to complete ratings.
    """
    start = member.head().removeprefix(BOM)
    kind = "a Matrix Market file" if matrix_market.is_matrix(start) else ""
    if netflix.is_netflix(start):
        kind = "in the layout of Netflix (a movie, its ratings below)"
    if kind:
        raise DataError(
            f"This is {kind}, no table with a header line. If it holds ratings: gmc fit --data, "
            "then gmc complete --model; otherwise write it as CSV.",
            path=member.label,
        )
