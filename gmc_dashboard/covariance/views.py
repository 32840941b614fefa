"""The Covariance page's views of a chosen run: controls, a figure, its words, a file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gmc_core.model import analysis, taste
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.runs.store import Run
from gmc_dashboard.covariance import data as covariance_data
from gmc_dashboard.covariance import taste_figures as taste_figures
from gmc_dashboard.recommend.figures import default_min_ratings
from gmc_dashboard.shared import context, link_state
from gmc_dashboard.shared.components import chart, download, escape, fact
from gmc_dashboard.shared.frames import frame
from gmc_dashboard.shared.presenting import presenting
from gmc_dashboard.shared.tables import to_csv
from gmc_dashboard.shared.theme import is_dark
from gmc_dashboard.shared.title_options import offered

AXES_SHOWN = 8
ENDS, ENDS_PRESENTED = 8, 5  # titles at either end of an axis
EIGENVALUES = 20
# The controls above take 21 rem, the note of a better run 3.5 and the tour's card 4.5 where there
# is one; a window that is not high scrolls rather than squeezes.
PICTURE_ROOM = """<style>
.st-key-picture_room { height: max(24rem, calc(100vh - 22.5rem)); flex: none }
html:has(.st-key-better_run_note) .st-key-picture_room {
    height: max(24rem, calc(100vh - 26rem)) }
html:has(.st-key-tour_banner) .st-key-picture_room {
    height: max(20rem, calc(100vh - 27.5rem)) }
.st-key-picture_room > *, .st-key-picture_room .stVegaLiteChart,
.st-key-picture_room .stPlotlyChart { height: 100% }
</style>"""


def nearest(run: Run, model: GaussianModel) -> None:
    """A title's neighbours by correlation, as bars and table."""
    key = covariance_data.key_of(run.id)
    left, middle, right = st.columns([5, 2, 2], vertical_alignment="bottom")
    with left:
        item = title_box("Title", "title", key, model)
    top = middle.number_input("How many", 5, 50, 15, 5, key="neighbours_top", bind="query-params")
    least = min_ratings_box(right, model, "neighbours_least")
    if item is None:
        st.info("Search a title above to see its nearest neighbours.", icon=":material/search:")
        return
    found = analysis.neighbours(model, item, int(top), min_ratings=least)
    title = model.title(item)
    if not found:
        st.info(
            f"No title has {least:,} ratings or more. Lower “Min. ratings”.",
            icon=":material/filter_alt:",
        )
        return
    words = taste_figures.describe_neighbours(title, found)
    bars, table = st.columns([4, 5])
    with bars:
        chart(taste_figures.neighbours_figure(found, dark=is_dark()), words, key="neighbours_chart")
    shown = neighbours_table(found)
    with table:
        frame(
            shown,
            projected=["Title", "Correlation", "Both"],
            hide_index=True,
            height=35 * min(len(shown), 14) + 38,
            column_config={
                "Title": st.column_config.TextColumn(width=245),
                "Correlation": st.column_config.NumberColumn(format="%.3f", width=85),
                "Covariance": st.column_config.NumberColumn(format="%.3f", width=85),
                "Both": st.column_config.NumberColumn(
                    format="%d", width=50, help="Training users who rated both titles"
                ),
                "Ratings": st.column_config.NumberColumn(format="%d", width=60),
            },
            alt=words,
        )
    fact(
        f"“{escape(title)}” has {model.item_counts[item]:,} training ratings. “Both” counts the "
        "users who rated both titles: where it is small, the link was learned through other titles."
    )
    download("Neighbours as CSV", lambda: to_csv(shown), "neighbours.csv", "text/csv")


def neighbours_table(found: list[analysis.Neighbour]) -> pd.DataFrame:
    """The neighbours with their values."""
    return pd.DataFrame(
        {
            "Title": [n.title for n in found],
            "Correlation": [n.correlation for n in found],
            "Covariance": [n.covariance for n in found],
            "Both": [n.common for n in found],
            "Ratings": [n.n_ratings for n in found],
            "Genres": [", ".join(n.genres) for n in found],
        }
    )


