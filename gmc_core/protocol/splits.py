"""Train/test splits: weak and strong generalization (section 3.1), no split, and a given pair.

Random hold-out and hold-out by time, which all users and items take part in, are in
:mod:`gmc_core.protocol.random_splits` and :mod:`gmc_core.protocol.latest_splits`.

Every random choice comes from :mod:`gmc_core.protocol.draws`, so a seed means the same
split on every machine and with every NumPy version.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.data.rating_times import Times, checked_times, taken
from gmc_core.data.ratings import Ratings
from gmc_core.protocol.draws import Words, bounded, choose, word_stream
from gmc_core.protocol.pairs import merge_pair

# What errors call the users, with the options that give their numbers.
_TRAINING = "training users (--weak-users)"
_NOVEL = "novel users (--strong-users)"


@dataclass(frozen=True, eq=False)
class Split:
    """Which ratings a model learns from and which it has to predict.

    Attributes
    ----------
    protocol : "weak", "strong", "random", "latest", "none" or "pair".
    train : what the model is fitted to.
    query : strong only: the query set, what is known of the novel users, on the item
        vocabulary of ``train``; ``None`` otherwise.
    test_users : (n_test,) int64 positions in ``known.users``.
    test_items : (n_test,) int64 positions in ``train.items``.
    test_values : (n_test,) float64, the held-out ratings.
    seed : of the random choices; ``None`` if there were none.
    notes : what a reader of the results must know, a sentence each.
    test_times : (n_test,) int64 when the held-out ratings were given, as ``Ratings.times`` has
        them; None if no such time is known.
    """

    protocol: str
    train: Ratings
    query: Ratings | None
    test_users: npt.NDArray[np.int64]
    test_items: npt.NDArray[np.int64]
    test_values: npt.NDArray[np.float64]
    seed: int | None = None
    notes: tuple[str, ...] = ()
    test_times: Times | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "test_times", checked_times(self.test_times, self.n_test))
        for array in (self.test_users, self.test_items, self.test_values):
            array.setflags(write=False)

    @property
    def known(self) -> Ratings:
        """What is known of the test users: ``query`` if there is one, else ``train``."""
        return self.train if self.query is None else self.query

    @property
    def shown(self) -> Ratings | None:
        """``query`` by its former name."""
        warnings.warn("Split.shown is now called Split.query", DeprecationWarning, stacklevel=2)
        return self.query

    @property
    def n_test(self) -> int:
        """The number of held-out ratings."""
        return len(self.test_values)

    @property
    def unseen_items(self) -> npt.NDArray[np.bool_]:
        """(n_test,) whether the item of a test rating has no rating in ``train``."""
        return np.asarray(self.train.item_counts[self.test_items] == 0)

    @property
    def unseen_users(self) -> npt.NDArray[np.bool_]:
        """(n_test,) whether nothing is known of the user of a test rating."""
        return np.asarray(self.known.user_counts[self.test_users] == 0)

    @property
    def n_unseen_items(self) -> int:
        """The number of test ratings whose item has no training rating."""
        return int(self.unseen_items.sum())

    @property
    def n_unseen_users(self) -> int:
        """The number of test ratings of whose user nothing is known."""
        return int(self.unseen_users.sum())

    def as_dict(self) -> dict[str, object]:
        """The summary numbers as plain values, ready for JSON."""
        return {
            "protocol": self.protocol,
            "seed": self.seed,
            "train_users": self.train.n_users,
            "items": self.train.n_items,
            "train_ratings": len(self.train),
            "shown_users": None if self.query is None else self.query.n_users,
            "shown_ratings": None if self.query is None else len(self.query),
            "test_ratings": self.n_test,
            "unseen_items": self.n_unseen_items,
            "unseen_users": self.n_unseen_users,
            "notes": list(self.notes),
        }


def default_counts(n_users: int) -> tuple[int, int]:
    """The paper's numbers of weak (= training) and strong (= novel) users.

    Parameters
    ----------
    n_users : users to choose from.

    Returns
    -------
    (30,000, 5,000) from 35,000 users on, as for EachMovie; (5,000, 1,000) from
    6,000 on, as for MovieLens 1M; below that the same shares as of MovieLens
    1M's 6,040 users, rounded down, but at least one as long as there are users.
    """
    if n_users >= 35_000:
        return 30_000, 5_000
    if n_users >= 6_000:
        return 5_000, 1_000
    weak = max(n_users * 500 // 604, min(n_users, 1))
    strong = max(n_users * 100 // 604, min(n_users - weak, 1))
    return weak, strong


def weak_split(ratings: Ratings, seed: int, n_users: int | None = None) -> Split:
    """Weak generalization: predict other ratings of the users trained on.

    One random rating of each of ``n_users`` random users is held out; those
    users' other ratings train. As in Marlin's protocol (2004) the users not
    chosen are not used; the item vocabulary stays whole.

    Parameters
    ----------
    ratings : M users × N items, normally filtered already.
    seed : 0 or more; the same seed gives the same users as :func:`strong_split`.
    n_users : how many users; by default the first of :func:`default_counts`.

    Raises
    ------
    ConfigError
        If there are fewer than ``n_users`` users with two ratings or more.
    DataError
        If no user has two ratings.
    """
    words = word_stream(seed)
    eligible, notes = _eligible_users(ratings)
    if n_users is None:
        n_users = default_counts(len(eligible))[0]
        notes += _scaling_notes(len(eligible), f"{n_users:,} users")
    _require_fit({_TRAINING: n_users}, len(eligible))
    users = np.sort(eligible[choose(words, len(eligible), n_users)])
    held = one_of_each(words, ratings, users)
    chosen = _mask(ratings.n_users, users)
    return Split(
        protocol="weak",
        train=_without(ratings, held, chosen),
        query=None,
        test_users=np.arange(len(users), dtype=np.int64),
        test_items=ratings.indices[held].astype(np.int64),
        test_values=ratings.values[held],
        test_times=taken(ratings.times, held),
        seed=int(seed),
        notes=notes,
    )


def strong_split(
    ratings: Ratings, seed: int, n_train: int | None = None, n_test: int | None = None
) -> Split:
    """Strong generalization: predict ratings of novel users.

    The model trains on all ratings of ``n_train`` random users. Each of
    ``n_test`` other random users shows all ratings but one, which is predicted.
    With ``n_train`` equal to :func:`weak_split`'s ``n_users``, the training
    users are that split's users.

    Parameters
    ----------
    ratings : M users × N items, normally filtered already.
    seed : 0 or more.
    n_train, n_test : how many users; by default :func:`default_counts`.

    Raises
    ------
    ConfigError
        If there are fewer than ``n_train + n_test`` users with two ratings or more.
    DataError
        If fewer than two users have two ratings.
    """
    words = word_stream(seed)
    eligible, notes = _eligible_users(ratings)
    if len(eligible) < 2:
        raise DataError(
            "Strong generalization needs a user to train on and another to test on, but only one "
            "user has two ratings. Use more data, or the weak protocol."
        )
    default_train, default_test = default_counts(len(eligible))
    if n_train is None or n_test is None:
        n_train = default_train if n_train is None else n_train
        n_test = default_test if n_test is None else n_test
        used = f"{n_train:,} training and {n_test:,} test users"
        notes += _scaling_notes(len(eligible), used)
    _require_fit({_TRAINING: n_train, _NOVEL: n_test}, len(eligible))
    drawn = eligible[choose(words, len(eligible), n_train + n_test)]
    # The first n_train users drawn train: the very ones that weak_split draws.
    novel = np.sort(drawn[n_train:])
    held = one_of_each(words, ratings, novel)
    return Split(
        protocol="strong",
        train=ratings.select(users=_mask(ratings.n_users, drawn[:n_train])),
        query=_without(ratings, held, _mask(ratings.n_users, novel)),
        test_users=np.arange(len(novel), dtype=np.int64),
        test_items=ratings.indices[held].astype(np.int64),
        test_values=ratings.values[held],
        test_times=taken(ratings.times, held),
        seed=int(seed),
        notes=notes,
    )


def no_split(ratings: Ratings) -> Split:
    """Train on everything and test nothing."""
    return Split(
        protocol="none",
        train=ratings,
        query=None,
        test_users=np.empty(0, dtype=np.int64),
        test_items=np.empty(0, dtype=np.int64),
        test_values=np.empty(0, dtype=np.float64),
    )


def held_out_split(
    protocol: str,
    ratings: Ratings,
    held: npt.NDArray[np.int64],
    seed: int,
    notes: tuple[str, ...] = (),
) -> Split:
    """Predict some ratings from all others; the vocabularies stay whole.

    held : positions, among all ratings, of those to predict. seed : of the choice of them.
    """
    return Split(
        protocol=protocol,
        train=ratings.keep_ratings(~_mask(len(ratings), held)),
        query=None,
        test_users=ratings.rows[held].astype(np.int64),
        test_items=ratings.indices[held].astype(np.int64),
        test_values=ratings.values[held],
        test_times=taken(ratings.times, held),
        seed=int(seed),
        notes=notes,
    )


def inner_split(train: Ratings, held: npt.NDArray[np.int64], seed: int) -> Split:
    """A weak split inside a training set, to choose settings on.

    held : (n_test,) positions, among all ratings, of those to predict from the others.
    seed : of the choice of them.
    """
    return held_out_split("weak", train, held, seed)


def pair_split(train: Ratings, test: Ratings) -> Split:
    """Explicit training and test ratings, taken as they are.

    The vocabularies become the union of both, so a user or item that only the
    test ratings know gets a position, has no training rating, is predicted from
    the prior, and is counted. If the ids are whole numbers on one side and text
    on the other, both become text. The scale is the union of both scales.

    Raises
    ------
    DataError
        If either side has no ratings, if a (user, item) pair is in both (its
        rating would leak into training), or if the two scales have no common one.
    """
    train, test = merge_pair(train, test)
    split = Split(
        protocol="pair",
        train=train,
        query=None,
        test_users=test.rows.astype(np.int64),
        test_items=test.indices.astype(np.int64),
        test_values=test.values.copy(),
        test_times=test.times,
    )
    notes = tuple(
        f"{count:,} of {split.n_test:,} test ratings are of {kind}s without training ratings; "
        "they are predicted from the prior."
        for kind, count in (("user", split.n_unseen_users), ("item", split.n_unseen_items))
        if count
    )
    return replace(split, notes=notes)


def one_of_each(
    words: Words, ratings: Ratings, users: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """(len(users),) position, among all ratings, of one random rating of each user."""
    return some_of_each(words, ratings, users, np.ones(len(users), np.int64))[0]


def some_of_each(
    words: Words,
    ratings: Ratings,
    users: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Random ratings of each user, without repetition: one of each, then a second, …

    counts : (len(users),) how many of each user, at most as many as the user has.

    Returns
    -------
    (sum of ``counts``,) positions among all ratings, and the turn (0, 1, …) in which each
    was drawn. The first turn is what :func:`one_of_each` draws.
    """
    found, turns = [], []
    taken = np.empty((len(users), 0), np.int64)  # places within a user's ratings, sorted
    for turn in range(int(counts.max(initial=0))):
        going = counts > turn
        users, counts, taken = users[going], counts[going], taken[going]
        picks = bounded(words, ratings.user_counts[users] - turn)
        for place in taken.T:
            picks += picks >= place  # the pick counts only what is left
        taken = np.sort(np.column_stack([taken, picks]), axis=1)
        found.append(ratings.indptr[users] + picks)
        turns.append(np.full(len(users), turn))
    none = np.empty(0, np.int64)
    return np.concatenate([none, *found]), np.concatenate([none, *turns])


