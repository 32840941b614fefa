"""The store: every run, whoever started it and whoever computes it.

A store is a folder: ``runs.db`` (SQLite) and ``runs/<id>/`` with the artifacts. Any
number of processes and threads may use it at once.
"""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from gmc_core.runs.store import calibrations
from gmc_core.runs.store.errors import StoreError, explained
from gmc_core.runs.store.folders import disk_bytes
from gmc_core.runs.store.run import Run
from gmc_core.runs.store.submitting import Submitting

LEAVING = ".leaving"


class Store(Submitting):
    """The runs of one folder.

    Parameters
    ----------
    path : the folder; default :func:`home`. It is created if it does not exist.

    Raises
    ------
    StoreError
        If the folder cannot be used, or was written by a newer version.

    Attributes
    ----------
    set_aside : where a damaged database was moved to when this store was opened,
        None in general. Its artifacts stay, and a message for everyone tells of it.
    """

    # Changing -------------------------------------------------------------------

    def rename(self, id: str, label: str) -> Run:
        """Give a run a label."""
        return self._set(id, label=label.strip())

    def annotate(self, id: str, note: str) -> Run:
        """Give a run a note."""
        return self._set(id, note=note.strip())

    def _set(self, id: str, **values: Any) -> Run:
        columns = ", ".join(f"{name} = ?" for name in values)
        with self.writing() as database:
            database.execute(f"UPDATE runs SET {columns} WHERE id = ?", (*values.values(), id))
        return self.run(id)

    def cancel(self, id: str) -> Run:
        """Cancel a run, or all of a sweep that is not finished.

        A running one stops within about a second and keeps what it has reached.
        """
        self.run(id)
        with self.writing() as database:
            database.execute(
                "UPDATE runs SET state = 'cancelled', ended = ?, message = 'Cancelled before it "
                "began.' WHERE (id = ? OR parent = ?) AND state = 'queued' AND kind != 'sweep'",
                (time.time(), id, id),
            )
            database.execute(
                "UPDATE runs SET cancel = 1 WHERE (id = ? OR parent = ?) AND state = 'running'",
                (id, id),
            )
        return self.run(id)

    def resume(self, id: str, *, however_long: bool = False) -> Run:
        """Queue an interrupted, cancelled or failed run again (of a sweep: all such).

        however_long : also if it takes longer than an hour.

        It goes on from its last saved state and ends as if it had not been stopped. A comparison
        computes the fits that it has not, also of a finished one those that have failed.

        Raises
        ------
        StoreError
            If there is nothing to resume.
        """
        run = self.run(id)
        with self.writing():
            if however_long:
                self.allow_long(id)
            changed = self._queue_again(id)
        if not changed:
            raise StoreError(f"Run {id} is {run.state}, so there is nothing to resume.")
        return self.run(id)

    def delete(self, *ids: str) -> int:
        """Delete runs (a sweep with its children) and their files; returns bytes freed.

        A comparison that was taken in from the folder of an earlier version goes with the folder.

        Raises
        ------
        StoreError
            If one of them is running; cancel it first. Then none is deleted.
        """
        gone: list[str] = []
        folders: list[str] = []  # of an earlier version, whose comparison goes
        try:
            with self.writing() as database:
                for id in ids:
                    self.run(id)
                    rows = self.rows(
                        "SELECT id, state FROM runs WHERE id = ? OR parent = ?", id, id
                    )
                    if any(row["state"] == "running" for row in rows):
                        raise StoreError(f"Run {id} is running; cancel it first, then delete it.")
                    gone += [row["id"] for row in rows]
                for name in gone:
                    rows = self.rows("SELECT folder FROM older_comparisons WHERE run = ?", name)
                    folders += [row["folder"] for row in rows]
                    with suppress(FileNotFoundError):
                        self.folder(name).rename(self._leaving(name))
                database.executemany("DELETE FROM runs WHERE id = ?", [(id,) for id in ids])
        except BaseException:
            with suppress(StoreError):
                self._remove_leaving()  # of runs that stay
            raise
        for name in gone:
            with suppress(StoreError):  # the worker takes it away too
                calibrations.forget(self, name)
        for folder in folders:
            shutil.rmtree(self.path / "comparisons" / folder, ignore_errors=True)
        freed = sum(disk_bytes(self._leaving(name)) for name in gone)
        self._remove_leaving()
        with self._lock, explained(self.path):
            self._database.execute("PRAGMA incremental_vacuum").fetchall()
        return freed

    def _leaving(self, id: str) -> Path:
        """What the folder of a run is called while it is being deleted."""
        return self.folder(id).with_suffix(LEAVING)

    def _remove_leaving(self) -> None:
        """Remove the folders of deleted runs, those of a process killed meanwhile included.

        If it was killed before the database had changed, the run has its folder back.
        """
        with self.writing():  # and explained: what cannot be removed is said
            for folder in (self.path / "runs").glob(f"*{LEAVING}"):
                if self.rows("SELECT 1 FROM runs WHERE id = ?", folder.stem):
                    folder.rename(folder.with_suffix(""))
                    continue
                with suppress(FileNotFoundError):
                    shutil.rmtree(folder)

    def acknowledge(self) -> None:
        """Note that a person has read the store's own warnings; they stay, as infos."""
        with self.writing() as database:
            database.execute("UPDATE messages SET level = 'info' WHERE run IS NULL")

    def disk_usage(self) -> int:
        """Bytes of the whole store."""
        return disk_bytes(self.path)

    def command(self, id: str) -> str:
        """The shell command that repeats this run."""
        from gmc_core.runs.store.command import command

        run = self.run(id)
        if run.sweep is None:
            return command(run)
        # What is known of the data is with the fits of a sweep, not with the sweep.
        seen = (child.data for child in self.runs(parent=id) if child.data is not None)
        return command(run, next(seen, None))
