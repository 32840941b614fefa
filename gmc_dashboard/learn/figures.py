"""The lesson's charts: beliefs, eigenvalues, small heatmaps, work shares.

They take arrays of the core and know nothing of Streamlit. Clouds and their ellipses, which can be
taken hold of, are drawn by :mod:`gmc_dashboard.learn.plane`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from gmc_core.lesson import FillPoint
from gmc_dashboard.shared.theme import faint, palette, style

Floats = npt.NDArray[np.float64]

RANGE = (-0.6, 6.8)  # of both axes of the cloud: it does not move from step to step
# Radii at which the ellipse of two dimensions holds half and 95 % of the probability.
HALF, NEARLY_ALL = np.sqrt(2 * np.log(2)), np.sqrt(2 * np.log(20))


def density_figure(
    prior: tuple[float, float],
    posterior: tuple[float, float],
    name: str,
    *,
    dark: bool = False,
) -> go.Figure:
    """Belief about a rating before and after the other is known: (mean, sd) of each."""
    colors = palette(dark)
    figure = go.Figure()
    at = np.linspace(RANGE[0], RANGE[1], 300)
    pairs = (
        (prior, "before any rating", colors.muted, "dash"),
        (posterior, "along this user’s line", colors.contrast, "solid"),
    )
    for (mean, sd), label, colour, dash in pairs:
        height = np.exp(-0.5 * ((at - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
        figure.add_scatter(
            x=at,
            y=height,
            mode="lines",
            name=label,
            line={"color": colour, "width": 2.5, "dash": dash},
            fill="tozeroy",
            fillcolor=faint(colour, 0.1),
            hovertemplate="rating %{x:.2f}<br>density %{y:.2f}",
        )
    style(figure, x=f"rating of {name}", y="density", height=300, uirevision="density", dark=dark)
    figure.update_layout(legend={"x": 0, "xanchor": "left"})  # the toolbar is on the right
    figure.add_vline(x=posterior[0], line={"color": colors.contrast, "width": 1.5, "dash": "dot"})
    figure.update_xaxes(range=RANGE)
    return figure


def thickness_figure(
    curves: Mapping[str, Sequence[float]],
    truth: float,
    current: int,
    *,
    dark: bool = False,
) -> go.Figure:
    """The smallest variance of Σ (across the ellipse) by iteration, a line per method.

    Parameters
    ----------
    curves : method to the values at t = 1 …. truth : the planted one.
    current : iteration now shown, 0 for none.
    """
    colors = palette(dark)
    figure = go.Figure()
    dashes, symbols = ("solid", "dot", "dashdot"), ("circle", "square", "diamond")
    shades = (colors.accent, colors.categorical[3], colors.categorical[2])
    for index, (name, values) in enumerate(curves.items()):
        figure.add_scatter(
            x=list(range(1, len(values) + 1)),
            y=list(values),
            mode="lines+markers",
            name=name,
            line={"color": shades[index], "width": 2.5, "dash": dashes[index]},
            marker={"symbol": symbols[index], "size": 7},
            hovertemplate="iteration %{x}: %{y:.3f}",
        )
    style(
        figure,
        x="iteration",
        y="smallest variance of Σ",
        height=330,
        uirevision="thickness",
        dark=dark,
    )
    ends = 0.7, max(len(values) for values in curves.values()) + 0.3
    _level(figure, truth, f"planted: {truth:.2f}", colors.contrast, ends)
    if current:
        figure.add_vline(x=current, line={"color": colors.muted, "width": 1, "dash": "dot"})
    figure.update_yaxes(rangemode="tozero")
    figure.update_xaxes(dtick=1, range=ends)
    figure.update_layout(legend={"y": -0.25, "yanchor": "top", "x": 0, "xanchor": "left"})
    return figure


def matrix_figure(
    values: Floats,
    names: Sequence[str],
    limit: float,
    *,
    title: str,
    labels: bool | Mapping[str, str] = True,
    bar: bool = True,
    height: int = 430,
    dark: bool = False,
) -> go.Figure:
    """A small symmetric or triangular matrix as a heatmap of squares; colours end at ±limit.

    labels : of the rows: all names, none, or words for some of them. bar : of the colours.
    """
    figure = go.Figure(
        go.Heatmap(
            z=values,
            x=list(names),
            y=list(names),
            zmin=-limit,
            zmax=limit,
            colorscale=palette(dark).scale("diverging"),
            xgap=1,
            ygap=1,
            showscale=bar,
            hovertemplate="%{y}<br>%{x}<br><b>%{z:.2f}</b><extra></extra>",
            colorbar={"thickness": 10, "outlinewidth": 0, "tickformat": ".2~g"},
        )
    )
    style(figure, title=title, height=height, uirevision=title, dark=dark)
    both = {"type": "category", "showgrid": False, "ticks": "", "tickfont": {"size": 10}}
    figure.update_xaxes(**both, showticklabels=False, constrain="domain", constraintoward="left")
    figure.update_yaxes(
        **both, autorange="reversed", showticklabels=bool(labels), dtick=1,
        scaleanchor="x", constrain="domain", constraintoward="top",
    )  # fmt: skip
    if isinstance(labels, Mapping):
        figure.update_yaxes(tickvals=list(labels), ticktext=list(labels.values()), dtick=None)
    return figure


def spectrum_figure(
    learned: Floats | None, truth: Floats, epsilon: float, *, dark: bool = False
) -> go.Figure:
    """Variances along the axes of Σ, largest first: learned, planted, and the floor ε."""
    colors = palette(dark)
    figure = go.Figure()
    series = [(truth, "planted", colors.contrast, "square")]
    if learned is not None:
        series.append((learned, "learned", colors.accent, "circle"))
    floor = 1e-3
    for values, name, colour, symbol in series:
        figure.add_scatter(
            x=list(range(1, len(values) + 1)),
            y=np.maximum(values[::-1], floor),
            customdata=values[::-1],
            mode="lines+markers",
            name=name,
            line={"color": colour, "width": 2},
            marker={"symbol": symbol, "size": 7},
            hovertemplate="axis %{x}: variance %{customdata:.3g}",
        )
    style(
        figure,
        x="axis of Σ, from widest to narrowest",
        y="variance (log scale)",
        height=320,
        uirevision="spectrum",
        dark=dark,
    )
    ticks = [0.001, 0.01, 0.1, 1, 10]
    text = ["≤ .001", ".01", ".1", "1", "10"]
    figure.update_yaxes(type="log", range=[-3.15, 1.2], tickvals=ticks, ticktext=text)
    ends = 0.5, len(truth) + 0.5
    if epsilon > 0:
        _level(figure, epsilon, f"the floor ε = {epsilon:g}", colors.muted, ends)
    figure.update_xaxes(range=ends, tickvals=[1, *range(5, len(truth) + 1, 5)])
    return figure


def fill_figure(points: Sequence[FillPoint], current: float, *, dark: bool = False) -> go.Figure:
    """Error at the unknown entries against the fill ratio."""
    colors = palette(dark)
    figure = go.Figure()
    fill = [100 * point.fill for point in points]
    series = (
        ([p.means for p in points], "the items’ means", colors.muted, "dot", "square"),
        ([p.learned for p in points], "learned (μ, Σ)", colors.accent, "solid", "circle"),
        ([p.best for p in points], "planted (μ, Σ)", colors.contrast, "dash", "diamond"),
    )
    for values, name, colour, dash, symbol in series:
        figure.add_scatter(
            x=fill,
            y=values,
            mode="lines+markers",
            name=name,
            line={"color": colour, "width": 2.5, "dash": dash},
            marker={"symbol": symbol, "size": 7},
            hovertemplate="%{x:.0f} % filled: %{y:.3f}",
        )
    style(
        figure,
        x="per cent of the entries filled",
        y="RMSE of the unknown entries",
        height=320,
        uirevision="fill",
        dark=dark,
    )
    figure.add_vline(x=100 * current, line={"color": colors.muted, "width": 1, "dash": "dot"})
    figure.update_yaxes(rangemode="tozero")
    figure.update_xaxes(range=[0, 95])
    return figure


def work_figure(users: Floats, work: Floats, name: str, *, dark: bool = False) -> go.Figure:
    """Share of the E-step's flops against the share of users, heaviest first."""
    colors = palette(dark)
    figure = go.Figure()
    at = np.unique(np.linspace(0, len(users) - 1, 400).astype(int))
    figure.add_scatter(
        x=100 * users[at],
        y=100 * work[at],
        mode="lines",
        name=name,
        line={"color": colors.accent, "width": 3},
        fill="tozeroy",
        fillcolor=faint(colors.accent, 0.1),
        hovertemplate="the heaviest %{x:.1f} % of users: %{y:.0f} % of the work",
    )
    figure.add_scatter(
        x=[0, 100],
        y=[0, 100],
        mode="lines",
        name="if all had rated equally many",
        line={"color": colors.muted, "width": 1.5, "dash": "dash"},
        hoverinfo="skip",
    )
    style(
        figure,
        x="per cent of users, heaviest first",
        y="per cent of the flops",
        height=320,
        uirevision="work",
        dark=dark,
    )
    figure.update_xaxes(range=[0, 101])  # the label at 100 stands inside
    return figure


