"""When ratings were given: read from every layout, and kept with their ratings through everything.

The oracle of the second part is arithmetic: a rating's time is a function of its user's and item's
ids, so whatever was done to a table, each time can be told from the ids beside it.
"""

from __future__ import annotations

import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reader_files import (
    JESTER,
    ML1M,
    ML10M,
    ML100K,
    ML_CSV,
    NETFLIX,
    cells,
    folder,
    text_file,
)

from gmc_core.base.errors import DataError
from gmc_core.data import sample
from gmc_core.data.rating_times import UNKNOWN_TIME, times_sha256
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.data.readers import DelimitedOptions, load
from gmc_core.protocol.filters import Filter, apply_filter
from gmc_core.protocol.latest_splits import latest_split
from gmc_core.protocol.random_splits import random_split
from gmc_core.protocol.splits import no_split, pair_split, strong_split, weak_split
from gmc_core.protocol.validation import hold_out

DAY = 86_400
NOON = 1_000_000_000
STARS = RatingScale(1, 5)


def times_of(ratings: Ratings) -> dict[tuple[object, object], int | None]:
    """(user id, item id) → time, None where unknown."""
    assert ratings.times is not None
    known = [None if t == UNKNOWN_TIME else t for t in ratings.times.tolist()]
    return dict(zip(cells(ratings), known, strict=True))


def notes(loaded) -> str:
    return " | ".join(loaded.report.notes)


# Reading --------------------------------------------------------------------------------


def test_knthoselayouts(tmp_path):
    assert times_of(load(folder(tmp_path / "a", ML1M)).ratings)[3, 10] == 978824291
    assert times_of(load(folder(tmp_path / "b", ML10M)).ratings)[2, 122] == 868245777
    loaded = load(folder(tmp_path / "c", ML100K))
    assert times_of(loaded.ratings) == {
        (186, 302): 891717742, (196, 242): 881250949, (196, 302): 878887116,
    }  # fmt: skip
    assert "times from 1997-11-07 to 1998-04-04 (UTC)" in notes(loaded)
    assert times_of(load(folder(tmp_path / "d", ML_CSV)).ratings)[7, 31] == 851868750
    days = times_of(load(folder(tmp_path / "e", NETFLIX)).ratings)
    # The later one of two ratings, with its own day.
    assert days[822109, 2] == int(np.datetime64("2005-05-14", "s").astype(np.int64))


def test_eachmovie_leaves_out_the_times_of_votes_that_are_none(tmp_path):
    votes = (
        b"1\t1\t0.6\t1\t3/7/96 10:31:00\n1\t2\t0\t0.5\t3/8/96 1:00:00\n2\t1\t1\t1\t2/7/96 0:00:01\n"
    )
    ratings = load(text_file(tmp_path, votes, "vote.txt")).ratings
    assert times_of(ratings) == {(1, 1): 826194660, (2, 1): 823651201}


def test_layouts_without_times(tmp_path):
    for name, data in (("jester-data-1.csv", JESTER), ("u.data", b"1\t2\t3\n1\t3\t4\n")):
        ratings = load(text_file(tmp_path / name[0], data, name)).ratings
        assert ratings.times is None and not ratings.has_times and ratings.times_sha256 == ""


@pytest.mark.parametrize("stamps", [("0", "0", "0"), ("978300760",) * 3, ("", "", "")])
def test_times_that_are_all_the_same_are_none(tmp_path, stamps):
    rows = "".join(f"1::{item}::3::{stamp}\n" for item, stamp in enumerate(stamps, 10))
    loaded = load(folder(tmp_path, {"ratings.dat": rows.encode()}))
    assert loaded.ratings.times is None
    assert ("all the same" in notes(loaded)) == (stamps[0] != "")
    assert ("has no entries" in notes(loaded)) == (stamps[0] == "")


