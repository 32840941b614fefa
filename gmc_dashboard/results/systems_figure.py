"""The nine methods of the tables on one map, drawn as SVG from plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

from gmc_core.paper.systems import OWN
from gmc_core.paper.systems_map import COLUMNS, PLACES, ROWS
from gmc_dashboard.shared.theme import FONT, palette

WIDTH, LEFT, TOP = 1000, 165, 62
CELL, BOX, GAP = (WIDTH - LEFT) / len(COLUMNS), 58, 10
Extent = tuple[float, float, float, float]  # left, top, right, bottom
_BAR = 4  # of the cost, at the foot of a box


def map_svg(cost: Mapping[str, float] | None = None, *, dark: bool = False) -> str:
    """The map as an SVG of ``WIDTH`` units, with a background of its own.

    cost : method → CPU seconds of a fit, drawn as a bar in each box, on a log scale.
    """
    colors, cost = palette(dark), cost or {}
    heights = [_height(row) for row in range(len(ROWS))]
    total = TOP + sum(heights) + 6
    parts = [_text(LEFT - 12, 22, "what is Gaussian  →", colors.muted, 12, "end")]
    for column, (name, more) in enumerate(COLUMNS):
        x = LEFT + column * CELL
        parts += [
            _text(x + GAP, 22, name, colors.text, 15, weight=600),
            *_wrapped(x + GAP, 39, more, colors.muted, 11.5),
        ]
    parts.append(_text(LEFT - 12, 50, "a rating is  ↓", colors.muted, 12, "end"))
    y = float(TOP)
    for row, (name, more) in enumerate(ROWS):
        parts.append(
            f'<rect x="0" y="{y:g}" width="{WIDTH}" height="{heights[row] - 6:g}" rx="6" '
            f'fill="{colors.surface}"/>'
        )
        middle = y + heights[row] / 2 - 6
        parts += [
            _text(14, middle, name, colors.text, 14, weight=600),
            _text(14, middle + 17, more, colors.muted, 11.5),
        ]
        taken = [0] * len(COLUMNS)
        for place in PLACES:
            if place.row == row:
                top = y + GAP - 3 + taken[place.column] * (BOX + GAP - 3)
                taken[place.column] += 1
                x = LEFT + place.column * CELL
                parts.append(_box(x, top, place.method, place.short, cost, dark))
        y += heights[row]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total:g}" role="img" '
        f'font-family="{escape(FONT, quote=True)}"><title>{escape(describe_map())}</title>'
        f'<rect width="{WIDTH}" height="{total:g}" fill="{_paper(dark)}"/>{"".join(parts)}</svg>'
    )


def describe_map() -> str:
    """The map in words."""
    parts = [
        f"{place.method}: {COLUMNS[place.column][0]} is Gaussian, a rating is {ROWS[place.row][0]}"
        for place in PLACES
    ]
    return f"The methods of the tables on one map. {'; '.join(parts)}."


def cost_svg(
    points: Mapping[str, tuple[float, float, float, float | None]], *, dark: bool = False
) -> str:
    """Measured and printed NMAE against processor time, on a log scale.

    points : method → CPU seconds, measured NMAE, its standard error, and the printed NMAE.
    """
    colors = palette(dark)
    width, height, left, right, top, bottom = 1000, 420, 70, 90, 30, 52
    seconds = [value[0] for value in points.values()]
    errors = [
        value
        for _, own, se, printed in points.values()
        for value in (own - se, own + se, own if printed is None else printed)
    ]
    low, high = math.log10(min(seconds)) - 0.15, math.log10(max(seconds)) + 0.15
    least, most = min(errors) - 0.002, max(errors) + 0.002

    def across(value: float) -> float:
        return left + (math.log10(value) - low) / (high - low) * (width - left - right)

    def down(value: float) -> float:
        return top + (most - value) / (most - least) * (height - top - bottom)

    parts = []
    for step in range(math.ceil(least * 100), math.floor(most * 100) + 1):
        y = down(step / 100)
        parts += [
            f'<line x1="{left}" x2="{width - right}" y1="{y:.1f}" y2="{y:.1f}" '
            f'stroke="{colors.grid}"/>',
            _text(left - 8, y + 4, f"{step / 100:.2f}", colors.muted, 12, "end"),
        ]
    for value in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000):
        if low <= math.log10(value) <= high:
            parts.append(
                _text(across(value), height - bottom + 20, f"{value}", colors.muted, 12, "middle")
            )
    middle = (left + width - right) / 2
    parts += [
        _text(middle, height - 10, "CPU seconds of a fit (log scale)", colors.text, 13, "middle"),
        _text(left, 14, "NMAE: ● measured ± one standard error, ○ printed", colors.text, 13),
    ]
    taken: list[Extent] = []
    for method, (cpu, own, se, printed) in points.items():
        color = colors.contrast if method == OWN else colors.accent
        x, y = across(cpu), down(own)
        if printed is not None:
            parts.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y:.1f}" y2="{down(printed):.1f}" '
                f'stroke="{colors.muted}" stroke-dasharray="3 3"/>'
                f'<circle cx="{x:.1f}" cy="{down(printed):.1f}" r="5" fill="{_paper(dark)}" '
                f'stroke="{color}" stroke-width="1.5"/>'
            )
        parts += [
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{down(own - se):.1f}" '
            f'y2="{down(own + se):.1f}" stroke="{color}" stroke-width="2"/>',
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{color}"/>',
        ]
        taken.append((x - 7, y - 7, x + 7, y + 7))
    for method, (cpu, own, *_) in points.items():
        parts.append(_label(across(cpu), down(own), method, taken, colors.text))
    listed = "; ".join(
        f"{name} {own:.4f} in {cpu:.3g} s" for name, (cpu, own, *_) in points.items()
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="{escape(FONT, quote=True)}"><title>NMAE against processor time: '
        f'{escape(listed)}.</title><rect width="{width}" height="{height}" fill="{_paper(dark)}"/>'
        f"{''.join(parts)}</svg>"
    )


def _label(x: float, y: float, name: str, taken: list[Extent], color: str) -> str:
    """A point's name beside it, at the first of some places where nothing is yet."""
    wide = 9.0 * len(name)
    places = [
        (side * 11, rise) for rise in (4, -10, 18, -24, 32) for side in (1, -1)
    ]  # right and left of the point, level with it, above, below
    for right, rise in places:
        left = x + right if right > 0 else x + right - wide
        extent = (left, y + rise - 11, left + wide, y + rise + 3)
        if not any(_overlap(extent, other) for other in taken):
            break
    taken.append(extent)
    return _text(x + right, y + rise, name, color, 13, "start" if right > 0 else "end", 600)


