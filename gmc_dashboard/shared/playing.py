"""A row of pictures shown one after the other, as if live: play, pause, step, reset.

    film = Film("learn_many", at="learn_iteration", first=1, last=10, rest=10)
    controls(film, "learn_play")   # the buttons, with a key each for a teacher at the keyboard
    advance(film)                  # in the part that repeats: one picture on, if a second passed
    is_playing(film)               # whether that part has to repeat

Nothing is computed here; where the film stands is a number in the session, which may be that
of a slider. Then the browser says at every turn where it believes that the slider stands, and a
slow one has not yet heard of the picture that was put on last. Its word of the picture before is
therefore not taken for a wish, and the film goes on, and ends, only when the browser has shown
what it was given.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import streamlit as st

SECONDS = 1.0
# A fragment that is a little early still counts; a click redraws the page and does not.
EARLY = 0.8


@dataclass(frozen=True)
class Film:
    """What is played.

    name : of its state in the session. at : the session's key that holds the picture's number.
    first, last : pictures; a film that stands at its end, or nowhere, is played from the first.
    gaps : where some pictures between these are missing, those that there are, in order.
    rest : where Reset puts it; None takes the number away, for a page that then shows the whole.
    help : of the three buttons Play, Step and Reset.
    """

    name: str
    at: str
    last: int
    first: int = 1
    rest: int | None = None
    gaps: tuple[int, ...] = ()
    help: tuple[str, str, str] = ("", "", "")

    @property
    def lowest(self) -> int:
        """The first picture that there is."""
        return self.first if self.rest is None else min(self.first, self.rest)

    def after(self, at: int) -> int:
        """The picture after this one."""
        return next((one for one in self.gaps if one > at), at + 1)


def controls(film: Film, key: str, *, back: bool = False) -> None:
    """The buttons, whose keys begin with ``key``; back : with one for a picture back."""
    at = place(film)
    _, step, reset = film.help
    with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content"):
        play_button(film, f"{key}_run", shortcut="P")
        if back:
            st.button(
                "Back",
                key=f"{key}_back",
                icon=":material/skip_previous:",
                disabled=at is None or at <= film.lowest,
                on_click=_step,
                args=(film, -1),
            )
        st.button(
            "Step",
            key=f"{key}_step",
            icon=":material/skip_next:",
            shortcut="S",
            help=step,
            disabled=back and at == film.last != film.rest,
            on_click=_step,
            args=(film, 1),
        )
        st.button(
            "Reset",
            key=f"{key}_reset",
            icon=":material/restart_alt:",
            disabled=at == film.rest,
            help=reset,
            on_click=_reset,
            args=(film,),
        )


def play_button(
    film: Film, key: str, *, disabled: bool = False, shortcut: str | None = None
) -> None:
    """Play or pause, alone."""
    on = is_playing(film)
    st.button(
        "Pause" if on else "Play",
        key=key,
        icon=":material/pause:" if on else ":material/play_arrow:",
        shortcut=shortcut,
        disabled=disabled,
        help=film.help[0],
        on_click=_turn,
        args=(film,),
    )


def place(film: Film) -> int | None:
    """Which picture is shown; None before the first choice and after a reset to the whole."""
    at = st.session_state.get(film.at, film.rest)
    return None if at is None else int(at)


def is_playing(film: Film) -> bool:
    """Whether the film moves by itself."""
    return bool(st.session_state.get(_key("on", film)))


def advance(film: Film) -> bool:
    """Put a playing film one picture on if a second has passed; whether it has ended just now."""
    at = place(film)
    if at is None or not is_playing(film):
        return False
    before, given = st.session_state.get(_key("given", film), (None, at))
    if at == before:
        st.session_state[film.at] = given
        return False
    _give(film, None, at)  # shown, or where someone has put the slider
    now = time.monotonic()
    if now - st.session_state.get(_key("since", film), now) < EARLY * SECONDS:
        return False
    st.session_state[_key("since", film)] = now
    if at >= film.last:
        _halt(film)
        if film.rest is None:
            st.session_state.pop(film.at, None)
        return True
    _give(film, at, film.after(at))
    return False


def _give(film: Film, before: int | None, at: int) -> None:
    """Put the film on a picture. before : the one that a slow browser may still show."""
    st.session_state[film.at] = at
    st.session_state[_key("given", film)] = before, at


def _turn(film: Film) -> None:
    """Play from where one is, or from the first picture; or pause."""
    on = not is_playing(film)
    _halt(film)
    if not on:
        return
    at = place(film)
    if at is None or at == film.last:
        _give(film, at, film.first)
    st.session_state[_key("on", film)] = True
    st.session_state[_key("since", film)] = time.monotonic()


def _step(film: Film, by: int) -> None:
    st.session_state[_key("on", film)] = False
    at = place(film)
    from_whole = at is None or (at == film.last == film.rest and by > 0)
    if from_whole:
        st.session_state[film.at] = film.first
    else:
        st.session_state[film.at] = min(max(int(at or 0) + by, film.lowest), film.last)


def _reset(film: Film) -> None:
    _halt(film)
    if film.rest is None:
        st.session_state.pop(film.at, None)
    else:
        st.session_state[film.at] = film.rest


def _halt(film: Film) -> None:
    for name in ("on", "since", "given"):
        st.session_state.pop(_key(name, film), None)


def _key(name: str, film: Film) -> str:
    return f"play.{name}.{film.name}"
