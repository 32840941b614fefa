"""When ratings were given: seconds since 1970 in UTC, and how an unknown time is held.

The times of a table are an int64 array beside its values, with :data:`UNKNOWN_TIME` for a rating
whose time is not known. That constant is NumPy's "not a time", so a view as ``datetime64[s]``
shows NaT there; it is never shown or computed with as a number: select by :func:`known_mask`
first.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import DataError

Times = npt.NDArray[np.int64]

UNKNOWN_TIME = int(np.iinfo(np.int64).min)
# Ratings of one user that lie at most this far apart belong to one session: MovieLens shows
# movies by the page, and what is rated within a minute was rated on one page.
SESSION_SECONDS = 60
DAY_SECONDS = 86_400


def known_mask(times: Times) -> npt.NDArray[np.bool_]:
    """(n,) whether each time is known."""
    return np.asarray(times != UNKNOWN_TIME)


def seconds_of(times: Times) -> npt.NDArray[np.float64]:
    """(n,) the same as numbers to compute with, NaN where unknown; exact to the second."""
    return np.where(known_mask(times), times, np.nan).astype(np.float64)


def checked_times(times: npt.ArrayLike | None, count: int) -> Times | None:
    """Times beside ``count`` ratings, read-only; None if none of them is known.

    Raises
    ------
    DataError
        If they are not whole numbers, or not one for each rating.
    """
    if times is None:
        return None
    array = np.asarray(times)
    if array.shape != (count,):
        raise DataError(
            f"times has the shape {array.shape} and there are {count:,} ratings: each needs one "
            f"time. Put UNKNOWN_TIME ({UNKNOWN_TIME}) where it is not known."
        )
    if array.dtype.kind not in "iu" and count:
        raise DataError(
            f"times must be whole seconds since 1970 in an array of integers, not of "
            f"{array.dtype}. Round them, and put UNKNOWN_TIME ({UNKNOWN_TIME}) where it is not "
            "known."
        )
    array = array.astype(np.int64, copy=False)
    if not known_mask(array).any():
        return None
    array.setflags(write=False)
    return array


def are_days(times: Times | None) -> bool:
    """Whether all times that are known are midnights: days that were written without hours."""
    if times is None:
        return False
    known = times[known_mask(times)]
    return len(known) > 0 and not np.any(known % DAY_SECONDS)


def taken(column: np.ndarray | None, where: npt.NDArray[np.generic] | slice) -> np.ndarray | None:
    """The entries at some positions (or where a mask is true); None where there is no column."""
    return None if column is None else column[where]


def times_sha256(*tables: Times | None) -> str:
    """Hash of the times of tables of ratings, in this order; "" where no time is known.

    A fit that uses the times has it in its key; the hash of the ratings leaves them out.
    """
    if all(times is None for times in tables):
        return ""
    digest = hashlib.sha256(b"gmc times 1\n")
    for times in tables:
        digest.update(b"none\n" if times is None else f"{len(times)}\n".encode())
        if times is not None:
            digest.update(np.ascontiguousarray(times, "<i8").data)
    return digest.hexdigest()


def day_text(second: int) -> str:
    """The day of a known time, in UTC: "1997-09-20"."""
    return str(np.datetime64(int(second), "s").astype("datetime64[D]"))
