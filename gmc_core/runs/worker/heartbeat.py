"""The worker's heartbeat, and the way in which requests to stop reach it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from gmc_core import former
from gmc_core.gaussian.linalg.progress import StepShare, whole_percent
from gmc_core.runs.store import Store, StoreError
from gmc_core.runs.store.queue import beat

BEAT_SECONDS = 0.25


class Heartbeat:
    """A thread that says "alive" and listens, several times a second.

    A BLAS call of SciPy's holds it up, as it holds the GIL: seconds at most, and
    :mod:`gmc_core.runs.store.liveness` has patience with a process that is there.

    Attributes
    ----------
    run : id of the run in progress. cancelled, lost : what became of it.
    step : asked what it is at, which the store is told; None where nobody knows.
    ending : the process was asked to end (SIGTERM, Ctrl-C).
    """

    def __init__(self, path: Path, worker: str) -> None:
        self.worker = worker
        self.run: str | None = None
        self.cancelled = self.lost = False
        self.step: Callable[[], StepShare | None] | None = None
        self.ending = False
        self._path = path
        self._over = threading.Event()
        self._changing = threading.Lock()
        self._thread = threading.Thread(target=self._live, name="heartbeat", daemon=True)
        self._thread.start()

    def watch(self, run: str | None) -> None:
        """Listen for requests that concern this run."""
        with self._changing:
            self.cancelled = self.lost = False
            self.run, self.step = run, None

    def should_stop(self) -> bool:
        """Whether the computation in progress is no longer wanted."""
        return self.cancelled or self.lost or self.ending

    def stop(self) -> None:
        """End the thread."""
        self._over.set()
        self._thread.join()

    def _live(self) -> None:
        # Its own connection: it must not wait for the other thread's writes.
        store: Store | None = None
        told: tuple[str | None, StepShare | None] = None, None
        while not self._over.is_set():
            # A full disk, say, must not end the thread: it may have room again.
            with suppress(StoreError):
                store = store or Store(self._path)
                with self._changing:
                    run, step = self.run, self.step
                at = run, _whole_percent(step and step())
                cancelled, lost = beat(store, self.worker, run, None if at == told else at[1:])
                told = at
                # The answer may be about the run before.
                with self._changing:
                    if run is not None and run == self.run:
                        self.cancelled = self.cancelled or cancelled
                        self.lost = self.lost or lost
            self._over.wait(BEAT_SECONDS)
        if store is not None:
            store.close()


def _whole_percent(step: StepShare | None) -> StepShare | None:
    """With a share that is not news several times a second."""
    if step is None or step.share is None:
        return step
    return replace(step, share=whole_percent(step.share) / 100)


__getattr__ = former.renamed(__name__, Heart="Heartbeat")
