"""The store: every run, whoever started it and whoever computes it.

A store is a folder: ``runs.db`` (SQLite) and ``runs/<id>/`` with the artifacts. Any
number of processes and threads may use it at once.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmc_core.datasets import DATASETS
from gmc_core.experiment import ExperimentConfig
from gmc_core.fit import IterationRecord
from gmc_core.ratings import RatingScale
from gmc_core.store import artifacts, schema
from gmc_core.store.errors import StoreError, explained
from gmc_core.store.identity import package_version
from gmc_core.store.places import disk_bytes, home
from gmc_core.store.run import RESUMABLE, Run, run_of
from gmc_core.store.watch import Watch

NAMED = frozenset({"sample", *DATASETS})

if TYPE_CHECKING:
    from gmc_core.model import GaussianModel
    from gmc_core.pictures import Picture


class Store:
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

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Database access ------------------------------------------------------------

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

    # Submitting -----------------------------------------------------------------

    def submit(
        self,
        config: ExperimentConfig,
        *,
        label: str = "",
        parent: str | None = None,
        again: bool = False,
        keep_model: bool = True,
        data: dict[str, Any] | None = None,
    ) -> Run:
        """Queue an experiment, or find the same one.

        The same one is a finished, queued or running run with the same settings on
        the same data and the same version of the model's code. Data that this store
        has never seen have no hash before the worker has loaded them; the worker
        then takes over the result of an identical run, if there is one.

        Parameters
        ----------
        label : a person's name for it.
        parent : id of the sweep that it belongs to; such a run is always new.
        again : make a new run even if there is the same one.
        keep_model : whether to keep the model and the pictures of all iterations.
        data : :func:`gmc_core.experiment.describe` of the data, where the caller has
            loaded them already.

        Notes
        -----
        Nothing computes until there is a worker: see :func:`gmc_core.worker.ensure_worker`.
        """
        config = anywhere(config)
        source = source_of(config)
        request = _hash({"config": config.as_dict(), "source": source})
        with self.writing() as database:
            if data is not None:
                self.remember_data(source, data)
            else:
                known = self.rows("SELECT data FROM sources WHERE source = ?", source)
                data = json.loads(known[0]["data"]) if known else None
            key = key_of(config, data)
            if parent is None and not again:
                same = self._same(request, key, keep_model)
                if same is not None:
                    return self.run(same)
            identity = secrets.token_hex(5)
            database.execute(
                "INSERT INTO runs (id, kind, parent, state, label, config, request, key, "
                "data_sha256, data, keep, again, created, version) "
                "VALUES (?, 'run', ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    identity, parent, label, json.dumps(config.as_dict()), request, key,
                    data and data["sha256"], data and json.dumps(data), int(keep_model),
                    int(again), time.time(), package_version(),
                ),
            )  # fmt: skip
            return self.run(identity)

    def submit_sweep(
        self,
        base: ExperimentConfig,
        sweep: dict[str, Any],
        children: list[ExperimentConfig],
        *,
        label: str = "",
        keep_models: bool = False,
    ) -> Run:
        """Queue a parent and its children in one transaction; see gmc_core.sweeps."""
        with self.writing() as database:
            identity = secrets.token_hex(5)
            database.execute(
                "INSERT INTO runs (id, kind, state, label, config, sweep, request, created, "
                "version) VALUES (?, 'sweep', 'queued', ?, ?, ?, ?, ?, ?)",
                (
                    identity, label, json.dumps(base.as_dict()), json.dumps(sweep),
                    _hash({"sweep": sweep, "base": base.as_dict()}), time.time(),
                    package_version(),
                ),
            )  # fmt: skip
            for child in children:
                self.submit(child, parent=identity, keep_model=keep_models)
            return self.run(identity)

    def _same(self, request: str, key: str | None, keep_model: bool) -> str | None:
        found = self.rows(
            "SELECT id FROM runs WHERE kind = 'run' AND keep >= ? AND ("
            "(key = ? AND state IN ('finished', 'queued', 'running')) OR "
            "(request = ? AND state IN ('queued', 'running'))) "
            "AND cancel = 0 ORDER BY state = 'finished' DESC, number LIMIT 1",
            int(keep_model), key, request,
        )  # fmt: skip
        return found[0]["id"] if found else None

    def remember_data(self, source: str, data: dict[str, Any]) -> None:
        """Note the hash and description of the data that ``source`` stands for."""
        with self.writing() as database:
            database.execute(
                "INSERT OR REPLACE INTO sources (source, data) VALUES (?, ?)",
                (source, json.dumps(data)),
            )

    # Reading --------------------------------------------------------------------

    def runs(
        self, *, state: str | None = None, parent: str | None = None, text: str = ""
    ) -> list[Run]:
        """Runs and sweeps, newest first; the children of ``parent`` if it is given.

        state : only these. text : only those whose id, label, note, data or settings
        contain it, without regard to case.
        """
        self.notice_dead()
        found = self._runs("parent IS ?", parent)
        wanted = text.casefold()
        return [
            run
            for run in found
            if (state is None or run.state == state)
            and (not wanted or wanted in _text_of(run).casefold())
        ]

    def run(self, id: str) -> Run:
        """One run.

        Raises
        ------
        StoreError
            If there is none with this id.
        """
        self.notice_dead()
        found = self._runs("id = ?", id)
        if not found:
            raise StoreError(f"There is no run {id!r}; it may have been deleted. List the runs.")
        return found[0]

    def find(self, text: str) -> Run:
        """The run whose id begins with ``text``, or whose label is ``text``."""
        rows = self.rows(
            "SELECT id FROM runs WHERE substr(id, 1, ?) = ? OR label = ? ORDER BY id = ? DESC",
            len(text), text, text, text,
        )  # fmt: skip
        if len(rows) > 1 and rows[0]["id"] != text:
            names = ", ".join(row["id"] for row in rows[:5])
            raise StoreError(f"Several runs are called {text!r} ({names}); give more of the id.")
        return self.run(rows[0]["id"] if rows and text else text)

    def _runs(self, where: str, *values: Any) -> list[Run]:
        rows = self.rows(f"SELECT * FROM runs WHERE {where} ORDER BY number DESC", *values)
        if not any(row["kind"] == "sweep" for row in rows):
            return [run_of(row, {}, row["disk"]) for row in rows]
        counts: dict[str, dict[str, int]] = {}
        disk: dict[str, int] = {}
        for row in self.rows(
            "SELECT parent, state, count(*) AS n, sum(disk) AS disk FROM runs "
            "WHERE parent IS NOT NULL GROUP BY parent, state"
        ):
            counts.setdefault(row["parent"], {})[row["state"]] = row["n"]
            disk[row["parent"]] = disk.get(row["parent"], 0) + row["disk"]
        return [
            run_of(row, counts.get(row["id"], {}), row["disk"] + disk.get(row["id"], 0))
            for row in rows
        ]

    def records(self, id: str) -> list[tuple[int, IterationRecord]]:
        """(repetition, record) of every finished iteration so far, in order."""
        rows = self.rows(
            "SELECT repetition, record FROM records WHERE run = ? ORDER BY repetition, iteration",
            id,
        )
        return [
            (row["repetition"], IterationRecord.from_dict(json.loads(row["record"])))
            for row in rows
        ]

    def results(self, id: str) -> list[dict[str, Any]]:
        """The finished repetitions, as :meth:`gmc_core.experiment.Repetition.as_dict`."""
        rows = self.rows("SELECT result FROM repetitions WHERE run = ? ORDER BY repetition", id)
        return [json.loads(row["result"]) for row in rows]

    def messages(self, id: str | None = None) -> list[tuple[float, str, str]]:
        """(time, level, text) of a run's messages; of the store's own without an id."""
        rows = self.rows(
            "SELECT time, level, text FROM messages WHERE run IS ? ORDER BY number", id
        )
        return [(row["time"], row["level"], row["text"]) for row in rows]

    def say(self, id: str | None, text: str, *, level: str = "info") -> None:
        """Add a message; ``level`` is "info", "warning" or "error"."""
        with self.writing() as database:
            database.execute(
                "INSERT INTO messages (run, time, level, text) VALUES (?, ?, ?, ?)",
                (id, time.time(), level, text),
            )

    # Artifacts ------------------------------------------------------------------

    def folder(self, id: str) -> Path:
        """Where the artifacts of a run are; it may not exist."""
        if not id.isalnum():
            raise StoreError(f"{id!r} is not the id of a run.")
        return self.path / "runs" / id

    def model_path(self, id: str) -> Path | None:
        """The saved model of the last finished iteration reached, None if there is none."""
        path = self.folder(id) / artifacts.MODEL
        return path if path.is_file() else None

    def model(self, id: str) -> GaussianModel:
        """The saved model; each call loads it anew (keep it).

        Raises
        ------
        StoreError
            If the run has none.
        """
        from gmc_core.model_file import load_model

        run, path = self.run(id), self.model_path(id)
        if path is None:
            why = f"is {run.state} and has no model yet" if run.keeps_model else "keeps no model"
            raise StoreError(f"Run {id} {why}; run it again, keeping its model.")
        return load_model(path)

    def pictures(self, id: str) -> list[tuple[int, int]]:
        """(repetition, iteration) of the pictures that are there, in order."""
        return artifacts.picture_index(self.folder(id))

    def picture(self, id: str, iteration: int, repetition: int | None = None) -> Picture | None:
        """The :class:`gmc_core.pictures.Picture` of an iteration, None if there is none.

        repetition : default the last that has one.
        """
        from gmc_core.pictures import Picture

        found = [r for r, t in self.pictures(id) if t == iteration]
        if repetition is None and found:
            repetition = found[-1]
        if repetition not in found:
            return None
        with explained(self.path):
            return Picture.load(artifacts.picture_path(self.folder(id), repetition, iteration))

    def held_out(self, id: str, repetition: int = 0) -> artifacts.HeldOut | None:
        """Held-out ratings and their predictions of a finished repetition."""
        return artifacts.load_held_out(self.folder(id), repetition)

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
                "began.' WHERE (id = ? OR parent = ?) AND state = 'queued' AND kind = 'run'",
                (time.time(), id, id),
            )
            database.execute(
                "UPDATE runs SET cancel = 1 WHERE (id = ? OR parent = ?) AND state = 'running'",
                (id, id),
            )
        return self.run(id)

    def resume(self, id: str) -> Run:
        """Queue an interrupted, cancelled or failed run again (of a sweep: all such).

        It goes on from its last saved state and ends as if it had not been stopped.

        Raises
        ------
        StoreError
            If there is nothing to resume.
        """
        run = self.run(id)
        with self.writing() as database:
            states = ", ".join(f"'{state}'" for state in RESUMABLE)
            changed = database.execute(
                "UPDATE runs SET state = 'queued', cancel = 0, ended = NULL, message = '' "
                f"WHERE (id = ? OR parent = ?) AND kind = 'run' AND state IN ({states})",
                (id, id),
            ).rowcount
        if not changed:
            raise StoreError(f"Run {id} is {run.state}, so there is nothing to resume.")
        return self.run(id)

    def delete(self, id: str) -> int:
        """Delete a run (a sweep with its children) and its files; returns bytes freed.

        Raises
        ------
        StoreError
            If it is running; cancel it first.
        """
        with self.writing() as database:
            self.run(id)
            rows = self.rows("SELECT id, state FROM runs WHERE id = ? OR parent = ?", id, id)
            if any(row["state"] == "running" for row in rows):
                raise StoreError(f"Run {id} is running; cancel it first, then delete it.")
            database.execute("DELETE FROM runs WHERE id = ?", (id,))
        freed = 0
        for row in rows:
            folder = self.folder(row["id"])
            freed += disk_bytes(folder)
            with explained(self.path), suppress(FileNotFoundError):
                shutil.rmtree(folder)
        with self._lock, explained(self.path):
            self._database.execute("PRAGMA incremental_vacuum").fetchall()
        return freed

    def disk_usage(self) -> int:
        """Bytes of the whole store."""
        return disk_bytes(self.path)

    # Taking out and in ----------------------------------------------------------

    def export(self, id: str, path: str | os.PathLike[str], format: str | None = None) -> Path:
        """Write a run to a file; see :func:`gmc_core.store.transfer.export`."""
        from gmc_core.store.transfer import export

        return export(self, id, Path(path), format)

    def import_run(self, path: str | os.PathLike[str]) -> Run:
        """Take in a run that was exported as zip (or json: without its files)."""
        from gmc_core.store.transfer import import_run

        return import_run(self, Path(path))

    def command(self, id: str) -> str:
        """The shell command that repeats this run."""
        from gmc_core.store.command import command

        return command(self.run(id))

    # Workers --------------------------------------------------------------------

    def notice_dead(self, *, force: bool = False) -> list[str]:
        """Turn the runs of workers that have died into interrupted ones.

        Called by every look at the runs, and at most twice a second then.
        """
        with self._lock:
            try:
                return self._watch.look(self, force=force)
            except StoreError:
                return []  # a store that can only be read still shows its runs


def anywhere(config: ExperimentConfig) -> ExperimentConfig:
    """The same with absolute paths: the worker has another current folder."""

    def absolute(name: str | None) -> str | None:
        if not name or not (os.sep in name or Path(name).expanduser().exists()):
            return name  # the name of a data set, or a file that nobody will find
        return str(Path(name).expanduser().absolute())

    noise = config.fit.noise
    if isinstance(noise, str):
        noise = str(Path(noise).expanduser().absolute())
    data = config.data if config.data in NAMED else absolute(config.data) or ""
    return replace(
        config,
        data=data,
        train_file=absolute(config.train_file),
        test_file=absolute(config.test_file),
        fit=replace(config.fit, noise=noise),
    )


def source_of(config: ExperimentConfig) -> str:
    """Hash of where the data come from and how they are read, files' versions included."""
    files = [config.data, config.train_file, config.test_file]
    values = config.as_dict()
    return _hash(
        {
            "reading": values["reading"],
            "filter": values["filter"],
            "pair": config.protocol == "pair",
            "files": files,
            "stamps": [_stamps(name) for name in files if name],
        }
    )


def _stamps(name: str) -> list[tuple[str, int, int]]:
    """Size and time of change of a file, or of the files of a folder."""
    path = Path(name).expanduser()
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        return [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    except OSError:
        return []  # a named data set, or a file that the worker will miss


def key_of(config: ExperimentConfig, data: dict[str, Any] | None) -> str | None:
    """The run's key with the scale's defaults filled in, None for unknown data."""
    if data is None:
        return None
    resolved = replace(config, fit=config.fit.resolved(RatingScale(*data["scale"])))
    return resolved.key(data["sha256"])


def _hash(values: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _text_of(run: Run) -> str:
    data = (run.data or {}).get("name", "")
    return " ".join([run.id, run.title, run.note, data, json.dumps(run.config.as_dict())])
