"""Figures, tables and words of the guessing game, once a round is revealed."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
import plotly.graph_objects as go

from gmc_core.data.ratings import RatingScale
from gmc_core.runs.game import Answer, Standing
from gmc_dashboard.shared.theme import palette, style
from gmc_dashboard.shared.units import minus


class Said(NamedTuple):
    """What a player, a baseline or the model said. value : unprojected, in ratings."""

    name: str
    value: float
    player: bool


def said(answer: Answer, guesses: dict[str, float]) -> list[Said]:
    """Players first, then baselines and model."""
    return [Said(name, value, True) for name, value in guesses.items()] + [
        Said(name, value, False) for name, value in answer.predictions.items()
    ]


def reveal_figure(
    answers: Sequence[Said], actual: float, scale: RatingScale, *, dark: bool = False
) -> go.Figure:
    """Where on the scale each guess and prediction lies, with a line at the rating given."""
    colors = palette(dark)
    places = list(range(len(answers)))
    figure = go.Figure()
    figure.add_scatter(
        x=[one.value for one in answers],
        y=places,
        mode="markers",
        marker={
            "color": [colors.contrast if one.player else colors.accent for one in answers],
            "symbol": ["diamond" if one.player else "circle" for one in answers],
            "size": 12,
        },
        customdata=[html.escape(one.name, quote=False) for one in answers],
        hovertemplate="%{customdata}<br>%{x:.2f}<extra></extra>",
    )
    style(figure, height=76 + 28 * len(answers), dark=dark, legend=False)
    figure.update_layout(margin_t=30)
    figure.add_vline(x=actual, line={"color": colors.text, "width": 2})
    figure.add_annotation(
        x=actual, y=1, yref="paper", yanchor="bottom", text=f"rated {actual:g}", showarrow=False
    )
    reach = [*(one.value for one in answers), scale.low, scale.high]
    margin = 0.06 * (scale.high - scale.low)
    figure.update_xaxes(range=[min(reach) - margin, max(reach) + margin], fixedrange=True)
    figure.update_yaxes(
        range=[len(answers) - 0.5, -0.5],
        tickvals=places,
        ticktext=[
            f"{html.escape(one.name, quote=False)}  <b>{minus(f'{one.value:.3g}')}</b>"
            for one in answers
        ],
        fixedrange=True,
    )
    return figure


def describe_reveal(answers: Sequence[Said], actual: float, scale: RatingScale) -> str:
    """The figure in words, with what each error counts."""
    parts = [
        f"{one.name} {one.value:.3g}, off by {abs(float(scale.project(one.value)) - actual):.3g}"
        for one in answers
    ]
    return f"Rated {actual:g}. {'; '.join(parts)}."


def score_table(standings: Sequence[Standing]) -> pd.DataFrame:
    """One row a player, baseline or model, the best first."""
    return pd.DataFrame(
        {
            "Who": [one.name for one in standings],
            "NMAE": [one.scores.nmae for one in standings],
            "Off by": [one.scores.mae for one in standings],
            "Rounds": [one.scores.n for one in standings],
        }
    )


def describe_scores(standings: Sequence[Standing]) -> str:
    """The table in words."""
    parts = [f"{one.name} {one.scores.nmae:.3f}" for one in standings]
    return f"NMAE, the best first: {'; '.join(parts)}."