def taste_axes(run: Run, model: GaussianModel) -> None:
    """The leading eigenvectors with the titles at their ends, and the spectrum."""
    key = covariance_data.key_of(run.id)
    leading = covariance_data.spectrum(key, model, min(EIGENVALUES, len(model.items)))
    left, right = st.columns([5, 2], vertical_alignment="bottom")
    least = min_ratings_box(right, model, "axes_least")
    ends_shown = ENDS_PRESENTED if presenting() else ENDS
    axes = taste.taste_axes(model, leading, ends=ends_shown, min_ratings=least)[:AXES_SHOWN]
    number = left.segmented_control(
        "Axis, by falling share of the total variance",
        [axis.number for axis in axes],
        default=1,
        required=True,
        key="axis",
        bind="query-params",
    )
    axis = axes[int(number or 1) - 1]
    words = taste_figures.describe_axis(axis)
    st.markdown(escape(words))
    ends, spectrum = st.columns([3, 2])
    with ends:
        chart(taste_figures.axis_figure(axis, dark=is_dark()), words, key="axis_chart")
    with spectrum:
        chart(
            taste_figures.spectrum_figure(leading, dark=is_dark()),
            taste_figures.describe_spectrum(leading),
            key="spectrum_chart",
        )
        fact(
            "An axis is an eigenvector of Σ: one direction in which users differ, uncorrelated "
            "with the others. A bar shows by how many ratings the title moves for a user one "
            "standard deviation up the axis. Which end is called up is a convention."
        )
    loadings = pd.DataFrame(
        leading.vectors * np.sqrt(np.maximum(leading.values, 0)),
        columns=[f"Axis {k}" for k in range(1, len(leading.values) + 1)],
    )
    loadings.insert(0, "Title", covariance_data.titles(key, model))
    download("All axes as CSV", lambda: to_csv(loadings), "taste-axes.csv", "text/csv")


def variances(run: Run, model: GaussianModel) -> None:
    """Variances and means against the number of ratings."""
    key = covariance_data.key_of(run.id)
    profile = taste.variance_profile(model)
    titles = covariance_data.titles(key, model)
    words = taste_figures.describe_variance(profile)
    chart(
        taste_figures.variance_figure(profile, titles, dark=is_dark()), words, key="variance_chart"
    )
    epsilon = model.settings.epsilon
    fact(
        f"The variance cannot fall below ε = {epsilon:g}. Few ratings move a title's estimates "
        "little, so rare titles stay near this floor and near the initial value of "
        f"{model.settings.initial:g}: the fit knows little of them, it does not know them to be "
        "uniform."
    )
    st.markdown(escape(words))
    table = pd.DataFrame(
        {
            "Id": model.items.ids,
            "Title": titles,
            "Ratings": profile.counts,
            "Mean": profile.mean,
            "Variance": profile.variance,
        }
    )
    download("Means and variances as CSV", lambda: to_csv(table), "variances.csv", "text/csv")


# Parts that several views share -----------------------------------------------------


def picture_room() -> DeltaGenerator:
    """A place for a heatmap that fills what the window leaves below the page's controls.

    To be drawn in with ``height="stretch"``.
    """
    st.html(PICTURE_ROOM)
    return st.container(key="picture_room", height="content")


def min_ratings_box(place: DeltaGenerator, model: GaussianModel, key: str) -> int:
    """How many training ratings a title must have to be shown."""
    most = int(model.item_counts.max(initial=0))
    return int(
        place.number_input(
            "Min. ratings",
            0,
            max(most, 1),
            min(default_min_ratings(model), most),
            key=key,
            bind="query-params",
            help="Leaves out titles with fewer training ratings. The default is 1 % of the users: "
            "of rarer titles Σ says little.",
        )
    )


def title_box(
    label: str, name: str, key: covariance_data.ModelKey, model: GaussianModel
) -> int | None:
    """A searchable box of all titles; its choice is in the URL as ``name=<item id>``."""
    options = covariance_data.by_popularity(key, model)
    titles = covariance_data.titles(key, model)
    state = f"{name}_box_{run_part(key)}"
    if link_state.unset(state):
        asked = link_state.recall(name)
        found = int(model.items.find([asked])[0]) if asked else -1
        if found < 0 and name in st.query_params:
            st.warning(
                f"This model has no title with the id {escape(str(asked))}; search for another."
            )
        st.session_state[state] = found if found >= 0 else options[0]
    item = st.selectbox(
        label,
        offered(options, titles, state, [st.session_state[state]]),
        format_func=titles.__getitem__,
        key=state,
        placeholder="Search a title",
    )
    if item is not None:
        link_state.keep(name, str(model.items.ids[item]))
    return item


def run_part(key: covariance_data.ModelKey) -> str:
    """A part of widget keys that changes with the model."""
    return f"{key[0]}_{key[1]}"


def current_folder() -> str:
    """The store's folder, a part of cache keys."""
    return str(context.store().path)
