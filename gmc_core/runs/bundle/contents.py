"""What a bundle shows of a run, as plain values; and what it cannot show, with the reason."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import GmcError
from gmc_core.comparison.compare import Row
from gmc_core.fitting.records import IterationRecord
from gmc_core.runs.sensitivity import SensitivityCurve, sensitivity_curve
from gmc_core.runs.store import Run, Store, StoreError
from gmc_core.runs.store.naming import fit_words, model_words, setting_words
from gmc_core.runs.sweeps import sweep_results

Floats = npt.NDArray[np.float64]

TITLES = 24  # as many as can be named beside a picture in a column of a paper
MAX_SCORE = 1e9


@dataclass(frozen=True)
class Curve:
    """NMAE, or the log-likelihood where nothing is held out, against iterations.

    label : of the run. quantity : of the axis. repetitions : (iteration, value) of each.
    mean : as far as all of them have come. references : NMAE of the baselines by name.
    """

    label: str
    quantity: str
    repetitions: tuple[tuple[tuple[int, float], ...], ...]
    mean: tuple[tuple[int, float], ...]
    references: Mapping[str, float]


@dataclass(frozen=True)
class Sensitivity:
    """NMAE against ε > 0. found : the curve. references : as of :class:`Curve`, for the sweep.
    epsilon : of the run that the bundle is about; None for the sweep itself."""

    found: SensitivityCurve
    references: Mapping[str, float]
    epsilon: float | None = None


@dataclass(frozen=True, eq=False)
class Correlations:
    """Correlations in Σ between the most rated titles, similar ones side by side.

    ids, titles : (n,). counts : (n,) training ratings. mean, sd : (n,) √Σ_mm. matrix : (n, n).
    """

    ids: tuple[str, ...]
    titles: tuple[str, ...]
    counts: tuple[int, ...]
    mean: tuple[float, ...]
    sd: tuple[float, ...]
    matrix: Floats


@dataclass(frozen=True)
class Score:
    """Errors on held-out ratings; NaN for what is not known. n : of ratings."""

    label: str
    nmae: float
    nmae_se: float
    mae: float
    rmse: float
    n: int | None


@dataclass(frozen=True)
class Step:
    """An iteration: means over the repetitions that have reached it; NaN where nothing is known.

    nmae_se : √(Σ SE_r²) / R, the standard error of the mean of R independent NMAE.
    """

    iteration: int
    repetitions: int
    nmae: float
    nmae_se: float
    mae: float
    rmse: float
    log_likelihood: float


@dataclass(frozen=True)
class Contents:
    """All that a bundle is made from.

    label : model and settings. missing : what it does not show, a sentence each.
    """

    run: Run
    label: str
    scores: tuple[Score, ...] = ()
    steps: tuple[Step, ...] = ()
    curve: Curve | None = None
    sensitivity: Sensitivity | None = None
    correlations: Correlations | None = None
    comparison: tuple[Row, ...] = ()
    reference: str = ""
    missing: tuple[str, ...] = field(default=())


def contents_of(store: Store, run: Run) -> Contents:
    """What there is of a run, a sweep or a comparison, finished or stopped.

    Raises
    ------
    StoreError
        If nothing of it has been computed yet.
    """
    if run.comparison is not None:
        return _of_comparison(store, run)
    if run.sweep is not None:
        return _of_sweep(store, run)
    return _of_fit(store, run)


def _of_fit(store: Store, run: Run) -> Contents:
    curves: dict[int, list[IterationRecord]] = {}
    for repetition, record in store.records(run.id):
        curves.setdefault(repetition, []).append(record)
    steps = _steps(list(curves.values()))
    if not steps:
        raise StoreError(
            f"Run {run.id} is {run.state} and has finished no iteration, so there is nothing to "
            "draw; wait for the first one, or resume the run."
        )
    label = ", ".join(
        [fit_words(run), *setting_words(run.config, run.data), f"L = {run.iterations}"]
    )
    missing = []
    quantity = "nmae" if any(math.isfinite(step.nmae) for step in steps) else "log_likelihood"
    if quantity != "nmae":
        missing.append("Errors: nothing is held out under this protocol; the likelihood is drawn.")
    elif not run.baselines:
        missing.append(
            "Baselines: the run keeps none (it has not ended, or is of an older version)."
        )
    correlations, why = _correlations(store, run)
    sensitivity = None
    if run.parent is not None:
        sensitivity, reason = _sensitivity(store, run.parent, run.epsilon)
        why = [*why, *reason]
    return Contents(
        run=run,
        label=label,
        scores=_scores(store, run, label, steps) if quantity == "nmae" else (),
        steps=steps,
        curve=Curve(
            label,
            "NMAE" if quantity == "nmae" else "log-likelihood",
            tuple(_points(curve, quantity) for curve in curves.values()),
            tuple(
                (step.iteration, getattr(step, quantity))
                for step in steps
                if step.repetitions == steps[0].repetitions
            ),
            run.baselines if quantity == "nmae" else {},
        ),
        sensitivity=sensitivity,
        correlations=correlations,
        missing=(*missing, *why),
    )


def _points(curve: Sequence[IterationRecord], quantity: str) -> tuple[tuple[int, float], ...]:
    values = [(record.iteration, getattr(record, quantity)) for record in curve]
    return tuple((step, value) for step, value in values if value is not None)


def _steps(curves: Sequence[Sequence[IterationRecord]]) -> tuple[Step, ...]:
    """One for each iteration that a repetition has reached."""
    by_iteration: dict[int, list[IterationRecord]] = {}
    for curve in curves:
        for record in curve:
            by_iteration.setdefault(record.iteration, []).append(record)

    def mean(records: list[IterationRecord], name: str) -> float:
        return float(np.mean([_known(getattr(record, name)) for record in records]))

    return tuple(
        Step(
            iteration=t,
            repetitions=len(records),
            nmae=mean(records, "nmae"),
            nmae_se=float(np.linalg.norm([_known(record.nmae_se) for record in records]))
            / len(records),
            mae=mean(records, "mae"),
            rmse=mean(records, "rmse"),
            log_likelihood=mean(records, "log_likelihood"),
        )
        for t, records in sorted(by_iteration.items())
    )


def _scores(store: Store, run: Run, label: str, steps: Sequence[Step]) -> tuple[Score, ...]:
    """The run's own, pooled or those of its last iteration, then the baselines'."""
    if run.summary and math.isfinite(_known(run.summary.get("nmae"))):
        own = _score(label, run.summary)
    else:
        last = steps[-1]
        at = f"{label}, {run.state} after iteration {last.iteration}"
        own = Score(at, last.nmae, last.nmae_se, last.mae, last.rmse, None)
    kept = (run.summary or {}).get("baselines")
    parts = [result.get("baselines") for result in store.results(run.id)]
    found = [
        _score(name, {"nmae_se": _pooled_error(parts, name), **values})
        for name, values in (kept.items() if isinstance(kept, Mapping) else ())
        if name in run.baselines
    ]
    return (own, *found)


def _score(label: str, values: Mapping[str, Any]) -> Score:
    n = values.get("n")
    nmae, nmae_se, mae, rmse = (
        _known(values.get(name)) for name in ("nmae", "nmae_se", "mae", "rmse")
    )
    return Score(label, nmae, nmae_se, mae, rmse, n if isinstance(n, int) else None)


def _pooled_error(parts: Sequence[Any], name: str) -> float:
    """Standard error of a baseline's NMAE over the held-out ratings of all repetitions."""
    total, squares = 0.0, 0.0
    for part in parts:
        found = part.get(name) if isinstance(part, Mapping) else None
        if not isinstance(found, Mapping):
            return math.nan
        n, error = _known(found.get("n")), _known(found.get("nmae_se"))
        total, squares = total + n, squares + (n * error) ** 2
    return math.sqrt(squares) / total if total > 0 else math.nan


