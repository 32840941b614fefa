"""Figures of what Σ says: neighbours, spectrum, taste axes, variances, a pair in words."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from gmc_core.model.analysis import Neighbour
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.model.taste import Spectrum, TasteAxis, VarianceProfile
from gmc_dashboard.covariance.figures import short
from gmc_dashboard.shared.theme import palette, style
from gmc_dashboard.shared.units import signed


def pair_sentence(model: GaussianModel, i: int, j: int) -> str:
    """What Σ says of two items: the regression of the one on the other, in words."""
    first, second = model.title(i), model.title(j)
    block = model.gaussian.covariance.submatrix(np.array([i, j]), np.array([i, j]))
    mean = model.gaussian.mean
    if i == j:
        return (
            f"The variance of “{first}” is {block[0, 0]:.3f}: around its mean of {mean[i]:.2f}, "
            f"users differ with a standard deviation of {np.sqrt(block[0, 0]):.2f} ratings."
        )
    slope = block[0, 1] / block[0, 0] if block[0, 0] > 0 else float("nan")
    where = "above" if slope >= 0 else "below"
    return (
        f"Nothing else known, a user who rates “{first}” 1 above its mean ({mean[i]:.2f}) is "
        f"expected to rate “{second}” {abs(slope):.2f} {where} its mean "
        f"({mean[j]:.2f})."
    )


def partial_sentence(partial: float) -> str:
    """What a partial correlation means."""
    rest = "a link of their own, which no other title explains"
    if abs(partial) < 0.05:
        rest = "hardly any link is left, it runs through the others"
    return (
        "With the ratings of all other titles held fixed, their partial correlation is "
        f"{partial:.3f}: {rest}."
    )


def neighbours_figure(found: Sequence[Neighbour], *, dark: bool = False) -> go.Figure:
    """Bars of the correlations, the nearest on top."""
    labels = [html.escape(short(n.title, 42), quote=False) for n in found]
    figure = go.Figure(
        go.Bar(
            x=[n.correlation for n in found],
            y=list(range(len(found))),
            orientation="h",
            marker_color=palette(dark).accent,
            text=[f"{n.correlation:.2f}" for n in found],
            textposition="auto",
            customdata=[[html.escape(n.title, quote=False), n.n_ratings] for n in found],
            hovertemplate="%{customdata[0]}<br>correlation %{x:.3f}, "
            "%{customdata[1]:,} ratings<extra></extra>",
        )
    )
    style(figure, x="correlation", height=70 + 24 * max(len(found), 1), dark=dark)
    figure.update_yaxes(
        autorange="reversed", tickvals=list(range(len(found))), ticktext=labels, showgrid=False
    )
    return figure


def describe_neighbours(title: str, found: Sequence[Neighbour]) -> str:
    """Text alternative of :func:`neighbours_figure`."""
    if not found:
        return f"No title has a correlation with {title} under these filters."
    listed = "; ".join(f"{n.title} {n.correlation:.2f}" for n in found[:10])
    return f"Correlations with {title}, nearest first: {listed}."


def spectrum_figure(leading: Spectrum, *, dark: bool = False) -> go.Figure:
    """Share of each eigenvalue in the total variance, and their running sum."""
    colors = palette(dark)
    numbers = np.arange(1, len(leading.values) + 1)
    figure = go.Figure()
    figure.add_bar(
        x=numbers,
        y=leading.shares,
        name="share of one axis",
        marker_color=colors.accent,
        customdata=leading.values,
        hovertemplate="%{y:.2%} (eigenvalue %{customdata:.3g})",
    )
    figure.add_scatter(
        x=numbers,
        y=np.cumsum(leading.shares),
        name="of all axes up to it",
        mode="lines+markers",
        line={"color": colors.contrast, "width": 2},
        hovertemplate="%{y:.2%}",
    )
    style(figure, x="axis", y="share of the total variance", height=300, dark=dark)
    figure.update_layout(hovermode="x unified")
    figure.update_yaxes(tickformat=".0%", rangemode="tozero")
    figure.update_xaxes(dtick=1 if len(numbers) <= 10 else 5, showgrid=False)
    return figure


def describe_spectrum(leading: Spectrum) -> str:
    """Text alternative of :func:`spectrum_figure`."""
    first = ", ".join(f"{share:.1%}" for share in leading.shares[:5])
    return (
        f"Shares of the leading axes in the total variance of {leading.trace:.4g}: {first}; "
        f"the {len(leading.values)} shown have {leading.shares.sum():.1%} together."
    )


def axis_figure(axis: TasteAxis, *, dark: bool = False) -> go.Figure:
    """The titles at both ends of a taste axis, with the size of their move."""
    colors = palette(dark)
    ends = [*axis.high, *reversed(axis.low)]
    figure = go.Figure(
        go.Bar(
            x=[end.effect for end in ends],
            y=list(range(len(ends))),
            orientation="h",
            marker_color=[colors.contrast if end.effect > 0 else colors.accent for end in ends],
            customdata=[
                [
                    html.escape(end.title, quote=False),
                    html.escape(" · ".join(end.genres), quote=False),
                    end.n_ratings,
                    signed(end.effect, 2),
                ]
                for end in ends
            ],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}<br>%{customdata[3]} ratings per "
            "standard deviation, %{customdata[2]:,} ratings<extra></extra>",
        )
    )
    style(
        figure,
        x="ratings per standard deviation",
        height=70 + 24 * max(len(ends), 1),
        dark=dark,
    )
    figure.update_yaxes(
        autorange="reversed",
        tickvals=list(range(len(ends))),
        ticktext=[html.escape(short(end.title, 42), quote=False) for end in ends],
        showgrid=False,
    )
    figure.add_vline(x=0, line={"color": colors.muted, "width": 1})
    return figure


def describe_axis(axis: TasteAxis) -> str:
    """Text alternative of :func:`axis_figure`, and its caption."""
    high = ", ".join(end.title for end in axis.high[:3])
    low = ", ".join(end.title for end in axis.low[:3])
    text = f"Axis {axis.number} carries {100 * axis.share:.1f} % of the total variance. "
    if not low:
        return text + (
            f"It has one end only: users up the axis rate every title higher, most of all {high}."
        )
    if not high:
        return text + (
            f"It has one end only: users up the axis rate every title lower, most of all {low}."
        )
    return text + f"Users up the axis rate higher {high}, and lower {low}."


MOST_POINTS = 10_000  # their names alone take megabytes


def variance_figure(
    profile: VarianceProfile, titles: Sequence[str], *, dark: bool = False
) -> go.Figure:
    """Variance and mean of every title against its number of ratings, drawn by WebGL.

    Titles without training ratings have no place on the logarithmic axis. Of more than
    ``MOST_POINTS`` every so many-th is drawn, in the order of their ratings.
    """
    colors = palette(dark)
    shown = np.argsort(-profile.counts, kind="stable")[: np.count_nonzero(profile.counts)]
    shown = np.sort(shown[:: -(-len(shown) // MOST_POINTS) or 1])
    names = [html.escape(titles[item], quote=False) for item in shown]
    figure = make_subplots(
        rows=1, cols=2, subplot_titles=("Variance, Σ on its diagonal", "Mean, μ")
    )
    for column, (values, colour) in enumerate(
        ((profile.variance, colors.accent), (profile.mean, colors.contrast)), start=1
    ):
        figure.add_trace(
            go.Scattergl(
                x=profile.counts[shown],
                y=values[shown].astype(np.float32),
                mode="markers",
                marker={"size": 5, "color": colour, "opacity": 0.45},
                text=names,
                hovertemplate="%{text}<br>%{x:,} ratings, %{y:.2f}<extra></extra>",
            ),
            row=1,
            col=column,
        )
    style(figure, x="training ratings", height=340, dark=dark, log_x=True, legend=False)
    figure.update_layout(margin_t=36)
    figure.update_annotations(font={"size": 13, "color": colors.muted})
    return figure


def describe_variance(profile: VarianceProfile) -> str:
    """Text alternative of :func:`variance_figure`."""
    text = "Variances and means of the titles against their number of ratings"
    bounds = np.unique(np.quantile(profile.counts, [0, 1 / 3, 2 / 3, 1]))
    parts = []
    for low, high in zip(bounds[:-1], bounds[1:], strict=True):
        inside = (profile.counts >= low) & (profile.counts <= high)
        parts.append(
            f"{low:.0f} to {high:.0f} ratings: median variance "
            f"{np.median(profile.variance[inside]):.2f}, median mean "
            f"{np.median(profile.mean[inside]):.2f}"
        )
    empty = int((profile.counts == 0).sum())
    note = f" {empty:,} titles without training ratings are not drawn." if empty else ""
    return f"{text}. {'; '.join(parts)}.{note}" if parts else f"{text}.{note}"
