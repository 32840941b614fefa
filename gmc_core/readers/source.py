"""Where the bytes come from: a folder, a zip archive, or one file.

All three are opened in the same way and their files are found by base name at
any depth, so that a format module never asks how the data were packed. Nothing
is ever extracted to disk.
"""

from __future__ import annotations

import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from gmc_core.errors import DataError

# A hostile archive of a few kilobytes can inflate to terabytes. The largest
# public rating set, MovieLens 32M, inflates to less than 1 GB at a ratio of 4.
MAX_TOTAL_BYTES = 8 * 1024**3
MAX_RATIO = 200
RATIO_APPLIES_FROM_BYTES = 100 * 1024**2

# A folder is searched, so a home directory given by mistake must not be walked.
MAX_FOLDER_DEPTH = 5
MAX_FOLDER_FILES = 20_000

GZIP_CHUNK = 1 << 20
HEAD_BYTES = 1 << 16
ALL = -1


@dataclass(frozen=True)
class Member:
    """One file of a source.

    ``label`` is the text for messages, ``name`` the base name without ``.gz``,
    ``depth`` the number of folders above it.
    """

    label: str
    name: str
    depth: int
    _read: Callable[[int], bytes]

    def read(self) -> bytes:
        """All bytes, inflated.

        Raises
        ------
        DataError
            If the file is empty, damaged, encrypted or too large to inflate.
        """
        data = self._read(ALL)
        if not data:
            raise DataError("The file is empty; give a file with ratings.", path=self.label)
        return data

    def head(self) -> bytes:
        """The first bytes (64 KB), which is enough to recognise a format; may be empty."""
        return self._read(HEAD_BYTES)[:HEAD_BYTES]


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


def open_source(path: str | os.PathLike[str]) -> Source:
    """Open a folder, zip or file for reading.

    Raises
    ------
    DataError
        If the path does not exist, or the archive is damaged, encrypted or
        would inflate beyond the limits.
    """
    place = Path(path).expanduser()
    if not place.exists():
        raise DataError("There is no such file or folder; check the path.", path=place)
    if place.is_dir():
        return Source(place, tuple(_folder_members(place)))
    if not place.is_file():
        raise DataError("This is neither a file nor a folder; give one.", path=place)
    if _starts_with(place, b"PK\x03\x04") or place.suffix.lower() == ".zip":
        return Source(place, tuple(_zip_members(place)))
    # The file that was named is read even if it is a link: the person chose it.
    single = _file_member(place, None, 0)
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


def _starts_with(path: Path, magic: bytes) -> bool:
    with _opened(path) as file:
        return file.read(len(magic)) == magic


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise DataError(
            f"The file cannot be opened ({error.strerror}); check its permissions.", path=path
        ) from error


def _folder_members(folder: Path) -> list[Member]:
    members = []
    for parent, folders, files in os.walk(folder):
        depth = len(Path(parent).relative_to(folder).parts)
        folders[:] = sorted(
            name for name in folders if depth < MAX_FOLDER_DEPTH and not name.startswith(".")
        )
        members += [
            _file_member(Path(parent) / name, folder, depth)
            for name in sorted(files)
            if not name.startswith(".")
        ]
        if len(members) > MAX_FOLDER_FILES:
            raise DataError(
                f"The folder holds more than {MAX_FOLDER_FILES:,} files; give the folder or the "
                "file of the data set itself.",
                path=folder,
            )
    return members


def _file_member(path: Path, root: Path | None, depth: int) -> Member:
    def read(limit: int) -> bytes:
        # A link that leaves the folder could make a shared folder read any file.
        inside = root is None or path.resolve().is_relative_to(root.resolve())
        if not inside:
            raise DataError(
                "This is a link to a place outside the folder, so it is not followed; copy the "
                "file into the folder or give its own path.",
                path=path,
            )
        return _read_file(path, limit)

    return Member(str(path), _plain_name(path.name), depth, read)


