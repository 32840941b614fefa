"""An experiment whose fits are computed somewhere else."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from gmc_core.base.errors import ClusterError
from gmc_core.fitting.experiment import Experiment
from gmc_core.fitting.fit import Fit
from gmc_core.fitting.inputs import AnyFit, FitInputs, OfInputs
from gmc_core.fitting.preparing import make_split
from gmc_core.fitting.records import IterationRecord
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.protocol.metrics import Scores
from gmc_core.runs.cluster.tasks import FitResult, FitTask


class Begun(Protocol):
    """A task that has been begun, as :class:`gmc_core.runs.cluster.cluster.Running`."""

    def told(self, team: ThreadPool) -> Iterator[str]:
        """What it tells until it has ended."""

    def reached(self) -> Any:
        """Its result, once it has ended."""

    def cancel(self) -> None:
        """Give it up."""


class RemoteFit(OfInputs):
    """A fit whose iterations are computed somewhere else: here are its inputs, its records, and at
    the end its predictions and, where it was asked for, its state.

    Attributes
    ----------
    inputs, history : as of :class:`gmc_core.fitting.fit.Fit`.
    predictions : (n_test,) unprojected, NaN before the end.
    pictures : iteration → a picture of Σ as npz, at the end.
    """

    def __init__(self, inputs: FitInputs, begun: Begun) -> None:
        self.inputs, self._begun = inputs, begun
        self.predictions = np.full(inputs.split.n_test, np.nan)
        self.history: list[IterationRecord] = []
        self.pictures: dict[int, bytes] = {}
        self._ended: Fit | None = None

    @property
    def iteration(self) -> int:
        """Of the state that is here; 0 before the end, and where none was asked for."""
        return 0 if self._ended is None else self._ended.iteration

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
            self._ended = Fit.of(self.inputs, start=result.state)

    def scores(self) -> Scores | None:
        """Scores of the predictions, None without hold-out."""
        return self.inputs.scores(self.predictions)

    def model(self) -> GaussianModel:
        """The model of the state that is here.

        Raises
        ------
        ClusterError
            If there is none: before the end, and where none was asked for.
        """
        if self._ended is None:
            raise ClusterError("The model of this fit has stayed on the cluster. Fit it here.")
        return self._ended.model()


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

    def _begin(self, index: int) -> tuple[AnyFit, list[IterationRecord]]:
        if not self._begun:
            left = range(index, len(self.config.seeds))
            self._begun = {each: self._begin_task(self._task(each)) for each in left}
        split = make_split(self.config, self.prepared, self.config.seeds[index])
        begun = self._begun[index]
        # The memory of a fit is needed elsewhere.
        inputs = FitInputs.of(split, self.config.fit, self._team, sys.maxsize)
        return RemoteFit(inputs, begun), []

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
