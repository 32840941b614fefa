"""Computing queued runs on a cluster, as many at a time as it has workers."""

from __future__ import annotations

import logging
import math
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from gmc_core.runs.cluster.cluster import Cluster
from gmc_core.runs.store import Store
from gmc_core.runs.store.queue import register, retire
from gmc_core.runs.worker.cache import Cache
from gmc_core.runs.worker.heartbeat import BEAT_SECONDS
from gmc_core.runs.worker.loop import work
from gmc_core.runs.worker.slot import Slot, Stop
from gmc_core.runs.worker.stop_signals import heard

log = logging.getLogger(__name__)


class Loops:
    """One :func:`gmc_core.runs.worker.loop.work` for each worker of a cluster, in threads.

    Each has its own connection to the store; all writing is done in this process.

    Parameters
    ----------
    path : the store's folder. among, only_run : of :class:`Slot`.
    idle_seconds : how long to wait for another run before leaving.
    once : leave after one run. leave : of :func:`gmc_core.runs.worker.loop.work`.
    """

    def __init__(
        self,
        path: Path,
        cluster: Cluster,
        *,
        among: Collection[str] | None = None,
        only_run: str | None = None,
        idle_seconds: float = math.inf,
        once: bool = False,
        leave: Callable[[], bool] | None = None,
    ) -> None:
        self.stop, self._failures = Stop(), list[BaseException]()
        cache, count = Cache(), 1 if once else cluster.workers

        def loop(index: int) -> None:
            slot = Slot(cluster, cache, self.stop, among, only_run, among is None and not index)
            try:
                with Store(path) as store:
                    work(
                        store, idle_seconds=idle_seconds, once=once, beside=True, polite=False,
                        slot=slot, leave=leave,
                    )  # fmt: skip
            except BaseException as error:  # raised in check
                self._failures.append(error)

        self._threads = [
            threading.Thread(target=loop, args=(index,), name=f"slot-{index}", daemon=True)
            for index in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def check(self) -> None:
        """Raise what has ended a loop."""
        if self._failures:
            raise self._failures[0]

    def join(self) -> None:
        """Wait until all have ended."""
        for thread in self._threads:
            while thread.is_alive():
                thread.join(0.2)  # Ctrl-C and SIGTERM are heard between
        self.check()


def work_on(
    store: Store,
    where: str,
    *,
    idle_seconds: float,
    once: bool = False,
    beside: bool = False,
    leave: Callable[[], bool] | None = None,
) -> None:
    """Compute queued runs on a cluster until there are none, as :func:`gmc_core.runs.worker.work`.

    SIGTERM and Ctrl-C interrupt what is being computed.

    Parameters
    ----------
    where : of :class:`Cluster`. The others: as of ``work``.
    """
    worker = secrets.token_hex(5)
    if not register(store, worker, beside=beside):
        log.info("Another worker is alive.")
        return
    try:
        cluster = Cluster(where)
    finally:
        retire(store, worker)  # the loops have entries of their own
    with cluster:
        loops = Loops(store.path, cluster, idle_seconds=idle_seconds, once=once, leave=leave)
        with heard(loops.stop.ask, loops.stop.ask):
            loops.join()


@contextmanager
def computing(
    path: Path, cluster: Cluster, among: Collection[str], only_run: str
) -> Iterator[Callable[[], None]]:
    """Some runs of the store are computed on the cluster inside the ``with``.

    among : ids, which may become more. only_run : one of them, or their parent.

    Returns
    -------
    What raises the error that has ended the work, if one has; to be called from time to time.
    """
    loops = Loops(path, cluster, among=among, only_run=only_run)
    try:
        yield loops.check
    finally:
        time.sleep(2 * BEAT_SECONDS)  # a cancel that was just asked for is heard first
        loops.stop.ask()
        loops.join()
