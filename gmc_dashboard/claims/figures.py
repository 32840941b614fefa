"""Figures of the Claims page: functions that return them, without Streamlit."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go

from gmc_core.paper.claims.catalogue import CLAIMS
from gmc_core.paper.claims.report import nmae_lines, on_chart
from gmc_core.paper.claims.verdict import MARGIN, Line, Verdict
from gmc_dashboard.shared.theme import error_bars, faint, palette, style
from gmc_dashboard.shared.units import minus, signed

SYMBOLS = {"holds": "✓", "does not hold": "✗", "not resolved": "?", "not measured": "–"}
# Of a categorical palette: the verdict's colour, beside which its word always stands.
_COLOURS = {"holds": 2, "does not hold": 1, "not resolved": 4, "not measured": 6}
ROW_HEIGHT = 26


def overview(verdicts: Mapping[str, Verdict]) -> pd.DataFrame:
    """A line for each claim; ``run`` is the link to the run or comparison behind it."""
    return pd.DataFrame(
        [
            {
                "claim": claim.title,
                "verdict": f"{SYMBOLS[verdict.verdict]} {verdict.verdict}",
                "figure": minus(verdict.figure),
                "interval": minus(verdict.interval),
                "section": claim.section,
                "run": _link(verdict),
            }
            for claim in CLAIMS
            for verdict in (verdicts[claim.name],)
        ]
    )


def _link(verdict: Verdict) -> str | None:
    """To what was varied: the first run is the paper's own where there are several."""
    if verdict.runs:
        return f"/fit?run={verdict.runs[min(1, len(verdict.runs) - 1)]}"
    return f"/compare?comparison={verdict.comparison}" if verdict.comparison else None


def intervals_figure(
    verdicts: Mapping[str, Verdict], *, dark: bool = False, revision: str = ""
) -> go.Figure:
    """All differences of NMAE with 95 % intervals, the margin as a band.

    What lies beyond ``report.SHOWN`` stands at the edge, with its value.
    """
    rows = nmae_lines(verdicts)
    colors = palette(dark)
    fig = go.Figure()
    # Every row has its own place, even if two have one label.
    places = list(range(len(rows)))
    for word, index in _COLOURS.items():
        chosen = [k for k in places if rows[k][1].verdict == word]
        if not chosen:
            continue
        places_of = [on_chart(rows[k][2]) for k in chosen]
        fig.add_scatter(
            x=[value for _, value, _, _ in places_of],
            y=chosen,
            name=word,
            mode="markers+text",
            text=[remark for *_, remark in places_of],
            textposition=[
                "middle left" if value > 0 else "middle right" for _, value, _, _ in places_of
            ],
            marker={"color": colors.categorical[index], "size": 8},
            error_x=error_bars(
                [(value, low, high) for low, value, high, _ in places_of],
                colors.categorical[index],
                2,
                0,
            ),
            customdata=[(rows[k][0].title, rows[k][2].label, *_signs(rows[k][2])) for k in chosen],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}: %{customdata[2]} "
            "[%{customdata[3]}, %{customdata[4]}]<extra></extra>",
        )
    fig.add_vrect(-MARGIN, MARGIN, fillcolor=faint(colors.muted, 0.18), line_width=0, layer="below")
    fig.add_vline(0, line={"color": colors.muted, "width": 1}, layer="below")
    height = 70 + ROW_HEIGHT * max(len(rows), 1)
    style(fig, x="difference of NMAE", height=height, dark=dark, uirevision=revision, legend=True)
    fig.update_yaxes(
        tickvals=places,
        ticktext=[line.label for *_, line in rows],
        range=[len(rows) - 0.5, -0.5],
        showgrid=False,
    )
    return fig


def _signs(line: Line) -> tuple[str, str, str]:
    """Figure and ends of its interval, as a pointer's label shows them."""
    low, high = line.interval
    return signed(line.value, 4), signed(low, 4), signed(high, 4)


def describe_intervals(verdicts: Mapping[str, Verdict]) -> str:
    """The text alternative of :func:`intervals_figure`."""
    parts = [
        f"{line.label} {signed(line.value, 4)} from "
        f"{signed(line.interval[0], 4)} to {signed(line.interval[1], 4)}, "
        f"{verdict.verdict}"
        for _, verdict, line in nmae_lines(verdicts)
    ]
    return "Differences of NMAE with 95 % intervals: " + ("; ".join(parts) or "none yet") + "."
