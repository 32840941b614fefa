"""Noticing workers that have died, without comparing clocks of different machines.

A worker adds 1 to its row's ``beat`` several times a second. Whoever looks keeps, on
its own monotonic clock, since when it has seen the same number. A process of this
computer that is gone is noticed at once; one that is there but silent gets more time,
since a full disk or one large product can keep it from writing.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import AbstractContextManager
from typing import Protocol

from gmc_core.runs.store.identity import host, process_mark

STALE_SECONDS = 10.0
SILENT_SECONDS = 120.0
LOOK_SECONDS = 0.5


class Rows(Protocol):
    """What is looked at: a database of runs and workers."""

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """The rows that a query finds."""

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """One transaction that writes."""


class Watch:
    """What one store object has seen of the workers."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, float]] = {}
        self._looked = float("-inf")

    def look(self, store: Rows, *, force: bool = False) -> list[str]:
        """Mark the runs of dead workers; returns the ids of these workers."""
        now = time.monotonic()
        if not force and now - self._looked < LOOK_SECONDS:
            return []
        self._looked = now
        # In this order: a worker is in its table before it takes a run.
        running = store.rows("SELECT id, worker FROM runs WHERE state = 'running'")
        workers = store.rows("SELECT id, host, pid, process, beat FROM workers")
        dead: dict[str, int | None] = {}
        for row in workers:
            beat, since = self._seen.get(row["id"], (-1, now))
            if beat != row["beat"]:
                since = now
            self._seen[row["id"]] = (row["beat"], since)
            here = row["host"] == host()
            gone = here and process_mark(row["pid"]) != row["process"]
            if gone or now - since > (SILENT_SECONDS if here else STALE_SECONDS):
                dead[row["id"]] = row["beat"]
        known = {row["id"] for row in workers}
        for row in running:
            if row["worker"] not in known:
                dead[row["worker"]] = None
        self._seen = {name: seen for name, seen in self._seen.items() if name in known}
        return [name for name, beat in dead.items() if self._expire(store, name, beat)]

    @staticmethod
    def _expire(store: Rows, worker: str, beat: int | None) -> bool:
        with store.writing() as database:
            now = store.rows("SELECT beat FROM workers WHERE id = ?", worker)
            if (now[0]["beat"] if now else None) != beat:
                return False  # it is alive, or another process has expired it
            database.execute("DELETE FROM workers WHERE id = ?", (worker,))
            database.execute(
                "UPDATE runs SET state = CASE WHEN cancel THEN 'cancelled' ELSE 'interrupted' END, "
                "worker = NULL, ended = ?, message = 'The process that computed it died (killed, "
                "out of memory, or a power failure). Resume goes on from its last saved state.' "
                "WHERE worker IS ? AND state = 'running'",
                (time.time(), worker),
            )
        return True
