"""Figures, tables and words of one user's predictions."""

from __future__ import annotations

import html
import json
import textwrap
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from gmc_core.base.files import without_nan
from gmc_core.model.answers import explained
from gmc_core.model.calibration import described
from gmc_core.model.gaussian_model import GaussianModel, Posterior, Recommendation
from gmc_dashboard.covariance.figures import short
from gmc_dashboard.shared.theme import palette, style
from gmc_dashboard.shared.units import minus, signed

_LETTERS, _ROW = 24, 34  # of a line of the waterfall's labels, and pixels for two lines
KNOWN = "what else is known of the user"
SIMILAR = "what similar users like more or less"
LATENT = "latent response"
FROM_LATENT = "what the cuts make of it"


def select(
    model: GaussianModel,
    posterior: Posterior,
    top: int,
    *,
    min_ratings: int = 0,
    genres: Sequence[str] = (),
) -> list[Recommendation]:
    """The ``top`` recommendations with at least one of ``genres`` (none: any)."""
    if not genres:
        return model.recommend(posterior, top, min_ratings=min_ratings)
    found = model.recommend(posterior, len(model.items), min_ratings=min_ratings)
    wanted = set(genres)
    return [r for r in found if wanted & set(r.genres)][:top]


def default_min_ratings(model: GaussianModel) -> int:
    """1 % of the training users: a rarer title's prediction is hardly more than a guess."""
    users = 0 if model.ratings is None else model.ratings.n_users
    return max(1, round(users / 100)) if users else 0


def genres_of(model: GaussianModel) -> list[str]:
    """All genres of the items, sorted."""
    return sorted({genre for genres in model.item_info.genres for genre in genres})


def recommendations_table(model: GaussianModel, found: Sequence[Recommendation]) -> pd.DataFrame:
    """One row a recommendation.

    "Rating" is projected to the scale and "Prediction" is not; "From" and "To" are the
    ends of the interval.
    """
    shown = model.answers([r.latent for r in found], [r.sd for r in found])
    low, high = shown.interval()
    return pd.DataFrame(
        {
            "Title": [r.title for r in found],
            "Genres": [", ".join(r.genres) for r in found],
            "Rating": shown.rating,
            "Prediction": shown.prediction,
            "From": low,
            "To": high,
            "Ratings": [r.n_ratings for r in found],
            "Id": [r.item_id for r in found],
        },
        index=pd.RangeIndex(1, len(found) + 1, name="Rank"),
    )


def recommendations_json(
    model: GaussianModel, posterior: Posterior, found: Sequence[Recommendation]
) -> str:
    """The recommendations with explanations: before any rating + all shares = latent, which
    is the prediction, or for ordered ratings the latent response that it is made from."""
    table = recommendations_table(model, found)
    ratings = zip(posterior.observed.tolist(), posterior.values.tolist(), strict=True)
    ids = model.items.ids.tolist()
    content = {
        "data": {"name": model.data_name, "licence": model.licence},
        "interval": described(model.calibration)["note"],
        "explained": explained(model.ordinal),
        "ratings": [
            {"id": ids[item], "title": model.title(item), "rating": value}
            for item, value in ratings
        ],
        "recommendations": [
            {
                "rank": rank,
                "id": ids[r.item],
                "title": r.title,
                "genres": list(r.genres),
                "rating": float(row["Rating"]),
                "prediction": r.predicted,
                "latent": r.latent,
                "interval": [float(row["From"]), float(row["To"])],
                "training_ratings": r.n_ratings,
                "mean_of_all_users": float(model.gaussian.mean[r.item]),
                "before_any_rating": float(posterior.prior_mean[r.item]),
                **({} if similar is None else {"similar_users": similar}),
                "shares": [
                    {"id": ids[c.item], "title": c.title, "rating": c.rating, "share": c.share}
                    for c in model.explain(posterior, r.item)
                ],
            }
            for (rank, row), r in zip(table.iterrows(), found, strict=True)
            for similar in [posterior.of_similar_users(r.item)]
        ],
    }
    return json.dumps(without_nan(content), indent=2, ensure_ascii=False)


def interval_texts(table: pd.DataFrame) -> list[str]:
    """The interval of each row of a table, as "3.1 – 4.8"."""
    return [f"{a:.1f} – {b:.1f}" for a, b in zip(table["From"], table["To"], strict=True)]


