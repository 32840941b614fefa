"""A choice among a few names that a link carries by its key, whatever people read on the page.

Streamlit's own binding writes what is read, ``model=Ordered+ratings``: a link that breaks as soon
as a word changes. Links that have such words, as earlier versions wrote, open all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from gmc_dashboard.shared import link_state


def linked_choice(
    label: str,
    names: Mapping[str, str],
    default: str,
    *,
    key: str,
    **control: Any,
) -> str:
    """Draw one button for each name; returns the key of the chosen one, which the URL has too.

    Parameters
    ----------
    names : key of a value → what people read. default : the key that a link leaves out.
    key : of the widget, and in the URL.
    control : passed on to :func:`streamlit.segmented_control`.
    """
    if link_state.unset(key):
        st.session_state[key] = key_of(st.query_params.get(key, ""), names) or default
    chosen = st.segmented_control(
        label, list(names), required=True, key=key, format_func=names.__getitem__, **control
    )
    value = str(chosen or default)
    if value == default:
        link_state.hide(key)
    elif st.query_params.get(key) != value:
        st.query_params[key] = value
    return value


def key_of(written: str, names: Mapping[str, str]) -> str | None:
    """The key that a link means, by itself or by the words that people read; None if neither."""
    if written in names:
        return written
    return next((key for key, words in names.items() if words == written), None)
