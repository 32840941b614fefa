"""Taking runs out of the store, and into another one.

json : the run with its records, in the layout of ``fit --json`` plus ``run``.
csv : one line per record (of a sweep: per ε, L and seed).
html : the report. model : the saved model. zip : everything, to be imported again.
"""

from __future__ import annotations

import csv
import io
import json
import os
import secrets
import shutil
import time
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from gmc_core.errors import GmcError
from gmc_core.experiment import ExperimentConfig
from gmc_core.files import without_nan
from gmc_core.fit import IterationRecord
from gmc_core.store.errors import StoreError, explained
from gmc_core.store.places import disk_bytes, write_atomically
from gmc_core.store.run import STATES, Run
from gmc_core.store.store import Store
from gmc_core.table_files import safe_text

FORMATS = ("json", "csv", "html", "zip", "model")
VERSION = 1
MAX_JSON_BYTES = 500_000_000
_KEPT = ("model.npz", "state.npz")


def export(store: Store, id: str, path: Path, format: str | None = None) -> Path:
    """Write a run to a file; returns its path.

    format : one of ``FORMATS``; default from the file's name (".npz" is the model).

    Raises
    ------
    StoreError
        If there is nothing to export in this format, or the file cannot be written.
    """
    format = format or {".npz": "model"}.get(path.suffix, path.suffix.lstrip("."))
    run = store.run(id)
    folder = path.absolute().parent
    if path.is_dir() or (folder.exists() and not os.access(folder, os.W_OK)):
        raise StoreError(
            f"{path} cannot be written; give the name of a file in a folder that you can write to."
        )
    if format == "json":
        content = json.dumps(without_nan(content_of(store, run)), indent=1).encode()
    elif format == "csv":
        content = csv_of(store, run).encode()
    elif format == "html":
        from gmc_core.report_html import report

        content = report(store, id).encode()
    elif format == "model":
        model = store.model_path(id)
        if model is None:
            raise StoreError(f"Run {id} has no model; run it again, keeping its model.")
        with explained(path.parent):
            shutil.copyfile(model, path)
        return path
    elif format == "zip":
        write_atomically(path, lambda file: _write_zip(store, run, file))
        return path
    else:
        raise StoreError(f"A run is exported as {', '.join(FORMATS)}, not {format!r}.")
    write_atomically(path, lambda file: file.write(content))
    return path


def content_of(store: Store, run: Run) -> dict[str, Any]:
    """Everything but the files, as JSON."""
    records: dict[int, list[dict[str, Any]]] = {}
    for repetition, record in store.records(run.id):
        records.setdefault(repetition, []).append(record.as_dict())
    results = store.results(run.id)
    started = len(results)
    return {
        "export_version": VERSION,
        "run": run.as_dict(),
        "config": run.config.as_dict(),
        "data": run.data,
        # A repetition that was not finished has its records, but no result.
        "repetitions": [
            results[r] if r < started else {"seed": run.seeds[r], "records": records[r]}
            for r in range(max(started, max(records, default=-1) + 1))
        ],
        "summary": run.summary,
        "messages": [list(message) for message in store.messages(run.id)],
        "children": [content_of(store, child) for child in store.runs(parent=run.id)],
        "command": store.command(run.id),
    }


def csv_of(store: Store, run: Run) -> str:
    """One line per record. No cell can be taken for a formula by a spreadsheet."""
    if run.sweep is not None:
        from gmc_core.sweeps import sweep_results

        rows: list[dict[Any, Any]] = sweep_results(store, run.id).to_dict("records")
    else:
        rows = [
            {"repetition": r, "seed": run.seeds[r], **record.as_dict()}
            for r, record in store.records(run.id)
        ]
        rows = [{"run": run.id, "label": run.label, **row} for row in rows]
    output = io.StringIO()
    if rows:
        writer = csv.DictWriter(output, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {name: safe_text(v) if isinstance(v, str) else v for name, v in row.items()}
            for row in rows
        )
    return output.getvalue()


def _write_zip(store: Store, run: Run, file: BinaryIO) -> None:
    # Python's JSON keeps NaN, so that an imported run equals the exported one.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("run.json", json.dumps(content_of(store, run)))
        for one in (run, *store.runs(parent=run.id)):
            folder = store.folder(one.id)
            for path in sorted(folder.iterdir()) if folder.is_dir() else ():
                if _wanted(path.name):
                    archive.write(path, f"{one.id}/{path.name}")


def _wanted(name: str) -> bool:
    return name in _KEPT or (
        name.startswith(("picture-", "held-out-")) and name.endswith(".npz") and "/" not in name
    )


