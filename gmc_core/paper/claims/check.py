"""Computing what the claims need, through the run store, and looking at what is there.

Nothing is computed twice: an experiment that is finished is found by its key, one that
was stopped goes on, and several claims share one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from gmc_core.comparison.comparators import method_named
from gmc_core.comparison.compare import Comparison
from gmc_core.comparison.comparison_files import method_key
from gmc_core.fitting.experiment import ExperimentConfig
from gmc_core.paper.claims.results import Measured, Results
from gmc_core.paper.claims.subject import METHODS, Subject
from gmc_core.runs.store import RESUMABLE, Run, Store, comparisons
from gmc_core.runs.store.comparisons import ComparisonFolder, Plan, Status
from gmc_core.runs.store.submitting import anywhere, key_of

# A finished run is worth more than one under way, and that more than a stopped one.
_WORTH = ("finished", "running", "queued", "interrupted", "cancelled", "failed")


@dataclass(frozen=True)
class Progress:
    """How far the experiments and the comparison are.

    runs : by experiment, as far as they have been submitted.
    missing : experiments without a run, or with one that was stopped and can go on.
    active : experiments whose run is queued or running.
    comparison : its status. comparison_missing : whether it must be started.
    """

    runs: dict[str, Run]
    missing: tuple[str, ...]
    active: tuple[str, ...]
    comparison: Status
    comparison_missing: bool

    @property
    def share(self) -> float:
        """Finished part of the runs' work, 0..1, by iterations."""
        total = len(self.runs) + sum(name not in self.runs for name in self.missing)
        done = sum(
            1.0 if run.ended_for_good and name not in self.missing else run.progress
            for name, run in self.runs.items()
        )
        return done / max(total, 1)

    @property
    def complete(self) -> bool:
        """Whether nothing is left to compute."""
        return not (
            self.missing or self.active or self.comparison_missing or self.comparison.active
        )


def runs_of(store: Store, subject: Subject) -> dict[str, Run]:
    """The run of each experiment, the most useful one where there are several.

    A finished run of the same settings with more repetitions serves as well.
    """
    experiments = subject.experiments()
    keys = {key_of(anywhere(config), subject.data): name for name, config in experiments.items()}
    counts = {config.repetitions for config in experiments.values()}
    found: dict[str, Run] = {}
    for run in store.runs():  # newest first
        if run.kind != "run" or not run.answers:
            continue
        same = [run.key, *_with_fewer_repetitions(run, counts, subject)]
        name = next((keys[key] for key in same if key in keys), None)
        if name is None:
            continue
        best = found.get(name)
        if best is None or _WORTH.index(run.state) < _WORTH.index(best.state):
            found[name] = run
    return found


def _with_fewer_repetitions(run: Run, counts: set[int], subject: Subject) -> list[str | None]:
    """The keys that a finished run would have with fewer repetitions."""
    fewer = [count for count in counts if 1 < count < run.config.repetitions]
    known = run.state == "finished" and run.data_sha256 == subject.data["sha256"]
    # Its key is another one if the model's code has changed since.
    if not fewer or not known or run.key != key_of(run.config, subject.data):
        return []
    return [key_of(replace(run.config, repetitions=count), subject.data) for count in fewer]


def progress(store: Store, subject: Subject) -> Progress:
    """How far it is; changes nothing."""
    runs = runs_of(store, subject)
    names = subject.experiments()
    folder = comparison_of(subject)
    status = folder.status()
    return Progress(
        runs=runs,
        missing=tuple(name for name in names if name not in runs or _goes_on(runs[name])),
        active=tuple(name for name, run in runs.items() if not run.ended_for_good),
        comparison=status,
        comparison_missing=not status.active and not _covers(folder, status, subject),
    )


def _goes_on(run: Run) -> bool:
    """Whether a stopped run would end otherwise if it were resumed."""
    # A breakdown of the numerics is a result, and would come again.
    return run.state in RESUMABLE and not run.broke_down


def submit(store: Store, subject: Subject) -> dict[str, Run]:
    """Queue what is missing and resume what was stopped; the runs by experiment.

    Nothing computes until there is a worker, see :func:`gmc_core.runs.worker.ensure_worker`.
    """
    runs = runs_of(store, subject)
    for name, config in subject.experiments().items():
        run = runs.get(name)
        if run is None:
            runs[name] = store.submit(
                config, label=label(name, config), keep_model=False, data=subject.data
            )
        elif _goes_on(run):
            runs[name] = store.resume(run.id)
    return runs


def cancel(store: Store, subject: Subject) -> None:
    """Stop what is queued, running or being compared; it keeps what it has reached."""
    for run in runs_of(store, subject).values():
        if not run.ended_for_good:
            store.cancel(run.id)
    folder = comparison_of(subject)
    if folder.status().active:
        folder.cancel()


