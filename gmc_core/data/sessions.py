"""When a data set was rated: ratings by month, and the sessions of each user."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gmc_core.data.rating_times import SESSION_SECONDS, Times, known_mask
from gmc_core.data.ratings import Ratings

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sessions:
    """Sessions of ratings: a user's ratings, each within ``gap`` seconds of the one before.

    Attributes
    ----------
    sizes : (S,) ratings in each session; a rating by itself is a session of 1.
    seconds : (S,) from the first to the last rating of each session.
    gap : seconds.
    """

    sizes: Counts
    seconds: Counts
    gap: int

    @property
    def shared(self) -> float:
        """The share of ratings, 0..1, that have another one in their session."""
        total = int(self.sizes.sum())
        return float(self.sizes[self.sizes > 1].sum() / total) if total else 0.0


def session_numbers(users: npt.ArrayLike, times: Times, gap: int = SESSION_SECONDS) -> Counts:
    """(n,) the session of each rating, as a number from 0; the order is by user, then time.

    users : (n,) position of each rating's user. times : (n,) as ``Ratings.times``; a rating
        whose time is unknown is a session by itself.
    """
    rows = np.asarray(users)
    order = np.lexsort((times, rows))
    rows, ordered = rows[order], times[order]
    known = known_mask(ordered)
    # Where both are known the difference cannot overflow.
    both = known[1:] & known[:-1] & (rows[1:] == rows[:-1])
    near = np.zeros(len(both), dtype=bool)
    near[both] = ordered[1:][both] - ordered[:-1][both] <= gap
    numbers = np.empty(len(rows), dtype=np.int64)
    numbers[order] = np.cumsum(np.concatenate([[0], ~near]))[: len(rows)]
    return numbers


def sessions(ratings: Ratings, gap: int = SESSION_SECONDS) -> Sessions:
    """The sessions of all users, of the ratings whose time is known."""
    if ratings.times is None:
        none = np.zeros(0, dtype=np.int64)
        return Sessions(none, none, gap)
    sizes, seconds = [], []
    for first, last in ratings.user_blocks():
        own = slice(ratings.indptr[first], ratings.indptr[last])
        known = known_mask(ratings.times[own])
        users, times = ratings.rows[own][known], ratings.times[own][known]
        order = np.lexsort((times, users))
        users, times = users[order], times[order]
        new = (users[1:] != users[:-1]) | (np.diff(times) > gap)
        starts = np.flatnonzero(np.concatenate([np.ones(min(len(times), 1), bool), new]))
        ends = np.append(starts[1:], len(times))[: len(starts)]
        sizes.append(ends - starts)
        seconds.append(times[ends - 1] - times[starts])
    return Sessions(np.concatenate(sizes), np.concatenate(seconds), gap)


@dataclass(frozen=True, eq=False)
class Months:
    """The months from the first rating to the last, in UTC.

    first : datetime64[M]. counts : ratings of it and of each month after it.
    """

    first: np.datetime64
    counts: Counts

    @property
    def every(self) -> npt.NDArray[np.datetime64]:
        """All of the months, datetime64[M]."""
        return np.asarray(self.first + np.arange(len(self.counts)))


def months(ratings: Ratings) -> Months:
    """How many ratings each month has."""
    if ratings.times is None:
        return Months(np.datetime64("1970-01"), np.zeros(0, dtype=np.int64))
    known = ratings.times[known_mask(ratings.times)]
    which = known.view("datetime64[s]").astype("datetime64[M]")
    first = which.min()
    return Months(first, np.bincount((which - first).astype(np.int64)))
