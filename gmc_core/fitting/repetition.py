"""What a repetition of an experiment leaves, and the scores of several together."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil

from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.inputs import AnyFit
from gmc_core.fitting.records import IterationRecord
from gmc_core.fitting.time_notes import notes_on_times
from gmc_core.protocol.baselines import baselines, pooled_baselines
from gmc_core.protocol.metrics import Scores, score_pooled
from gmc_core.protocol.splits import Split


@dataclass(frozen=True, eq=False)
class Repetition:
    """One finished (or stopped) repetition.

    predictions : (n_test,) unprojected, of the last iteration.
    baselines : name → scores of the same ratings, as dictionaries; empty without hold-out.
    """

    seed: int
    records: tuple[IterationRecord, ...]
    predictions: npt.NDArray[np.float64]
    actual: npt.NDArray[np.float64]
    unseen: npt.NDArray[np.bool_]
    scores: Scores | None
    notes: tuple[str, ...]
    baselines: dict[str, dict[str, Any]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For JSON, without the predictions."""
        return {
            "seed": self.seed,
            "n_test": len(self.actual),
            "n_unseen": int(self.unseen.sum()),
            "notes": list(self.notes),
            "scores": self.scores and self.scores.as_dict(),
            "baselines": self.baselines,
            "records": [record.as_dict() for record in self.records],
        }


def finish(fit: AnyFit, records: list[IterationRecord]) -> Repetition:
    """The result of a fit at its current state."""
    split = fit.split
    return Repetition(
        seed=split.seed or 0,
        records=tuple(records),
        predictions=fit.predictions,
        actual=split.test_values,
        unseen=split.unseen_items | split.unseen_users,
        scores=fit.scores(),
        notes=(*split.notes, *notes_on_times(split, fit.settings)),
        baselines=_baselines(split),
    )


def _baselines(split: Split) -> dict[str, dict[str, Any]]:
    """The scores of the simplest predictions; none where nothing is held out or known."""
    if not split.n_test or not len(split.train):
        return {}
    return {name: scores.as_dict() for name, scores in baselines(split).items()}


def pooled_scores(repetitions: list[Repetition], scale: RatingScale) -> Scores | None:
    """Scores of all repetitions' test ratings together, None without hold-out."""
    parts = [(r.predictions, r.actual) for r in repetitions if len(r.actual)]
    if not parts:
        return None
    unseen = [r.unseen for r in repetitions if len(r.actual)]
    return score_pooled(parts, scale, unseen)


def summarise(results: list[Repetition], scale: RatingScale, seconds: float) -> dict[str, Any]:
    """The ``summary`` part of a result: pooled scores, time, peak memory.

    nmae and mae after projection to the scale, rmse clipped but not rounded.
    """
    pooled = pooled_scores(results, scale)
    scores = pooled.as_dict() if pooled else {}
    names = ("nmae", "nmae_se", "mae", "rmse")
    return {
        **{name: scores.get(name) for name in names},
        **{name: value for name, value in scores.items() if name not in names},
        "baselines": pooled_baselines([result.baselines for result in results]),
        "seconds": seconds,
        "peak_rss_bytes": peak_rss_bytes(),
    }


def peak_rss_bytes() -> int:
    """Peak resident memory of this process so far, earlier runs of a worker included."""
    try:
        import resource
    except ImportError:  # Windows
        return int(psutil.Process().memory_info().peak_wset)  # type: ignore[attr-defined]
    # Linux counts in KiB, macOS in bytes.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
