"""What can go wrong with the store, as sentences, and how it is recognised."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gmc_core.base.errors import GmcError


class StoreError(GmcError):
    """The store of runs cannot do what was asked; nothing was lost."""

    kind = "store"


def is_damaged(error: sqlite3.Error) -> bool:
    """Whether SQLite says that the file itself is broken, not merely busy or unreadable."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def explain(error: Exception, place: Path) -> StoreError:
    """The sentence for an error of SQLite or of the file system at ``place``."""
    code = getattr(error, "sqlite_errorcode", None)
    kind = None if code is None else code & 0xFF
    number = error.errno if isinstance(error, OSError) else None
    if kind == sqlite3.SQLITE_FULL or number in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(
            f"The disk that holds {place} is full. Delete runs or other files there, then resume."
        )
    if kind in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM) or (
        number in (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.EEXIST)
    ):
        return StoreError(
            f"The folder {place} cannot be written, so runs cannot be kept there. Make it "
            "writable, or set GMC_HOME to another folder."
        )
    if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreError(
            f"The store in {place} has been busy for too long. Try again; if that does not help, "
            "end the other programs that use it."
        )
    if isinstance(error, sqlite3.Error) and is_damaged(error):
        return StoreError(
            f"The store in {place} is damaged. Open it anew: the damaged file is set aside, "
            "and a new one begun."
        )
    return StoreError(f"The store in {place} does not work ({error}). Check the disk.")


@contextmanager
def explained(place: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the file system into :class:`StoreError`."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise explain(error, place) from error
