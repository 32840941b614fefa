"""Streams of bytes within limits: of size, of a line's length, of what an archive inflates to.

Everything is checked while it grows, before it fills the memory.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO

import psutil

from gmc_core.base.errors import DataError, brief
from gmc_core.data.readers import file_kinds
from gmc_core.data.readers.unpacking import DAMAGE, Readable, unpacked

# A hostile archive of a few kilobytes can inflate to terabytes. The largest
# public rating set, MovieLens 32M, inflates to less than 1 GB at a ratio of 4.
MAX_TOTAL_BYTES = 8 * 1024**3
MAX_RATIO = 200
RATIO_APPLIES_FROM_BYTES = 100 * 1024**2

# A row of a table of ratings is short, and one of Jester's has a hundred jokes. A longer
# line is found while it is read, before it fills the memory.
MAX_LINE_BYTES = 16 * 1024**2
# What reading takes at its peak, in bytes a byte of text; measured for MovieLens's layouts. In
# pieces: of texts that are never held as a whole.
MEMORY_PER_BYTE, IN_PIECES_PER_BYTE = 8, 2

CHUNK = 1 << 20
ALL = -1


def joined(chunks: Iterator[bytes]) -> bytes:
    """All of them; unlike joining, this holds no byte twice."""
    whole = io.BytesIO()
    for chunk in chunks:
        whole.write(chunk)
    return whole.getvalue()


def checked(
    stream: IO[bytes] | Readable, label: object, limit: int, packed: int | None = None
) -> Iterator[bytes]:
    """The content of a stream, or its start; refused while it grows.

    packed : bytes that it is inflated from, None if it was not packed.
    """
    total, line, one_line = 0, 0, False
    size = CHUNK if limit < 0 else min(CHUNK, limit)
    while (limit < 0 or total < limit) and (chunk := stream.read(size)):
        total += len(chunk)
        check_inflation(label, total if packed is None else packed, total)
        if total == len(chunk):
            file_kinds.refuse(chunk, label)
            one_line = file_kinds.is_one_line(chunk)
        first, last = _line_ends(chunk)
        line += first
        if line > MAX_LINE_BYTES and not one_line:
            raise DataError(
                f"A line is longer than {MAX_LINE_BYTES / 1024**2:g} MB, which no table has that "
                "is read here; check the file and its line ends.",
                path=label,
            )
        if last >= 0:
            line = len(chunk) - 1 - last
        yield chunk


def _line_ends(chunk: bytes) -> tuple[int, int]:
    """Bytes before the first line end, and where the last one is (-1: there is none)."""
    ends = [place for sign in (b"\n", b"\r") if (place := chunk.find(sign)) >= 0]
    return min(ends, default=len(chunk)), max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))


def inflate(
    packed: IO[bytes], packing: str, label: str, packed_bytes: int, limit: int
) -> Iterator[bytes]:
    """The content of a packed stream, checked while it grows."""
    try:
        yield from checked(unpacked(packed, packing), label, limit, packed_bytes)
    except DAMAGE as error:
        raise DataError(
            f"The {packing} file is damaged or incomplete ({brief(error)}); get a fresh copy.",
            path=label,
        ) from error


def check_memory(path: object, size: int, per_byte: float = MEMORY_PER_BYTE) -> None:
    """Refuse what would not fit into the free memory; small texts always do."""
    if size <= RATIO_APPLIES_FROM_BYTES:
        return
    free = psutil.virtual_memory().available
    if size * per_byte > free + size:  # what is held already is not free
        raise DataError(
            f"Reading it takes more than {size * per_byte / 1e9:.1f} GB of memory, and "
            f"{free / 1e9:.1f} GB are free; end other programs, or give a part of the ratings.",
            path=path,
        )


def check_inflation(path: object, packed: int, inflated: int) -> None:
    """Refuse more text than is read, and what ``packed`` bytes inflate to beyond belief."""
    if inflated > MAX_TOTAL_BYTES:
        raise DataError(
            f"There are more than {MAX_TOTAL_BYTES / 1024**3:g} GB of text, inflated if it is an "
            "archive, which is more than is read (and a protection against archive bombs); give a "
            "part of the ratings.",
            path=path,
        )
    if inflated > RATIO_APPLIES_FROM_BYTES and inflated > MAX_RATIO * max(packed, 1):
        raise DataError(
            f"The archive would inflate to more than {MAX_RATIO} times its size, which is refused "
            "as a protection against archive bombs; unpack it yourself and give the folder.",
            path=path,
        )


def check_workbook(path: object, packed: int, inflated: int) -> None:
    """Both of an archive that is held inflated while it is read, as a workbook is."""
    check_inflation(path, packed, inflated)
    check_memory(path, inflated)
