"""What a worker does to the store: take a run, write to it, give it back.

Every write names the worker, so that one that was given up for dead (a suspended
computer, say) and wakes up again finds itself :class:`Lost` instead of mixing its
records with its successor's.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from gmc_core.base.version import package_version
from gmc_core.fitting.fit import IterationRecord
from gmc_core.fitting.provenance import with_noise
from gmc_core.gaussian.linalg.progress import StepShare
from gmc_core.gaussian.settings import FitSettings
from gmc_core.runs.store.cells import Cell
from gmc_core.runs.store.errors import explained
from gmc_core.runs.store.folders import disk_bytes
from gmc_core.runs.store.identity import host, machine, process_mark
from gmc_core.runs.store.run import LONG_KEY, Run, State
from gmc_core.runs.store.selection import Selection
from gmc_core.runs.store.store import Store
from gmc_core.runs.store.submitting import key_of, source_of


class Lost(Exception):
    """The run is no longer this worker's."""


def register(
    store: Store, worker: str, *, beside: bool = False, only_run: str | None = None
) -> bool:
    """Enter a worker's process; false if another one is alive already.

    A worker entered from another computer (or a container that is no more) counts as
    alive only if it beats while this one watches.

    beside : work beside the others. only_run : the one run that this process computes, in
        somebody's command; it takes nobody's place then.
    """
    beside = beside or only_run is not None
    while True:
        store.notice_dead(force=True)
        before = {row["id"]: row["beat"] for row in store.rows("SELECT id, beat FROM workers")}
        with store.writing() as database:
            others = store.rows("SELECT id, host, beat FROM workers WHERE only_run IS NULL")
            if beside or not others:
                database.execute(
                    "INSERT INTO workers (id, host, pid, process, started, only_run) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        worker, host(), os.getpid(), process_mark(os.getpid()) or "", time.time(),
                        only_run,
                    ),
                )  # fmt: skip
                return True
        if any(row["host"] == host() for row in others):
            return False
        time.sleep(1.0)
        if any(
            before.get(row["id"], -1) != row["beat"]
            for row in store.rows("SELECT id, beat FROM workers WHERE only_run IS NULL")
        ):
            return False


def retire(store: Store, worker: str, *, if_idle: bool = False) -> bool:
    """Take a worker out; with ``if_idle`` only while nothing is queued.

    In one transaction with the look at the queue, so that a run submitted meanwhile
    either is seen here, or finds no worker and starts one.
    """
    with store.writing() as database:
        if if_idle and store.rows("SELECT 1 FROM runs WHERE state = 'queued' AND kind != 'sweep'"):
            return False
        # One that computed a single run says nothing of a worker that may be starting.
        database.execute(
            "DELETE FROM settings WHERE name = 'starting' AND NOT EXISTS "
            "(SELECT 1 FROM workers WHERE id = ? AND only_run IS NOT NULL)",
            (worker,),
        )
        database.execute("DELETE FROM workers WHERE id = ?", (worker,))
    return True


def beat(
    store: Store, worker: str, run: str | None, step: tuple[StepShare | None] | None = None
) -> tuple[bool, bool]:
    """One sign of life; returns whether to cancel the run, and whether it is lost.

    step : what the run is at, where that is news.
    """
    with store.writing() as database:
        database.execute("UPDATE workers SET beat = beat + 1 WHERE id = ?", (worker,))
        if run is None:
            return False, False
        rows = store.rows("SELECT cancel, worker, state FROM runs WHERE id = ?", run)
        mine = bool(rows) and rows[0]["worker"] == worker and rows[0]["state"] == "running"
        if mine and step is not None:
            (at,) = step
            database.execute(
                "UPDATE runs SET step = ?, step_share = ? WHERE id = ?",
                (at and at.step, at and at.share, run),
            )
        return mine and bool(rows[0]["cancel"]), not mine


