"""Ids as they are written, mapped once to sorted distinct ids and codes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


def is_canonical_integer(text: str) -> bool:
    """Whether text is an int64 without leading zeros or a plus sign.

    Only then does the integer give the text back: "007" is another id than "7".
    """
    return bool(_INTEGER.fullmatch(text)) and -(2**63) <= int(text) < 2**63


@dataclass(frozen=True)
class Encoded:
    """A column of ids: row r holds ``ids[codes[r]]``.

    ids : (K,) distinct values; for ids (not labels) sorted, int64 or strings.
    codes : (rows,) integers in 0..K-1.
    """

    ids: np.ndarray
    codes: npt.NDArray[np.integer]

    @property
    def are_integers(self) -> bool:
        """Whether the ids are integers."""
        return self.ids.dtype.kind == "i"

    def values(self) -> np.ndarray:
        """(rows,) the ids themselves."""
        return np.asarray(self.ids[self.codes])

    def take(self, keep: npt.NDArray[np.bool_]) -> Encoded:
        """Only the rows where ``keep`` is true, without ids that no row uses any more."""
        codes = self.codes if keep.all() else self.codes[keep]
        used = np.bincount(codes, minlength=len(self.ids)) > 0
        if used.all():
            return Encoded(self.ids, codes)
        renumber = (np.cumsum(used) - 1).astype(np.int32)
        return Encoded(self.ids[used], renumber[codes])


def encode_texts(texts: Sequence[str], codes: npt.NDArray[np.integer]) -> Encoded | None:
    """Sorted ids from distinct texts: integers if all are canonical, else all strings.

    Blanks around an id are removed. Returns None if an id is blank.
    """
    stripped = [text.strip() for text in texts]
    if not all(stripped):
        return None
    if all(map(is_canonical_integer, stripped)):
        values = np.array([int(text) for text in stripped], dtype=np.int64)
    else:
        values = np.array(stripped, dtype=object)
    ids, recode = np.unique(values, return_inverse=True)
    return Encoded(ids, recode.astype(np.int32)[codes])


def plain_name(name: str) -> str:
    """A column's name in lower case, without any other sign than letters."""
    return re.sub(r"[^a-z]", "", name.lower())
