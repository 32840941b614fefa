"""Taking runs out of the store, and into another one.

json : the run with its records, in the layout of ``fit --json`` plus ``run``.
csv : one line per record (of a sweep: per ε, L and seed).
html : the report. model : the saved model. zip : everything, to be imported again, and what
a person needs to repeat the run, without the data.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shutil
import struct
import time
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from types import UnionType
from typing import Any, BinaryIO, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from gmc_core.array_archive import npy_header
from gmc_core.errors import GmcError, brief
from gmc_core.experiment import ExperimentConfig, split_reading
from gmc_core.files import without_nan
from gmc_core.fit import IterationRecord
from gmc_core.ratings import RatingScale
from gmc_core.readers import DelimitedOptions
from gmc_core.store import artifacts
from gmc_core.store.errors import StoreError, explained
from gmc_core.store.export_parts import csv_of, repeating_files
from gmc_core.store.places import disk_bytes, write_atomically
from gmc_core.store.run import STATES, Run
from gmc_core.store.store import Store

FORMATS = ("json", "csv", "html", "zip", "model")
VERSION = 1
MAX_JSON_BYTES = 500_000_000
# Arrays that were compressed: as for archives of ratings.
MAX_RATIO, RATIO_APPLIES_FROM_BYTES = 200, 100_000_000
LATEST = 250e9  # seconds since 1970 of the year 9892; later ones cannot be shown
LEVELS = ("info", "warning", "error")
_KEPT = re.compile(r"model\.npz|state\.npz|picture-\d{1,9}-\d{1,9}\.npz|held-out-\d{1,9}\.npz")


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
        with explained(path.parent), model.open("rb") as kept:
            write_atomically(path, lambda file: shutil.copyfileobj(kept, file))
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
        "name": run.title,
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


def _write_zip(store: Store, run: Run, file: BinaryIO) -> None:
    # Python's JSON keeps NaN, so that an imported run equals the exported one.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("run.json", json.dumps(content_of(store, run)))
        for name, content in repeating_files(store, run).items():
            archive.writestr(name, content)
        for one in (run, *store.runs(parent=run.id)):
            folder = store.folder(one.id)
            for path in sorted(folder.iterdir()) if folder.is_dir() else ():
                if _wanted(path.name):
                    archive.write(path, f"{one.id}/{path.name}")


def _wanted(name: str) -> bool:
    return _KEPT.fullmatch(name) is not None and name.isascii()


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

    if parent is not None and content["children"]:
        raise ValueError("a run of a sweep that is a sweep")
    values = content["run"]
    config = _checked_config(content["config"])
    state = values["state"] if values["state"] in STATES else "interrupted"
    if state in ("queued", "running"):
        state = "interrupted"
    sweep = _checked_sweep(values.get("sweep"), config)
    identity = secrets.token_hex(5)
    records = [
        (index, _checked_record(record))
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
        "key": _text_or_none(values["key"]),
        "data_sha256": _text_or_none(values["data_sha256"]),
        "data": _json(_checked_data(content["data"])),
        "keep": int(bool(values["keeps_model"])),
        "created": _moment(values["created"]) or time.time(),
        "started": _moment(values["started"]),
        "ended": _moment(values["ended"]) or time.time(),
        "repetition": _count(values["repetition"]),
        "iteration": _count(values["iteration"]),
        "cost": _json(_numbers(values["cost"], "seconds")),
        "summary": _json(_numbers(content["summary"], "nmae", "nmae_se", "seconds")),
        "message": str(values["message"]),
        "version": str(values["version"]),
        "machine": _json(_dictionary(values["machine"])),
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
                (identity, index, json.dumps(_checked_result(result)))
                for index, result in enumerate(content["repetitions"])
                if "n_test" in result
            ],
        )
        for moment, level, said in content["messages"]:
            database.execute(
                "INSERT INTO messages (run, time, level, text) VALUES (?, ?, ?, ?)",
                (identity, _moment(moment), LEVELS[LEVELS.index(level)], str(said)),
            )
        new.append((str(values["id"]), identity))
        for child in content["children"]:
            _insert(store, child, identity, new)
    return identity


# What a page or report shows later must not be what breaks it -----------------------


def _number(value: Any) -> float | None:
    """A number, NaN included, or None."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise TypeError(f"{str(value)[:40]!r} where a number is expected")
    return None if value is None else float(value)


def _moment(value: Any) -> float | None:
    """Seconds since 1970 that a calendar has."""
    moment = _number(value)
    if moment is not None and not 0 <= moment <= LATEST:
        raise ValueError(f"{moment} is no time")
    return moment


