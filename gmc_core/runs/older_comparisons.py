"""Comparisons of versions that kept each in a folder of its own: they become runs.

    comparisons/<name>/comparison.json   what is compared
                       status.json       how far it came, and the process that computed it
                       splits, results   see gmc_core.comparison.comparison_files

A folder is taken in once, when a page or a command opens the store. Its results get a second name
in the run's folder, and it stays where it is; only with its run is it deleted. One that is still
being computed waits until that has ended. A link with the folder's name leads to the run.
"""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gmc_core.base.errors import GmcError
from gmc_core.comparison.comparison_files import (
    HeldOutValues,
    ResultFiles,
    method_key,
    names_of_older,
)
from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.protocol.metrics import score
from gmc_core.runs.comparisons import comparison_of, summary_of
from gmc_core.runs.store import Store, StoreError
from gmc_core.runs.store.cells import Cell
from gmc_core.runs.store.folders import disk_bytes
from gmc_core.runs.store.identity import host, process_mark
from gmc_core.runs.store.keys import key_of
from gmc_core.runs.store.run import OLDER_VERSION
from gmc_core.runs.store.submitting import request_of, source_of

# Reads the arguments of ``gmc``: the configuration, and interpreters with other packages.
ReadCommand = Callable[[Sequence[str]], tuple[ExperimentConfig, tuple[str, ...]]]

_ENDED = ("finished", "cancelled", "failed", "interrupted")


class _Unreadable(Exception):
    """What a folder says of itself makes no sense."""


def take_in_older(store: Store, read: ReadCommand) -> list[str]:
    """Make runs of the folders that are none yet; returns what a person should know.

    read : raises GmcError, ValueError or SystemExit for arguments that mean nothing.
    """
    try:
        found = [path for path in (store.path / "comparisons").iterdir() if path.is_dir()]
        known = {row["folder"] for row in store.rows("SELECT folder FROM older_comparisons")}
        new = [
            ((path / "comparison.json").stat().st_mtime, path)
            for path in found
            if path.name not in known
            and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", path.name)
            and (path / "comparison.json").is_file()
        ]
    except OSError:
        return []  # there is no such folder, in general
    said = []
    for _, path in sorted(new):  # the newest gets the highest number
        try:
            words = _take_in(store, path, read)
        except StoreError as error:  # tried again the next time
            words = f"The comparison in {path} could not be taken in: {error}"
        if words:
            said.append(words)
    return said


def _take_in(store: Store, path: Path, read: ReadCommand) -> str:
    try:
        state, message, failures = _status(path)
        if state in ("starting", "running"):
            return ""
        plan, config, keys, splits, label = _plan(path, read)
    except _Unreadable as error:
        words = f"The comparison in {path} cannot be read ({error}); it stays there as it is."
        with store.writing() as database:
            database.execute(
                "INSERT OR IGNORE INTO older_comparisons VALUES (?, NULL)", (path.name,)
            )
            store.say(None, words, level="warning")
        return words
    with store.writing() as database:
        if store.rows("SELECT 1 FROM older_comparisons WHERE folder = ?", path.name):
            return ""  # another process was first
        identity = secrets.token_hex(5)
        files = ResultFiles(store.folder(identity))
        try:
            for older, name in names_of_older(path).items():
                files.adopt(older, name)
        except GmcError as error:
            raise StoreError(str(error)) from error
        data = _data(store, config, plan, keys)
        columns = {
            "id": identity, "kind": "comparison", "state": state, "label": label,
            "config": json.dumps(config.as_dict()), "comparison": json.dumps(plan.as_dict()),
            "request": request_of(config, plan), "key": data and key_of(config, data, plan),
            "data_sha256": data and data["sha256"], "data": data and json.dumps(data),
            "created": _changed(path / "comparison.json"), "ended": _changed(path / "status.json"),
            "message": message, "version": OLDER_VERSION, "disk": disk_bytes(files.folder),
        }  # fmt: skip
        marks = ", ".join("?" * len(columns))
        database.execute(
            f"INSERT INTO runs ({', '.join(columns)}) VALUES ({marks})", [*columns.values()]
        )
        cells = _cells(files, plan, keys, splits, failures)
        _insert_cells(database, identity, cells)
        if state == "finished" and len(cells) < plan.total:
            state = "interrupted"
            database.execute(
                "UPDATE runs SET state = ?, message = ? WHERE id = ?",
                (state, "Some of its results are missing; Resume computes them.", identity),
            )
        comparison = comparison_of(store, store.run(identity))
        if state == "finished" and comparison is not None:
            database.execute(
                "UPDATE runs SET summary = ? WHERE id = ?",
                (json.dumps(summary_of(comparison)), identity),
            )
        database.execute("INSERT INTO older_comparisons VALUES (?, ?)", (path.name, identity))
    return ""


