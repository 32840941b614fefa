"""Figures of a bundle, drawn with Matplotlib (the extra ``figures``): vector and pixels.

Every figure is drawn through :func:`rendered`, which holds the settings of Matplotlib meanwhile:
they belong to the whole process, and a dashboard has many visitors.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from gmc_core.comparison.compare import Row
from gmc_core.runs.bundle.contents import Correlations, Curve, Sensitivity
from gmc_core.runs.bundle.latex import visible

ENDINGS = ("pdf", "svg", "png")
PIXELS = 300  # per inch, of the PNG
WIDTH, HEIGHT = 5.2, 3.2  # inches: a column of a paper, or half a slide
TEXT = 9  # points
FONT = "DejaVu Sans"  # comes with Matplotlib
# Okabe and Ito's palette, which colour-blind readers can tell apart.
LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES = ("--", ":", "-.", (0, (6, 2)), (0, (1, 3)))
GREY = "#555555"
DIVERGING = ("#084a7f", "#5a9bcb", "#f4f4f4", "#e08e52", "#8a3f08")
_SETTINGS: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": [FONT, "Arial", "Helvetica", "sans-serif"],
    "font.size": TEXT,
    "axes.titlesize": TEXT,
    "axes.labelsize": TEXT,
    "xtick.labelsize": TEXT - 1,
    "ytick.labelsize": TEXT - 1,
    "legend.fontsize": TEXT - 1,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.unicode_minus": True,
    # Titles may hold dollar signs, which are no formulas.
    "text.parse_math": False,
    "text.usetex": False,
    "pdf.fonttype": 42,  # TrueType fonts, embedded: journals refuse Type 3
    "svg.fonttype": "none",  # text stays text: it can be searched and edited
    "svg.hashsalt": "gmc",
    "path.simplify": False,
}
_LOCK = threading.Lock()


def rendered(draw: Callable[[], Figure], title: str) -> dict[str, bytes]:
    """A figure as PDF, SVG and PNG, by ending; the same figure gives the same bytes.

    title : for the files' metadata, which hold no date.
    """
    title = visible(title)
    with _LOCK, matplotlib.rc_context({**matplotlib.rcParamsDefault, **_SETTINGS}):
        figure = draw()
        FigureCanvasAgg(figure)
        about: dict[str, dict[str, Any]] = {
            "pdf": {"Title": title, "CreationDate": None, "Creator": None, "Producer": None},
            "svg": {"Title": title, "Date": None, "Creator": None},
            "png": {"Title": title, "Software": None},
        }
        files = {}
        for ending in ENDINGS:
            file = io.BytesIO()
            figure.savefig(
                file,
                format=ending,
                dpi=PIXELS,
                metadata=about[ending],
                bbox_inches="tight",
                pad_inches=0.04,
                facecolor="white",
            )
            files[ending] = file.getvalue()
        return files


# The figures ------------------------------------------------------------------------


def curve_figure(curve: Curve) -> Figure:
    """A quantity against iterations: repetitions (thin), their mean, baselines (dashed)."""
    figure, axes = _axes()
    several = len(curve.repetitions) > 1
    if several:
        for points in curve.repetitions:
            axes.plot(*_columns(points), color=LINES[0], linewidth=0.7, alpha=0.45)
    steps, means = _columns(curve.mean)
    axes.plot(steps, means, color=LINES[0], linewidth=1.8, marker="o", markersize=3.5, zorder=3)
    axes.set_xlabel("iteration")
    axes.set_ylabel(curve.quantity)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    labels = []
    if means:
        what = f"mean of {len(curve.repetitions)} repetitions" if several else "this run"
        value = f" {means[-1]:.4f}" if curve.references or curve.quantity == "NMAE" else ""
        labels.append((f"{what}{value}", means[-1], LINES[0]))
    _lines_and_labels(axes, curve.references, labels)
    return figure


def sensitivity_figure(shown: Sensitivity) -> Figure:
    """Mean NMAE against ε with standard errors, a line for each L; the interval around the best."""
    found = shown.found
    figure, axes = _axes()
    lengths = sorted({cell.iterations for cell in found.cells})
    labels = []
    for index, length in enumerate(lengths):
        cells, colour = found.at(length), LINES[index % len(LINES)]
        axes.errorbar(
            [cell.epsilon for cell in cells],
            [cell.nmae for cell in cells],
            yerr=[cell.se if np.isfinite(cell.se) else 0.0 for cell in cells],
            color=colour,
            linewidth=1.6,
            marker="o",
            markersize=3.5,
            elinewidth=0.9,
            capsize=2,
        )
        labels.append((f"L = {length}", cells[-1].nmae, colour))
    axes.set_xscale("log")
    _plain_ticks(axes, sorted({cell.epsilon for cell in found.cells}))
    if found.high > found.low:
        axes.axvspan(found.low, found.high, color="#000000", alpha=0.07, linewidth=0, zorder=0)
    best = found.best
    axes.plot(
        [best.epsilon], [best.nmae], marker="o", markersize=9, fillstyle="none", color="black",
        markeredgewidth=1.1, zorder=4,
    )  # fmt: skip
    if shown.epsilon is not None:
        axes.axvline(shown.epsilon, color=GREY, linewidth=0.9, linestyle=":")
        axes.annotate(
            f"ε = {shown.epsilon:.3g}, this run",
            (shown.epsilon, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            va="bottom",
            color=GREY,
            fontsize=TEXT - 1,
        )
    axes.set_xlabel("ε (log scale)")
    axes.set_ylabel("NMAE")
    _lines_and_labels(axes, shown.references, labels)
    return figure


def correlations_figure(shown: Correlations) -> Figure:
    """A heatmap of correlations; the diagonal, which is 1, is grey."""
    n = len(shown.titles)
    side = 1.2 + 0.17 * n
    figure = Figure(figsize=(side + 1.1, side))
    axes = figure.add_subplot()
    matrix = np.array(shown.matrix, dtype=np.float64)
    off = np.abs(matrix[~np.eye(n, dtype=bool)])
    off = off[np.isfinite(off)]
    limit = max(float(np.percentile(off, 99)), 1e-6) if len(off) else 1.0
    np.fill_diagonal(matrix, np.nan)
    colours = LinearSegmentedColormap.from_list("signed", DIVERGING).with_extremes(bad="#bbbbbb")
    edges = np.arange(n + 1) - 0.5
    mesh = axes.pcolormesh(
        edges, edges, np.ma.masked_invalid(matrix), cmap=colours, vmin=-limit, vmax=limit,
        edgecolors="face", linewidth=0.15,
    )  # fmt: skip
    axes.set_aspect("equal")
    axes.invert_yaxis()
    labels = [
        label(title, identity) for title, identity in zip(shown.titles, shown.ids, strict=True)
    ]
    axes.set_xticks(range(n), labels, rotation=90)
    axes.set_yticks(range(n), labels)
    axes.tick_params(length=0, labelsize=TEXT - 2)
    for spine in axes.spines.values():
        spine.set_visible(False)
    bar = figure.colorbar(mesh, ax=axes, fraction=0.035, pad=0.03, shrink=0.6, extend="both")
    bar.set_label("correlation in Σ")
    bar.outline.set_visible(False)
    return figure


def comparison_figure(rows: Sequence[Row], reference: str) -> Figure:
    """Differences of NMAE to the reference: thick intervals over ratings, thin ones over splits."""
    found = [(row.label, row.nmae) for row in rows if row.nmae is not None]
    figure = Figure(figsize=(WIDTH, 0.9 + 0.32 * max(len(found), 1)))
    axes = figure.add_subplot()
    for place, (_, value) in enumerate(found):
        over, splits = value.ratings, value.splits
        if splits is not None:
            axes.plot([splits.low, splits.high], [place, place], color=GREY, linewidth=1.0)
            axes.plot([splits.low, splits.high], [place, place], "|", color=GREY, markersize=7)
        axes.plot([over.low, over.high], [place, place], color=LINES[0], linewidth=3.2)
        axes.plot([over.mean], [place], "o", color=LINES[0], markersize=6)
    axes.axvline(0, color="black", linewidth=0.9, linestyle="--", zorder=0)
    axes.set_yticks(range(len(found)), [label(name, name) for name, _ in found])
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(f"NMAE minus that of {label(reference, reference, 60)}; below 0 is better")
    return figure


# Parts ------------------------------------------------------------------------------


def label(title: str, identity: str, length: int = 32) -> str:
    """A title short enough for a figure, its year kept; its id where the font cannot show it."""
    plain = " ".join(title.split())
    if not can_show(plain) or not plain:
        plain = f"id {identity}"
        return plain if can_show(plain) else "(title)"
    if len(plain) <= length:
        return plain
    head, bracket, year = plain.rpartition(" (")
    tail = bracket + year if head and len(year) <= 6 else ""
    return plain[: length - len(tail) - 1].rstrip(" ,:(.-") + "…" + tail


def can_show(text: str) -> bool:
    """Whether the figures' font has every sign of a text."""
    font = get_font(findfont(FontProperties(family=[FONT])))
    return all(font.get_char_index(ord(sign)) for sign in text)


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places for labels, in the order given: near ``places``, at least ``gap`` apart.

    They stay within low..high where there is room for all.
    """
    order = sorted(range(len(places)), key=lambda index: places[index])
    result = [0.0] * len(places)
    below = low - gap
    for index in order:
        below = result[index] = max(places[index], below + gap)
    above = high + gap
    for index in reversed(order):
        above = result[index] = min(result[index], above - gap)
    return result


def _axes() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, HEIGHT))
    axes = figure.add_axes((0.11, 0.15, 0.58, 0.78))
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def _lines_and_labels(
    axes: Axes, references: Mapping[str, float], labels: list[tuple[str, float, str]]
) -> None:
    """Dashed lines of the references, and every line's name beside its right end."""
    for index, (name, value) in enumerate(references.items()):
        axes.axhline(
            value, color=GREY, linewidth=1.0, linestyle=DASHES[index % len(DASHES)], zorder=1
        )
        labels.append((f"{label(name, 'baseline')} {value:.4f}", value, GREY))
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)
    height = axes.get_position().height * HEIGHT * 72  # points
    gap = 1.25 * TEXT / height * (high - low)
    placed = spread([value for _, value, _ in labels], gap, low, high)
    for (text, value, colour), place in zip(labels, placed, strict=True):
        axes.annotate(
            text,
            (1.0, value),
            xycoords=("axes fraction", "data"),
            xytext=(1.03, place),
            textcoords=("axes fraction", "data"),
            va="center",
            color=colour,
            fontsize=TEXT - 1,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "shrinkA": 1,
                        "shrinkB": 0},
            annotation_clip=False,
        )  # fmt: skip


def _plain_ticks(axes: Axes, values: Sequence[float]) -> None:
    """The grid's own values on a logarithmic axis, as plain decimals; some of many."""
    step = -(-len(values) // 9)
    axes.set_xticks(list(values[::step]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _columns(points: Sequence[tuple[int, float]]) -> tuple[list[int], list[float]]:
    return [step for step, _ in points], [value for _, value in points]
