"""The sample that comes with the package."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from gmc_core.data import sample
from gmc_core.data.ratings import RatingScale


def test_contents():
    loaded = sample.load()
    ratings = loaded.ratings
    assert (len(ratings), ratings.n_users, ratings.n_items) == (100_004, 671, 9_066)
    assert ratings.scale == RatingScale(0.5, 5, 0.5)
    assert set(np.unique(ratings.values)) == set(ratings.scale.levels)
    assert ratings.user_counts.min() >= 20
    usual = ratings.items.index(50)
    assert ratings.title(usual) == "Usual Suspects, The (1995)"
    assert ratings.item_info.years[usual] == 1995
    assert ratings.item_info.genres[usual] == ("Crime", "Mystery", "Thriller")
    assert not any("no genres" in genre for genres in ratings.item_info.genres for genre in genres)
    # the first rows of the source
    user = ratings.users.index(1)
    items, values = ratings.of_user(user)
    rated = dict(zip(ratings.items.ids[items].tolist(), values.tolist(), strict=True))
    assert rated[31] == 2.5 and rated[1029] == 3.0


def test_titles_that_are_unknown_have_no_year():
    info = sample.load().ratings.item_info
    untitled = [index for index, title in enumerate(info.titles) if title is None]
    assert len(untitled) == 5
    assert np.isnan(info.years[untitled]).all()


def test_conditions_are_stated():
    ratings = sample.load().ratings
    assert "10.1145/2827872" in ratings.citation and "GroupLens" in ratings.licence
    notice = sample.notice()
    for word in ("research", "endorse", "commercial", "warranty", "cite", "10.1145/2827872"):
        assert word in notice


def test_it_is_quick_and_small():
    took = []
    for _ in range(10):  # the best of them: other programs can only make it slower
        start = time.process_time()
        sample.load()
        took.append(time.process_time() - start)
    assert min(took) < 0.3
    assert (Path(sample.__path__[0]) / "ratings.npz").stat().st_size < 1_000_000


def test_the_hash_is_stable():
    assert sample.load().ratings.sha256 == sample.load().ratings.sha256
