"""Figures of a sweep over ε, L and seeds, and a sentence for each.

They take the sweep's table (one line per fit: ``epsilon``, ``iterations``, ``seed``,
``nmae``), finished or not; lines without NMAE are not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from gmc_core.gaussian.settings import PAPER_EPSILON
from gmc_core.runs.sensitivity import SensitivityCurve
from gmc_dashboard.shared.theme import Palette, count_axis, faint, palette, style

HEIGHT = 360  # px
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "cross", "pentagon")


def epsilon_figure(
    results: pd.DataFrame,
    epsilons: Sequence[float],
    found: SensitivityCurve | None = None,
    *,
    paper: float = PAPER_EPSILON,
    bias: float | None = None,
    height: int = HEIGHT,
    dark: bool = False,
    revision: str = "sweep",
) -> go.Figure:
    """NMAE against ε: a line per L through the means, a band over the seeds.

    Parameters
    ----------
    results : the sweep's table.
    epsilons : the grid, so that the axis does not move while it fills.
    found : the sensitivity curve; its interval is shaded.
    paper : the paper's ε on this rating scale, marked.
    bias : NMAE of the user and item bias on the same held-out ratings, as a line.
    """
    colors = palette(dark)
    figure = go.Figure()
    table = results.dropna(subset=["nmae"])
    steps = sorted(table["iterations"].unique())
    for index, iterations in enumerate(steps):
        colour = colors.categorical[index % len(colors.categorical)]
        line = table[table["iterations"] == iterations].groupby("epsilon")["nmae"]
        mean, low, high = line.mean(), line.min(), line.max()
        if (line.size() > 1).any():
            figure.add_scatter(
                x=[*mean.index, *mean.index[::-1]],
                y=[*high, *low[::-1]],
                mode="lines",
                fill="toself",
                fillcolor=faint(colour, 0.16),
                line={"width": 0},
                hoverinfo="skip",
                showlegend=False,
                name=f"L = {iterations}, range over seeds",
            )
        figure.add_scatter(
            x=list(mean.index),
            y=list(mean),
            mode="lines+markers",
            name=f"L = {iterations}",
            line={"color": colour, "width": 2.5},
            customdata=np.column_stack([low, high, line.size()]),
            hovertemplate=(
                "ε = %{x:.3g}<br>NMAE %{y:.4f}<br>seeds: %{customdata[2]}, from "
                "%{customdata[0]:.4f} to %{customdata[1]:.4f}"
            ),
        )
    style(
        figure,
        x="ε (log scale)",
        y="NMAE",
        height=height,
        uirevision=revision,
        dark=dark,
        legend=len(steps) > 1 or bias is not None,
    )
    # Below the axis: the top belongs to the picture's tools.
    figure.update_layout(legend={"y": -0.16, "yanchor": "top"})
    _epsilon_axis(figure, epsilons)
    _mark_paper(figure, colors, paper)
    if bias is not None:
        figure.add_hline(
            y=bias,
            line={"color": colors.muted, "width": 1.5, "dash": "dash"},
            # In the legend: beside the line there is no place that no curve may cross.
            name=f"user and item bias {bias:.4f}",
            showlegend=True,
        )
    if found is not None and found.high > found.low:
        figure.add_vrect(
            x0=found.low,
            x1=found.high,
            fillcolor=colors.muted,
            opacity=0.13,
            line_width=0,
            layer="below",
        )
    return figure


def iterations_figure(
    curves: pd.DataFrame,
    *,
    iterations: int,
    paper: float = PAPER_EPSILON,
    height: int = HEIGHT,
    dark: bool = False,
    revision: str = "sweep",
) -> go.Figure:
    """NMAE by iteration, one line per ε: the mean over the seeds.

    Parameters
    ----------
    curves : one line per iteration of a fit: ``epsilon``, ``seed``, ``iteration``,
        ``nmae``.
    iterations : the largest L, the right end of the x axis.
    """
    colors = palette(dark)
    figure = go.Figure()
    table = curves.dropna(subset=["nmae"])
    epsilons = sorted(table["epsilon"].unique())
    shades = _shades(len(epsilons), colors)
    for index, (epsilon, colour) in enumerate(zip(epsilons, shades, strict=True)):
        mean = _mean_curve(table[table["epsilon"] == epsilon])
        marked = math.isclose(epsilon, paper, rel_tol=0.01)
        figure.add_scatter(
            x=list(mean.index),
            y=list(mean),
            mode="lines+markers",
            marker={"symbol": SYMBOLS[index % len(SYMBOLS)], "size": 7},
            name=f"ε = {epsilon:.3g}" + (" (paper)" if marked else ""),
            line={"color": colour, "width": 3 if marked else 2},
            hovertemplate="%{y:.4f}",
        )
    style(
        figure, x="iteration", y="NMAE", height=height, uirevision=revision, dark=dark, legend=True
    )
    figure.update_layout(
        hovermode="x unified",
        legend={"orientation": "v", "x": 1.01, "xanchor": "left", "y": 1, "yanchor": "top"},
    )
    count_axis(figure, iterations)
    return figure


def heat_figure(
    results: pd.DataFrame,
    epsilons: Sequence[float],
    steps: Sequence[int],
    found: SensitivityCurve | None = None,
    *,
    dark: bool = False,
    revision: str = "sweep",
) -> go.Figure:
    """Mean NMAE of every cell ε × L, with its value; the best is framed."""
    colors = palette(dark)
    means = results.dropna(subset=["nmae"]).groupby(["iterations", "epsilon"])["nmae"].mean()
    values = np.full((len(steps), len(epsilons)), np.nan)
    for iterations, epsilon, mean in means.reset_index().itertuples(index=False):
        row, column = _position(steps, iterations), _position(epsilons, epsilon)
        if row is not None and column is not None:
            values[row, column] = mean
    figure = go.Figure(
        go.Heatmap(
            z=values,
            x=[f"{value:.3g}" for value in epsilons],
            y=[str(value) for value in steps],
            colorscale=colors.scale(),
            texttemplate="%{z:.4f}" if len(epsilons) <= 10 else None,
            hovertemplate="ε = %{x}, L = %{y}<br>NMAE %{z:.4f}<extra></extra>",
            hoverongaps=False,
            xgap=2,
            ygap=2,
            colorbar={
                "title": {"text": "NMAE", "font": {"color": colors.muted, "size": 13}},
                "thickness": 12,
                "tickfont": {"color": colors.muted, "size": 12},
            },
        )
    )
    height = 140 + 44 * max(len(steps), 2)
    style(figure, x="ε", y="L", height=height, uirevision=revision, dark=dark, legend=False)
    figure.update_xaxes(type="category", showgrid=False, range=[-0.5, len(epsilons) - 0.5])
    figure.update_yaxes(type="category", showgrid=False, range=[-0.5, len(steps) - 0.5])
    if found is not None:
        column = _position(epsilons, found.best.epsilon)
        row = _position(steps, found.best.iterations)
        if row is not None and column is not None:
            figure.add_shape(
                type="rect",
                x0=column - 0.48,
                x1=column + 0.48,
                y0=row - 0.47,
                y1=row + 0.47,
                line={"color": colors.contrast, "width": 3},
            )
    return figure


def describe_epsilon(results: pd.DataFrame) -> str:
    """Text alternative of :func:`epsilon_figure` and :func:`heat_figure`."""
    means = results.dropna(subset=["nmae"]).groupby(["iterations", "epsilon"])["nmae"].mean()
    if means.empty:
        return "NMAE against ε: no fit has finished yet."
    lines = [
        f"L = {iterations}: "
        + ", ".join(
            f"{value:.4f} at ε = {epsilon:.3g}"
            for epsilon, value in zip(group.index.get_level_values("epsilon"), group, strict=True)
        )
        for iterations, group in means.groupby(level="iterations")
    ]
    return "Mean NMAE against ε. " + "; ".join(lines) + "."


def describe_iterations(curves: pd.DataFrame) -> str:
    """Text alternative of :func:`iterations_figure`."""
    table = curves.dropna(subset=["nmae"])
    if table.empty:
        return "NMAE by iteration for each ε: no iteration has finished yet."
    parts = []
    for epsilon, group in table.groupby("epsilon"):
        mean = _mean_curve(group)
        parts.append(
            f"ε = {epsilon:.3g}: smallest {mean.min():.4f} at iteration {mean.idxmin()}, "
            f"{mean.iloc[-1]:.4f} at iteration {mean.index[-1]}"
        )
    return "NMAE by iteration for each ε. " + "; ".join(parts) + "."


def _mean_curve(curves: pd.DataFrame) -> pd.Series:
    """Mean by iteration, where every seed that has begun has arrived."""
    by_iteration = curves.groupby("iteration")["nmae"]
    return by_iteration.mean()[by_iteration.size() == curves["seed"].nunique()]


def _epsilon_axis(figure: go.Figure, epsilons: Sequence[float]) -> None:
    """A log axis over the grid, ticks at the grid's values while there is room."""
    ends = np.log10([min(epsilons), max(epsilons)])
    room = max(0.04 * (ends[1] - ends[0]), 0.05)
    figure.update_xaxes(type="log", range=[ends[0] - room, ends[1] + room])
    every = math.ceil(len(epsilons) / 9)
    shown = list(epsilons)[::every]
    figure.update_xaxes(tickvals=shown, ticktext=[f"{value:.2g}" for value in shown])


def _mark_paper(figure: go.Figure, colors: Palette, paper: float) -> None:
    low, high = figure.layout.xaxis.range
    if not low <= math.log10(paper) <= high:
        return
    figure.add_vline(
        x=paper,
        line={"color": colors.muted, "width": 1.5, "dash": "dot"},
    )
    figure.add_annotation(
        x=math.log10(paper),  # annotations, unlike shapes, take the logarithm
        y=1,
        yref="paper",
        # Inside: above the field a projector has the legend, and here the curves are lowest.
        yanchor="top",
        xanchor="left" if math.log10(paper) < (low + high) / 2 else "right",
        text=f"the paper’s ε = {paper:g}",
        showarrow=False,
        font={"color": colors.muted, "size": 12},
    )


def _shades(count: int, colors: Palette) -> list[str]:
    """Colours for ordered values: the darker half of the scale, far from the background."""
    usable = colors.sequential[3:]
    return [usable[round(i * (len(usable) - 1) / max(count - 1, 1))] for i in range(count)]


def _position(values: Sequence[float], wanted: float) -> int | None:
    for index, value in enumerate(values):
        if math.isclose(value, wanted, rel_tol=1e-6):
            return index
    return None