def completed_row(model: GaussianModel, posterior: Posterior) -> pd.DataFrame:
    """Every item's rating of one user: given, or predicted with its interval."""
    count = len(model.items)
    given = np.full(count, np.nan)
    given[posterior.observed] = posterior.values
    shown = model.answers_of(posterior)
    low, high = shown.interval()
    rated = np.isfinite(given)
    return pd.DataFrame(
        {
            "Id": model.items.ids,
            "Title": [model.title(m) for m in range(count)],
            "Genres": [", ".join(genres) for genres in model.item_info.genres],
            "Source": np.where(rated, "rated", "predicted"),
            "Rating": np.where(rated, given, shown.rating),
            "Prediction": shown.prediction,
            "From": np.where(rated, given, low),
            "To": np.where(rated, given, high),
            "Ratings": model.item_counts,
        }
    )


def held_out_table(
    model: GaussianModel,
    posterior: Posterior,
    items: npt.NDArray[np.int64],
    actual: npt.NDArray[np.float64],
) -> pd.DataFrame:
    """Hidden ratings beside their predictions; an item that is rated now is left out."""
    hidden = ~np.isin(items, posterior.observed)
    items, actual = items[hidden], actual[hidden]
    shown = model.answers_of(posterior, items)
    low, high = shown.interval()
    return pd.DataFrame(
        {
            "Title": [model.title(int(m)) for m in items],
            "Hidden rating": actual,
            "Predicted rating": shown.rating,
            "Prediction": shown.prediction,
            "From": low,
            "To": high,
            "Inside": (low <= actual) & (actual <= high),
            "Error": shown.rating - actual,
        }
    )


def held_out_sentence(table: pd.DataFrame) -> str:
    """How well the hidden ratings were predicted, in words."""
    count = len(table)
    if not count:
        return "None of this user's hidden ratings is left to compare with."
    error = table["Error"].abs().mean()
    noun = "rating was" if count == 1 else "ratings were"
    return (
        f"{count} {noun} hidden from the fit. Mean absolute error of the predicted "
        f"{'rating' if count == 1 else 'ratings'}: {error:.2f}; "
        f"{int(table['Inside'].sum())} of {count} inside the interval."
    )


def split_contributions(
    model: GaussianModel, posterior: Posterior, item: int, top: int = 10
) -> tuple[list[tuple[str, float, float]], int, float]:
    """The ``top`` largest contributions to a prediction and the sum of the others.

    Returns
    -------
    (title, rating, share) of the largest; how many others there are; their sum.
    μ + :func:`known_share` + what similar users add + all shares = prediction, or for
    ordered ratings the latent response.
    """
    everything = model.explain(posterior, item)
    shown = everything if len(everything) <= top + 1 else everything[:top]
    others = everything[len(shown) :]
    return (
        [(c.title, c.rating, c.share) for c in shown],
        len(others),
        float(sum(c.share for c in others)),
    )


def known_share(model: GaussianModel, posterior: Posterior, item: int) -> float | None:
    """What the user's groups add to the prediction; None where none is known."""
    if np.array_equal(posterior.prior_mean, model.gaussian.mean):
        return None
    return float(posterior.prior_mean[item] - model.gaussian.mean[item])


def _besides(model: GaussianModel, posterior: Posterior, item: int) -> list[tuple[str, float]]:
    """What comes to the mean of all users besides the shares of rated titles."""
    parts = {
        KNOWN: known_share(model, posterior, item),
        SIMILAR: posterior.of_similar_users(item),
    }
    return [(name, value) for name, value in parts.items() if value is not None]


def _two_lines(label: str) -> str:
    """A label in lines that leave room for the bars on a telephone, escaped for plotly."""
    return "<br>".join(html.escape(line, quote=False) for line in textwrap.wrap(label, _LETTERS))


def explained_path(
    model: GaussianModel, posterior: Posterior, item: int, top: int = 10
) -> list[tuple[str, str, float]]:
    """The explanation as (kind, label, value), the prediction last.

    kind : "absolute" for the mean that it begins with, "relative" for what is added,
        "total" for where that arrives. Where ratings are ordered it arrives at the latent response,
        and what the cuts make of it is one more step.
    """
    shares, count, rest = split_contributions(model, posterior, item, top)
    path = [("absolute", "mean of all users, μ", float(model.gaussian.mean[item]))]
    path += [("relative", *part) for part in _besides(model, posterior, item)]
    path += [
        ("relative", f"{short(title, 36)}: rated {rating:g}", share)
        for title, rating, share in shares
    ]
    if count:
        path.append(("relative", f"{count:,} other rated titles", rest))
    prediction = float(model.answers_of(posterior, [item]).prediction[0])
    if model.ordinal is not None:
        latent = float(posterior.mean[item])
        path += [("total", LATENT, latent), ("relative", FROM_LATENT, prediction - latent)]
    return [*path, ("total", "prediction", prediction)]


