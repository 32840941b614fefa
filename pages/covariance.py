"""The Covariance page: Σ as a whole, between chosen titles, and what it says of them.

Sections: constants, layout.
"""

from __future__ import annotations

import streamlit as st

from gmc_core.runs.store import Run
from gmc_dashboard.covariance.overview import overview
from gmc_dashboard.covariance.title_map import title_map
from gmc_dashboard.covariance.titles import chosen_titles
from gmc_dashboard.covariance.views import nearest, taste_axes, variances
from gmc_dashboard.shared import context, link_state
from gmc_dashboard.shared.chosen_run import (
    choose_run_and_view,
    explain_signals,
    model_or_wait,
    rows_only,
)
from gmc_dashboard.shared.components import guard, page_header

# Constants ---------------------------------------------------------------------------

LEAD = (
    "How the ratings of one title move with those of another: the matrix Σ that every prediction "
    "is made from."
)
PURPOSE = "which titles go together"
VIEWS = {
    "titles": "Titles",
    "map": "Map",
    "overview": "Overview",
    "neighbours": "Neighbours",
    "axes": "Taste axes",
    "variances": "Variances",
}
# What a view keeps in the URL beside the widgets that do so themselves.
LINKED = {
    "overview": ("iteration", "kind", "order"),
    "titles": ("n", "titles", "pair", "titles_from", "titles_kind", "titles_order"),
    "neighbours": ("title",),
    "map": ("map", "map_n"),
}


# These in an address without a view are of the overview, with which the page once began.
OF_OVERVIEW = ("iteration", "kind", "order")


# Layout ------------------------------------------------------------------------------


def opening(run: Run) -> str:
    """The view of a link that names none: titles, or the overview where only that can be drawn."""
    if any(name in st.query_params for name in OF_OVERVIEW):
        return "overview"
    without_titles = context.store().model_path(run.id) is None or run.config.fit.signals != "rows"
    return "overview" if without_titles and context.store().pictures(run.id) else "titles"


def draw(run: Run, view: str) -> None:
    """One view of a run."""
    for other, names in LINKED.items():
        if other != view:
            link_state.hide(*names)
    if view == "overview" and context.store().pictures(run.id):
        if run.config.fit.signals != "rows":
            explain_signals(run.config.fit.signals, PURPOSE)
        overview(run)
        return
    model = model_or_wait(run, PURPOSE)
    if model is None or not rows_only(model, PURPOSE):
        return
    if view == "overview":
        overview(run)
    elif view == "titles":
        chosen_titles(run, model)
    elif view == "map":
        title_map(run, model)
    elif view == "neighbours":
        nearest(run, model)
    elif view == "axes":
        taste_axes(run, model)
    else:
        variances(run, model)


page_header("Covariance", LEAD)
with guard():
    chosen = choose_run_and_view(PURPOSE, "View", VIEWS, "view", opening)
    if chosen is not None:
        draw(*chosen)
