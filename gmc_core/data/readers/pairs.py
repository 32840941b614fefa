"""Small files that are taken as they are: given splits, and pairs to predict."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import DataError
from gmc_core.data.readers.delimited import (
    DelimitedOptions,
    Preview,
    open_delimited,
    pick,
    read_roles,
)
from gmc_core.data.readers.source import open_source

PREVIEW_ROWS = 20


@dataclass(frozen=True, eq=False)
class Triplets:
    """Ratings in the order of the file, repeated ones included.

    users, items : (rows,) ids, int64 or (object) strings.
    values : (rows,) float64 ratings.
    """

    users: np.ndarray
    items: np.ndarray
    values: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Users and items in the order of the file: (rows,) ids, int64 or (object) strings."""

    users: np.ndarray
    items: np.ndarray


def read_triplets(
    path: str | os.PathLike[str], options: DelimitedOptions | None = None
) -> Triplets:
    """Read user, item and rating as they are: no scale, no rule for repeated ratings.

    Raises
    ------
    DataError
        As for :func:`gmc_core.data.readers.load` with the format "delimited".
    """
    required = ("user", "item", "rating")
    opened = open_delimited(pick(open_source(path)), options or DelimitedOptions(), required)
    table, _ = read_roles(opened, required)
    return Triplets(
        table.encoded("user id").values(),
        table.encoded("item id").values(),
        table.numbers("rating"),
    )


def read_pairs(path: str | os.PathLike[str], options: DelimitedOptions | None = None) -> Pairs:
    """Read user and item, of a file with or without further columns.

    Raises
    ------
    DataError
        As for :func:`read_triplets`.
    """
    required = ("user", "item")
    opened = open_delimited(pick(open_source(path)), options or DelimitedOptions(), required)
    table, _ = read_roles(opened, required)
    return Pairs(table.encoded("user id").values(), table.encoded("item id").values())


def preview(path: str | os.PathLike[str], options: DelimitedOptions | None = None) -> Preview:
    """The first rows and the layout that was found, without reading the whole file.

    Columns that cannot be assigned are a ``problem`` of the preview, not an
    error, so that a person can assign them.

    Raises
    ------
    DataError
        If the file cannot be opened, or not be divided into columns.
    """
    options = options or DelimitedOptions()
    member = pick(open_source(path))
    problem = None
    try:
        opened = open_delimited(member, options, ("user", "item", "rating"), head=True)
        _, opened = read_roles(opened, ("user", "item", "rating"))
    except DataError as error:
        problem = str(error)
        opened = open_delimited(
            member,
            DelimitedOptions(
                separator=options.separator,
                header=options.header,
                decimal=options.decimal,
                encoding=options.encoding,
                not_rated=options.not_rated,
            ),
            (),
            head=True,
        )
    layout, roles = opened.layout, opened.roles
    found = DelimitedOptions(
        separator=layout.separator,
        header=layout.header,
        decimal=opened.text.decimal,
        encoding=options.encoding or ("utf-8" if opened.encoding == "ascii" else opened.encoding),
        low=options.low,
        high=options.high,
        step=options.step,
        user=roles.get("user"),
        item=roles.get("item"),
        rating=roles.get("rating"),
        timestamp=roles.get("timestamp"),
        title=roles.get("title"),
        not_rated=options.not_rated,
    )
    return Preview(layout.names, layout.rows[:PREVIEW_ROWS], roles, found, problem)