def _count(value: Any) -> int:
    count = int(value)
    if count != value or not 0 <= count < 2**31:
        raise ValueError(f"{str(value)[:40]} is no count")
    return count


def _text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)


def _dictionary(value: Any) -> dict[str, Any] | None:
    if value is not None and not isinstance(value, dict):
        raise TypeError(f"{str(value)[:40]!r} where a description is expected")
    return value or None


def _numbers(value: Any, *needed: str) -> dict[str, Any] | None:
    """A dictionary, or None, whose ``needed`` entries are there, and are numbers or None."""
    found = _dictionary(value)
    for name in needed if found else ():
        assert found is not None
        _number(found[name])
    return found


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


def _checked_data(value: Any) -> dict[str, Any] | None:
    """What is said of the data: name, counts, scale."""
    found = _dictionary(value)
    if found is not None:
        for name in ("users", "items", "ratings"):
            _count(found[name])
        RatingScale(*map(_number, found["scale"]))  # type: ignore[arg-type]
        _number(found["divisor"])
        if not isinstance(found["name"], str) or not isinstance(found["sha256"], str):
            raise TypeError("the data have no name")
    return found


def _checked_record(values: dict[str, Any]) -> IterationRecord:
    record = IterationRecord.from_dict(values)
    _count(record.iteration)
    for value in values.values():
        _number(value)
    if None in (record.e_seconds, record.m_seconds, record.evaluation_seconds, record.noise):
        raise TypeError("a record without its times")
    return record


def _checked_result(result: dict[str, Any]) -> dict[str, Any]:
    """A finished repetition."""
    _count(result["seed"])
    _count(result["n_test"])
    _numbers(result["scores"], "n", "nmae", "nmae_se", "mae", "rmse")
    return result


def _checked_config(values: dict[str, Any]) -> ExperimentConfig:
    """The settings, if each has the type that it is declared with; JSON could hold any."""
    config = ExperimentConfig.from_dict(values)
    options = split_reading(config.reading).get("options") or DelimitedOptions()
    for part in (config, config.fit, config.filter, options):
        for name, hint in get_type_hints(type(part)).items():
            if not _fits(getattr(part, name), hint):
                raise TypeError(f"the setting {name} is {str(getattr(part, name))[:40]!r}")
    for name in ("format", "duplicates"):
        if not isinstance(config.reading.get(name, ""), str):
            raise TypeError(f"the setting {name} is no text")
    return config


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value has the type of an annotation, as far as settings have them."""
    kind, parts = get_origin(hint), get_args(hint)
    if kind in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if kind is Literal:
        return isinstance(value, str) and value in parts
    if kind is tuple:
        return isinstance(value, tuple) and all(_fits(part, parts[0]) for part in value)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    return isinstance(value, kind or hint)


def _checked_sweep(value: Any, config: ExperimentConfig) -> dict[str, Any] | None:
    if value is None:
        return None
    from gmc_core.sweeps import SweepConfig

    return SweepConfig(config, **{name: tuple(values) for name, values in value.items()}).as_dict()


def _check_arrays(path: Path) -> None:
    """Refuse arrays that would take more memory than the file explains, or hold objects."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        if total > RATIO_APPLIES_FROM_BYTES and total > MAX_RATIO * path.stat().st_size:
            raise ValueError(f"{path.name} would inflate to more than {MAX_RATIO} times its size")
        for member in members:
            with archive.open(member) as file:
                shape, _, dtype = npy_header(file)
                size = math.prod(shape) * dtype.itemsize
                if dtype.hasobject or size != member.file_size - file.tell():
                    raise ValueError(f"{path.name} holds what is no array of numbers")
    if path.name.startswith("picture-"):
        _check_picture(path)
    if path.name.startswith("held-out-"):
        held_out = artifacts.load_held_out(path.parent, int(path.stem.rsplit("-", 1)[1]))
        parts = vars(held_out).values() if held_out else ()
        if len({part.shape for part in parts}) != 1 or next(iter(parts)).ndim != 1:
            raise ValueError(f"{path.name} holds no predictions")


def _check_picture(path: Path) -> None:
    from gmc_core.pictures import MAX_BINS, Picture

    with np.load(path, allow_pickle=False) as file:
        if len(file["bin_starts"]) > MAX_BINS:  # a square of so many is made when it is read
            raise ValueError(f"{path.name} is larger than any picture")
    Picture.load(path)


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
            if place.parts[1] != artifacts.MODEL:  # which is checked whenever it is read
                _check_arrays(folder / place.parts[1])
    with store.writing() as database:
        database.execute("UPDATE runs SET disk = ? WHERE id = ?", (disk_bytes(folder), fresh))