@pytest.mark.parametrize(
    ("written", "seconds", "said"),
    [
        (("1000000000", "1000086400"), (NOON, NOON + DAY), ""),
        (("1000000000.9", "1000086400.1"), (NOON, NOON + DAY), ""),
        (("1000000000999", "1000086400000"), (NOON, NOON + DAY), "1/1,000 s"),
        (("1000000000000000000", "1000086400000000000"), (NOON, NOON + DAY), "1/1,000,000,000 s"),
        (("20010909", "20010910"), (999993600, 999993600 + DAY), "YYYYMMDD"),
        (("2001-09-09", "2001-09-10"), (999993600, 999993600 + DAY), ""),
        (("2001-09-09T01:46:40", "2001-09-10T01:46:40"), (NOON, NOON + DAY), ""),
        (("09.09.2001", "10.09.2001"), (999993600, 999993600 + DAY), ""),
        (("9/9/01 01:46", "9/10/01 01:46"), (NOON - 40, NOON - 40 + DAY), ""),
        (("1000000000", "-62135596800000"), (NOON, None), "1 ratings have none"),
        (("1000000000", ""), (NOON, None), None),
    ],
)
def test_ways_of_writing_times(tmp_path, written, seconds, said):
    rows = "".join(f"7,{n},{n + 1},{time}\n" for n, time in enumerate(written))
    loaded = load(text_file(tmp_path, "user,item,rating,when\n" + rows + f"8,0,4,{written[0]}\n"))
    if said is None:  # with a single time there is nothing to tell apart
        assert loaded.ratings.times is None and "all the same" in notes(loaded)
        return
    assert times_of(loaded.ratings) == {(7, 0): seconds[0], (7, 1): seconds[1], (8, 0): seconds[0]}
    assert said in notes(loaded) and "times from 2001-09-09 to" in notes(loaded)


@pytest.mark.parametrize("mark", ["0", "-1"])
@pytest.mark.parametrize(
    "real", ["1000000000", "1000000000999", "20010909", "2001-09-09T01:46:40"], ids=len
)
def test_zero_and_minus_one_among_real_times_are_unknown(tmp_path, mark, real):
    if "T" in real:
        mark = {"0": "1970-01-01T00:00:00", "-1": "1969-12-31T23:59:59"}[mark]
    other = real.replace("2001", "2002") if real.startswith("2001") else "1" + real[1:-4] + "9999"
    rows = f"7,1,3,{real}\n7,2,4,{mark}\n8,1,5,{other}\n7,1,1,{mark}\n"
    loaded = load(text_file(tmp_path, "user,item,rating,when\n" + rows))
    assert times_of(loaded.ratings)[7, 2] is None and times_of(loaded.ratings)[7, 1]
    assert cells(loaded.ratings)[7, 1] == 3  # of repeated ratings the one whose time is known
    assert "1 ratings have none (1 of them 0 or -1 in the file)" in notes(loaded)


def test_times_around_1970_are_times(tmp_path):
    rows = "".join(f"7,{n},3,{date}\n" for n, date in enumerate(("1970-01-01", "1969-12-31")))
    loaded = load(text_file(tmp_path, "user,item,rating,when\n" + rows))
    assert times_of(loaded.ratings) == {(7, 0): 0, (7, 1): -DAY}
    assert "days without hours" in notes(loaded)


@pytest.mark.parametrize("unread", ["spring", "12:30:00"])
def test_a_known_layout_says_why_it_keeps_no_times(tmp_path, unread):
    rows = "".join(f"1::{item}::3::{unread}\n" for item in (10, 20))
    loaded = load(folder(tmp_path, {"ratings.dat": rows.encode()}))
    assert loaded.ratings.times is None and len(loaded.ratings) == 2
    assert f"'{unread}' (line 1)" in notes(loaded) and "no times are kept" in notes(loaded)


def test_a_blank_column_that_was_named_is_told(tmp_path):
    table = text_file(tmp_path, "user,item,rating,x\n1,1,3,\n1,2,4,\n")
    loaded = load(table, options=DelimitedOptions(timestamp="x"))
    assert loaded.ratings.times is None and "has no entries" in notes(loaded)


def test_numbers_that_are_no_dates_order_and_are_not_kept(tmp_path):
    loaded = load(text_file(tmp_path, "user,item,rating,time\n1,1,5,300\n1,1,2,100\n1,2,4,7\n"))
    assert cells(loaded.ratings)[1, 1] == 5
    assert loaded.ratings.times is None and "no dates" in notes(loaded)