def import_run(store: Store, path: Path) -> Run:
    """Take in an exported zip, or a json without the files; returns the new run.

    The run gets a new id. One that had not ended becomes interrupted.

    Raises
    ------
    StoreError
        If the file is damaged or no exported run.
    """
    try:
        if not zipfile.is_zipfile(path):
            if path.stat().st_size > MAX_JSON_BYTES:
                raise ValueError("too large")
            return _take_in(store, json.loads(path.read_bytes()), None)
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo("run.json").file_size > MAX_JSON_BYTES:
                raise ValueError("too large")
            return _take_in(store, json.loads(archive.read("run.json")), archive)
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}. Check the path.") from error
    except (ValueError, KeyError, TypeError, AttributeError, GmcError, zipfile.BadZipFile) as error:
        raise StoreError(
            f"{path} is damaged or is no exported run ({error}). Export it again, as zip or json."
        ) from error


def _take_in(store: Store, content: dict[str, Any], archive: zipfile.ZipFile | None) -> Run:
    if int(content["export_version"]) > VERSION:
        raise StoreError("This run was exported by a newer version; update this program.")
    new: list[tuple[str, str]] = []
    try:
        with store.writing():
            identity = _insert(store, content, None, new)
            for old, fresh in new:
                if archive is not None:
                    _unpack(store, archive, old, fresh)
                _forget_missing_model(store, fresh)
    except BaseException:
        for _, fresh in new:
            shutil.rmtree(store.folder(fresh), ignore_errors=True)
        raise
    return store.run(identity)


def _insert(
    store: Store, content: dict[str, Any], parent: str | None, new: list[tuple[str, str]]
) -> str:
    from gmc_core.store.submitting import request_of

    values = content["run"]
    config = ExperimentConfig.from_dict(content["config"])
    state = values["state"] if values["state"] in STATES else "interrupted"
    if state in ("queued", "running"):
        state = "interrupted"
    sweep = values.get("sweep")
    identity = secrets.token_hex(5)
    records = [
        (index, IterationRecord.from_dict(record))
        for index, repetition in enumerate(content["repetitions"])
        for record in repetition["records"]
    ]
    columns: dict[str, Any] = {
        "id": identity,
        "kind": "sweep" if sweep else "run",
        "parent": parent,
        "state": state,
        "label": str(values["label"]),
        "note": str(values["note"]),
        "config": json.dumps(config.as_dict()),
        "sweep": json.dumps(sweep) if sweep else None,
        "request": request_of(config),
        "key": values["key"],
        "data_sha256": values["data_sha256"],
        "data": content["data"] and json.dumps(content["data"]),
        "keep": int(bool(values["keeps_model"])),
        "created": float(values["created"]),
        "started": values["started"],
        "ended": values["ended"] or time.time(),
        "repetition": int(values["repetition"]),
        "iteration": int(values["iteration"]),
        "cost": values["cost"] and json.dumps(values["cost"]),
        "summary": content["summary"] and json.dumps(content["summary"]),
        "message": str(values["message"]),
        "version": str(values["version"]),
        "machine": values["machine"] and json.dumps(values["machine"]),
    }
    with store.writing() as database:
        marks = ", ".join("?" * len(columns))
        database.execute(
            f"INSERT INTO runs ({', '.join(columns)}) VALUES ({marks})", list(columns.values())
        )
        database.executemany(
            "INSERT INTO records (run, repetition, iteration, record) VALUES (?, ?, ?, ?)",
            [(identity, r, x.iteration, json.dumps(x.as_dict())) for r, x in records],
        )
        database.executemany(
            "INSERT INTO repetitions (run, repetition, result) VALUES (?, ?, ?)",
            [
                (identity, index, json.dumps(result))
                for index, result in enumerate(content["repetitions"])
                if "n_test" in result
            ],
        )
        for moment, level, said in content["messages"]:
            database.execute(
                "INSERT INTO messages (run, time, level, text) VALUES (?, ?, ?, ?)",
                (identity, float(moment), str(level), str(said)),
            )
        new.append((str(values["id"]), identity))
        for child in content["children"]:
            _insert(store, child, identity, new)
    return identity


def _forget_missing_model(store: Store, id: str) -> None:
    """A finished run without its model does not stand for one that keeps its model."""
    if store.model_path(id) is None:
        with store.writing() as database:
            database.execute(
                "UPDATE runs SET keep = 0 WHERE id = ? AND kind = 'run' AND state = 'finished'",
                (id,),
            )


def _unpack(store: Store, archive: zipfile.ZipFile, old: str, fresh: str) -> None:
    """Copy the files of one run; names that we do not write are left alone."""
    folder = store.folder(fresh)
    for member in archive.infolist():
        place = PurePosixPath(member.filename)
        if len(place.parts) == 2 and place.parts[0] == old and _wanted(place.parts[1]):
            with archive.open(member) as source:
                write_atomically(
                    folder / place.parts[1],
                    lambda file, source=source: shutil.copyfileobj(source, file),  # type: ignore[misc]
                )
    with store.writing() as database:
        database.execute("UPDATE runs SET disk = ? WHERE id = ?", (disk_bytes(folder), fresh))
