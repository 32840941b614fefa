"""One run as the store has it: an immutable copy of its row in the database."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from typing import Any, Literal

from gmc_core.base.errors import BREAKDOWNS
from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.gaussian.linalg.progress import StepShare
from gmc_core.runs.store.naming import run_name
from gmc_core.runs.store.selection import Selection

State = Literal["queued", "running", "finished", "cancelled", "failed", "interrupted"]
STATES: tuple[State, ...] = (
    "queued", "running", "finished", "cancelled", "failed", "interrupted",
)  # fmt: skip
ENDED: tuple[State, ...] = ("finished", "cancelled", "failed", "interrupted")
MOST_NMAE = 1e9  # far above any; refuses NaN as well
# What computed a comparison of a version that kept no version with it.
OLDER_VERSION = "before 0.2"
# In the cost: that somebody wants the run however long it takes.
LONG_KEY = "however_long"
RESUMABLE: tuple[State, ...] = ("interrupted", "cancelled", "failed")


@dataclass(frozen=True)
class Run:
    """A run, or a sweep (the parent of runs), at the moment of asking.

    id : short, safe in a URL. kind : "run" (a fit), "sweep" or "comparison".
    parent : the sweep's id.
    state : of a sweep: "running" if a child is; else "queued" if one is; else
        "interrupted", "failed" or "cancelled" if one is; else "finished".
    label, note : a person's words.
    config : the experiment; of a sweep, what its children have in common.
    sweep : of a sweep: its ε, L and seeds, for :class:`gmc_core.runs.sweeps.SweepConfig`.
    comparison : of a comparison: its methods, reference and seeds; the settings of a fit in
        ``config`` mean nothing then.
    selection : of a fit whose settings auto chooses; until it has, those in ``config`` mean
        nothing but for the precision.
    key : hash of all that decides the figures; None until the data have been seen, and the
        settings are chosen.
    data_sha256, data : hash and description of the data, see
        :func:`gmc_core.fitting.preparing.describe`; None until they have been seen.
    created, started, ended : seconds since 1970; for people, never compared.
    iteration_began : likewise, of what is being computed: the iteration, the trial of auto, or the
        preparation before the first of them; None where that is not known.
    step, step_share : which step of it goes on, such as "E-step", and how much of that is done, 0
        to 1; None where that is not known.
    repetition, iteration : finished iterations of the current repetition (from 0);
        of a sweep: finished children in ``iteration``; of a comparison: its ended fits there.
    cost : :class:`gmc_core.fitting.cost.Cost` by name, and ``seconds`` for one iteration.
    summary : pooled scores, seconds, peak memory; None before the end. Of a comparison: those of
        the best method, and the table, see :func:`gmc_core.runs.comparisons.summary_of`.
    message : why the run is in its state, where that needs a word.
    error_kind : of a run that failed: the ``kind`` of its error, see :mod:`gmc_core.base.errors`;
        None of other runs, and where a version that kept none computed it.
    error_iteration : the iteration that broke, from 1; None where there is none.
    reusable : whether a new start with the same settings finds it instead of computing anew; false
        of a run that was imported and is not known to be this store's own, see
        :mod:`gmc_core.runs.store.transfer`. The column of the store and the field of an export are
        called ``answers``.
    version, machine : what computed it. worker : who has it, while it runs.
    keeps_model : whether model, pictures of every iteration and state are kept.
    cancelling : asked to stop, not yet stopped.
    disk_bytes : of its artifacts (of a sweep: with its children's).
    children : of a sweep: number of children by state.
    """

    id: str
    kind: str
    parent: str | None
    state: State
    label: str
    note: str
    config: ExperimentConfig
    sweep: dict[str, Any] | None
    key: str | None
    data_sha256: str | None
    data: dict[str, Any] | None
    created: float
    started: float | None
    ended: float | None
    repetition: int
    iteration: int
    cost: dict[str, Any] | None
    summary: dict[str, Any] | None
    message: str
    version: str
    machine: dict[str, Any] | None
    worker: str | None
    keeps_model: bool
    cancelling: bool
    disk_bytes: int
    children: dict[str, int] = field(default_factory=dict)
    error_kind: str | None = None
    error_iteration: int | None = None
    reusable: bool = True
    comparison: ComparisonPlan | None = None
    selection: Selection | None = None
    iteration_began: float | None = None
    step: str | None = None
    step_share: float | None = None

    @property
    def however_long(self) -> bool:
        """Whether somebody wants it even if it takes longer than an hour."""
        return bool((self.cost or {}).get(LONG_KEY))

    @property
    def choosing(self) -> bool:
        """Whether auto has still to choose the settings of the fit."""
        return self.selection is not None and self.selection.open

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the repetitions (of a sweep: of its children; of a comparison: splits)."""
        if self.comparison is not None:
            return self.comparison.seeds
        return tuple(self.sweep["seeds"]) if self.sweep else self.config.seeds

    @property
    def repetitions(self) -> int:
        """How many repetitions there will be."""
        return len(self.config.seeds)

    @property
    def iterations(self) -> int:
        """L, the iterations of each repetition."""
        return self.config.fit.iterations

    @property
    def epsilon(self) -> float | None:
        """ε, the scale's own where none was chosen; None until the data have been seen."""
        fit, scale = self.config.fit, (self.data or {}).get("scale")
        return fit.epsilon if scale is None else fit.resolved(RatingScale(*scale)).epsilon

    @property
    def ended_for_good(self) -> bool:
        """Whether nothing happens any more unless someone asks for it."""
        return self.state in ENDED

    @property
    def resumable(self) -> bool:
        """Whether :meth:`Store.resume` takes it; of a comparison also where a fit has failed."""
        failed = self.comparison is not None and bool((self.summary or {}).get("failed"))
        return self.state in RESUMABLE or (self.state == "finished" and failed)

    @property
    def broke_down(self) -> bool:
        """Whether the numbers ended it: resumed, it would end in the same way."""
        return broke_down(self.state, self.error_kind)

    @property
    def error(self) -> str:
        """Kind and iteration of the error for reports; "" if there was none or none is known."""
        if self.error_kind is None:
            return ""
        at = "" if self.error_iteration is None else f", iteration {self.error_iteration}"
        return f"{self.error_kind}{at}"

    @property
    def progress(self) -> float:
        """Finished part of the work, 0..1; while the settings are chosen, of the choice."""
        if self.state == "finished":
            return 1.0
        if self.kind == "sweep":
            return self.iteration / max(sum(self.children.values()), 1)
        if self.comparison is not None:
            return min(1.0, self.iteration / self.comparison.total)
        if self.choosing:
            assert self.selection is not None
            return min(1.0, self.selection.spent / self.selection.seconds)
        total = self.repetitions * max(self.iterations, 1)
        return min(1.0, (self.repetition * max(self.iterations, 1) + self.iteration) / total)

    @property
    def step_words(self) -> str:
        """ "41 % of the E-step"; "" where nothing is known of it, or nothing is being computed."""
        if self.state != "running" or not self.step:
            return ""
        return str(StepShare(self.step, self.step_share))

    @property
    def title(self) -> str:
        """The label, or a name made from the settings; see :mod:`gmc_core.runs.store.naming`."""
        return run_name(self)

    @property
    def baselines(self) -> dict[str, float]:
        """NMAE of each baseline on the run's held-out ratings.

        Empty before the end, without hold-out, and of runs of versions that kept none.
        """
        kept = (self.summary or {}).get("baselines")
        if not isinstance(kept, dict):
            return {}
        found = {name: value.get("nmae") for name, value in kept.items() if isinstance(value, dict)}
        return {
            name: float(value)
            for name, value in found.items()
            # An imported file may hold any number, also one that no float can.
            if isinstance(value, (int, float)) and abs(value) < MOST_NMAE
        }

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        values["answers"] = values.pop("reusable")
        plan = self.comparison and self.comparison.as_dict()
        changed = {"config": self.config.as_dict(), "seeds": list(self.seeds), "comparison": plan}
        return {**values, **changed, "selection": self.selection and self.selection.as_dict()}


def broke_down(state: str, error_kind: str | None) -> bool:
    """Whether the numbers ended a run; whoever counts breakdowns or resumes runs asks here."""
    return state == "failed" and error_kind in BREAKDOWNS


def run_of(row: sqlite3.Row, children: dict[str, int], disk: int) -> Run:
    """The run of one row of the table ``runs``."""

    def parsed(name: str) -> Any:
        return None if row[name] is None else json.loads(row[name])

    plan, selection = parsed("comparison"), parsed("selection")
    return Run(
        id=row["id"],
        kind=row["kind"],
        parent=row["parent"],
        state=sweep_state(children) if row["kind"] == "sweep" else row["state"],
        label=row["label"],
        note=row["note"],
        config=ExperimentConfig.from_dict(json.loads(row["config"])),
        sweep=parsed("sweep"),
        key=row["key"],
        data_sha256=row["data_sha256"],
        data=parsed("data"),
        created=row["created"],
        started=row["started"],
        ended=row["ended"],
        repetition=row["repetition"],
        iteration=children.get("finished", 0) if row["kind"] == "sweep" else row["iteration"],
        cost=parsed("cost"),
        summary=parsed("summary"),
        message=row["message"],
        version=OLDER_VERSION if row["version"] == "of before" else row["version"],
        machine=parsed("machine"),
        worker=row["worker"],
        keeps_model=bool(row["keep"]),
        cancelling=bool(row["cancel"]) and row["state"] == "running",
        disk_bytes=disk,
        children=children,
        error_kind=row["error_kind"],
        error_iteration=row["error_iteration"],
        reusable=bool(row["answers"]),
        comparison=None if plan is None else ComparisonPlan.from_dict(plan),
        selection=None if selection is None else Selection.from_dict(selection),
        iteration_began=row["iteration_began"],
        step=row["step"],
        step_share=row["step_share"],
    )


def sweep_state(children: dict[str, int]) -> State:
    """The state of a sweep from the number of its children in each state."""
    order: tuple[State, ...] = ("running", "queued", "interrupted", "failed", "cancelled")
    return next((state for state in order if children.get(state)), "finished")
