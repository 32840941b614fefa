"""Random hold-out and hold-out by time: partitions, folds, borders in time, and what is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reader_files import folder

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.data.rating_times import UNKNOWN_TIME
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.data.readers import load
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.preparing import Prepared, describe, make_split, prepare
from gmc_core.protocol import latest_splits, random_splits
from gmc_core.protocol.filters import Filter, apply_filter
from gmc_core.protocol.latest_splits import latest_split
from gmc_core.protocol.random_splits import random_split
from gmc_core.protocol.splits import Split
from gmc_core.runs.store.command import arguments_of, written_out
from gmc_core.runs.store.keys import key_of
from gmc_core.runs.store.submitting import source_of
from gmc_core.runs.sweeps import SweepConfig, submit_or_find_sweep

STARS = RatingScale(1, 5)
NOON = 1_000_000_000
# (user, item) of the ratings that seed 0 holds out of :func:`table`.
GOLDEN = [(1, 0), (1, 2), (2, 3), (3, 0), (4, 8)]


def table(users: int = 12, items: int = 9, seed: int = 0, times: bool = True) -> Ratings:
    """Users with 1 to ``items`` ratings; few different times, and some unknown."""
    rng = np.random.default_rng(seed)
    known = rng.random((users, items)) < rng.random((users, 1))
    known[:, 0] = True
    rows, columns = np.nonzero(known)
    stamps = NOON + rng.integers(0, 6, len(rows))
    stamps[rng.random(len(rows)) < 0.15] = UNKNOWN_TIME
    values = rng.integers(1, 6, len(rows)).astype(float)
    return Ratings.from_triplets(rows, columns, values, STARS, times=stamps if times else None)


def cells(split: Split) -> tuple[set[tuple[int, int, float]], list[tuple[int, int, float]]]:
    """(user, item, rating) of training and of held-out ratings, by position."""
    train = split.train
    return (
        set(zip(train.rows.tolist(), train.indices.tolist(), train.values.tolist(), strict=True)),
        list(
            zip(
                split.test_users.tolist(), split.test_items.tolist(),
                split.test_values.tolist(), strict=True,
            )
        ),
    )  # fmt: skip


def everything(ratings: Ratings) -> set[tuple[int, int, float]]:
    return set(
        zip(ratings.rows.tolist(), ratings.indices.tolist(), ratings.values.tolist(), strict=True)
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 50), st.integers(0, 2**40), st.floats(0.01, 0.99))
def test_a_random_split_partitions_the_ratings(made, seed, share):
    ratings = table(seed=made)
    split = random_split(ratings, seed, share)
    train, held = cells(split)
    assert len(held) == len(set(held)) == min(max(round(share * len(ratings)), 1), len(ratings) - 1)
    assert train | set(held) == everything(ratings) and not train & set(held)
    assert (split.train.n_users, split.train.n_items) == (ratings.n_users, ratings.n_items)
    again = random_split(ratings, seed, share)
    assert cells(again) == (train, held)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 50), st.integers(2, 9), st.integers(0, 3))
def test_folds_are_disjoint_and_cover_all(made, folds, partition):
    ratings = table(seed=made)
    seeds = range(partition * folds, (partition + 1) * folds)
    parts = [cells(random_split(ratings, seed, folds=folds))[1] for seed in seeds]
    assert sum(map(len, parts)) == len(ratings)
    assert set().union(*map(set, parts)) == everything(ratings)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_partitions_differ_and_are_stable():
    ratings = table()
    first, second = (random_split(ratings, seed, folds=3) for seed in (0, 3))
    assert cells(first)[1] != cells(second)[1]
    assert "number 2" in second.notes[0] and first.notes == ("Fold 1 of 3 is held out.",)
    # The draws come from the raw words alone, so they are the same everywhere and for ever.
    drawn = random_split(ratings, 0, 0.1)
    assert list(zip(drawn.test_users.tolist(), drawn.test_items.tolist(), strict=True)) == GOLDEN


def test_every_rating_is_as_likely_to_be_held_out():
    ratings = table(times=False)
    counts = np.zeros(len(ratings))
    place = {cell: k for k, cell in enumerate(sorted(everything(ratings)))}
    for seed in range(400):
        counts[[place[cell] for cell in cells(random_split(ratings, seed, 0.25))[1]]] += 1
    share = counts.sum() / counts.size
    deviation = (counts - share) / np.sqrt(share * (1 - share / 400))
    assert np.abs(deviation).max() < 4.5


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 200),
    st.integers(0, 2**40),
    st.integers(1, 4) | st.floats(0.05, 0.95),
)
def test_latest_holds_out_nothing_older_than_what_is_kept(made, seed, amount):
    ratings = table(seed=made)
    last, share = (amount, None) if isinstance(amount, int) else (None, amount)
    timed = np.bincount(ratings.rows[ratings.times != UNKNOWN_TIME], minlength=ratings.n_users)
    if last is not None:
        expected = np.where((timed >= last) & (ratings.user_counts > last), last, 0)
    else:
        expected = np.floor(share * timed + 1e-9)
    if not expected.any():
        with pytest.raises(DataError, match="No user has enough"):
            latest_split(ratings, seed, last, share)
        return
    split = latest_split(ratings, seed, last, share)
    train, held = cells(split)
    assert train | set(held) == everything(ratings) and not train & set(held)
    assert split.test_times is not None and (split.test_times != UNKNOWN_TIME).all()
    for user in range(ratings.n_users):
        own = split.test_times[split.test_users == user]
        assert len(own) == expected[user]
        kept = [] if split.train.times is None else split.train.times[split.train.rows == user]
        if len(own) and len(kept):
            assert max(kept) <= own.min()  # an unknown time is lower than all


@given(count=st.integers(1, 40), kinds=st.integers(1, 60), data=st.data())
@settings(max_examples=60, deadline=None)
def test_what_is_drawn_has_the_places_of_a_whole_sort(count, kinds, data):
    first = data.draw(st.integers(0, count))
    last = data.draw(st.integers(first, count))
    words = np.random.default_rng(count).integers(0, kinds, count).astype(np.uint64)  # with ties
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_splits, "word_stream", lambda seed: lambda n: words[:n].copy())
        found = random_splits.drawn(count, 0, first, last)
    expected = np.sort(np.argsort(words, kind="stable")[first:last])
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("amount", [{"last": 1}, {"last": 2}, {"share": 0.4}])
def test_blocks_of_users_have_no_effect(monkeypatch, amount):
    made = table(users=40)
    expected = latest_split(made, 3, **amount)
    for block in (1, 7, 50):
        monkeypatch.setattr(latest_splits, "BLOCK", block)
        found = latest_split(made, 3, **amount)
        assert cells(found) == cells(expected) and found.notes == expected.notes


def test_ties_are_drawn_with_the_seed_and_said():
    ratings = Ratings.from_triplets(
        [0] * 6 + [1],
        [*range(6), 0],
        [1, 2, 3, 4, 5, 1, 2],
        STARS,
        times=[NOON] * 5 + [NOON - 9] * 2,
    )
    found = {latest_split(ratings, seed).test_items.item() for seed in range(60)}
    assert found == {0, 1, 2, 3, 4}
    split = latest_split(ratings, 0)
    assert any("For 1 users the border" in note for note in split.notes)
    assert any(note.startswith("1 of 2 users have too few") for note in split.notes)
    assert latest_split(ratings, 7).test_items.item() == latest_split(ratings, 7).test_items.item()


def test_latest_needs_times():
    with pytest.raises(DataError, match=r"needs the times.*--columns timestamp"):
        latest_split(table(times=False), 0)
    with pytest.raises(DataError, match="No user has enough"):
        latest_split(table(), 0, last=50)


# Configurations -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"protocol": "weak", "held_out": 0.1}, "protocol random or latest"),
        ({"protocol": "latest", "folds": 3}, "protocol random"),
        ({"protocol": "random", "last": 3}, "protocol latest"),
        ({"protocol": "random", "held_out": 0.1, "folds": 3}, "exclude each other"),
        ({"protocol": "latest", "held_out": 0.1, "last": 3}, "exclude each other"),
        ({"protocol": "random", "held_out": 1}, "between 0 and 1"),
        ({"protocol": "random", "held_out": 0.0}, "above 0"),
        ({"protocol": "random", "folds": 1}, "of at least 2 or published"),
        ({"protocol": "random", "folds": "some"}, "or published"),
        ({"protocol": "random", "weak_users": 5}, "all users take part"),
        ({"protocol": "latest", "strong_users": 5}, "strong protocol"),
    ],
)
def test_what_has_no_meaning_is_refused(given_, said):
    with pytest.raises(ConfigError, match=said):
        ExperimentConfig(**given_)


def test_what_is_not_said_is_not_written():
    plain = ExperimentConfig().as_dict()
    assert not {"held_out", "folds", "last"} & set(plain)
    config = ExperimentConfig(protocol="random", folds=5, repetitions=5)
    assert config.as_dict()["folds"] == 5 and "last" not in config.as_dict()
    assert ExperimentConfig.from_dict(config.as_dict()) == config
    assert config.seeds == (0, 1, 2, 3, 4)


def made_prepared(ratings: Ratings, config: ExperimentConfig) -> Prepared:
    filtered, report = apply_filter(ratings, config.filter)
    by = filtered.times_sha256 if config.protocol == "latest" else ""
    return Prepared(filtered, None, report, drawn_by=by)


@pytest.mark.parametrize(
    ("given_", "usual"),
    [
        ({"protocol": "random"}, {"held_out": 0.1}),
        ({"protocol": "latest"}, {"last": 1}),
    ],
)
def test_what_is_written_out_is_the_same_run(given_, usual):
    config = ExperimentConfig(filter=Filter(0, 0), **given_)
    data = describe(made_prepared(table(), config))
    written = written_out(config, data)
    assert written == written_out(ExperimentConfig(filter=Filter(0, 0), **given_, **usual), data)
    assert key_of(config, data) == key_of(written, data)
    flag = {"held_out": "--held-out=0.1", "last": "--last=1"}[next(iter(usual))]
    assert flag in arguments_of(written)
    other = {"held_out": 0.2} if "held_out" in usual else {"last": 2}
    changed = ExperimentConfig(filter=Filter(0, 0), **given_, **other)
    assert key_of(changed, data) != key_of(config, data)


def test_times_count_where_they_draw_the_split():
    ratings = table()
    later = Ratings.from_triplets(
        ratings.rows, ratings.indices, ratings.values, STARS, times=ratings.times[::-1].copy()
    )
    for protocol, same in (("random", True), ("latest", False)):
        config = ExperimentConfig(protocol=protocol, filter=Filter(0, 0))
        one, two = (made_prepared(each, config).data_sha256 for each in (ratings, later))
        assert (one == two) == same
    assert source_of(ExperimentConfig(protocol="latest")) != source_of(ExperimentConfig())
    assert source_of(ExperimentConfig(protocol="random")) == source_of(ExperimentConfig())


def test_whether_a_filter_was_on_is_said():
    config = ExperimentConfig(protocol="random", filter=Filter(0, 0))
    prepared = made_prepared(table(), config)
    assert make_split(config, prepared, 0).notes[-1].startswith("No user, item or rating")
    config = ExperimentConfig(protocol="random", filter=Filter(4, 2))
    note = make_split(config, made_prepared(table(), config), 0).notes[-1]
    assert note.startswith("The filter took ")


# Published folds ------------------------------------------------------------------------


def ml100k(order: list[int], tests: bool = False) -> dict[str, bytes]:
    """30 ratings in the layout of MovieLens 100K, with their rows in some order."""
    rows = [f"{1 + k % 6}\t{1 + k // 6}\t{1 + k % 5}\t{NOON + k}\n" for k in range(30)]
    files = {"u.data": "".join(rows[k] for k in order).encode()}
    if tests:
        files |= {f"u{f + 1}.test": "".join(rows[f * 6 : f * 6 + 6]).encode() for f in range(5)}
        files |= {f"u{f + 1}.base": b"9\t9\t9\t9\n" for f in range(5)}
    return files


def test_published_folds_from_their_files(tmp_path):
    order = np.random.default_rng(1).permutation(30).tolist()
    place = folder(tmp_path / "set", ml100k(order, tests=True))
    loaded = load(place)
    assert "published folds from u1.test … u5.test" in " ".join(loaded.report.notes)
    for seed in range(5):
        split = random_split(loaded.ratings, seed, folds="published")
        items = set(split.train.items.ids[split.test_items].tolist())
        assert (split.n_test, items) == (6, {seed + 1})
        assert split.notes == (f"The published fold {seed + 1} of 5 is held out.",)
    with pytest.raises(ConfigError, match=r"seeds 0 … 4.*seed 5"):
        random_split(loaded.ratings, 5, folds="published")
    config = ExperimentConfig(
        data=str(place), protocol="random", folds="published", filter=Filter(0, 0)
    )
    prepared = prepare(config)
    assert prepared.data_sha256 != prepared.ratings.sha256  # another division is another split
    # Refused before the first fold is worked on, and a sweep before it is queued.
    with pytest.raises(ConfigError, match=r"none for seed 5.*fewer repetitions"):
        prepare(replace(config, repetitions=6))
    with pytest.raises(ConfigError, match="none for seed 7"):
        submit_or_find_sweep(None, SweepConfig(config, (0.1,), seeds=(0, 7)))
    assert load(place / "u.data").ratings.folds is not None


def test_files_that_divide_nothing_are_no_folds(tmp_path):
    files = ml100k(list(range(30)), tests=True)
    files["u2.test"] = files["u1.test"]
    loaded = load(folder(tmp_path, files))
    assert loaded.ratings.folds is None and "(u2.test)" in " ".join(loaded.report.notes)
    with pytest.raises(DataError, match="came without published folds"):
        random_split(loaded.ratings, 0, folds="published")


def test_published_folds_from_the_order_of_the_rows(tmp_path):
    users, items = np.divmod(np.arange(100_000), 400)
    first = int(np.flatnonzero((users == 196) & (items == 242))[0])
    order = [first, *(k for k in range(100_000) if k != first)]
    rows = [f"{users[k]}\t{items[k]}\t{1 + k % 5}\n" for k in order]
    ratings = load(folder(tmp_path / "a", {"u.data": "".join(rows).encode()})).ratings
    assert np.bincount(ratings.folds).tolist() == [0, *[20_000] * 5]
    user, item = int(users[order[45_000]]), int(items[order[45_000]])
    place = ratings.indptr[ratings.users.index(user)] + ratings.items.index(item)
    assert ratings.folds[place] == 3
    # A sorted copy, or another set of this size, has no published folds.
    rows.sort()
    assert load(folder(tmp_path / "b", {"u.data": "".join(rows).encode()})).ratings.folds is None
