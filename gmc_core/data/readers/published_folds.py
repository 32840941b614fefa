"""The folds that MovieLens 100K came with: five test sets that together are all ratings.

Fold k is the file ``u<k>.test``. GroupLens cut them from ``u.data`` in the order of its rows, a
fifth each, so the official file has them in itself; a copy in another order needs the files.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gmc_core.data.readers.source import Source
from gmc_core.data.readers.table import Column, Table, Text, read_table
from gmc_core.data.readers.text import to_utf8
from gmc_core.data.readers.vocabulary import Encoded

COUNT = 5
FILES = tuple(f"u{fold}.test" for fold in range(1, COUNT + 1))
ROWS = 100_000
# Of the official u.data: a copy that begins otherwise has been sorted, or is another set.
FIRST_USER, FIRST_ITEM = 196, 242

Folds = npt.NDArray[np.int8]


def published_folds(source: Source, table: Table) -> tuple[Folds | None, str]:
    """(rows,) the fold of each row of ``u.data``, counted from 1, and a sentence on them.

    table : with the ids of all rows. None, with the reason, where the files do not divide these
    ratings among them; None and "" where nothing tells folds.
    """
    members = [source.find(name) for name in FILES]
    users, items = table.encoded("user id"), table.encoded("item id")
    if all(member is not None for member in members):
        rows = _cells(users.values(), items.values())
        folds = np.zeros(len(rows), dtype=np.int8)
        for fold, member in enumerate(members, 1):
            assert member is not None
            data, _ = to_utf8(member.read(), member.label)
            columns = (Column(0, "user id", "integer id"), Column(1, "item id", "integer id"))
            test = read_table(Text(data, member.label, "\t"), columns)
            held = np.isin(rows, _cells(*(test.encoded(c.role).values() for c in columns)))
            if held.sum() != test.rows or folds[held].any():
                return None, (
                    f"{FILES[0]} … {FILES[-1]} do not divide the ratings of u.data among them "
                    f"({member.name}), so they are not used as folds"
                )
            folds[held] = fold
        if (left := int((folds == 0).sum())) > 0:
            return None, (
                f"{left:,} ratings of u.data are in none of {FILES[0]} … {FILES[-1]}, so these are "
                "not used as folds"
            )
        return folds, f"published folds from {FILES[0]} … {FILES[-1]}"
    if table.rows == ROWS and (_first(users), _first(items)) == (FIRST_USER, FIRST_ITEM):
        folds = np.repeat(np.arange(1, COUNT + 1, dtype=np.int8), ROWS // COUNT)
        return folds, "published folds from the order of the rows"
    return None, ""


def _first(column: Encoded) -> int:
    return int(column.ids[column.codes[0]])


def _cells(users: np.ndarray, items: np.ndarray) -> np.ndarray:
    """(rows,) both ids of each row as one value."""
    return np.rec.fromarrays([users, items])
