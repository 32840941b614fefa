"""Where fits are computed: this machine, or a Dask cluster; seen and chosen."""

from __future__ import annotations

import streamlit as st

from gmc_core.base.errors import GmcError
from gmc_core.runs.worker.place import Place, choose, look_at, place_of
from gmc_dashboard.shared import context
from gmc_dashboard.shared.components import escape, guard

_FAILED = "gmc_dashboard.place_failed"


def words(place: Place) -> str:
    """Where fits are computed, in a sentence."""
    if not place.where:
        return "Fits, sweeps and comparisons are computed on this machine, one after the other."
    local = place.where.partition(":")[0] == "local"
    where = "processes of this machine" if local else f"the cluster at {place.where}"
    if not place.workers:
        return f"Fits, sweeps and comparisons are computed by {escape(where)}."
    many = f"{place.workers} worker{'s' if place.workers > 1 else ''}, {place.threads} threads"
    return f"Fits, sweeps and comparisons are computed by {escape(where)}: {many} in all."


def show() -> None:
    """The place, and how to choose another."""
    place = place_of(context.store())
    with st.expander("Where fits are computed", icon=":material/lan:", key="place_box"):
        st.markdown(words(place))
        with st.form("place_form", border=False):
            left, right = st.columns([4, 1], gap="small", vertical_alignment="bottom")
            left.text_input(
                "Dask cluster",
                place.where,
                key="place",
                placeholder="empty: this machine",
                help="local:N for N processes of this machine, or the address of a scheduler such "
                "as tcp://host:8786. Whoever reaches that scheduler can run programs there and "
                "here: name only one that you trust.",
            )
            right.form_submit_button("Use it", key="use_place", on_click=_use)
        failed = st.session_state.pop(_FAILED, None)
        if failed:
            st.error(escape(failed), icon=":material/error:")


@guard()
def _use() -> None:
    try:
        with st.spinner("Looking for its workers …"):
            choose(context.store(), look_at(st.session_state["place"]))
    except GmcError as error:
        st.session_state[_FAILED] = str(error)
