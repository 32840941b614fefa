"""Choices that a widget cannot bind to the URL by itself, kept there and in the session.

    text = link_state.recall("iteration", run.id)   # the URL's, else the session's
    link_state.keep("iteration", "3", run.id)       # in both; "" takes it away
    link_state.hide("iteration")                    # another view: out of the URL only

A move to another page empties the URL; what was kept comes back with the page.
"""

from __future__ import annotations

import streamlit as st


def recall(name: str, scope: str = "") -> str:
    """What a link asks for, else what was chosen last; "" if neither.

    scope : what the choice belongs to, such as a run; the URL has no such part.
    """
    return str(st.query_params.get(name, "") or st.session_state.get(_key(name, scope), ""))


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


def _key(name: str, scope: str) -> str:
    return f"link.{name}.{scope}"
