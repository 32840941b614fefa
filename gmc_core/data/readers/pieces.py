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
    ratings: list[npt.NDArray[np.float64]] = []
    times: list[npt.NDArray[np.float64]] = []
    for piece in _whole_lines(member.chunks()):
        table = _parsed(piece, separator)
        if table is None:
            return None
        for chunk in table["user"].chunks:
            users.add(chunk)
        for chunk in table["item"].chunks:
            items.add(chunk)
        ratings.append(table["rating"].to_numpy())
        times.append(table["time"].to_numpy().astype(np.float64))
        if not np.isfinite(ratings[-1]).all():
            return None
    pa.default_memory_pool().release_unused()
    by_user, by_item = users.encoded(), items.encoded()
    if by_user is None or by_item is None:
        return None
    return by_user, by_item, _emptied(ratings), _emptied(times)


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
    odd = (b'"', b"\0", b"\n\n", b"\n\r", b"\n ", b"\n\t")
    if not piece.isascii() or piece[:1] in b"\r\n \t" or any(sign in piece for sign in odd):
        return None
    if piece.count(b"\r") != piece.count(b"\r\n"):
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
    blank = any(column.null_count for column in table.columns)
    return None if blank or len(table) != piece.count(b"\n") else table


class _Ids:
    """A column of ids, whose texts are numbered as they come."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.codes: list[npt.NDArray[np.int32]] = []

    def add(self, chunk: pa.DictionaryArray) -> None:
        """Further rows."""
        known = self.known
        numbers = [known.setdefault(text, len(known)) for text in chunk.dictionary.to_pylist()]
        self.codes.append(np.array(numbers, dtype=np.int32)[chunk.indices.to_numpy()])

    def encoded(self) -> Encoded | None:
        """All rows; None if an id is no whole number as it is usually written."""
        found = encode_texts(list(self.known), np.arange(len(self.known)))
        if found is None or not found.are_integers:
            return None
        for part in self.codes:
            part[:] = found.codes[part]
        return Encoded(found.ids, _emptied(self.codes))


def _emptied(parts: list[np.ndarray]) -> np.ndarray:
    """All of them in one array; the list is empty afterwards."""
    whole = np.empty(sum(map(len, parts)), parts[0].dtype)
    place = len(whole)
    while parts:
        last = parts.pop()
        place -= len(last)
        whole[place : place + len(last)] = last
    return whole