def _insert_cells(database: sqlite3.Connection, identity: str, cells: Sequence[Cell]) -> None:
    database.executemany(
        "INSERT INTO cells (run, split, method, state, record) VALUES (?, ?, ?, ?, ?)",
        [(identity, c.split, c.method, c.state, json.dumps(c.as_dict())) for c in cells],
    )
    database.execute("UPDATE runs SET iteration = ? WHERE id = ?", (len(cells), identity))


def _status(path: Path) -> tuple[str, str, dict[tuple[str, str], str]]:
    """State, message, and (method, split) → why there is no result."""
    try:
        stored = json.loads((path / "status.json").read_text(encoding="utf-8"))
        status = stored["status"]
        state, message = str(status["state"]), str(status.get("message", ""))
        failures = {(str(a), str(b)): str(c) for a, b, c in stored["failures"]}
        if state in ("starting", "running"):
            here = stored["host"] == host()
            if here and stored["process"] == process_mark(int(stored["pid"])) is not None:
                return state, "", failures
            message = "Its process ended without a word. Resume computes the rest."
            return "interrupted", message, failures
    except OSError:
        return "interrupted", "It has not been started. Resume computes it.", {}
    except (ValueError, KeyError, TypeError, AttributeError):
        message = "How far it came cannot be read. Resume computes the rest."
        return "interrupted", message, {}
    return (state if state in _ENDED else "failed"), message, failures


def _plan(
    path: Path, read: ReadCommand
) -> tuple[ComparisonPlan, ExperimentConfig, dict[str, str], list[str], str]:
    """Plan, configuration, method → the key in its files' names, keys of the splits, label."""
    try:
        stored = json.loads((path / "comparison.json").read_text(encoding="utf-8"))
        config, pythons = read([str(part) for part in stored["command"]])
        if stored.get("repeat"):
            # It was written when the data had been seen, and names their hashes.
            repeated, _ = read([str(part) for part in stored["repeat"]])
            config = replace(config, expected={**repeated.expected, **config.expected})
        names = [str(name) for name, _, _ in stored["methods"]]
        seeds = [int(seed) for seed in stored["seeds"]] or [0]
        plan = ComparisonPlan.from_dict(
            {
                "methods": names,
                "labels": [label for _, label, _ in stored["methods"]],
                "reference": stored["reference"],
                "seeds": seeds,
                "pythons": pythons,
                "scale": stored["scale"],
            }
        )
        keys = {str(name): str(key) for name, _, key in stored["methods"]}
        splits = [str(key) for key in stored["splits"]]
        config = replace(config, seed=plan.seeds[0], repetitions=1)
        title = str(stored["title"])
        # The command's own title says less than the name that a run has without one.
        label = "" if title.endswith(f", {config.protocol}") else title
        return plan, config, keys, splits, label
    except (
        GmcError,
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        SystemExit,
    ) as error:
        raise _Unreadable(str(error) or type(error).__name__) from error


def _data(
    store: Store, config: ExperimentConfig, plan: ComparisonPlan, keys: dict[str, str]
) -> dict[str, Any] | None:
    """The description of its data, if the store has one and its methods are those of today."""
    known, wanted = store.known_data(source_of(config)), config.expected.get("ratings")
    if known is None or not wanted or not known["sha256"].startswith(wanted):
        return None
    try:
        made = plan.make(RatingScale(*known["scale"]))
    except GmcError:
        return None
    return known if {m.name: method_key(m) for m in made} == keys else None


def _cells(
    files: ResultFiles,
    plan: ComparisonPlan,
    keys: dict[str, str],
    splits: Sequence[str],
    failures: dict[tuple[str, str], str],
) -> list[Cell]:
    """The fits that are there, and those that have failed."""
    held_out: dict[int, HeldOutValues] = {}
    for key in splits:  # of two splits with one seed the later is of the data as they were last
        held = files.held_out(key)
        if held is not None:
            seed = plan.seeds[0] if held.seed is None else held.seed
            if seed in plan.seeds:
                held_out[plan.seeds.index(seed)] = held
    cells = []
    for split, held in sorted(held_out.items()):
        for method in plan.methods:
            place = Cell(split, method, "done", 0.0, held.key, keys[method])
            outcome = files.outcome(keys[method], held)
            reason = failures.get((method, held.key))
            if outcome is not None and plan.scale is not None:
                scores = score(outcome.predictions, held.actual, RatingScale(*plan.scale))
                cells.append(
                    replace(
                        place,
                        nmae=scores.nmae,
                        seconds=outcome.seconds,
                        cpu_seconds=outcome.cpu_seconds,
                        peak_bytes=outcome.peak_bytes,
                    )
                )
            elif reason is not None:
                cells.append(replace(place, state="failed", failure=reason))
    return cells


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return time.time()
