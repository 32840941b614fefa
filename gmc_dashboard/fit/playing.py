"""A finished run shown again as if live: its curves grow by an iteration a second.

    controls(run, length)    # play, pause, step, reset; outside the part that repeats
    shown(run, length)       # in the part that repeats: how many iterations, None for all
    is_playing(run)          # whether that part has to repeat

Nothing is computed: the records that the run has kept are cut where the film stands.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from gmc_core.fitting.fit import IterationRecord
from gmc_core.runs.store import Run
from gmc_dashboard.shared import playing
from gmc_dashboard.shared.playing import SECONDS, Film

__all__ = ["SECONDS", "controls", "cut", "is_playing", "place", "shown"]

HELP = (
    "Show the curves again as they grew, an iteration a second.",
    "One iteration on.",
    "The whole run and its result.",
)


def controls(run: Run, length: int) -> None:
    """The buttons. length : iterations of the longest curve that is drawn."""
    playing.controls(_film(run, length), "play")


def place(run: Run) -> int | None:
    """After how many iterations the film stands; None for the whole run."""
    return playing.place(_film(run))


def is_playing(run: Run) -> bool:
    """Whether the film moves by itself."""
    return playing.is_playing(_film(run))


def shown(run: Run, length: int) -> int | None:
    """The iterations to draw now, one more than before if a second has passed.

    At the end the whole page is drawn anew, with the result.
    """
    if playing.advance(_film(run, length)):
        st.rerun(scope="app")
    return place(run)


def cut(curves: Sequence[Sequence[IterationRecord]], at: int | None) -> list[list[IterationRecord]]:
    """The records of the first ``at`` iterations of each repetition; all for None."""
    return [[one for one in curve if at is None or one.iteration <= at] for curve in curves]


def _film(run: Run, length: int = 0) -> Film:
    return Film(run.id, at=f"play.at.{run.id}", last=length, help=HELP)
