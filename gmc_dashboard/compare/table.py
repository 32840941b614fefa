"""A comparison's rows as the page shows them, and its result in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from gmc_core.comparison.compare import Row
from gmc_core.comparison.table import COLUMNS, lines
from gmc_dashboard.shared.components import escape
from gmc_dashboard.shared.units import signed


def as_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """One line a method; what there is not is missing."""
    known = [{k: v for k, v in line.items() if v is not None} for line in lines(rows)]
    return pd.DataFrame(known, columns=list(COLUMNS))


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


def verdict(
    rows: Sequence[Row], reference: str, *, complete: bool = True, short: bool = False
) -> str:
    """Which method has the lowest NMAE, and whether the splits tell it from the reference.

    As Markdown; "" before the first result.

    reference : a method's name. short : without the intervals, which the picture shows.
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
        f" It is {abs(ratings.mean):.4f} {'below' if ratings.mean < 0 else 'above'} the reference"
    )
    if not short:
        text += (
            f" (95 %: {signed(ratings.low, 4)} to {signed(ratings.high, 4)} over held-out ratings"
        )
        if splits is not None:
            text += f", {signed(splits.low, 4)} to {signed(splits.high, 4)} over splits"
        text += ")"
    text += "."
    if not ratings.resolved:
        return text + " These ratings do not tell the two apart."
    if splits is None:
        return text + " One split does not say whether another would agree; take five or more."
    if not splits.resolved:
        return text + " The splits disagree too much to be sure; take more."
    return text + " Both intervals leave out 0."
