"""The generator of large sets: the shape that it says, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import large
from gmc_core.data.readers import load

SHAPE = (300, 1_000, 18_000)


def test_what_is_written_has_its_shape_and_reads_as_movielens(tmp_path):
    large.write(tmp_path / "a", SHAPE, seed=3)
    large.write(tmp_path / "b", SHAPE, seed=3)
    large.write(tmp_path / "c", SHAPE, seed=4)
    texts = [(tmp_path / name / "ratings.csv").read_bytes() for name in "abc"]
    assert texts[0] == texts[1] != texts[2]
    loaded = load(tmp_path / "a")
    ratings, report = loaded.ratings, loaded.report
    assert report.format == "movielens-csv" and report.duplicates == 0 and ratings.has_times
    assert (ratings.n_users, len(ratings)) == (SHAPE[0], SHAPE[2]) and ratings.n_items <= SHAPE[1]
    assert ratings.user_counts.min() >= large.LEAST
    assert ratings.user_counts.max() > 4 * np.median(ratings.user_counts)
    assert ratings.item_counts.max() > 0.4 * SHAPE[0] and np.median(ratings.item_counts) < 30
    assert all(title and title.startswith("Title ") for title in ratings.item_info.titles)
    assert all(ratings.item_info.genres)


def test_shapes_that_hold_no_such_ratings_are_refused():
    with pytest.raises(ValueError, match="larger scale"):
        large.sizes_of(100, 30, 10_000, np.random.default_rng(0))
    assert large.scaled("ml-32m", 0.5) == (100_474, 43_792, 16_000_102)