def take(
    store: Store, worker: str, id: str | None = None, *, among: Collection[str] | None = None
) -> Claim | None:
    """The oldest queued run, now this worker's; None if there is none.

    id : this one instead, whatever else waits. among : one of these only.
    """
    with store.writing() as database:
        # A worker that was expired while it slept is alive after all.
        if not store.rows("SELECT 1 FROM workers WHERE id = ?", worker):
            raise Lost
        rows = store.rows(
            "SELECT id FROM runs WHERE state = 'queued' AND kind != 'sweep' "
            "AND id = coalesce(?, id) ORDER BY number",
            id,
        )  # fmt: skip
        chosen = next((row["id"] for row in rows if among is None or row["id"] in among), None)
        if chosen is None:
            return None
        database.execute(
            "UPDATE runs SET state = 'running', worker = ?, started = coalesce(started, ?), "
            "cancel = 0, message = '', error_kind = NULL, error_iteration = NULL, machine = ?, "
            "version = ?, iteration_began = ?, step = NULL, step_share = NULL WHERE id = ?",
            (
                worker, time.time(), json.dumps(machine()), package_version(), time.time(), chosen,
            ),
        )  # fmt: skip
        return Claim(store, worker, store.run(chosen))


class Claim:
    """A run in the hands of a worker.

    run : as it was taken.
    """

    def __init__(self, store: Store, worker: str, run: Run) -> None:
        self.store, self.worker, self.run = store, worker, run
        self.folder = store.folder(run.id)

    @contextmanager
    def _mine(self) -> Iterator[sqlite3.Connection]:
        with self.store.writing() as database:
            rows = self.store.rows(
                "SELECT 1 FROM runs WHERE id = ? AND worker = ? AND state = 'running'",
                self.run.id, self.worker,
            )  # fmt: skip
            if not rows:
                raise Lost
            yield database

    def _update(self, database: sqlite3.Connection, **values: Any) -> None:
        columns = ", ".join(f"{name} = ?" for name in values)
        database.execute(f"UPDATE runs SET {columns} WHERE id = ?", (*values.values(), self.run.id))

    def describe(self, data: dict[str, Any]) -> str:
        """Note what the data turned out to be; returns the run's key.

        data : of :func:`gmc_core.fitting.preparing.describe`; the noise is this run's own.
        """
        data = with_noise(self.run.config, data)
        key = key_of(self.run.config, data, self.run.comparison)
        assert key is not None
        with self._mine() as database:
            self._update(database, data=json.dumps(data), data_sha256=data["sha256"], key=key)
            # A sweep learns from its children, which share data and machine.
            database.execute(
                "UPDATE runs SET data = ?, data_sha256 = ?, machine = ?, version = ?, "
                "started = coalesce(started, ?) WHERE id = ?",
                (
                    json.dumps(data), data["sha256"], json.dumps(machine()), package_version(),
                    time.time(), self.run.parent,
                ),
            )  # fmt: skip
            self.store.remember_data(source_of(self.run.config), data)
        return key

    def select(self, selection: Selection, fit: FitSettings | None = None) -> None:
        """How far the choice of the settings is; at its end with the settings."""
        config = self.run.config if fit is None else replace(self.run.config, fit=fit)
        with self._mine() as database:
            self._update(
                database,
                selection=json.dumps(selection.as_dict()),
                iteration_began=time.time(),
                config=json.dumps(config.as_dict()),
            )
            self.run = self.store.run(self.run.id)

    def cached_run(self, key: str) -> str | None:
        """A finished run with the same key, whose result can be taken over."""
        if self.store.rows("SELECT 1 FROM runs WHERE id = ? AND again = 1", self.run.id):
            return None
        rows = self.store.rows(
            "SELECT id FROM runs WHERE key = ? AND kind = ? AND state = 'finished' AND answers "
            "AND keep >= ? AND id != ? "
            "AND id NOT IN (SELECT run FROM cells WHERE state = 'failed') ORDER BY number LIMIT 1",
            key, self.run.kind, int(self.run.keeps_model), self.run.id,
        )  # fmt: skip
        return rows[0]["id"] if rows else None

    def take_over(self, cached: str) -> bool:
        """Finish with the result of an identical run; false if that has gone meanwhile."""
        self.clear_files()
        source = self.store.folder(cached)
        with explained(self.store.path):
            self.folder.mkdir(parents=True, exist_ok=True)
            for file in source.iterdir() if source.is_dir() else ():
                # Files are replaced, never changed, so two names for one are safe.
                try:
                    os.link(file, self.folder / file.name)
                except OSError:
                    shutil.copyfile(file, self.folder / file.name)
        with self._mine() as database:
            if not self.store.rows("SELECT 1 FROM runs WHERE id = ?", cached):
                return False
            for table, columns in (
                ("records", "repetition, iteration, record"),
                ("repetitions", "repetition, result"),
                ("cells", "split, method, state, record"),
            ):
                database.execute(f"DELETE FROM {table} WHERE run = ?", (self.run.id,))
                database.execute(
                    f"INSERT INTO {table} (run, {columns}) "
                    f"SELECT ?, {columns} FROM {table} WHERE run = ?",
                    (self.run.id, cached),
                )
            database.execute(
                "UPDATE runs SET (repetition, iteration, cost, summary) = (SELECT repetition, "
                "iteration, cost, summary FROM runs WHERE id = ?) WHERE id = ?",
                (cached, self.run.id),
            )
            self.end("finished", f"The result is that of the identical run {cached}.")
        return True

    def start_at(
        self, repetition: int, records: Sequence[IterationRecord], cost: dict[str, Any]
    ) -> None:
        """Make ``records`` the ones of ``repetition``, and drop all later ones."""
        with self._mine() as database:
            database.execute(
                "DELETE FROM records WHERE run = ? AND repetition >= ?", (self.run.id, repetition)
            )
            database.execute(
                "DELETE FROM repetitions WHERE run = ? AND repetition >= ?",
                (self.run.id, repetition),
            )
            for record in records:
                self._insert(database, repetition, record)
            self._update(
                database,
                repetition=repetition,
                iteration=records[-1].iteration if records else 0,
                iteration_began=time.time(),
                cost=json.dumps(cost | ({LONG_KEY: True} if self.run.however_long else {})),
            )

    def add_record(self, repetition: int, record: IterationRecord) -> None:
        """One more finished iteration."""
        with self._mine() as database:
            self._insert(database, repetition, record)
            self._update(
                database,
                repetition=repetition,
                iteration=record.iteration,
                iteration_began=time.time(),
                disk=disk_bytes(self.folder),
            )

    def _insert(
        self, database: sqlite3.Connection, repetition: int, record: IterationRecord
    ) -> None:
        database.execute(
            "INSERT INTO records (run, repetition, iteration, record) VALUES (?, ?, ?, ?)",
            (self.run.id, repetition, record.iteration, json.dumps(record.as_dict())),
        )

    def add_repetition(self, repetition: int, result: dict[str, Any]) -> None:
        """One finished repetition; its predictions must have been saved before."""
        with self._mine() as database:
            database.execute(
                "INSERT OR REPLACE INTO repetitions (run, repetition, result) VALUES (?, ?, ?)",
                (self.run.id, repetition, json.dumps(result)),
            )

    def start_cells(self, *, anew: bool = False) -> None:
        """Keep the fits of a comparison that are done; anew : none."""
        with self._mine() as database:
            database.execute(
                "DELETE FROM cells WHERE run = ? AND (state != 'done' OR ?)", (self.run.id, anew)
            )
            self._count_cells(database)

    def put_cell(self, cell: Cell) -> None:
        """A fit of a comparison that begins or has ended; its files must be there then."""
        with self._mine() as database:
            database.execute(
                "INSERT OR REPLACE INTO cells (run, split, method, state, record) "
                "VALUES (?, ?, ?, ?, ?)",
                (self.run.id, cell.split, cell.method, cell.state, json.dumps(cell.as_dict())),
            )
            self._count_cells(database)

    def _count_cells(self, database: sqlite3.Connection) -> None:
        database.execute(
            "UPDATE runs SET disk = ?, iteration = (SELECT count(*) FROM cells WHERE run = runs.id "
            "AND state != 'running') WHERE id = ?",
            (disk_bytes(self.folder), self.run.id),
        )

    def end(
        self,
        state: State,
        message: str = "",
        summary: dict[str, Any] | None = None,
        *,
        error_kind: str | None = None,
        error_iteration: int | None = None,
    ) -> None:
        """Give the run back in its last state.

        error_kind, error_iteration : of a run that failed, see :class:`gmc_core.runs.store.Run`.
        """
        disk = disk_bytes(self.folder)
        with self._mine() as database:
            values: dict[str, Any] = {} if summary is None else {"summary": json.dumps(summary)}
            self._update(
                database, state=state, message=message, worker=None, cancel=0, ended=time.time(),
                step=None, step_share=None,
                disk=disk, error_kind=error_kind, error_iteration=error_iteration, **values,
            )  # fmt: skip
            database.execute(
                "UPDATE runs SET ended = ? WHERE id = ?", (time.time(), self.run.parent)
            )
            if message:
                level = "error" if state == "failed" else "info"
                self.store.say(self.run.id, message, level=level)

    def clear_files(self) -> None:
        """Remove what an earlier attempt has left."""
        with explained(self.store.path), suppress(FileNotFoundError):
            shutil.rmtree(self.folder)
