"""The Covariance page's map of the titles: look, pick, and go on with what was picked."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from gmc_core.base.errors import DataError
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.runs.store import Run
from gmc_dashboard.covariance import data as covariance_data
from gmc_dashboard.covariance import figures, map_figures
from gmc_dashboard.covariance.views import run_part
from gmc_dashboard.recommend import picks, who
from gmc_dashboard.shared import context, link_state
from gmc_dashboard.shared.components import chart, download, escape, fact
from gmc_dashboard.shared.presenting import LEAST, presenting
from gmc_dashboard.shared.tables import to_csv
from gmc_dashboard.shared.theme import is_dark

STOPS, USUAL = (30, 100, 200, 300, 500, 1_000, 2_000, 5_000), 300  # titles on the map
IN_LINK = 60  # picked titles that the address holds
# Plotly tells of points under a lasso only with these tools; a double click takes them away.
TOOLS = {"modeBarButtonsToRemove": ["autoScale2d"]}
ROOM = """<style>
.st-key-map_room { height: max(26rem, calc(100vh - 18rem)); flex: none }
.st-key-map_room > *, .st-key-map_room .stPlotlyChart { height: 100% }
/* Labels are laid out twice: see map_figures. */
@media (max-width: 640px) {
    .st-key-map_room .scatterlayer .trace:last-child .text { display: none }
}
@media (min-width: 640.1px) {
    .st-key-map_room .scatterlayer .trace:nth-last-child(2) .text { display: none }
}
</style>"""


def title_map(run: Run, model: GaussianModel) -> None:
    """The map with its controls beside it."""
    key = covariance_data.key_of(run.id)
    left, right = st.columns([5, 2], gap="medium")
    with right:
        count = _how_many(key, model)
    try:
        found = covariance_data.title_map(key, model, count)
    except DataError as error:
        left.info(escape(str(error)), icon=":material/info:")
        return
    on_map = found.items.tolist()
    with right:
        picked = _picked(key, model, on_map)
    words = map_figures.describe_map(model, found)
    figure = map_figures.map_figure(
        model,
        found,
        set(picked),
        genres=4 if presenting() else map_figures.GENRES,
        size=LEAST if presenting() else map_figures.TEXT,
        dark=is_dark(),
    )
    chart_key = f"map_chart_{run_part(key)}"
    with left:
        st.html(ROOM)
        with st.container(key="map_room", height="content"):
            chart(
                figure,
                words,
                key=chart_key,
                config=TOOLS,
                height="stretch",
                on_select=lambda: _take(chart_key, _state(key), on_map),
                selection_mode=("lasso", "box", "points"),
            )
    with right:
        _ways_on(run, key, model, picked)
        fact(escape(map_figures.held_sentence(found)))
        table = pd.DataFrame(
            {
                "Id": model.items.ids[found.items],
                "Title": [model.title(item) for item in on_map],
                "Dimension 1": found.coordinates[:, 0],
                "Dimension 2": found.coordinates[:, 1],
                "Ratings": model.item_counts[found.items],
            }
        )
        download("The map as CSV", lambda: to_csv(table), "map.csv", "text/csv", key="map_csv")


def _state(key: covariance_data.ModelKey) -> str:
    """Under which the box of picked titles keeps them."""
    return f"map_picked_{run_part(key)}"


def _how_many(key: covariance_data.ModelKey, model: GaussianModel) -> int:
    """How many of the most rated titles are on the map; in the URL as ``map_n``."""
    most = min(STOPS[-1], len(model.items))
    stops = [stop for stop in STOPS if stop < most] + [most]
    usual = min(USUAL, most)
    if len(stops) == 1:
        return most
    state = f"map_count_{run_part(key)}"
    if link_state.unset(state):
        asked = link_state.recall("map_n")
        wanted = int(asked) if asked.isdecimal() else usual
        st.session_state[state] = min(stops, key=lambda stop: abs(stop - wanted))
    count = st.select_slider(
        "Titles, the most rated",
        stops,
        key=state,
        help="Of titles with few ratings Σ knows little; they gather in the middle.",
    )
    link_state.keep("map_n", "" if count == usual else str(count))
    return int(count)


def _picked(
    key: covariance_data.ModelKey, model: GaussianModel, on_map: Sequence[int]
) -> list[int]:
    """The box that a lasso fills, and a keyboard as well; in the URL as ``map``."""
    titles = covariance_data.titles(key, model)
    state, there = _state(key), set(on_map)
    if link_state.unset(state):
        ids = [part for part in link_state.recall("map", key[0]).split(",") if part]
        st.session_state[state] = [int(item) for item in model.items.find(ids)]
    before = dict.fromkeys(item for item in st.session_state[state] if item in there)
    st.session_state[state] = list(before)[: figures.MAX_SHOWN]
    chosen = st.multiselect(
        "Picked titles",
        on_map,
        format_func=titles.__getitem__,
        max_selections=figures.MAX_SHOWN,
        placeholder="Draw around points, or type a title",
        key=state,
        help="Picked titles have a ring and their name on the map. A lasso or a box picks what is "
        "in it; with Shift it adds.",
    )
    linked = ",".join(str(model.items.ids[item]) for item in chosen[:IN_LINK])
    link_state.keep("map", linked, key[0])
    return list(chosen)


def _take(chart_key: str, state: str, on_map: Sequence[int]) -> None:
    """Put what was drawn around into the box; the most rated titles, where they are too many."""
    points = st.session_state[chart_key]["selection"]["points"]
    under = {_item(point.get("customdata")) for point in points}
    st.session_state[state] = [item for item in on_map if item in under][: figures.MAX_SHOWN]


def _item(custom: object) -> int:
    """The item position of a point, which comes alone or in a list; -1 for anything else."""
    value = custom[0] if isinstance(custom, (list, tuple)) and custom else custom
    return int(value) if isinstance(value, (int, float)) else -1


def _ways_on(
    run: Run, key: covariance_data.ModelKey, model: GaussianModel, picked: list[int]
) -> None:
    """Buttons that take the picked titles to the heatmap and to Recommend."""
    st.button(
        "Show these in the heatmap",
        key="map_to_heatmap",
        icon=":material/grid_on:",
        disabled=len(picked) < 2,
        help="Σ between the picked titles, two or more.",
        on_click=_to_heatmap,
        args=(key, model, picked),
        width="stretch",
    )
    if st.button(
        "Rate these next",
        key="leave_to_recommend",
        icon=":material/star:",
        disabled=not picked,
        help=f"On Recommend; of many the {picks.BATCH} most rated.",
        width="stretch",
    ):
        order = {
            item: place for place, item in enumerate(covariance_data.by_popularity(key, model))
        }
        picks.offer(who.own_name(run, model), sorted(picked, key=order.__getitem__))
        query = {**context.link_params(run=run.id), "who": who.YOURSELF}
        st.switch_page("pages/recommend.py", query_params=query)


def _to_heatmap(key: covariance_data.ModelKey, model: GaussianModel, picked: list[int]) -> None:
    ids = ",".join(str(model.items.ids[item]) for item in picked)
    link_state.keep("titles", ids)
    st.session_state[f"titles_search_{run_part(key)}"] = picked
    st.session_state["titles_from"] = st.query_params["titles_from"] = "search"
    st.session_state["view"] = "titles"