def _known(value: object) -> float:
    """A finite number as it is, NaN for anything else: an imported file may hold any."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    return float(value) if abs(value) < MAX_SCORE or value != value else math.nan


def _correlations(store: Store, run: Run) -> tuple[Correlations | None, list[str]]:
    if store.model_path(run.id) is None:
        return None, ["Covariance: the run keeps no model."]
    if run.config.fit.signals != "rows":
        return None, [f"Covariance: with {run.config.fit.signals} as signals, Σ is not of titles."]
    from gmc_core.model.analysis import submatrix
    from gmc_core.model.item_orders import ordered

    model = store.model(run.id)
    items = ordered(model, "similarity", ordered(model, "popularity")[:TITLES])
    if len(items) < 2:
        return None, ["Covariance: the model has a single title."]
    variance = model.gaussian.covariance.diagonal()[items]
    return Correlations(
        ids=tuple(str(identity) for identity in model.items.ids[items].tolist()),
        titles=tuple(model.title(int(item)) for item in items),
        counts=tuple(model.item_counts[items].tolist()),
        mean=tuple(model.gaussian.mean[items].tolist()),
        sd=tuple(np.sqrt(variance).tolist()),
        matrix=submatrix(model, items, "correlation"),
    ), []


def _sensitivity(
    store: Store, parent: str, epsilon: float | None = None
) -> tuple[Sensitivity | None, list[str]]:
    """Of a sweep; the reasons where it cannot be drawn whole."""
    results = sweep_results(store, parent)
    positive = results[results["epsilon"] > 0]
    missing = []
    if len(positive) < len(results):
        missing.append("Sensitivity: ε = 0 has no place on a logarithmic axis; see records.csv.")
    try:
        found = sensitivity_curve(positive)
    except GmcError as error:
        return None, [*missing, f"Sensitivity: {error}"]
    if found is None:
        return None, [*missing, "Sensitivity: the sweep has no error yet on held-out ratings."]
    return Sensitivity(found, _sweep_baselines(store.runs(parent=parent)), epsilon), missing


def _sweep_baselines(children: Sequence[Run]) -> dict[str, float]:
    """Mean over the seeds; all fits of a seed have the same held-out ratings."""
    by_seed = {run.config.seed: run.baselines for run in children if run.baselines}
    if not by_seed or len(by_seed) < len({run.config.seed for run in children}):
        return {}
    names = set.intersection(*(set(found) for found in by_seed.values()))
    first = next(iter(by_seed.values()))
    return {
        name: float(np.mean([found[name] for found in by_seed.values()]))
        for name in first
        if name in names
    }


def _of_sweep(store: Store, run: Run) -> Contents:
    found, missing = _sensitivity(store, run.id)
    if found is None:
        raise StoreError(
            f"Sweep {run.id} is {run.state}, and there is no curve to draw. " + " ".join(missing)
        )
    missing.append("Covariance: a sweep has a Σ for each fit; take the bundle of one of them.")
    if not found.references:
        missing.append("Baselines: not of every seed a fit has ended.")
    return Contents(run, model_words(run.config.fit), sensitivity=found, missing=tuple(missing))


def _of_comparison(store: Store, run: Run) -> Contents:
    from gmc_core.runs.comparisons import comparison_of

    comparison = comparison_of(store, run)
    if comparison is None or not comparison.outcomes:
        raise StoreError(
            f"Comparison {run.id} is {run.state} and no fit of it has ended; wait for the first."
        )
    rows = tuple(comparison.rows())
    missing = [f"{row.label}: {row.failure}" for row in rows if row.failure]
    if not any(row.nmae for row in rows):
        missing.append("The chart of differences: no method shares a split with the reference.")
    label = comparison.labels[comparison.reference]
    return Contents(run, run.title, comparison=rows, reference=label, missing=tuple(missing))
