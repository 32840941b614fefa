"""Figures of a comparison of methods, and a sentence for each."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Literal

import plotly.graph_objects as go

from gmc_core.comparison.compare import Difference, Row
from gmc_core.protocol.metrics import PairedDifference
from gmc_dashboard.shared.theme import error_bars, palette, style
from gmc_dashboard.shared.units import signed

Metric = Literal["nmae", "rmse"]
METRIC_LABELS: dict[Metric, str] = {"nmae": "NMAE", "rmse": "RMSE"}
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "cross", "pentagon")
_BELOW_TITLE = 68  # px, from the axis to below its title of two lines
_LINE = 42  # pixels a method takes
PROJECTED_HEIGHT = 330  # pixels; 720 less what stands above


def difference_of(row: Row, metric: Metric) -> Difference | None:
    """A row's difference to the reference by one metric."""
    return row.nmae if metric == "nmae" else row.rmse


def differences_figure(
    rows: Sequence[Row],
    reference: str,
    metric: Metric = "nmae",
    *,
    dark: bool = False,
    revision: str = "compare",
    large: bool = False,
) -> go.Figure:
    """A dot and two 95 % intervals a method: its error minus the reference's.

    The thick interval is over the held-out ratings, the thin one over the splits.

    Parameters
    ----------
    rows : in the order of the table; those without a difference are not drawn.
    reference : its label. large : for a projector, where the page shows all in one screen.
    """
    colors = palette(dark)
    figure = go.Figure()
    drawn = [(row, difference_of(row, metric)) for row in rows]
    found = [(_name(row), value) for row, value in drawn if value is not None]
    over_splits = [(name, value.splits) for name, value in found if value.splits is not None]
    if over_splits:
        figure.add_scatter(
            x=[value.mean for _, value in over_splits],
            y=[name for name, _ in over_splits],
            error_x=error_bars(
                [(v.mean, v.low, v.high) for _, v in over_splits], colors.muted, 1.5, 7
            ),
            mode="markers",
            marker={"color": colors.muted, "symbol": "line-ns-open", "size": 11},
            name="over splits",
            customdata=[_signs(value) for _, value in over_splits],
            hovertemplate="%{y}: %{customdata[0]}, over splits %{customdata[1]} … "
            "%{customdata[2]}<extra></extra>",
        )
    figure.add_scatter(
        x=[value.ratings.mean for _, value in found],
        y=[name for name, _ in found],
        error_x=error_bars(
            [(v.ratings.mean, v.ratings.low, v.ratings.high) for _, v in found],
            colors.accent, 4, 0,
        ),
        mode="markers",
        marker={"color": colors.accent, "size": 11},
        name="over held-out ratings",
        customdata=[_signs(value.ratings) for _, value in found],
        hovertemplate="%{y}: %{customdata[0]}, over ratings %{customdata[1]} … "
        "%{customdata[2]}<extra></extra>",
    )  # fmt: skip
    style(
        figure,
        x=f"{METRIC_LABELS[metric]} minus that of<br>{html.escape(reference, quote=False)}",
        height=160 + _LINE * max(len(found), 2),
        uirevision=revision,
        dark=dark,
        legend=bool(over_splits),
    )
    figure.update_layout(
        legend={
            **{"orientation": "h", "x": 0, "xanchor": "left", "yanchor": "top"},
            # Below both lines of the axis' title, in heights of the plot.
            "y": -_BELOW_TITLE / (_BELOW_TITLE + _LINE * max(len(found), 2)),
        }
    )
    if large:
        figure.update_layout(height=PROJECTED_HEIGHT)
    figure.update_xaxes(tickformat=".3f")  # with "+" zero would have a sign, too
    names = [name for name, _ in found]
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=names[::-1])
    figure.add_vline(x=0, line={"color": colors.contrast, "width": 1.5, "dash": "dash"})
    return figure


def _signs(value: PairedDifference) -> tuple[str, str, str]:
    """Middle and ends, as a pointer's label shows them."""
    return signed(value.mean, 4), signed(value.low, 4), signed(value.high, 4)


