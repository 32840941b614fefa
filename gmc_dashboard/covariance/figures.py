"""Figures of Σ: the pooled overview, the clickable heatmap, and their words."""

from __future__ import annotations

import html
from collections.abc import Sequence
from os.path import commonprefix
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from gmc_core.model.gaussian_model import GaussianModel
from gmc_dashboard.shared.theme import palette, style

Floats = npt.NDArray[np.floating]

KINDS = {
    "covariance": "Covariance",
    "correlation": "Correlation",
    "partial": "Partial correlation",
}
PAIR = "pair"  # name of the heatmap's selection
COMFORTABLE, MAX_SHOWN = 60, 200
_LABEL_LENGTH = 26
_AXIS_LENGTH = 20  # beside a heatmap; below it each letter takes height from the picture
_LABEL_SIZE, _LEGIBLE_ROWS = 11, 32  # px, and how many rows of it a small window holds
_SCRAP = 2  # letters of a cut word that tell nothing
_SLANT = -45  # degrees: slanted names below a heatmap take less of its height than upright ones
_MIN_LIMIT = 1e-6


def color_limit(matrix: Floats, percentile: float = 99.0) -> float:
    """Where the colours end: this percentile of the sizes off the diagonal.

    The diagonal (variances, or ones) and a few outliers would otherwise leave the
    rest without colour. Undefined entries do not count.
    """
    off = np.abs(matrix[~np.eye(len(matrix), dtype=bool)])
    off = off[np.isfinite(off)]
    return max(float(np.percentile(off, percentile)), _MIN_LIMIT) if len(off) else 1.0


def short(title: str, length: int = _LABEL_LENGTH) -> str:
    """A title cut to fit beside an axis, its year kept: "Silence of… (1991)"."""
    if len(title) <= length:
        return title
    head, bracket, year = title.rpartition(" (")
    tail = bracket + year if head and len(year) <= 6 else ""
    return _cut(title, length - len(tail) - 1) + "…" + tail


def _cut(text: str, length: int) -> str:
    """The beginning of a text, without the one or two letters of a last word that is cut."""
    kept = text[:length]
    whole, blank, part = kept.rpartition(" ")
    if blank and len(part) <= _SCRAP and text[length : length + 1] not in ("", " "):
        kept = whole
    return kept.rstrip(" ,:(-")


def axis_labels(model: GaussianModel, items: Sequence[int]) -> list[str]:
    """A short, unique label of each item; the id tells equal titles apart."""
    labels = distinct_short([model.title(m) for m in items], _AXIS_LENGTH)
    seen = pd.Series(labels, dtype=object).duplicated(keep=False)
    return [
        f"{label} · {model.items.ids[m]}" if twice else label
        for label, m, twice in zip(labels, items, seen, strict=True)
    ]


