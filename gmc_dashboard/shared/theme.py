"""One visual language for all figures, in light and in dark.

The colours are those of ``.streamlit/config.toml``. The categorical ones start from
Okabe and Ito's palette, which colour-blind readers can tell apart, darkened or
lightened until each has a contrast of 3:1 or more to its background.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import plotly.graph_objects as go

_MOST_TICKS = 11  # of a count, beside 0
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


@dataclass(frozen=True)
class Palette:
    """The colours of one theme.

    categorical : for lines and bars, in the order of use.
    sequential : 10 steps from "nothing" (near the background) to "much".
    diverging : 10 steps from negative over neutral to positive.
    """

    text: str
    muted: str
    grid: str
    surface: str
    categorical: tuple[str, ...]
    sequential: tuple[str, ...]
    diverging: tuple[str, ...]

    @property
    def accent(self) -> str:
        """The first categorical colour: the thing that the chart is about."""
        return self.categorical[0]

    @property
    def contrast(self) -> str:
        """The second categorical colour: what it is compared with."""
        return self.categorical[1]

    def scale(self, kind: Literal["sequential", "diverging"] = "sequential") -> list[list[object]]:
        """A plotly colour scale."""
        colors = self.sequential if kind == "sequential" else self.diverging
        last = len(colors) - 1
        return [[index / last, color] for index, color in enumerate(colors)]


LIGHT = Palette(
    text="#1c2733",
    muted="#586675",
    grid="#e3e9ef",
    surface="#f2f6f9",
    categorical=("#0b6bab", "#c8500a", "#0f8f6b", "#a8457f", "#b57a00", "#3f97d3", "#5f6b7a"),
    sequential=(
        *("#eef6fb", "#d5e9f5", "#b3d7ec", "#8bc1e0", "#62a9d1"),
        *("#3f8fc0", "#2575aa", "#145b8f", "#0b4473", "#062e54"),
    ),
    diverging=(
        *("#084a7f", "#2370aa", "#5a9bcb", "#9cc5e2", "#e3edf4"),
        *("#f8e9de", "#f3bd93", "#e08e52", "#bd611f", "#8a3f08"),
    ),
)
DARK = Palette(
    text="#e4ebf2",
    muted="#a3acb8",
    grid="#2a3642",
    surface="#1a232d",
    categorical=("#5cb8f0", "#f58a4b", "#3ecf9f", "#e29cc6", "#f2c14e", "#a5d8f8", "#a3acb8"),
    sequential=(
        *("#16283a", "#193853", "#1d4a6d", "#235e8a", "#2d74a6"),
        *("#448cbf", "#66a6d2", "#8ec1e2", "#b9daef", "#e5f2fa"),
    ),
    diverging=(
        *("#9ad1f7", "#64aee2", "#3c88c1", "#276391", "#1c3d57"),
        *("#4a3424", "#83512b", "#ba7235", "#e2985a", "#f9c69c"),
    ),
)


def palette(dark: bool = False) -> Palette:
    """The colours for a light or a dark background."""
    return DARK if dark else LIGHT


def error_bars(
    ends: Sequence[tuple[float, float, float]], color: str, thickness: float, width: float
) -> dict[str, Any]:
    """Plotly's error bars from (middle, low, high); width is that of their caps."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [high - middle for middle, _, high in ends],
        "arrayminus": [middle - low for middle, low, _ in ends],
        "color": color,
        "thickness": thickness,
        "width": width,
    }


def faint(color: str, opacity: float) -> str:
    """A colour of a palette, see-through, to fill an area under its line."""
    red, green, blue = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"


def is_dark() -> bool:
    """Whether the visitor sees the dark theme now."""
    import streamlit as st  # figures that use this module stay free of Streamlit

    return getattr(st.context.theme, "type", None) == "dark"