def memory_figure(
    points: Sequence[tuple[str, int, float]], *, largest: int, dark: bool = False
) -> go.Figure:
    """Bytes against N: the curve 8 N², and measured or estimated fits as (name, N, bytes).

    largest : the right end of the N axis.
    """
    colors = palette(dark)
    figure = go.Figure()
    items = np.linspace(0, largest, 100)
    figure.add_scatter(
        x=items,
        y=8 * items**2 / 1e6,
        mode="lines",
        name="8 N² bytes: Σ alone",
        line={"color": colors.accent, "width": 2.5},
        hovertemplate="N = %{x:,.0f}: %{y:,.0f} MB",
    )
    for index, (name, size, count) in enumerate(points):
        figure.add_scatter(
            x=[size],
            y=[count / 1e6],
            mode="markers",
            name=name,
            marker={
                "color": (colors.contrast, colors.categorical[2])[index % 2],
                "symbol": ("diamond", "square")[index % 2],
                "size": 12,
            },
            hovertemplate="N = %{x:,}: %{y:,.0f} MB",
        )
    style(figure, x="items N", y="memory, MB", height=320, uirevision="memory", dark=dark)
    figure.update_layout(legend={"y": -0.25, "yanchor": "top", "x": 0, "xanchor": "left"})
    return figure


# Parts ---------------------------------------------------------------------------------


def _level(
    figure: go.Figure, value: float, text: str, colour: str, between: tuple[float, float]
) -> None:
    """A dashed level, named in the legend: anywhere else a curve may cross its name."""
    figure.add_scatter(
        x=list(between),
        y=[value, value],
        mode="lines",
        name=text,
        line={"color": colour, "width": 1.5, "dash": "dash"},
        hoverinfo="skip",
    )