def contributions_figure(
    model: GaussianModel, posterior: Posterior, item: int, *, top: int = 10, dark: bool = False
) -> go.Figure:
    """What each rated title adds to the item's mean or takes from it, as bars that begin at 0.

    The mean and the prediction are numbers at the ends, without bars: on one axis with the shares,
    which are a hundredth of them, either would leave nothing of the other to be compared.
    """
    colors = palette(dark)
    path = explained_path(model, posterior, item, top)
    labels, values = [label for _, label, _ in path], [value for _, _, value in path]
    added = [kind == "relative" for kind, _, _ in path]
    places = list(range(len(labels)))
    shares = [value if share else 0.0 for value, share in zip(values, added, strict=True)]
    texts = [
        signed(v, 3) if share else f"<b>{v:.2f}</b>" for v, share in zip(values, added, strict=True)
    ]
    figure = go.Figure(
        go.Bar(
            orientation="h",
            y=places,
            x=shares,
            text=[minus(text) for text in texts],
            textposition="outside",
            cliponaxis=False,
            marker={"color": [colors.contrast if v > 0 else colors.accent for v in shares]},
            customdata=[html.escape(label, quote=False) for label in labels],
            hovertemplate="%{customdata}<br>%{text}<extra></extra>",
        )
    )
    unit = "rating" if model.ordinal is None else "latent response"
    style(
        figure,
        x=f"added to the {unit},<br>or taken from it",
        height=95 + _ROW * len(labels),
        dark=dark,
        legend=False,
    )
    low, high = min(shares), max(shares)
    room = max(0.4 * (high - low), 0.05)  # for the numbers beside the bars
    figure.update_xaxes(range=[low - room, high + room], nticks=6)
    figure.add_vline(x=0, line={"color": colors.muted, "width": 1})
    figure.update_yaxes(
        range=[len(labels) - 0.5, -0.5],
        tickvals=places,
        ticktext=[
            _two_lines(label) if share else f"<b>{_two_lines(label)}</b>"
            for label, share in zip(labels, added, strict=True)
        ],
        showgrid=False,
    )
    return figure


def describe_contributions(
    model: GaussianModel, posterior: Posterior, item: int, top: int = 10
) -> str:
    """Text alternative of :func:`contributions_figure`."""
    shares, count, rest = split_contributions(model, posterior, item, top)
    mean, centre = float(model.gaussian.mean[item]), float(posterior.mean[item])
    parts = [f"{name} {signed(v, 3)}" for name, v in _besides(model, posterior, item)]
    parts += [f"{title} (rated {rating:g}) {signed(share, 3)}" for title, rating, share in shares]
    if count:
        parts.append(f"{count:,} other rated titles {signed(rest, 3)}")
    listed = "; ".join(parts) if parts else "nothing rated yet"
    end = f"{centre:.3f}"
    if model.ordinal is not None:
        prediction = float(model.answers_of(posterior, [item]).prediction[0])
        end = f"the latent response {end}, as a rating {prediction:.3f}"
    title = model.title(item)
    return f"Prediction of {title}: mean of all users {mean:.3f}; {listed}; together {end}."


def held_out_figure(model: GaussianModel, table: pd.DataFrame, *, dark: bool = False) -> go.Figure:
    """Predictions with intervals, and the hidden ratings, one line a title."""
    colors = palette(dark)
    shown = table.head(25)
    places = list(range(len(shown)))
    titles = [html.escape(title, quote=False) for title in shown["Title"]]
    prediction = shown["Prediction"].clip(model.scale.low, model.scale.high)
    figure = go.Figure()
    figure.add_scatter(
        x=prediction,
        y=places,
        mode="markers",
        name="prediction and interval",
        marker={"color": colors.accent, "size": 9},
        error_x={
            "type": "data",
            "symmetric": False,
            # A prediction of ordered ratings lies between two values, an interval's end on one.
            "array": (shown["To"] - prediction).clip(lower=0),
            "arrayminus": (prediction - shown["From"]).clip(lower=0),
            "color": colors.accent,
            "thickness": 1.5,
        },
        customdata=titles,
        hovertemplate="%{customdata}<br>predicted %{x:.2f}<extra></extra>",
    )
    figure.add_scatter(
        x=shown["Hidden rating"],
        y=places,
        mode="markers",
        name="hidden rating",
        marker={"color": colors.contrast, "size": 11, "symbol": "diamond"},
        customdata=titles,
        hovertemplate="%{customdata}<br>rated %{x:g}<extra></extra>",
    )
    style(figure, x="rating", height=110 + 26 * max(len(shown), 1), dark=dark)
    margin = 0.04 * (model.scale.high - model.scale.low)
    figure.update_xaxes(range=[model.scale.low - margin, model.scale.high + margin])
    figure.update_yaxes(
        autorange="reversed",
        tickvals=places,
        ticktext=[html.escape(short(title, 42), quote=False) for title in shown["Title"]],
    )
    return figure
