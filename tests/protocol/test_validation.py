"""Ratings held out inside a training set: of every user, each weighing alike."""

from __future__ import annotations

import numpy as np
import pytest
from making import random_table, ratings_of

from gmc_core.base.errors import DataError
from gmc_core.protocol.draws import word_stream
from gmc_core.protocol.splits import one_of_each, some_of_each, weak_split
from gmc_core.protocol.validation import HeldOutSet, hold_out


def uneven(heavy: int = 120):
    """Nineteen users with six ratings, and one with ``heavy``."""
    known = np.zeros((20, heavy), dtype=bool)
    known[:19, :6] = True
    known[19] = True
    return ratings_of(np.full(known.shape, 3.0) + known.cumsum(axis=1) % 3 - 1, known)


def test_every_user_gives_to_every_set_and_heavy_users_do_not_dominate():
    train = uneven()
    split, sets = hold_out(train, 0, sets=2)
    for held in sets:
        users, counts = np.unique(split.test_users[held.ratings], return_counts=True)
        np.testing.assert_array_equal(users, np.arange(20))
        assert counts[:19].tolist() == [1] * 19
        assert counts[19] == 120 // 20  # a tenth of all ratings would have been 20 of hers
        assert held.users == 20
    first, second = sets
    assert not set(first.ratings) & set(second.ratings)
    pairs = set(zip(split.test_users.tolist(), split.test_items.tolist(), strict=True))
    assert len(pairs) == split.n_test == len(first.ratings) + len(second.ratings)
    kept = set(zip(split.train.rows.tolist(), split.train.indices.tolist(), strict=True))
    assert not pairs & kept
    assert len(kept) + len(pairs) == len(train)


def test_few_ratings_go_to_the_first_set_and_every_user_keeps_one():
    known = np.zeros((4, 5), dtype=bool)
    for user, count in enumerate((1, 2, 3, 5)):
        known[user, :count] = True
    split, (first, second) = hold_out(ratings_of(np.full(known.shape, 3.0), known), 0, sets=2)
    assert sorted(split.test_users[first.ratings].tolist()) == [1, 2, 3]
    assert sorted(split.test_users[second.ratings].tolist()) == [2, 3]
    assert split.train.user_counts.tolist() == [1, 1, 1, 3]


def test_the_same_seed_holds_out_the_same_ratings():
    train = ratings_of(*random_table(50, 12, 0.4, 0))
    first, again, other = (hold_out(train, seed)[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.test_items, again.test_items)
    assert not np.array_equal(first.test_items, other.test_items)


def test_one_of_each_is_the_protocol_s_own_draw():
    train = ratings_of(*random_table(50, 12, 0.4, 0))
    users = np.flatnonzero(train.user_counts >= 2)
    split, (held,) = hold_out(train, 3, most=1)
    wanted = one_of_each(word_stream(3), train, users)
    np.testing.assert_array_equal(split.test_items, train.indices[wanted])
    assert held.users == split.n_test == len(users)


def test_several_of_each_are_drawn_without_repetition_and_evenly():
    train = ratings_of(np.full((400, 5), 3.0), np.ones((400, 5), dtype=bool))
    users = np.arange(400)
    found, turns = some_of_each(word_stream(0), train, users, np.full(400, 4))
    assert len(np.unique(found)) == 1600
    for turn in range(4):
        places = found[turns == turn] - train.indptr[users]
        # 80 of each of the five places, with a standard deviation of 8.
        assert np.abs(np.bincount(places, minlength=5) - 80).max() < 32


def test_the_paper_s_test_ratings_are_drawn_as_before():
    """The draw of several must not move those of one, by which every stored run goes."""
    split = weak_split(ratings_of(*random_table(30, 12, 0.4, 0)), 0)
    assert (split.test_items * np.arange(1, split.n_test + 1)).sum() == 1734


def test_a_user_s_ratings_count_as_their_mean():
    held = HeldOutSet.of(np.array([0, 2, 3, 4]), np.array([7, 1, 7, 7, 9]))
    np.testing.assert_allclose(held.by_user([1.0, 99.0, 2.0, 3.0, 8.0]), [2.0, 8.0])


def test_the_quantile_of_one_rating_each_is_that_of_split_conformal_prediction():
    held = HeldOutSet.of(np.arange(19), np.arange(19))
    values = np.random.default_rng(0).permutation(np.arange(1.0, 20.0))
    assert held.quantile(values, 0.9) == 18  # ⌈20 · .9⌉
    assert held.quantile(values, 0.95) == 19
    with pytest.raises(DataError, match="too few") as found:
        held.quantile(values, 0.99)  # beyond all
    assert "these take 99" in str(found.value)
    assert "at most 0.95" in str(found.value)


@pytest.mark.parametrize(
    ("users", "level", "enough"), [(5, 0.9, False), (8, 0.9, False), (9, 0.9, True)]
)
def test_few_users_do_not_promise_more_than_they_tell(users, level, enough):
    held = HeldOutSet.of(np.arange(users), np.arange(users))
    values = np.arange(1.0, users + 1)
    if enough:
        assert held.quantile(values, level) == users
    else:
        with pytest.raises(DataError, match=f"^{users} users .* these take 9"):
            held.quantile(values, level)


def test_in_the_quantile_every_user_weighs_alike():
    """Nine users with one rating of 1, and one with a hundred of 50."""
    owners = np.concatenate([np.arange(9), np.full(100, 9)])
    held = HeldOutSet.of(np.arange(109), owners)
    values = np.concatenate([np.ones(9), np.full(100, 50.0)])
    assert held.quantile(values, 0.8) == 1.0  # 8.8 of 11 users; by ratings it would be 50
    assert held.quantile(values, 0.85) == 50.0


def test_nothing_to_hold_out_is_an_error():
    lonely = ratings_of(np.full((4, 4), 3.0), np.eye(4, dtype=bool))
    with pytest.raises(DataError, match="too few ratings"):
        hold_out(lonely, 0)
