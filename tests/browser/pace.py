"""A fit whose pace the test sets, so that no test races a worker.

    with held(app.home, run, after=3) as worker:  # it has done 3 iterations and waits
        worker.advance()                          # one more, at least
        worker.done                               # how many there are

However fast the worker and however slow the browser, the page can be looked at while
the fit is under way.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil

from gmc_core.runs.store import Store

# A cold machine compiles the numerical code first.
PATIENCE_SECONDS = 180.0
LOOK_SECONDS = 0.005


class Worker:
    """The stopped process that computes a run.

    Attributes
    ----------
    done : iterations that the run has recorded.
    """

    def __init__(self, store: Store, run: str) -> None:
        self._store, self._run = store, run

    @property
    def done(self) -> int:
        """How many iterations the store knows of."""
        return len(self._store.records(self._run))

    def advance(self) -> None:
        """Let it compute until there is at least one more iteration."""
        before = self.done
        self.release()
        self.stop_at(before + 1)

    def stop_at(self, iterations: int) -> None:
        """Stop it as soon as there are that many."""
        _wait(lambda: self.done >= iterations or self._ended())
        pid = self._pid()
        while True:
            os.kill(pid, signal.SIGSTOP)
            _wait(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
            if _can_write(self._store.path):
                break
            # It was stopped while it held the database: nobody else could write.
            os.kill(pid, signal.SIGCONT)
            time.sleep(LOOK_SECONDS)
        assert not self._ended(), "the fit was too short to be stopped on its way"

    def release(self) -> None:
        """Let it go on."""
        os.kill(self._pid(), signal.SIGCONT)

    def _ended(self) -> bool:
        return self._store.run(self._run).ended_for_good

    def _pid(self) -> int:
        ((pid,),) = self._store.rows("SELECT pid FROM workers")
        return int(pid)


@contextmanager
def held(home: Path, run: str, after: int = 1) -> Iterator[Worker]:
    """The run's worker, stopped after ``after`` iterations and released at the end.

    home : of the dashboard. run : its id; it is submitted, and the only one.
    """
    with Store(home) as store:
        worker = Worker(store, run)
        worker.stop_at(after)
        try:
            yield worker
        finally:
            worker.release()


def _can_write(home: Path) -> bool:
    with closing(sqlite3.connect(home / "runs.db", timeout=0.2, isolation_level=None)) as database:
        try:
            database.execute("BEGIN IMMEDIATE")
            database.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return False
    return True


def _wait(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(LOOK_SECONDS)
