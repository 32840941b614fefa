"""Computing one run so that it can be watched, stopped, killed and gone on with."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from gmc_core.base.errors import DEFECT, MEMORY, SYSTEM, GmcError, ModelFileError
from gmc_core.fitting.compiling import compile_for
from gmc_core.fitting.estimates import estimate_of_fit
from gmc_core.fitting.experiment import (
    ExperimentConfig,
    Prepared,
    Repetition,
    describe,
    finish,
    make_split,
    prepare,
    summarise,
)
from gmc_core.fitting.fit import Fit, IterationRecord, StateError
from gmc_core.fitting.provenance import check_known
from gmc_core.gaussian.linalg.threads import Cancelled, Team
from gmc_core.model.model_file import save_model
from gmc_core.model.pictures import Painter, picture_orders
from gmc_core.protocol.splits import Split
from gmc_core.runs.store import StoreError, artifacts
from gmc_core.runs.store.places import remove_parts, write_atomically
from gmc_core.runs.store.queue import Claim, Lost
from gmc_core.runs.store.run import State
from gmc_core.runs.store.submitting import source_of
from gmc_core.runs.store.waiting import cost_with_estimate
from gmc_core.runs.worker.calibrating import ask_if_cheap
from gmc_core.runs.worker.heart import Heart

log = logging.getLogger(__name__)

Result = TypeVar("Result")

CHECKPOINT_SECONDS = 60.0
PATIENCE_SECONDS = 600.0
_RETRY_SECONDS = 2.0


def worth_a_picture(iteration: int) -> bool:
    """All iterations while Σ forms, fewer later: a thousand pictures take 600 MB."""
    return iteration <= 30 or iteration % (10 if iteration <= 300 else 100) == 0


class Cache:
    """The data and the split last used: the children of a sweep share them."""

    def __init__(self) -> None:
        self._data: tuple[str, Prepared] | None = None
        self._split: tuple[object, Split] | None = None

    def data(self, config: ExperimentConfig) -> Prepared:
        """The filtered data of an experiment.

        Raises
        ------
        GmcError
            As :func:`prepare`, also where they are here already and are not those expected.
        """
        source = source_of(config)
        if self._data is None or self._data[0] != source:
            self._data = self._split = None  # frees the old before the new is loaded
            self._data = (source, prepare(config))
        else:
            known = self._data[1]
            check_known(config, known.data_sha256, known.files)
        return self._data[1]

    def split(self, config: ExperimentConfig, prepared: Prepared, seed: int) -> Split:
        """One split of it."""
        key = (
            prepared.data_sha256, config.protocol, seed, config.weak_users, config.strong_users,
        )  # fmt: skip
        if self._split is None or self._split[0] != key:
            self._split = (key, make_split(config, prepared, seed))
        return self._split[1]


class Computation:
    """One attempt at a run.

    Parameters
    ----------
    claim : the run, in this worker's hands.
    heart : says when to stop.
    cache : data of the run before.
    checkpoint_seconds : least time between two full states on disk.
    """

    def __init__(self, claim: Claim, heart: Heart, cache: Cache, checkpoint_seconds: float) -> None:
        self.claim, self.heart, self.cache = claim, heart, cache
        self.config = claim.run.config
        self.checkpoint_seconds = checkpoint_seconds
        self.team = Team(should_stop=heart.should_stop)
        self.key = ""
        self.fit: Fit | None = None
        self.painter: Painter | None = None
        self.repetition = 0
        self.records: list[IterationRecord] = []
        self.results: list[Repetition] = []

    def run(self) -> None:
        """Compute to the end, or to where it is stopped or fails.

        Raises
        ------
        Lost
            If the run is no longer this worker's.
        StoreError
            If its end cannot be written, after all patience.
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

    def _run(self) -> None:
        prepared = self.cache.data(self.config)
        self.team.check()
        self.key = self._patiently(lambda: self.claim.describe(describe(prepared)))
        twin = self.claim.twin(self.key)
        if twin is not None and self.claim.take_over(twin):
            return
        self._collect_finished()
        for index in range(len(self.results), len(self.config.seeds)):
            self._one(prepared, index)
        summary = summarise(
            self.results,
            prepared.ratings.scale,
            sum(record.seconds for result in self.results for record in result.records),
        )
        self._keep_model()
        with suppress(FileNotFoundError):
            (self.claim.folder / artifacts.STATE).unlink()
        self._patiently(lambda: self.claim.end("finished", summary=summary))
        seconds = sum(record.seconds for record in self.records)
        ask_if_cheap(self.claim.store, self.claim.run, seconds)

    def _collect_finished(self) -> None:
        """Take up the repetitions that an earlier attempt has finished."""
        remove_parts(self.claim.folder)
        if self.claim.run.key not in (None, self.key):
            self.claim.clear_files()  # the data have changed since, or the model's code
            return
        by_repetition: dict[int, list[IterationRecord]] = {}
        for index, record in self.claim.store.records(self.claim.run.id):
            by_repetition.setdefault(index, []).append(record)
        for index, result in enumerate(self.claim.store.results(self.claim.run.id)):
            held_out = artifacts.load_held_out(self.claim.folder, index)
            records = by_repetition.get(index, [])
            if held_out is None or len(records) != len(result["records"]):
                return
            if index == len(self.config.seeds) - 1 and self.claim.run.keeps_model:
                return  # stopped between its last record and its model
            self.results.append(
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

    def _one(self, prepared: Prepared, index: int) -> None:
        """One repetition, from its last saved state if there is one."""
        self.fit = None
        split = self.cache.split(self.config, prepared, self.config.seeds[index])
        start = artifacts.load_checkpoint(self.claim.folder, self.key)
        if start is not None and start.repetition != index:
            start = None
        self.repetition = index
        self.records = []
        fit: Fit | None = None
        if start is not None:
            try:
                fit = Fit(split, self.config.fit, team=self.team, start=start.state)
                self.records = list(start.records)
            except StateError as error:
                log.warning("Run %s begins anew: %s", self.claim.run.id, error)
            start = None  # or it would keep the old Σ alive
        self.fit = fit = fit or Fit(split, self.config.fit, team=self.team)
        cost = cost_with_estimate(fit.cost.as_dict(), estimate_of_fit(fit, len(self.config.seeds)))
        self._patiently(lambda: self.claim.start_at(index, self.records, cost))
        if fit.settings.iterations:
            compile_for(fit.settings)  # not inside the first iteration
        # Its own team: the picture of a finished iteration is not to be cancelled.
        self.painter = Painter(picture_orders(fit.model()), team=Team(self.team.size))
        saved = time.monotonic()
        for record in fit.records():
            self.records.append(record)
            last = record.iteration == fit.settings.iterations
            if last or (self.claim.run.keeps_model and worth_a_picture(record.iteration)):
                self._paint()
            self._patiently(lambda record=record: self.claim.add_record(index, record))  # type: ignore[misc]
            if not last and time.monotonic() - saved >= self.checkpoint_seconds:
                self._checkpoint()
                saved = time.monotonic()
        result = finish(fit, self.records)
        held_out = artifacts.HeldOut.of(split, result.predictions)
        self._patiently(lambda: artifacts.save_held_out(self.claim.folder, index, held_out))
        self._patiently(lambda: self.claim.add_repetition(index, result.as_dict()))
        self.results.append(result)

    # Files ----------------------------------------------------------------------

    def _paint(self) -> None:
        assert self.fit is not None and self.painter is not None
        iteration = self.fit.iteration
        path = artifacts.picture_path(self.claim.folder, self.repetition, iteration)
        if path.exists():
            return
        picture = self.fit.look(self.painter.paint)
        try:
            write_atomically(path, picture.save, durable=False)
        except StoreError as error:
            log.warning("No picture of iteration %d: %s", iteration, error)

    def _checkpoint(self) -> None:
        assert self.fit is not None
        checkpoint = artifacts.Checkpoint(
            self.key, self.repetition, tuple(self.records), self.fit.state
        )
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
        model, path = self.fit.model(), self.claim.folder / artifacts.MODEL
        path.parent.mkdir(parents=True, exist_ok=True)
        self._patiently(lambda: save_model(model, path))
        return True

    # Ends -----------------------------------------------------------------------

    def _stopped(self) -> None:
        """Cancelled, or the worker is asked to end: keep state and model."""
        if self.heart.lost:
            raise Lost
        reached = self.fit.iteration if self.fit else 0
        if reached:
            self._checkpoint()
            if self.claim.run.keeps_model and self.painter is not None:
                self._paint()
        if self.heart.cancelled:
            self._end("cancelled", "Cancelled.")
        else:
            self._end("interrupted", "The worker was asked to end. Resume goes on from here.")

    def _end(
        self, state: State, message: str, kind: str | None = None, iteration: int | None = None
    ) -> None:
        """End early, with the model of the last finished iteration."""
        try:
            if self._keep_model():
                assert self.fit is not None
                message += f" The model of iteration {self.fit.iteration} is kept."
            elif self.claim.run.keeps_model and state != "interrupted":
                message += " No iteration was finished, so there is no model."
        except GmcError as error:
            message += f" The model could not be kept: {error}"
        self._patiently(
            lambda: self.claim.end(state, message, error_kind=kind, error_iteration=iteration)
        )

    def _patiently(self, action: Callable[[], Result]) -> Result:
        """Try again while the disk is full or the store busy: a person may help.

        The state in memory is worth waiting for.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return action()
            except (StoreError, ModelFileError) as error:
                if time.monotonic() > deadline or self.heart.ending:
                    raise
                log.warning("Run %s waits: %s", self.claim.run.id, error)
                time.sleep(_RETRY_SECONDS)
