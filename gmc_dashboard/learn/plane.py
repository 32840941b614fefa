"""Two movies on a plane whose parts can be taken hold of: by mouse, touch and keys.

    show(Plane(...), alt, key="learn_cloud", on_change=callback)   # callback(change)

The drawing is SVG, made by the files in ``plane_files``, which travel with the package and ask
nothing of the network. They draw a movement at once and tell it; what it means is decided here
and in the core, whose numbers the next picture shows. A change is one of

    Change("rating", rating=4.2)                    # the user's line
    Change("ellipse", mean=(3, 3), cov=((1, 0.5), (0.5, 1)))
    Change("user", user=12, at=(3.1, 2.0))          # moved, or added
    Change("taken", user=12)

The last two carry the ellipse that the visitor saw: sliders that were set a moment ago may still
tell their former values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import streamlit as st

from gmc_core.gaussian.parameters import Gaussian
from gmc_core.lesson import Floats, matrix
from gmc_dashboard.learn.figures import RANGE
from gmc_dashboard.shared.link_state import recall
from gmc_dashboard.shared.presenting import CONTROLS, LEAST, presenting
from gmc_dashboard.shared.units import minus

_FILES = Path(__file__).parent / "plane_files"
# One module, in the order in which its parts need each other.
_SCRIPTS = ("maths.js", "drawing.js", "plane.js")
SIZE, LARGE, FONT = 440, 470, 13  # px
ROOM, ROOM_LARGE = 190, 140  # px, that a legend needs beside the picture; else it stands below
FLAT, WIDE = 1e-9, 100.0  # least determinant of an ellipse's covariance, and largest variance
SEEN = "learn_plane_seen"  # number of the last change that the page has had


def _text(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")


def script() -> str:
    """The module that draws, as the browser gets it."""
    return "\n".join(_text(name) for name in _SCRIPTS)


_COMPONENT = st.components.v2.component(
    "gmc_plane", css=_text("plane.css"), js=script(), isolate_styles=False
)


@dataclass(frozen=True)
class Change:
    """What a visitor has moved; ``what`` says which of the fields count.

    mean, cov : of the ellipse as it was moved, or else as it was drawn; NaN if there was none.
    """

    what: str
    rating: float = math.nan
    user: int = -1
    at: tuple[float, float] = (math.nan, math.nan)
    mean: tuple[float, float] = (math.nan, math.nan)
    cov: tuple[tuple[float, float], tuple[float, float]] = (
        (math.nan, math.nan),
        (math.nan, math.nan),
    )


@dataclass(frozen=True)
class User:
    """A dot: its number, its place, and ``kind``: "both", or "a" or "b" who rated one movie."""

    id: int
    at: tuple[float, float]
    kind: str = "both"


@dataclass(frozen=True)
class Line:
    """What somebody gave ``movie`` (0 or 1), and between which ratings that can be moved."""

    movie: int
    rating: float
    low: float
    high: float
    step: float


@dataclass(frozen=True)
class Handles:
    """How far the ellipse can be moved: standard deviations of its axes, and its mean."""

    axis: tuple[float, float]
    mean: tuple[float, float]


@dataclass(frozen=True)
class Ring:
    """An ellipse at this Mahalanobis distance. look : classes of ``plane.css``."""

    radius: float
    look: str


@dataclass(frozen=True)
class Plane:
    """What is drawn.

    ellipse, truth : the Gaussian that ``rings`` are of, and a planted one.
    measured : the ellipse is that of the users who rated both, and follows them.
    slopes : how far a fill moves with the rating of a, and with that of b.
    rug : (movie, rating) of those who are only marked at the margin.
    next : number of the next user to be added.
    legend : (sign, words). help : ("hands" or "keys", words), how it is moved; not shown on a
        projector.
    """

    names: tuple[str, ...]
    users: Sequence[User]
    ellipse: Gaussian | None
    rings: Sequence[Ring]
    next: int
    truth: Gaussian | None = None
    truth_radius: float = 1.0
    measured: bool = False
    slopes: tuple[float, float] = (0.0, 0.0)
    rug: Sequence[tuple[int, float]] = ()
    line: Line | None = None
    noise: float = 0.0
    handles: Handles | None = None
    legend: Sequence[tuple[str, str]] = field(default=())
    help: Sequence[tuple[str, str]] = field(default=())


def show(plane: Plane, alt: str, *, key: str, on_change: Callable[[Change], None]) -> None:
    """Draw it; ``on_change`` is called before the page runs again with what was moved."""
    _COMPONENT(
        key=key,
        data=data_of(plane, alt, int(st.session_state.get(SEEN, 0))),
        on_moved_change=lambda: _told(key, on_change),
    )


def data_of(plane: Plane, alt: str, seen: int) -> dict[str, Any]:
    """What the browser gets, in plain numbers and lists."""
    large = presenting()
    shown: dict[str, Any] = {
        "alt": minus(alt),
        "seen": seen,
        "size": LARGE if large else SIZE,
        "font": LEAST if large else FONT,
        "range": list(RANGE),
        "ticks": [1, 2, 3, 4, 5],
        "fixed": large and recall(CONTROLS) == "0",
        "names": list(plane.names),
        "users": [asdict(user) for user in plane.users],
        "ellipse": _gaussian(plane.ellipse),
        "rings": [asdict(ring) for ring in plane.rings],
        "rug": [{"movie": movie, "rating": rating} for movie, rating in plane.rug],
        "truth": None,
        "line": asdict(plane.line) if plane.line else None,
        "handles": asdict(plane.handles) if plane.handles else None,
        "side": {
            "legend": list(plane.legend),
            "help": [] if large else list(plane.help),
            "room": ROOM_LARGE if large else ROOM,
        },
        **{name: getattr(plane, name) for name in ("next", "measured", "slopes", "noise")},
    }
    if plane.truth is not None:
        shown["truth"] = {**(_gaussian(plane.truth) or {}), "radius": plane.truth_radius}
    return shown


def users_of(ids: Sequence[int], points: Floats, known: Any) -> list[User]:
    """The dots of a table: rows (M, 2), and which entries are known."""
    kinds = {(True, True): "both", (True, False): "a", (False, True): "b"}
    return [
        User(user, (float(x), float(y)), kinds[bool(a), bool(b)])
        for user, (x, y), (a, b) in zip(ids, points, known, strict=True)
    ]


def _gaussian(gaussian: Gaussian | None) -> dict[str, Any] | None:
    if gaussian is None:
        return None
    return {"mean": gaussian.mean.tolist(), "cov": matrix(gaussian).tolist()}


def _told(key: str, on_change: Callable[[Change], None]) -> None:
    message = st.session_state[key].get("moved")
    if not isinstance(message, Mapping):
        return
    st.session_state[SEEN] = int(message["number"])
    if (change := read(message)) is not None:
        on_change(change)


def read(message: Mapping[str, Any]) -> Change | None:
    """A browser's message; None if its numbers are none, or lie off the picture."""
    low, high = RANGE

    def inside(*values: Any) -> tuple[float, ...]:
        numbers = tuple(float(value) for value in values)
        if not all(low <= number <= high for number in numbers):
            raise ValueError(numbers)
        return numbers

    try:
        what = message["what"]
        if what == "rating":
            return Change("rating", rating=inside(message["rating"])[0])
        if what == "ellipse":
            return Change("ellipse", **_ellipse(message, inside))
        if what in ("user", "taken"):
            seen = message.get("drawn")
            drawn = _ellipse(seen, inside) if seen else {}
            x, y = inside(*message["at"]) if what == "user" else (math.nan, math.nan)
            return Change(what, user=int(message["id"]), at=(x, y), **drawn)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return None


def _ellipse(given: Mapping[str, Any], inside: Callable[..., tuple[float, ...]]) -> dict[str, Any]:
    """Mean and covariance of an ellipse, which must have an area."""
    x, y = inside(*given["mean"])
    (a, c), (_, b) = ((float(one), float(other)) for one, other in given["cov"])
    if not (0 < a < WIDE and 0 < b < WIDE and a * b - c * c > FLAT):
        raise ValueError(given)
    return {"mean": (x, y), "cov": ((a, c), (c, b))}