def test_json_records_have_times(tmp_path):
    rows = [
        {"user": 1, "item": 2, "rating": 3, "date": "2015-03-02"},
        {"user": 1, "item": 3, "rating": 4, "date": "2015-03-03"},
    ]
    ratings = load(text_file(tmp_path, json.dumps(rows), "r.json")).ratings
    assert times_of(ratings)[1, 3] - times_of(ratings)[1, 2] == DAY


def test_times_that_cannot_be_read_cost_no_rating(tmp_path):
    text = "user,item,rating,date\n" + "".join(f"1,{n},3,2015-03-02\n" for n in range(201))
    loaded = load(text_file(tmp_path, text + "1,300,4,spring\n"))
    assert len(loaded.ratings) == 202 and loaded.ratings.times is None
    assert "'spring' (line 203)" in notes(loaded) and "no times are kept" in notes(loaded)
    # A column that was named by a person and decides nothing was no error before either.
    named = DelimitedOptions(timestamp="date")
    assert load(text_file(tmp_path, text + "1,300,4,spring\n"), options=named).ratings.times is None
    with pytest.raises(DataError, match="line 203: The timestamp"):
        load(text_file(tmp_path, text + "1,300,4,spring\n1,300,5,2016-01-01\n"), options=named)


ROW = st.tuples(
    st.integers(1, 4), st.integers(1, 4), st.integers(1, 5),
    st.none() | st.integers(NOON, NOON + 6).map(lambda t: t),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=25), st.sampled_from(["last", "first", "mean"]))
def test_repeated_ratings_keep_the_time_of_the_one_that_counts(tmp_path_factory, rows, policy):
    text = "user,item,rating,timestamp\n" + "".join(
        f"{u},{i},{r},{'' if t is None else t}\n" for u, i, r, t in rows
    )
    ratings = load(text_file(tmp_path_factory.mktemp("t"), text), duplicates=policy).ratings
    groups: dict[tuple[int, int], list[tuple[float, int | None]]] = {}
    for user, item, rating, time in rows:
        groups.setdefault((user, item), []).append((rating, time))
    timed = any(t is not None for *_, t in rows)
    expected = {}
    for pair, those in groups.items():
        # Without a time counts as earlier than with one; of equal times the place decides.
        order = sorted(those, key=lambda one: -1 if one[1] is None else one[1]) if timed else those
        rating, time = order[0] if policy == "first" else order[-1]
        if policy == "mean":
            rating = sum(r for r, _ in those) / len(those)
        expected[pair] = (rating, time)
    found = cells(ratings)
    assert found == pytest.approx({pair: rating for pair, (rating, _) in expected.items()})
    known = {time for _, time in expected.values() if time is not None}
    if len(known) < 2 and len(expected) > 1 or not known:
        assert ratings.times is None  # the same throughout
    else:
        assert times_of(ratings) == {pair: time for pair, (_, time) in expected.items()}


# Through every operation ----------------------------------------------------------------


def when(user: object, item: object) -> int:
    """The time of a rating, from its ids alone; every fifth one is unknown."""
    mixed = int(user) * 7919 + int(item) * 104_729
    return UNKNOWN_TIME if mixed % 5 == 0 else NOON + mixed % 1009


def timed(pairs: set[tuple[int, int]], text_ids: bool = False) -> Ratings:
    users = np.array([user for user, _ in sorted(pairs)])
    items = np.array([item for _, item in sorted(pairs)])
    times = [when(u, i) for u, i in zip(users.tolist(), items.tolist(), strict=True)]
    if text_ids:
        users = np.array([f"{user:03}" for user in users.tolist()], dtype=object)
    values = 1.0 + (np.arange(len(pairs)) % 5)
    return Ratings.from_triplets(users, items, values, STARS, times=np.array(times))


def assert_thosetimes(ratings: Ratings) -> None:
    users = ratings.users.ids[ratings.rows].tolist()
    items = ratings.items.ids[ratings.indices].tolist()
    expected = [when(u, i) for u, i in zip(users, items, strict=True)]
    if ratings.times is None:
        assert set(expected) <= {UNKNOWN_TIME}
    else:
        assert ratings.times.tolist() == expected


