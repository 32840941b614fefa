"""MovieLens 1M and 10M: ``ratings.dat`` and ``movies.dat``, separated by ``::``."""

from __future__ import annotations

import numpy as np

from gmc_core.base.errors import DataError
from gmc_core.data.readers.assemble import Parts
from gmc_core.data.readers.common import check_scale, needed, triplet_columns
from gmc_core.data.readers.scales import HALF_STARS, STARS
from gmc_core.data.readers.source import Member, Source
from gmc_core.data.readers.table import Text, line_of_row, read_table
from gmc_core.data.readers.text import (
    Companions,
    Item,
    decode,
    number_or_nan,
    numbered_lines,
    split_genres,
    to_utf8,
    year_of,
)
from gmc_core.data.readers.time_column import times_reader

NAME = "movielens-dat"
USER_NAMES = ("gender", "age", "occupation", "zip_code")

# users.dat gives the lowest age of each bracket and a number for the occupation.
AGES = {
    "1": "under 18",
    "18": "18-24",
    "25": "25-34",
    "35": "35-44",
    "45": "45-49",
    "50": "50-55",
    "56": "56+",
}
OCCUPATIONS = (
    "other",
    "academic/educator",
    "artist",
    "clerical/admin",
    "college/grad student",
    "customer service",
    "doctor/health care",
    "executive/managerial",
    "farmer",
    "homemaker",
    "K-12 student",
    "lawyer",
    "programmer",
    "retired",
    "sales/marketing",
    "scientist",
    "self-employed",
    "technician/engineer",
    "tradesman/craftsman",
    "unemployed",
    "writer",
)


def matches(source: Source) -> bool:
    """Whether there is a ``ratings.dat`` separated by ``::``."""
    if source.single is not None and source.single.name.lower() != "ratings.dat":
        return False
    member = source.find("ratings.dat")
    return member is not None and b"::" in member.head().split(b"\n")[0]


def read(source: Source) -> Parts:
    """Read the ratings with what there is of titles and users.

    The scale is .5..5 in halves (10M) if there is a fractional rating or a
    ``tags.dat``, which 1M does not have; else whole stars 1..5 (1M).
    """
    member = needed(source, "ratings.dat", NAME)
    data, encoding = to_utf8(member.read(), member.label)
    text = Text(data, member.label, "::")
    table = read_table(text, triplet_columns(0, 1, 2))
    values = table.numbers("rating")
    halves = bool(np.any(values != np.round(values))) or source.find("tags.dat") is not None
    scale = HALF_STARS if halves else STARS
    check_scale(values, scale, text)
    about = companions(source)
    return Parts(
        source=member.label,
        format=NAME,
        encoding=encoding,
        users=table.encoded("user id"),
        items=table.encoded("item id"),
        values=values,
        scale=scale,
        scale_found=f"known: MovieLens {'10M' if halves else '1M'}",
        line_of=lambda row: line_of_row(text, row),
        times=times_reader(text, 3),
        known_items=about.items,
        known_users=about.users,
        user_names=about.user_names,
        blank_lines=table.blank_lines,
        notes=about.notes,
    )


def companions(source: Source) -> Companions:
    """Titles from ``movies.dat`` and users from ``users.dat``, as far as these are there."""
    movies, users = source.find("movies.dat"), source.find("users.dat")
    known: dict[str, Item] = {}
    notes = []
    if movies is not None:
        known, used = _read_movies(movies)
        notes.append(f"titles from {movies.label}, encoding {used}")
    return Companions(known, {} if users is None else _read_users(users), USER_NAMES, tuple(notes))


def _read_movies(member: Member) -> tuple[dict[str, Item], str]:
    content, encoding = decode(member.read(), member.label)
    known = {}
    for line, row in numbered_lines(content):
        fields = row.split("::")
        if len(fields) < 3:
            raise DataError(
                "A movie needs id::title::genres. Correct the line or delete it.",
                path=member.label,
                line=line,
                value=row,
            )
        title = "::".join(fields[1:-1])
        known[fields[0].strip()] = Item(title, year_of(title), split_genres(fields[-1]))
    return known, encoding


def _read_users(member: Member) -> dict[str, tuple[object, ...]]:
    content, _ = decode(member.read(), member.label)
    known: dict[str, tuple[object, ...]] = {}
    for line, row in numbered_lines(content):
        fields = row.split("::")
        if len(fields) != 5:
            raise DataError(
                "A user needs id::gender::age::occupation::zip code. Correct the line or delete "
                "it.",
                path=member.label,
                line=line,
                value=row,
            )
        number, gender, age, occupation, zip_code = (field.strip() for field in fields)
        known[number] = (gender, age, _occupation(occupation), zip_code)
    brackets = all(own[1] in AGES for own in known.values())
    for number, (sex, code, *rest) in known.items():
        years = str(code)
        known[number] = (sex, AGES[years] if brackets else number_or_nan(years), *rest)
    return known


def _occupation(code: str) -> str:
    known = code.isascii() and code.isdigit() and int(code) < len(OCCUPATIONS)
    return OCCUPATIONS[int(code)] if known else code
