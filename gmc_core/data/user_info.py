"""Users' attributes (age, gender, …) in the one form that everything reads."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")


def attribute_column(values: npt.ArrayLike) -> np.ndarray:
    """One attribute of M users.

    Returns
    -------
    (M,) int64 or float64 (NaN for unknown) if all that is known are numbers; otherwise
    objects, texts or None for unknown. A text of digits, such as a zip code, stays a text.
    """
    column = np.asarray(values)
    if column.dtype.kind in "iu":
        return column.astype(np.int64)
    if column.dtype.kind == "f":
        return column.astype(np.float64) + 0.0  # no -0
    texts = column.astype(object)
    unknown = np.asarray(pd.isna(texts), dtype=bool)
    known = texts[~unknown]
    if len(known) and pd.api.types.infer_dtype(known) in _NUMBERS:
        try:
            numbers = np.full(len(texts), np.nan)
            numbers[~unknown] = [float(value) for value in known]
            return numbers + 0.0
        except OverflowError:
            pass  # a whole number beyond all floats is told apart by its digits
    texts[unknown] = None
    texts[~unknown] = [str(value) or None for value in known]
    return texts


def side_sha256(user_info: Mapping[str, np.ndarray], genres: tuple[tuple[str, ...], ...]) -> str:
    """Hash of users' attributes and items' genres; "" where there is neither."""
    known = {
        name: (column.astype(np.float64) if column.dtype.kind == "i" else column).tolist()
        for name, column in sorted(user_info.items())
    }
    if not known and not any(genres):
        return ""
    return hashlib.sha256(repr((known, genres)).encode()).hexdigest()


def row_of(user_info: Mapping[str, np.ndarray], user: int) -> dict[str, np.ndarray]:
    """The attributes of the user at a position, as columns of length 1."""
    return {name: column[user : user + 1] for name, column in user_info.items()}
