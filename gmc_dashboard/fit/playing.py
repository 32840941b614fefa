"""A finished run shown again as if live: its curves grow by an iteration a second.

    controls(run, length)    # play, pause, step, reset; outside the part that repeats
    shown(run, length)       # in the part that repeats: how many iterations, None for all
    is_playing(run)          # whether that part has to repeat

Nothing is computed: the records that the run has kept are cut where the film stands.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from gmc_core.fitting.fit import IterationRecord
from gmc_core.runs.store import Run

SECONDS = 1.0
# A fragment that is a little early still counts; a click redraws the page and does not.
EARLY = 0.8


def controls(run: Run, length: int) -> None:
    """The buttons, with a key each for a teacher who stands at the keyboard.

    length : iterations of the longest curve that is drawn.
    """
    on, at = is_playing(run), place(run)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content"):
        st.button(
            "Pause" if on else "Play",
            key="play_run",
            icon=":material/pause:" if on else ":material/play_arrow:",
            shortcut="P",
            help="Show the curves again as they grew, an iteration a second.",
            on_click=_turn,
            args=(run, length),
        )
        st.button(
            "Step",
            key="play_step",
            icon=":material/skip_next:",
            shortcut="S",
            help="One iteration on.",
            on_click=_step,
            args=(run, length),
        )
        st.button(
            "Reset",
            key="play_reset",
            icon=":material/restart_alt:",
            disabled=at is None,
            help="The whole run and its result.",
            on_click=_reset,
            args=(run,),
        )


def place(run: Run) -> int | None:
    """After how many iterations the film stands; None for the whole run."""
    at = st.session_state.get(_key("at", run))
    return None if at is None else int(at)


def is_playing(run: Run) -> bool:
    """Whether the film moves by itself."""
    return bool(st.session_state.get(_key("on", run)))


def shown(run: Run, length: int) -> int | None:
    """The iterations to draw now, one more than before if a second has passed.

    At the end the whole page is drawn anew, with the result.
    """
    at = place(run)
    if at is None or not is_playing(run):
        return at
    now = time.monotonic()
    if now - st.session_state.get(_key("since", run), now) < EARLY * SECONDS:
        return at
    st.session_state[_key("since", run)] = now
    if at >= length:
        _reset(run)
        st.rerun(scope="app")
    st.session_state[_key("at", run)] = at + 1
    return at + 1


def cut(curves: Sequence[Sequence[IterationRecord]], at: int | None) -> list[list[IterationRecord]]:
    """The records of the first ``at`` iterations of each repetition; all for None."""
    return [[one for one in curve if at is None or one.iteration <= at] for curve in curves]


def _turn(run: Run, length: int) -> None:
    """Play from where one is, or from the first iteration; or pause."""
    on = not is_playing(run)
    if on and (place(run) is None or place(run) == length):
        st.session_state[_key("at", run)] = 1
    st.session_state[_key("on", run)] = on
    st.session_state[_key("since", run)] = time.monotonic()


def _step(run: Run, length: int) -> None:
    st.session_state[_key("on", run)] = False
    at = place(run)
    st.session_state[_key("at", run)] = 1 if at is None else min(at + 1, length)


def _reset(run: Run) -> None:
    for name in ("at", "on", "since"):
        st.session_state.pop(_key(name, run), None)


def _key(name: str, run: Run) -> str:
    return f"play.{name}.{run.id}"
