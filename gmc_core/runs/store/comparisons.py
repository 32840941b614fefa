"""Comparisons that survive: what was asked for, who computes it, and how to stop it.

Each is a folder below the home, found by its name:

    comparison.json   what is compared with what; written by whoever starts it
    status.json       state, process and progress; written by whoever computes it
    cancel            there once somebody wants it stopped
    lock              locked by the process that computes it, for as long as it does
    log.txt           what a detached process has printed
    summary.json, splits, results    see gmc_core.comparison.comparison_files

Results are found again by their content, so the same folder may be started again with
other methods or splits.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

from gmc_core.base.errors import ConfigError
from gmc_core.base.files import without_nan
from gmc_core.comparison.compare import Comparison
from gmc_core.comparison.comparison_files import ResultFiles, Truth
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.experiment import ExperimentConfig
from gmc_core.runs.store.command import arguments_of
from gmc_core.runs.store.errors import StoreError, explained
from gmc_core.runs.store.identity import host, process_mark
from gmc_core.runs.store.places import home, write_atomically
from gmc_core.runs.store.submitting import absolute, anywhere

ACTIVE = ("starting", "running")
LOOK_SECONDS = 0.2
# Longer than whoever starts it holds the claim, and no more than a person waits for a no.
_PATIENCE_SECONDS = 1.0
_LOG_TAIL = 2000


@dataclass(frozen=True)
class Plan:
    """What is compared with what.

    title : for people. command : the arguments of ``gmc`` that compute it.
    protocol, seeds : of the splits. scale : low, high and step of the ratings; None
        before they have been read.
    methods : for each its name, label and ``method_key``. reference : a method's name.
    splits : keys of the splits made so far, in order.
    repeat : the arguments of ``gmc`` that repeat it elsewhere; empty before the data have
        been read.
    """

    title: str
    command: tuple[str, ...]
    protocol: str
    seeds: tuple[int, ...]
    methods: tuple[tuple[str, str, str], ...]
    reference: str
    scale: tuple[float, float, float | None] | None = None
    splits: tuple[str, ...] = ()
    repeat: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Methods times splits."""
        return len(self.methods) * max(len(self.seeds), 1)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; :meth:`from_dict` is the way back."""
        return dict(self.__dict__)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Plan:
        """Read what :meth:`as_dict` wrote."""
        scale = values["scale"]
        return cls(
            title=str(values["title"]),
            command=tuple(str(part) for part in values["command"]),
            protocol=str(values["protocol"]),
            seeds=tuple(int(seed) for seed in values["seeds"]),
            methods=tuple((str(a), str(b), str(c)) for a, b, c in values["methods"]),
            reference=str(values["reference"]),
            scale=None if scale is None else (float(scale[0]), float(scale[1]), scale[2]),
            splits=tuple(str(key) for key in values["splits"]),
            repeat=tuple(str(part) for part in values.get("repeat", ())),
        )


@dataclass(frozen=True)
class Status:
    """How far a comparison is.

    state : starting, running, finished, cancelled, failed, or interrupted (its process
        has gone without a word).
    done, total : methods times splits. now : what is being computed. message : why it
        ended. failures : (method name, split key, reason) of what had no result.
    began : of what is computed now, in seconds since the epoch.
    """

    state: str
    done: int = 0
    total: int = 0
    now: str = ""
    began: float = 0.0
    message: str = ""
    failures: tuple[tuple[str, str, str], ...] = ()

    @property
    def active(self) -> bool:
        """Whether a process is at work."""
        return self.state in ACTIVE


@dataclass(frozen=True)
class ComparisonFolder:
    """A comparison by its folder, which may not exist yet."""

    path: Path
    _seen: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def id(self) -> str:
        """The folder's name."""
        return self.path.name

    @property
    def log(self) -> Path:
        """What a detached process has printed."""
        return self.path / "log.txt"

    def plan(self) -> Plan | None:
        """What was asked for; None if that was never written, or is damaged."""
        try:
            return Plan.from_dict(json.loads(self._text("comparison.json")))
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            return None

    def keep_plan(self, plan: Plan) -> None:
        """Write what is asked for.

        Raises
        ------
        StoreError
            If the folder cannot be written.
        """
        self._write("comparison.json", plan.as_dict())

    def status(self) -> Status:
        """How far it is; a process that died shows as interrupted."""
        try:
            stored = json.loads(self._text("status.json"))
            failures = tuple((str(a), str(b), str(c)) for a, b, c in stored["failures"])
            status = Status(**{**stored["status"], "failures": failures})
        except (OSError, ValueError, KeyError, TypeError):
            return Status("interrupted", message="It has not been started.")
        if not status.active or stored["host"] != host():
            return status
        if stored["process"] == process_mark(stored["pid"]) is not None:
            return status
        return Status(
            "interrupted", status.done, status.total, failures=status.failures,
            message="Its process ended without a word; perhaps it was killed, or memory ran out.",
        )  # fmt: skip

    def keep_status(self, status: Status, pid: int | None = None) -> None:
        """Write how far it is; ``pid`` computes it, by default this process."""
        pid = os.getpid() if pid is None else pid
        plain = {key: value for key, value in status.__dict__.items() if key != "failures"}
        self._write(
            "status.json",
            {
                "status": plain,
                "failures": list(status.failures),
                "host": host(),
                "pid": pid,
                "process": process_mark(pid),
            },
        )

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Compute it alone: refuse if another process does; forget older requests to stop.

        The claim is a lock of the system on the file ``lock``: whoever comes second is
        refused however close behind, and it ends with its process, whatever ends that.

        Raises
        ------
        ConfigError
            If another process is computing it.
        StoreError
            If the folder cannot be written.
        """
        with explained(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / "lock", is_singleton=False)
            try:
                lock.acquire(timeout=_PATIENCE_SECONDS)
            except Timeout:
                raise ConfigError(
                    f"This comparison is being computed{self._by_whom()}. Wait for it, cancel it "
                    "on the Compare page, or give another --folder."
                ) from None
        try:
            with suppress(OSError):
                # A request made after this process began is meant for it.
                if self._cancel.stat().st_mtime < psutil.Process().create_time():
                    self._cancel.unlink()
            yield
        finally:
            lock.release()

    def _by_whom(self) -> str:
        """The process that has said that it computes it, in words."""
        try:
            stored = json.loads(self._text("status.json"))
            return f" by process {int(stored['pid'])} on {stored['host']}"
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def cancel(self) -> None:
        """Ask whoever computes it to stop.

        Raises
        ------
        StoreError
            If the folder cannot be written.
        """
        with explained(self.path):
            self._cancel.touch()

    def cancelled(self) -> bool:
        """Whether somebody has asked; cheap enough to be called very often."""
        # Asked by several threads at once: look first, then say that somebody has.
        now = time.monotonic()
        if now - self._seen.get("looked", -1.0) > LOOK_SECONDS:
            self._seen["cancel"] = self._cancel.exists()
            self._seen["looked"] = now
        return bool(self._seen.get("cancel"))

    def keep_summary(self, comparison: Comparison) -> None:
        """Write the table as JSON, for other programs."""
        self._write("summary.json", comparison.as_dict())

    def comparison(self, reference: str | None = None) -> Comparison | None:
        """What has been reached, read from the files; None before the first split.

        reference : a method's name; the plan's by default.
        """
        plan = self.plan()
        if plan is None or plan.scale is None:
            return None
        files = ResultFiles(self.path)
        truths = {}
        for key in plan.splits:
            truth: Truth | None = files.truth(key)
            if truth is not None:
                truths[key] = truth
        result = Comparison(
            RatingScale(*plan.scale),
            {name: label for name, label, _ in plan.methods},
            reference or plan.reference,
            truths,
        )
        for name, _, method in plan.methods:
            for key, truth in truths.items():
                outcome = files.outcome(method, truth)
                if outcome is not None:
                    result.outcomes[name, key] = outcome
        for name, key, reason in self.status().failures:
            if (name, key) not in result.outcomes:
                result.failures[name, key] = reason
        return result

    def forget_results(self) -> None:
        """Remove every result, so that the same command computes all of them again.

        Raises
        ------
        StoreError
            If a file cannot be removed.
        """
        with explained(self.path):
            for name in ("splits", "results"):
                if (self.path / name).is_dir():
                    shutil.rmtree(self.path / name)

    def last_words(self) -> str:
        """The last line that a detached process has printed, "" if none."""
        try:
            text = self.log.read_bytes()[-_LOG_TAIL:].decode("utf-8", "replace")
        except OSError:
            return ""
        return (text.strip().splitlines() or [""])[-1]

    def delete(self) -> None:
        """Remove it with its results.

        Raises
        ------
        ConfigError
            If it is being computed.
        """
        if self.status().active:
            raise ConfigError("This comparison is being computed. Cancel it first.")
        with explained(self.path):
            shutil.rmtree(self.path, ignore_errors=False)

    @property
    def _cancel(self) -> Path:
        return self.path / "cancel"

    def _text(self, name: str) -> str:
        return (self.path / name).read_text(encoding="utf-8")

    def _write(self, name: str, value: Any) -> None:
        text = json.dumps(without_nan(value), indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(
            self.path / name, lambda file: file.write(text.encode("utf-8")), durable=False
        )


def comparisons_folder() -> Path:
    """Where comparisons without a folder of their own are kept."""
    return home() / "comparisons"


def comparison_named(identity: str) -> ComparisonFolder:
    """A comparison below the home by its id.

    Raises
    ------
    StoreError
        If there is none.
    """
    if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", identity):
        found = ComparisonFolder(comparisons_folder() / identity)
        if found.plan() is not None:
            return found
    raise StoreError(
        f"There is no comparison {identity[:64]!r} on this machine. Start one, or choose one of "
        "the earlier ones."
    )


def comparisons() -> list[ComparisonFolder]:
    """All below the home, the latest first."""
    try:
        folders = [path for path in comparisons_folder().iterdir() if path.is_dir()]
    except OSError:
        return []
    known = [ComparisonFolder(path) for path in folders]
    dated = [
        (file.stat().st_mtime, folder.id, folder)
        for folder in known
        if folder.plan() is not None and (file := folder.path / "comparison.json").exists()
    ]
    return [folder for *_, folder in sorted(dated, key=lambda entry: entry[:2], reverse=True)]


def folder_for(config: ExperimentConfig) -> ComparisonFolder:
    """The comparison below the home for these data, this filter and this protocol.

    Methods and seeds do not count: what was computed before is found again there.
    """
    content = config.as_dict()
    for name in ("fit", "seed", "repetitions", "expected"):
        content.pop(name, None)
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return ComparisonFolder(comparisons_folder() / digest[:12])


def command_for(
    config: ExperimentConfig,
    folder: ComparisonFolder,
    seeds: Sequence[int],
    methods: Sequence[str],
    reference: str,
    pythons: Sequence[str] = (),
) -> tuple[str, ...]:
    """The arguments of ``gmc`` that compute a comparison, from whatever folder.

    pythons : interpreters with other packages.
    """
    return (
        "compare",
        *arguments_of(anywhere(config), sweep=True, fit=False),
        *(() if config.protocol == "pair" else (f"--seeds={','.join(map(str, seeds))}",)),
        f"--methods={','.join(methods)}",
        f"--reference={reference}",
        *(f"--peer-python={absolute(python)}" for python in pythons),
        f"--folder={folder.path.absolute()}",
    )


def start(folder: ComparisonFolder, plan: Plan) -> None:
    """Compute it in a detached process, which outlives this one.

    Raises
    ------
    ConfigError
        If it is being computed.
    StoreError
        If the folder cannot be written or the process not be started.
    """
    with folder.claimed():
        if folder.status().active:  # it has been started, and has not claimed it yet
            raise ConfigError("This comparison is being computed already.")
        folder.keep_plan(plan)
        with suppress(OSError):
            folder._cancel.unlink()
        folder.keep_status(Status("starting", total=plan.total))
        pid = _spawn(folder, plan.command)
        # It needs longer than this to begin; from then on it speaks for itself.
        folder.keep_status(Status("starting", total=plan.total), pid)


def _spawn(folder: ComparisonFolder, command: Sequence[str]) -> int:
    root = str(Path(__file__).resolve().parents[3])
    search = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
    with explained(folder.path), folder.log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "gmc_core", *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder.path,
            env={**os.environ, "GMC_HOME": str(home()), "PYTHONPATH": search},
            start_new_session=True,
        )
    # So that its entry among the system's processes goes with its end.
    threading.Thread(target=process.wait, name="comparison", daemon=True).start()
    return process.pid
