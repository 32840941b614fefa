"""What the lesson's chapters share: their first screen, a picture's head, the controls' look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gmc_dashboard.shared.components import number_row
from gmc_dashboard.shared.presenting import presenting

# From none to far too much; the paper's choice is among them.
EPSILONS = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0)
USERS_TWO = 80
ROOM_FOR_CONTROLS = (2, 3)
ROOM_FOR_PICTURE = (3, 2)  # with its legend beside it
ROOM_ON_PROJECTOR = (6, 5)


class Stage(NamedTuple):
    """A chapter's first screen: the picture, and beside it what moves it and what it says."""

    picture: DeltaGenerator
    numbers: DeltaGenerator
    controls: DeltaGenerator
    words: DeltaGenerator


def stage() -> Stage:
    """Places in which picture, numbers and controls are seen together.

    The picture comes first, so that it stands above the sliders where a phone shows one column.
    On a projector, where the numbers are one line, they stand above both.
    """
    large = presenting()
    above = st.container() if large else None
    left, right = st.columns(ROOM_ON_PROJECTOR if large else ROOM_FOR_PICTURE, gap="medium")
    numbers = above or right.container()
    return Stage(left.container(), numbers, right.container(), right.container())


def beside() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Places for a picture's head and, to the right of it, the picture.

    On a projector, where of the head only the title is left, the picture stands below it.
    """
    if presenting():
        return st.container(), st.container()
    left, right = st.columns(ROOM_FOR_CONTROLS, gap="medium")
    return left, right


def number_rows(*rows: Sequence[tuple[str, str] | tuple[str, str, str]]) -> None:
    """Cards under each other, for a narrow column; on a projector all of them in one line."""
    if presenting():
        number_row([card for row in rows for card in row])
        return
    for row in rows:
        number_row(row)


def title(text: str) -> None:
    """What a picture is about."""
    st.subheader(text, anchor=False)


def words(formula: str, sentence: str) -> None:
    """The formula that a picture shows, and what that means in plain words.

    None on a projector: that is what the teacher says.
    """
    if presenting():
        return
    st.latex(formula)
    st.markdown(sentence)


def head(text: str, formula: str, sentence: str) -> None:
    """A picture's title with its words."""
    title(text)
    words(formula, sentence)


def epsilon_slider(key: str, default: float = 0.3) -> float:
    """ε from 0 to 2."""
    return float(
        st.select_slider(
            "ε (the paper takes 0.3)",
            EPSILONS,
            default,
            format_func=lambda value: f"{value:g}",
            key=key,
            bind="query-params",
            persist_state="session",
            help="Added to every variance in every M-step.",
        )
    )
