"""Checks for files that were probably read wrongly: other files, row numbers, lone values."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import DataError
from gmc_core.base.table_files import number_text
from gmc_core.data.readers.table import Text
from gmc_core.data.readers.vocabulary import Encoded

# Files of MovieLens that hold no ratings, by the columns that they have.
NO_RATINGS = {
    ("movieid", "imdbid", "tmdbid"): "numbers of films elsewhere",
    ("movieid", "tagid", "relevance"): "how well tags fit films",
    ("userid", "movieid", "tag", "timestamp"): "tags",
    ("tagid", "tag"): "names of tags",
    ("movieid", "title", "genres"): "titles",
}
_RUINED = re.compile(r"[+-]?\d([.,]\d+)?E\+\d{2,}")
LEAST_ROWS = 5  # before anything is concluded from them
MOST_LEVELS = 101  # of a rating scale of whole numbers
DISTINCT = 0.9  # share of ratings that differ, of a column that is none


def refuse_other_files(names: Sequence[str], path: str) -> None:
    """Raise a DataError if the header is that of a file of MovieLens without ratings."""
    what = NO_RATINGS.get(tuple(name.strip().lower() for name in names))
    if what is None:
        return
    ratings = Path(path).with_name("ratings.csv")
    raise DataError(
        f"This is MovieLens's file of {what}, which holds no ratings; give ratings.csv"
        f"{' (' + str(ratings) + ')' if ratings.is_file() else ''}. If it shall be read all the "
        "same, say which columns are the user, the item and the rating.",
        path=path,
    )


def refuse_no_ratings(
    users: Encoded,
    values: npt.NDArray[np.float64],
    names: tuple[str, str],
    by_position: Collection[str],
    text: Text,
) -> None:
    """Raise a DataError if columns taken by position cannot be users or ratings.

    names : of the columns of users and ratings. by_position : roles that neither a person
    nor a name has given. (rows,) users and values.
    """
    rows = len(values)
    if rows < LEAST_ROWS:
        return
    way_out = "Say which columns are the user, the item and the rating (user=…,item=…,rating=…)"
    if "rating" in by_position:
        distinct = np.unique(values)
        whole = bool(np.all(values == np.round(values)))
        if (
            whole
            and len(distinct) >= DISTINCT * rows
            and distinct[-1] - distinct[0] + 1 > MOST_LEVELS
        ):
            raise DataError(
                f"The column {names[1]!r} was taken for the rating, but its values are nearly all "
                f"different whole numbers ({len(distinct):,} in {rows:,} rows), as numbers of "
                f"things are. {way_out}.",
                path=text.path,
            )
    # Without a header a first column may well be the users' own numbers.
    if text.header and "user" in by_position and users.are_integers and len(users.ids) == rows:
        ids = users.values()
        if bool(np.all(np.diff(ids) == 1)) and ids[0] in (0, 1):
            raise DataError(
                f"The column {names[0]!r} was taken for the user, but it numbers the rows. "
                f"{way_out}.",
                path=text.path,
            )


def single_ratings_note(users: Encoded, rows: int, name: str) -> str | None:
    """A sentence if no user has two ratings."""
    if rows < LEAST_ROWS or len(users.ids) < rows:
        return None
    return (
        f"every user has one rating only, from which nothing can be learned; if {name!r} is not "
        "the column of users, say which one is"
    )


def ruined_ids(texts: Sequence[str]) -> list[str]:
    """The ids that a spreadsheet has shortened, such as 1.23457E+18."""
    return [text for text in texts if _RUINED.fullmatch(text.strip())]


def ruined_note(role: str, ruined: Sequence[str], line: int) -> str:
    """A sentence on such ids; line : of the first."""
    return (
        f"{len(ruined):,} ids of the {role} column look as if a spreadsheet had shortened them "
        f"({ruined[0]} in line {line}): different ids may have become one. Export them again "
        "with the column as text"
    )


def counts_rows(
    cells: Sequence[object], least: int, written: Callable[[int], object] = int
) -> bool:
    """Whether a column numbers the rows from 0 or 1.

    cells : from the first row on. least : rows from which that is no accident. written : how
    the column writes a number.
    """
    return len(cells) >= least and any(
        all(cell == written(start + row) for row, cell in enumerate(cells)) for start in (0, 1)
    )


class End(NamedTuple):
    """The lowest or highest value of a column, its distance to the next, the others' width."""

    value: float
    gap: float
    width: float


def ends(distinct: npt.NDArray[np.float64]) -> tuple[End, End]:
    """Lowest and highest of a column; distinct : (at least 2,) its values, rising."""
    low, *_, high = distinct.tolist()
    second, last_but_one = float(distinct[1]), float(distinct[-2])
    return (
        End(low, second - low, high - second),
        End(high, high - last_but_one, last_but_one - low),
    )


def far_off(values: npt.NDArray[np.float64]) -> float | None:
    """A lone lowest or highest value that may stand for "not rated"; None if there is none.

    Lone is a negative value below at least three that are not, unless they are small as
    well (-1, 0, 1), and one that is further from the rest than twice the rest is wide. Of
    tables :func:`gmc_core.tables.table_columns.far_off_notes` asks less, as there a value
    that means "missing" occurs again and again.
    """
    distinct = np.unique(values)
    if len(distinct) < 4:
        return None
    low, high = ends(distinct)
    negative = low.value < 0 <= distinct[1] and distinct[-1] >= 3 * min(-low.value, 1)
    if negative and low.value.is_integer() and low.width > 1:
        return low.value
    for end in (low, high):
        if end.gap > 2 * end.width > 0:
            return end.value
    return None


def far_off_note(value: float, count: int, rest: npt.NDArray[np.float64]) -> str:
    """A sentence on such a value; count : of ratings that have it; rest : the others."""
    times = "time" if count == 1 else "times"
    return (
        f"the value {number_text(value)} ({count:,} {times}) lies apart from the others "
        f'({rest.min():g} to {rest.max():g}); if it means "not rated", say so '
        f"(--not-rated {number_text(value)})"
    )
