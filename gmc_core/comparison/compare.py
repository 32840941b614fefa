"""Methods compared on the same splits: accuracy, paired differences, time and memory.

result = compare([paper, knn], [weak_split(ratings, seed) for seed in range(5)])
for row in result.rows():
    print(row.label, row.scores.nmae, row.nmae.ratings)

What makes a rating hard is common to all methods and cancels in a paired difference.
There are two intervals for it. *Over ratings* takes all held-out ratings of all splits
as independent: sharp, but it only speaks of models trained on these very ratings, and
splits share users. *Over splits* takes the differences of the splits' scores, so it
includes what another draw of training ratings does; with few splits it is wide.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ClusterError, ConfigError, DataError, GmcError
from gmc_core.comparison.comparators.measure import Outcome, run_method
from gmc_core.comparison.comparators.method import Method
from gmc_core.comparison.comparison_files import HeldOutValues, ResultFiles, held_out_of, method_key
from gmc_core.data.ratings import RatingScale
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.metrics import (
    PairedDifference,
    Scores,
    normalized_errors,
    paired_difference,
    score,
    score_pooled,
)
from gmc_core.protocol.splits import Split

METRICS = ("nmae", "rmse")


@dataclass(frozen=True)
class Difference:
    """A method's error minus the reference's; below 0, the method is better.

    ratings : over all held-out ratings of all common splits.
    splits : over the splits; None with fewer than two.
    """

    ratings: PairedDifference
    splits: PairedDifference | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Row:
    """One method's line of the comparison.

    splits : how many it has finished. scores : pooled over them, None before the first.
    seconds, cpu_seconds : mean over the splits. peak_bytes : largest; NaN if unknown.
    nmae, rmse : differences to the reference; None for itself, and where no split with
        two held-out ratings is common.
    failure : why it has no result on some split, "" if it has.
    """

    name: str
    label: str
    splits: int
    scores: Scores | None
    seconds: float | None
    cpu_seconds: float | None
    peak_bytes: float | None
    nmae: Difference | None
    rmse: Difference | None
    failure: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "label": self.label,
            "splits": self.splits,
            "scores": self.scores and self.scores.as_dict(),
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "peak_bytes": self.peak_bytes,
            "nmae_difference": self.nmae and self.nmae.as_dict(),
            "rmse_difference": self.rmse and self.rmse.as_dict(),
            "failure": self.failure,
        }


@dataclass(frozen=True)
class Comparison:
    """What has been reached, finished or not.

    Attributes
    ----------
    scale : of the ratings.
    labels : method name → label, in the order of the table.
    reference : name of the method that the others are compared with.
    held_out : the held-out ratings of each split, by the split's key.
    outcomes : (method name, split key) → predictions and their cost.
    failures : (method name, split key) → the reason.
    """

    scale: RatingScale
    labels: dict[str, str]
    reference: str
    held_out: dict[str, HeldOutValues] = field(default_factory=dict)
    outcomes: dict[tuple[str, str], Outcome] = field(default_factory=dict)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.reference not in self.labels:
            raise ConfigError(
                f"The reference {self.reference!r} is not among the methods compared: "
                f"{', '.join(self.labels)}. Add it, or choose another."
            )

    def against(self, reference: str) -> Comparison:
        """The same with another reference."""
        return replace(self, reference=reference)

    def rows(self) -> list[Row]:
        """A line for each method."""
        return [self._row(name) for name in self.labels]

    def as_dict(self) -> dict[str, Any]:
        """For JSON: splits, and a line for each method; predictions are in files."""
        return {
            "reference": self.reference,
            "scale": [self.scale.low, self.scale.high, self.scale.step],
            "divisor": self.scale.nmae_divisor,
            "splits": [held.as_dict() for held in self.held_out.values()],
            "methods": [row.as_dict() for row in self.rows()],
        }

    def _row(self, name: str) -> Row:
        done = [key for key in self.held_out if (name, key) in self.outcomes]
        outcomes = [self.outcomes[name, key] for key in done]
        failure = next((text for (who, _), text in self.failures.items() if who == name), "")
        if not outcomes:
            return Row(name, self.labels[name], 0, None, None, None, None, None, None, failure)
        differences = {metric: self._difference(name, metric) for metric in METRICS}
        return Row(
            name=name,
            label=self.labels[name],
            splits=len(done),
            scores=score_pooled(
                [(self.outcomes[name, key].predictions, self.held_out[key].actual) for key in done],
                self.scale,
                [self.held_out[key].unseen for key in done],
            ),
            seconds=float(np.mean([outcome.seconds for outcome in outcomes])),
            cpu_seconds=float(np.mean([outcome.cpu_seconds for outcome in outcomes])),
            peak_bytes=float(np.max([outcome.peak_bytes for outcome in outcomes])),
            failure=failure,
            **differences,
        )

    def _difference(self, name: str, metric: str) -> Difference | None:
        """Of one method to the reference, by "nmae" or "rmse", over their common splits."""
        common = [
            key
            for key in self.held_out
            if (name, key) in self.outcomes and (self.reference, key) in self.outcomes
        ]
        if name == self.reference or sum(len(self.held_out[key].actual) for key in common) < 2:
            return None
        errors = [
            [self._errors(method, key, metric) for key in common]
            for method in (name, self.reference)
        ]
        own, other = (np.concatenate(parts) for parts in errors)
        if metric == "nmae":
            ratings = paired_difference(own, other)
            means = [[float(part.mean()) for part in parts] for parts in errors]
        else:
            ratings = rmse_difference(own, other)
            means = [[float(np.sqrt(part.mean())) for part in parts] for parts in errors]
        return Difference(ratings, paired_difference(*means) if len(common) > 1 else None)

    def _errors(self, name: str, key: str, metric: str) -> npt.NDArray[np.float64]:
        """(n,) |P(x) - y| / divisor, or (clip(x) - y)², of one method on one split."""
        predicted, actual = self.outcomes[name, key].predictions, self.held_out[key].actual
        if metric == "nmae":
            return normalized_errors(predicted, actual, self.scale)
        clipped = np.clip(predicted, self.scale.low, self.scale.high)
        return np.asarray((clipped - actual) ** 2)


def rmse_difference(squares_a: npt.ArrayLike, squares_b: npt.ArrayLike) -> PairedDifference:
    """A - B of two root mean squared errors on the same ratings, with a 95 % interval.

    By the delta method: to first order A - B varies like the mean of
    a_k² / (2A) - b_k² / (2B), whose standard error is that of paired values.

    Parameters
    ----------
    squares_a, squares_b : (n,) squared errors a_k², b_k² in the same order, n ≥ 2.

    Raises
    ------
    DataError, NumericalError
        As :func:`gmc_core.protocol.metrics.paired_difference`.
    """
    a, b = np.asarray(squares_a, dtype=np.float64), np.asarray(squares_b, dtype=np.float64)
    root_a, root_b = float(np.sqrt(a.mean())), float(np.sqrt(b.mean()))
    # Without any error there is nothing that varies.
    parts = [
        square / (2 * root) if root > 0 else square for square, root in ((a, root_a), (b, root_b))
    ]
    linear = paired_difference(*parts)
    return PairedDifference.around(root_a - root_b, linear.se, linear.n)


@dataclass(frozen=True)
class Step:
    """One method on one split, as told to whoever watches.

    index : from 0. split_index : from 0. split_key : of :class:`HeldOutValues`.
    method_key : of :func:`gmc_core.comparison.comparison_files.method_key` on this split.
    outcome : None before the work, and if it failed.
    reused : whether the predictions were there already. failure : "" or the reason.
    """

    index: int
    method: Method
    split: Split
    split_index: int
    split_key: str
    method_key: str
    outcome: Outcome | None = None
    reused: bool = False
    failure: str = ""

    def nmae(self) -> float | None:
        """Of the outcome."""
        if self.outcome is None:
            return None
        split = self.split
        return score(self.outcome.predictions, split.test_values, split.train.scale).nmae


# Begins a step's fit with a team's threads; what it returns waits for the outcome.
Begin = Callable[[Step, ThreadPool], Callable[[], Outcome]]


def begin_here(step: Step, team: ThreadPool) -> Callable[[], Outcome]:
    """The fit is done in this process, when its outcome is asked for."""
    return partial(run_method, step.method, step.split, team)


def compare(
    methods: Sequence[Method],
    splits: Iterable[Split],
    *,
    reference: str | None = None,
    folder: Path | ResultFiles | None = None,
    team: ThreadPool | None = None,
    on_begin: Callable[[Step], object] | None = None,
    on_end: Callable[[Step, Comparison], object] | None = None,
    begin: Begin = begin_here,
    ahead: int = 0,
) -> Comparison:
    """Run every method on every split.

    A method that fails on a split (a :class:`GmcError`) is left out there, with the
    reason; the others go on.

    Parameters
    ----------
    methods : with distinct names.
    splits : of the same ratings; may be made one at a time.
    reference : name of the method to compare with; the first by default.
    folder : where results are kept as they come, and found again: what is there for
        the same method, settings and split is not computed again.
    team : threads, and the way to stop.
    on_begin, on_end : called before and after each method on each split.
    begin : where the fits are done. ahead : how many may have begun besides the one that is
        waited for. They end in the order in which they began.

    Raises
    ------
    ConfigError
        If two methods have one name, or the reference is none of them.
    DataError
        If there are no methods or splits, a split holds nothing out, or two splits have
        different rating scales.
    Cancelled
        If the pool's owner wants to stop; what is finished stays in ``folder``.
    """
    team = team or ThreadPool()
    labels = {method.name: method.label for method in methods}
    if not methods:
        raise DataError("There are no methods to compare. Name at least one.")
    if len(labels) < len(methods):
        raise ConfigError("Two methods of a comparison have one name. Give each its own.")
    files = ResultFiles(folder) if isinstance(folder, Path) else folder
    result: Comparison | None = None
    index = 0
    begun: deque[tuple[Step, HeldOutValues, Callable[[], Outcome] | None]] = deque()

    def end_first() -> None:
        assert result is not None
        step, held, outcome = begun.popleft()
        if outcome is not None:
            step = _ended(step, held, outcome, files)
        if step.outcome is not None:
            result.outcomes[step.method.name, held.key] = step.outcome
        else:
            result.failures[step.method.name, held.key] = step.failure
        if on_end is not None:
            on_end(step, result)

    for split_index, split in enumerate(splits):
        held = held_out_of(split)
        if result is None:
            result = Comparison(split.train.scale, labels, reference or methods[0].name)
        if split.train.scale != result.scale:
            raise DataError("The splits have different rating scales; compare within one data set.")
        result.held_out[held.key] = held
        if files is not None:
            files.keep_held_out(held)
        for method in methods:
            step = Step(index, method, split, split_index, held.key, method_key(method, held))
            index += 1
            if on_begin is not None:
                on_begin(step)
            found = None if files is None else files.outcome(method, held)
            if found is not None:
                begun.append((replace(step, outcome=found, reused=True), held, None))
            else:
                begun.append((step, held, begin(step, team)))
            if len(begun) > ahead:
                end_first()
    while begun:
        end_first()
    if result is None:
        raise DataError("There are no splits to compare on. Give at least one seed.")
    return result


def _ended(
    step: Step, held: HeldOutValues, waited: Callable[[], Outcome], files: ResultFiles | None
) -> Step:
    """The step with its outcome, which is kept, or with the reason why there is none."""
    try:
        outcome = waited()
    except ClusterError:
        raise  # no fault of the method
    except GmcError as error:
        return replace(step, failure=str(error))
    if files is not None:
        files.keep_outcome(step.method, held, outcome)
    return replace(step, outcome=outcome)
