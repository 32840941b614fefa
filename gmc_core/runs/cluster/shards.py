"""The E-step of a low-rank fit, shared by the workers of a cluster: each has a shard of the users.

    owner                                         a worker, for its shard
    signals of the shard ── once ───────────────▶ kept
    (μ, W, Γ) ── each iteration ────────────────▶ believe: posteriors, latent responses (kept)
    Σ over shards, M-step, predictions ◀───────── sums by item, dual coefficients, latent responses

The owner keeps all that a worker keeps, so that a worker that dies costs the time of its shard and
nothing else: the shard is sent to another one, with the latent responses that it begins from. What
is added up is added in the order of the shards, so the same number of them gives the same digits.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ClusterError, GmcError
from gmc_core.base.version import package_version
from gmc_core.fitting.experiment import Experiment
from gmc_core.fitting.fit import Fit, IterationRecord
from gmc_core.fitting.inputs import AnyFit, FitInputs
from gmc_core.fitting.preparing import make_split
from gmc_core.gaussian.estep import Estimates
from gmc_core.gaussian.factor import Sums, believe
from gmc_core.gaussian.linalg.threads import Cancelled, ThreadPool
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.ordinal import LatentResponses, OrdinalScale
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.signals import Signals
from gmc_core.runs.cluster.tasks import Failed, giving_up

Floats = npt.NDArray[np.float64]


class Workers(Protocol):
    """Workers that do parts of a fit, as :class:`gmc_core.runs.cluster.cluster.Cluster`."""

    workers: int

    @property
    def poll_seconds(self) -> float:
        """How often to look whether the work is still wanted."""

    def homes(self) -> list[str]:
        """The workers that there are."""

    def is_there(self, home: str) -> bool:
        """Whether a worker lives."""

    def submit(self, home: str, function: Callable[..., Any], *args: Any) -> Any:
        """A future of what a function returns on a worker, best at ``home``."""

    def outcome(self, future: Any) -> Any:
        """What has become of a future that has ended, None where it is lost."""

    def check_losses(self, losses: int) -> None:
        """Give up work that was lost so often."""

    def everywhere(self, function: Callable[..., Any], *args: Any) -> None:
        """Call a function in every worker, if there still are some."""


KEPT = 8  # shards that a worker keeps, of all fits


@dataclass(frozen=True, eq=False)
class Shard:
    """A part of the users, as it is sent to a worker.

    signals : theirs. variance : σ². ordinal : the cuts of ordered ratings, None for numbers.
    """

    signals: Signals
    variance: float
    ordinal: OrdinalScale | None


@dataclass(frozen=True)
class Step:
    """What is asked of a shard; see :class:`gmc_core.gaussian.factor.SharedBeliefs`.

    name : of the fit and the shard. version : of the program.
    """

    name: str
    iterations: tuple[int, int]
    rounds: int
    tolerance: float
    sums: bool
    version: str


@dataclass(frozen=True, eq=False)
class Part:
    """What a shard contributes. values : latent responses, None for numbers."""

    estimates: Estimates
    sums: Sums | None
    values: Floats | None


@dataclass(frozen=True)
class Missing:
    """The worker has not the shard, or not the latent responses to begin from: send both."""


@dataclass(eq=False)
class _Entry:
    """A shard that is kept, and its latent responses of an iteration."""

    shard: Shard
    latent: LatentResponses | None
    iteration: int
    values: Floats | None


_kept: OrderedDict[str, _Entry] = OrderedDict()  # of this process
_changing = threading.Lock()


def _entry(step: Step, shard: Shard | None, values: Floats | None) -> _Entry | None:
    """What is kept or sent of a shard, if it is what the step begins from."""
    if shard is not None:
        latent = None
        if shard.ordinal is not None:
            latent = LatentResponses(shard.ordinal, shard.signals.values)
        return _Entry(shard, latent, step.iterations[0], values)
    with _changing:
        found = _kept.get(step.name)
    if found is None or (found.latent is not None and found.iteration != step.iterations[0]):
        return None
    return found


def believe_shard(
    step: Step, gaussian: Gaussian, shard: Shard | None, values: Floats | None
) -> Part | Missing | Failed:
    """The E-step of a shard, in a worker of Dask, with as many threads as the worker has.

    shard, values : where the worker may not have them; ``values`` are the latent responses to
        begin from.
    """
    try:
        if step.version != package_version():  # a worker that joined later
            raise ClusterError(
                f"A worker has version {package_version()} of this program, and the fit is of "
                f"version {step.version}. Install one of them everywhere."
            )
        entry = _entry(step, shard, values)
        if entry is None:
            return Missing()
        signals, own = entry.shard.signals, None
        if entry.values is not None:
            own = entry.values.copy()  # what was sent must not be written to
        noise = Noise.of(entry.shard.variance, signals.dimension)
        estimates, sums = believe(
            signals, gaussian, noise, giving_up(), entry.latent, own,
            rounds=step.rounds, tolerance=step.tolerance, sums=step.sums,
        )  # fmt: skip
        with _changing:
            _kept[step.name] = _Entry(entry.shard, entry.latent, step.iterations[1], own)
            _kept.move_to_end(step.name)
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
        return Part(estimates, sums, own)
    except (GmcError, Cancelled, MemoryError) as error:
        return Failed(error)


async def forget(names: list[str]) -> None:
    """Let a worker's shards go (a coroutine: nobody waits for it)."""
    with _changing:
        for name in names:
            _kept.pop(name, None)


