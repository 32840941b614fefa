"""Ratings held out inside a training set, to choose settings or to learn widths on.

They are drawn as the protocol draws its test ratings: at random from every user, each
user weighing alike, so that what is found on them is about what is reported later. One
rating of each user, as in the protocol, is little where users are few: with 500 of them
a difference of NMAE has a standard error of about .008. Then users with many ratings
give more than one, at most one in ``RARITY`` of what they rated, and a user's ratings count
as their mean. The mean over users keeps its expectation, and its
error comes down; ratings of one user are no independent cases, so errors and intervals
count users (of intervals: Dunn, Wasserman and Ramdas, 2023, *Distribution-free prediction
sets for two-layer hierarchical models*, pooling the users' distributions).

More than one set may be held out at once: what is chosen on the one is reported on the
other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import DataError
from gmc_core.data.ratings import Ratings
from gmc_core.protocol.draws import word_stream
from gmc_core.protocol.splits import Split, inner_split, some_of_each

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]

# Held-out ratings that suffice: the paper's number on MovieLens 1M.
ENOUGH = 5_000
# A user with fewer than twice as many ratings gives one to a set, and so on.
RARITY = 20
# Sums of 1/k end this near to whole numbers of users.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class HeldOutSet:
    """Some of the held-out ratings of a split, in which every user weighs alike.

    ratings : (n,) positions among the split's held-out ratings.
    owners : (n,) whose each is, as 0 … users - 1.
    users : how many users have one in the set.
    """

    ratings: Positions
    owners: Positions
    users: int

    @classmethod
    def of(cls, ratings: Positions, test_users: Positions) -> HeldOutSet:
        """The set of these ratings, with the users of all held-out ratings given."""
        users, owners = np.unique(test_users[ratings], return_inverse=True)
        return cls(ratings, owners.reshape(-1), len(users))

    def by_user(self, values: npt.ArrayLike) -> Floats:
        """(users,) the mean over each user's ratings in the set.

        values : (n_test,) one of each held-out rating of the split.
        """
        own = np.asarray(values, dtype=np.float64)[self.ratings]
        totals = np.bincount(self.owners, weights=own, minlength=self.users)
        return np.asarray(totals / np.bincount(self.owners, minlength=self.users))

    def check_level(self, level: float) -> None:
        """Refuse a level whose quantile lies beyond all values.

        Raises
        ------
        DataError
            If (users + 1) ``level`` is more than there are users.
        """
        if (self.users + 1) * level - _ROUNDING > self.users:
            enough = math.ceil(level / (1 - level) - _ROUNDING)
            highest = math.floor(1000 * self.users / (self.users + 1)) / 1000
            raise DataError(
                f"{self.users:,} users with two ratings or more are too few for intervals that "
                f"hold {100 * level:.4g} % of ratings: these take {enough:,}. Learn from more "
                f"users, or take a level of at most {highest:g}."
            )

    def quantile(self, values: npt.ArrayLike, level: float) -> float:
        """The smallest value that a share ``level`` of users and one user more stay within.

        A user's ratings share the user's weight, and the user more stands at infinity; with
        one rating of each that is the ⌈(users + 1) level⌉-th smallest, as in split conformal
        prediction.

        Raises
        ------
        DataError
            If the users are too few for that: see :meth:`check_level`.
        """
        self.check_level(level)
        own = np.asarray(values, dtype=np.float64)[self.ratings]
        order = np.argsort(own, kind="stable")
        counts = np.bincount(self.owners, minlength=self.users)
        reached = np.cumsum(1.0 / counts[self.owners[order]])
        place = int(np.searchsorted(reached, (self.users + 1) * level - _ROUNDING))
        return float(own[order[min(place, len(own) - 1)]])


def hold_out(
    train: Ratings, seed: int, sets: int = 1, most: int | None = None
) -> tuple[Split, tuple[HeldOutSet, ...]]:
    """Hold ``sets`` disjoint sets of ratings out of a training set.

    Every user with enough ratings gives one to each set, and more where users are few
    (see the module); every user keeps at least one rating. A user with too few for all
    sets gives to the first ones.

    Parameters
    ----------
    train : the ratings to learn from. seed : of the draws.
    most : ratings of a user in a set; by default as many as make ``ENOUGH`` of all users.

    Returns
    -------
    A weak split of the training ratings, and the sets that its held-out ratings fall into;
    all but the first may be empty.

    Raises
    ------
    DataError
        If no user has two ratings.
    """
    users = np.flatnonzero(train.user_counts >= 2).astype(np.int64)
    if not len(users):
        raise DataError(
            "There are too few ratings: no training user has two, so none can be held out to "
            "choose settings on. Give the settings yourself."
        )
    rated = train.user_counts[users]
    largest = -(-ENOUGH // len(users)) if most is None else most
    each = sets * np.clip(rated // RARITY, 1, largest)
    held, turns = some_of_each(word_stream(seed), train, users, np.minimum(each, rated - 1))
    split = inner_split(train, held, seed)
    return split, tuple(
        HeldOutSet.of(np.flatnonzero(turns % sets == k), split.test_users) for k in range(sets)
    )
