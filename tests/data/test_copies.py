"""Copies of large tables: the second start reads the same from them, and nothing else, ever."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from reader_files import same_ratings

from gmc_core.data.readers import copies, loading
from gmc_core.data.readers import load as load_ratings
from gmc_core.doctor.folders import ratings_copies


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Where copies go, of tables of any size that were written long ago."""
    monkeypatch.setenv("GMC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(copies, "LEAST_RATINGS", 1)
    monkeypatch.setattr(copies, "LEAST_BYTES", 0)
    return tmp_path / "cache" / "ratings"


def written(folder, text, age=60):
    path = folder / "ratings.csv"
    path.write_text(text)
    then = path.stat().st_mtime - age
    os.utime(path, (then, then))
    return path


def movielens(folder, **options):
    rows = "".join(
        f"{user},{item},{(user + item) % 9 / 2 + 0.5},{10**9 + user}\n"
        for user in range(1, 9)
        for item in range(1, 9)
    )
    return written(folder, f"userId,movieId,rating,timestamp\n{rows}", **options)


@pytest.fixture
def reads(monkeypatch):
    """How often a source was read."""
    seen, read = [], loading._read
    monkeypatch.setattr(loading, "_read", lambda *args: seen.append(1) or read(*args))
    return seen


def test_the_second_start_gives_the_same_without_reading(tmp_path, cache, reads):
    (tmp_path / "movies.csv").write_text('movieId,title,genres\n1,"One, The (1999)",Drama|War\n')
    then = (tmp_path / "movies.csv").stat().st_mtime - 60
    os.utime(tmp_path / "movies.csv", (then, then))
    first, second = (load_ratings(movielens(tmp_path)) for _ in range(2))
    assert len(reads) == 2  # it was written anew
    third = load_ratings(tmp_path / "ratings.csv")
    assert len(reads) == 2 and len(copies.copies()) == 2
    for other in (second, third):
        same_ratings(other.ratings, first.ratings)
        assert other.report == first.report
    assert "2 of 0.0 GB" in ratings_copies().found


@pytest.mark.parametrize(
    "text",
    [
        "user,item,rating\na,x,-0.0\nb,y,2\nb,x,1\n",  # text ids, a sign that a hash sees
        "user,item,rating\n1,2,0.123\n1,3,0.7\n2,2,0.31416\n",  # no scale of few levels
        "user,item,rating,time\n1,2,3,1000000000\n1,3,4,\n2,2,5,1000000001\n",  # unknown time
        "user,item,rating,time\n1,2,3,-9000000000\n1,3,4,9000000000\n",  # far apart
    ],
)
def test_any_table_comes_back_as_it_was(tmp_path, cache, reads, text):
    path = written(tmp_path, text)
    first, second = load_ratings(path), load_ratings(path)
    assert len(reads) == 1
    same_ratings(second.ratings, first.ratings)
    assert second.report == first.report
    assert second.ratings.sha256 == first.ratings.sha256


def test_another_source_or_another_way_to_read_it_is_read(tmp_path, cache, reads):
    path = movielens(tmp_path)
    before = load_ratings(path).ratings
    load_ratings(path, duplicates="first")
    assert len(reads) == 2
    # The same size and time of change, and yet other ratings.
    state = path.stat()
    path.write_text(path.read_text().replace(",4.5,", ",0.5,"))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    after = load_ratings(path).ratings
    assert len(reads) == 3 and after.sha256 != before.sha256
    (tmp_path / "movies.csv").write_text("movieId,title,genres\n1,One,Drama\n")
    assert load_ratings(path).ratings.item_info.titles[0] == "One"


def test_what_was_written_just_now_is_not_kept(tmp_path, cache, reads):
    path = movielens(tmp_path, age=0)
    load_ratings(path)
    assert not copies.copies()


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "other key"])
def test_a_damaged_copy_is_not_believed(tmp_path, cache, reads, damage):
    path = movielens(tmp_path)
    first = load_ratings(path)
    (copy, _) = copies.copies()[0]
    data = bytearray(copy.read_bytes())
    if damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "flipped":
        for place in range(0, len(data), 97):  # one bit may be of no meaning
            data[place] ^= 1
    elif damage == "emptied":
        data = bytearray()
    else:
        copies.keep("another key", first)
        data = bytearray(copies._place("another key").read_bytes())
    copy.write_bytes(data)
    again = load_ratings(path)
    assert len(reads) == 2
    same_ratings(again.ratings, first.ratings)
    load_ratings(path)
    assert len(reads) == 2  # it was written again


def test_starts_at_the_same_time_all_read_the_same(tmp_path, cache):
    path = movielens(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: load_ratings(path).ratings.sha256, range(12)))
    assert len(set(found)) == 1 and len(copies.copies()) == 1
    assert [file.suffix for file in cache.iterdir()] == [copies.ENDING]  # nothing half written


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, cache):
    cache.parent.mkdir()
    cache.write_text("a file")
    assert len(load_ratings(movielens(tmp_path)).ratings) == 64


def test_the_copies_used_longest_ago_go_first(tmp_path, cache, monkeypatch):
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        load_ratings(movielens(folder))
        newest = copies.copies()[0][0]
        os.utime(newest, (number, number))
    kept = {path for path, _ in copies.copies()[:2]}
    monkeypatch.setattr(copies, "KEPT_BYTES", 2 * copies.copies()[0][1] + 1)
    copies.remove_old()
    assert {path for path, _ in copies.copies()} == kept


def test_small_tables_and_users_attributes_are_read_each_time(tmp_path, cache, monkeypatch):
    loaded = load_ratings(movielens(tmp_path))
    monkeypatch.setattr(copies, "LEAST_RATINGS", 65)
    copies.keep("small", loaded)
    assert not copies._place("small").exists()
    assert np.array_equal(
        loaded.ratings.times, load_ratings(tmp_path / "ratings.csv").ratings.times
    )
