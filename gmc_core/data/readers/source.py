"""Where the bytes come from: a folder, a zip archive, or one file.

All three are opened in the same way and their files are found by base name at
any depth, so that a format module never asks how the data were packed. Nothing
is ever extracted to disk.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from gmc_core.base.errors import DataError, brief
from gmc_core.data.readers import file_kinds, json_records, workbook
from gmc_core.data.readers.bounded import (
    ALL,
    IN_PIECES_PER_BYTE,
    MEMORY_PER_BYTE,
    check_inflation,
    check_memory,
    check_workbook,
    checked,
    inflate,
    joined,
)

# A folder is searched, so a home directory given by mistake must not be walked.
MAX_FOLDER_DEPTH = 5
MAX_FOLDER_FILES = 20_000

# zipfile inflates bz2 and LZMA in steps of any size, past any check; files packed so are read
# by gmc_core.data.readers.unpacking, which bounds them.
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

HEAD_BYTES = 1 << 16
HEAD_ROWS = 200  # of a workbook, whose first bytes hold none

Progress = Callable[[int, int], None]
"""Called with the bytes read and the bytes in total (0 if that is not known)."""
# Reading is told of from this size on: what is smaller is there at once.
TOLD_FROM_BYTES = 32 * 1024**2


@dataclass(frozen=True)
class Member:
    """One file of a source.

    ``label`` is the text for messages, ``name`` the base name without ``.gz`` (or another ending
    of a packed file), ``depth`` the number of folders above it, ``size`` its bytes (0: not known),
    ``progress`` what is told of its reading.
    """

    label: str
    name: str
    depth: int
    _chunks: Callable[[int], Iterator[bytes]]
    size: int = 0
    progress: Progress | None = None
    _heads: list[bytes] = field(default_factory=list, repr=False, compare=False)

    def read(self) -> bytes:
        """All bytes, inflated; a workbook or JSON as comma-separated text.

        Raises
        ------
        DataError
            If the file is empty, damaged, encrypted, too large to inflate, or of a kind that
            holds no table (:mod:`gmc_core.data.readers.file_kinds`).
        """
        data = self._read(ALL)
        if not data:
            raise DataError("The file is empty; give a file with ratings.", path=self.label)
        if file_kinds.is_zip(data):
            return self._workbook(data, None)
        return json_records.to_csv(data, self.label) if file_kinds.is_json(data) else data

    def chunks(self, memory_per_byte: float = IN_PIECES_PER_BYTE) -> Iterator[bytes]:
        """All bytes as they stand, inflated, at most ``CHUNK`` of them at once.

        memory_per_byte : what is made of them takes in memory.

        Raises
        ------
        DataError
            As :meth:`read`, while it is read.
        """
        done = 0
        for chunk in self._chunks(ALL):
            done += len(chunk)
            check_memory(self.label, done, memory_per_byte)
            if self.progress is not None and self.size >= TOLD_FROM_BYTES:
                self.progress(done, self.size)
            yield chunk

    def _read(self, limit: int) -> bytes:
        return joined(self.chunks(MEMORY_PER_BYTE) if limit == ALL else self._chunks(limit))

    def head(self) -> bytes:
        """The first bytes (64 KB), which is enough to recognise a format; may be empty."""
        if not self._heads:  # each format asks, and a workbook is opened as a whole
            self._heads.append(self._start())
        return self._heads[0]

    def _start(self) -> bytes:
        data = self._read(HEAD_BYTES)[:HEAD_BYTES]
        if file_kinds.is_zip(data):
            return self._workbook(self._read(ALL), HEAD_ROWS)[:HEAD_BYTES]
        if not file_kinds.is_json(data):
            return data
        if len(data) == HEAD_BYTES:
            try:
                return json_records.to_csv(data, self.label, cut=True)[:HEAD_BYTES]
            except DataError:  # a layout whose beginning says nothing alone
                pass
        return self.read()[:HEAD_BYTES]

    def _workbook(self, data: bytes, rows: int | None) -> bytes:
        """The sheet of a workbook; any other archive inside is not read."""
        names = _names_in(data, self.label)
        file_kinds.refuse_zipped(names, self.label)
        if file_kinds.WORKBOOK not in names:
            raise DataError("This is a zip archive; unpack it.", path=self.label)
        return workbook.to_csv(data, self.label, check_workbook, rows)


def _names_in(data: bytes, label: str) -> list[str]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.namelist()
    except (*_ZIP_ERRORS, NotImplementedError) as error:
        raise _bad_zip(label, error) from error


@dataclass(frozen=True)
class Source:
    """The files of a folder or zip, or one file with its neighbours.

    ``single`` is the file that was named, if it was a file (not a zip).
    """

    path: Path
    members: tuple[Member, ...]
    single: Member | None = None

    def find(self, *names: str) -> Member | None:
        """The file with one of these base names (any case), the least deep one.

        Raises
        ------
        DataError
            If two files at the same depth have the name: the choice would be
            arbitrary.
        """
        for name in names:
            found = [m for m in self.members if m.name.lower() == name.lower()]
            if self.single is not None and self.single in found:
                return self.single
            found.sort(key=lambda member: member.depth)
            if len(found) > 1 and found[0].depth == found[1].depth:
                raise DataError(
                    f"There are two files named {name}: {found[0].label} and {found[1].label}. "
                    "Give the path of the one to read.",
                    path=self.path,
                )
            if found:
                return found[0]
        return None

    def names(self) -> list[str]:
        """Base names of all files, sorted."""
        return sorted({member.name for member in self.members})

    def telling(self, progress: Progress | None) -> Source:
        """The same, whose reading is told to ``progress``."""
        members = tuple(replace(member, progress=progress) for member in self.members)
        single = self.single and replace(self.single, progress=progress)
        return replace(self, members=members, single=single)


def open_source(path: str | os.PathLike[str]) -> Source:
    """Open a folder, zip or file for reading.

    Raises
    ------
    DataError
        If the path does not exist, or the archive is damaged, encrypted or
        would inflate beyond the limits.
    """
    try:
        place = Path(path).expanduser()
        place.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise DataError("There is no such file or folder; check the path.", path=path) from None
    except (OSError, ValueError, RuntimeError) as error:  # no right, too long, NUL, no such ~user
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"This cannot be opened ({reason}); check the path.", path=path) from None
    if place.is_dir():
        return Source(place, tuple(_folder_members(place)))
    if not place.is_file():
        raise DataError("This is neither a file nor a folder; give one.", path=place)
    packed = file_kinds.is_zip(_first_bytes(place)) or place.suffix.lower() == ".zip"
    if packed:
        members = _zip_members(place)
        if members is not None:
            return Source(place, tuple(members))
    # The file that was named is read even if it is a link: the person chose it.
    single = _file_member(place, None, 0)
    if packed:  # a workbook; which sheet is read stands in every message
        whole = joined(_file_chunks(place, ALL))
        sheet = workbook.first_sheet(whole, place, check_workbook)
        single = replace(single, label=f"{place}, {sheet}") if sheet else single
    return Source(place, (single, *_neighbours(place)), single)


def _neighbours(place: Path) -> list[Member]:
    """The other files of a file's folder: titles may lie beside a ratings file."""
    try:
        others = sorted(place.parent.iterdir())
    except OSError:  # a folder that may be entered, but not listed
        return []
    return [
        _file_member(other, place.parent, 0)
        for other in others
        if other != place and other.suffix.lower() != ".zip" and other.is_file()
    ]


