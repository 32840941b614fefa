"""Titles, genres and users' attributes for a plain table, from the files of its data set beside it.

A part of MovieLens or EachMovie that was written as a table of its own, such as ``u1.base``, has
the ids of its data set, and the files of titles and users lie in its folder.
"""

from __future__ import annotations

import math
from dataclasses import replace

from gmc_core.base.errors import DataError
from gmc_core.data.readers import eachmovie, movielens_100k, movielens_csv, movielens_dat
from gmc_core.data.readers.assemble import Parts
from gmc_core.data.readers.source import Source
from gmc_core.data.readers.text import Companions, Item

# Files that tell titles or users → the module that reads them.
_BY_FILE = {
    "u.item": movielens_100k,
    "u.user": movielens_100k,
    "movies.dat": movielens_dat,
    "users.dat": movielens_dat,
    "movies.csv": movielens_csv,
    "movie.txt": eachmovie,
    "person.txt": eachmovie,
}


def names_beside(source: Source) -> tuple[str, ...]:
    """The files of titles and users that are there, of one data set."""
    there = [name for name in _BY_FILE if source.find(name) is not None]
    return tuple(name for name in there if _BY_FILE[name] is _BY_FILE[there[0]])


def described(parts: Parts, source: Source) -> Parts:
    """The same with what the files beside it say; titles and years in the table itself go first.

    Raises
    ------
    DataError
        If there is no such file, or none knows an item or a user of the table.
    """
    names = names_beside(source)
    if not names:
        raise DataError(
            f"None of {', '.join(_BY_FILE)} is beside the ratings. Put those of the data set into "
            "the same folder, or leave out --beside.",
            path=parts.source,
        )
    found: Companions = _BY_FILE[names[0]].companions(source)
    for known, ids in ((found.items, parts.items), (found.users, parts.users)):
        if known and not any(str(value) in known for value in ids.ids.tolist()):
            raise DataError(
                f"{' and '.join(names)} know none of the ids in the ratings, so they belong to "
                "other data. Leave out --beside, or put the right files there.",
                path=parts.source,
            )
    own = {key: _completed(item, found.items.get(key)) for key, item in parts.known_items.items()}
    return replace(
        parts,
        known_items={**found.items, **own},
        known_users=found.users,
        user_names=found.user_names,
        notes=(*parts.notes, *(found.notes or (f"users from {names[0]}",))),
        reading={**parts.reading, "beside": True},
    )


def _completed(own: Item, other: Item | None) -> Item:
    """What the table says of an item, and for the rest what the file beside it does."""
    if other is None:
        return own
    year = other.year if math.isnan(own.year) else own.year
    return Item(own.title or other.title, year, own.genres or other.genres)


def unused_note(format: str) -> str:
    """A sentence on a wish for the files beside a layout that is no plain table."""
    return (
        f"--beside is for plain tables and has no effect here: the format {format} takes what it "
        "knows of titles and users from its own files (--format delimited reads a plain table)"
    )