def _overlap(one: Extent, other: Extent) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _height(row: int) -> float:
    """Of a row: as many boxes as its fullest cell has."""
    most = max(
        sum(place.row == row and place.column == column for place in PLACES)
        for column in range(len(COLUMNS))
    )
    return most * (BOX + GAP - 3) + GAP + 3


def _box(x: float, y: float, method: str, short: str, cost: Mapping[str, float], dark: bool) -> str:
    """A method: its name, a few words, and what it costs."""
    colors = palette(dark)
    color = colors.contrast if method == OWN else colors.accent
    width, seconds = CELL - GAP, cost.get(method)
    parts = [
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{BOX}" rx="5" '
        f'fill="{_paper(dark)}" stroke="{color}" stroke-width="1.5"/>',
        _text(x + 10, y + 22, method, color, 15, weight=700),
        _text(x + 10, y + 40, short, colors.text, 12),
    ]
    if seconds is not None:
        # From 1 s, where there is no bar, to the dearest, which fills the box.
        share = math.log10(max(seconds, 1)) / math.log10(max(*cost.values(), 10))
        parts += [
            _text(x + width - 8, y + 21, f"{seconds:,.0f} CPU s", colors.muted, 11.5, "end"),
            f'<rect x="{x + 10:g}" y="{y + BOX - _BAR - 4:g}" height="{_BAR}" rx="2" '
            f'width="{share * (width - 20):.1f}" fill="{color}"/>',
        ]
    return "".join(parts)


def _paper(dark: bool) -> str:
    """The background of boxes and pictures."""
    return "#11171e" if dark else "#ffffff"


def _wrapped(x: float, y: float, text: str, color: str, size: float) -> list[str]:
    """Text in at most two lines of about 26 letters."""
    words, lines = text.split(), [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) > 25:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{word}"
    return [_text(x, y + 14 * at, line, color, size) for at, line in enumerate(lines)]


def _text(
    x: float, y: float, text: str, color: str, size: float, anchor: str = "start",
    weight: int = 400,
) -> str:  # fmt: skip
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" font-size="{size:g}" '
        f'text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'
    )
