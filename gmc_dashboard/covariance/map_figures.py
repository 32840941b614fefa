"""The map of the titles as a figure: points by genre, labels that leave each other room."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.model.title_map import TitleMap
from gmc_dashboard.covariance.figures import short
from gmc_dashboard.shared.theme import palette, style

Floats = npt.NDArray[np.float64]

GENRES = 6  # with a colour and a mark of their own
OTHER = "other"
MARKS = ("circle", "square", "diamond", "triangle-up", "x", "star")
FEW_POINTS = 1500  # drawn as SVG, which is sharper; more are drawn by the graphics card
# Pixels that labels are laid out for: a window of a laptop, and a phone.
WIDE, NARROW = (820, 390), (300, 290)
TEXT = 12
LABELS, LABEL_LENGTH = 60, 24
# Horizontal and vertical shift of a label's middle, in its own widths and in marker sizes.
_SIDES = {
    "middle right": (0.5, 0.0),
    "middle left": (-0.5, 0.0),
    "top center": (0.0, -1.0),
    "bottom center": (0.0, 1.0),
}
# Pixels between a point and its label: blanks beside it, nothing above and below.
_GAP, _BLANKS = 8, "\N{NO-BREAK SPACE}" * 2


def map_figure(
    model: GaussianModel,
    found: TitleMap,
    picked: Collection[int] = (),
    *,
    genres: int = GENRES,
    size: int = TEXT,
    dark: bool = False,
) -> go.Figure:
    """Points of all titles; the most rated and the picked ones have their names.

    Every point has its item position as ``customdata``. Both axes have one scale, so that distances
    can be compared.

    Parameters
    ----------
    found : the map, with the most rated titles first. picked : item positions, in rings.
    genres : how many have a colour of their own. size : of the labels, px.
    """
    colors = palette(dark)
    figure = go.Figure()
    kind = go.Scatter if len(found.items) <= FEW_POINTS else go.Scattergl
    groups = by_genre(model, found.items.tolist(), genres)
    for index, (name, places) in enumerate(groups.items()):
        rest = name in (OTHER, "")
        colour = colors.muted if name == OTHER else colors.categorical[index % GENRES]
        figure.add_trace(
            kind(
                name=html.escape(name, quote=False),
                **_points(model, found, places),
                mode="markers",
                marker={
                    "size": 6 if rest else 7,
                    "color": colour,
                    "symbol": "circle" if rest else MARKS[index % len(MARKS)],
                    "opacity": 0.8,
                },
                # What is picked has a ring: nothing else is to fade.
                selected={"marker": {"opacity": 0.8}},
                unselected={"marker": {"opacity": 0.8}},
                hovertemplate="%{text}<extra></extra>",
                showlegend=bool(name),
            )
        )
    rings = [place for place, item in enumerate(found.items.tolist()) if item in picked]
    if rings:
        figure.add_scatter(
            **_points(model, found, rings),
            mode="markers",
            marker={"size": 14, "color": colors.text, "symbol": "circle-open", "line_width": 2},
            unselected={"marker": {"opacity": 1}},
            hovertemplate="%{text}<extra></extra>",
            showlegend=False,
        )
    _add_labels(figure, model, found, rings, size, dark)
    style(
        figure,
        x="dimension 1; dimension 2 is upwards",
        dark=dark,
        legend=len(groups) > 1,
        uirevision="map",
    )
    low, high = _bounds(found.coordinates)
    figure.update_layout(height=None, dragmode="lasso", hovermode="closest")
    # The picture is narrowed where its place is wide, and no range depends on the window.
    axis = {
        "showticklabels": False,
        "showgrid": False,
        "zeroline": True,
        "constrain": "domain",
        "showline": False,
    }
    figure.update_xaxes(**axis, zerolinecolor=colors.grid, range=[low[0], high[0]])
    figure.update_yaxes(
        **axis,
        zerolinecolor=colors.grid,
        range=[low[1], high[1]],
        scaleanchor="x",
        constraintoward="top",
    )
    return figure


def by_genre(
    model: GaussianModel, items: Sequence[int], most: int = GENRES
) -> dict[str, list[int]]:
    """Places in ``items`` by the first genre of each title: the commonest genres, then ``OTHER``.

    All under "" where no genre is known.
    """
    first = [model.item_info.genres[item][:1] for item in items]
    counts = Counter(genre[0] for genre in first if genre)
    if not counts:
        return {"": list(range(len(items)))}
    groups: dict[str, list[int]] = {name: [] for name, _ in counts.most_common(most)}
    for place, genre in enumerate(first):
        name = genre[0] if genre and genre[0] in groups else OTHER
        groups.setdefault(name, []).append(place)
    return groups


def place_labels(
    points: Floats,
    widths: Sequence[float],
    size: float,
    room: tuple[float, float],
) -> list[tuple[int, str]]:
    """Which labels fit, and on which side of their points, so that none covers another one.

    One after another, as long as there is room.

    Parameters
    ----------
    points : (n, 2) in pixels, downwards, by falling importance. widths : (n,) of the labels.
    size : height of the text. room : width and height of the picture.

    Returns
    -------
    (place in ``points``, side) of each.
    """
    boxes: list[tuple[float, float, float, float]] = []
    placed = []
    for index in range(len(points)):
        for side in _SIDES:
            box = _box(points[index], widths[index], size, side)
            inside = box[0] >= 0 and box[1] >= 0 and box[2] <= room[0] and box[3] <= room[1]
            if inside and not any(_overlap(box, other) for other in boxes):
                boxes.append(box)
                placed.append((index, side))
                break
    return placed


def describe_map(model: GaussianModel, found: TitleMap) -> str:
    """Text alternative of :func:`map_figure`: the titles at its edges."""

    def ends(axis: int, last: bool) -> str:
        order = np.argsort(found.coordinates[:, axis], kind="stable")
        chosen = order[::-1][:4] if last else order[:4]
        return ", ".join(model.title(int(found.items[place])) for place in chosen)

    return (
        f"Map of {len(found.items):,} titles. Far left: {ends(0, False)}. Far right: "
        f"{ends(0, True)}. At the top: {ends(1, True)}. At the bottom: {ends(1, False)}."
    )


def held_sentence(found: TitleMap) -> str:
    """What the two dimensions hold, and of what."""
    n, left = len(found.items), max(1 - found.common, 1e-9)
    first, second = 100 * found.shares / left
    return (
        f"With every title's variance set to 1, these {n:,} have a variance of {n:,} together. All "
        f"of them share {100 * found.common:.0f} % of it: some people rate everything higher; the "
        f"map leaves that out. Of the rest its two dimensions hold {100 * found.held:.0f} % "
        f"({first:.0f} and {second:.0f}): titles that lie side by side can still differ in what is "
        "not drawn; the heatmap tells."
    )


def _points(model: GaussianModel, found: TitleMap, places: Sequence[int]) -> dict[str, list]:
    items = found.items[list(places)].tolist()
    return {
        "x": found.coordinates[list(places), 0].tolist(),
        "y": found.coordinates[list(places), 1].tolist(),
        "text": [html.escape(_told(model, item), quote=False) for item in items],
        "customdata": items,
    }


def _told(model: GaussianModel, item: int) -> str:
    genres = model.item_info.genres[item]
    kinds = f" · {', '.join(genres)}" if genres else ""
    return f"{model.title(item)}{kinds} · {model.item_counts[item]:,} ratings"


def _bounds(points: Floats) -> tuple[Floats, Floats]:
    low, high = points.min(axis=0), points.max(axis=0)
    margin = np.maximum(0.06 * (high - low), 1e-6)
    return low - margin, high + margin


def _add_labels(
    figure: go.Figure,
    model: GaussianModel,
    found: TitleMap,
    rings: list[int],
    size: int,
    dark: bool,
) -> None:
    """Names of the picked and of the most rated titles, as far as there is room.

    The last trace is laid out for a wide window, the one before it for a phone: the page hides
    the other one.
    """
    color = palette(dark).text
    shadow = ", ".join([f"0 0 3px {'#10181f' if dark else '#ffffff'}"] * 3)  # over other points
    wanted = list(dict.fromkeys([*rings, *range(min(LABELS, len(found.items)))]))[:200]
    titles = [short(model.title(int(found.items[place])), LABEL_LENGTH) for place in wanted]
    widths = [0.56 * size * len(title) for title in titles]
    low, high = _bounds(found.coordinates)

    def pixels(room: tuple[int, int]) -> Floats:
        unit = min(np.array(room) / (high - low))
        middle = (low + high) / 2
        shifted = (found.coordinates[wanted] - middle) * np.array([unit, -unit])
        return shifted + np.array(room) / 2

    for room in (NARROW, WIDE):
        part = place_labels(pixels(room), widths, size, room)
        places = [wanted[index] for index, _ in part]
        figure.add_scatter(
            x=found.coordinates[places, 0].tolist(),
            y=found.coordinates[places, 1].tolist(),
            mode="text",
            text=[_beside(html.escape(titles[index], quote=False), side) for index, side in part],
            textposition=[side for _, side in part],
            textfont={"size": size, "color": color, "shadow": shadow},
            unselected={"textfont": {"color": color}},
            customdata=found.items[places].tolist(),
            hoverinfo="skip",
            showlegend=False,
            cliponaxis=False,
        )


def _beside(title: str, side: str) -> str:
    """A label with room for its point."""
    across, _ = _SIDES[side]
    return f"{_BLANKS * (across > 0)}{title}{_BLANKS * (across < 0)}"


def _box(point: Floats, width: float, size: float, side: str) -> tuple[float, float, float, float]:
    across, down = _SIDES[side]
    x = point[0] + across * width + np.sign(across) * _GAP
    y = point[1] + down * (size / 2 + 3)
    return x - width / 2, y - size * 0.6, x + width / 2, y + size * 0.6


def _overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