def describe_differences(rows: Sequence[Row], reference: str, metric: Metric = "nmae") -> str:
    """The figure in words."""
    parts = []
    for row in rows:
        value = difference_of(row, metric)
        if value is not None:
            mean, low, high = _signs(value.ratings)
            text = f"{row.label} {mean} (from {low} to {high}"
            if value.splits is not None:
                _, low, high = _signs(value.splits)
                text += f"; over splits from {low} to {high}"
            parts.append(f"{text})")
    if not parts:
        return f"Differences of {METRIC_LABELS[metric]}: no method has finished a split yet."
    return (
        f"{METRIC_LABELS[metric]} minus that of {reference}, with 95 % intervals: "
        f"{'; '.join(parts)}."
    )


def cost_figure(
    rows: Sequence[Row],
    metric: Metric = "nmae",
    *,
    cpu: bool = False,
    dark: bool = False,
    revision: str = "compare",
    large: bool = False,
) -> go.Figure:
    """Error against time on a log axis, a point a method; below and left is better.

    cpu : processor time of all cores instead of wall time. large : for a projector, with the
        methods' names beside their points instead of a legend.
    """
    colors = palette(dark)
    figure = go.Figure()
    for index, row in enumerate(rows):
        point = _point(row, metric, cpu)
        if point is not None:
            figure.add_scatter(
                x=[point[0]],
                y=[point[1]],
                mode="markers",
                name=_name(row),
                marker={
                    "color": colors.categorical[index % len(colors.categorical)],
                    "symbol": SYMBOLS[index % len(SYMBOLS)],
                    "size": 13,
                },
                hovertemplate="%{y:.4f} in %{x:.3g} s",
            )
    style(
        figure,
        x="processor seconds a split (log scale)" if cpu else "seconds a split (log scale)",
        y=METRIC_LABELS[metric],
        height=130 + _LINE * max(len(rows), 5),
        uirevision=revision,
        dark=dark,
        legend=True,
        log_x=True,
    )
    figure.update_layout(
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": -0.2, "yanchor": "top"}
    )
    if large:
        _names_at_points(figure)
    if len(figure.data) == 1:  # Plotly would show errors below 0 around a single point
        error = figure.data[0].y[0]
        figure.update_yaxes(range=[0.9 * error, 1.1 * error])
    return figure


def _names_at_points(figure: go.Figure) -> None:
    """The name of each point towards the middle of its picture, where there is room for it."""
    seconds = [trace.x[0] for trace in figure.data]
    for trace in figure.data:
        middle = math.sqrt(min(seconds) * max(seconds))  # on a log axis
        side = "right" if trace.x[0] <= middle else "left"
        trace.update(
            mode="markers+text",
            text=[f" {trace.name} "],
            textposition=f"middle {side}",
            textfont={"color": trace.marker.color},
            cliponaxis=False,
        )
    figure.update_layout(showlegend=False, height=PROJECTED_HEIGHT)


def describe_cost(rows: Sequence[Row], metric: Metric = "nmae", *, cpu: bool = False) -> str:
    """The figure in words."""
    points = [(row.label, _point(row, metric, cpu)) for row in rows]
    parts = [f"{name} {p[1]:.4f} in {p[0]:.3g} s" for name, p in points if p is not None]
    kind = "processor time" if cpu else "time"
    if not parts:
        return f"{METRIC_LABELS[metric]} against {kind}: no method has finished a split yet."
    return f"{METRIC_LABELS[metric]} against {kind} a split: {'; '.join(parts)}."


def _point(row: Row, metric: Metric, cpu: bool) -> tuple[float, float] | None:
    seconds = row.cpu_seconds if cpu else row.seconds
    if row.scores is None or seconds is None:
        return None
    # A log axis has no 0; no clock tells less than a tenth of a millisecond here.
    return max(seconds, 1e-4), row.scores.nmae if metric == "nmae" else row.scores.rmse


def _name(row: Row) -> str:
    return html.escape(row.label, quote=False)
