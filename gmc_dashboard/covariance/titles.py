"""The Covariance page's clickable heatmap of chosen titles, and the pair that was clicked."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gmc_core.model import analysis
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.model.item_orders import ORDERS
from gmc_core.runs.store import Run
from gmc_dashboard.covariance import data as covariance_data
from gmc_dashboard.covariance import figures as figures
from gmc_dashboard.covariance.taste_figures import pair_sentence, partial_sentence
from gmc_dashboard.covariance.views import picture_room, run_part
from gmc_dashboard.recommend.figures import genres_of
from gmc_dashboard.shared import link_state
from gmc_dashboard.shared.components import download, escape, fact, number_row
from gmc_dashboard.shared.linked_choice import linked_choice
from gmc_dashboard.shared.presenting import LEAST, presenting
from gmc_dashboard.shared.tables import to_csv
from gmc_dashboard.shared.theme import is_dark
from gmc_dashboard.shared.title_options import offered

SOURCES = {"rated": "Most rated", "genre": "Genre", "search": "Search"}
DEFAULT_SHOWN = 30
PRESENTED = 12  # as many as can be named in large type
ROW, COLUMN = "pair_row", "pair_column"


def chosen_titles(run: Run, model: GaussianModel) -> None:
    """Choose titles, see Σ between them, click a cell to read what it means."""
    key = covariance_data.key_of(run.id)
    row = st.container(horizontal=True, vertical_alignment="bottom")
    items = _choose(key, model, row)
    with row:
        kind = linked_choice(
            "Show", figures.KINDS, "correlation", key="titles_kind", box=True, width=180
        )
        orders = ("similarity", *(name for name in ORDERS if name != "similarity"))
        order = linked_choice(
            "Order",
            {name: covariance_data.AXES_OF_ORDERS[name] for name in orders},
            "similarity",
            key="titles_order",
            box=True,
            width=220,
        )
    if len(items) < 2:
        st.info("Choose at least two titles.", icon=":material/grid_on:")
        return
    placed, matrix = covariance_data.block(key, model, items, kind, order)
    labels = figures.axis_labels(model, placed)
    counts = [int(model.item_counts[item]) for item in placed]
    left, right = st.columns([5, 2], gap="medium")
    with left, picture_room():
        event = st.altair_chart(
            figures.heatmap_chart(
                matrix,
                labels,
                counts,
                kind=kind,
                dark=is_dark(),
                least=LEAST if presenting() else None,
            ),
            height="stretch",
            on_select="rerun",
            selection_mode=figures.PAIR,
            # New titles or another order are another chart: places of a click would lie.
            key=f"heatmap_{hash((key, tuple(placed), kind))}",
            alt=figures.describe_heatmap(matrix, labels, kind),
        )
    with left:
        fact(
            "Click a cell to read what it means. Colours end at the 99th percentile; the diagonal "
            "lies beyond it."
        )
    with right:
        _pair(key, model, placed, figures.clicked_pair(event, len(placed)))
        table = pd.DataFrame(matrix, columns=[model.title(item) for item in placed])
        table.insert(0, "Title", [model.title(item) for item in placed])
        download(
            "This matrix as CSV", lambda: to_csv(table), f"{kind}.csv", "text/csv", key="titles_csv"
        )


def _choose(
    key: covariance_data.ModelKey, model: GaussianModel, row: DeltaGenerator
) -> tuple[int, ...]:
    """The titles to show, at most 200; short controls go into ``row``."""
    popular = covariance_data.by_popularity(key, model)
    titles = covariance_data.titles(key, model)
    genres = genres_of(model)
    with row:
        there = {name: words for name, words in SOURCES.items() if name != "genre" or genres}
        source = linked_choice("Titles", there, "rated", key="titles_from")
    if source == "search":
        link_state.hide("n")
        return tuple(_search_box(key, model, popular, titles))
    link_state.hide("titles")
    if source == "genre":
        genre = row.selectbox("Genre", genres, key="genre", bind="query-params", width=160)
        popular = [item for item in popular if genre in model.item_info.genres[item]]
    most = min(figures.MAX_SHOWN, len(popular))
    if most <= 2:
        return tuple(popular)
    usual = PRESENTED if presenting() else DEFAULT_SHOWN
    state, default = f"titles_count_{most}_{usual}", min(usual, most)
    if link_state.unset(state):
        asked = link_state.recall("n")
        st.session_state[state] = min(max(int(asked), 2), most) if asked.isdecimal() else default
    count = row.number_input(
        "How many",
        2,
        most,
        key=state,
        help=f"The most rated ones. Up to {figures.COMFORTABLE} can be read at once; the limit is "
        f"{figures.MAX_SHOWN}.",
        width=130,
    )
    link_state.keep("n", "" if count == default else str(count))
    return tuple(popular[:count])


def _search_box(
    key: covariance_data.ModelKey, model: GaussianModel, popular: list[int], titles: list[str]
) -> list[int]:
    state = f"titles_search_{run_part(key)}"
    if link_state.unset(state):
        ids = [part for part in link_state.recall("titles").split(",") if part]
        found = [int(item) for item in model.items.find(ids) if item >= 0]
        st.session_state[state] = list(dict.fromkeys(found))[: figures.MAX_SHOWN] or popular[:10]
    chosen = st.multiselect(
        "Search titles",
        offered(popular, titles, state, st.session_state[state]),
        format_func=titles.__getitem__,
        max_selections=figures.MAX_SHOWN,
        placeholder="Type a part of a title",
        key=state,
    )
    link_state.keep("titles", ",".join(str(model.items.ids[item]) for item in chosen))
    return chosen


def _pair(
    key: covariance_data.ModelKey,
    model: GaussianModel,
    placed: list[int],
    clicked: tuple[int, int] | None,
) -> None:
    """Two boxes that a click fills, and what Σ says of the two titles."""
    linked = [int(m) for m in model.items.find(link_state.recall("pair").split(","))]
    linked = linked if len(linked) == 2 else placed[:2]
    for state, asked, default in zip((ROW, COLUMN), linked, placed, strict=False):
        if link_state.unset(state) or st.session_state[state] not in placed:
            st.session_state[state] = asked if asked in placed else default
    # Only a new click counts: the boxes may have been changed by hand since the last one.
    click = None if clicked is None else tuple(placed[place] for place in clicked)
    if click != st.session_state.get("pair_click"):
        st.session_state["pair_click"] = click
        if click is not None:
            st.session_state[ROW], st.session_state[COLUMN] = click
    titles = covariance_data.titles(key, model)
    i = st.selectbox("Row", placed, format_func=titles.__getitem__, key=ROW)
    j = st.selectbox("Column", placed, format_func=titles.__getitem__, key=COLUMN)
    if i is None or j is None:
        return
    ids = model.items.ids
    link_state.keep("pair", "" if [i, j] == placed[:2] else f"{ids[i]},{ids[j]}")
    block = model.gaussian.covariance.submatrix([i, j], [i, j])  # type: ignore[arg-type]
    common = analysis.common_raters(model, i)
    both = "unknown" if common is None else f"{common[j]:,}"
    number_row(
        [
            ("Correlation", f"{analysis.correlation(block)[0, 1]:.3f}"),
            ("Covariance", f"{block[0, 1]:.3f}"),
            ("Both", both, "Training users who rated both titles."),
        ]
    )
    st.markdown(escape(pair_sentence(model, i, j)))
    if i != j and st.toggle(
        "Hold all other titles fixed",
        key="pair_partial",
        bind="query-params",
        help="The partial correlation, from the inverse of Σ. The first one takes a moment.",
    ):
        # Of all titles shown at once: the next pair then costs nothing.
        shown = tuple(sorted(placed))
        items, partial = covariance_data.block(key, model, shown, "partial", "given")
        st.markdown(escape(partial_sentence(float(partial[items.index(i), items.index(j)]))))
    fact(
        f"Training ratings: {model.item_counts[i]:,} of the row's title, "
        f"{model.item_counts[j]:,} of the column's."
    )
