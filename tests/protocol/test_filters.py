"""The paper's filter: order, thresholds, counts, and messages that help."""

import json

import numpy as np
import pytest

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.protocol.filters import Filter, apply_filter, kept_counts

SCALE = RatingScale(1, 5)


def table(rows: dict[str, str]) -> Ratings:
    """Ratings of 3 by each user of each item, an item being a letter."""
    pairs = [(user, item) for user, items in rows.items() for item in items]
    users, items = zip(*pairs, strict=True)
    return Ratings.from_triplets(users, items, np.full(len(pairs), 3.0), SCALE)


def test_defaults_are_the_papers():
    assert Filter() == Filter(min_user_ratings=20, min_item_ratings=2, max_items=None)


def test_paper_filter_removes_users_then_items():
    letters = "abcdefghijklmnopqrst"
    ratings = table({"full": letters, "same": letters, "short": letters[:-1] + "z"})
    # "short" has 20 ratings; without one of them it goes, and "z" is below 2 anyway.
    kept, report = apply_filter(ratings, Filter())
    assert kept.users.ids.tolist() == ["full", "same", "short"]
    assert kept.items.ids.tolist() == list(letters)
    assert report.steps[1].removed.as_dict() == {"users": 0, "items": 1, "ratings": 1}

    ratings = table({"full": letters, "same": letters, "short": letters[:-1]})
    kept, report = apply_filter(ratings, Filter())
    assert kept.users.ids.tolist() == ["full", "same"]
    assert report.steps[0].removed.as_dict() == {"users": 1, "items": 0, "ratings": 19}


def test_items_are_counted_among_the_users_that_are_left():
    ratings = table({"u": "abc", "v": "abc", "w": "ad", "x": "d"})
    kept, _ = apply_filter(ratings, Filter(min_user_ratings=2, min_item_ratings=2))
    # "d" has two ratings, but one is of a user who went out.
    assert kept.items.ids.tolist() == ["a", "b", "c"]


def test_filter_is_not_iterated():
    ratings = table({"u": "abc", "v": "abc", "w": "axy"})
    kept, _ = apply_filter(ratings, Filter(min_user_ratings=3, min_item_ratings=2))
    assert "w" in kept.users.ids
    assert kept.user_counts[kept.users.index("w")] == 1


@pytest.mark.parametrize(
    "settings", [Filter(), Filter(3, 2), Filter(0, 0), Filter(2, 3, 2), Filter(0, 0, 3)], ids=str
)
def test_counting_keeps_what_filtering_keeps(settings):
    rng = np.random.default_rng(3)
    rows = {
        f"u{k}": "".join(rng.permutation(list("abcdefghijklmnopqrstuvw"))[: 1 + k])
        for k in range(23)
    }
    ratings = table(rows | {"alone": "z"})
    kept, _ = apply_filter(ratings, settings)
    users, items = kept_counts(ratings, settings)
    assert users.tolist() == kept.user_counts.tolist()
    assert items.tolist() == kept.item_counts.tolist()


def test_max_items_keeps_the_most_rated_and_breaks_ties_by_position():
    ratings = table({"u": "abcd", "v": "bcd", "w": "bd"})
    for limit, expected in ((1, ["b"]), (2, ["b", "d"]), (3, ["b", "c", "d"]), (9, list("abcd"))):
        kept, _ = apply_filter(ratings, Filter(0, 0, max_items=limit))
        assert kept.items.ids.tolist() == expected


def test_users_emptied_by_max_items_are_dropped_and_counted():
    ratings = table({"u": "ab", "v": "a", "w": "b", "x": "ac"})
    kept, report = apply_filter(ratings, Filter(0, 0, max_items=1))
    assert kept.users.ids.tolist() == ["u", "v", "x"]
    assert report.steps[-1].name == "emptied_users"
    assert report.steps[-1].removed.as_dict() == {"users": 1, "items": 0, "ratings": 0}
    assert (kept.user_counts > 0).all()


def test_filter_of_zeros_changes_nothing():
    ratings = table({"u": "ab", "v": "c"}).keep_ratings(np.array([True, True, False]))
    kept, report = apply_filter(ratings, Filter(0, 0))
    assert kept.sha256 == ratings.sha256
    assert report.before == report.after


@pytest.mark.parametrize("settings", [Filter(2, 2), Filter(1, 3), Filter(3, 2, max_items=2)])
def test_steps_account_for_everything_that_is_gone(settings):
    ratings = table({"u": "abcd", "v": "abc", "w": "abe", "x": "f", "y": "cde"})
    kept, report = apply_filter(ratings, settings)
    for name in ("users", "items", "ratings"):
        gone = sum(getattr(step.removed, name) for step in report.steps)
        assert getattr(report.before, name) - gone == getattr(report.after, name)
    assert (report.after.users, report.after.items) == (kept.n_users, kept.n_items)
    assert report.after.ratings == len(kept)


def test_values_scale_and_titles_follow_their_items():
    ratings = Ratings.from_triplets([1, 1, 2, 2, 3], [7, 8, 8, 9, 8], [1, 2, 3, 4, 5], SCALE)
    kept, _ = apply_filter(ratings, Filter(1, 2))
    assert kept.items.ids.tolist() == [8]
    assert kept.values.tolist() == [2, 3, 5]
    assert kept.scale == SCALE


def test_report_reads_as_text_and_as_json():
    _, report = apply_filter(table({"u": "abc", "v": "abc", "w": "c"}), Filter(2, 2))
    assert "Before: 3 users, 3 items, 7 ratings." in str(report)
    assert "fewer than 2 ratings (min_user_ratings); removed: 1 users" in str(report)
    back = json.loads(json.dumps(report.as_dict()))
    assert back["after"] == {"users": 2, "items": 3, "ratings": 6}
    assert [step["name"] for step in back["steps"]] == ["users", "items"]


@pytest.mark.parametrize(
    ("settings", "threshold", "remedy"),
    [
        (Filter(min_user_ratings=4), "min_user_ratings", "most active user has 3 ratings"),
        (Filter(0, min_item_ratings=9), "min_item_ratings", "most rated item has 2 ratings"),
    ],
)
def test_nothing_left_names_the_threshold_and_the_remedy(settings, threshold, remedy):
    ratings = table({"u": "abc", "v": "ab"})
    with pytest.raises(DataError, match=threshold) as raised:
        apply_filter(ratings, settings)
    assert remedy in str(raised.value)


def test_filtering_no_ratings_is_an_error():
    empty = table({"u": "a"}).keep_ratings(np.array([False]))
    with pytest.raises(DataError, match="no ratings to filter"):
        apply_filter(empty, Filter(0, 0))


@pytest.mark.parametrize(
    "arguments",
    [
        {"min_user_ratings": -1},
        {"min_item_ratings": 1.5},
        {"max_items": 0},
        {"max_items": True},
        {"min_user_ratings": "20"},
        {"min_user_ratings": None},
    ],
)
def test_thresholds_that_are_no_counts_are_refused(arguments):
    (name,) = arguments
    with pytest.raises(ConfigError, match=name):
        Filter(**arguments)
