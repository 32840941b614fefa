"""The distinct ids of users or items, mapped once to positions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import DataError, UnknownIdError


def frozen(array: np.ndarray) -> np.ndarray:
    """The same array, made read-only (a view's base is left as it was)."""
    array.setflags(write=False)
    return array


class Vocabulary:
    """The distinct ids of users or items, sorted, and the way back.

    Integers sort by value and strings by code point, so the same ratings in
    another row order have the same positions, hash and splits.

    Parameters
    ----------
    ids : distinct ids, all integers or all strings, in rising order.
    kind : "user" or "item"; used in messages.
    """

    def __init__(self, ids: npt.ArrayLike, kind: str) -> None:
        array = np.asarray(ids)
        if array.dtype.kind in "iu":
            array = array.astype(np.int64)
        else:
            array = np.asarray(array, dtype=object)
        if len(array) > 1 and not bool(np.all(array[:-1] < array[1:])):
            raise DataError(f"The {kind} ids must be distinct and in rising order.")
        self.ids = frozen(array.copy())
        self.kind = kind

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def are_integers(self) -> bool:
        """Whether the ids are integers (otherwise they are strings)."""
        return self.ids.dtype.kind == "i"

    @cached_property
    def _position(self) -> dict[object, int]:
        return {value: index for index, value in enumerate(self.ids.tolist())}

    def find(self, ids: Sequence[object] | np.ndarray) -> npt.NDArray[np.int64]:
        """(n,) positions of n ``ids``, -1 where an id is unknown.

        An integer vocabulary also takes the id's decimal text ("12"), and a
        string vocabulary an integer's text, since files and URLs hold text.
        """
        position = self._position
        return np.fromiter(
            (position.get(self._normal(value), -1) for value in np.asarray(ids, dtype=object)),
            dtype=np.int64,
            count=len(ids),
        )

    def _normal(self, value: object) -> object:
        if self.are_integers:
            if isinstance(value, str):
                text = value.strip()
                digits = text[1:] if text[:1] == "-" else text
                # An id has 19 digits at most, and int() refuses thousands with an error.
                usable = digits.isascii() and digits.isdigit() and len(digits) < 100
                return int(text) if usable else value
            return int(value) if isinstance(value, (int, np.integer)) else value
        return value if isinstance(value, str) else str(value)

    def index(self, value: object) -> int:
        """The position of one id.

        Raises
        ------
        UnknownIdError
            If the id is not in the vocabulary.
        """
        found = int(self.find([value])[0])
        if found < 0:
            kind = "whole numbers" if self.are_integers else "text"
            example = f", such as {self.ids[0]}" if len(self.ids) else ""
            raise UnknownIdError(
                f"There is no {self.kind} {str(value)!r} among the {len(self):,} {self.kind}s of "
                f"this data; their ids are {kind}{example}."
            )
        return found

    def subset(self, keep: np.ndarray) -> Vocabulary:
        """The vocabulary of the positions where ``keep`` (mask or rising indices) says so."""
        return Vocabulary(self.ids[keep], self.kind)


def encode(
    ids: np.ndarray, vocabulary: Vocabulary | None, kind: str
) -> tuple[Vocabulary, npt.NDArray[np.int64]]:
    """The vocabulary, by default of the distinct ids, and each id's position in it.

    Raises
    ------
    UnknownIdError
        If an id is not in the vocabulary.
    """
    if vocabulary is None:
        if ids.dtype.kind not in "iu":
            ids = np.asarray(ids, dtype=object)
        distinct, codes = np.unique(ids, return_inverse=True)
        return Vocabulary(distinct, kind), codes.astype(np.int64)
    codes = vocabulary.find(ids)
    if (codes < 0).any():
        vocabulary.index(ids[int(np.flatnonzero(codes < 0)[0])])
    return vocabulary, codes
