"""One attempt at a run: what fits and comparisons have in common when they are computed."""

from __future__ import annotations

import logging
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from gmc_core.base.errors import DEFECT, MEMORY, SYSTEM, GmcError, ModelFileError
from gmc_core.fitting.affordable import Wanted, check_expected
from gmc_core.fitting.preparing import Prepared
from gmc_core.fitting.shape import Expected
from gmc_core.gaussian.linalg.threads import Cancelled, ThreadPool
from gmc_core.protocol.filter_options import Filter
from gmc_core.runs.store import StoreError
from gmc_core.runs.store.queue import Claim, Lost
from gmc_core.runs.store.run import State
from gmc_core.runs.worker.cache import Cache
from gmc_core.runs.worker.heartbeat import Heartbeat

if TYPE_CHECKING:
    from gmc_core.runs.cluster.cluster import Cluster

log = logging.getLogger(__name__)

Result = TypeVar("Result")

PATIENCE_SECONDS = 600.0
_RETRY_SECONDS = 2.0


class Attempt(ABC):
    """One attempt at a run, which ends in one of the run's states whatever happens.

    Parameters
    ----------
    claim : the run, in this worker's hands.
    heartbeat : says when to stop.
    cache : data of the run before.
    cluster : where to fit; here by default.
    """

    def __init__(
        self,
        claim: Claim,
        heartbeat: Heartbeat,
        cache: Cache,
        cluster: Cluster | None = None,
    ) -> None:
        self.claim, self.heartbeat, self.cache = claim, heartbeat, cache
        self.cluster = cluster
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
        self.heartbeat.step = lambda: self.team.progress.now()
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

    def _check_affordable(self, fits: Iterable[Wanted], prepared: Prepared) -> None:
        """Refuse a run that nobody would have been allowed to start without saying so, before the
        split is made.

        Raises
        ------
        TooLongError, ResourceError
            See :func:`gmc_core.fitting.affordable.check_affordable`.
        """
        ratings, run = prepared.ratings, self.claim.run
        filtered = replace(self.config, filter=Filter(0, 0))
        check_expected(
            fits,
            Expected.of_ratings(ratings, filtered),
            ratings.scale,
            memory_limit=None if self.cluster is None else sys.maxsize,
            however_long=run.however_long,
            anyway=f"gmc runs resume {run.parent or run.id} --long starts it all the same.",
        )

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
