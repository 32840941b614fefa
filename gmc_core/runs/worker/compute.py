"""Computing one fit so that it can be watched, stopped, killed and gone on with."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, cast

from gmc_core.base.errors import GmcError
from gmc_core.fitting.affordable import Wanted
from gmc_core.fitting.auto import Trial, choose, first_settings
from gmc_core.fitting.compiling import compile_for
from gmc_core.fitting.duration import estimate_of_fit
from gmc_core.fitting.experiment import Experiment
from gmc_core.fitting.fit import Fit, IterationRecord, StateError
from gmc_core.fitting.inputs import AnyFit
from gmc_core.fitting.preparing import Prepared, describe
from gmc_core.fitting.repetition import Repetition, summarise
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.model.model_file import save_model
from gmc_core.model.pictures import HeatmapBinner, picture_orders
from gmc_core.runs.store import StoreError, artifacts
from gmc_core.runs.store.folders import remove_parts, write_atomically
from gmc_core.runs.store.queue import Claim
from gmc_core.runs.store.run import State
from gmc_core.runs.store.waiting import cost_with_estimate
from gmc_core.runs.worker.attempt import Attempt
from gmc_core.runs.worker.cache import Cache
from gmc_core.runs.worker.calibrating import ask_if_cheap
from gmc_core.runs.worker.heartbeat import Heartbeat

if TYPE_CHECKING:
    from gmc_core.runs.cluster.cluster import Cluster
    from gmc_core.runs.cluster.remote_fit import RemoteFit

log = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 60.0


def worth_a_picture(iteration: int) -> bool:
    """All iterations while Σ forms, fewer later: a thousand pictures take 600 MB."""
    return iteration <= 30 or iteration % (10 if iteration <= 300 else 100) == 0


def _write(content: bytes, file: BinaryIO) -> None:
    file.write(content)


class Computation(Attempt):
    """One attempt at a fit.

    Parameters
    ----------
    claim : the run, in this worker's hands.
    heartbeat : says when to stop.
    cache : data of the run before.
    checkpoint_seconds : least time between two full states on disk.
    cluster : where to fit; here by default. From there come records while it goes on, pictures and
        the model at the end, and no states.
    """

    def __init__(
        self,
        claim: Claim,
        heartbeat: Heartbeat,
        cache: Cache,
        checkpoint_seconds: float,
        cluster: Cluster | None = None,
    ) -> None:
        super().__init__(claim, heartbeat, cache, cluster)
        self.checkpoint_seconds = checkpoint_seconds
        self.key = ""
        self.experiment: Experiment | None = None
        self.binner: HeatmapBinner | None = None
        self.repetition = 0
        self._saved = 0.0  # when the last full state was

    @property
    def fit(self) -> AnyFit | None:
        """The fit of the current repetition; None before the first."""
        return None if self.experiment is None else self.experiment.fit

    def _run(self) -> None:
        prepared = self.cache.data(self.config)
        self.team.check()
        if self.claim.run.choosing:
            self._choose(prepared)
        self.key = self._with_retries(lambda: self.claim.describe(describe(prepared)))
        cached = self.claim.cached_run(self.key)
        if cached is not None and self.claim.take_over(cached):
            return
        if not self.claim.store.records(self.claim.run.id):  # else it was wanted before
            whole = Wanted(self.config.fit, repetitions=len(self.config.seeds))
            self._check_affordable([whole], prepared)
        done, begin = self._collect_finished(), None
        if self.cluster is None:
            self.experiment = Experiment(self.config, prepared=prepared, team=self.team, done=done)
            begin = partial(self._begin, prepared)
        else:
            self.experiment = self.cluster.experiment(
                self.config,
                prepared=prepared,
                team=self.team,
                done=done,
                wants_state=self.claim.run.keeps_model,
                pictures=self._wants_picture,
            )
        experiment = self.experiment
        experiment.run(
            begin=begin,
            on_start=self._started,
            on_record=self._iterated,
            on_end=self._ended,
        )
        summary = summarise(
            experiment.done,
            prepared.ratings.scale,
            sum(record.seconds for result in experiment.done for record in result.records),
        )
        self._keep_model()
        with suppress(FileNotFoundError):
            (self.claim.folder / artifacts.STATE).unlink()
        self._with_retries(lambda: self.claim.end("finished", summary=summary))
        seconds = sum(record.seconds for record in experiment.records)
        ask_if_cheap(self.claim.store, self.claim.run, seconds)

    def _choose(self, prepared: Prepared) -> None:
        """Let auto choose the settings inside the training set of the run's one split."""
        asked = self.claim.run.selection
        assert asked is not None
        seed, dtype = self.config.seeds[0], self.config.fit.dtype
        train = self.cache.split(self.config, prepared, seed).train
        for settings in first_settings(train, dtype):
            compile_for(settings)  # not in the time that there is to choose
        began, trials = time.monotonic(), list[Trial]()

        def told(trial: Trial) -> None:
            trials.append(trial)
            known = replace(
                asked,
                tried=len(trials),
                best=min(one.nmae for one in trials),
                spent=time.monotonic() - began,
            )
            self._with_retries(lambda: self.claim.select(known))

        choice = choose(
            train,
            seconds=asked.seconds,
            seed=seed,
            dtype=dtype,
            attributes=asked.attributes,
            times=asked.times,
            team=self.team,
            on_trial=told,
            however_long=self.claim.run.however_long,
        )
        assert self.claim.run.selection is not None
        chosen = replace(
            self.claim.run.selection,
            spent=choice.seconds,
            reason=" ".join((choice.reason, *choice.notes)),
        )
        self._with_retries(lambda: self.claim.select(chosen, choice.settings))
        self.config = self.claim.run.config

    def _collect_finished(self) -> list[Repetition]:
        """The repetitions that an earlier attempt has finished."""
        remove_parts(self.claim.folder)
        if self.claim.run.key not in (None, self.key):
            self.claim.clear_files()  # the data have changed since, or the model's code
            return []
        done: list[Repetition] = []
        by_repetition: dict[int, list[IterationRecord]] = {}
        for index, record in self.claim.store.records(self.claim.run.id):
            by_repetition.setdefault(index, []).append(record)
        for index, result in enumerate(self.claim.store.results(self.claim.run.id)):
            held_out = artifacts.load_held_out(self.claim.folder, index)
            records = by_repetition.get(index, [])
            if held_out is None or len(records) != len(result["records"]):
                break
            if index == len(self.config.seeds) - 1 and self.claim.run.keeps_model:
                break  # stopped between its last record and its model
            done.append(
                Repetition(
                    seed=result["seed"],
                    records=tuple(records),
                    predictions=held_out.predictions,
                    actual=held_out.actual,
                    unseen=held_out.unseen,
                    scores=None,
                    notes=tuple(result["notes"]),
                    baselines=result.get("baselines", {}),
                )
            )
        return done

    def _begin(self, prepared: Prepared, index: int) -> tuple[Fit, list[IterationRecord]]:
        """The fit of one repetition, from its last saved state if there is one."""
        split = self.cache.split(self.config, prepared, self.config.seeds[index])
        start = artifacts.load_checkpoint(self.claim.folder, self.key)
        if start is not None and start.repetition != index:
            start = None
        self.repetition = index
        if start is not None:
            try:
                fit = Fit(split, self.config.fit, team=self.team, start=start.state)
                return fit, list(start.records)
            except StateError as error:
                log.warning("Run %s begins anew: %s", self.claim.run.id, error)
            start = None  # its Σ is freed before the new fit needs memory
        return Fit(split, self.config.fit, team=self.team), []

    def _started(self, index: int, fit: AnyFit) -> None:
        assert self.experiment is not None
        records = self.experiment.records
        cost = cost_with_estimate(fit.cost.as_dict(), estimate_of_fit(fit, len(self.config.seeds)))
        self._with_retries(lambda: self.claim.start_at(index, records, cost))
        self.repetition = index
        if self.cluster is not None:
            return
        if fit.settings.iterations:
            compile_for(fit.settings)  # not inside the first iteration
        # Its own pool: the picture of a finished iteration is not to be cancelled.
        self.binner = HeatmapBinner(picture_orders(fit.model()), team=ThreadPool(self.team.size))
        self._saved = time.monotonic()

    def _iterated(self, index: int, record: IterationRecord) -> None:
        assert self.fit is not None
        last = record.iteration == self.fit.settings.iterations
        if self.binner is not None and self._wants_picture(record.iteration):
            self.team.progress.begin("picture of Σ")
            self._paint()
        self.team.progress.begin()
        self._with_retries(lambda: self.claim.add_record(index, record))
        if self.cluster is not None:
            return
        if not last and time.monotonic() - self._saved >= self.checkpoint_seconds:
            self.team.progress.begin("saving of the state")
            self._checkpoint()
            self.team.progress.begin()
            self._saved = time.monotonic()

    def _ended(self, index: int, result: Repetition) -> None:
        assert self.fit is not None
        if self.cluster is not None:
            self._keep_pictures(cast("RemoteFit", self.fit).pictures)
        held_out = artifacts.HeldOut.of(self.fit.split, result.predictions)
        self._with_retries(lambda: artifacts.save_held_out(self.claim.folder, index, held_out))
        self._with_retries(lambda: self.claim.add_repetition(index, result.as_dict()))

    def _wants_picture(self, iteration: int) -> bool:
        """Always of the last; of others where the run keeps its model."""
        last = iteration == self.config.fit.iterations
        return last or (self.claim.run.keeps_model and worth_a_picture(iteration))

    # Files ----------------------------------------------------------------------

    def _paint(self) -> None:
        assert isinstance(self.fit, Fit) and self.binner is not None
        iteration = self.fit.iteration
        path = artifacts.picture_path(self.claim.folder, self.repetition, iteration)
        if path.exists():
            return
        self._write_picture(iteration, self.fit.look(self.binner.binned).save)

    def _keep_pictures(self, pictures: dict[int, bytes]) -> None:
        """Those that a worker of the cluster has made."""
        for iteration, content in pictures.items():
            self._write_picture(iteration, partial(_write, content))

    def _write_picture(self, iteration: int, save: Callable[[BinaryIO], object]) -> None:
        path = artifacts.picture_path(self.claim.folder, self.repetition, iteration)
        try:
            write_atomically(path, save, durable=False)
        except StoreError as error:
            log.warning("No picture of iteration %d: %s", iteration, error)

    def _checkpoint(self) -> None:
        assert self.experiment is not None and isinstance(self.fit, Fit)
        records, state = tuple(self.experiment.records), self.fit.state
        checkpoint = artifacts.Checkpoint(self.key, self.repetition, records, state)
        try:
            artifacts.save_checkpoint(self.claim.folder, checkpoint)
        except StoreError as error:
            # The run goes on; if it is killed it starts from an earlier state.
            log.warning("The state was not saved: %s", error)

    def _keep_model(self) -> bool:
        """Save the model of the last finished iteration, if there is one to keep."""
        if self.fit is None or not self.claim.run.keeps_model:
            return False
        if not self.fit.iteration and self.fit.settings.iterations:
            return False
        self.team.progress.begin("saving of the model")
        model, path = self.fit.model(), self.claim.folder / artifacts.MODEL
        path.parent.mkdir(parents=True, exist_ok=True)
        self._with_retries(lambda: save_model(model, path))
        return True

    # Ends -----------------------------------------------------------------------

    def _before_stopping(self) -> None:
        if isinstance(self.fit, Fit) and self.fit.iteration:
            self._checkpoint()
            if self.claim.run.keeps_model and self.binner is not None:
                self._paint()

    def _keep(self, state: State) -> str:
        """Keep the model of the last finished iteration."""
        try:
            if self._keep_model():
                assert self.fit is not None
                return f"The model of iteration {self.fit.iteration} is kept."
        except GmcError as error:
            return f"The model could not be kept: {error}"
        if self.cluster is not None:
            return ""
        if self.claim.run.keeps_model and state != "interrupted":
            return "No iteration was finished, so there is no model."
        return ""
