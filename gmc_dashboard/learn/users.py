"""Users whom a visitor has moved, taken away or added: kept in the link, beside the seed.

    text = "12:3.40,2.10;30:;80:2.00,2.00"   # moved, taken away, added

A rating that is left empty stays as it was drawn: "12:3.40," moves that of the first movie.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

import streamlit as st

from gmc_core import lesson
from gmc_core.base.errors import ConfigError
from gmc_dashboard.shared import link_state
from gmc_dashboard.shared.components import escape

SEED, FIRST_SEED, SEEDS = "learn_seed", 0, 1000
MOVED = ("learn_cloud_users", "learn_steps_users")  # of the first and the second chapter
MOST = 40  # changes that a link holds
LEAST = 5  # users who rated both and stay: fewer make no ellipse

Changes = Mapping[int, tuple[float, float] | None]
_ONE = re.compile(r"(\d{1,4}):(?:(-?\d+(?:\.\d+)?)?,(-?\d+(?:\.\d+)?)?)?")


def seed() -> int:
    """Which draw of the invented data is shown."""
    asked = link_state.recall(SEED)
    return int(asked) if asked.isdecimal() and int(asked) < SEEDS else FIRST_SEED


def changes(name: str) -> dict[int, tuple[float, float] | None]:
    """The changes that the link, or else the session, holds; what is no change is left out."""
    found: dict[int, tuple[float, float] | None] = {}
    for part in link_state.recall(name).split(";"):
        if (one := _ONE.fullmatch(part)) is None or len(found) == MOST:
            continue
        user, x, y = one.groups()
        given = tuple(math.nan if value is None else float(value) for value in (x, y))
        found[int(user)] = None if "," not in part else (given[0], given[1])
    return found


def keep(name: str, made: Changes) -> None:
    """Put changes into link and session."""
    link_state.keep(name, ";".join(_text(user, at) for user, at in sorted(made.items())))


def _text(user: int, at: tuple[float, float] | None) -> str:
    if at is None:
        return f"{user}:"
    return f"{user}:" + ",".join("" if math.isnan(value) else f"{value:.2f}" for value in at)


def apply(
    name: str, planted: lesson.Planted, least: int = LEAST
) -> tuple[lesson.Planted, tuple[int, ...]]:
    """The table with the kept changes, and each row's number; the link holds them again.

    A link of other data may name users who are not there, or take too many away: then the users
    are shown as they were drawn. least : users who rated both and have to stay.
    """
    keep_seed(name)
    made = changes(name)
    keep(name, made)
    try:
        shown, ids = lesson.changed(planted, made)
    except ConfigError:
        return planted, tuple(range(len(planted.ratings)))
    if made and shown.known.all(axis=1).sum() < least:
        return planted, tuple(range(len(planted.ratings)))
    return shown, ids


def keep_seed(name: str | None = None) -> None:
    """Put the seed into the link, and out of it what only other chapters show.

    name : of this chapter's own changes.
    """
    link_state.keep(SEED, str(seed()) if seed() != FIRST_SEED else "")
    link_state.hide(*(other for other in MOVED if other != name))


def next_number(name: str, count: int) -> int:
    """The number of the next user to be added to ``count`` that were drawn."""
    return max(count, 1 + max(changes(name), default=0))


def with_change(
    name: str,
    planted: lesson.Planted,
    user: int,
    at: tuple[float, float] | None,
    least: int = LEAST,
) -> bool:
    """Keep one more change, if it leaves enough users; says so on the page if it does not.

    planted : the data as drawn. at : None takes the user away. least : as in :func:`apply`.
    """
    made = changes(name)
    if not 0 <= user <= next_number(name, len(planted.ratings)):
        return False  # no picture has such a user
    if at is None and user >= len(planted.ratings):
        made.pop(user, None)
    else:
        made[user] = at
    if len(made) > MOST:
        st.toast(f"{MOST} users are moved, added or taken away: a link holds no more.")
        return False
    try:
        shown, _ = lesson.changed(planted, made)
    except ConfigError as error:
        st.toast(escape(str(error)))
        return False
    if at is None and shown.known.all(axis=1).sum() < least:
        st.toast(f"{least} users who rated both have to stay.")
        return False
    keep(name, made)
    return True


def other_data() -> None:
    """The next draw, with all of its users where they were drawn."""
    link_state.keep(SEED, str((seed() + 1) % SEEDS))
    for name in MOVED:
        keep(name, {})


def first_data() -> None:
    """The draw that the texts are about, and nobody moved."""
    link_state.keep(SEED, "")
    for name in MOVED:
        keep(name, {})


def buttons(
    key: str,
    name: str | None = None,
    *,
    more: bool = False,
    also: Callable[[], None] | None = None,
) -> None:
    """Other data, and back to the first.

    name : of the changes that the chapter shows. more, also : whether the chapter has something
    else to put back, and what does it.
    """
    drawn = seed()
    untouched = drawn == FIRST_SEED and not (name and changes(name)) and not more
    st.button(
        f"Other data (seed {drawn})",
        key=f"{key}_other",
        icon=":material/casino:",
        help="Draw all users anew from the same planted Gaussian.",
        on_click=other_data,
    )
    st.button(
        "First data",
        key=f"{key}_first",
        icon=":material/undo:",
        help="Seed 0, and everybody where they were drawn.",
        disabled=untouched,
        on_click=_first,
        args=(also,),
    )


def _first(also: Callable[[], None] | None) -> None:
    first_data()
    if also is not None:
        also()
