"""A cluster of Dask as a place where fits are done, seen from the process that owns the store."""

from __future__ import annotations

import hashlib
import logging
import queue
import secrets
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

from gmc_core.base.errors import ClusterError, ConfigError, ResourceError, brief
from gmc_core.base.extras import require
from gmc_core.base.version import package_version
from gmc_core.comparison.comparators.measure import Outcome
from gmc_core.comparison.compare import Step
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.cost import memory_limit
from gmc_core.fitting.preparing import Prepared
from gmc_core.fitting.repetition import Repetition
from gmc_core.gaussian.linalg.threads import ThreadPool, available_cores
from gmc_core.runs.cluster.remote_fit import ClusterExperiment
from gmc_core.runs.cluster.shards import ShardedExperiment
from gmc_core.runs.cluster.tasks import (
    AboutWorker,
    Failed,
    MethodTask,
    NoData,
    Source,
    Task,
    about_worker,
    perform,
)

LOCAL_WORKERS = 2
CONNECT_SECONDS = 15
POLL_SECONDS = 0.2
LOSSES = 3  # of sent data, before a fit is given up
# Every worker has one of it from its start, and a fit takes it: so each fit has all of a worker's
# threads. (Given to a worker later, Dask would not look again at what waits for it.)
RESOURCE = "gmc-fit"
_LOST = (
    "The connection to the cluster is lost, or its workers die again and again. Look at its "
    "scheduler and at their memory; then resume."
)


