"""The selected ratings on the pages that compute with them, or the way to others."""

from __future__ import annotations

import streamlit as st

from gmc_core.base.errors import DataError
from gmc_core.data.ratings import Ratings
from gmc_core.protocol.filters import FilterReport
from gmc_dashboard.shared import context, sources
from gmc_dashboard.shared.components import empty_state, escape, told


def filtered_or_way_on() -> tuple[Ratings, FilterReport] | None:
    """The ratings after the filter; None if they cannot be read, which is explained then."""
    try:
        return context.filtered()
    except DataError as error:
        empty_state(told(str(error)), "pages/data.py", "Choose the data")
        return None


def held_out_or_way_on(why: str) -> Ratings | None:
    """The same under a protocol that holds ratings out, with a line that says what they are.

    why : what needs held-out ratings, to stand before "and nothing is held out now".
    """
    chosen = context.current()
    if chosen.protocol == "none":
        empty_state(
            f"{why}, and nothing is held out now. Choose a protocol that holds ratings out.",
            "pages/data.py",
            "Choose a protocol",
        )
        return None
    found = filtered_or_way_on()
    if found is None:
        return None
    ratings, _ = found
    st.markdown(
        f"**{escape(sources.title(chosen.data))}**: {ratings.n_users:,} users, "
        f"{ratings.n_items:,} items, {len(ratings):,} ratings; {context.protocol_words()}."
    )
    return ratings
