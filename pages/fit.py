"""Fit: choose the settings, start a run in the background, watch it.

What is shown comes from the run store, found by the run's id in the URL: a reload, a
second tab and a restart all show the same run. The fit itself runs in a process of
its own.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from gmc_core.fitting.affordable import Wanted
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.gaussian.settings import FitSettings
from gmc_core.runs.store import StoreError
from gmc_dashboard.fit import cost_view, fit_form, run_view
from gmc_dashboard.shared import context, found_run, sources, tour
from gmc_dashboard.shared.chosen_data import filtered_or_way_on
from gmc_dashboard.shared.components import empty_state, escape, guard, page_header, page_lead
from gmc_dashboard.shared.run_pages import place_of

LEAD = (
    "Learn the mean μ and covariance Σ of the users’ rating rows with MAP-EM, and watch the error "
    "on held-out ratings."
)


def start(config: ExperimentConfig, cost: dict[str, Any] | None = None) -> None:
    """Queue the experiment, or find the same one, and show it."""
    found_run.start_fit(config, cost)
    st.rerun()


def settings() -> None:
    """The form, the estimate and the start button."""
    page_lead(LEAD)
    chosen = context.current()
    found = filtered_or_way_on()
    if found is None:
        return
    ratings, _ = found
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            f"**{escape(sources.title(chosen.data))}**: {ratings.n_users:,} users, "
            f"{ratings.n_items:,} items, {len(ratings):,} ratings after the filter; "
            f"{context.protocol_words()}.",
            width="content",
        )
        st.page_link(
            "pages/data.py",
            label="Change",
            icon=":material/edit:",
            query_params=context.link_params(),
        )
        st.space("stretch")
        fit_form.presets(ratings.scale)
    begin = st.container()
    choice = fit_form.fit_controls(ratings, chosen.protocol)
    with begin:
        _start_bar(choice, chosen.protocol)


def _start_bar(choice: fit_form.Choice, protocol: str) -> None:
    cost, estimate = cost_view.cost_and_time_of(choice.settings, choice.repetitions)
    wanted = Wanted(choice.settings, repetitions=choice.repetitions)
    verdict = cost_view.verdict_on([(wanted, cost, estimate)], key="fit_however_long")
    possible = fit_form.fits(protocol, choice.settings) and verdict.possible
    with st.container(horizontal=True, vertical_alignment="center", gap="small", border=True):
        clicked = st.button(
            "Start the fit",
            key="start_fit",
            type="primary",
            icon=":material/play_arrow:",
            disabled=not possible,
        )
        st.markdown(cost_view.cost_sentence(cost, estimate), width="stretch")
    if clicked:
        start(choice.config, cost_view.stored_cost(cost, estimate, verdict.however_long))


def show(identity: str) -> None:
    """The run with this id, or the way on if there is none."""
    try:
        run = context.store().run(identity)
    except StoreError as error:
        st.error(escape(str(error)), icon=":material/error:")
        st.button("Set up a new fit", on_click=context.choose, kwargs={"run": ""}, type="primary")
        st.page_link("pages/runs.py", label="All runs", icon=":material/list_alt:")
        return
    if run.kind != "run":
        place = place_of(run)
        empty_state(
            f"This link leads to a {place.word}, which has a page of its own.",
            place.page,
            f"Open the {place.word}",
            query_params=place.query(run),
        )
    else:
        run_view.show(run)


page_header("Fit")
with guard():
    tour.forget_run()
    if st.session_state.pop("fit_autostart", False):
        context.choose(data="sample", protocol="weak", run="")
        start(context.current_config(fit=FitSettings()))
    chosen_run = context.current_run()
    if chosen_run is None:
        settings()
    else:
        show(chosen_run)
