"""Checks of the store of runs and of the workers that it knows, without changing any of it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from gmc_core.doctor.check import Check
from gmc_core.runs.store import home
from gmc_core.runs.store.errors import explain
from gmc_core.runs.store.identity import host, process_mark
from gmc_core.runs.store.schema import SCHEMA_VERSION

# A worker gives a sign of life four times a second.
PAUSE_SECONDS = 1.5
_SHOWN = 5


def workers(pause: float = PAUSE_SECONDS) -> list[Check]:
    """The store, workers that are silent or gone, and runs that nobody computes.

    pause : seconds between two looks at the workers' signs of life.
    """
    path = home() / "runs.db"
    if not path.exists():
        return [Check("runs", "ok", "none yet"), Check("workers", "ok", "none")]
    try:
        with closing(_opened(path)) as database:
            return _store(database, path.parent) or _workers(database, pause)
    except (sqlite3.Error, OSError) as error:
        cause, _, remedy = str(explain(error, path.parent)).partition(". ")
        return [Check("runs", "fail", cause, remedy)]


def _opened(path: Path) -> sqlite3.Connection:
    """For reading only: opening a store in the usual way would mark its dead runs."""
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
    database.row_factory = sqlite3.Row
    return database


def _store(database: sqlite3.Connection, folder: Path) -> list[Check]:
    """What is wrong with the database itself; empty if nothing is."""
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        remedy = "Update the program, or set GMC_HOME to another folder."
        return [Check("runs", "fail", f"{folder}: written by a newer version", remedy)]
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'workers'").fetchone():
        return [Check("runs", "ok", "none yet"), Check("workers", "ok", "none")]
    problem = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        error = sqlite3.DatabaseError(problem)
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error
    return []


def _workers(database: sqlite3.Connection, pause: float) -> list[Check]:
    columns = {row["name"] for row in database.execute("PRAGMA table_info(workers)")}
    only_run = "only_run" if "only_run" in columns else "NULL AS only_run"  # of an older schema
    rows = database.execute(
        f"SELECT id, host, pid, process, beat, {only_run} FROM workers"
    ).fetchall()
    gone = [row for row in rows if row["host"] == host() and not _lives(row)]
    there = [row for row in rows if row not in gone]
    if there:
        time.sleep(pause)
    # In this order: a worker is in its table before it takes a run. One that has come or left
    # in the meantime is neither silent nor gone.
    runs = database.execute("SELECT id, state, worker FROM runs WHERE kind != 'sweep'").fetchall()
    now = dict(database.execute("SELECT id, beat FROM workers").fetchall())
    silent = [row for row in there if now.get(row["id"]) == row["beat"]]
    known = {*now, *(row["id"] for row in there)} - {row["id"] for row in gone}
    lost = [r["id"] for r in runs if r["state"] == "running" and r["worker"] not in known]
    waiting = [r["id"] for r in runs if r["state"] == "queued"]
    # A command that computes one run, as gmc compare does, takes none from the queue.
    commands = [row for row in there if row["only_run"] is not None]
    worked = len(there) > len(commands)
    return [_of_runs(len(runs), lost, waiting, worked), _of_workers(there, commands, silent, gone)]


def _lives(row: sqlite3.Row) -> bool:
    return process_mark(row["pid"]) == row["process"]


def _of_runs(count: int, lost: Sequence[str], waiting: Sequence[str], worked: bool) -> Check:
    if lost:
        return Check(
            "runs",
            "warn",
            f"{_some(lost)} counted as running, but nobody computes there any more",
            f"Go on from the last saved state: gmc runs resume {lost[0]}",
        )
    if waiting and not worked:
        return Check(
            "runs",
            "warn",
            f"{_some(waiting)} queued, and there is no worker",
            "Start one: gmc worker",
        )
    return Check("runs", "ok", f"{count:,}" if count else "none yet")


def _of_workers(
    there: Sequence[sqlite3.Row],
    commands: Sequence[sqlite3.Row],
    silent: Sequence[sqlite3.Row],
    gone: Sequence[sqlite3.Row],
) -> Check:
    if silent:
        return Check(
            "workers",
            "warn",
            f"{_processes(silent)} there but silent",
            "Wait for two minutes, since one large product can hold a worker up. If it stays so, "
            "end that process; its run becomes interrupted and can be resumed.",
        )
    if gone:
        return Check(
            "workers",
            "warn",
            f"{_processes(gone)} left behind by a worker or a command that was killed",
            "None needed: the next look at the runs (gmc runs list) removes the entry.",
        )
    at_work = [row for row in there if row not in commands]
    found = f"{_processes(at_work)} at work" if at_work else "none"
    if commands:
        found += f"; a command computes a run of its own: {_processes(commands)}"
    return Check("workers", "ok", found)


def _processes(rows: Sequence[sqlite3.Row]) -> str:
    return "process " + ", ".join(str(row["pid"]) for row in rows[:_SHOWN])


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return f"{', '.join(ids[:_SHOWN])}{more}"
