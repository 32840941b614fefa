"""Figures of a set of ratings: the values, and how many per user and per item."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from gmc_core.data.ratings import Ratings
from gmc_dashboard.shared.theme import faint, palette, style

CONTINUOUS_BINS = 40
RANK_POINTS = 400


def rating_counts(
    ratings: Ratings,
) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.integer], float]:
    """Centres, counts and width of the bars: one a level, or bins on a continuous scale."""
    levels, (values, of_each) = ratings.scale.levels, ratings.value_counts
    if levels is not None:
        step = ratings.scale.step or 1.0
        edges = np.append(levels, levels[-1] + step) - step / 2
        return levels, np.histogram(values, edges, weights=of_each)[0], step
    counts, edges = np.histogram(
        values, CONTINUOUS_BINS, (ratings.scale.low, ratings.scale.high), weights=of_each
    )
    return (edges[:-1] + edges[1:]) / 2, counts, float(edges[1] - edges[0])


def rating_histogram(ratings: Ratings, *, dark: bool = False, height: int = 300) -> go.Figure:
    """How often each rating was given, with its share in the hover text."""
    centres, counts, width = rating_counts(ratings)
    shares = 100 * counts / max(counts.sum(), 1)
    colors = palette(dark)
    fig = go.Figure(
        go.Bar(
            x=centres,
            y=counts,
            width=width * 0.86,
            marker={"color": colors.accent, "line": {"width": 0}},
            customdata=shares,
            hovertemplate="rating %{x:.3~g}<br>%{y:,} times (%{customdata:.1f} %)<extra></extra>",
        )
    )
    mean = float(ratings.values.mean())
    fig.add_vline(
        x=mean,
        line={"color": colors.contrast, "dash": "dash", "width": 2},
        annotation={"text": f"mean {mean:.2f}", "font": {"color": colors.contrast, "size": 12}},
        annotation_position="top left",
    )
    style(
        fig,
        title="Ratings",
        x="rating",
        y="how often",
        height=height,
        dark=dark,
        uirevision="ratings",
    )
    if ratings.scale.step is not None:
        fig.update_xaxes(tickvals=centres, tickformat=".3~g", showgrid=False)
    return fig


def rating_histogram_alt(ratings: Ratings) -> str:
    """The histogram in words."""
    centres, counts, _ = rating_counts(ratings)
    most = int(np.argmax(counts))
    return (
        f"Histogram of {len(ratings):,} ratings on the scale {ratings.scale}. The most frequent "
        f"value is {centres[most]:.3g} with {counts[most]:,} ratings "
        f"({100 * counts[most] / counts.sum():.0f} %); the mean is {ratings.values.mean():.2f}."
    )


def rank_curve(
    counts: npt.NDArray[np.integer], points: int = RANK_POINTS
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Ranks and counts in falling order, thinned to ``points`` evenly spaced on a log axis."""
    falling = np.sort(counts[counts > 0])[::-1].astype(np.int64)
    if not len(falling):
        return np.zeros(0, np.int64), falling
    ranks = np.unique(np.geomspace(1, len(falling), points).round().astype(np.int64))
    return ranks, falling[ranks - 1]


