"""Runs on the same held-out ratings: which they are, how they differ, and by how much."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from computed_runs import computed
from stored_runs import small, stored, stored_sweep, use_folders

from gmc_core.data.ratings import RatingScale
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.metrics import normalized_errors, paired_difference
from gmc_core.runs.overlay import common_seeds, difference, on_same_split, telling_settings
from gmc_core.runs.store import Store


@pytest.fixture
def store(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        use_folders(tmp_path, patch)
        with Store() as opened:
            yield opened


def larger(run, **changes):
    return replace(run.config, fit=replace(run.config.fit, epsilon=1.0), **changes)


def test_other_settings_are_on_the_same_split_and_other_seeds_are_not(store):
    run = stored(store)
    other = stored(store, config=larger(run))
    stored(store, config=larger(run, seed=1))
    stored(store, config=larger(run, protocol="strong"))
    stored(store, config=replace(run.config, weak_users=100))
    stored_sweep(store)
    assert [found.id for found in on_same_split(store, run)] == [other.id]


def test_repetitions_share_the_seeds_that_they_share(store):
    one, two = small(seed=1, repetitions=3), small(seed=3, repetitions=2)
    first, second = stored(store, config=one), stored(store, config=larger_of(two))
    assert common_seeds(first, second) == (3,)


def larger_of(config):
    return replace(config, fit=FitSettings(epsilon=1.0, iterations=4))


def test_a_run_that_has_not_begun_is_known_by_its_files(store):
    run = stored(store)
    waiting = stored(store, "queued", larger(run))
    assert waiting.data_sha256 is None or common_seeds(run, waiting) == (0,)
    unseen = replace(waiting, data=None, data_sha256=None)
    assert common_seeds(run, unseen) == (0,)


def test_nothing_held_out_is_nothing_in_common(store):
    run = stored(store, config=small(protocol="none"))
    other = stored(store, config=larger(run))
    assert common_seeds(run, other) == ()


def test_the_difference_is_that_of_the_same_ratings(store):
    run = computed(store, small(repetitions=2, fit=FitSettings(iterations=2)))
    other = computed(store, replace(run.config, repetitions=1, fit=FitSettings(iterations=0)))
    found = difference(store, run, other)
    one, two = store.held_out(run.id, 0), store.held_out(other.id, 0)
    scale = run_scale(run)
    expected = paired_difference(
        normalized_errors(one.predictions, one.actual, scale),
        normalized_errors(two.predictions, two.actual, scale),
    )
    assert found == expected
    assert found.mean < 0
    back = difference(store, other, run)
    assert back.mean == pytest.approx(-found.mean)
    assert np.isfinite([found.low, found.high]).all()


def run_scale(run):
    return RatingScale(*run.data["scale"])


def test_without_predictions_there_is_no_difference(store):
    run = stored(store)
    assert difference(store, run, stored(store, config=larger(run))) is None


def test_only_what_differs_is_told(store):
    run = stored(store)
    other = stored(store, config=larger(run))
    told = telling_settings([run, other])
    assert told == {run.id: "ε = 0.3", other.id: "ε = 1"}
    same = stored(store)
    assert telling_settings([run, same])[run.id] == run.title
