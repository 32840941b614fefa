"""Figures of when a data set was rated: ratings by month, and how many a session has."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from gmc_core.base.times import duration
from gmc_core.data.sessions import Months, Sessions
from gmc_dashboard.shared.theme import palette, style

# Lower ends of the bars of session sizes.
SIZES = (1, 2, 3, 4, 6, 11, 21, 51, 101)


def by_month(found: Months, *, dark: bool = False, height: int = 300) -> go.Figure:
    """How many ratings each month has."""
    fig = go.Figure(
        go.Bar(
            x=found.every.astype("datetime64[D]").astype(str),
            y=found.counts,
            marker={"color": palette(dark).accent, "line": {"width": 0}},
            hovertemplate="%{x|%B %Y}<br>%{y:,} ratings<extra></extra>",
        )
    )
    style(
        fig,
        title="Ratings by month",
        x="month",
        y="ratings",
        height=height,
        dark=dark,
        uirevision="months",
    )
    fig.update_xaxes(type="date")
    return fig


def by_month_alt(found: Months) -> str:
    """The months in words."""
    when, counts = found.every, found.counts
    if not len(counts):
        return "No time of a rating is known."
    most = int(np.argmax(counts))
    return (
        f"Ratings by month, from {when[0]} to {when[-1]}. {when[most]} has the most, "
        f"{counts[most]:,} of {counts.sum():,} ({100 * counts[most] / counts.sum():.0f} %); "
        f"{int((counts == 0).sum()):,} months have none."
    )


def session_bars(found: Sessions) -> tuple[list[str], np.ndarray]:
    """Labels of session sizes ("1", "4–5", "101+"), and how many ratings such sessions hold."""
    ends = [*(low - 1 for low in SIZES[1:]), None]
    labels = [
        f"{low}+" if high is None else f"{low}" if low == high else f"{low}–{high}"
        for low, high in zip(SIZES, ends, strict=True)
    ]
    which = np.searchsorted(SIZES, found.sizes, side="right") - 1
    return labels, np.bincount(which, weights=found.sizes, minlength=len(SIZES)).astype(np.int64)


def session_sizes(found: Sessions, *, dark: bool = False, height: int = 300) -> go.Figure:
    """How many ratings were given in sessions of a size."""
    labels, counts = session_bars(found)
    shares = 100 * counts / max(int(counts.sum()), 1)
    fig = go.Figure(
        go.Bar(
            x=labels,
            y=counts,
            customdata=shares,
            marker={"color": palette(dark).categorical[2], "line": {"width": 0}},
            hovertemplate="sessions of %{x}<br>%{y:,} ratings (%{customdata:.1f} %)<extra></extra>",
        )
    )
    style(
        fig,
        title="Ratings by the size of their session",
        x="ratings in the session",
        y="ratings",
        height=height,
        dark=dark,
        uirevision="sessions",
    )
    fig.update_xaxes(type="category")
    return fig


def session_sizes_alt(found: Sessions) -> str:
    """The sessions in words."""
    if not len(found.sizes):
        return "No time of a rating is known, so there are no sessions."
    return (
        f"{len(found.sizes):,} sessions, in which each rating is at most "
        f"{duration(found.gap)} after the one before. The largest has {found.sizes.max():,} "
        f"ratings; {100 * found.shared:.0f} % of the ratings are not alone in theirs."
    )