def waiting(fig: go.Figure, text: str) -> go.Figure:
    """Say in a figure's place what it waits for, if nothing has been drawn in it yet.

    Axes without data would run from −1 to 4 and mean nothing; they go. A figure with data
    stays as it is.
    """
    if any(len(trace[name]) for trace in fig.data for name in ("x", "y", "z") if _has(trace, name)):
        return fig
    fig.layout.annotations, fig.layout.shapes = (), ()  # an update with none would keep them
    fig.update_layout(showlegend=False)
    fig.update_xaxes(visible=False)
    fig.update_yaxes(visible=False)
    place = {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
    fig.add_annotation(text=text, showarrow=False, font={"size": 14}, **place)
    return fig


def _has(trace: Any, name: str) -> bool:
    return name in trace and trace[name] is not None


def style(
    fig: go.Figure,
    *,
    title: str | None = None,
    x: str | None = None,
    y: str | None = None,
    height: int = 320,
    uirevision: str | None = None,
    dark: bool = False,
    log_x: bool = False,
    log_y: bool = False,
    legend: bool | None = None,
) -> go.Figure:
    """Give a figure the common look, in place, and return it.

    Parameters
    ----------
    title, x, y : texts; None leaves the title or axis label away.
    height : in pixels.
    uirevision : a name that stays the same while zoom and legend choices shall survive
        new data.
    dark : the theme, of :func:`is_dark`.
    log_x, log_y : logarithmic axes, with plain decimal tick labels.
    legend : True or False; None shows one if there is more than one trace.
    """
    colors = palette(dark)
    fig.update_layout(
        colorway=list(colors.categorical),
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": colors.text, "size": 13, "family": FONT},
        height=height,
        margin={"l": 8, "r": 8, "t": 44 if title else 16, "b": 8},
        showlegend=len(fig.data) > 1 if legend is None else legend,
        legend={
            "orientation": "h",
            "yanchor": "bottom",
            "y": 1.0,
            "xanchor": "right",
            "x": 1.0,
            "title": None,
            "bgcolor": "rgba(0,0,0,0)",
        },
        hoverlabel={
            "bgcolor": colors.surface,
            "bordercolor": colors.grid,
            "font": {"color": colors.text, "size": 13},
        },
        # Plotly's own colours for the toolbar are made for one background only.
        modebar={
            "bgcolor": "rgba(0,0,0,0)",
            "color": colors.muted,
            "activecolor": colors.accent,
        },
        bargap=0.12,
        uirevision=uirevision,
    )
    if title:
        fig.update_layout(
            title={
                "text": title,
                "font": {"size": 15},
                "x": 0.0,
                "xref": "container",
                "pad": {"l": 8},
            }
        )
    axis = {
        "gridcolor": colors.grid,
        "linecolor": colors.grid,
        "zeroline": False,
        "automargin": True,
        "title_standoff": 8,
        "title_font": {"size": 13, "color": colors.muted},
        "tickfont": {"size": 12, "color": colors.muted},
    }
    fig.update_xaxes(**axis, title_text=x)
    fig.update_yaxes(**axis, title_text=y)
    if log_x:
        fig.update_xaxes(type="log", dtick=1, exponentformat="none")
    if log_y:
        fig.update_yaxes(type="log", dtick=1, exponentformat="none")
    # Last: every update of a figure copies its layout, and a template is the largest part of that.
    fig.layout.template = "plotly_dark" if dark else "plotly_white"
    return fig


def count_axis(fig: go.Figure, last: int) -> None:
    """An x axis from 0 to ``last`` of what is counted, such as iterations, with whole ticks.

    Plotly's own ticks would stand at halves where ``last`` is small, and be named as whole numbers.
    """
    last = max(last, 1)
    steps = (digit * 10**power for power in range(9) for digit in (1, 2, 5))
    step = next(step for step in steps if last <= _MOST_TICKS * step)
    fig.update_xaxes(range=[0, last + 0.5], tick0=0, dtick=step, tickformat="d")