def distinct_short(titles: Sequence[str], length: int = _LABEL_LENGTH) -> list[str]:
    """Each title cut as by :func:`short`, or, where several would then begin alike and end in dots,
    with the words that they share cut out of its middle: "Star Wars… IV - A New"."""
    labels = [short(title, length) for title in titles]
    groups: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        head, dots, _ = label.partition("…")
        if dots:
            groups.setdefault(head, []).append(place)
    for places in groups.values():
        words = [_without_year(titles[place]).split() for place in places]
        if len({tuple(each) for each in words}) < 2:
            continue  # they differ in the year only, which is kept
        shared = len(commonprefix(words))
        if not shared:
            continue
        start = " ".join(words[0][:shared])
        stem = start.partition(":")[0][: length // 2].rstrip(" ,:(-")
        for place, each in zip(places, words, strict=True):
            rest = " ".join(each[shared:])
            if rest:
                labels[place] = f"{stem}… {_words(rest, length - len(stem) - 2)}"
    return labels


def _words(text: str, length: int) -> str:
    """As many whole words of a text as fit, at least a part of the first."""
    if len(text) <= length:
        return text
    whole, blank, _ = text[: length + 1].rpartition(" ")
    return (whole if blank else text[:length]).rstrip(" ,:(-")


def _without_year(title: str) -> str:
    head, bracket, year = title.rpartition(" (")
    return head if bracket and len(year) <= 6 else title


def run_labels(titles: Sequence[str], size: int) -> list[str]:
    """What each pixel of a pooled picture stands for: "12–24: first title … last title".

    titles : of all items in the order shown.
    """
    starts = np.arange(size) * len(titles) // max(size, 1)
    stops = np.append(starts[1:], len(titles))
    labels = []
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        first, last = short(titles[start], 30), short(titles[stop - 1], 30)
        names = first if stop - start == 1 else f"{first} … {last}"
        place = f"{start + 1}" if stop - start == 1 else f"{start + 1}–{stop}"
        labels.append(html.escape(f"{place}: {names}", quote=False))
    return labels


def overview_figure(
    picture: Floats,
    labels: Sequence[str],
    *,
    kind: str,
    axis: str,
    limit: float | None = None,
    height: int = 520,
    dark: bool = False,
    revision: str = "overview",
) -> go.Figure:
    """Heatmap of a pooled Σ.

    Parameters
    ----------
    picture : (s, s), s ≤ 500. labels : (s,) what a pixel stands for.
    axis : the order of the items, in words.
    limit : end of the colour scale; default :func:`color_limit`. Give the same for all
        iterations so that one can see Σ grow.
    """
    limit = color_limit(picture) if limit is None else limit
    figure = go.Figure(
        go.Heatmap(
            z=picture.astype(np.float32),
            x=list(labels),
            y=list(labels),
            zmin=-limit,
            zmax=limit,
            zmid=0,
            colorscale=palette(dark).scale("diverging"),
            colorbar={
                "title": {"text": KINDS[kind], "side": "top", "font": {"size": 13}},
                "thickness": 12,
                "tickformat": ".2~g",
                "outlinewidth": 0,
            },
            hovertemplate="%{y}<br>%{x}<br><b>%{z:.3f}</b><extra></extra>",
        )
    )
    style(figure, x=axis, y=axis, height=height, uirevision=revision, dark=dark, legend=False)
    category = {"type": "category", "showticklabels": False, "showgrid": False, "ticks": ""}
    figure.update_xaxes(**category)
    figure.update_yaxes(**category, autorange="reversed")
    return figure


def describe_overview(picture: Floats, kind: str, axis: str, iteration: int) -> str:
    """Text alternative of :func:`overview_figure`."""
    off = picture[~np.eye(len(picture), dtype=bool)]
    off = off[np.isfinite(off)]
    if not len(off):
        return f"{KINDS[kind]} at iteration {iteration}: a single block."
    return (
        f"{KINDS[kind]} between titles at iteration {iteration}, pooled to {len(picture)} by "
        f"{len(picture)} blocks, {axis}. Off the diagonal, blocks range from {off.min():.3f} to "
        f"{off.max():.3f}, with mean {off.mean():.3f}; {100 * (off < 0).mean():.0f} % are negative."
    )


def heatmap_table(matrix: Floats, labels: Sequence[str], counts: Sequence[int]) -> pd.DataFrame:
    """One row per cell: places i and j, labels, value, number of ratings of both."""
    n = len(labels)
    rows, columns = np.divmod(np.arange(n * n), n) if n else (np.zeros(0, int),) * 2
    names, numbers = np.array(labels, dtype=object), np.asarray(counts)
    return pd.DataFrame(
        {
            "i": rows,
            "j": columns,
            "row": names[rows],
            "column": names[columns],
            "value": matrix.reshape(-1),
            "row ratings": numbers[rows],
            "column ratings": numbers[columns],
        }
    )


def heatmap_chart(
    matrix: Floats,
    labels: Sequence[str],
    counts: Sequence[int],
    *,
    kind: str,
    dark: bool = False,
    least: int | None = None,
) -> alt.Chart:
    """Clickable heatmap of named items, in the order given.

    A click selects a cell and frames it: the selection ``PAIR`` holds its places ``i``
    and ``j``. One view, since Streamlit reports no selections of layered charts.

    Parameters
    ----------
    matrix : (n, n), n ≤ 200. labels : (n,) unique. counts : (n,) ratings.
    least : size of the smallest text, px; labels that do not fit are left out.
    """
    colors = palette(dark)
    n, limit = len(labels), color_limit(matrix)
    legible = n <= _LEGIBLE_ROWS
    # Where they are so close that some are left out, upright names leave out fewer.
    slanted = least is None and legible
    slant: dict[str, Any] = {"labelAngle": _SLANT, "labelAlign": "right"} if slanted else {}
    # As long as the labels, so that none is cut a second time.
    across, down = (
        alt.Axis(
            labelFontSize=least or _LABEL_SIZE,
            labelLimit=room if least is None else 1.25 * room,
            labelOverlap=least is not None or not legible,
            labelColor=colors.muted,
            labelFlush=False,
            labelPadding=4,
            ticks=False,
            domain=False,
            title=None,
            **below,
        )
        for room, below in ((150, slant), (170, {}))
    )
    pair = alt.selection_point(name=PAIR, fields=["i", "j"], on="click", empty=False)
    framed = alt.when(pair)
    steps = np.linspace(-limit, limit, len(colors.diverging))
    return (
        alt.Chart(heatmap_table(matrix, labels, counts))
        .mark_rect(cursor="pointer", stroke=colors.text)
        .encode(
            x=alt.X("column:N", sort=list(labels), axis=across, scale=alt.Scale(padding=0)),
            y=alt.Y("row:N", sort=list(labels), axis=down, scale=alt.Scale(padding=0)),
            color=alt.Color(
                "value:Q",
                title=KINDS[kind],
                scale=alt.Scale(
                    domain=[float(step) for step in steps],
                    range=list(colors.diverging),
                    clamp=True,
                    interpolate="rgb",
                ),
                legend=alt.Legend(
                    orient="right",
                    gradientLength=200,
                    format=".2~g",
                    labelFontSize=least or 11,
                    titleFontSize=least or 12,
                    titleLimit=200,
                ),
            ),
            strokeWidth=framed.then(alt.value(3)).otherwise(alt.value(0)),
            order=framed.then(alt.value(1)).otherwise(alt.value(0)),  # the frame on top
            tooltip=[
                alt.Tooltip("row:N", title="Row"),
                alt.Tooltip("column:N", title="Column"),
                alt.Tooltip("value:Q", title=KINDS[kind], format=".3f"),
                alt.Tooltip("row ratings:Q", title="Ratings, row", format=","),
                alt.Tooltip("column ratings:Q", title="Ratings, column", format=","),
            ],
        )
        .add_params(pair)
    )


def describe_heatmap(matrix: Floats, labels: Sequence[str], kind: str) -> str:
    """Text alternative of :func:`heatmap_chart`: the extreme pairs."""
    n = len(labels)
    if n < 2:
        return f"{KINDS[kind]} heatmap of {n} title; choose at least two."
    upper = np.array(matrix, dtype=np.float64)
    upper[np.tril_indices(n)] = np.nan
    if not np.isfinite(upper).any():
        return f"{KINDS[kind]} heatmap of {n} titles; no value is defined."
    high = divmod(int(np.nanargmax(upper)), n)
    low = divmod(int(np.nanargmin(upper)), n)
    return (
        f"{KINDS[kind]} heatmap of {n} titles. Largest: {labels[high[0]]} with {labels[high[1]]}, "
        f"{upper[high]:.3f}. Smallest: {labels[low[0]]} with {labels[low[1]]}, {upper[low]:.3f}."
    )


def clicked_pair(event: object, n: int) -> tuple[int, int] | None:
    """Places (i, j) of the cell selected in :func:`heatmap_chart`, None if there is none."""
    selection = getattr(event, "selection", None) or {}
    points = selection.get(PAIR) or []
    try:
        i, j = int(points[-1]["i"]), int(points[-1]["j"])
    except (IndexError, KeyError, TypeError, ValueError):
        return None
    return (i, j) if 0 <= i < n and 0 <= j < n else None
