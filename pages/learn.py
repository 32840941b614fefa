"""Learn: why the method works, from two movies to its cost; needs no fit and no data.

Sections: constants, layout.
"""

from __future__ import annotations

import streamlit as st

from gmc_dashboard.learn import cost as learn_cost
from gmc_dashboard.learn import many as learn_many
from gmc_dashboard.learn import steps as learn_steps
from gmc_dashboard.learn import two as learn_two
from gmc_dashboard.shared.components import guard, page_header, to_the_top
from gmc_dashboard.shared.linked_choice import linked_choice

# Constants ---------------------------------------------------------------------------

CHAPTERS = {
    "two": ("1 Two movies", learn_two.show),
    "steps": ("2 EM step by step", learn_steps.show),
    "many": ("3 Many movies", learn_many.show),
    "cost": ("4 What it costs", learn_cost.show),
}
TITLES = {key: title for key, (title, _) in CHAPTERS.items()}


# Layout ------------------------------------------------------------------------------


def go_to(chapter: str) -> None:
    """Open another chapter."""
    st.session_state["chapter"] = chapter
    st.session_state["learn_turned"] = chapter


def neighbours(chapter: str) -> None:
    """The ways back and on, below a chapter."""
    order = list(TITLES)
    place = order.index(chapter)
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        if place:
            before = order[place - 1]
            st.button(
                f"Back: {TITLES[before]}",
                key="learn_previous_chapter",
                icon=":material/arrow_back:",
                on_click=go_to,
                args=(before,),
            )
        if place + 1 < len(TITLES):
            following = order[place + 1]
            st.button(
                f"Continue: {TITLES[following]}",
                key="learn_next_chapter",
                icon=":material/arrow_forward:",
                type="primary",
                on_click=go_to,
                args=(following,),
            )
        else:
            st.page_link(
                "pages/fit.py", label="Now fit real ratings", icon=":material/play_circle:"
            )


page_header(
    "Learn",
    "Why one Gaussian can fill in missing ratings, as in the paper by Léger, Yu and Sapiro, in "
    "four chapters. All pictures are live: they are computed by the code that fits real data, on "
    "small invented data whose truth is known.",
)
chapter = linked_choice("Chapter", TITLES, "two", key="chapter", label_visibility="collapsed")
with guard():
    CHAPTERS[chapter][1]()
neighbours(chapter)
if (turned := st.session_state.pop("learn_turned", None)) is not None:
    to_the_top(turned)  # the buttons stand below a chapter
