"""What all writers of files share: whole files or none, rights, and JSON without NaN."""

from __future__ import annotations

import math
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

PART = ".part-"  # how the names of files begin that are being written
_MOST_LINKS = 40  # as the systems themselves follow
_TRIAL = b"\0" * 4096  # a block: an empty file can be made on a full disk too


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[BinaryIO]:
    """A file that takes the name ``path`` only when it has been written completely.

    A symbolic link stays one: the file that it points to is replaced, or made. What is
    no plain file (a device, a pipe, an open descriptor such as /dev/stdout) is never
    replaced: when all is written, it is copied into it.

    durable : also survive a power failure, which costs a wait for the disk.

    Raises
    ------
    OSError
        If it cannot be written; what was there before stays.
    """
    if written_in_place(path):
        # Into a temporary file first: a device or a pipe gets the whole or nothing, and archives of
        # arrays and Parquet seek backwards while they are written, which a pipe cannot.
        with tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            with _opened(path) as target:
                shutil.copyfileobj(file, target, 1 << 20)
        return
    path = Path(os.path.realpath(path))
    descriptor, name = _new_part(path.parent)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        with suppress(OSError):  # no old file, or another user's
            os.chmod(name, stat.S_IMODE(os.stat(path).st_mode))
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def written_in_place(path: Path) -> bool:
    """Whether ``path`` is a device, a pipe or an open descriptor, and no file to be replaced."""
    if _descriptor(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def try_target(path: Path) -> None:
    """Find out before any work whether ``path`` can be written, leaving all as it is.

    A block is written beside it and removed. Devices are opened; pipes are not, since
    their reader would take the end of the trial for the end of what is written.

    Raises
    ------
    OSError
        If it cannot: no such folder, a folder itself, no right, no room.
    """
    found = _descriptor(path)
    if found is not None:
        os.close(os.dup(found))
        return
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG  # or a link to what is not there yet
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(21, "is a folder; give the name of a file", str(path))
    if not stat.S_ISREG(mode):
        if not os.access(path, os.W_OK):
            raise PermissionError(13, "may not be written to", str(path))
        if not stat.S_ISFIFO(mode):
            flags = os.O_WRONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
            os.close(os.open(path, flags))
        return
    folder = Path(os.path.realpath(path)).parent
    with tempfile.NamedTemporaryFile(prefix=PART, dir=folder) as file:
        file.write(_TRIAL)
        file.flush()


def _opened(path: Path) -> BinaryIO:
    """A device or pipe, or a copy of an open descriptor, which goes on where that stands."""
    found = _descriptor(path)
    if found is None:
        return path.open("wb", buffering=0)
    if found in (1, 2):
        (sys.stdout if found == 1 else sys.stderr).flush()
    return os.fdopen(os.dup(found), "wb")


def _descriptor(path: Path) -> int | None:
    """N where ``path`` is, or is a link to, /dev/fd/N; /dev/stdout is one."""
    folders = {os.path.realpath(folder) for folder in ("/dev/fd", "/proc/self/fd")}
    place = os.path.abspath(path)
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(place)
        folder = os.path.realpath(folder)
        if folder in folders and name.isdecimal():
            return int(name)
        try:
            place = os.path.join(folder, os.readlink(os.path.join(folder, name)))
        except OSError:
            return None
    return None


def _new_part(folder: Path) -> tuple[int, str]:
    """A new file to write into, and its name.

    Not a private one as ``tempfile`` makes: the system gives it the rights that this
    process gives new files. To ask for them would mean to change them for a moment, for
    all threads.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    for _ in range(tempfile.TMP_MAX):
        name = str(folder / f"{PART}{secrets.token_hex(6)}")
        with suppress(FileExistsError):
            return os.open(name, flags, 0o666), name
    raise FileExistsError(17, "has no name left for a new file", str(folder))


def without_nan(value: Any) -> Any:
    """The same with None for NaN and infinity, for which JSON has no word."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
