"""An experiment whose fits are computed somewhere else."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gmc_core.fitting.experiment import Experiment, make_split
from gmc_core.fitting.fit import Fit, IterationRecord
from gmc_core.gaussian.iterate import EmState
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.splits import Split
from gmc_core.runs.cluster.tasks import FitResult, FitTask


class Begun(Protocol):
    """A task that has been begun, as :class:`gmc_core.runs.cluster.cluster.Running`."""

    def told(self, team: ThreadPool) -> Iterator[str]:
        """What it tells until it has ended."""

    def reached(self) -> Any:
        """Its result, once it has ended."""

    def cancel(self) -> None:
        """Give it up."""


class RemoteFit(Fit):
    """A fit whose iterations are computed somewhere else: here are its inputs, its records, and at
    the end its predictions and, where it was asked for, its state.

    Until then :attr:`iteration` is 0, and there is no Σ.

    Attributes
    ----------
    pictures : iteration → a picture of Σ as npz, at the end.
    """

    def __init__(
        self, split: Split, settings: FitSettings, *, team: ThreadPool | None, begun: Begun
    ) -> None:
        self._begun = begun
        self.pictures: dict[int, bytes] = {}
        # Its memory is needed elsewhere.
        super().__init__(split, settings, team=team, memory_limit=sys.maxsize)

    def _initial_state(self) -> EmState:
        return None  # type: ignore[return-value]

    def _predict(self) -> npt.NDArray[np.float64]:
        return np.full(self.split.n_test, np.nan)

    @property
    def iteration(self) -> int:
        """Of the state that is here; 0 before the end."""
        return 0 if self._state is None else self._state.iteration

    def records(self) -> Iterator[IterationRecord]:
        """The records as they come. A fit that is begun again, as its worker has died, tells again
        what was known: each iteration is given once.

        Raises
        ------
        GmcError, Cancelled
            As those of a fit, and :class:`gmc_core.base.errors.ClusterError`.
        """
        for text in self._begun.told(self.team):
            record = IterationRecord.from_dict(json.loads(text))
            if record.iteration == len(self.history) + 1:
                self.history.append(record)
                yield record
        result: FitResult = self._begun.reached()
        for record in result.records[len(self.history) :]:
            self.history.append(record)
            yield record
        self.predictions, self.pictures = result.predictions, result.pictures
        if result.state is not None:
            self._state, self._lent = result.state, True


class ClusterExperiment(Experiment):
    """An experiment whose repetitions are all begun at once, and told of one after the other.

    Parameters
    ----------
    begin_task : begins a task elsewhere.
    wants_state : of the last repetition. pictures : whether one of an iteration is wanted.
    Others : as :class:`Experiment`.
    """

    def __init__(
        self,
        begin_task: Callable[[FitTask], Begun],
        *args: Any,
        wants_state: bool = False,
        pictures: Callable[[int], bool] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._begin_task, self._wants_state, self._pictures = begin_task, wants_state, pictures
        self._begun: dict[int, Begun] = {}

    def run(self, *args: Any, **kwargs: Any) -> None:
        """As :meth:`Experiment.run`. Nothing of an unfinished repetition stays."""
        try:
            super().run(*args, **kwargs)
        finally:
            for begun in self._begun.values():
                begun.cancel()
            if not self.finished:
                self.fit, self.records = None, []

    def _begin(self, index: int) -> tuple[Fit, list[IterationRecord]]:
        if not self._begun:
            left = range(index, len(self.config.seeds))
            self._begun = {each: self._begin_task(self._task(each)) for each in left}
        split = make_split(self.config, self.prepared, self.config.seeds[index])
        begun = self._begun[index]
        return RemoteFit(split, self.config.fit, team=self._team, begun=begun), []

    def _task(self, index: int) -> FitTask:
        config, ratings, seed = self.config, self.prepared.ratings, self.config.seeds[index]
        own = replace(config, seed=seed, repetitions=1)
        key = own.key(self.prepared.data_sha256, ratings.side_sha256, self.prepared.times_sha256)
        wanted, iterations = self._pictures, range(1, config.fit.iterations + 1)
        return FitTask(
            key=f"fit-{key[:16]}",
            config=config,
            seed=seed,
            wants_state=self._wants_state and index == len(config.seeds) - 1,
            pictures=() if wanted is None else tuple(filter(wanted, iterations)),
            memory_limit=self._memory_limit,
        )
