"""MovieLens 100K: ``u.data`` (tabs) with ``u.item``, ``u.user`` and ``u.genre``."""

from __future__ import annotations

import math
import re

from gmc_core.base.errors import DataError
from gmc_core.data.readers.assemble import Parts
from gmc_core.data.readers.common import check_scale, needed, triplet_columns
from gmc_core.data.readers.published_folds import published_folds
from gmc_core.data.readers.scales import STARS
from gmc_core.data.readers.source import Member, Source
from gmc_core.data.readers.table import Text, line_of_row, read_table
from gmc_core.data.readers.text import (
    Companions,
    Item,
    decode,
    number_or_nan,
    numbered_lines,
    to_utf8,
    year_of,
)
from gmc_core.data.readers.time_column import times_reader

NAME = "movielens-100k"
USER_NAMES = ("age", "gender", "occupation", "zip_code")
GENRES = (
    "unknown",
    "Action",
    "Adventure",
    "Animation",
    "Children's",
    "Comedy",
    "Crime",
    "Documentary",
    "Drama",
    "Fantasy",
    "Film-Noir",
    "Horror",
    "Musical",
    "Mystery",
    "Romance",
    "Sci-Fi",
    "Thriller",
    "War",
    "Western",
)
COLUMNS_BEFORE_GENRES = 5  # id, title, release date, video release date, URL


def matches(source: Source) -> bool:
    """Whether there is a ``u.data``."""
    if source.single is not None and source.single.name.lower() != "u.data":
        return False
    return source.find("u.data") is not None


def read(source: Source) -> Parts:
    """Read the ratings with what there is of titles and users; the scale is 1..5."""
    member = needed(source, "u.data", NAME)
    data, encoding = to_utf8(member.read(), member.label)
    text = Text(data, member.label, "\t")
    table = read_table(text, triplet_columns(0, 1, 2))
    values = table.numbers("rating")
    check_scale(values, STARS, text)
    about = companions(source)
    notes = [*about.notes]
    folds, on_folds = published_folds(source, table)
    if on_folds:
        notes.append(on_folds)
    return Parts(
        source=member.label,
        format=NAME,
        encoding=encoding,
        users=table.encoded("user id"),
        items=table.encoded("item id"),
        values=values,
        scale=STARS,
        scale_found="known: MovieLens 100K",
        line_of=lambda row: line_of_row(text, row),
        times=times_reader(text, 3),
        folds=folds,
        known_items=about.items,
        known_users=about.users,
        user_names=about.user_names,
        blank_lines=table.blank_lines,
        notes=tuple(notes),
    )


def companions(source: Source) -> Companions:
    """Titles from ``u.item`` and users from ``u.user``, as far as these are there."""
    items, users = source.find("u.item"), source.find("u.user")
    known: dict[str, Item] = {}
    notes = []
    if items is not None:
        known, used = _read_items(items, _read_genres(source.find("u.genre")))
        notes.append(f"titles from {items.label}, encoding {used}")
    return Companions(known, {} if users is None else _read_users(users), USER_NAMES, tuple(notes))


def _read_genres(member: Member | None) -> tuple[str, ...]:
    """Genre names by flag position, from ``u.genre`` or the list of the original."""
    if member is None:
        return GENRES
    content, _ = decode(member.read(), member.label)
    numbered = []
    for line, row in numbered_lines(content):
        name, _, number = row.strip().rpartition("|")
        if not number.isdigit():
            raise DataError(
                "A genre needs name|number. Correct the line, or delete the file to use the "
                "names of the original.",
                path=member.label,
                line=line,
                value=row,
            )
        numbered.append((int(number), name))
    return tuple(name for _, name in sorted(numbered))


def _read_items(member: Member, genres: tuple[str, ...]) -> tuple[dict[str, Item], str]:
    content, encoding = decode(member.read(), member.label)
    known = {}
    for line, row in numbered_lines(content):
        fields = row.strip().split("|")
        flags = fields[COLUMNS_BEFORE_GENRES:]
        if len(flags) != len(genres):
            raise DataError(
                f"A movie needs {COLUMNS_BEFORE_GENRES} columns and {len(genres)} genre flags, "
                "separated by |. Correct the line or delete it.",
                path=member.label,
                line=line,
                value=row,
            )
        year = year_of(fields[1])
        release = re.search(r"\b(\d{4})$", fields[2].strip())
        if math.isnan(year) and release:
            year = float(release[1])
        marked = zip(genres, flags, strict=True)
        chosen = tuple(name for name, flag in marked if flag == "1" and name != "unknown")
        known[fields[0].strip()] = Item(fields[1], year, chosen)
    return known, encoding


def _read_users(member: Member) -> dict[str, tuple[object, ...]]:
    content, _ = decode(member.read(), member.label)
    known: dict[str, tuple[object, ...]] = {}
    for line, row in numbered_lines(content):
        fields = [field.strip() for field in row.split("|")]
        if len(fields) != 5:
            raise DataError(
                "A user needs id|age|gender|occupation|zip code. Correct the line or delete it.",
                path=member.label,
                line=line,
                value=row,
            )
        known[fields[0]] = (number_or_nan(fields[1]), *fields[2:])
    return known
