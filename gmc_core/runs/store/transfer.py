"""Taking runs out of the store, and into another one.

json : the run with its records, in the layout of ``fit --json`` plus ``run``.
csv : one line per record (of a sweep: per ε, L and seed; of a comparison: per method).
html : the report. model : the saved model. zip : everything, to be imported again, and what
a person needs to repeat the run, without the data.

An imported run is shown as it was exported, and computed by whoever exported it. What it may
stand for is decided here:

- Its key is made from its settings and its data, never copied.
- It answers for a new start with its settings (is found instead of being computed) only if it
  carries this store's own seal, unbroken (:mod:`gmc_core.runs.store.seal`), and the key it was
  computed with is the one that these settings, data and version of the model have now. Any
  other, from another store or edited, is kept and shown, and computed anew when asked for.
- One that had not ended goes on from its saved state only if its key is that one; else it begins
  anew. It answers no more than before. A comparison that goes on uses its own fits that are done,
  if they have the methods' settings; other comparisons use none of one that does not answer.
- Where predictions travel and the figures are not theirs, its message says so.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import shutil
import struct
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from gmc_core.base.errors import GmcError, brief
from gmc_core.base.files import try_target, without_nan
from gmc_core.comparison.comparison_files import is_result
from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.runs.store import artifacts
from gmc_core.runs.store.cells import Cell
from gmc_core.runs.store.errors import StoreError, explained
from gmc_core.runs.store.export_parts import csv_of, repeating_files
from gmc_core.runs.store.folders import disk_bytes, write_atomically
from gmc_core.runs.store.import_checks import (
    check_arrays,
    checked_config,
    checked_cost,
    checked_count,
    checked_data,
    checked_dictionary,
    checked_moment,
    checked_numbers,
    checked_record,
    checked_result,
    checked_sweep,
    count_or_none,
    json_or_none,
    text_or_none,
)
from gmc_core.runs.store.run import RESUMABLE, STATES, Run
from gmc_core.runs.store.seal import UNSEALED, copied, doubt, hashes, is_ours, seal
from gmc_core.runs.store.selection import Selection
from gmc_core.runs.store.store import Store
from gmc_core.runs.store.submitting import key_of, request_of

FORMATS = ("json", "csv", "html", "zip", "model")
VERSION = 2
MAX_JSON_BYTES = 500_000_000
LEVELS = ("info", "warning", "error")
_KEPT = re.compile(r"model\.npz|state\.npz|picture-\d{1,9}-\d{1,9}\.npz|held-out-\d{1,9}\.npz")
_GOES_ON = re.compile(r"state\.npz|held-out-\d+\.npz")

log = logging.getLogger(__name__)


def export(
    store: Store,
    id: str,
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    tell: Callable[[str], object] = log.warning,
) -> Path:
    """Write a run to a file; returns its path.

    path : also a device, a pipe or an open descriptor; a missing folder is made.
    format : one of ``FORMATS``; default from the file's name (".npz" is the model).
    tell : is called with a sentence if the export could not be sealed.

    Raises
    ------
    StoreError
        If there is nothing to export in this format, or the file cannot be written.
    """
    path = Path(path)
    format = format or {".npz": "model"}.get(path.suffix, path.suffix.lstrip("."))
    run = store.run(id)
    check_target(path)
    if format == "json":
        plain = without_nan(content_of(store, run))
        sealed = {**plain, "seal": _sealed(store, plain, {}, tell)}
        content = json.dumps(sealed, indent=1).encode()
    elif format == "csv":
        content = csv_of(store, run).encode()
    elif format == "html":
        from gmc_core.runs.report_html import report

        content = report(store, id).encode()
    elif format == "model":
        model = store.model_path(id)
        if model is None:
            raise StoreError(f"Run {id} has no model; run it again, keeping its model.")
        with explained(path.parent), model.open("rb") as kept:
            write_atomically(path, lambda file: shutil.copyfileobj(kept, file))
        return path
    elif format == "zip":
        write_atomically(path, lambda file: _write_zip(store, run, file, tell))
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
        # An earlier version reads it if the number is its own.
        "export_version": 1 if run.comparison is None else VERSION,
        "name": run.title,
        "run": run.as_dict(),
        "config": run.config.as_dict(),
        "data": run.data,
        # A repetition that was not finished has its records, but no result.
        "cells": [cell.as_dict() for cell in store.cells(run.id)],
        "repetitions": [
            results[r] if r < started else {"seed": run.seeds[r], "records": records[r]}
            for r in range(max(started, max(records, default=-1) + 1))
        ],
        "summary": run.summary,
        "messages": [list(message) for message in store.messages(run.id)],
        "children": [content_of(store, child) for child in store.runs(parent=run.id)],
        "command": store.command(run.id),
    }


def check_target(path: Path) -> None:
    """Refuse, before any work, what cannot be written."""
    if not path.absolute().parent.exists():
        return  # it will be made
    try:
        try_target(path)
    except IsADirectoryError:
        raise StoreError(f"{path} is a folder; give the name of a file in it.") from None
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written; give the name of a file in a folder that you can write to "
            f"({error.strerror or error})."
        ) from error


def _sealed(
    store: Store, content: dict[str, Any], files: dict[str, str], tell: Callable[[str], object]
) -> dict[str, Any] | None:
    """The seal; None, and a word, where the store has no secret and cannot keep one."""
    try:
        return seal(store, content, files)
    except StoreError as error:
        tell(f"{UNSEALED} {error}")
        return None


def _write_zip(store: Store, run: Run, file: BinaryIO, tell: Callable[[str], object]) -> None:
    # Python's JSON keeps NaN, so that an imported run equals the exported one.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        files: dict[str, str] = {}
        about_run = content_of(store, run)
        for name, content in repeating_files(store, run).items():
            archive.writestr(name, content)
        for one in (run, *store.runs(parent=run.id)):
            folder = store.folder(one.id)
            for path in sorted(folder.iterdir()) if folder.is_dir() else ():
                if _wanted(path.name):
                    about = zipfile.ZipInfo.from_file(path, f"{one.id}/{path.name}")
                    with path.open("rb") as source, archive.open(about, "w") as target:
                        files[about.filename] = copied(source, target)
        about_run["seal"] = _sealed(store, about_run, files, tell)
        archive.writestr("run.json", json.dumps(about_run))


def _wanted(name: str) -> bool:
    return (_KEPT.fullmatch(name) is not None and name.isascii()) or is_result(name)


def import_run(store: Store, path: str | os.PathLike[str]) -> Run:
    """Take in an exported zip, or a json without the files; returns the new run.

    The run gets a new id. One that had not ended becomes interrupted. See the module for what
    it may stand for.

    Raises
    ------
    StoreError
        If the file is damaged or no exported run.
    """
    path = Path(path)
    try:
        if not zipfile.is_zipfile(path):
            if path.stat().st_size > MAX_JSON_BYTES:
                raise ValueError("too large")
            return _take_in(store, json.loads(path.read_bytes()), None)
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            # Written without compression, so what is not could inflate without end.
            if any(member.compress_type != zipfile.ZIP_STORED for member in members):
                raise ValueError("its parts are compressed, which those of an export are not")
            if sum(member.file_size for member in members) > path.stat().st_size:
                raise ValueError("its parts are larger than itself")
            if archive.getinfo("run.json").file_size > MAX_JSON_BYTES:
                raise ValueError("too large")
            return _take_in(store, json.loads(archive.read("run.json")), archive)
    except StoreError as error:
        raise StoreError(f"{path}: {error}") from error
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}. Check the path.") from error
    except (
        ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, EOFError,
        GmcError, zipfile.BadZipFile, zlib.error, struct.error,
    ) as error:  # fmt: skip
        raise StoreError(
            f"{path} is damaged or is no exported run ({brief(error)}). Export it again, as zip or "
            "json."
        ) from error


def _take_in(store: Store, content: dict[str, Any], archive: zipfile.ZipFile | None) -> Run:
    if int(content["export_version"]) > VERSION:
        raise StoreError("This run was exported by a newer version; update this program.")
    # JSON can hold halves of characters, which no page or file could show.
    json.dumps(content, ensure_ascii=False).encode()
    ours = is_ours(store, content, {} if archive is None else _hashes(archive))
    new: list[tuple[str, str, bool]] = []
    try:
        with store.writing():
            identity = _insert(store, content, None, ours, new)
            for old, fresh, goes_on in new:
                if archive is not None:
                    _unpack(store, archive, old, fresh, goes_on)
                _forget_missing_files(store, fresh)
                _tell_doubt(store, fresh)
    except BaseException:
        for _, fresh, _ in new:
            shutil.rmtree(store.folder(fresh), ignore_errors=True)
        raise
    return store.run(identity)


def _hashes(archive: zipfile.ZipFile) -> dict[str, str] | None:
    """Of the files that would be taken in."""
    places = [PurePosixPath(member.filename) for member in archive.infolist()]
    return hashes(archive, [str(p) for p in places if len(p.parts) == 2 and _wanted(p.name)])


def _tell_doubt(store: Store, id: str) -> None:
    words = doubt(store, id)
    if words:
        with store.writing() as database:
            database.execute("UPDATE runs SET message = ? WHERE id = ?", (words, id))


def _insert(
    store: Store,
    content: dict[str, Any],
    parent: str | None,
    ours: bool,
    new: list[tuple[str, str, bool]],
) -> str:
    """One run and its children. new : for each its old id, its new one, whether its state is of
    these settings."""
    if parent is not None and content["children"]:
        raise ValueError("a run of a sweep that is a sweep")
    values = content["run"]
    config = checked_config(content["config"])
    state = values["state"] if values["state"] in STATES else "interrupted"
    if state in ("queued", "running"):
        state = "interrupted"
    sweep = checked_sweep(values.get("sweep"), config)
    plan, cells = _checked_comparison(values.get("comparison"), content.get("cells", []))
    if sweep and plan:
        raise ValueError("a sweep that is a comparison")
    selected = values.get("selection")
    selection = None if selected is None else Selection.from_dict(selected)
    identity = secrets.token_hex(5)
    data = checked_data(content["data"])
    key = None if sweep or (selection and selection.open) else key_of(config, data, plan)
    same = key == values["key"]
    records = [
        (index, checked_record(record))
        for index, repetition in enumerate(content["repetitions"])
        for record in repetition["records"]
    ]
    columns: dict[str, Any] = {
        "id": identity,
        "kind": "sweep" if sweep else "run" if plan is None else "comparison",
        "parent": parent,
        "state": state,
        "label": str(values["label"]),
        "note": str(values["note"]),
        "config": json.dumps(config.as_dict()),
        "sweep": json.dumps(sweep) if sweep else None,
        "comparison": json_or_none(plan and plan.as_dict()),
        "selection": json_or_none(selection and selection.as_dict()),
        "request": request_of(config, plan, selection),
        "key": key,
        "data_sha256": data and data["sha256"],
        "data": json_or_none(data),
        "keep": int(bool(values["keeps_model"])),
        "created": checked_moment(values["created"]) or time.time(),
        "started": checked_moment(values["started"]),
        "ended": checked_moment(values["ended"]) or time.time(),
        "repetition": checked_count(values["repetition"]),
        "iteration": checked_count(values["iteration"]),
        "cost": json_or_none(checked_cost(values["cost"])),
        "summary": json_or_none(checked_numbers(content["summary"], "nmae", "nmae_se", "seconds")),
        "message": str(values["message"]),
        "version": str(values["version"]),
        "machine": json_or_none(checked_dictionary(values["machine"])),
        "answers": int(ours and same and values["answers"] is True),
        "error_kind": text_or_none(values.get("error_kind")),
        "error_iteration": count_or_none(values.get("error_iteration")),
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
                (identity, index, json.dumps(checked_result(result)))
                for index, result in enumerate(content["repetitions"])
                if "n_test" in result
            ],
        )
        database.executemany(
            "INSERT INTO cells (run, split, method, state, record) VALUES (?, ?, ?, ?, ?)",
            [(identity, c.split, c.method, c.state, json.dumps(c.as_dict())) for c in cells],
        )
        for moment, level, said in content["messages"]:
            database.execute(
                "INSERT INTO messages (run, time, level, text) VALUES (?, ?, ?, ?)",
                (identity, checked_moment(moment), LEVELS[LEVELS.index(level)], str(said)),
            )
        new.append((str(values["id"]), identity, same or state not in RESUMABLE))
        for child in content["children"]:
            _insert(store, child, identity, ours, new)
    return identity


def _checked_comparison(value: Any, cells: Any) -> tuple[ComparisonPlan | None, list[Cell]]:
    """What is compared, and its fits; each must be one of the plan's."""
    if value is None:
        return None, []
    plan = ComparisonPlan.from_dict(value)
    found = [Cell.from_dict(cell) for cell in cells]
    if any(c.method not in plan.methods or c.split >= len(plan.seeds) for c in found):
        raise ValueError("a fit that is not one of the comparison's")
    return plan, [cell for cell in found if cell.state != "running"]