def activity(
    counts: npt.NDArray[np.integer],
    kind: str,
    threshold: int | None = None,
    *,
    dark: bool = False,
    height: int = 300,
) -> go.Figure:
    """Number of ratings of each user or item against its rank, on logarithmic axes.

    Parameters
    ----------
    counts : ratings of each user or item.
    kind : "user" or "item".
    threshold : the filter's minimum, drawn as a line; None or below 2 for none.
    """
    ranks, values = rank_curve(counts)
    colors = palette(dark)
    color = colors.categorical[0 if kind == "user" else 2]
    fig = go.Figure(
        go.Scatter(
            x=ranks,
            y=values,
            mode="lines",
            line={"color": color, "width": 2.5},
            fill="tozeroy",
            fillcolor=faint(color, 0.15),
            hovertemplate=f"{kind} number %{{x:,}}<br>%{{y:,}} ratings<extra></extra>",
        )
    )
    if threshold is not None and threshold > 1:
        fig.add_hline(y=threshold, line={"color": colors.contrast, "dash": "dash", "width": 2})
        # On a logarithmic axis an annotation's place is a logarithm, a line's is not.
        fig.add_annotation(
            x=0.02,
            xref="paper",
            y=np.log10(threshold),
            text=f"filter: at least {threshold:,}",
            font={"color": colors.contrast, "size": 12},
            showarrow=False,
            xanchor="left",
            yanchor="bottom",
        )
    style(
        fig,
        title=f"Ratings per {kind}",
        x=f"{kind}s, the most active first" if kind == "user" else "items, the most rated first",
        y="ratings",
        height=height,
        dark=dark,
        log_x=True,
        log_y=True,
        uirevision=f"activity-{kind}",
    )
    if len(values):
        top = np.log10(values[0]) + 0.1
        fig.update_yaxes(range=[np.log10(max(values[-1], 1)) - 0.15, top])
    return fig


def activity_alt(counts: npt.NDArray[np.integer], kind: str) -> str:
    """The rank plot in words."""
    present = counts[counts > 0]
    if not len(present):
        return f"No {kind} has ratings."
    tenth = max(len(present) // 10, 1)
    share = np.sort(present)[::-1][:tenth].sum() / present.sum()
    return (
        f"Ratings per {kind}, sorted, on logarithmic axes: from {present.max():,} down to "
        f"{present.min():,}, median {np.median(present):,.0f}. The top tenth of the {kind}s has "
        f"{100 * share:.0f} % of the ratings."
    )


def work_by_user(
    sizes: npt.NDArray[np.integer], *, dark: bool = False, height: int = 260
) -> go.Figure:
    """Which users the E-step's time goes to: share of Σ N_i³ by share of users."""
    users, work = work_curve(sizes)
    colors = palette(dark)
    fig = go.Figure(
        go.Scatter(
            x=100 * users,
            y=100 * work,
            mode="lines",
            line={"color": colors.accent, "width": 2.5},
            hovertemplate="the %{x:.1f} % of users with most ratings<br>take %{y:.0f} % of the "
            "E-step<extra></extra>",
        )
    )
    fig.add_trace(
        go.Scatter(
            x=[0, 100],
            y=[0, 100],
            mode="lines",
            line={"color": colors.contrast, "dash": "dash", "width": 2},
            hoverinfo="skip",
        )
    )
    style(
        fig,
        title="Who the E-step's time goes to",
        x="% of the users, most ratings first",
        y="% of the arithmetic",
        height=height,
        dark=dark,
        legend=False,
        uirevision="cost",
    )
    fig.add_annotation(
        x=62,
        y=56,
        text="if all users were alike",
        showarrow=False,
        xanchor="left",
        font={"color": colors.contrast, "size": 12},
    )
    return fig


def work_by_user_alt(sizes: npt.NDArray[np.integer]) -> str:
    """The work curve in words."""
    users, work = work_curve(sizes)
    tenth = float(np.interp(0.1, users, work))
    return (
        "Share of the E-step's arithmetic against share of users, those with most ratings "
        f"first: a tenth of the users takes {100 * tenth:.0f} % of it."
    )


def work_curve(
    sizes: npt.NDArray[np.integer],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Share of users and share of Σ N_i³ that they take, largest first."""
    cubes = np.sort(sizes.astype(np.float64))[::-1] ** 3
    total = cubes.sum()
    if not total:
        return np.array([0.0, 1.0]), np.array([0.0, 1.0])
    keep = np.unique(np.linspace(0, len(cubes), 201).round().astype(int))
    work = np.concatenate([[0.0], np.cumsum(cubes)]) / total
    return keep / len(cubes), work[keep]