def _eligible_users(ratings: Ratings) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """Users with at least two ratings, so that one is left when one is held out."""
    eligible = np.flatnonzero(ratings.user_counts >= 2).astype(np.int64)
    if len(eligible) == 0:
        raise DataError(
            "No user has two ratings, so none can be held out. Use data with more ratings a "
            "user, or train on everything."
        )
    too_few = ratings.n_users - len(eligible)
    if too_few == 0:
        return eligible, ()
    return eligible, (
        f"{too_few:,} of {ratings.n_users:,} users have fewer than two ratings, so they are not "
        "drawn.",
    )


def _scaling_notes(n_eligible: int, used: str) -> tuple[str, ...]:
    if n_eligible >= 6_000:
        return ()
    return (
        f"The data have {n_eligible:,} users to draw from, fewer than the paper's 5,000 weak and "
        f"1,000 strong users, so the numbers are scaled down to {used}, as 5,000 and 1,000 are "
        "to 6,040.",
    )


def _require_fit(counts: dict[str, int], available: int) -> None:
    """Raise a ConfigError unless so many users can be drawn; counts : by kind of user."""
    for kind, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise ConfigError(
                f"The number of {kind} is {count!r}; give a whole number of 1 or more."
            )
    if sum(counts.values()) > available:
        asked = " and ".join(f"{count:,} {kind}" for kind, count in counts.items())
        raise ConfigError(
            f"{asked} are more than the {available:,} users that have two ratings or more. "
            "Ask for fewer, or give no numbers to have the paper's scaled down."
        )


def _without(
    ratings: Ratings, held: npt.NDArray[np.int64], users: npt.NDArray[np.bool_]
) -> Ratings:
    """The ratings of some users, given as a mask, but those at the positions ``held``."""
    keep = users[ratings.rows]  # first, so that all the others' ratings are not copied
    keep[held] = False
    return ratings.keep_ratings(keep).select(users=users)


def _mask(length: int, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    mask = np.zeros(length, dtype=bool)
    mask[positions] = True
    return mask
