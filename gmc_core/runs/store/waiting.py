"""How long a run will still take, and what it waits behind."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.fitting.compiling import compile_seconds
from gmc_core.fitting.duration import LONGEST, Estimate
from gmc_core.fitting.fit import IterationRecord
from gmc_core.runs.store.cells import Cell
from gmc_core.runs.store.run import Run

COST_KEY = "estimate"


@dataclass(frozen=True)
class Waiting:
    """What a queued run waits behind.

    ahead : the run being computed first, then those queued before, in their order.
    seconds : until it begins, None where one of them has no estimate.
    late : whether the run being computed takes longer than estimated.
    """

    ahead: tuple[Run, ...]
    seconds: float | None
    late: bool = False


def cost_with_estimate(cost: dict[str, Any], estimate: Estimate) -> dict[str, Any]:
    """What a run's ``cost`` holds: the work by name, seconds of a later iteration, the estimate."""
    each = estimate.iterations[-1] if estimate.iterations else 0.0
    return {**cost, "seconds": each, COST_KEY: estimate.as_dict()}


def estimate_of(run: Run) -> Estimate | None:
    """The estimate that a run was stored with; older runs have none."""
    try:
        return Estimate.from_dict((run.cost or {})[COST_KEY])
    except (KeyError, ValueError):
        return None


TOLD_SECONDS = 3.0  # without anything new, before it is told for how long
LONG_SECONDS = 5.0  # that anything may take without being called late
LATE = 2.0  # times what an iteration should take, before it is called longer than estimated
UNSEEN = 10.0  # seconds to begin and to read the data, where no estimate is known yet


def spent_in_iteration(run: Run) -> float | None:
    """Seconds since a run's last iteration ended, once they are many; None before, and of a run
    that is not being computed."""
    if run.state != "running" or run.iteration_began is None:
        return None
    spent = time.time() - run.iteration_began
    return spent if TOLD_SECONDS <= spent < LONGEST else None


def is_late(run: Run, records: Sequence[IterationRecord]) -> bool:
    """Whether a run that is being computed takes longer than estimated, in what it is at now.

    records : of all its repetitions. The estimate holds for a machine with nothing else to do.
    """
    spent, total = spent_in_iteration(run), run.repetitions * run.iterations
    if spent is None or run.comparison is not None:  # whose fits tell for how long themselves
        return False
    if run.choosing and run.selection is not None:
        return spent > max(run.selection.seconds - run.selection.spent, LONG_SECONDS)
    if not records:
        return spent > _until_first(run)
    left = remaining(run, records)
    if left is None:
        return False
    return spent > max(min(LATE * left / max(total - len(records), 1), left), LONG_SECONDS)


def _until_first(run: Run) -> float:
    """Seconds that may pass before the end of the first iteration."""
    estimate, compiling = estimate_of(run), compile_seconds(run.config.fit)
    if estimate is None:
        return UNSEEN + compiling + LATE * float((run.cost or {}).get("seconds") or 0.0)
    first = estimate.iterations[0] if estimate.iterations else 0.0
    begin = estimate.starting + max(estimate.compiling, compiling) + estimate.preparing
    return begin + LATE * first


def left_now(run: Run, records: Sequence[IterationRecord]) -> float | None:
    """:func:`remaining` less what the present iteration has taken; None of a late run, too."""
    left = remaining(run, records)
    if left is None or is_late(run, records):
        return None
    return max(left - (spent_in_iteration(run) or 0.0), 0.0)


def remaining(run: Run, records: Sequence[IterationRecord]) -> float | None:
    """Seconds to the end of a run that is being computed, or would be now.

    records : of all its repetitions.

    Returns
    -------
    None where nothing is known: no estimate, and no iteration yet.
    """
    estimate = estimate_of(run)
    if estimate is not None and len(estimate.iterations) == run.iterations:
        return estimate.remaining(records)
    seconds = [record.seconds for record in records]
    each = sum(seconds) / len(seconds) if seconds else (run.cost or {}).get("seconds")
    left = max(run.repetitions * run.iterations - len(seconds), 0)
    # An older version has taken in whatever an imported file said.
    if not isinstance(each, (int, float)) or not 0 <= each < LONGEST:
        return None
    return float(each) * left


def remaining_of_sweep(
    children: Sequence[Run], records: Mapping[str, Sequence[IterationRecord]]
) -> float | None:
    """Seconds to the end of a sweep, from its finished fits as soon as there are some.

    records : by child. None where nothing is known.
    """
    finished = [child for child in children if child.state == "finished" and child.summary]
    took = [child.summary["seconds"] for child in finished if child.summary]
    typical = statistics.median(took) if took else None
    left = 0.0
    for child in children:
        if child.ended_for_good:
            continue
        begun = records.get(child.id, ())
        own = typical if typical is not None and not begun else remaining(child, begun)
        if own is None:
            return None
        left += own
    return left


def remaining_of_comparison(plan: ComparisonPlan, cells: Sequence[Cell]) -> float | None:
    """Seconds to the end of a comparison, from what each method took on the splits so far.

    None until every method has ended once: what one takes says nothing of another.
    """
    left = 0.0
    for method in plan.methods:
        ended = [cell for cell in cells if cell.method == method and cell.state != "running"]
        took = [cell.seconds for cell in ended if cell.seconds is not None]
        missing = len(plan.seeds) - len(ended)
        if missing and not took:
            return None
        left += missing * statistics.fmean(took) if missing else 0.0
    return left if 0 <= left < LONGEST else None
