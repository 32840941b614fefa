"""The worker's spare time: learning how wide the intervals of a run's model must be.

Only while no run is queued; one that comes in meanwhile goes first, and the work begins
anew after it. The result goes into the model file, where everything that predicts finds it,
unless the run has gone on meanwhile and has another model.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gmc_core.base.errors import GmcError
from gmc_core.fitting.intervals import calibrate_file
from gmc_core.gaussian.linalg.threads import Cancelled, ThreadPool
from gmc_core.model.calibration import AFFORDABLE_SECONDS
from gmc_core.runs.store import Store, StoreError, calibrations
from gmc_core.runs.store.folders import disk_bytes
from gmc_core.runs.store.run import Run
from gmc_core.runs.worker.heartbeat import Heartbeat

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5


def ask_if_cheap(store: Store, run: Run, seconds: float) -> None:
    """Note a finished run whose model is to be calibrated in spare time.

    ``GMC_SPARE_TIME=0`` leaves that to those who ask for it.

    seconds : that its last repetition took, which is what the calibration takes.
    """
    if os.environ.get("GMC_SPARE_TIME") == "0":
        return
    if run.keeps_model and run.parent is None and seconds <= AFFORDABLE_SECONDS:
        try:
            calibrations.ask(store, run.id)
        except StoreError as error:
            log.warning("Run %s is not calibrated: %s", run.id, error)


def calibrate_one(store: Store, heartbeat: Heartbeat) -> bool:
    """Calibrate the model that has waited longest; false if none waits, or none can now.

    Where two workers take the same one, the first that has it keeps it.
    """
    try:
        return _calibrate_one(store, heartbeat)
    except StoreError as error:
        log.warning("The calibrations wait: %s", error)  # a busy store, say: nobody's fault
        return False


def _calibrate_one(store: Store, heartbeat: Heartbeat) -> bool:
    running = {row["id"] for row in store.rows("SELECT id FROM runs WHERE state = 'running'")}
    # What another worker is computing will have another model.
    waiting = [id for id in calibrations.waiting(store) if id not in running]
    if not waiting:
        return False
    id = waiting[0]
    path = store.model_path(id)
    if path is None:
        log.info("Run %s has no model, or is gone.", id)
        calibrations.forget(store, id)
        return True
    log.info("Run %s: calibrating its intervals", id)
    try:
        team = ThreadPool(should_stop=_MoreUrgent(store, heartbeat, id))
        model = calibrate_file(path, team=team, replacing=lambda: _at_rest(store, id))
        if model is None:
            log.info("Run %s has gone on meanwhile: its calibration waits", id)
            return True
        with store.writing() as database:
            size = disk_bytes(path.parent)
            database.execute("UPDATE runs SET disk = ? WHERE id = ?", (size, id))
        calibrations.forget(store, id)
    except Cancelled:
        log.info("Run %s: its calibration waits", id)
    except StoreError:
        raise
    except MemoryError:
        _give_up(store, id, path, "The memory of this machine is too small.")
    except (GmcError, OSError) as error:
        _give_up(store, id, path, str(error))
    except Exception as error:
        log.exception("Run %s", id)
        defect = f"{type(error).__name__}: {error}"
        _give_up(store, id, path, f"A defect of this program: {defect}. The worker's log has more.")
    return True


def _give_up(store: Store, id: str, path: Path, why: str) -> None:
    log.warning("Run %s is not calibrated: %s", id, why)
    if path.parent.is_dir():
        calibrations.give_up(store, id, why)
    else:
        calibrations.forget(store, id)  # deleted meanwhile


@contextmanager
def _at_rest(store: Store, id: str) -> Iterator[bool]:
    """Whether a run is not being computed, and as long as this is held nobody begins to."""
    with store.writing():
        yield bool(store.rows("SELECT 1 FROM runs WHERE id = ? AND state != 'running'", id))


class _MoreUrgent:
    """Whether other work goes before a calibration; called before every piece of its work."""

    def __init__(self, store: Store, heartbeat: Heartbeat, id: str) -> None:
        self._store, self._heartbeat, self._id = store, heartbeat, id
        self._asked, self._queued = 0.0, False

    def __call__(self) -> bool:
        if self._heartbeat.ending:
            return True
        if time.monotonic() - self._asked >= _LOOK_SECONDS:
            self._asked = time.monotonic()
            # If the store cannot be read now, the next check tells.
            with suppress(StoreError):
                self._queued = bool(
                    self._store.rows(
                        "SELECT 1 FROM runs WHERE (state = 'queued' AND kind != 'sweep') "
                        "OR (id = ? AND state = 'running') LIMIT 1",
                        self._id,
                    )
                )
        return self._queued
