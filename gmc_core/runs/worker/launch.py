"""Starting a worker from a page or a command; it goes on when these have ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from gmc_core.runs.store import Store
from gmc_core.runs.store.errors import explained
from gmc_core.runs.store.identity import host, process_mark

MAX_LOG_BYTES = 1_000_000


def log_path(store: Store) -> Path:
    """What the detached worker has printed."""
    return store.path / "worker.log"


def ensure_worker(store: Store, *, idle_seconds: float = 60.0) -> bool:
    """Start a detached worker unless one is alive or starting; true if it did.

    Cheap enough for every poll. Of several callers at once only one starts it.

    Raises
    ------
    StoreError
        If the process or its log file cannot be made.
    """
    store.notice_dead(force=True)
    with store.writing() as database:
        if store.rows("SELECT 1 FROM workers WHERE host = ? AND only_run IS NULL", host()):
            return False
        rows = store.rows("SELECT value FROM settings WHERE name = 'starting'")
        if rows:
            starting = json.loads(rows[0]["value"])
            if starting["host"] == host() and starting["process"] == process_mark(starting["pid"]):
                return False
        pid = _spawn(store, idle_seconds)
        value = json.dumps({"host": host(), "pid": pid, "process": process_mark(pid)})
        database.execute("INSERT OR REPLACE INTO settings VALUES ('starting', ?)", (value,))
    return True


def _spawn(store: Store, idle_seconds: float) -> int:
    """The restarter's process id. Not multiprocessing: that would run the page again."""
    package = Path(__file__).resolve().parents[2]
    search = [str(package.parent), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "GMC_HOME": str(store.path),
        "PYTHONPATH": os.pathsep.join(part for part in search if part),
    }
    log = log_path(store)
    with explained(store.path):
        if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        with log.open("ab") as output:
            process = subprocess.Popen(
                [
                    sys.executable, str(Path(__file__).with_name("restarter.py")),
                    sys.executable, "-m", "gmc_core", "worker",
                    "--idle-seconds", str(idle_seconds),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=store.path,
                env=environment,
                start_new_session=True,
            )  # fmt: skip
    # It is meant to outlive this process. Where it ends earlier, somebody must wait for it, or it
    # stays in the system's list of processes.
    threading.Thread(target=process.wait, name="restarter", daemon=True).start()
    return process.pid
