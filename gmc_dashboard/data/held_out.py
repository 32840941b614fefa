"""The controls of what random hold-out and hold-out by time hide."""

from __future__ import annotations

import streamlit as st

from gmc_core.data.ratings import Ratings
from gmc_core.protocol.held_out_options import PUBLISHED, USUAL_LAST, USUAL_SHARE
from gmc_dashboard.shared import context

SHARE, FOLDS, LAST = "share", "folds", "last"
USUAL_FOLDS = 10
_NAMES = {
    SHARE: "A share",
    FOLDS: "One of K folds",
    PUBLISHED: "A published fold",
    LAST: "A number",
}


def held_out_controls(ratings: Ratings) -> None:
    """A choice of how much is hidden, for the protocols in which all users take part."""
    chosen = context.current()
    if chosen.protocol not in ("random", "latest"):
        return
    drawing = chosen.drawing
    kinds = [LAST, SHARE] if chosen.protocol == "latest" else [SHARE, FOLDS]
    if chosen.protocol == "random" and (ratings.folds is not None or PUBLISHED in drawing.values()):
        kinds.append(PUBLISHED)
    kind = _kind(drawing, kinds[0])
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    key = f"data_held_{chosen.protocol}"
    st.session_state[key] = kind
    left.segmented_control(
        "What is hidden",
        kinds,
        format_func=_NAMES.__getitem__,
        required=True,
        key=key,
        on_change=_choose_kind,
        args=(key,),
    )
    with right:
        _amount(kind, drawing, chosen.protocol)


def _kind(drawing: dict[str, object], usual: str) -> str:
    if "folds" in drawing:
        return PUBLISHED if drawing["folds"] == PUBLISHED else FOLDS
    if "held_out" in drawing:
        return SHARE
    return LAST if "last" in drawing else usual


def _choose_kind(key: str) -> None:
    kind = st.session_state[key]
    usual = {
        SHARE: f"{100 * USUAL_SHARE:g}%",
        FOLDS: f"{USUAL_FOLDS}-folds",
        PUBLISHED: PUBLISHED,
        LAST: str(USUAL_LAST),
    }
    context.choose(held=usual[kind])


def _amount(kind: str, drawing: dict[str, object], protocol: str) -> None:
    """How much of the kind is hidden; published folds have nothing to choose but the seed."""
    if kind == SHARE:
        whole = "all ratings" if protocol == "random" else "each user’s ratings"
        share = drawing.get("held_out", USUAL_SHARE)
        assert isinstance(share, float)
        help = "Most of the literature holds out 10 %."
        _number("%", f"% of {whole}", 100 * share, 0.1, 99.9, 1.0, help)
    elif kind == FOLDS:
        help = "The seeds 0 … K − 1 are the K folds of one random partition of the ratings."
        _number("-folds", "Folds K", drawing.get("folds", USUAL_FOLDS), 2, 1000, 1, help)
    elif kind == LAST:
        help = "Users who have no more ratings than that keep them all."
        last = drawing.get("last", USUAL_LAST)
        _number("", "Last ratings of each user", last, 1, 100_000, 1, help)


def _number(
    unit: str, label: str, value: object, low: float, high: float, step: float, help: str
) -> None:
    """A number whose text with ``unit`` becomes what is held out."""
    assert isinstance(value, int | float)
    key = f"data_held_amount_{unit}"
    st.session_state[key] = min(max(value, low), high)

    def take() -> None:
        if st.session_state[key] is not None:
            context.choose(held=f"{st.session_state[key]:g}{unit}")

    st.number_input(
        label,
        value=None,
        min_value=low,
        max_value=high,
        step=step,
        format="%g" if unit == "%" else None,
        key=key,
        help=help,
        on_change=take,
    )
