"""The worker's loop: take a run, compute it, take the next, end when idle."""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

from gmc_core.model.pictures import warm_up
from gmc_core.runs.store import Store, StoreError
from gmc_core.runs.store.queue import Lost, register, retire, take
from gmc_core.runs.worker.attempt import Attempt
from gmc_core.runs.worker.cache import Cache
from gmc_core.runs.worker.calibrating import calibrate_one
from gmc_core.runs.worker.comparing import ComparisonAttempt
from gmc_core.runs.worker.compute import CHECKPOINT_SECONDS, Computation
from gmc_core.runs.worker.heartbeat import Heartbeat
from gmc_core.runs.worker.slot import Slot
from gmc_core.runs.worker.stop_signals import heard

log = logging.getLogger(__name__)

NICENESS = 10
POLL_SECONDS = 0.5


def work(
    store: Store,
    *,
    idle_seconds: float = 60.0,
    once: bool = False,
    beside: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    polite: bool = True,
    slot: Slot | None = None,
    leave: Callable[[], bool] | None = None,
) -> int:
    """Compute queued runs, one at a time, until there are none.

    While none is queued, the intervals of finished runs' models are calibrated.

    Parameters
    ----------
    idle_seconds : how long to wait for another run before leaving.
    once : leave after one run.
    beside : work even if another worker is alive (each run still has one worker).
    checkpoint_seconds : least time between two full states of a run on disk.
    polite : lower this process's priority, so that pages stay quick.
    slot : one of several loops of this process, which fit on a cluster.
    leave : asked between two runs: whether another worker, of another place, has to take over.

    Returns
    -------
    How many runs were taken; 0 if another worker is alive.
    """
    worker = secrets.token_hex(5)
    only_run = None if slot is None else slot.only_run
    if not register(store, worker, beside=beside, only_run=only_run):
        log.info("Another worker is alive.")
        return 0
    if polite:
        with suppress(OSError, AttributeError):
            os.nice(NICENESS)
    heartbeat = Heartbeat(store.path, worker)
    warming = threading.Thread(target=warm_up, name="warm-up", daemon=True)
    if slot is None:
        warming.start()
    else:
        slot.begin(heartbeat)
    cluster, cache = (None, Cache()) if slot is None else (slot.cluster, slot.cache)
    among, taken = None if slot is None else slot.among, 0
    last_work = time.monotonic()

    def end() -> None:
        heartbeat.ending = True

    hearing = ExitStack()
    hearing.enter_context(heard(end, end))
    try:
        while not heartbeat.ending and not (leave is not None and leave()):
            try:
                claim = take(store, worker, among=among)
            except Lost:
                # Its entry expired while the computer slept; register again.
                if not register(store, worker, beside=beside, only_run=only_run):
                    return taken
                continue
            except StoreError as error:
                log.warning("%s", error)
                time.sleep(POLL_SECONDS)
                continue
            if claim is not None:
                log.info("Run %s: %s", claim.run.id, claim.run.title)
                heartbeat.watch(claim.run.id)
                attempt: Attempt
                if claim.run.comparison is not None:
                    attempt = ComparisonAttempt(claim, heartbeat, cache, cluster=cluster)
                else:
                    attempt = Computation(claim, heartbeat, cache, checkpoint_seconds, cluster)
                with suppress(Lost):
                    attempt.run()
                heartbeat.watch(None)
                taken += 1
                last_work = time.monotonic()
                if once:
                    return taken
            elif (slot is None or slot.calibrates) and calibrate_one(store, heartbeat):
                last_work = time.monotonic()
            elif time.monotonic() - last_work >= idle_seconds:
                if retire(store, worker, if_idle=True):
                    return taken
            else:
                store.notice_dead()
                time.sleep(min(POLL_SECONDS, max(idle_seconds, 0.01)))
        return taken
    finally:
        hearing.close()
        heartbeat.stop()
        if slot is None:
            warming.join()  # a process that ends amid compiled code may crash
        with suppress(StoreError):
            retire(store, worker)
