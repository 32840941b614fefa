"""One person's list of ratings: exports of IMDb, Letterboxd, MovieLens, Goodreads, or any table."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from itertools import islice

import numpy as np

from gmc_core.base.errors import DataError
from gmc_core.data.ratings import RatingScale
from gmc_core.data.readers.delimited import DelimitedOptions, open_delimited, pick
from gmc_core.data.readers.numbers import find_form, parse_number, possible_forms
from gmc_core.data.readers.scales import HALF_STARS, STARS, first_off_scale, off_scale_error
from gmc_core.data.readers.source import Member, Source, open_source
from gmc_core.data.readers.table import numbered_rows
from gmc_core.data.readers.text import BOM


@dataclass(frozen=True)
class Export:
    """The layout of a service's export: its columns' names, and the scale of its ratings.

    marks : columns that no other layout has together.
    unrated : a rating that means none.
    """

    title: str
    marks: frozenset[str]
    name: str
    rating: str
    year: str | None
    id: str | None
    scale: RatingScale
    unrated: float | None = None


EXPORTS = (
    Export("an export of IMDb", frozenset({"const", "your rating"}),
           "title", "your rating", "year", None, RatingScale(1, 10, 1)),
    Export("an export of Letterboxd", frozenset({"name", "letterboxd uri", "rating"}),
           "name", "rating", "year", None, HALF_STARS),
    Export("an export of MovieLens", frozenset({"movie_id", "rating", "average_rating", "title"}),
           "title", "rating", None, "movie_id", HALF_STARS),
    Export("an export of Goodreads", frozenset({"book id", "my rating"}),
           "title", "my rating", None, None, STARS, unrated=0.0),
)  # fmt: skip
# Names of a plain list's columns, in the order in which they are looked for.
TITLES = ("title", "name", "movie", "film", "item", "book", "joke")
RATINGS = ("rating", "your rating", "my rating", "score", "stars", "grade")
YEARS = ("year", "release year", "released")
IDS = ("id", "item id", "itemid", "item_id", "movieid", "movie_id", "movie id")
# What else stands in a person's own list; any other column may mean that it is many people's.
OTHERS = frozenset(YEARS) | {
    "date", "watched date", "date rated", "date added", "timestamp", "review", "comment", "notes",
    "url", "uri", "link", "genre", "genres", "director", "directors", "author", "tags", "rewatch",
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A rated title: its line in the file, text, year (None: not told) and id there."""

    line: int
    title: str
    year: int | None
    id: str
    rating: float


@dataclass(frozen=True)
class PersonList:
    """One person's ratings, as they are in the file.

    kind : what the file is, in words. scale : of its ratings; None where it is not known.
    without_rating : rows that hold none.
    """

    path: str
    kind: str
    scale: RatingScale | None
    entries: tuple[Entry, ...]
    without_rating: int


def export_of(start: bytes) -> Export | None:
    """The service whose export begins with these bytes; None for any other file."""
    names = _header(start, ",")
    return next((export for export in EXPORTS if export.marks <= names), None)


def kind_of(start: bytes) -> str | None:
    """What a file is, in words, if its header says that one person has rated; else None."""
    export = export_of(start)
    if export is not None:
        return export.title
    for separator in (",", ";", "\t"):
        names = _header(start, separator)
        titles = names & set(TITLES)
        if titles and names & set(RATINGS) and names - titles - set(RATINGS) <= OTHERS:
            return "titles and ratings, no column of users"
    return None


def _header(start: bytes, separator: str) -> set[str]:
    """The names in the first line of a file, in small letters."""
    first = start[:8192].removeprefix(BOM).lstrip().replace(b"\r", b"\n").split(b"\n")[0]
    try:
        text = first.decode("utf-8", errors="replace")
        cells = next(csv.reader([text], delimiter=separator), [])
    except csv.Error:
        return set()
    return {cell.strip().lower() for cell in cells}


def read_person(path: str | os.PathLike[str]) -> PersonList:
    """Read one person's list of ratings: an export, or a table with titles (or ids) and ratings.

    Raises
    ------
    DataError
        If the file cannot be read, has no column of titles or ratings, or holds a rating that is
        no number or not on the scale of its service; names the line.
    """
    source = open_source(path)
    member = _ratings_of(source)
    export = export_of(member.head())
    options = DelimitedOptions(separator=",", header=True) if export else DelimitedOptions()
    opened = open_delimited(member, options, ())
    names = [name.strip().lower() for name in opened.layout.names]
    title, rating, year, id = _columns(names, export, member.label, opened.layout.header)
    rows = [
        (line, [*fields, *[""] * (len(names) - len(fields))])
        for line, fields in islice(numbered_rows(opened.text), int(opened.layout.header), None)
    ]
    forms = possible_forms(opened.text.separator, opened.text.quotes)
    form, _ = find_form((cells[rating] for _, cells in rows), forms, opened.text.separator)
    entries, without = [], 0
    for line, cells in rows:
        text = cells[rating].strip()
        value = parse_number(text, form.decimal, form.thousands)
        if not text or (export is not None and value == export.unrated):
            without += 1
            continue
        if value is None:
            raise DataError(
                "The rating is no number. Correct the line or delete it.",
                path=member.label,
                line=line,
                value=text,
            )
        if export and first_off_scale(np.array([value]), export.scale) is not None:
            raise off_scale_error(value, export.scale, member.label, line)
        own_id = cells[id].strip() if id is not None else ""
        name = cells[title].strip() if title is not None else ""
        entries.append(Entry(line, name, _year(cells, year), own_id, value))
    if not entries:
        raise DataError("The list holds no ratings.", path=member.label)
    kind = export.title if export else "a list of titles and ratings"
    return PersonList(member.label, kind, export.scale if export else None, tuple(entries), without)


def _ratings_of(source: Source) -> Member:
    """The file itself, or ratings.csv of a service's zip."""
    if source.single is not None:
        return source.single
    return source.find("ratings.csv") or pick(source)


def _columns(
    names: list[str], export: Export | None, path: str, header: bool
) -> tuple[int | None, int, int | None, int | None]:
    """Where title, rating, year and id stand."""
    if export is not None:
        wanted = (export.name, export.rating, export.year, export.id)
        title, rating, year, id = (
            names.index(name) if name is not None and name in names else None for name in wanted
        )
    else:
        title, rating, year, id = (
            next((names.index(name) for name in known if name in names), None)
            for known in (TITLES, RATINGS, YEARS, IDS)
        )
    if rating is None or (title is None and id is None):
        there = ", ".join(names[:10]) if header else "no header line"
        raise DataError(
            "A person's list of ratings needs a header line with a column 'title' (or 'id') and "
            f"one named 'rating'; there is {there}. Name the columns so.",
            path=path,
            line=1,
        )
    return title, rating, year, id


def _year(cells: list[str], column: int | None) -> int | None:
    text = cells[column].strip() if column is not None else ""
    return int(text) if text.isdecimal() and len(text) == 4 else None