def _first_bytes(path: Path) -> bytes:
    with _opened(path) as file:
        return file.read(file_kinds.SIGN_BYTES)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise DataError(
            f"The file cannot be opened ({error.strerror}); check its permissions.", path=path
        ) from error


def _folder_members(folder: Path) -> list[Member]:
    return [_file_member(path, folder, depth) for path, depth in folder_files(folder)]


def folder_files(folder: Path) -> list[tuple[Path, int]]:
    """The files of a folder that can be read as data, in order, with the number of folders above.

    Raises
    ------
    DataError
        If there are more than ``MAX_FOLDER_FILES``.
    """
    found: list[tuple[Path, int]] = []
    for parent, folders, files in os.walk(folder):
        depth = len(Path(parent).relative_to(folder).parts)
        folders[:] = sorted(
            name for name in folders if depth < MAX_FOLDER_DEPTH and not name.startswith(".")
        )
        found += [(Path(parent) / name, depth) for name in sorted(files) if name[0] != "."]
        if len(found) > MAX_FOLDER_FILES:
            raise DataError(
                f"The folder holds more than {MAX_FOLDER_FILES:,} files; give the folder or the "
                "file of the data set itself.",
                path=folder,
            )
    return found


def _file_member(path: Path, root: Path | None, depth: int) -> Member:
    def chunks(limit: int) -> Iterator[bytes]:
        # A link that leaves the folder could make a shared folder read any file.
        try:
            inside = root is None or path.resolve().is_relative_to(root.resolve())
        except (OSError, RuntimeError):  # links in a circle
            inside = False
        if not inside:
            raise DataError(
                "This is a link to a place outside the folder, or to none, so it is not followed; "
                "copy the file into the folder or give its own path.",
                path=path,
            )
        if not path.is_file():  # opening a pipe would wait for its writer for ever
            raise DataError("This is no regular file; give the ratings as a file.", path=path)
        yield from _file_chunks(path, limit)

    name = file_kinds.plain_name(path.name)
    try:
        size = path.stat().st_size if name == path.name else 0
    except OSError:  # a link to nothing
        size = 0
    return Member(str(path), name, depth, chunks, size)


