"""Hold-out by time: each user's last ratings are predicted from those before."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import DataError
from gmc_core.data.rating_times import known_mask
from gmc_core.data.ratings import Ratings
from gmc_core.protocol.draws import word_stream
from gmc_core.protocol.held_out_options import USUAL_LAST
from gmc_core.protocol.splits import Split, held_out_split

BLOCK = 1 << 20  # ratings that are sorted at once


def latest_split(
    ratings: Ratings, seed: int, last: int | None = None, share: float | None = None
) -> Split:
    """Hold out the last ratings of each user.

    Of ratings of one second, which MovieLens has wherever a page was rated, those held out are
    drawn with the seed. A rating whose time is unknown stays in training. A user keeps all
    ratings who has no more than ``last`` of them, or of whose ratings ``share`` makes less
    than one.

    Parameters
    ----------
    ratings : M users × N items, with times.
    seed : 0 or more.
    last : how many of each user, 1 or more; by default 1. Not with ``share``.
    share : of each user's ratings with a time, between 0 and 1, rounded down.

    Raises
    ------
    DataError
        If the ratings have no times, or no user has enough of them.
    """
    if ratings.times is None:
        raise DataError(
            "The protocol latest needs the times of the ratings, and none is known. Name the "
            "column of times (--columns timestamp=COLUMN), use data that have one, or the protocol "
            "random."
        )
    known = known_mask(ratings.times)
    counts = _counts(ratings, known, last, share)
    if not counts.any():
        raise DataError(
            "No user has enough ratings with a time for the last of them to be held out. Hold out "
            "fewer, or use the protocol random."
        )
    held, tied = _last_of_each(ratings, counts, seed)
    notes = _notes(ratings, counts, tied, int((~known).sum()), last, share)
    return held_out_split("latest", ratings, held, seed, notes)


def _last_of_each(
    ratings: Ratings, counts: npt.NDArray[np.int64], seed: int
) -> tuple[npt.NDArray[np.int64], int]:
    """Positions of each user's last ``counts`` ratings, rising, and for how many users the first
    of them and the one before it are of the same second.

    Users are taken in blocks, as few ratings are sorted much faster than many.
    """
    assert ratings.times is not None
    words, held, tied = word_stream(seed), [], 0
    for first, last in ratings.user_blocks(BLOCK):
        begin, end = ratings.indptr[first], ratings.indptr[last]
        times, rows = ratings.times[begin:end], ratings.rows[begin:end]
        order = np.lexsort((words(end - begin), times, rows))  # unknown times come first
        ends = ratings.indptr[first + 1 : last + 1] - begin
        border = (ends - counts[first:last])[counts[first:last] > 0]
        times, rows = times[order], rows[order]
        before = border[border > 0] - 1
        tied += int(
            ((times[before] == times[before + 1]) & (rows[before] == rows[before + 1])).sum()
        )
        in_order = np.arange(end - begin) >= (ends - counts[first:last])[rows - first]
        held.append(begin + np.sort(order[in_order]))
    return np.concatenate(held), tied


def _counts(
    ratings: Ratings, known: npt.NDArray[np.bool_], last: int | None, share: float | None
) -> npt.NDArray[np.int64]:
    """(M,) how many ratings of each user are held out."""
    timed = np.bincount(ratings.rows[known], minlength=ratings.n_users)
    if share is not None:
        return np.floor(share * timed + 1e-9).astype(np.int64)
    number = USUAL_LAST if last is None else last
    enough = (timed >= number) & (ratings.user_counts > number)
    return np.where(enough, number, 0).astype(np.int64)


def _notes(
    ratings: Ratings,
    counts: npt.NDArray[np.int64],
    tied: int,
    unknown: int,
    last: int | None,
    share: float | None,
) -> tuple[str, ...]:
    """tied : users whose border is drawn. unknown : ratings without a time."""
    what = (
        f"{100 * share:g} % of each user's ratings, the last"
        if share is not None
        else (
            "each user's last rating"
            if (last or USUAL_LAST) == 1
            else f"each user's last {last:,} ratings"
        )
    )
    notes = [f"Held out by time: {what}."]
    keep_all = int((counts == 0).sum())
    if keep_all:
        notes.append(
            f"{keep_all:,} of {ratings.n_users:,} users have too few ratings with a time, so all "
            "of theirs are learned from."
        )
    if tied:
        notes.append(
            f"For {tied:,} users the border falls among ratings of the same second; which of "
            "these are held out is drawn with the seed."
        )
    if unknown:
        notes.append(f"{unknown:,} ratings without a time are learned from.")
    return tuple(notes)
