"""Which runs' models wait for the width of their intervals to be learned.

A file named after the run in the folder ``calibrate``; the worker takes it away when the
model file has the result (:mod:`gmc_core.runs.worker.calibrating`), or writes into it why there
is none. This is no state of a run: its figures stay what they are, and a run that is
queued always goes first.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from gmc_core.runs.store.errors import explained
from gmc_core.runs.store.folders import write_atomically
from gmc_core.runs.store.reading import Reading


def _path(store: Reading, id: str) -> Path:
    return store.path / "calibrate" / id


def ask(store: Reading, id: str) -> None:
    """Have the intervals of a run's model calibrated; it needs a worker, like a run.

    Raises
    ------
    StoreError
        If there is no such run, or nothing can be written.
    """
    _write(store, store.run(id).id, "")


def give_up(store: Reading, id: str, why: str) -> None:
    """Note why a model's intervals could not be calibrated."""
    _write(store, id, why)


def forget(store: Reading, id: str) -> None:
    """Take a request away: it is done, or its run is gone."""
    with explained(store.path), suppress(FileNotFoundError):
        _path(store, id).unlink()


def trouble(store: Reading, id: str) -> str | None:
    """Why a run's intervals could not be calibrated; "" while it waits, None without a request."""
    try:
        return _path(store, id).read_text(encoding="utf-8")
    except OSError:
        return None


def waiting(store: Reading) -> list[str]:
    """Ids of the runs whose models wait, oldest request first."""
    found = []
    with suppress(OSError):
        for path in (store.path / "calibrate").iterdir():
            with suppress(OSError):
                status = path.stat()
                if status.st_size == 0:
                    found.append((status.st_mtime_ns, path.name))
    return [name for _, name in sorted(found) if name.isalnum()]


def _write(store: Reading, id: str, text: str) -> None:
    write_atomically(_path(store, id), lambda file: file.write(text.encode()), durable=False)
