"""Computing one comparison: every method on every split, each fit kept as soon as it is there."""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError
from gmc_core.comparison.compare import Comparison, Step, compare
from gmc_core.comparison.comparison_files import ResultFiles
from gmc_core.comparison.plan import ComparisonPlan, fits_of
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.preparing import Prepared, describe
from gmc_core.gaussian.linalg.progress import StepProgress
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.random_splits import check_seeds
from gmc_core.runs.comparisons import other_folders, summary_of
from gmc_core.runs.store import Run, Store, StoreError
from gmc_core.runs.store.cells import Cell
from gmc_core.runs.store.folders import remove_parts, write_atomically
from gmc_core.runs.store.queue import Claim, Lost, register, retire, take
from gmc_core.runs.store.run import LONG_KEY, State
from gmc_core.runs.worker.attempt import Attempt
from gmc_core.runs.worker.cache import Cache
from gmc_core.runs.worker.heartbeat import Heartbeat
from gmc_core.runs.worker.stop_signals import heard

if TYPE_CHECKING:
    from gmc_core.runs.cluster.cluster import Cluster

log = logging.getLogger(__name__)

Tell = Callable[[Step, Comparison], object]


class ComparisonAttempt(Attempt):
    """One attempt at a comparison.

    Parameters
    ----------
    claim, heartbeat, cache : as of :class:`Attempt`.
    tell : called after each fit. at_begin : before.
    cluster : where to fit; here by default.
    """

    def __init__(
        self,
        claim: Claim,
        heartbeat: Heartbeat,
        cache: Cache,
        tell: Tell | None = None,
        cluster: Cluster | None = None,
        at_begin: Callable[[Step], object] | None = None,
    ) -> None:
        super().__init__(claim, heartbeat, cache, cluster)
        self.tell, self.at_begin = tell, at_begin
        self.began: dict[int, float] = {}  # by the step's index

    def _run(self) -> None:
        claim, plan = self.claim, self.claim.run.comparison
        assert plan is not None
        prepared = self.cache.data(self.config)
        check_seeds(self.config.folds, plan.seeds, prepared.ratings)
        self.team.check()
        methods = plan.make(prepared.ratings.scale)
        key = self._with_retries(lambda: claim.describe(describe(prepared)))
        cached = claim.cached_run(key)
        if cached is not None and claim.take_over(cached):
            return
        other_data = claim.run.key not in (None, key)  # or other versions of the methods
        if other_data:
            claim.clear_files()
        remove_parts(claim.folder)
        self._with_retries(lambda: claim.start_cells(anew=other_data))
        cells = [cell.method for cell in claim.store.cells(claim.run.id) if cell.state == "done"]
        left = [one for one in methods if cells.count(one.name) < len(plan.seeds)]
        self._check_affordable(fits_of(left), prepared)
        elsewhere: dict[str, Any] = {}
        if self.cluster is not None:
            elsewhere = self.cluster.for_compare(self.config, prepared)
        comparison = compare(
            methods,
            (self.cache.split(self.config, prepared, seed) for seed in plan.seeds),
            reference=plan.reference,
            folder=_RetryingFiles(self, other_folders(claim.store, claim.run)),
            team=self.team,
            on_begin=self._begin,
            on_end=self._ended,
            **elsewhere,
        )
        failed = len(comparison.failures)
        message = f"{failed} of {plan.total} fits have failed." if failed else ""
        summary = summary_of(comparison)
        self._with_retries(lambda: claim.end("finished", message, summary))

    def _begin(self, step: Step) -> None:
        self.began[step.index] = time.time()
        self._put(self._cell(step))
        if self.at_begin is not None:
            self.at_begin(step)

    def _ended(self, step: Step, comparison: Comparison) -> None:
        cell, outcome = self._cell(step), step.outcome
        if outcome is None:
            cell = replace(cell, state="failed", failure=step.failure)
        else:
            cell = replace(
                cell,
                state="done",
                nmae=step.nmae(),
                seconds=outcome.seconds,
                cpu_seconds=outcome.cpu_seconds,
                peak_bytes=outcome.peak_bytes,
                reused=step.reused,
            )
        self._put(cell)
        if self.tell is not None:
            self.tell(step, comparison)

    def _cell(self, step: Step) -> Cell:
        keys = (step.split_key, step.method_key)
        return Cell(step.split_index, step.method.name, "running", self.began[step.index], *keys)

    def _put(self, cell: Cell) -> None:
        self._with_retries(lambda: self.claim.put_cell(cell))

    def _keep(self, state: State) -> str:
        return ""  # every fit is kept when it ends


