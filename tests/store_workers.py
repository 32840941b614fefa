"""Small runs, and worker processes that tests may kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.fit import IterationRecord
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.filters import Filter
from gmc_core.runs.store import Run, Store
from gmc_core.runs.store.queue import Claim
from gmc_core.runs.worker.heartbeat import BEAT_SECONDS

ROOT = Path(__file__).parents[1]

# Forks workers on request: the imports, which take far longer than these runs, are
# done once, and no other thread exists when it forks.
NURSERY = """
import os, signal, sys
import gmc_core.runs.worker.loop
from gmc_core.runs.store import Store
from gmc_core.runs.worker import work
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
home, arguments = sys.argv[1], eval(sys.argv[2])
for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            work(Store(home), **arguments)
        finally:
            os._exit(0)
    print(child, flush=True)
"""


def small(**changes: Any) -> ExperimentConfig:
    """An experiment of a few tenths of a second; ``changes`` go to the fit."""
    fit = FitSettings(**{"iterations": 5, "epsilon": 0.3, **changes})
    return ExperimentConfig(filter=Filter(max_items=250), weak_users=300, fit=fit)


def figures(store: Store, id: str) -> tuple[Any, ...]:
    """All of a run's result that must not depend on how it came about."""
    timings = {"e_seconds": 0.0, "m_seconds": 0.0, "evaluation_seconds": 0.0}
    records = tuple((r, replace(record, **timings)) for r, record in store.records(id))
    run = store.run(id)
    held_out = [store.held_out(id, index) for index in range(run.repetitions)]
    summary = {
        name: value
        for name, value in (run.summary or {}).items()
        if name not in ("seconds", "peak_rss_bytes")
    }
    predictions = tuple(part and part.predictions.tobytes() for part in held_out)
    return records, predictions, summary, run.key


class Nursery:
    """A process that forks workers of one store."""

    def __init__(self, home: Path, **arguments: Any) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", NURSERY, str(home), repr(arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def worker(self) -> int:
        """Start a worker; returns its process id."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(20)


def kill(pid: int) -> bool:
    """SIGKILL; false if the process had gone already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def alive(pid: int) -> bool:
    """Whether the process runs."""
    from gmc_core.runs.store.identity import process_mark

    return process_mark(pid) is not None


@contextmanager
def cancelled_when(
    store: Store, id: str, reached: Callable[[IterationRecord], bool]
) -> Iterator[None]:
    """Workers of this process cancel the run or sweep ``id`` at the record that is ``reached``.

    They go on slowly, so that the run cannot end before they have heard of it.
    """
    original = Claim.add_record

    def add_record(claim: Claim, repetition: int, record: IterationRecord) -> None:
        original(claim, repetition, record)
        if reached(record):
            store.cancel(id)
            time.sleep(2 * BEAT_SECONDS)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Claim, "add_record", add_record)
        yield


def wait_for(condition: Callable[[], Any], seconds: float = 180.0) -> Any:
    """The first true value of ``condition``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError("It did not happen in time.")


def states(store: Store, parent: str) -> list[str]:
    """The states of a sweep's children."""
    return [run.state for run in store.runs(parent=parent)]


def finished(store: Store, run: Run) -> bool:
    """Whether the run is finished."""
    return store.run(run.id).state == "finished"
