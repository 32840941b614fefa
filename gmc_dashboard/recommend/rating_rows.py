"""Rows with a title and its stars: rate, change, take away; each change folds in at once.

The ratings live in the session as ``{item position: rating or None}`` under a name of
the caller's; None is a title that is listed but not rated yet.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from gmc_core.data.ratings import RatingScale
from gmc_core.model.gaussian_model import GaussianModel
from gmc_dashboard.recommend.one_user import RatingsByItem, has_stars, rating_options
from gmc_dashboard.shared.components import escape
from gmc_dashboard.shared.title_options import offered
from gmc_dashboard.shared.units import minus

Listed = dict[int, float | None]


def listed(name: str) -> Listed:
    """The listed titles of a session under ``name``; changes stay."""
    found: Listed = st.session_state.setdefault(name, {})
    return found


def rated(name: str) -> RatingsByItem:
    """Those of :func:`listed` that have a rating."""
    return {item: value for item, value in listed(name).items() if value is not None}


def search_row(
    name: str, model: GaussianModel, options: Sequence[int], titles: Sequence[str], label: str
) -> None:
    """A searchable box; the chosen title is put on the list and the box is emptied."""
    key = f"{name}_search"

    def add() -> None:
        item = st.session_state[key]
        if item is not None:
            listed(name).setdefault(item, None)
            st.session_state[key] = None

    st.selectbox(
        label,
        offered(options, titles, key, [st.session_state.get(key)]),
        index=None,
        format_func=titles.__getitem__,
        placeholder="Type a part of a title",
        key=key,
        on_change=add,
    )


def rating_row(name: str, model: GaussianModel, item: int, note: str = "") -> None:
    """One title with its rating control, and a button to take it away if it is listed."""
    key = f"{name}_rate_{item}"
    titles = listed(name)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(width="stretch"):
            st.markdown(escape(model.title(item)) + (f"  \n:small[:gray[{note}]]" if note else ""))
        _control(name, model, item, key)
        if item in titles:
            st.button(
                ":material/close:",
                key=f"{key}_off",
                type="tertiary",
                help=f"Take {escape(model.title(item))} off the list",
                on_click=take_away,
                args=(name, item),
            )


def take_away(name: str, item: int) -> None:
    """Drop a title from the list."""
    listed(name).pop(item, None)
    st.session_state.pop(f"{name}_rate_{item}", None)


def clear(name: str) -> None:
    """Drop all titles from the list."""
    for item in list(listed(name)):
        take_away(name, item)


def _control(name: str, model: GaussianModel, item: int, key: str) -> None:
    scale = model.scale
    known = listed(name).get(item)
    label = f"Rating of {model.title(item)}"
    options = rating_options(scale)

    def keep() -> None:
        value = st.session_state.get(key)
        if value is not None:
            value = float(value) + 1 if has_stars(scale) else float(value)
        listed(name)[item] = value

    if key not in st.session_state and known is not None:
        st.session_state[key] = int(known) - 1 if has_stars(scale) else known
    if has_stars(scale):
        st.feedback("stars", key=key, on_change=keep)
    elif options is not None:
        st.selectbox(
            label,
            options[::-1],
            index=None,
            format_func=lambda value: rating_text(scale, value),
            placeholder="Rate",
            key=key,
            on_change=keep,
            label_visibility="collapsed",
            width=160,
        )
    else:
        st.number_input(
            label,
            scale.low,
            scale.high,
            None,
            key=key,
            on_change=keep,
            placeholder=f"{scale.low:g} to {scale.high:g}",
            label_visibility="collapsed",
            width=150,
        )


def rating_text(scale: RatingScale, value: float) -> str:
    """A rating, with stars in front where the scale has some."""
    return stars(value) if scale.is_stars else minus(f"{value:g}")


def stars(value: float) -> str:
    """3.5 as "★★★½ 3.5"."""
    return "★" * int(value) + ("½" if value % 1 >= 0.5 else "") + f" {value:g}"
