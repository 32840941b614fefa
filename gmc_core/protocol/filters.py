"""The paper's filter: leave out users and items with too few ratings (section 3.1).

The filter is applied once, in a stated order, and every step reports what it
took away: nothing disappears without being counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import DataError
from gmc_core.data.ratings import Ratings
from gmc_core.protocol.filter_options import Filter as Filter


@dataclass(frozen=True)
class Size:
    """How many users, items and ratings a table has."""

    users: int
    items: int
    ratings: int

    @classmethod
    def of(cls, ratings: Ratings) -> Size:
        """The size of a table of ratings."""
        return cls(ratings.n_users, ratings.n_items, len(ratings))

    def as_dict(self) -> dict[str, int]:
        """The three numbers by name."""
        return {"users": self.users, "items": self.items, "ratings": self.ratings}

    def __str__(self) -> str:
        return f"{self.users:,} users, {self.items:,} items, {self.ratings:,} ratings"


@dataclass(frozen=True)
class FilterStep:
    """What one step of the filter took away.

    Attributes
    ----------
    name : "users", "items", "max_items" or "emptied_users".
    reason : the rule, as a phrase that follows "removed:".
    removed : the users, items and ratings that went out.
    """

    name: str
    reason: str
    removed: Size

    def as_dict(self) -> dict[str, object]:
        """The step as plain values."""
        return {"name": self.name, "reason": self.reason, "removed": self.removed.as_dict()}


@dataclass(frozen=True)
class FilterReport:
    """The size before and after a filter, and every step between."""

    before: Size
    after: Size
    steps: tuple[FilterStep, ...]

    def as_dict(self) -> dict[str, object]:
        """The report as plain values, ready for JSON."""
        return {
            "before": self.before.as_dict(),
            "after": self.after.as_dict(),
            "steps": [step.as_dict() for step in self.steps],
        }

    def __str__(self) -> str:
        lines = [f"Before: {self.before}."]
        lines += [f"{step.reason}; removed: {step.removed}." for step in self.steps]
        lines.append(f"After: {self.after}.")
        return "\n".join(lines)


def apply_filter(ratings: Ratings, settings: Filter) -> tuple[Ratings, FilterReport]:
    """Filter the ratings, once through each step (section 3.1).

    The order is: users with fewer than ``min_user_ratings`` ratings; items with
    fewer than ``min_item_ratings`` of what is left; all but the ``max_items``
    most rated items (ties: the earlier position stays); and last the users who
    had ratings and lost all of them with their items. It is not iterated, as in
    the literature, so a user who is kept can end below ``min_user_ratings``.

    Parameters
    ----------
    ratings : M users × N items.
    settings : the thresholds.

    Returns
    -------
    The filtered ratings, and the report of each step.

    Raises
    ------
    DataError
        If no rating is left; the message names the threshold that did it.
    """
    if len(ratings) == 0:
        raise DataError("There are no ratings to filter. Load a data set that has some.")
    steps: list[FilterStep] = []
    rated_before = ratings.user_counts > 0

    def step(
        table: Ratings,
        name: str,
        reason: str,
        remedy: str,
        *,
        users: npt.NDArray[np.bool_] | None = None,
        items: npt.NDArray[np.bool_] | None = None,
    ) -> Ratings:
        kept = table.select(users=users, items=items)
        old, new = Size.of(table), Size.of(kept)
        removed = Size(old.users - new.users, old.items - new.items, old.ratings - new.ratings)
        steps.append(FilterStep(name, reason, removed))
        if new.ratings == 0:
            raise DataError(f"The filter left nothing: {reason} took all of {old}. {remedy}")
        return kept

    keep_users = ratings.user_counts >= settings.min_user_ratings
    table = step(
        ratings,
        "users",
        f"Users with fewer than {settings.min_user_ratings:,} ratings (min_user_ratings)",
        f"Lower min_user_ratings: the most active user has {_ratings(ratings.user_counts)}.",
        users=keep_users,
    )
    rated_before = rated_before[keep_users]
    table = step(
        table,
        "items",
        f"Items with fewer than {settings.min_item_ratings:,} ratings (min_item_ratings)",
        f"Lower min_item_ratings: the most rated item has {_ratings(table.item_counts)}.",
        items=table.item_counts >= settings.min_item_ratings,
    )
    if settings.max_items is not None:
        # max_items ≥ 1 keeps the most rated item, so this step cannot empty the table.
        table = step(
            table,
            "max_items",
            f"All but the {settings.max_items:,} most rated items (max_items)",
            "Raise max_items.",
            items=_most_rated(table.item_counts, settings.max_items),
        )
    emptied = rated_before & (table.user_counts == 0)
    if emptied.any():
        table = step(
            table,
            "emptied_users",
            "Users whose ratings were all of items removed above",
            "Lower min_item_ratings or raise max_items.",
            users=~emptied,
        )
    return table, FilterReport(Size.of(ratings), Size.of(table), tuple(steps))


def _ratings(counts: npt.NDArray[np.int64]) -> str:
    """The largest count, in words."""
    most = int(counts.max())
    return f"{most:,} rating" if most == 1 else f"{most:,} ratings"


def _most_rated(counts: npt.NDArray[np.int64], limit: int) -> npt.NDArray[np.bool_]:
    """(N,) mask of the ``limit`` largest counts; of equal counts the first stay."""
    keep = np.zeros(len(counts), dtype=bool)
    keep[np.argsort(-counts, kind="stable")[:limit]] = True
    return keep


def kept_counts(
    ratings: Ratings, settings: Filter
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """How many ratings each user and each item keeps that :func:`apply_filter` would keep.

    Counting takes a fraction of the time in which the filtered table is made.

    Returns
    -------
    Of the users and of the items that stay, in their order; empty where nothing is left.
    """
    users = ratings.user_counts >= settings.min_user_ratings
    counts = ratings.item_counts
    if not users.all():
        own = ratings.indices[np.repeat(users, ratings.user_counts)]
        counts = np.bincount(own, minlength=ratings.n_items)
    items = counts >= settings.min_item_ratings
    if settings.max_items is not None:
        left = np.flatnonzero(items)
        items[left[~_most_rated(counts[left], settings.max_items)]] = False
    sums = np.concatenate([[0], np.cumsum(items[ratings.indices], dtype=np.int64)])
    own = np.diff(sums[ratings.indptr])
    emptied = (ratings.user_counts > 0) & (own == 0)
    return own[users & ~emptied], counts[items]
