"""EachMovie: ``vote.txt`` with ``movie.txt`` and ``person.txt`` where there are any."""

from __future__ import annotations

import re

import numpy as np

from gmc_core.base.errors import DataError
from gmc_core.data.ratings import RatingScale
from gmc_core.data.readers.assemble import Parts
from gmc_core.data.readers.common import needed
from gmc_core.data.readers.scales import first_off_scale, off_scale_error
from gmc_core.data.readers.source import Member, Source
from gmc_core.data.readers.table import Column, Text, line_of_row, read_table
from gmc_core.data.readers.text import (
    Companions,
    Item,
    decode,
    number_or_nan,
    numbered_lines,
    to_utf8,
)
from gmc_core.data.readers.time_column import TimeColumn, times_reader

NAME = "eachmovie"
SCALE = RatingScale(1, 6, 1)
SOUNDS_AWFUL = "'sounds awful' votes (score 0 with a weight other than 1) are not ratings"
COLUMNS = (
    Column(0, "user id", "integer id"),
    Column(1, "item id", "integer id"),
    Column(2, "score", "number"),
    Column(3, "weight", "number"),
)
USER_NAMES = ("age", "gender", "zip_code")
GENRES = (
    "Action",
    "Animation",
    "Art_Foreign",
    "Classic",
    "Comedy",
    "Drama",
    "Family",
    "Horror",
    "Romance",
    "Thriller",
)
COLUMNS_BEFORE_GENRES = 8
THEATER_RELEASE = 5


def matches(source: Source) -> bool:
    """Whether there is a ``vote.txt``."""
    if source.single is not None and source.single.name.lower() != "vote.txt":
        return False
    return source.find("vote.txt") is not None


def read(source: Source) -> Parts:
    """Read the votes as ratings 5 × score + 1, so 1..6.

    A score of 0 whose weight is not 1 was given by people who had not seen the
    film and thought that it sounds awful; such votes are left out and counted.
    """
    member = needed(source, "vote.txt", NAME)
    data, encoding = to_utf8(member.read(), member.label)
    text = Text(data, member.label, "\t")
    table = read_table(text, COLUMNS)
    scores = table.numbers("score")
    exact = 5 * scores + 1
    values = np.round(exact)  # 5 × .6 + 1 is not exactly 4 in binary
    bad = np.abs(exact - values) > 1e-6
    row = int(np.argmax(bad)) if bad.any() else first_off_scale(values, SCALE)
    if row is not None:
        raise off_scale_error(float(exact[row]), SCALE, text.path, line_of_row(text, row))
    rating = ~((scores == 0) & (table.numbers("weight") != 1))
    kept = np.flatnonzero(rating)
    times = times_reader(text, 4)

    def kept_times(deciding: bool) -> TimeColumn:
        return times(deciding).rows(kept)

    about = companions(source)
    return Parts(
        source=member.label,
        format=NAME,
        encoding=encoding,
        users=table.encoded("user id").take(rating),
        items=table.encoded("item id").take(rating),
        values=values[rating],
        scale=SCALE,
        scale_found="known: EachMovie, 5 x score + 1",
        line_of=lambda row: line_of_row(text, int(kept[row])),
        times=kept_times,
        known_items=about.items,
        known_users=about.users,
        user_names=about.user_names,
        dropped=((SOUNDS_AWFUL, len(scores) - len(kept)),),
        blank_lines=table.blank_lines,
        notes=about.notes or ("there is no movie.txt, so items have no titles",),
    )


def companions(source: Source) -> Companions:
    """Titles from ``movie.txt`` and users from ``person.txt``, as far as these are there."""
    movies, persons = source.find("movie.txt"), source.find("person.txt")
    known: dict[str, Item] = {}
    notes = []
    if movies is not None:
        known, used = _read_movies(movies)
        notes.append(f"titles from {movies.label}, encoding {used}")
    people = {} if persons is None else _read_persons(persons)
    return Companions(known, people, USER_NAMES, tuple(notes))


def _read_movies(member: Member) -> tuple[dict[str, Item], str]:
    content, encoding = decode(member.read(), member.label)
    known = {}
    for line, row in numbered_lines(content):
        fields = [field.strip() for field in row.split("\t")]
        if line == 1 and fields[0] == "ID":
            continue
        if len(fields) < 2:
            raise DataError(
                "A movie needs an id and a name, separated by a tab. Correct the line or delete "
                "it.",
                path=member.label,
                line=line,
                value=row,
            )
        flags = fields[COLUMNS_BEFORE_GENRES:]
        # strict=False: flags at the end of a line may be missing
        marked = zip(GENRES, flags, strict=False)
        year = _year(fields[THEATER_RELEASE]) if len(fields) > THEATER_RELEASE else float("nan")
        known[fields[0]] = Item(fields[1], year, tuple(name for name, f in marked if f == "1"))
    return known, encoding


def _year(date: str) -> float:
    """The year of a date written 1996-11-22 or 11/22/96; the set ends in 1997."""
    full = re.search(r"(?<!\d)((?:19|20)\d\d)(?!\d)", date)
    if full:
        return float(full[1])
    short = re.match(r"\d{1,2}/\d{1,2}/(\d\d)(?!\d)", date)
    return 1900.0 + int(short[1]) if short else float("nan")


def _read_persons(member: Member) -> dict[str, tuple[object, ...]]:
    content, _ = decode(member.read(), member.label)
    known: dict[str, tuple[object, ...]] = {}
    for _, row in numbered_lines(content):
        fields = [field.strip() for field in row.split("\t")]
        age, gender, zip_code = (*fields[1:4], "", "", "")[:3]
        if fields[0] != "ID":
            known[fields[0]] = (number_or_nan(age), gender, zip_code)
    return known