def label(name: str, config: ExperimentConfig) -> str:
    """What a run is for, in the list of runs."""
    fit = config.fit
    about = {
        "paper": "the paper's settings, weak",
        "strong": "the paper's settings, strong",
        "objective": "MAP objective",
        "singular": "without ε",
        "longer": f"{fit.iterations} iterations",
        "epsilon": f"ε = {fit.epsilon:g}" if fit.epsilon is not None else "",
        "initial": f"initial value {fit.initial:g}" if fit.initial is not None else "",
        "columns": "columns as signals",
        "blocks": f"blocks of {fit.block[0]} × {fit.block[1]}",
        "noise": f"noise variance {fit.noise:g}" if isinstance(fit.noise, float) else "",
        "mixture": f"a mixture of {fit.components}",
    }
    return f"Claims: {about[name.split()[0]]}"


# The comparison --------------------------------------------------------------------------


def comparison_of(subject: Subject) -> ComparisonFolder:
    """The claims' own comparison of methods on these data; the Compare page lists it.

    Its own, so that nobody's choice of methods and seeds is replaced.
    """
    identity = comparisons.folder_for(anywhere(subject.base)).id
    return ComparisonFolder(comparisons.comparisons_folder() / f"claims-{identity}")


def _covers(folder: ComparisonFolder, status: Status, subject: Subject) -> bool:
    """Whether a comparison has what the claims need."""
    plan = folder.plan()
    return (
        plan is not None
        and status.state == "finished"
        and set(METHODS) <= {name for name, *_ in plan.methods}
        and set(range(subject.splits)) <= set(plan.seeds)
    )


def start_comparison(subject: Subject) -> ComparisonFolder:
    """Compute the comparison in a process of its own, unless it is there or under way.

    Raises
    ------
    StoreError
        If its folder cannot be written or the process not be started.
    """
    folder = comparison_of(subject)
    status, old = folder.status(), folder.plan()
    if status.active or _covers(folder, status, subject):
        return folder
    seeds = tuple(range(subject.splits))
    made = [method_named(name, subject.scale) for name in METHODS]
    plan = Plan(
        title=f"Claims: {subject.data['name']}, {subject.data['items']:,} items, weak",
        command=comparisons.command_for(subject.base, folder, seeds, METHODS, "paper"),
        protocol="weak",
        seeds=seeds,
        methods=tuple((m.name, m.label, method_key(m)) for m in made),
        reference="paper",
        scale=old.scale if old else None,
        splits=old.splits if old and old.seeds == seeds else (),
    )
    comparisons.start(folder, plan)
    return folder


def with_rivals(own: Comparison, other: Comparison | None) -> Comparison:
    """The claims' comparison with the methods that another one has on all its splits.

    So a method that a person has compared on the same splits, such as another package's,
    counts among the best methods without being computed again.
    """
    if other is None or other.scale != own.scale:
        return own
    rivals = {
        name: label
        for name, label in other.labels.items()
        if name not in own.labels and all((name, key) in other.outcomes for key in own.truths)
    }
    outcomes = {(name, key): other.outcomes[name, key] for name in rivals for key in own.truths}
    return replace(own, labels={**own.labels, **rivals}, outcomes={**own.outcomes, **outcomes})


# Looking -------------------------------------------------------------------------------


def look(store: Store, subject: Subject) -> Results:
    """All that has been found so far; changes nothing."""
    folder = comparison_of(subject)
    comparison = folder.comparison()
    if comparison is not None and comparison.outcomes:
        others = comparisons.folder_for(anywhere(subject.base)).comparison()
        comparison = with_rivals(comparison, others)
    return Results(
        subject,
        {
            name: _measured(store, run, subject.data["sha256"])
            for name, run in runs_of(store, subject).items()
        },
        comparison if comparison is not None and comparison.outcomes else None,
        folder.id,
        folder.status().state,
    )


def _measured(store: Store, run: Run, sha256: str) -> Measured:
    if run.state in ("finished", "failed"):
        return _ended(_Hashed(store), run.id, run.state, run.ended)
    return Measured(run.id, run.state, run.message)


class _Hashed:
    """A store as part of a cache's key: two of the same folder are the same."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __hash__(self) -> int:
        return hash(self.store.path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashed) and self.store.path == other.store.path


@lru_cache(maxsize=64)
def _ended(holder: _Hashed, identity: str, state: str, ended: float | None) -> Measured:
    """A run that changes no more; read once however often a page asks."""
    store = holder.store
    curves: dict[int, list] = {}
    for repetition, record in store.records(identity):
        curves.setdefault(repetition, []).append(record)
    run = store.run(identity)
    parts = (store.held_out(identity, r) for r in range(run.repetitions))
    return Measured(
        identity,
        state,
        run.message,
        tuple(tuple(curves[r]) for r in sorted(curves)),
        tuple(part for part in parts if part is not None) if state == "finished" else (),
        run.error_kind,
        run.error_iteration,
    )
