"""What the lesson's chapters share: a picture's head, and the controls' common look."""

from __future__ import annotations

import streamlit as st

from gmc_dashboard.shared.presenting import presenting

# From none to far too much; the paper's choice is among them.
EPSILONS = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0)
USERS_TWO = 80
ROOM_FOR_CONTROLS = (2, 3)


def head(title: str, formula: str, sentence: str) -> None:
    """A picture's title, the formula that it shows, and what that means in plain words.

    On a projector the title alone: the rest is what the teacher says.
    """
    st.subheader(title, anchor=False)
    if presenting():
        return
    st.latex(formula)
    st.markdown(sentence)


def epsilon_slider(key: str, default: float = 0.3) -> float:
    """ε from 0 to 2."""
    return float(
        st.select_slider(
            "ε, added to every variance (the paper takes 0.3)",
            EPSILONS,
            default,
            format_func=lambda value: f"{value:g}",
            key=key,
            bind="query-params",
            persist_state="session",
        )
    )
