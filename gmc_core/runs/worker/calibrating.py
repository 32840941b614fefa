"""The worker's spare time: learning how wide the intervals of a run's model must be.

Only while no run is queued; one that comes in meanwhile goes first, and the work begins
anew after it. The result goes into the model file, where everything that predicts finds it.
"""

from __future__ import annotations

import logging
import time

from gmc_core.base.errors import GmcError
from gmc_core.fitting.intervals import calibrate_file
from gmc_core.gaussian.linalg.threads import Cancelled, Team
from gmc_core.model.calibration import AFFORDABLE_SECONDS
from gmc_core.runs.store import Store, StoreError, calibrations
from gmc_core.runs.store.places import disk_bytes
from gmc_core.runs.store.run import Run
from gmc_core.runs.worker.heart import Heart

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5


def ask_if_cheap(store: Store, run: Run, seconds: float) -> None:
    """Note a finished run whose model is to be calibrated in spare time.

    seconds : that its last repetition took, which is what the calibration takes.
    """
    if run.keeps_model and run.parent is None and seconds <= AFFORDABLE_SECONDS:
        try:
            calibrations.ask(store, run.id)
        except StoreError as error:
            log.warning("Run %s is not calibrated: %s", run.id, error)


def calibrate_one(store: Store, heart: Heart) -> bool:
    """Calibrate the model that has waited longest; false if none waits.

    Where two workers take the same one, both find the same.
    """
    waiting = calibrations.waiting(store)
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
        calibrate_file(path, team=Team(should_stop=_Sooner(store, heart)))
        with store.writing() as database:
            size = disk_bytes(path.parent)
            database.execute("UPDATE runs SET disk = ? WHERE id = ?", (size, id))
        calibrations.forget(store, id)
    except Cancelled:
        log.info("Run %s: its calibration waits", id)
    except (GmcError, MemoryError, OSError) as error:
        log.warning("Run %s is not calibrated: %s", id, error)
        if path.parent.is_dir():
            calibrations.give_up(
                store, id, str(error) or "The memory of this machine is too small."
            )
        else:
            calibrations.forget(store, id)  # deleted meanwhile
    return True


class _Sooner:
    """Whether something is to be done before a calibration; asked very often."""

    def __init__(self, store: Store, heart: Heart) -> None:
        self._store, self._heart = store, heart
        self._asked, self._queued = 0.0, False

    def __call__(self) -> bool:
        if self._heart.ending:
            return True
        if time.monotonic() - self._asked >= _LOOK_SECONDS:
            self._asked = time.monotonic()
            self._queued = bool(
                self._store.rows(
                    "SELECT 1 FROM runs WHERE state = 'queued' AND kind = 'run' LIMIT 1"
                )
            )
        return self._queued
