"""The database file: versioned schema, opening, setting a damaged file aside."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gmc_core.runs.store.errors import StoreError, explain, is_damaged
from gmc_core.runs.store.keys import doubt_copied_keys

BUSY_SECONDS = 30.0

# One script per version; a script that was released is never changed, only followed.
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE runs (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        parent TEXT REFERENCES runs(id) ON DELETE CASCADE,
        state TEXT NOT NULL,
        label TEXT NOT NULL DEFAULT '',
        note TEXT NOT NULL DEFAULT '',
        config TEXT NOT NULL,
        sweep TEXT,
        request TEXT NOT NULL,
        key TEXT,
        data_sha256 TEXT,
        data TEXT,
        keep INTEGER NOT NULL DEFAULT 1,
        again INTEGER NOT NULL DEFAULT 0,
        created REAL NOT NULL,
        started REAL,
        ended REAL,
        repetition INTEGER NOT NULL DEFAULT 0,
        iteration INTEGER NOT NULL DEFAULT 0,
        cost TEXT,
        summary TEXT,
        message TEXT NOT NULL DEFAULT '',
        version TEXT NOT NULL,
        machine TEXT,
        worker TEXT,
        cancel INTEGER NOT NULL DEFAULT 0,
        disk INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX runs_by_state ON runs(state, number);
    CREATE INDEX runs_by_parent ON runs(parent);
    CREATE INDEX runs_by_key ON runs(key);
    CREATE INDEX runs_by_request ON runs(request);
    CREATE TABLE records (
        run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        repetition INTEGER NOT NULL,
        iteration INTEGER NOT NULL,
        record TEXT NOT NULL,
        PRIMARY KEY (run, repetition, iteration)
    ) WITHOUT ROWID;
    CREATE TABLE repetitions (
        run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        repetition INTEGER NOT NULL,
        result TEXT NOT NULL,
        PRIMARY KEY (run, repetition)
    ) WITHOUT ROWID;
    CREATE TABLE messages (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        run TEXT REFERENCES runs(id) ON DELETE CASCADE,
        time REAL NOT NULL,
        level TEXT NOT NULL,
        text TEXT NOT NULL
    );
    CREATE INDEX messages_by_run ON messages(run, number);
    CREATE TABLE workers (
        id TEXT PRIMARY KEY,
        host TEXT NOT NULL,
        pid INTEGER NOT NULL,
        process TEXT NOT NULL,
        beat INTEGER NOT NULL DEFAULT 0,
        started REAL NOT NULL
    );
    CREATE TABLE sources (
        source TEXT PRIMARY KEY,
        data TEXT NOT NULL
    );
    CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    """,
    # The kind of error that ended a run, and whether the run may answer for another of the same
    # settings. Before, only the message told a breakdown from what may go better the next time;
    # this one time it is read, so that the breakdowns of old runs stay results. The kind of
    # every other old error stays unknown, and such a run may be resumed.
    """
    ALTER TABLE runs ADD COLUMN error_kind TEXT;
    ALTER TABLE runs ADD COLUMN error_iteration INTEGER;
    ALTER TABLE runs ADD COLUMN answers INTEGER NOT NULL DEFAULT 1;
    UPDATE runs SET error_kind = 'not-positive-definite',
        error_iteration = CASE WHEN message GLOB 'Iteration [0-9]*:*'
            THEN CAST(substr(message, 11) AS INTEGER) END
        WHERE state = 'failed' AND instr(message, 'positive definite') > 0
    """,
    # Versions before the column ``answers`` copied the key of an imported run; see the step.
    "",
    # Comparisons are runs: what is compared, its fits, and which folder of an earlier version
    # has become which run (no run any more where that has been deleted). A worker that computes
    # one run only, in somebody's command, is no worker for the others.
    """
    ALTER TABLE runs ADD COLUMN comparison TEXT;
    CREATE TABLE cells (
        run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        split INTEGER NOT NULL,
        method TEXT NOT NULL,
        state TEXT NOT NULL,
        record TEXT NOT NULL,
        PRIMARY KEY (run, split, method)
    ) WITHOUT ROWID;
    CREATE TABLE older_comparisons (
        folder TEXT PRIMARY KEY,
        run TEXT REFERENCES runs(id) ON DELETE SET NULL
    );
    ALTER TABLE workers ADD COLUMN only_run TEXT
    """,
    # Auto chooses the settings of a fit: what was asked, how far it is, and why these.
    "ALTER TABLE runs ADD COLUMN selection TEXT",
    # When the iteration that is being computed began, so that a page can tell a long one.
    "ALTER TABLE runs ADD COLUMN iteration_began REAL",
    # Which step of it goes on, and which share of that is done.
    "ALTER TABLE runs ADD COLUMN step TEXT; ALTER TABLE runs ADD COLUMN step_share REAL",
)

# What a script cannot say, by the version that it leads to; in the script's transaction.
STEPS: dict[int, Callable[[sqlite3.Connection], None]] = {3: doubt_copied_keys}

SCHEMA_VERSION = len(MIGRATIONS)

_opening = threading.Lock()


def connect(path: Path) -> tuple[sqlite3.Connection, Path | None]:
    """Open the database, creating or migrating it.

    Returns
    -------
    The connection, and where a damaged file was moved to, if there was one.

    Raises
    ------
    StoreError
        If the file is from a newer version, or the folder cannot be used.
    """
    aside = None
    with _opening:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            found = _identity(path)
            try:
                connection = _open(path)
            except sqlite3.DatabaseError as error:
                if not is_damaged(error):
                    raise
                # Another process may have been first: its new file is sound.
                if _identity(path) == found:
                    aside = _set_aside(path)
                connection = _open(path)
        except (sqlite3.Error, OSError) as error:
            raise explain(error, path.parent) from error
    return connection, aside


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        connection.row_factory = sqlite3.Row
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"The store in {path.parent} was written by a newer version of this program "
                f"(schema {version}, this one knows {SCHEMA_VERSION}). Update the program, or set "
                "GMC_HOME to another folder."
            )
        if version == 0:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            error = sqlite3.DatabaseError(problem)
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error
        _use_wal(connection)
        # A power failure may take the last commits, never the file; what a resumed run
        # needs is in the artifacts, which are written through to the disk.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        if version < SCHEMA_VERSION:
            _migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; SQLite does not wait for others by itself here."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or (
                time.monotonic() > deadline
            ):
                raise
            time.sleep(0.02)


def _migrate(connection: sqlite3.Connection) -> None:
    """Run the missing scripts, each with its version number in one transaction."""
    while True:
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Asked again under the lock: another process may have been first.
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version < SCHEMA_VERSION:
                for statement in MIGRATIONS[version].split(";"):
                    connection.execute(statement)
                if version + 1 in STEPS:
                    STEPS[version + 1](connection)
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        if version >= SCHEMA_VERSION - 1:
            return


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one of the same name; None if there is none."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino


def _set_aside(path: Path) -> Path:
    """Rename a damaged database and its companions; nothing is overwritten.

    The companions first: beside a new database an old log would be played back.
    """
    suffixes = ("-wal", "-shm", "")
    number = 1
    while any(path.with_name(f"{path.name}.damaged-{number}{s}").exists() for s in suffixes):
        number += 1
    target = path.with_name(f"{path.name}.damaged-{number}")
    for suffix in suffixes:
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(target.with_name(target.name + suffix))
    return target
