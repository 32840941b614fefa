"""Steps that the formats with fixed columns share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import DataError
from gmc_core.data.ratings import RatingScale
from gmc_core.data.readers.scales import first_off_scale, off_scale_error
from gmc_core.data.readers.source import Member, Source
from gmc_core.data.readers.table import Column, Text, line_of_row


def needed(source: Source, name: str, format_name: str) -> Member:
    """The member with a base name.

    Raises
    ------
    DataError
        If there is none; the message lists what is there.
    """
    member = source.find(name)
    if member is None:
        there = ", ".join(source.names()[:10]) or "nothing"
        raise DataError(
            f"The format {format_name} needs a file {name}, which was not found; there is: "
            f"{there}. Give the folder or zip that holds it, or another format.",
            path=source.path,
        )
    return member


def check_scale(values: npt.NDArray[np.float64], scale: RatingScale, text: Text) -> None:
    """Raise a DataError with the line of the first value that the scale does not have."""
    row = first_off_scale(values, scale)
    if row is not None:
        raise off_scale_error(float(values[row]), scale, text.path, line_of_row(text, row))


def triplet_columns(user: int, item: int, rating: int) -> Sequence[Column]:
    """The columns of a file whose ids are whole numbers."""
    return (
        Column(user, "user id", "integer id"),
        Column(item, "item id", "integer id"),
        Column(rating, "rating", "number"),
    )
