"""A comparison's rows as a table of numbers, and its result in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from gmc_core.comparison.compare import Difference, Row
from gmc_dashboard.shared.components import escape
from gmc_dashboard.shared.units import signed

COLUMNS = (
    "name", "method", "splits", "nmae", "nmae_se", "nmae_difference", "nmae_low", "nmae_high",
    "nmae_splits_low", "nmae_splits_high", "rmse", "rmse_difference", "rmse_low", "rmse_high",
    "rmse_splits_low", "rmse_splits_high", "mae", "seconds", "cpu_seconds", "megabytes",
    "test_ratings", "failure",
)  # fmt: skip


def as_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """One line a method; what there is not is missing."""
    return pd.DataFrame([_line(row) for row in rows], columns=list(COLUMNS))


def shown(rows: Sequence[Row], metric: str) -> pd.DataFrame:
    """What the page shows of :func:`as_frame`: one metric, its intervals as text.

    metric : "nmae" or "rmse".
    """
    frame = as_frame(rows)
    for name, part in (("over_ratings", metric), ("over_splits", f"{metric}_splits")):
        ends = zip(frame[f"{part}_low"], frame[f"{part}_high"], strict=True)
        frame[name] = [
            None if pd.isna(low) else f"{signed(low, 4)} … {signed(high, 4)}" for low, high in ends
        ]
    error = ["nmae", "nmae_se"] if metric == "nmae" else ["rmse"]
    difference = [f"{metric}_difference", "over_ratings", "over_splits"]
    cost = ["seconds", "cpu_seconds", "megabytes", "splits", "test_ratings"]
    return frame[["method", *error, *difference, *cost]]


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


def verdict(rows: Sequence[Row], reference: str, *, complete: bool = True) -> str:
    """Which method has the lowest NMAE, and whether the splits tell it from the reference.

    As Markdown; "" before the first result.

    reference : a method's name.
    """
    done = [row for row in rows if row.scores is not None]
    if not done:
        return ""
    best = min(done, key=lambda row: row.scores.nmae if row.scores else 0)
    assert best.scores is not None
    own = next(row for row in rows if row.name == reference)
    text = (
        f"{'Lowest' if complete else 'Lowest so far'}: **{escape(best.label)}** with NMAE "
        f"**{best.scores.nmae:.4f} ± {best.scores.nmae_se:.4f}**."
    )
    if best is own:
        return text + " That is the reference."
    if best.nmae is None:
        return text
    ratings, splits = best.nmae.ratings, best.nmae.splits
    text += (
        f" It is {abs(ratings.mean):.4f} {'below' if ratings.mean < 0 else 'above'} the reference "
        f"(95 %: {signed(ratings.low, 4)} to {signed(ratings.high, 4)} over held-out ratings"
    )
    if splits is not None:
        text += f", {signed(splits.low, 4)} to {signed(splits.high, 4)} over splits"
    text += ")."
    if not ratings.resolved:
        return text + " These ratings do not tell the two apart."
    if splits is None:
        return text + " One split does not say whether another would agree; take five or more."
    if not splits.resolved:
        return text + " The splits disagree too much to be sure; take more."
    return text + " Both intervals leave out 0."
