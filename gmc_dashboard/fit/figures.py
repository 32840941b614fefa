"""Figures of a fit, from its iteration records, and a sentence for each.

A run has one curve per repetition: thin lines, and the mean in front of them once
there are several. The x axis always spans 0 … L, so that nothing moves while the
curves grow, and ``uirevision`` keeps a reader's zoom.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from gmc_core.fitting.fit import IterationRecord
from gmc_dashboard.shared.theme import Palette, count_axis, palette, style

Curve = Sequence[IterationRecord]

# Lines of several runs differ in their marks too, for those who do not tell colours apart.
MARKERS = ("square", "diamond", "triangle-up", "x", "star")
SIGNS = ("●", "■", "◆", "▲", "✖", "★")  # the same in a text, after that of the first line
FAINT = 0.4  # opacity of the lines that are not in focus
REFERENCE_DASHES = ("dot", "dash", "dashdot", "longdash", "longdashdot")
HEIGHT, TEXT = 380, 12  # px, of the figure of NMAE and of its labels
AROUND = 76  # px of it that are not the field: axis title, ticks, margins
LEAST_GAP = 0.07  # between two labels, as a share of the axis


def nmae_figure(
    curves: Sequence[Curve],
    references: Mapping[str, float] | None = None,
    *,
    iterations: int,
    others: Mapping[str, Sequence[Curve]] | None = None,
    own: str = "",
    within: Sequence[float] = (),
    focus: str = "",
    height: int = HEIGHT,
    text: int = TEXT,
    dark: bool = False,
    revision: str = "fit",
) -> go.Figure:
    """NMAE per iteration, with labelled reference lines.

    Parameters
    ----------
    curves : the records of each repetition so far; empty ones are allowed.
    references : NMAE by the label to show: baselines, and the paper's figure.
    iterations : the right end of the x axis.
    others : by label, the records of other runs on the same held-out ratings; their lines
        have colours of their own and their labels at the end. own : the label of ``curves``,
        beside others.
    within : errors that the axis reaches in any case, so that it stands while lines are added.
    focus : the label of the line that is spoken of; the others are faint. "" for none.
    height, text : px, of the figure and of the letters with which its labels will be shown.
    dark : the theme. revision : changes when a reader's zoom should be forgotten.
    """
    figure = go.Figure()
    colors = palette(dark)
    _add_curves(figure, curves, "nmae", "NMAE", colors.accent)
    if focus and own != focus:
        figure.update_traces(opacity=FAINT)
    labels = [*_end_label(curves, own, colors.accent)]
    for index, (label, lines) in enumerate((others or {}).items()):
        _, colour = mark(1 + index, dark=dark)
        steps, means = mean_curve(lines, "nmae")
        figure.add_scatter(
            x=steps,
            y=means,
            name=html.escape(label, quote=False),
            mode="lines+markers",
            line={"color": colour, "width": 2.5},
            opacity=FAINT if focus and label != focus else 1,
            marker={"symbol": MARKERS[index % len(MARKERS)], "size": 7},
            hovertemplate="%{y:.5g}",
        )
        labels += _end_label(lines, label, colour)
    _finish(figure, "NMAE", iterations, dark, revision, height=height, legend=False)
    every = [*curves, *(curve for lines in (others or {}).values() for curve in lines)]
    _add_references(figure, references or {}, iterations, colors)
    labels += [(label, value, colors.muted) for label, value in (references or {}).items()]
    gap = max(1.15 * text / (height - AROUND), LEAST_GAP)
    _label_right(figure, labels, [*_points(every, "nmae"), *within], gap, focus)
    return figure


def mark(index: int, *, dark: bool = False) -> tuple[str, str]:
    """Sign and colour of a line of :func:`nmae_figure`; index : 0 for the first, 1 … for others."""
    colors = palette(dark)
    if index == 0:
        return SIGNS[0], colors.accent
    return (
        SIGNS[1 + (index - 1) % len(MARKERS)],
        colors.categorical[1 + (index - 1) % (len(colors.categorical) - 1)],
    )


def errors_figure(
    curves: Sequence[Curve], *, iterations: int, dark: bool = False, revision: str = "fit"
) -> go.Figure:
    """RMSE and MAE per iteration, in ratings."""
    figure = go.Figure()
    colors = palette(dark)
    _add_curves(figure, curves, "rmse", "RMSE", colors.accent)
    _add_curves(figure, curves, "mae", "MAE", colors.contrast)
    return _finish(figure, "error, in ratings", iterations, dark, revision)


def objective_figure(
    curves: Sequence[Curve], *, iterations: int, dark: bool = False, revision: str = "fit"
) -> go.Figure:
    """Log-likelihood of the known ratings, and the MAP objectives where computed."""
    labels = {
        "log_likelihood": "log-likelihood of the known ratings",
        "map_objective": "MAP objective, log p(f̃ | μ, Σ)",
        "penalised_objective": "MAP objective − (Mε/2) tr Σ⁻¹",
    }
    shown = [name for name in labels if name == "log_likelihood" or _points(curves, name)]
    rows = len(shown)
    figure = make_subplots(
        rows=rows, cols=1, shared_xaxes=True, subplot_titles=[labels[name] for name in shown]
    )
    for row, name in enumerate(shown, start=1):
        _add_curves(figure, curves, name, labels[name], palette(dark).categorical[row - 1], row)
    _finish(figure, None, iterations, dark, revision, legend=False)
    figure.update_layout(margin_t=28)
    figure.update_annotations(font={"size": 13, "color": palette(dark).muted})
    figure.update_xaxes(title_text=None)
    figure.update_xaxes(title_text="iteration", row=rows, col=1)
    figure.update_yaxes(exponentformat="SI", nticks=10 // rows)
    return figure


def change_figure(
    curves: Sequence[Curve], *, iterations: int, dark: bool = False, revision: str = "fit"
) -> go.Figure:
    """Relative change of Σ and largest change of a prediction, on a log scale."""
    figure = go.Figure()
    colors = palette(dark)
    _add_curves(figure, curves, "covariance_change", "Σ (relative)", colors.accent)
    _add_curves(figure, curves, "prediction_change", "predictions (largest)", colors.contrast)
    _finish(figure, "change", iterations, dark, revision)
    figure.update_yaxes(type="log", dtick=1, exponentformat="none")
    return figure


def seconds_figure(
    curves: Sequence[Curve], *, iterations: int, dark: bool = False, revision: str = "fit"
) -> go.Figure:
    """Wall time per iteration, stacked by step; the mean over repetitions."""
    figure = go.Figure()
    colors = palette(dark)
    for name, label, colour in (
        ("m_seconds", "M-step", colors.contrast),
        ("e_seconds", "E-step", colors.accent),
        ("evaluation_seconds", "evaluation", colors.categorical[2]),
    ):
        steps, means = _mean_by_iteration(curves, name)
        figure.add_bar(
            x=steps,
            y=means,
            name=label,
            marker_color=colour,
            hovertemplate="%{y:.3g} s",
        )
    figure.update_layout(barmode="stack")
    return _finish(figure, "seconds", iterations, dark, revision)


def mean_curve(curves: Sequence[Curve], name: str) -> tuple[list[int], list[float]]:
    """(iterations, means) over the repetitions that are furthest on.

    A repetition still on its way is left out, so the mean never changes the set
    of splits that it is taken over in the middle of the line.
    """
    started = [_values(curve, name) for curve in curves if curve]
    furthest = max((max(values, default=0) for values in started), default=0)
    complete = [values for values in started if max(values, default=0) == furthest > 0]
    if not complete:
        return [], []
    shared = sorted(set.intersection(*(set(values) for values in complete)))
    return shared, [float(np.mean([values[t] for values in complete])) for t in shared]


def describe_nmae(
    curves: Sequence[Curve],
    references: Mapping[str, float] | None = None,
    others: Mapping[str, Sequence[Curve]] | None = None,
) -> str:
    """Text alternative of :func:`nmae_figure`."""
    steps, means = mean_curve(curves, "nmae")
    if not steps:
        return "NMAE by iteration: no iteration has finished yet."
    lowest = int(np.argmin(means))
    text = (
        f"NMAE by iteration, {_count(curves)}: {means[0]:.4f} at iteration {steps[0]}, "
        f"{means[-1]:.4f} at iteration {steps[-1]}, smallest {means[lowest]:.4f} at iteration "
        f"{steps[lowest]}."
    )
    for label, own in (others or {}).items():
        ends = mean_curve(own, "nmae")
        if ends[0]:
            text += f" {label}: {ends[1][-1]:.4f} at iteration {ends[0][-1]}."
    lines = ", ".join(f"{label} {value:.4f}" for label, value in (references or {}).items())
    return f"{text} Reference lines: {lines}." if lines else text


def describe(curves: Sequence[Curve], names: Mapping[str, str]) -> str:
    """Text alternative of the other figures: first and last value of each named quantity."""
    parts = []
    for name, label in names.items():
        steps, means = mean_curve(curves, name)
        if steps:
            parts.append(
                f"{label} from {means[0]:.4g} at iteration {steps[0]} to {means[-1]:.4g} "
                f"at iteration {steps[-1]}"
            )
    return "; ".join(parts) + "." if parts else "No iteration has finished yet."


def _finish(
    figure: go.Figure,
    y: str | None,
    iterations: int,
    dark: bool,
    revision: str,
    *,
    height: int = 320,
    legend: bool | None = True,
) -> go.Figure:
    """The common look and an x axis that does not move while curves grow."""
    style(
        figure,
        x="iteration",
        y=y,
        height=height,
        uirevision=revision,
        dark=dark,
        legend=legend,
    )
    figure.update_layout(hovermode="x unified")
    count_axis(figure, iterations)
    return figure


def _add_curves(
    figure: go.Figure,
    curves: Sequence[Curve],
    name: str,
    label: str,
    colour: str,
    row: int | None = None,
) -> None:
    place = {} if row is None else {"row": row, "col": 1}
    several = sum(bool(curve) for curve in curves) > 1
    for index, curve in enumerate(curves):
        values = _values(curve, name)
        figure.add_scatter(
            x=list(values),
            y=list(values.values()),
            name=f"{label}, repetition {index + 1}" if several else label,
            mode="lines" if several else "lines+markers",
            line={"color": colour, "width": 1 if several else 2.5},
            opacity=0.55 if several else 1,
            showlegend=not several,
            hovertemplate="%{y:.5g}",
            **place,
        )
    if several:
        steps, means = mean_curve(curves, name)
        figure.add_scatter(
            x=steps,
            y=means,
            name=f"{label}, mean",
            mode="lines+markers",
            line={"color": colour, "width": 2.5},
            hovertemplate="%{y:.5g}",
            **place,
        )


def _end_label(
    curves: Sequence[Curve], label: str, colour: str
) -> Iterator[tuple[str, float, str]]:
    """The label of a line at its last value; nothing for a line without points or name."""
    _, means = mean_curve(curves, "nmae")
    if means and label:
        yield label, means[-1], colour


def _add_references(
    figure: go.Figure, references: Mapping[str, float], iterations: int, colors: Palette
) -> None:
    """Horizontal lines."""
    ordered = sorted(references.items(), key=lambda item: item[1])
    for index, (label, value) in enumerate(ordered):
        figure.add_scatter(
            x=[0, max(iterations, 1) + 0.5],
            y=[value, value],
            name=label,
            mode="lines",
            line={
                "color": colors.muted,
                "width": 1.5,
                "dash": REFERENCE_DASHES[index % len(REFERENCE_DASHES)],
            },
            showlegend=False,
            hoverinfo="skip",
        )


def _label_right(
    figure: go.Figure,
    labels: Sequence[tuple[str, float, str]],
    points: Sequence[float],
    gap: float,
    focus: str,
) -> None:
    """Names of lines (label, value, colour) at the right end, without touching each other.

    gap : between two of them, as a share of the axis.
    """
    ordered = sorted(labels, key=lambda item: item[1])
    low, high = _span([*(value for _, value, _ in ordered), *points])
    places = spread([value for _, value, _ in ordered], gap * (high - low))
    for (label, value, colour), place in zip(ordered, places, strict=True):
        text = f"{html.escape(label, quote=False)} {value:.4f}"
        figure.add_annotation(
            x=1.01,
            xref="paper",
            y=place,
            text=f"<b>{text}</b>" if focus and label == focus else text,
            showarrow=False,
            xanchor="left",
            font={"size": TEXT, "color": colour},
        )
    if ordered:
        figure.update_layout(margin_r=8 + 7 * max(len(label) + 7 for label, _, _ in ordered))
        low, high = _span([low, high, *places])
    figure.update_yaxes(range=[low, high])


def spread(values: Sequence[float], gap: float) -> list[float]:
    """Positions near ascending ``values``, at least ``gap`` apart, for labels."""
    groups: list[list[float]] = []  # [mean of the ideal starts, size]
    for value in values:
        groups.append([value, 1])
        while len(groups) > 1 and _end(groups[-2], gap) > _start(groups[-1], gap) - gap + 1e-12:
            mean, size = groups.pop()
            before, count = groups[-1]
            groups[-1] = [(before * count + mean * size) / (count + size), count + size]
    return [_start(group, gap) + gap * index for group in groups for index in range(int(group[1]))]


def _start(group: list[float], gap: float) -> float:
    return group[0] - gap * (group[1] - 1) / 2


def _end(group: list[float], gap: float) -> float:
    return group[0] + gap * (group[1] - 1) / 2


def _span(values: Sequence[float]) -> tuple[float, float]:
    """A range with 6 % of room at both ends."""
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or 0.01
    return low - room, high + room


def _values(curve: Curve, name: str) -> dict[int, float]:
    """Value by iteration, without the missing ones."""
    pairs = ((record.iteration, getattr(record, name)) for record in curve)
    return {t: value for t, value in pairs if value is not None}


def _points(curves: Sequence[Curve], name: str) -> list[float]:
    return [value for curve in curves for value in _values(curve, name).values()]


def _mean_by_iteration(curves: Sequence[Curve], name: str) -> tuple[list[int], list[float]]:
    by_iteration: dict[int, list[float]] = {}
    for curve in curves:
        for t, value in _values(curve, name).items():
            by_iteration.setdefault(t, []).append(value)
    steps = sorted(by_iteration)
    return steps, [float(np.mean(by_iteration[t])) for t in steps]


def _count(curves: Sequence[Curve]) -> str:
    number = sum(bool(curve) for curve in curves)
    return "one repetition" if number == 1 else f"mean of up to {number} repetitions"