def _read_file(path: Path, limit: int) -> bytes:
    if not _starts_with(path, b"\x1f\x8b"):
        with _opened(path) as file:
            data: bytes = file.read(limit)
            return data
    with _opened(path) as file:
        return _inflate(file, str(path), path.stat().st_size, limit)


def _inflate(packed: BinaryIO, label: str, packed_bytes: int, limit: int) -> bytes:
    """The content of a gzip stream, checked while it grows."""
    chunks, total = [], 0
    try:
        with gzip.GzipFile(fileobj=packed) as stream:
            while chunk := stream.read(GZIP_CHUNK):
                total += len(chunk)
                _check_inflation(label, packed_bytes, total)
                chunks.append(chunk)
                if 0 <= limit <= total:
                    break
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"The gzip file is damaged or incomplete ({error}); get a fresh copy.", path=label
        ) from error
    data = b"".join(chunks)
    if data[257:262] == b"ustar":
        raise DataError("Tar archives are not read; unpack it and give the folder.", path=label)
    return data


def _check_inflation(path: object, packed: int, inflated: int) -> None:
    if inflated > MAX_TOTAL_BYTES:
        raise DataError(
            f"The archive would inflate to more than {MAX_TOTAL_BYTES / 1024**3:g} GB, which is "
            "refused as a protection against archive bombs; unpack it yourself and give the "
            "folder.",
            path=path,
        )
    if inflated > RATIO_APPLIES_FROM_BYTES and inflated > MAX_RATIO * max(packed, 1):
        raise DataError(
            f"The archive would inflate to more than {MAX_RATIO} times its size, which is refused "
            "as a protection against archive bombs; unpack it yourself and give the folder.",
            path=path,
        )


def _zip_members(path: Path) -> list[Member]:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [info for info in archive.infolist() if not info.is_dir()]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise _bad_zip(path, error) from error
    entries = [info for info in entries if _is_safe(info.filename)]
    _check_inflation(path, sum(i.compress_size for i in entries), sum(i.file_size for i in entries))
    for info in entries:
        _check_inflation(f"{path}/{info.filename}", info.compress_size, info.file_size)
    return [_zip_member(path, info) for info in entries]


def _bad_zip(path: object, error: Exception) -> DataError:
    return DataError(
        f"The zip file is damaged or incomplete ({error}); get a fresh copy.", path=path
    )


def _is_safe(name: str) -> bool:
    """Whether a member stays inside its archive and is not a system by-product."""
    pure = PurePosixPath(name.replace("\\", "/"))
    drive = len(pure.parts[0]) == 2 and pure.parts[0].endswith(":") if pure.parts else True
    hidden = pure.name.startswith(".") or "__MACOSX" in pure.parts
    return not (pure.is_absolute() or ".." in pure.parts or drive or hidden)


def _zip_member(path: Path, info: zipfile.ZipInfo) -> Member:
    label = f"{path}/{info.filename}"

    def read(limit: int) -> bytes:
        if info.flag_bits & 1:
            raise DataError(
                "The zip file is protected by a password; unpack it and give the folder.",
                path=label,
            )
        try:
            # zipfile stops at the declared size and checks the CRC, so the
            # check of declared sizes above bounds what can be inflated here.
            with zipfile.ZipFile(path) as archive, archive.open(info) as stream:
                packed = stream.read(2)
                zipped = packed == b"\x1f\x8b"
                data = packed + stream.read(ALL if zipped else limit)
        except NotImplementedError as error:
            raise DataError(
                f"The zip file uses a compression that is not supported ({error}); unpack it "
                "and give the folder.",
                path=label,
            ) from error
        except (zipfile.BadZipFile, EOFError, OSError, ValueError, zlib.error) as error:
            raise _bad_zip(label, error) from error
        return _inflate(io.BytesIO(data), label, len(data), limit) if zipped else data

    pure = PurePosixPath(info.filename.replace("\\", "/"))
    return Member(label, _plain_name(pure.name), len(pure.parts) - 1, read)


def _plain_name(name: str) -> str:
    return name[:-3] if name.lower().endswith(".gz") else name