def cut(signals: Signals, rank: int, count: int) -> list[tuple[int, int]]:
    """At most ``count`` runs of users of about equal work: (first, last) pairs, none empty."""
    sizes = signals.sizes.astype(np.float64)
    work = np.concatenate([[0.0], np.cumsum(sizes * rank**2 + rank**3)])
    ends = np.searchsorted(work, work[-1] * np.arange(1, count) / count)
    borders = np.unique(np.concatenate([[0], ends, [signals.count]]))
    return [(int(a), int(b)) for a, b in zip(borders[:-1], borders[1:], strict=True)]


def _part(signals: Signals, first: int, last: int) -> Signals:
    """The users first..last alone."""
    span = slice(int(signals.indptr[first]), int(signals.indptr[last]))
    known = None if signals.covariates is None else signals.covariates[first:last]
    return replace(
        signals,
        indptr=signals.indptr[first : last + 1] - signals.indptr[first],
        indices=signals.indices[span],
        values=signals.values[span],
        covariates=known,
    )


class ShardedBeliefs:
    """The E-step of a low-rank Gaussian by the workers of a cluster, as
    :class:`gmc_core.gaussian.factor.SharedBeliefs`.

    Parameters
    ----------
    inputs : of the fit. count : how many shards; fewer where there are fewer users.
    """

    def __init__(self, cluster: Workers, inputs: FitInputs, count: int) -> None:
        self.cluster, self._inputs = cluster, inputs
        self.spans = cut(inputs.signals, inputs.settings.rank or 1, count)
        self._fit = secrets.token_hex(8)
        self._known = [False] * len(self.spans)  # whether a worker has been sent it

    def __call__(
        self,
        gaussian: Gaussian,
        values: Floats | None,
        iterations: tuple[int, int],
        *,
        rounds: int,
        tolerance: float,
        sums: bool,
    ) -> tuple[Estimates, Sums | None]:
        """As :func:`gmc_core.gaussian.factor.believe` of all users.

        Raises
        ------
        ClusterError, ResourceError
            If the cluster is lost, or its workers die again and again.
        NumericalError, Cancelled
            As ``believe``.
        """
        tasks = []
        try:
            for index in range(len(self.spans)):
                step = Step(
                    f"{self._fit}-{index}", iterations, rounds, tolerance, sums, package_version()
                )
                tasks.append(ShardTask(self, index, step, gaussian, values, self._known[index]))
                self._known[index] = True
            total = _Total(self._inputs.signals, gaussian)
            team = self._inputs.team
            with team.progress.counting(len(self.spans)):
                for task, (first, last) in zip(tasks, self.spans, strict=True):
                    part = task.result(team)
                    total.add(part, first, last)
                    if values is not None and part.values is not None:
                        values[self.ratings(task.index)] = part.values
                    task.cancel()  # its worker need not keep it
                    team.progress.add(1.0)
        finally:
            for task in tasks:
                task.cancel()
        return total.estimates, total.sums

    def ratings(self, index: int) -> slice:
        """Where the observations of a shard are among all."""
        (first, last), signals = self.spans[index], self._inputs.signals
        return slice(int(signals.indptr[first]), int(signals.indptr[last]))

    def shard(self, index: int) -> Shard:
        """A shard, to be sent."""
        part = _part(self._inputs.signals, *self.spans[index])
        return Shard(part, float(self._inputs.noise.array[0, 0]), self._inputs.ordinal)

    def close(self) -> None:
        """The workers may forget it."""
        names = [f"{self._fit}-{index}" for index in range(len(self.spans))]
        self.cluster.everywhere(forget, names)


