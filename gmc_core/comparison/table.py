"""A comparison's rows as a table of plain numbers, for files and for the pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gmc_core.comparison.compare import Difference, Row

COLUMNS = (
    "name", "method", "splits", "nmae", "nmae_se", "nmae_difference", "nmae_low", "nmae_high",
    "nmae_splits_low", "nmae_splits_high", "rmse", "rmse_difference", "rmse_low", "rmse_high",
    "rmse_splits_low", "rmse_splits_high", "mae", "seconds", "cpu_seconds", "megabytes",
    "test_ratings", "failure",
)  # fmt: skip


def lines(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One dictionary a method with all of :data:`COLUMNS`; None for what there is not."""
    return [{**dict.fromkeys(COLUMNS), **_line(row)} for row in rows]


def _line(row: Row) -> dict[str, Any]:
    scores = row.scores
    line: dict[str, Any] = {"name": row.name, "method": row.label, "splits": row.splits}
    if scores is not None:
        line |= {
            "nmae": scores.nmae,
            "nmae_se": scores.nmae_se,
            "rmse": scores.rmse,
            "mae": scores.mae,
            "test_ratings": scores.n,
        }
    for metric, difference in (("nmae", row.nmae), ("rmse", row.rmse)):
        line |= _ends(metric, difference)
    return line | {
        "seconds": row.seconds,
        "cpu_seconds": row.cpu_seconds,
        "megabytes": None if row.peak_bytes is None else row.peak_bytes / 1e6,
        "failure": row.failure,
    }


def _ends(metric: str, difference: Difference | None) -> dict[str, float]:
    if difference is None:
        return {}
    ratings, splits = difference.ratings, difference.splits
    ends = {
        f"{metric}_difference": ratings.mean,
        f"{metric}_low": ratings.low,
        f"{metric}_high": ratings.high,
    }
    if splits is not None:
        ends |= {f"{metric}_splits_low": splits.low, f"{metric}_splits_high": splits.high}
    return ends
