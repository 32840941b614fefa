"""Computing what the claims need, through the run store, and looking at what is there.

Nothing is computed twice: an experiment that is finished is found by its key, one that
was stopped goes on, and several claims share one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from gmc_core.comparison.comparators import method_named
from gmc_core.comparison.compare import Comparison
from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.paper.claims.results import Measured, Results
from gmc_core.paper.claims.subject import METHODS, Subject
from gmc_core.paper.measured import measured_systems
from gmc_core.runs.comparisons import Hashed, all_comparisons, known_comparison
from gmc_core.runs.store import RESUMABLE, Run, Store
from gmc_core.runs.store.run import LONG_KEY
from gmc_core.runs.store.submitting import anywhere, key_of

# Preferred in this order: a finished run, one under way, a stopped one.
_WORTH = ("finished", "running", "queued", "interrupted", "cancelled", "failed")


@dataclass(frozen=True)
class Progress:
    """How far the experiments and the comparison are.

    runs : by experiment, as far as they have been submitted.
    missing : experiments without a run, or with one that was stopped and can go on.
    active : experiments whose run is queued or running.
    comparison : its run, None before it has been submitted. comparison_missing : whether it must be
        started, or started again.
    """

    runs: dict[str, Run]
    missing: tuple[str, ...]
    active: tuple[str, ...]
    comparison: Run | None
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
    def comparing(self) -> bool:
        """Whether the comparison is queued or running."""
        return self.comparison is not None and not self.comparison.ended_for_good

    @property
    def complete(self) -> bool:
        """Whether nothing is left to compute."""
        return not (self.missing or self.active or self.comparison_missing or self.comparing)


def runs_of(store: Store, subject: Subject) -> dict[str, Run]:
    """The run of each experiment, the most useful one where there are several.

    A finished run of the same settings with more repetitions serves as well.
    """
    experiments = subject.experiments()
    keys = {key_of(anywhere(config), subject.data): name for name, config in experiments.items()}
    counts = {config.repetitions for config in experiments.values()}
    found: dict[str, Run] = {}
    for run in store.runs():  # newest first
        if run.kind != "run" or not run.reusable:
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
    comparison = comparison_run(store, subject)
    return Progress(
        runs=runs,
        missing=tuple(name for name in names if name not in runs or _goes_on(runs[name])),
        active=tuple(name for name, run in runs.items() if not run.ended_for_good),
        comparison=comparison,
        comparison_missing=comparison is None or comparison.resumable,
    )


def _goes_on(run: Run) -> bool:
    """Whether a stopped run would end otherwise if it were resumed."""
    # A breakdown of the numerics is a result, and would come again.
    return run.state in RESUMABLE and not run.broke_down


def submit(store: Store, subject: Subject, however_long: bool = False) -> dict[str, Run]:
    """Queue what is missing and resume what was stopped; the runs by experiment.

    however_long : whether a fit may take longer than an hour.

    The comparison is not among them, see :func:`submit_comparison`. Nothing computes until there
    is a worker, see :func:`gmc_core.runs.worker.ensure_worker`.
    """
    runs = runs_of(store, subject)
    for name, config in subject.experiments().items():
        run = runs.get(name)
        if run is None:
            runs[name] = store.submit(
                config,
                label=label(name, config),
                keep_model=False,
                data=subject.data,
                cost={LONG_KEY: True} if however_long else None,
            )
        elif _goes_on(run):
            runs[name] = store.resume(run.id, however_long=however_long)
    return runs


def cancel(store: Store, subject: Subject) -> None:
    """Stop what is queued, running or being compared; it keeps what it has reached."""
    for run in runs_of(store, subject).values():
        if not run.ended_for_good:
            store.cancel(run.id)
    comparison = comparison_run(store, subject)
    if comparison is not None and not comparison.ended_for_good:
        store.cancel(comparison.id)


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


def plan_of(subject: Subject) -> ComparisonPlan:
    """The methods and splits that the claims compare."""
    made = [method_named(name, subject.scale) for name in METHODS]
    return ComparisonPlan.of(made, range(subject.splits), "paper")


def comparison_run(store: Store, subject: Subject) -> Run | None:
    """The comparison that has what the claims need, the most useful one where there are several.

    A finished one with more methods or splits serves as well.
    """
    plan = plan_of(subject)
    key = key_of(anywhere(subject.base), subject.data, plan)
    found: Run | None = None
    for run in all_comparisons(store):  # newest first
        if not run.reusable or not (run.key == key or _covers(run, plan, subject)):
            continue
        if found is None or _WORTH.index(run.state) < _WORTH.index(found.state):
            found = run
    return found


def _covers(run: Run, plan: ComparisonPlan, subject: Subject) -> bool:
    """Whether a finished comparison of the same splits has all methods and seeds."""
    other, base = run.comparison, subject.base
    if other is None or run.state != "finished" or run.resumable or run.key is None:
        return False
    return (
        run.data_sha256 == subject.data["sha256"]
        and set(plan.methods) <= set(other.methods)
        and set(plan.seeds) <= set(other.seeds)
        # Its key is another one if a method's code has changed since, or the splits are others.
        and run.key == key_of(anywhere(base), subject.data, other)
    )


def submit_comparison(store: Store, subject: Subject, however_long: bool = False) -> Run:
    """Queue the comparison behind the runs, or resume it, unless it is there or on its way.

    however_long : as of :func:`submit`.
    """
    found = comparison_run(store, subject)
    if found is not None and not found.resumable:
        return found
    label = f"Claims: {subject.data['name']}, {subject.data['items']:,} items, weak"
    plan = plan_of(subject)
    cost = {LONG_KEY: True} if however_long else None
    run, _ = store.submit_comparison(subject.base, plan, label=label, data=subject.data, cost=cost)
    return run


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
        if name not in own.labels and all((name, key) in other.outcomes for key in own.held_out)
    }
    outcomes = {(name, key): other.outcomes[name, key] for name in rivals for key in own.held_out}
    return replace(own, labels={**own.labels, **rivals}, outcomes={**own.outcomes, **outcomes})


# Looking -------------------------------------------------------------------------------


def look(store: Store, subject: Subject) -> Results:
    """All that has been found so far; changes nothing."""
    run = comparison_run(store, subject)
    comparison = None if run is None else known_comparison(store, run)
    compared = all_comparisons(store)
    if run is not None and comparison is not None and comparison.outcomes:
        for other in compared:
            if other.reusable and other.data_sha256 == run.data_sha256 and other.id != run.id:
                comparison = with_rivals(comparison, known_comparison(store, other))
    systems = {
        protocol: found
        for protocol in ("weak", "strong")
        if (found := measured_systems(store, compared, protocol, subject.is_of)) is not None
    }
    return Results(
        subject,
        {
            name: _measured(store, run, subject.data["sha256"])
            for name, run in runs_of(store, subject).items()
        },
        comparison if comparison is not None and comparison.outcomes else None,
        "" if run is None else run.id,
        systems,
    )


def _measured(store: Store, run: Run, sha256: str) -> Measured:
    if run.state in ("finished", "failed"):
        return _ended(Hashed(store), run.id, run.state, run.ended)
    return Measured(run.id, run.state, run.message)


@lru_cache(maxsize=64)
def _ended(holder: Hashed, identity: str, state: str, ended: float | None) -> Measured:
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
