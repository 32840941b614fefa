"""Choices among a few names that a link carries by their keys, whatever people read on the page.

Streamlit's own binding writes what is read, ``model=Ordered+ratings``: a link that breaks as soon
as a word changes. Links that have such words, as earlier versions wrote, open all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gmc_dashboard.shared import link_state


def linked_choice(
    label: str,
    names: Mapping[str, str],
    default: str,
    *,
    key: str,
    opening: str = "",
    box: bool = False,
    **control: Any,
) -> str:
    """Draw a choice of one; returns the key of the chosen one, which the URL has too.

    Parameters
    ----------
    names : key of a value → what people read. default : the key that a link leaves out.
    key : of the widget, and in the URL.
    opening : the key that a link without one opens, where that is not the default.
    box : a list that opens, instead of a button for each name.
    control : passed on to Streamlit's control.
    """
    if link_state.unset(key):
        st.session_state[key] = key_of(st.query_params.get(key, ""), names) or opening or default
    shown = {"key": key, "format_func": names.__getitem__, **control}
    if box:
        chosen = st.selectbox(label, list(names), **shown)
    else:
        chosen = st.segmented_control(label, list(names), required=True, **shown)
    value = str(chosen or default)
    if value == default:
        link_state.hide(key)
    elif st.query_params.get(key) != value:
        st.query_params[key] = value
    return value


def linked_choices(
    label: str, names: Mapping[str, str], default: Sequence[str], *, key: str, **control: Any
) -> list[str]:
    """Draw a choice of any number; returns the keys of the chosen ones, which the URL has too.

    names, default, key, control : as of :func:`linked_choice`. Of a link only the names that there
        are count; one with an empty value chooses none.
    """
    linked = st.query_params.get_all(key)
    if link_state.unset(key):
        found = [key_of(written, names) for written in linked]
        st.session_state[key] = [name for name in found if name] if linked else list(default)
    # Names may have gone since the last time that the control was drawn.
    st.session_state[key] = [name for name in st.session_state[key] if name in names]
    chosen = st.multiselect(label, list(names), key=key, format_func=names.__getitem__, **control)
    if chosen == list(default):
        link_state.hide(key)
    elif (wanted := chosen or [""]) != linked:
        st.query_params[key] = wanted
    return chosen


def linked_tabs(names: Mapping[str, str], *, key: str) -> Sequence[DeltaGenerator]:
    """Draw tabs; returns their containers. The URL has the key of the open one, none of the first.

    names, key : as of :func:`linked_choice`.
    """
    first = next(iter(names))
    if link_state.unset(key):  # of tabs, Streamlit keeps the words
        st.session_state[key] = names[key_of(st.query_params.get(key, ""), names) or first]
    tabs = st.tabs(list(names.values()), key=key, on_change="rerun")
    value = key_of(str(st.session_state[key]), names) or first
    if value == first:
        link_state.hide(key)
    elif st.query_params.get(key) != value:
        st.query_params[key] = value
    return tabs


def key_of(written: str, names: Mapping[str, str]) -> str | None:
    """The key that a link means, by itself or by the words that people read; None if neither."""
    if written in names:
        return written
    return next((key for key, words in names.items() if words == written), None)