def assert_thosesplit(split) -> None:
    assert_thosetimes(split.train)
    if split.query is not None:
        assert_thosetimes(split.query)
    users = split.known.users.ids[split.test_users].tolist()
    items = split.train.items.ids[split.test_items].tolist()
    expected = [when(u, i) for u, i in zip(users, items, strict=True)]
    found = [UNKNOWN_TIME] * split.n_test if split.test_times is None else split.test_times.tolist()
    assert found == expected


PAIRS = st.sets(st.tuples(st.integers(1, 12), st.integers(1, 9)), min_size=30, max_size=90)


@settings(max_examples=25, deadline=None)
@given(PAIRS, st.integers(0, 2**32), st.booleans())
def test_times_follow_their_ratings(pairs, seed, text_ids):
    ratings = timed(pairs, text_ids)
    assert_thosetimes(ratings)
    rng = np.random.default_rng(seed)
    assert_thosetimes(ratings.keep_ratings(rng.random(len(ratings)) < 0.5))
    chosen = rng.random(ratings.n_users) < 0.7, rng.random(ratings.n_items) < 0.7
    assert_thosetimes(ratings.select(*chosen))
    filtered, _ = apply_filter(ratings, Filter(2, 1, max_items=6))
    assert_thosetimes(filtered)
    everything = [weak_split(ratings, seed), strong_split(ratings, seed), no_split(ratings)]
    everything.append(hold_out(ratings, seed, sets=2)[0])
    with suppress(DataError):  # too few ratings of each
        everything.append(latest_split(ratings, seed))
    everything += [random_split(ratings, seed, 0.2), random_split(ratings, seed, folds=3)]
    for split in everything:
        assert_thosesplit(split)
    test = rng.random(len(ratings)) < 0.4
    if test.any() and not test.all():
        one, two = ratings.keep_ratings(~test), ratings.keep_ratings(test)
        assert_thosesplit(pair_split(one.select(users=one.user_counts > 0), two))


def test_a_side_without_times_leaves_the_others(tmp_path):
    ratings = timed({(u, i) for u in range(1, 6) for i in range(1, 6)})
    test = np.arange(len(ratings)) % 3 == 0
    train, held = ratings.keep_ratings(~test), ratings.keep_ratings(test)
    bare = Ratings.from_triplets(
        held.users.ids[held.rows], held.items.ids[held.indices], held.values, STARS
    )
    split = pair_split(train, bare)
    assert split.test_times is None
    assert_thosetimes(split.train)


def test_the_hash_of_times_is_apart_from_that_of_ratings():
    ratings = timed({(1, 1), (1, 2), (2, 1)})
    other = Ratings.from_triplets([1, 1, 2], [1, 2, 1], [1, 2, 3], STARS, times=[NOON, 1, 2])
    bare = Ratings.from_triplets([1, 1, 2], [1, 2, 1], [1, 2, 3], STARS)
    assert ratings.sha256 == other.sha256 == bare.sha256
    assert len({ratings.times_sha256, other.times_sha256, bare.times_sha256}) == 3
    assert bare.times_sha256 == "" == times_sha256(None, None)
    assert times_sha256(ratings.times, None) != times_sha256(None, ratings.times)


def test_times_are_whole_seconds_one_a_rating():
    with pytest.raises(DataError, match=r"times has the shape \(1,\) .*2 ratings.*UNKNOWN_TIME"):
        Ratings.from_triplets([1, 1], [1, 2], [1, 2], STARS, times=[NOON])
    with pytest.raises(DataError, match="times must be whole seconds .* not of float64"):
        Ratings.from_triplets([1, 1], [1, 2], [1, 2], STARS, times=[0.5, np.nan])


def test_the_sample_has_the_times_of_its_source():
    ratings = sample.load().ratings
    first = times_of(ratings)
    assert first[1, 31] == 1260759144 and first[1, 1029] == 1260759179
    assert ratings.sha256 == "09a60360cd0a069261f71c130b91f41a9d329bdc992e276d0cc695da94aed4d5"
    assert ratings.times_sha256.startswith("4897c4ff2b7b")