def _forget_missing_files(store: Store, id: str) -> None:
    """A finished run without its model does not stand for one that keeps its model.

    Nor does a comparison without its predictions stand for any.
    """
    from gmc_core.runs.comparisons import comparison_of

    run = store.run(id)
    if run.comparison is not None:
        found = comparison_of(store, run)
        done = sum(cell.state == "done" for cell in store.cells(id))
        if done > (0 if found is None else len(found.outcomes)):
            with store.writing() as database:
                database.execute("UPDATE runs SET answers = 0 WHERE id = ?", (id,))
        return
    if store.model_path(id) is None:
        with store.writing() as database:
            database.execute(
                "UPDATE runs SET keep = 0 WHERE id = ? AND kind = 'run' AND state = 'finished'",
                (id,),
            )


def _unpack(store: Store, archive: zipfile.ZipFile, old: str, fresh: str, goes_on: bool) -> None:
    """Copy the files of one run; names that we do not write are left alone.

    goes_on : false of a state that belongs to other settings, of which a resumed run would go on.
    """
    folder = store.folder(fresh)
    for member in archive.infolist():
        place = PurePosixPath(member.filename)
        if len(place.parts) != 2 or place.parts[0] != old or not _wanted(place.parts[1]):
            continue
        if goes_on or not _GOES_ON.fullmatch(place.parts[1]):
            with archive.open(member) as source:
                write_atomically(
                    folder / place.parts[1],
                    lambda file, source=source: shutil.copyfileobj(source, file),  # type: ignore[misc]
                )
            if place.parts[1] != artifacts.MODEL:  # which is checked whenever it is read
                check_arrays(folder / place.parts[1])
    with store.writing() as database:
        database.execute("UPDATE runs SET disk = ? WHERE id = ?", (disk_bytes(folder), fresh))
