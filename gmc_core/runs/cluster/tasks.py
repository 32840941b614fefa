"""What the workers of a cluster do: one fit of an experiment, or of a method of a comparison."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ClusterError, GmcError
from gmc_core.base.version import package_version
from gmc_core.comparison.comparators.measure import Outcome, run_method
from gmc_core.comparison.comparators.method import Method
from gmc_core.data.datasets import DATASETS
from gmc_core.fitting.compiling import compile_for
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.fit import Fit, IterationRecord
from gmc_core.fitting.preparing import Prepared
from gmc_core.fitting.provenance import file_hashes, of_data
from gmc_core.gaussian.iterate import EmState
from gmc_core.gaussian.linalg.threads import Cancelled, ThreadPool
from gmc_core.model.pictures import HeatmapBinner, picture_orders
from gmc_core.protocol.splits import Split
from gmc_core.runs.worker.cache import Cache

Tell = Callable[[str], object]


class Task(Protocol):
    """One fit, to be done anywhere.

    key : what names it on the cluster. config : data and protocol. seed : of the split.
    """

    @property
    def key(self) -> str:
        """See above."""

    @property
    def config(self) -> ExperimentConfig:
        """See above."""

    @property
    def seed(self) -> int:
        """See above."""

    def run(self, split: Split, team: ThreadPool, tell: Tell) -> Any:
        """Its result; ``tell`` takes text for whoever waits."""


@dataclass(frozen=True, eq=False)
class FitResult:
    """What a finished fit leaves.

    predictions : (n_test,) unprojected. state : None where it was not asked for.
    pictures : iteration → a picture of Σ as npz.
    """

    records: tuple[IterationRecord, ...]
    predictions: npt.NDArray[np.float64]
    state: EmState | None
    pictures: dict[int, bytes]


@dataclass(frozen=True)
class FitTask:
    """One repetition of an experiment.

    wants_state : bring (μ, Σ) back too. pictures : the iterations to make pictures of.
    memory_limit : bytes; see :class:`gmc_core.fitting.fit.Fit`.
    """

    key: str
    config: ExperimentConfig
    seed: int
    wants_state: bool = False
    pictures: tuple[int, ...] = ()
    memory_limit: int | None = None

    def run(self, split: Split, team: ThreadPool, tell: Tell) -> FitResult:
        """Every record is told as JSON."""
        fit = Fit(split, self.config.fit, team=team, memory_limit=self.memory_limit)
        if fit.settings.iterations:
            compile_for(fit.settings)  # not inside the first iteration
        binner = None
        if self.pictures:
            binner = HeatmapBinner(picture_orders(fit.model()), team=ThreadPool(team.size))
        pictures: dict[int, bytes] = {}
        for record in fit.records():
            if binner is not None and record.iteration in self.pictures:
                file = io.BytesIO()
                fit.look(binner.binned).save(file)
                pictures[record.iteration] = file.getvalue()
            tell(json.dumps(record.as_dict()))
        state = fit.state if self.wants_state else None
        return FitResult(tuple(fit.history), fit.predictions, state, pictures)


@dataclass(frozen=True)
class MethodTask:
    """One method of a comparison on one split."""

    key: str
    config: ExperimentConfig
    seed: int
    method: Method

    def run(self, split: Split, team: ThreadPool, tell: Tell) -> Outcome:
        """Predictions and their cost, as measured in the worker."""
        return run_method(self.method, split, team)


@dataclass(frozen=True)
class Failed:
    """The error that ended a task, for its owner to raise. Raised in the worker, Dask would log it
    as a defect."""

    error: Exception


@dataclass(frozen=True)
class NoData:
    """The worker cannot read the data; they have to be sent."""

    reason: str


@dataclass(frozen=True)
class Source:
    """Where a worker finds the data of a task.

    config : with absolute paths and the hash that the ratings must have. version : of the program.
    files : of :class:`gmc_core.fitting.preparing.Prepared`.
    besides : hashes of titles and attributes, and of times: a folder has no hash of its files.
    """

    config: ExperimentConfig
    files: dict[str, str]
    besides: tuple[str, str]
    version: str

    @classmethod
    def of(cls, config: ExperimentConfig, prepared: Prepared) -> Source:
        """Of data that the owner has read."""
        data = config.data if config.data in DATASETS else _absolute(config.data)
        expected = {**config.expected, "ratings": prepared.data_sha256}
        pair = {name: _absolute(getattr(config, name)) for name in ("train_file", "test_file")}
        there = replace(config, data=data, expected=expected, **pair)
        return cls(there, prepared.files, _besides(prepared), package_version())

    def read(self, cache: Cache) -> Prepared | NoData:
        """The data, from the cache of this process or from the same files."""
        try:
            if cache.has(self.config):
                return cache.data(self.config)
            if of_data(file_hashes(self.config)) != self.files:
                return NoData("the files are not there, or others")
            prepared = cache.data(self.config)
            if _besides(prepared) != self.besides:
                return NoData("titles, attributes or times are others")
            return prepared
        except (GmcError, OSError) as error:
            return NoData(str(error))


def _besides(prepared: Prepared) -> tuple[str, str]:
    return prepared.ratings.side_sha256, prepared.times_sha256


def _absolute(path: Any) -> Any:
    return str(Path(path).expanduser().absolute()) if path else path


@dataclass(frozen=True)
class AboutWorker:
    """What a worker of Dask is like."""

    version: str
    threads: int
    resources: dict[str, float]


def about_worker(dask_worker: Any) -> AboutWorker:
    """Asked of every worker by who connects."""
    state = dask_worker.state
    return AboutWorker(package_version(), state.nthreads, dict(state.total_resources))


_cache = Cache()  # of this process: the fits of a sweep share data and split


def giving_up() -> ThreadPool:
    """The threads of the worker of Dask that this is called in; they stop when its task is given
    up by its owner, or the owner is gone."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def unwanted() -> bool:
        known = worker.state.tasks.get(key)
        return known is None or known.state == "cancelled"

    return ThreadPool(worker.state.nthreads, unwanted)


def perform(task: Task, source: Source, sent: Prepared | None, topic: str) -> Any:
    """Do a task in a worker of Dask, with as many threads as the worker has.

    sent : the data, where they do not come from files.

    Returns
    -------
    Its result, :class:`Failed` or :class:`NoData`.
    """
    from distributed import get_worker

    worker, team = get_worker(), giving_up()
    key = worker.get_current_task()
    try:
        if source.version != package_version():  # a worker that joined later
            raise ClusterError(
                f"The worker {worker.address} has version {package_version()} of this program, and "
                f"the fit is of version {source.version}. Install one of them everywhere."
            )
        prepared = source.read(_cache) if sent is None else sent
        if isinstance(prepared, NoData):
            return prepared
        split = _cache.split(task.config, prepared, task.seed)
        return task.run(split, team, lambda text: worker.log_event(topic, [key, text]))
    except (GmcError, Cancelled, MemoryError, OSError) as error:
        return Failed(error)
