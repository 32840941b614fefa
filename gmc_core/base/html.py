"""Small pieces of HTML for notebooks: a table, a curve, a caption.

Everything is escaped, colours are the page's own, so that light and dark both work, and nothing is
fetched or imported: a curve is inline SVG.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

_WIDTH, _HEIGHT, _LEFT, _EDGE = 420, 150, 56, 22


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """An HTML table; every cell is shown as text."""
    first = "".join(f"<th>{escape(str(cell))}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>"


def caption(text: str) -> str:
    """A line above or below."""
    return f"<p><small>{escape(text)}</small></p>"


def curve(values: Sequence[float], label: str) -> str:
    """An SVG of values at 1, 2, …; "" for fewer than two finite ones.

    values : a gap is drawn where one is not finite. label : what they are, for those who cannot
        see the picture, and above it.
    """
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < 2:
        return ""
    low, high = min(finite), max(finite)
    span = (high - low) or 1.0
    across = (_WIDTH - _LEFT - _EDGE) / (len(values) - 1)
    down = _HEIGHT - 2 * _EDGE

    def at(place: int, value: float) -> str:
        return f"{_LEFT + place * across:.1f},{_EDGE + (high - value) / span * down:.1f}"

    path, pen = [], "M"
    for place, value in enumerate(values):
        if not math.isfinite(value):
            pen = "M"
            continue
        path.append(f"{pen}{at(place, value)}")
        pen = "L"
    said = f"{label}: {values[0]:.4g} at 1, {values[-1]:.4g} at {len(values)}, least {low:.4g}"
    texts = [
        (_LEFT - 6, _EDGE + 4, "end", f"{high:.4f}"),
        (_LEFT - 6, _HEIGHT - _EDGE + 4, "end", f"{low:.4f}"),
        (_LEFT, _HEIGHT - 4, "middle", "1"),
        (_WIDTH - _EDGE, _HEIGHT - 4, "middle", str(len(values))),
        (_LEFT, 12, "start", label),
    ]
    words = "".join(
        f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
        for x, y, anchor, text in texts
    )
    return (
        f'<svg role="img" aria-label="{escape(said)}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-size="11" fill="currentColor">'
        f'<path d="{" ".join(path)}" fill="none" stroke="currentColor" stroke-width="2"/>'
        f"{words}</svg>"
    )
