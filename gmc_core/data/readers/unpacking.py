"""Streams of packed files that give no more bytes at once than they are asked for."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import zlib
from typing import IO, Protocol

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

# What undoing a compression may hold besides its text; the highest level of xz asks for 65 MB.
MAX_DICTIONARY = 256 * 1024**2
_CHUNK = 1 << 16

# What the libraries raise for damaged files.
DAMAGE = (gzip.BadGzipFile, EOFError, zlib.error, struct.error, lzma.LZMAError, OSError, ValueError)


class Readable(Protocol):
    """What reading needs of a stream."""

    def read(self, size: int = -1, /) -> bytes:
        """At most ``size`` bytes; none at the end."""
        ...


def unpacked(stream: IO[bytes], packing: str) -> Readable:
    """The content of a packed stream.

    packing : one of ``gmc_core.data.readers.file_kinds.PACKINGS``.

    Reading raises one of :data:`DAMAGE` where the file is damaged.
    """
    if packing == "gzip":
        return gzip.GzipFile(fileobj=stream)
    if packing == "zstd":
        return pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd")
    return _Bounded(stream, packing)


class _Bounded:
    """bzip2 and xz, a few kilobytes of which can stand for gigabytes, in small steps."""

    def __init__(self, stream: IO[bytes], packing: str) -> None:
        self._stream = stream
        self._packing = packing
        self._inflater = self._new()
        self._fresh = True  # no byte of this inflater's own has been fed yet

    def _new(self) -> bz2.BZ2Decompressor | lzma.LZMADecompressor:
        if self._packing == "bzip2":
            return bz2.BZ2Decompressor()
        return lzma.LZMADecompressor(memlimit=MAX_DICTIONARY)

    def read(self, size: int = -1, /) -> bytes:
        """At most ``size`` bytes; none at the end."""
        while True:
            rest = b""
            if self._inflater.eof:  # such files may be written one after the other
                rest = self._inflater.unused_data.lstrip(b"\0")
                self._inflater, self._fresh = self._new(), True
            if self._inflater.needs_input and not rest:
                rest = self._stream.read(_CHUNK)
                if not rest:
                    if self._fresh:
                        return b""
                    raise EOFError("it ends too early")
            self._fresh = self._fresh and not rest
            data = self._inflater.decompress(rest, size)
            if data:
                return data
