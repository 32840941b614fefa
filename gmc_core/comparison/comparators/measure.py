"""What a method costs: time, processor time and memory of one fit with its predictions."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import psutil
from numba.core.event import install_timer

from gmc_core.base.errors import NumericalError
from gmc_core.comparison.comparators.method import Method
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.splits import Split

LOOK_SECONDS = 0.01


@dataclass(frozen=True)
class Outcome:
    """A method's predictions on one split and what they cost.

    predictions : (n_test,) float64, raw.
    seconds : wall time of fitting and predicting, compiling not counted: it happens
        once on a machine.
    cpu_seconds : processor time of all threads, likewise.
    peak_bytes : the most memory beyond what the process had before; NaN if unknown.
    """

    predictions: npt.NDArray[np.float64]
    seconds: float
    cpu_seconds: float
    peak_bytes: float


@runtime_checkable
class MeasuresItself(Protocol):
    """A method that works in another process, and knows what it cost there."""

    def run(self, split: Split, team: ThreadPool) -> Outcome:
        """Predictions and their cost."""


def run_method(method: Method, split: Split, team: ThreadPool) -> Outcome:
    """Fit, predict and measure.

    Raises
    ------
    NumericalError
        If a prediction is not a finite number.
    GmcError, Cancelled
        As the method.
    """
    if isinstance(method, MeasuresItself):
        outcome = method.run(split, team)
    else:
        compiling: list[float] = []
        with _memory() as most, install_timer("numba:compile", compiling.append):
            wall, cpu = time.perf_counter(), time.process_time()
            predictions = np.asarray(method.predict(split, team), dtype=np.float64)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        extra = sum(compiling)
        outcome = Outcome(
            predictions, max(wall - extra, 0.0), max(cpu - extra, 0.0), float(most[0])
        )
    if outcome.predictions.shape != (split.n_test,):
        raise NumericalError(
            f"{method.label} gave {outcome.predictions.shape} predictions for {split.n_test:,} "
            "test ratings. Leave it out."
        )
    broken = int((~np.isfinite(outcome.predictions)).sum())
    if broken:
        raise NumericalError(
            f"{broken:,} of {split.n_test:,} predictions of {method.label} are not finite. Leave "
            "it out, or change its settings."
        )
    return outcome


@contextmanager
def _memory() -> Iterator[list[int]]:
    """The most memory, beyond that at the start, seen by looking often."""
    process = psutil.Process()
    # Memory that an earlier method has freed but the allocator kept is given back: used again, it
    # would not show as growth.
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    start = process.memory_info().rss
    most, over = [0], threading.Event()

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            most[0] = max(most[0], process.memory_info().rss - start)

    watcher = threading.Thread(target=look, name="memory", daemon=True)
    watcher.start()
    try:
        yield most
    finally:
        over.set()
        watcher.join()
        most[0] = max(most[0], process.memory_info().rss - start)
