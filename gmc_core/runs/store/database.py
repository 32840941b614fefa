"""The database of a store: transactions, queries, messages."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from gmc_core.runs.store import schema
from gmc_core.runs.store.errors import StoreError, explained
from gmc_core.runs.store.folders import home
from gmc_core.runs.store.liveness import Watch


class Database:
    """A store's folder and its database; safe to share between threads."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = home() if path is None else Path(path).expanduser().absolute()
        self._lock = threading.RLock()
        self._database, self.set_aside = schema.connect(self.path / "runs.db")
        self._watch = Watch()
        if self.set_aside is not None:
            self.say(
                None,
                f"The database of runs was damaged and has been set aside as {self.set_aside}; a "
                f"new one was begun. Models and pictures are still in {self.path / 'runs'}.",
                level="warning",
            )

    def close(self) -> None:
        """Close the database; the store cannot be used afterwards."""
        with self._lock:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction that no other process can come between."""
        with self._lock, explained(self.path):
            database = self._database
            if database.in_transaction:  # part of the caller's transaction
                yield database
                return
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise

    def rows(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """The rows of a query."""
        with self._lock, explained(self.path):
            return self._database.execute(query, values).fetchall()

    def say(self, id: str | None, text: str, *, level: str = "info") -> None:
        """Add a message; ``level`` is "info", "warning" or "error"."""
        with self.writing() as database:
            database.execute(
                "INSERT INTO messages (run, time, level, text) VALUES (?, ?, ?, ?)",
                (id, time.time(), level, text),
            )

    def notice_dead(self, *, force: bool = False) -> list[str]:
        """Turn the runs of workers that have died into interrupted ones.

        Called by every look at the runs, and at most twice a second then.
        """
        with self._lock:
            try:
                return self._watch.look(self, force=force)
            except StoreError:
                return []  # a store that can only be read still shows its runs
