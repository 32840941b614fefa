"""One attempt at a run: what fits and comparisons have in common when they are computed."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from gmc_core.base.errors import DEFECT, MEMORY, SYSTEM, GmcError, ModelFileError
from gmc_core.fitting.config import OF_HELD_OUT
from gmc_core.fitting.experiment import ExperimentConfig, Prepared, make_split, prepare
from gmc_core.fitting.provenance import check_known
from gmc_core.gaussian.linalg.threads import Cancelled, ThreadPool
from gmc_core.protocol.random_splits import check_seeds
from gmc_core.protocol.splits import Split
from gmc_core.runs.store import StoreError
from gmc_core.runs.store.queue import Claim, Lost
from gmc_core.runs.store.run import State
from gmc_core.runs.store.submitting import source_of
from gmc_core.runs.worker.heartbeat import Heartbeat

log = logging.getLogger(__name__)

Result = TypeVar("Result")

PATIENCE_SECONDS = 600.0
_RETRY_SECONDS = 2.0


class Cache:
    """The data and the split last used: the children of a sweep share them.

    Several threads may use it.
    """

    def __init__(self) -> None:
        self._changing = threading.RLock()
        self._data: tuple[str, Prepared] | None = None
        self._split: tuple[object, Split] | None = None

    def put(self, config: ExperimentConfig, prepared: Prepared) -> None:
        """Data that somebody has read already."""
        with self._changing:
            self._data, self._split = (source_of(config), prepared), None

    def has(self, config: ExperimentConfig) -> bool:
        """Whether the data have been read."""
        return self._data is not None and self._data[0] == source_of(config)

    def data(self, config: ExperimentConfig) -> Prepared:
        """The filtered data of an experiment.

        Raises
        ------
        GmcError
            As :func:`prepare`, also where they are here already and are not those expected.
        """
        with self._changing:
            if not self.has(config):
                self._data = self._split = None  # frees the old before the new is loaded
                self._data = (source_of(config), prepare(config))
            else:
                assert self._data is not None
                known = self._data[1]
                check_known(config, known.data_sha256, known.files, known.times_sha256)
                check_seeds(config.folds, config.seeds, known.ratings)
            return self._data[1]

    def split(self, config: ExperimentConfig, prepared: Prepared, seed: int) -> Split:
        """One split of it."""
        key = (
            prepared.data_sha256, config.protocol, seed, config.weak_users, config.strong_users,
            *(getattr(config, name) for name in OF_HELD_OUT),
        )  # fmt: skip
        with self._changing:
            if self._split is None or self._split[0] != key:
                self._split = (key, make_split(config, prepared, seed))
            return self._split[1]


class Attempt(ABC):
    """One attempt at a run, which ends in one of the run's states whatever happens.

    Parameters
    ----------
    claim : the run, in this worker's hands.
    heartbeat : says when to stop.
    cache : data of the run before.
    """

    def __init__(self, claim: Claim, heartbeat: Heartbeat, cache: Cache) -> None:
        self.claim, self.heartbeat, self.cache = claim, heartbeat, cache
        self.config = claim.run.config
        self.team = ThreadPool(should_stop=heartbeat.should_stop)

    def run(self) -> None:
        """Compute to the end, or to where it is stopped or fails.

        Raises
        ------
        Lost
            If the run is no longer this worker's.
        StoreError
            If its end cannot be written, after all retries.
        """
        try:
            self._run()
        except Cancelled:
            self._stopped()
        except GmcError as error:
            self._end("failed", str(error), error.kind, getattr(error, "iteration", None))
        except MemoryError:
            self._end(
                "failed",
                "The memory of this machine does not suffice. Keep fewer items, or compute in "
                "float32.",
                MEMORY,
            )
        except OSError as error:
            where = f"{error.filename or 'A file'}: {error.strerror or error}."
            self._end(
                "failed", f"{where} Check the path, its rights and the disk, then resume.", SYSTEM
            )
        except Lost:
            log.warning("Run %s is no longer this worker's.", self.claim.run.id)
            raise
        except Exception as error:
            log.exception("Run %s", self.claim.run.id)
            defect = f"{type(error).__name__}: {error}"
            self._end("failed", f"A defect of this program: {defect}. The log has more.", DEFECT)

    @abstractmethod
    def _run(self) -> None:
        """Compute, and end the run as finished."""

    @abstractmethod
    def _keep(self, state: State) -> str:
        """Keep what has been reached; what to say of it when the run ends early in ``state``."""

    def _before_stopping(self) -> None:
        """Keep what lets a resumed run go on; nothing, where all is kept already."""
        return

    def _stopped(self) -> None:
        """Cancelled, or the worker is asked to end."""
        if self.heartbeat.lost:
            raise Lost
        self._before_stopping()
        if self.heartbeat.cancelled:
            self._end("cancelled", "Cancelled.")
        else:
            self._end("interrupted", "The worker was asked to end. Resume goes on from here.")

    def _end(
        self, state: State, message: str, kind: str | None = None, iteration: int | None = None
    ) -> None:
        """End early, and tell what is kept."""
        message = f"{message} {self._keep(state)}".rstrip()
        self._with_retries(
            lambda: self.claim.end(state, message, error_kind=kind, error_iteration=iteration)
        )

    def _with_retries(self, action: Callable[[], Result]) -> Result:
        """Retry while the disk is full or the store busy: a person may free it.

        Giving up would lose the state in memory.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return action()
            except (StoreError, ModelFileError) as error:
                if time.monotonic() > deadline or self.heartbeat.ending:
                    raise
                log.warning("Run %s waits: %s", self.claim.run.id, error)
                time.sleep(_RETRY_SECONDS)