class Cluster:
    """Workers of Dask, of this machine or of others. Close it, or use it in ``with``.

    Parameters
    ----------
    where : "local" or "local:N" for N processes of this machine, else the address of a scheduler,
        such as tcp://host:8786.
    threads : of each local worker; by default N share the cores (``GMC_THREADS``, if set). Those
        of other workers are what they were started with.

    Raises
    ------
    MissingPackageError
        If the extra ``dask`` is not installed.
    ConfigError
        If ``where`` is neither, nobody answers there, no worker takes one fit at a time, or
        one has another version of this program.

    Attributes
    ----------
    workers, threads : how many there were at the beginning, and of all of them together.
    memory_limit : bytes for each fit; None where every worker looks at its own machine.
    """

    def __init__(self, where: str, threads: int | None = None) -> None:
        require("dask", "A cluster")
        from distributed import Client

        self.memory_limit: int | None = None
        self._local: Any = None
        name, _, count = where.partition(":")
        if name == "local":
            self._local = self._start(count or str(LOCAL_WORKERS), threads)
        elif "://" not in where:
            raise ConfigError(
                f"A cluster is local, local:N or the address of a scheduler such as "
                f"tcp://host:8786, not {where!r}."
            )
        elif threads is not None:
            raise ConfigError(
                "The workers of a cluster have the threads that they were started with (dask "
                "worker --nthreads); leave out --threads."
            )
        try:
            self._client = Client(self._local or where, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"No Dask scheduler answers at {where} ({brief(error)}). Start it with dask "
                "scheduler, and look at the address and the firewall."
            ) from None
        self._topic = f"gmc-{secrets.token_hex(8)}"
        self._inboxes: dict[str, queue.SimpleQueue[str | None]] = {}
        self._sent: dict[str, Any] = {}
        self._sending = threading.Lock()
        try:
            self._join(where)
        except BaseException:
            self.close()
            raise

    def _start(self, count: str, threads: int | None) -> Any:
        if not (count.isascii() and count.isdigit() and int(count)):
            raise ConfigError(f"local:N is a number of processes of at least 1, not {count!r}.")
        from distributed import LocalCluster

        workers = int(count)
        self.memory_limit = memory_limit() // workers
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=threads or max(available_cores() // workers, 1),
            processes=True,
            resources={RESOURCE: 1},
            memory_limit=0,  # a fit is refused before it begins, not killed
            # No pages; what Dask serves beside them is on any port, that none be taken.
            scheduler_kwargs={"dashboard": False},
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.ERROR,
        )

    def _join(self, where: str) -> None:
        with suppress(TimeoutError):
            self._client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        start = f"dask worker {where} --nworkers 1 --nthreads 8 --resources {RESOURCE}=1"
        try:
            there: dict[str, AboutWorker] = self._client.run(about_worker)
        except Exception as error:  # whatever a worker raises that has no such program
            raise ConfigError(
                f"The workers at {where} cannot do this: {brief(error)}. Install version "
                f"{package_version()} of this program for each of them."
            ) from None
        for address, about in there.items():
            if about.version != package_version():
                raise ConfigError(
                    f"The worker {address} has version {about.version} of this program, and this "
                    f"is {package_version()}. Install one of them everywhere."
                )
        self._able = [name for name, about in there.items() if about.resources.get(RESOURCE) == 1]
        able = [there[name] for name in self._able]
        if not able:
            raise ConfigError(
                f"The cluster at {where} has no worker that takes one fit at a time with all its "
                f"threads. Start one on each machine: {start}"
            )
        self.workers, self.threads = len(able), sum(about.threads for about in able)
        self._client.subscribe_topic(self._topic, self._heard)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up all work in progress; local workers end."""
        self._sent.clear()
        with suppress(OSError, TimeoutError):
            self._client.close()
        if self._local is not None:
            self._local.close()

    # What is done here ----------------------------------------------------------------

    def experiment(
        self,
        config: ExperimentConfig,
        *,
        prepared: Prepared,
        team: ThreadPool | None = None,
        limit: int | None = None,
        done: Iterable[Repetition] = (),
        wants_state: bool = False,
        pictures: Callable[[int], bool] | None = None,
    ) -> ClusterExperiment:
        """An experiment whose repetitions are computed here, all at once.

        wants_state : bring the model of the last repetition back. pictures : whether one of an
        iteration is wanted. limit : bytes for each fit. The others: as
        :class:`gmc_core.fitting.experiment.Experiment`.
        """
        return ClusterExperiment(
            lambda task: self.start(task, prepared),
            config,
            prepared=prepared,
            team=team,
            memory_limit=limit or self.memory_limit,
            done=done,
            wants_state=wants_state,
            pictures=pictures,
        )

    def sharded(
        self,
        config: ExperimentConfig,
        *,
        prepared: Prepared,
        team: ThreadPool | None = None,
        limit: int | None = None,
        shards: int = 0,
    ) -> ShardedExperiment:
        """An experiment of low-rank fits whose E-steps are shared by the workers.

        shards : in how many parts; 0 for as many as workers. limit : bytes for what is done here.
        The others: as :class:`gmc_core.fitting.experiment.Experiment`.

        Raises
        ------
        ConfigError
            If the model is not of low rank.
        """
        if config.fit.model != "factor":
            raise ConfigError(
                "Only the E-step of the low-rank model can be shared by several workers; give "
                "--model factor, or leave out --shards."
            )
        return ShardedExperiment(
            self, config, shards=shards, prepared=prepared, team=team, memory_limit=limit
        )

    def for_compare(self, config: ExperimentConfig, prepared: Prepared) -> dict[str, Any]:
        """Keywords of :func:`gmc_core.comparison.compare.compare` with which it fits here."""

        def begin(step: Step, team: ThreadPool) -> Callable[[], Outcome]:
            seed = config.seed if step.split.seed is None else step.split.seed
            own = f"{step.split_key}\n{step.method.identity}"
            key = f"{step.method.name}-{hashlib.sha256(own.encode()).hexdigest()[:16]}"
            running = self.start(MethodTask(key, config, seed, step.method), prepared)
            return lambda: running.result(team)

        return {"begin": begin, "ahead": 2 * self.workers}

    # For parts of a fit -----------------------------------------------------------------

    @property
    def poll_seconds(self) -> float:
        """How often who waits for the cluster looks whether it is still wanted."""
        return POLL_SECONDS

    def homes(self) -> list[str]:
        """Addresses of the workers that there are, those of the beginning if they live.

        Raises
        ------
        ClusterError
            If there is none.
        """
        there = sorted(self._client.nthreads())
        known = [name for name in self._able if name in there]
        if not there:  # all have died: the next are on their way
            with suppress(TimeoutError):
                self._client.wait_for_workers(1, timeout=CONNECT_SECONDS)
            there = sorted(self._client.nthreads())
        if not there:
            raise ClusterError(_LOST)
        return known if len(known) >= self.workers else there

    def is_there(self, home: str) -> bool:
        """Whether a worker lives, as far as the scheduler knows."""
        return home in self._client.nthreads()

    def submit(self, home: str, function: Callable[..., Any], *args: Any) -> Any:
        """A future of what a function returns on a worker, best at ``home``."""
        key = f"{function.__name__}-{secrets.token_hex(8)}"
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")  # they are arrays
            return self._client.submit(
                function, *args,
                key=key, pure=False, resources={RESOURCE: 1},
                workers=[home], allow_other_workers=True,
            )  # fmt: skip

    def everywhere(self, function: Callable[..., Any], *args: Any) -> None:
        """Call a coroutine in every worker, if there still are some; nobody waits for it."""
        with suppress(Exception):  # the cluster may be gone
            self._client.run(function, *args, wait=False)

    def outcome(self, future: Any) -> Any:
        """What has become of a future that has ended: its result, :class:`Failed`, or None where it
        is lost with its worker."""
        status = future.status
        try:
            if status == "finished":
                return future.result()
        except CancelledError:  # its worker has died just now
            return None
        if status in ("cancelled", "lost"):
            return None
        return Failed(_explained(future.exception()))

    def check_losses(self, losses: int) -> None:
        """Give up work that was lost so often.

        Raises
        ------
        ClusterError
        """
        if losses > LOSSES or self._client.status != "running":
            raise ClusterError(_LOST)

    def start(self, task: Task, prepared: Prepared) -> Running:
        """Begin a task; it is given up when nobody holds what is returned."""
        return Running(self, task, prepared)

    def _submit(self, task: Task, source: Source, prepared: Prepared, sent: bool) -> Any:
        """A future of the task. ``sent``: the data come from here, once for all tasks."""
        sha = prepared.data_sha256
        data = None
        with self._sending:
            if sent and (sha not in self._sent or self._sent[sha].status != "finished"):
                self._sent[sha] = self._client.scatter(prepared, hash=False)
            data = self._sent.get(sha)
        # Given up and begun again it is another task: the end of the first must not be its own.
        key = f"{task.key}-{secrets.token_hex(4)}"
        self._inboxes[key] = queue.SimpleQueue()
        return self._client.submit(
            perform, task, source, data, self._topic, key=key, pure=False, resources={RESOURCE: 1}
        )

    def _heard(self, event: tuple[float, tuple[str, str]]) -> None:
        """What a worker tells; what nobody waits for any more is forgotten."""
        key, text = event[1]
        inbox = self._inboxes.get(key)
        if inbox is not None:
            inbox.put(text)


class Running:
    """A task that has been begun on a cluster; dropping it gives it up."""

    def __init__(self, cluster: Cluster, task: Task, prepared: Prepared) -> None:
        self._cluster, self._task, self._prepared = cluster, task, prepared
        self._source = Source.of(task.config, prepared)
        self._losses = 0
        self._begin(sent=False)

    def _begin(self, sent: bool) -> None:
        self._future = self._cluster._submit(self._task, self._source, self._prepared, sent)
        inbox = self._cluster._inboxes[self._future.key]
        self._future.add_done_callback(lambda _: inbox.put(None))

    def cancel(self) -> None:
        """Give it up; a worker that is at it stops before its next piece of work."""
        self._cluster._inboxes.pop(self._future.key, None)
        with suppress(Exception):  # the cluster may be gone
            if not self._future.done():
                self._future.cancel()
            self._future.release()  # its result need not stay in the worker's memory

    def told(self, team: ThreadPool) -> Iterator[str]:
        """What the worker tells until the task has ended. One that died may have told a part of it
        already, and the next tells all of it again.

        Raises
        ------
        Cancelled
            If the pool's owner wants to stop; the task is given up.
        """
        try:
            while True:
                inbox = self._cluster._inboxes[self._future.key]
                team.check()
                try:
                    text = inbox.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    continue
                if text is not None:
                    yield text
                elif not self._again():
                    return
        finally:
            self.cancel()

    def _again(self) -> bool:
        """Whether the task had to be begun once more, with the data sent along."""
        status = self._future.status
        if status == "finished":
            self._result = self._future.result()
            if not isinstance(self._result, NoData):
                return False
            self._losses += 1  # workers that have the data may have others
        elif status in ("cancelled", "lost"):
            # The only worker with the data has died, if there still is a cluster.
            self._losses += 1
        else:
            self._result = Failed(_explained(self._future.exception()))
            return False
        if self._losses > LOSSES or self._cluster._client.status != "running":
            self._result = Failed(ClusterError(_LOST))
            return False
        self._cluster._inboxes.pop(self._future.key, None)
        self._begin(sent=True)
        return True

    def result(self, team: ThreadPool) -> Any:
        """Wait for the task's result.

        Raises
        ------
        Cancelled
            As :meth:`told`.
        ClusterError
            If the cluster is lost.
        Exception
            What the task has raised.
        """
        for _ in self.told(team):
            pass
        return self.reached()

    def reached(self) -> Any:
        """The result of a task that has ended; raises what :meth:`result` raises."""
        if isinstance(self._result, Failed):
            raise self._result.error
        return self._result


def _explained(error: Exception) -> Exception:
    """A worker that dies with a fit again and again most likely lacks memory."""
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        return ResourceError(
            "Every worker of the cluster that began this fit has died, most likely for want of "
            "memory. Keep fewer items, compute in float32, or give workers more memory."
        )
    return error