class _RetryingFiles(ResultFiles):
    """A run's files; writing is retried while the disk is full: a fit may have taken hours."""

    def __init__(self, attempt: ComparisonAttempt, others: list[Path]) -> None:
        super().__init__(attempt.claim.folder, others)
        self._attempt = attempt

    def write(self, path: Path, arrays: dict[str, npt.NDArray]) -> None:
        def save() -> None:
            write_atomically(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]

        self._attempt._with_retries(save)


def compute_here(
    store: Store,
    config: ExperimentConfig,
    plan: ComparisonPlan,
    prepared: Prepared,
    *,
    again: bool = False,
    threads: int | None = None,
    begin: Callable[[Run], object] | None = None,
    tell: Tell | None = None,
    at_begin: Callable[[Step], object] | None = None,
    cluster: Cluster | None = None,
    however_long: bool = False,
    progress: StepProgress | None = None,
) -> tuple[Run, bool]:
    """Submit a comparison and compute it in this process, whatever else waits in the queue.

    To everyone else it is a run like those of the worker: shown, cancelled, and interrupted if
    this process dies. Ctrl-C cancels it.

    Parameters
    ----------
    config, plan, again : of :meth:`gmc_core.runs.store.Store.submit_comparison`.
    prepared : the data. threads : default all cores.
    begin : called with the run before the first fit. tell : called after each fit, at_begin before.
    cluster : where to fit; here by default.
    however_long : whether its fits may take longer than an hour.
    progress : is told which step the fit that goes on is at.

    Returns
    -------
    The run at its end, and whether anything was done; a finished one is found instead.

    Raises
    ------
    ConfigError
        If another process is computing it.
    GmcError
        As :meth:`gmc_core.runs.store.Store.submit_comparison`.
    """
    worker = f"{os.getpid()}-{secrets.token_hex(4)}"
    with store.writing():  # no worker takes it between the two
        cost = {LONG_KEY: True} if however_long else None
        run, _ = store.submit_comparison(
            config, plan, again=again, data=describe(prepared), cost=cost
        )
        if run.state == "running":
            raise ConfigError(
                f"This comparison is being computed already, as run {run.id}. Wait for it, or "
                f"stop it: gmc runs cancel {run.id}."
            )
        if run.state == "finished":
            return run, False
        register(store, worker, only_run=run.id)
        claim = take(store, worker, run.id)
    assert claim is not None
    if begin is not None:
        begin(run)
    heartbeat, cache = Heartbeat(store.path, worker), Cache()
    heartbeat.watch(run.id)
    cache.put(claim.run.config, prepared)

    def cancel() -> None:
        heartbeat.cancelled = True

    def end() -> None:
        heartbeat.ending = True

    try:
        with heard(cancel, end):
            attempt = ComparisonAttempt(claim, heartbeat, cache, tell, cluster, at_begin)
            attempt.team = ThreadPool(threads, heartbeat.should_stop, progress)
            attempt.run()
    except Lost:
        raise StoreError(
            f"Run {run.id} is no longer this process's: it was silent for too long. See gmc runs "
            f"show {run.id}."
        ) from None
    finally:
        heartbeat.stop()
        with suppress(StoreError):
            retire(store, worker)
    return store.run(run.id), True
