"""What is said of times that a fit reads, and that a repeated fit demands the same ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gmc_core.base.errors import DataError
from gmc_core.data.rating_times import UNKNOWN_TIME
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.preparing import describe, prepare
from gmc_core.fitting.provenance import check_known
from gmc_core.fitting.time_notes import notes_on_times
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.filters import Filter
from gmc_core.protocol.splits import weak_split
from gmc_core.runs.store.command import written_out

SESSIONS = FitSettings(session_noise=0.1)
DAY = 86_400


def table(step: int = 7) -> Ratings:
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(rng.random((40, 8)) < 0.7)
    times = 12_000 * DAY + step * np.arange(len(rows))
    values = rng.integers(1, 6, len(rows)).astype(float)
    return Ratings.from_triplets(rows, columns, values, RatingScale(1, 5), times=times)


def test_times_that_are_read_as_they_seem_need_no_words():
    split = weak_split(table(), 0)
    assert notes_on_times(split, SESSIONS) == ()
    assert notes_on_times(replace(split, test_times=None), FitSettings()) == ()


def test_ratings_without_a_time_and_days_without_hours_are_told():
    split = weak_split(table(DAY), 0)
    (days,) = notes_on_times(split, SESSIONS)
    assert "days without hours" in days
    _, none = notes_on_times(replace(split, test_times=None), SESSIONS)
    assert none.startswith("None of the ratings to be predicted has a time")
    some = split.test_times.copy()
    some[:3] = UNKNOWN_TIME
    _, three = notes_on_times(replace(split, test_times=some), SESSIONS)
    assert three.startswith(f"3 of {split.n_test} ratings to be predicted")


def test_a_repeated_fit_demands_the_same_times_where_it_reads_them(tmp_path):
    config = ExperimentConfig(data="x", filter=Filter(0, 0), fit=SESSIONS)
    ratings = table()
    data = describe(prepare(config, ratings))
    alone = written_out(replace(config, fit=FitSettings()), data)
    assert "times" not in alone.expected
    expected = {"times": written_out(config, data).expected["times"]}
    again = replace(config, expected=expected)
    prepare(again, ratings)
    other = replace(ratings, times=ratings.times + 1)
    for wrong in (other, replace(ratings, times=None)):
        with pytest.raises(DataError, match="other times .*--times-sha256"):
            prepare(again, wrong)
    with pytest.raises(DataError, match="other times"):
        check_known(again, other.sha256, {}, other.times_sha256)
    check_known(again, other.sha256, {}, None)  # of a version that kept no times