def _file_chunks(path: Path, limit: int) -> Iterator[bytes]:
    packing = file_kinds.packing(_first_bytes(path))
    with _opened(path) as file:
        size = path.stat().st_size
        try:
            if packing is not None:
                yield from inflate(file, packing, str(path), size, limit)
            else:
                yield from checked(file, path, limit)
        except OSError as error:
            raise DataError(
                f"The file cannot be read ({error.strerror or error}); check the disk.", path=path
            ) from error


def _zip_members(path: Path) -> list[Member] | None:
    """The files of an archive; None for a workbook, which is one file to its reader."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [info for info in archive.infolist() if not info.is_dir()]
    except (*_ZIP_ERRORS, NotImplementedError) as error:
        raise _bad_zip(path, error) from error
    names = [info.filename for info in entries]
    file_kinds.refuse_zipped(names, path)
    if file_kinds.WORKBOOK in names:
        return None
    entries = [info for info in entries if _is_safe(info.filename)]
    check_inflation(path, sum(i.compress_size for i in entries), sum(i.file_size for i in entries))
    for info in entries:
        check_inflation(f"{path}/{info.filename}", info.compress_size, info.file_size)
    return [_zip_member(path, info) for info in entries]


# What zipfile raises for damaged files, among them what its parts raise.
_ZIP_ERRORS = (
    zipfile.BadZipFile, EOFError, OSError, ValueError, OverflowError, LookupError, struct.error,
    zlib.error,
)  # fmt: skip


def _bad_zip(path: object, error: Exception) -> DataError:
    return DataError(
        f"The zip file is damaged or incomplete ({brief(error)}); get a fresh copy.", path=path
    )


def _is_safe(name: str) -> bool:
    """Whether a member stays inside its archive and is not a system by-product."""
    pure = PurePosixPath(name.replace("\\", "/"))
    drive = len(pure.parts[0]) == 2 and pure.parts[0].endswith(":") if pure.parts else True
    hidden = pure.name.startswith(".") or "__MACOSX" in pure.parts
    return not (pure.is_absolute() or ".." in pure.parts or drive or hidden)


def _zip_member(path: Path, info: zipfile.ZipInfo) -> Member:
    label = f"{path}/{info.filename}"

    def chunks(limit: int) -> Iterator[bytes]:
        if info.flag_bits & 1:
            raise DataError(
                "The zip file is protected by a password; unpack it and give the folder.",
                path=label,
            )
        if info.compress_type not in COMPRESSIONS:
            raise DataError(
                "The zip file uses a compression other than the usual one (deflate), which is not "
                "read; unpack it and give the folder.",
                path=label,
            )
        try:
            # zipfile stops at the declared size and checks the CRC, so the check of declared
            # sizes above bounds the content; reading in chunks bounds what is inflated at once.
            with zipfile.ZipFile(path) as archive, archive.open(info) as stream:
                packing = file_kinds.packing(stream.peek(10)[:10])  # type: ignore[attr-defined]
                if packing is not None:
                    yield from inflate(stream, packing, label, info.file_size, limit)
                else:
                    yield from checked(stream, label, limit, info.compress_size)
        except (*_ZIP_ERRORS, NotImplementedError) as error:
            raise _bad_zip(label, error) from error

    pure = PurePosixPath(info.filename.replace("\\", "/"))
    name = file_kinds.plain_name(pure.name)
    return Member(label, name, len(pure.parts) - 1, chunks, info.file_size)
