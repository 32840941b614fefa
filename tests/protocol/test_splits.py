"""Splits: reproducible from the seed alone, uniform, and nothing lost."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.data.ratings import ItemInfo, Ratings, RatingScale, Vocabulary
from gmc_core.protocol.splits import default_counts, no_split, pair_split, strong_split, weak_split

SCALE = RatingScale(1, 5)
GOLDEN = Path(__file__).with_name("golden_split.json")


def made(n_users: int = 40, n_items: int = 15, lone: int = 2) -> Ratings:
    """A table by arithmetic alone; the last ``lone`` users have one rating each."""
    users, items = np.divmod(np.arange(n_users * n_items), n_items)
    rated = ((users * 7 + items * 5 + users * items) % 11 < 4) | (items < 2)
    rated[users >= n_users - lone] = False
    rated |= (users >= n_users - lone) & (items == 0)
    users, items = users[rated], items[rated]
    return Ratings.from_triplets(
        users + 100, items + 500, 1 + (users * 3 + items * 11) % 5, SCALE, name="made"
    )


def triplets(ratings: Ratings) -> set[tuple[object, object, float]]:
    return set(
        zip(
            ratings.users.ids[ratings.rows].tolist(),
            ratings.items.ids[ratings.indices].tolist(),
            ratings.values.tolist(),
            strict=True,
        )
    )


def held_out(split) -> list[tuple[object, object, float]]:
    return list(
        zip(
            split.known.users.ids[split.test_users].tolist(),
            split.train.items.ids[split.test_items].tolist(),
            split.test_values.tolist(),
            strict=True,
        )
    )


def summary(split) -> dict[str, object]:
    return {
        "train_users": split.train.users.ids.tolist(),
        "train_ratings": len(split.train),
        "test": [list(entry) for entry in held_out(split)],
    }


@pytest.mark.parametrize("seed", [-1, 1.5, "7", None, True])
def test_a_seed_that_is_no_whole_number_is_refused(seed):
    with pytest.raises(ConfigError, match="seed"):
        weak_split(made(), seed)


def test_splits_are_the_recorded_ones():
    """A change here changes every published number: it needs a new protocol version."""
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert len(golden) >= 3
    for seed, expected in golden.items():
        assert summary(weak_split(made(), int(seed), 12)) == expected["weak"]
        assert summary(strong_split(made(), int(seed), 12, 5)) == expected["strong"]


def test_weak_split_is_the_documented_algorithm():
    """docs/protocols.md, "Seeds", in plain Python."""
    ratings = made()
    stream = np.random.PCG64(77)

    def below(bound):
        while True:
            word = int(stream.random_raw())
            if word < 2**64 - 2**64 % bound:
                return word % bound

    pool = [user for user in range(ratings.n_users) if len(ratings.of_user(user)[0]) >= 2]
    for step in range(10):
        other = step + below(len(pool) - step)
        pool[step], pool[other] = pool[other], pool[step]
    expected = []
    for user in sorted(pool[:10]):
        items, values = ratings.of_user(user)
        pick = below(len(items))
        expected.append((ratings.users.ids[user], ratings.items.ids[items[pick]], values[pick]))
    assert held_out(weak_split(ratings, 77, 10)) == expected


@pytest.mark.parametrize("seed", range(5))
def test_weak_holds_out_one_rating_of_each_chosen_user_and_loses_none(seed):
    ratings = made()
    split = weak_split(ratings, seed, 20)
    held = held_out(split)
    assert split.train.n_users == split.n_test == 20
    assert sorted(user for user, _, _ in held) == split.train.users.ids.tolist()
    chosen = set(split.train.users.ids.tolist())
    assert triplets(split.train) | set(held) == {t for t in triplets(ratings) if t[0] in chosen}
    assert not triplets(split.train) & set(held)
    assert (split.train.user_counts >= 1).all()
    assert split.train.items.ids.tolist() == ratings.items.ids.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_strong_users_are_novel_and_nothing_is_lost(seed):
    ratings = made()
    split = strong_split(ratings, seed, 20, 9)
    held = held_out(split)
    trained, novel = set(split.train.users.ids.tolist()), set(split.query.users.ids.tolist())
    assert (len(trained), len(novel), split.n_test) == (20, 9, 9)
    assert not trained & novel
    everything = triplets(ratings)
    assert triplets(split.train) == {t for t in everything if t[0] in trained}
    assert triplets(split.query) | set(held) == {t for t in everything if t[0] in novel}
    assert len(split.query) + split.n_test == sum(t[0] in novel for t in everything)
    assert split.query.items.ids.tolist() == split.train.items.ids.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_weak_and_strong_of_one_seed_have_the_same_training_users(seed):
    weak, strong = weak_split(made(), seed), strong_split(made(), seed)
    assert weak.train.users.ids.tolist() == strong.train.users.ids.tolist()


def test_same_seed_same_split_whatever_the_row_order():
    ratings = made()
    users, items, values = (list(column) for column in zip(*triplets(ratings), strict=True))
    shuffled = Ratings.from_triplets(users, items, values, SCALE)
    assert summary(weak_split(shuffled, 3, 9)) == summary(weak_split(ratings, 3, 9))
    assert summary(weak_split(ratings, 3, 9)) != summary(weak_split(ratings, 4, 9))


def test_users_and_held_out_ratings_are_uniform():
    """Over many seeds each user is chosen, and each rating held out, equally often."""
    ratings = Ratings.from_triplets(
        np.repeat(np.arange(6), 4), np.tile(np.arange(4), 6), np.full(24, 3.0), SCALE
    )
    weak_users, novel_users = np.zeros(6, dtype=int), np.zeros(6, dtype=int)
    cells = np.zeros((6, 4), dtype=int)
    for seed in range(1_500):
        weak = weak_split(ratings, seed, 2)
        ids = weak.train.users.ids.astype(int)
        weak_users[ids] += 1
        cells[ids, weak.test_items] += 1
        novel_users[strong_split(ratings, seed, 2, 1).query.users.ids.astype(int)] += 1
    # Two of six without repetition: the counts vary less than the test supposes.
    assert stats.chisquare(weak_users).pvalue > 0.001
    assert stats.chisquare(novel_users).pvalue > 0.001
    assert stats.chisquare(cells.ravel()).pvalue > 0.001


def test_users_with_one_rating_are_never_drawn_and_are_counted():
    ratings = made(lone=4)
    lone = set(ratings.users.ids[ratings.user_counts < 2].tolist())
    assert len(lone) == 4
    for split in (weak_split(ratings, 0, 36), strong_split(ratings, 0, 30, 6)):
        assert any("4 of 40 users have fewer than two ratings" in note for note in split.notes)
        assert not lone & set(split.train.users.ids.tolist())


@pytest.mark.parametrize(
    ("n_users", "expected"),
    [
        (36_656, (30_000, 5_000)),
        (35_000, (30_000, 5_000)),
        (34_999, (5_000, 1_000)),
        (6_040, (5_000, 1_000)),
        (6_000, (5_000, 1_000)),
        (5_999, (4_966, 993)),
        (604, (500, 100)),
        (943, (780, 156)),
        (2, (1, 1)),
        (1, (1, 0)),
        (0, (0, 0)),
    ],
)
def test_default_counts_are_the_papers_or_in_proportion(n_users, expected):
    assert default_counts(n_users) == expected


def test_default_counts_always_fit():
    for n_users in range(2, 7_000):
        weak, strong = default_counts(n_users)
        assert weak >= 1 and strong >= 1 and weak + strong <= n_users


def test_scaling_down_is_said_with_numbers():
    note = " ".join(strong_split(made(), 0).notes)
    assert "38 users" in note and "31 training and 6 test users" in note
    assert "5,000 weak" in note and "6,040" in note
    assert weak_split(made(lone=0), 0, 10).notes == ()


@pytest.mark.parametrize(
    ("split", "arguments"),
    [
        (weak_split, {"n_users": 39}),
        (weak_split, {"n_users": 0}),
        (weak_split, {"n_users": 2.5}),
        (strong_split, {"n_train": 30, "n_test": 9}),
        (strong_split, {"n_train": 38}),
        (strong_split, {"n_train": 5, "n_test": 0}),
    ],
)
def test_impossible_counts_are_refused(split, arguments):
    with pytest.raises(ConfigError, match="--weak-users|--strong-users"):
        split(made(), 0, **arguments)


def test_too_many_users_names_what_there_is():
    with pytest.raises(ConfigError, match=r"5,000 training users .* the 38 users that have two"):
        weak_split(made(), 0, 5_000)


def test_no_user_to_hold_out_from_is_an_error():
    lonely = Ratings.from_triplets([1, 2], [1, 1], [3, 4], SCALE)
    for split in (weak_split, strong_split):
        with pytest.raises(DataError, match="two ratings"):
            split(lonely, 0)
    single = Ratings.from_triplets([1, 1, 2], [1, 2, 1], [3, 4, 5], SCALE)
    assert weak_split(single, 0).n_test == 1
    with pytest.raises(DataError, match="another to test on"):
        strong_split(single, 0)


def test_unseen_items_are_counted():
    ratings = Ratings.from_triplets([1, 1, 2, 2], [1, 2, 3, 4], [3, 4, 5, 1], SCALE)
    split = weak_split(ratings, 0, 2)
    assert split.unseen_items.tolist() == [True, True]
    assert (split.n_unseen_items, split.n_unseen_users) == (2, 0)
    assert json.loads(json.dumps(split.as_dict()))["unseen_items"] == 2


# --- none and pair ------------------------------------------------------------------


def test_none_trains_on_everything():
    ratings = made()
    split = no_split(ratings)
    assert split.train is ratings and split.n_test == 0 and split.seed is None
    assert split.as_dict()["train_ratings"] == len(ratings)


def test_pair_unites_vocabularies_and_counts_the_unseen():
    train = Ratings.from_triplets([1, 1, 5], [10, 30, 30], [1, 2, 3], SCALE)
    test = Ratings.from_triplets([5, 3, 1], [10, 30, 20], [4, 5, 1], SCALE)
    split = pair_split(train, test)
    assert split.train.users.ids.tolist() == [1, 3, 5]
    assert split.train.items.ids.tolist() == [10, 20, 30]
    assert triplets(split.train) == triplets(train)
    assert set(held_out(split)) == triplets(test)
    assert (split.n_unseen_users, split.n_unseen_items) == (1, 1)
    assert len(split.notes) == 2 and all("1 of 3 test ratings" in note for note in split.notes)


def test_pair_of_numbers_and_text_makes_text_and_resorts():
    train = Ratings.from_triplets([2, 10, 10], [2, 2, 10], [1, 2, 3], SCALE)
    test = Ratings.from_triplets(["10", "x", "2"], ["x", "2", "10"], [4, 5, 5], SCALE)
    split = pair_split(train, test)
    assert split.train.users.ids.tolist() == ["10", "2", "x"]
    assert triplets(split.train) == {("2", "2", 1), ("10", "2", 2), ("10", "10", 3)}
    assert set(held_out(split)) == triplets(test)
    assert all((np.diff(split.train.of_user(u)[0]) > 0).all() for u in range(3))


def test_pair_refuses_a_rating_that_is_in_both():
    train = Ratings.from_triplets([1, 1, 2], [10, 30, 30], [1, 2, 3], SCALE)
    test = Ratings.from_triplets([1, 1, 2], [20, 30, 30], [4, 5, 5], SCALE)
    with pytest.raises(DataError, match=r"2 \(user, item\) pairs .* user 1, item 30"):
        pair_split(train, test)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (RatingScale(1, 5), RatingScale(1, 5), RatingScale(1, 5)),
        (RatingScale(2, 4), RatingScale(1, 5), RatingScale(1, 5)),
        (RatingScale(0.5, 4, 0.5), RatingScale(1, 5), RatingScale(0.5, 5, 0.5)),
        (RatingScale(-10, 9, None), RatingScale(0, 10), RatingScale(-10, 10, None)),
    ],
)
def test_pair_unites_the_scales(first, second, expected):
    train = Ratings.from_triplets([1], [1], [first.high], first)
    test = Ratings.from_triplets([1], [2], [second.high], second)
    assert pair_split(train, test).train.scale == expected
    assert pair_split(test, train).train.scale == expected


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (RatingScale(1, 5), RatingScale(0.5, 4.5)),
        (RatingScale(0, 6, 3), RatingScale(0, 6, 2)),
    ],
)
def test_pair_refuses_scales_without_common_levels(first, second):
    train = Ratings.from_triplets([1], [1], [first.high], first)
    test = Ratings.from_triplets([1], [2], [second.high], second)
    with pytest.raises(DataError, match="no common levels"):
        pair_split(train, test)


def test_pair_refuses_an_empty_side():
    some = Ratings.from_triplets([1], [1], [3], SCALE)
    none = some.keep_ratings(np.array([False]))
    with pytest.raises(DataError, match="test ratings are empty"):
        pair_split(some, none)
    with pytest.raises(DataError, match="training ratings are empty"):
        pair_split(none, some)


def test_pair_keeps_what_is_known_of_items_and_users():
    def side(users, items, titles, ages):
        return Ratings.from_triplets(
            users,
            items,
            np.full(len(users), 3.0),
            SCALE,
            users=Vocabulary(sorted(set(users)), "user"),
            items=Vocabulary(sorted(set(items)), "item"),
            item_info=ItemInfo(titles, (("Drama",),) * len(titles), np.full(len(titles), 1999.0)),
            user_info={"age": np.array(ages), "town": np.array(["X"] * len(ages), dtype=object)},
        )

    train = side([1, 2], [10, 20], ("Ten", None), [30, 40])
    test = side([2, 3], [10, 20], ("ten", "Twenty"), [41, 50])
    merged = pair_split(train, test).train
    assert merged.item_info.titles == ("Ten", "Twenty")
    assert merged.item_info.genres == (("Drama",), ("Drama",))
    assert merged.user_info["age"].tolist() == [30, 40, 50]

    bare = Ratings.from_triplets([3], [30], [3], SCALE)
    merged = pair_split(train, bare).train
    assert np.isnan(merged.user_info["age"][2]) and merged.user_info["town"][2] is None
    assert merged.item_info.titles == ("Ten", None, None)
    assert np.isnan(merged.item_info.years[2])


def test_the_query_set_has_its_former_names_in_files_and_scripts():
    split = strong_split(made(), 0, 10, 5)
    with pytest.warns(DeprecationWarning, match=r"Split\.query"):
        assert split.shown is split.query
    # Stored results and exports have had these keys since the first version.
    stored = split.as_dict()
    assert stored["shown_users"] == split.query.n_users == 5
    assert stored["shown_ratings"] == len(split.query)
