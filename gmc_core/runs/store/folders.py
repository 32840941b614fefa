"""Where runs are kept, and writing files there completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import platformdirs

from gmc_core.base.files import PART, replacing
from gmc_core.runs.store.errors import explained


def home() -> Path:
    """The folder of all runs: ``GMC_HOME``, or the user's data folder."""
    wanted = os.environ.get("GMC_HOME")
    if wanted:
        return Path(wanted).expanduser().absolute()
    return Path(platformdirs.user_data_dir("gmc"))


def write_atomically(
    path: Path, write: Callable[[BinaryIO], object], *, durable: bool = True
) -> None:
    """Create ``path`` by ``write(file)``; a crash leaves the old file or the new one.

    durable : also survive a power failure, which costs a wait for the disk.
    """
    with explained(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, durable=durable) as file:
            write(file)
        if durable:
            _sync_folder(path.parent)


def remove_parts(folder: Path) -> None:
    """Remove what processes that were killed while writing have left in a folder."""
    for path in folder.glob(f"{PART}*"):
        with suppress(OSError):
            path.unlink()


def _sync_folder(folder: Path) -> None:
    """Make the new name durable too, where the system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some network file systems cannot; the file's content is safe
    finally:
        os.close(descriptor)


def disk_bytes(folder: Path) -> int:
    """Bytes of all files below ``folder``."""
    total = 0
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return 0
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                total += disk_bytes(Path(entry.path))
            else:
                total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue  # removed meanwhile
    return total
