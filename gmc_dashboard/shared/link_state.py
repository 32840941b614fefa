"""Choices that a widget cannot bind to the URL by itself, kept there and in the session.

    text = link_state.recall("iteration", run.id)   # the URL's, else the session's
    link_state.keep("iteration", "3", run.id)       # in both; "" takes it away
    link_state.hide("iteration")                    # another view: out of the URL only
    link_state.unset("iteration_box")               # whether a widget is to follow the URL

A move to another page empties the URL; what was kept comes back with the page. Back and
Forward of the browser restore the earlier URL, which alone counts then.
"""

from __future__ import annotations

import streamlit as st

from gmc_dashboard.shared import history

LISTED = 10  # titles on the Recommend page where its address does not say how many


def recall(name: str, scope: str = "") -> str:
    """What a link asks for, else what was chosen last; "" if neither.

    scope : what the choice belongs to, such as a run; the URL has no such part.
    """
    asked = st.query_params.get(name, "")
    if asked or history.returned():
        return str(asked)
    return str(st.session_state.get(_key(name, scope), ""))


def keep(name: str, value: str, scope: str = "") -> None:
    """Keep a choice in the URL and the session; "" stands for the default."""
    st.session_state[_key(name, scope)] = value
    if not value:
        hide(name)
    elif st.query_params.get(name) != value:
        st.query_params[name] = value


def hide(*names: str) -> None:
    """Take choices out of the URL; the session keeps them."""
    for name in names:
        if name in st.query_params:
            del st.query_params[name]


def unset(state: str) -> bool:
    """Whether a widget's value in the session is to be taken from the URL.

    state : the widget's key. It is so when the widget is new, and after Back and Forward.
    """
    return state not in st.session_state or history.returned()


def _key(name: str, scope: str) -> str:
    return f"link.{name}.{scope}"
