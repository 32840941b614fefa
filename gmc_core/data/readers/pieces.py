"""Large plain texts, read piece by piece: the text as a whole is never in memory.

Only what is plain is read so: ASCII without quotation marks and blank lines, whole numbers as ids,
numbers as ratings, whole seconds as times. For any other text the answer is None; then
:mod:`gmc_core.data.readers.table` reads it whole, and finds what is wrong and in which line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
from pyarrow import csv as arrow_csv

from gmc_core.data.readers.scales import BLOCK
from gmc_core.data.readers.source import Member
from gmc_core.data.readers.table import BLOCK_BYTES, arrow_memory
from gmc_core.data.readers.vocabulary import Encoded, encode_texts

LARGE_BYTES = 32 * 1024**2  # smaller texts are read whole
PIECE_BYTES = 16 * 1024**2
_ID = pa.dictionary(pa.int32(), pa.string())
_TYPES = {"user": _ID, "item": _ID, "rating": pa.float64(), "time": pa.int64()}

Quadruples = tuple[Encoded, Encoded, npt.NDArray[np.float64], npt.NDArray[np.float64]]


def read_pieces(member: Member, separator: str) -> Quadruples | None:
    """Users, items, ratings and times of a text of these four columns below a header line.

    Returns
    -------
    (rows,) each, the times as :class:`gmc_core.data.readers.time_column.TimeColumn` has them; None
    if the text is not large, or not plain.
    """
    if member.size < LARGE_BYTES:
        return None
    users, items = _Ids(), _Ids()
    ratings, times = _Growing(np.float64), _Growing(np.float64)
    for piece in _whole_lines(member.chunks()):
        table = _parsed(piece, separator)
        if table is None:
            return None
        # Memory is taken once, for as many rows as there will be if they are all alike.
        expected = member.size * len(table) // max(len(piece), 1) * 9 // 8
        for column, of in (("user", users), ("item", items)):
            for chunk in table[column].chunks:
                of.add(chunk, expected)
        values = table["rating"].to_numpy()
        if not np.isfinite(values).all():
            return None
        ratings.add(values, expected)
        times.add(table["time"].to_numpy(), expected)
    by_user, by_item = users.encoded(), items.encoded()
    if by_user is None or by_item is None:
        return None
    return by_user, by_item, ratings.values(), times.values()


def _whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces that end with a line, without the first line of all."""
    parts: list[bytes] = []
    held, header = 0, True
    for chunk in chunks:
        parts.append(chunk)
        held += len(chunk)
        if held < PIECE_BYTES or b"\n" not in chunk:
            continue
        whole, _, rest = b"".join(parts).rpartition(b"\n")
        yield _body(whole + b"\n", header)
        parts, held, header = [rest], len(rest), False
    if held:
        yield _body(b"".join(parts), header)


def _body(piece: bytes, header: bool) -> bytes:
    piece = piece.partition(b"\n")[2] if header else piece
    return piece if piece.endswith(b"\n") else piece + b"\n"


def _parsed(piece: bytes, separator: str) -> pa.Table | None:
    """The columns of some lines; None if the text is not plain."""
    if not piece.isascii() or any(sign in piece for sign in (b'"', b"\0", b" ", b"\t")):
        return None
    if b"\r" in piece and piece.count(b"\r") != piece.count(b"\r\n"):
        return None
    try:
        table = arrow_csv.read_csv(
            arrow_memory(piece),
            read_options=arrow_csv.ReadOptions(column_names=list(_TYPES), block_size=BLOCK_BYTES),
            parse_options=arrow_csv.ParseOptions(delimiter=separator, quote_char=False),
            convert_options=arrow_csv.ConvertOptions(
                column_types=_TYPES, null_values=[""], check_utf8=False
            ),
        )
    except pa.ArrowInvalid:
        return None
    # A blank line is no row.
    blank = any(column.null_count for column in table.columns)
    return None if blank or len(table) != piece.count(b"\n") else table


class _Growing:
    """A column that is filled piece by piece."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.array = np.empty(0, dtype)
        self.rows = 0

    def add(self, some: np.ndarray, expected: int) -> None:
        """Further rows, of ``expected`` in all."""
        end = self.rows + len(some)
        if end > len(self.array):
            larger = np.empty(max(expected, end + end // 4), self.array.dtype)
            larger[: self.rows] = self.values()
            self.array = larger
        self.array[self.rows : end] = some
        self.rows = end

    def values(self) -> np.ndarray:
        """All rows so far; what was taken besides is untouched memory."""
        return self.array[: self.rows]


class _Ids:
    """A column of ids, whose texts are numbered as they come."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.codes = _Growing(np.int32)

    def add(self, chunk: pa.DictionaryArray, expected: int) -> None:
        """Further rows, of ``expected`` in all."""
        known = self.known
        numbers = [known.setdefault(text, len(known)) for text in chunk.dictionary.to_pylist()]
        codes = np.array(numbers, dtype=np.int32)
        self.codes.add(codes[chunk.indices.to_numpy()], expected)

    def encoded(self) -> Encoded | None:
        """All rows; None if an id is no whole number as it is usually written."""
        found = encode_texts(list(self.known), np.arange(len(self.known)))
        if found is None or not found.are_integers:
            return None
        codes = self.codes.values()
        for start in range(0, len(codes), BLOCK):
            codes[start : start + BLOCK] = found.codes[codes[start : start + BLOCK]]
        return Encoded(found.ids, codes)