class ShardTask:
    """One step of one shard, until it has ended well. known : whether a worker has the shard."""

    def __init__(
        self,
        owner: ShardedBeliefs,
        index: int,
        step: Step,
        gaussian: Gaussian,
        values: Floats | None,
        known: bool,
    ) -> None:
        self.index, self._owner, self._step = index, owner, step
        self._gaussian, self._values, self._losses = gaussian, values, 0
        self._begin(send=not known)

    def _begin(self, send: bool) -> None:
        owner, shard, values = self._owner, None, None
        if send:
            shard = owner.shard(self.index)
            values = None if self._values is None else self._values[owner.ratings(self.index)]
        homes = owner.cluster.homes()
        # Another one after a loss: a shard that nobody can do must not kill the same one again.
        self._home = home = homes[(self.index + self._losses) % len(homes)]
        self._ended = ended = threading.Event()
        self._future = owner.cluster.submit(
            home, believe_shard, self._step, self._gaussian, shard, values
        )
        self._future.add_done_callback(lambda _: ended.set())

    def cancel(self) -> None:
        """Give it up, or let go of what it has computed."""
        with suppress(Exception):  # the cluster may be gone
            if not self._future.done():
                self._future.cancel()
            self._future.release()

    def result(self, team: ThreadPool) -> Part:
        """Wait for it; what is lost is begun again, with all that it needs.

        Raises
        ------
        Cancelled
            If the pool's owner wants to stop.
        Exception
            What has ended it.
        """
        cluster = self._owner.cluster
        while True:
            team.check()
            found = None
            # What was begun for a worker that has died meanwhile, Dask may never begin elsewhere.
            while cluster.is_there(self._home):
                if self._ended.wait(cluster.poll_seconds):
                    found = cluster.outcome(self._future)
                    break
                team.check()
            if isinstance(found, Part):
                return found
            if isinstance(found, Failed):
                raise found.error
            self._losses += found is None
            cluster.check_losses(self._losses)
            self.cancel()
            self._begin(send=True)


class _Total:
    """What the shards have contributed so far."""

    def __init__(self, signals: Signals, gaussian: Gaussian) -> None:
        self._signals = signals
        dtype = gaussian.covariance.dtype
        self.estimates = Estimates(
            np.zeros(len(signals.values), dtype), np.zeros(signals.count), np.zeros(signals.count)
        )
        self.sums: Sums | None = None

    def add(self, part: Part, first: int, last: int) -> None:
        """That of the users first..last."""
        ratings = slice(int(self._signals.indptr[first]), int(self._signals.indptr[last]))
        self.estimates.weights[ratings] = part.estimates.weights
        self.estimates.quadratic[first:last] = part.estimates.quadratic
        self.estimates.log_det[first:last] = part.estimates.log_det
        own = part.sums
        if own is None:
            return
        if self.sums is None:
            factors = np.zeros((self._signals.count, own.factors.shape[1]), own.factors.dtype)
            # What arrives from elsewhere cannot be written to.
            self.sums = Sums(own.moments.copy(), own.pulls.copy(), own.whole.copy(), factors)
        else:
            for mine, its in (
                (self.sums.moments, own.moments),
                (self.sums.pulls, own.pulls),
                (self.sums.whole, own.whole),
            ):
                mine += its
        self.sums.factors[first:last] = own.factors


class ShardedExperiment(Experiment):
    """An experiment whose fits are done here, one after the other, but for their E-steps.

    Parameters
    ----------
    cluster : whose workers do these. shards : in how many parts; 0 for as many as workers.
    Others : as :class:`Experiment`.
    """

    def __init__(self, cluster: Workers, *args: Any, shards: int = 0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._cluster, self._count = cluster, shards or cluster.workers
        self._shared: ShardedBeliefs | None = None

    def run(self, *args: Any, **kwargs: Any) -> None:
        """As :meth:`Experiment.run`."""
        try:
            super().run(*args, **kwargs)
        finally:
            self._close()

    def _close(self) -> None:
        if self._shared is not None:
            self._shared.close()

    def _begin(self, index: int) -> tuple[AnyFit, list[IterationRecord]]:
        self._close()
        split = make_split(self.config, self.prepared, self.config.seeds[index])
        inputs = FitInputs.of(split, self.config.fit, self._team, self._memory_limit)
        self._shared = ShardedBeliefs(self._cluster, inputs, self._count)
        return Fit.of(inputs, shared=self._shared), []
