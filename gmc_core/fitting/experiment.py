"""An experiment: the fits of all repetitions, from one configuration.

ratings → filter → split (one per repetition) → Fit → records and scores; what comes before the
fits is :mod:`gmc_core.fitting.preparing`'s.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from gmc_core.fitting.config import MODEL_VERSIONS as MODEL_VERSIONS
from gmc_core.fitting.config import PROTOCOLS as PROTOCOLS
from gmc_core.fitting.config import ExperimentConfig as ExperimentConfig
from gmc_core.fitting.config import Protocol as Protocol
from gmc_core.fitting.fit import Fit, IterationRecord
from gmc_core.fitting.inputs import AnyFit
from gmc_core.fitting.preparing import Prepared as Prepared
from gmc_core.fitting.preparing import describe as describe
from gmc_core.fitting.preparing import make_split as make_split
from gmc_core.fitting.preparing import prepare as prepare
from gmc_core.fitting.preparing import split_reading as split_reading
from gmc_core.fitting.provenance import with_noise
from gmc_core.fitting.repetition import Repetition as Repetition
from gmc_core.fitting.repetition import finish as finish
from gmc_core.fitting.repetition import peak_rss_bytes as peak_rss_bytes
from gmc_core.fitting.repetition import pooled_scores as pooled_scores
from gmc_core.fitting.repetition import summarise as summarise
from gmc_core.gaussian.linalg.threads import ThreadPool


class Experiment:
    """An experiment in progress; what it has reached outlives an error or Ctrl-C.

    Parameters
    ----------
    prepared : already loaded data.
    memory_limit : bytes; see :class:`Fit`.
    done : the first repetitions, where they have been computed before.

    Attributes
    ----------
    fit, records : of the current repetition; None and empty before the first.
    done : the finished repetitions.
    finished : whether all repetitions are done.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        *,
        prepared: Prepared | None = None,
        team: ThreadPool | None = None,
        memory_limit: int | None = None,
        done: Iterable[Repetition] = (),
    ) -> None:
        self.config = config
        self.prepared = prepared or prepare(config)
        self.fit: AnyFit | None = None
        self.records: list[IterationRecord] = []
        self.done = list(done)
        self.finished = False
        self._team, self._memory_limit = team, memory_limit
        self._began = time.perf_counter()

    def run(
        self,
        on_record: Callable[[int, IterationRecord], object] | None = None,
        on_start: Callable[[int, AnyFit], object] | None = None,
        on_end: Callable[[int, Repetition], object] | None = None,
        begin: Callable[[int], tuple[AnyFit, list[IterationRecord]]] | None = None,
    ) -> None:
        """Run all repetitions that are not done.

        on_record : called with (repetition index, record) after every iteration.
        on_start : called with (repetition index, fit) before a repetition's first.
        on_end : called with (repetition index, result) after its last.
        begin : called with a repetition's index; its fit, and the records of those of its
            iterations that have been computed before. By default a new fit, without records.
        """
        begin = begin or self._begin
        for index in range(len(self.done), len(self.config.seeds)):
            self.fit, self.records = None, []  # frees the last repetition's covariance
            self.fit, self.records = begin(index)
            if on_start is not None:
                on_start(index, self.fit)
            for record in self.fit.records():
                self.records.append(record)
                if on_record is not None:
                    on_record(index, record)
            result = finish(self.fit, self.records)
            if on_end is not None:
                on_end(index, result)
            self.done.append(result)
        self.finished = True

    def _begin(self, index: int) -> tuple[AnyFit, list[IterationRecord]]:
        split = make_split(self.config, self.prepared, self.config.seeds[index])
        team, limit = self._team, self._memory_limit
        return Fit(split, self.config.fit, team=team, memory_limit=limit), []

    def result(self) -> dict[str, Any]:
        """What has been reached, in the layout of ``fit --json``: config, data, groups of
        users that the mean depends on (of the last repetition), repetitions (the last one
        incomplete unless ``finished``) and summary."""
        ratings = self.prepared.ratings
        scale = ratings.scale
        repetitions = list(self.done)
        if not self.finished and self.fit is not None and self.records:
            repetitions.append(finish(self.fit, self.records))
        seconds = time.perf_counter() - self._began
        return {
            "config": replace(
                self.config, fit=self.config.fit.resolved(scale, ratings.n_items)
            ).as_dict(),
            "data": with_noise(self.config, describe(self.prepared)),
            "finished": self.finished,
            "user_groups": list(self.fit.groups.labels) if self.fit else [],
            "repetitions": [repetition.as_dict() for repetition in repetitions],
            "summary": summarise(repetitions, scale, seconds),
        }


def run_experiment(
    config: ExperimentConfig,
    *,
    prepared: Prepared | None = None,
    team: ThreadPool | None = None,
    on_record: Callable[[int, IterationRecord], object] | None = None,
    memory_limit: int | None = None,
) -> tuple[dict[str, Any], Fit]:
    """Run a whole :class:`Experiment`: its result, and the last repetition's fit."""
    experiment = Experiment(config, prepared=prepared, team=team, memory_limit=memory_limit)
    experiment.run(on_record)
    assert isinstance(experiment.fit, Fit)
    return experiment.result(), experiment.fit
