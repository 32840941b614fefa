"""What all writers of files share: whole files or none, rights, and JSON without NaN."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

PART = ".part-"  # how the names of files begin that are being written


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[BinaryIO]:
    """A file that takes the name ``path`` only when it has been written completely.

    durable : also survive a power failure, which costs a wait for the disk.

    Raises
    ------
    OSError
        If it cannot be written; what was there before stays.
    """
    descriptor, name = tempfile.mkstemp(prefix=PART, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        give_usual_rights(name)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def give_usual_rights(path: str | os.PathLike[str]) -> None:
    """Let a file that was made as a private temporary one be read like any other."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(path, 0o666 & ~mask)


def without_nan(value: Any) -> Any:
    """The same with None for NaN and infinity, for which JSON has no word."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
