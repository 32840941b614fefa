"""The ratings object: ids, scale, hash, selection."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import random_table, ratings_of

from gmc_core.base.errors import ConfigError, DataError, UnknownIdError
from gmc_core.data.ratings import ItemInfo, Ratings, RatingScale, Vocabulary

STARS = RatingScale(1, 5)


def test_divisors_are_the_papers():
    assert RatingScale(1, 5).nmae_divisor == pytest.approx(1.6)
    assert RatingScale(1, 6).nmae_divisor == pytest.approx(35 / 18)
    assert RatingScale(0.5, 5, 0.5).nmae_divisor == pytest.approx(1.65)
    assert RatingScale(-10, 10, None).nmae_divisor == pytest.approx(20 / 3)


@given(st.integers(2, 12), st.sampled_from([0.25, 0.5, 1.0]), st.integers(-5, 5))
def test_divisor_is_the_mean_absolute_difference_of_two_picks(count, step, low):
    scale = RatingScale(low, low + step * (count - 1), step)
    levels = scale.levels
    expected = np.abs(levels[:, None] - levels[None, :]).mean()
    assert scale.nmae_divisor == pytest.approx(expected)


def test_projection_takes_the_nearest_value_and_keeps_nan():
    scale = RatingScale(0.5, 5, 0.5)
    projected = scale.project([-3, 0.6, 2.74, 2.75, 4.9, 99, np.nan])
    np.testing.assert_array_equal(projected, [0.5, 0.5, 2.5, 3.0, 5.0, 5.0, np.nan])
    np.testing.assert_array_equal(RatingScale(-1, 1, None).project([0.123, 3]), [0.123, 1])


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=30))
def test_projection_is_idempotent_and_no_level_is_nearer(values):
    scale = RatingScale(1, 6)
    projected = scale.project(values)
    np.testing.assert_array_equal(scale.project(projected), projected)
    distance = np.abs(np.asarray(values)[:, None] - scale.levels).min(axis=1)
    np.testing.assert_allclose(np.abs(np.asarray(values) - projected), distance)


@pytest.mark.parametrize("ends", [(5, 1, 1), (1, 5, -1), (1, 5, 0.3), (np.nan, 5, 1)])
def test_impossible_scales_are_refused(ends):
    with pytest.raises(ConfigError):
        RatingScale(*ends)


def test_a_constant_scale_has_no_divisor_and_says_so():
    with pytest.raises(ConfigError, match="nothing to predict"):
        _ = RatingScale(3, 3).nmae_divisor


def test_size_follows_the_number_of_ids_not_the_largest():
    ratings = Ratings.from_triplets([10**18, 5], [7, 10**17], [3.0, 4.0], STARS)
    assert (ratings.n_users, ratings.n_items) == (2, 2)
    assert ratings.users.index(10**18) == 1
    assert ratings.users.index("1000000000000000000") == 1


def test_string_ids_keep_leading_zeros():
    ratings = Ratings.from_triplets(["007", "7"], ["a", "b"], [3.0, 4.0], STARS)
    assert ratings.users.ids.tolist() == ["007", "7"]
    assert ratings.users.index("007") != ratings.users.index("7")


def test_unknown_ids_are_visible():
    vocabulary = Vocabulary([3, 8], "user")
    assert vocabulary.find([8, 5, "3", "x"]).tolist() == [1, -1, 0, -1]
    with pytest.raises(UnknownIdError, match="no user '5'"):
        vocabulary.index(5)


def test_zero_is_a_rating_and_missing_is_not():
    ratings = Ratings.from_triplets(["a", "b"], ["x", "y"], [0.0, 2.0], RatingScale(0, 2))
    assert len(ratings) == 2
    assert ratings.of_user(0)[1].tolist() == [0.0]


def test_row_order_of_the_source_has_no_effect():
    values, known = random_table(12, 7, 0.5, seed=1)
    users, items = np.nonzero(known)
    order = np.random.default_rng(0).permutation(len(users))
    one = Ratings.from_triplets(users, items, values[known], STARS)
    two = Ratings.from_triplets(users[order], items[order], values[known][order], STARS)
    assert one.sha256 == two.sha256
    np.testing.assert_array_equal(one.values, two.values)


def test_hash_changes_with_one_rating_one_id_or_the_scale():
    base = Ratings.from_triplets([1, 2], [1, 2], [3.0, 4.0], STARS)
    others = [
        Ratings.from_triplets([1, 2], [1, 2], [3.0, 5.0], STARS),
        Ratings.from_triplets([1, 3], [1, 2], [3.0, 4.0], STARS),
        Ratings.from_triplets(["1", "2"], [1, 2], [3.0, 4.0], STARS),
        Ratings.from_triplets([1, 2], [1, 2], [3.0, 4.0], RatingScale(1, 6)),
    ]
    assert len({base.sha256, *(other.sha256 for other in others)}) == 5


def test_arrays_cannot_be_written():
    ratings = ratings_of(*random_table(5, 5, 0.5, seed=2))
    with pytest.raises(ValueError, match="read-only"):
        ratings.values[0] = 9


def test_select_keeps_values_ids_titles_and_attributes():
    info = ItemInfo(("A", "B", None), (("x",), (), ()), np.array([1990.0, np.nan, 2000.0]))
    ratings = Ratings.from_triplets(
        [1, 1, 2, 3], [10, 30, 20, 30], [1.0, 2, 3, 4], STARS,
        item_info=info, user_info={"age": np.array([20, 30, 40])},
    )  # fmt: skip
    part = ratings.select(users=np.array([True, False, True]), items=np.array([False, True, True]))
    assert part.users.ids.tolist() == [1, 3]
    assert part.items.ids.tolist() == [20, 30]
    assert part.user_info["age"].tolist() == [20, 40]
    assert [part.title(item) for item in range(2)] == ["B", "30"]
    np.testing.assert_array_equal(part.to_csr().toarray(), [[0, 2], [0, 4]])
    assert part.item_counts.tolist() == [0, 2]


def test_bad_tables_are_refused():
    with pytest.raises(DataError, match="more than once"):
        Ratings.from_triplets([1, 1], [2, 2], [3.0, 4.0], STARS)
    with pytest.raises(DataError, match="finite"):
        Ratings.from_triplets([1], [2], [np.nan], STARS)
    with pytest.raises(UnknownIdError):
        Ratings.from_triplets([1], [2], [3.0], STARS, users=Vocabulary([7], "user"))


@pytest.mark.parametrize("most", [1, 5, 1000])
def test_blocks_of_users_cover_all_and_values_are_counted(most):
    rng = np.random.default_rng(0)
    known = rng.random((30, 12)) < rng.random((30, 1))
    known[[0, 7, 8, 29]] = False  # users without ratings, also at the ends
    rows, columns = np.nonzero(known)
    values = rng.integers(1, 11, len(rows)) / 2
    users = Vocabulary(np.arange(30), "user")
    ratings = Ratings.from_triplets(rows, columns, values, RatingScale(0.5, 5, 0.5), users=users)
    blocks = list(ratings.user_blocks(most))
    covered = [place for first, last in blocks for place in range(first, last)]
    assert covered == list(range(30))
    expected = np.unique(values, return_counts=True)
    assert [part.tolist() for part in ratings.value_counts] == [part.tolist() for part in expected]
