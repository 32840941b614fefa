"""What a store has measured of the tables' systems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from making import STARS
from stored_runs import DATA, ML1M, stored_comparison, use_folders

from gmc_core.comparison.comparators import BASELINES, method_named
from gmc_core.comparison.systems.ipcf import Ipcf
from gmc_core.comparison.systems.urp import Urp
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.paper.measured import (
    measured_systems,
    of_table,
    other_data,
    systems_under_way,
)
from gmc_core.paper.published import EACHMOVIE, MOVIELENS_1M
from gmc_core.paper.systems import OWN
from gmc_core.protocol.filters import Filter
from gmc_core.runs.store import Store

WEAK = ExperimentConfig(data="ml-1m")
PAPER = method_named("paper:dtype=float32", STARS)
IS_ML1M = of_table(MOVIELENS_1M)


@pytest.fixture
def store(tmp_path, monkeypatch) -> Iterator[Store]:
    use_folders(tmp_path, monkeypatch)
    with Store() as opened:
        yield opened


def test_all_comparisons_count_together_each_fit_once(store):
    one = stored_comparison(store, methods=[PAPER, Ipcf()], done=2, config=WEAK, data=ML1M)
    two = stored_comparison(
        store, "cancelled", methods=[BASELINES["bias"], Ipcf(), Urp()], done=3, config=WEAK,
        data=ML1M,
    )  # fmt: skip
    found = measured_systems(store, store.runs(), "weak", IS_ML1M)
    assert found is not None
    assert found.runs == (two.id, one.id)
    assert [found.splits(name) for name in (OWN, "ipcf", "urp", "gplvm")] == [2, 3, 3, 0]
    rows = {row.name: row for row in found.comparison.rows()}
    assert "bias" not in rows
    # Differences are on the two splits that the paper's method has too.
    assert rows["urp"].nmae is not None and rows["urp"].scores is not None
    assert rows["urp"].nmae.splits is not None and rows["urp"].nmae.splits.n == 2
    assert rows["gplvm"].scores is None
    assert measured_systems(store, store.runs(), "strong", IS_ML1M) is None
    assert measured_systems(store, store.runs(), "weak", of_table(EACHMOVIE)) is None


@pytest.mark.parametrize(
    ("methods", "config"),
    [
        ([Ipcf(settings=((3, 7.0),))], WEAK),  # as an earlier version had it
        ([Ipcf()], replace(WEAK, filter=Filter(max_items=500))),
        ([Ipcf()], replace(WEAK, weak_users=100)),
        ([BASELINES["bias"], method_named("paper:epsilon=2", STARS)], WEAK),
    ],
)
def test_other_settings_and_experiments_do_not_count(store, methods, config):
    stored_comparison(store, methods=methods, config=config, data=ML1M, done=1)
    assert measured_systems(store, store.runs(), "weak", IS_ML1M) is None


def test_of_several_copies_the_one_with_most_results_is_taken(store):
    full = stored_comparison(store, methods=[Ipcf()], config=WEAK, data=ML1M)
    copy = {**ML1M, "sha256": "another"}
    stored_comparison(store, methods=[Ipcf()], config=WEAK, data=copy, done=1)
    found = measured_systems(store, store.runs(), "weak", IS_ML1M)
    assert found is not None
    assert (found.runs, found.data["sha256"]) == ((full.id,), ML1M["sha256"])


def test_data_without_a_table_are_listed_and_what_runs_is_found(store):
    assert other_data(store.runs()) == []
    stored_comparison(store, methods=[Ipcf()], config=WEAK, data=ML1M, done=1)
    stored_comparison(store, methods=[Ipcf()], config=ExperimentConfig(), done=1)
    stored_comparison(store, config=ExperimentConfig(), done=1)
    assert [data["name"] for data in other_data(store.runs())] == [DATA["name"]]
    assert systems_under_way(store.runs(), IS_ML1M) == []
    waiting = stored_comparison(store, "queued", methods=[Ipcf()], config=WEAK)
    assert [run.id for run in systems_under_way(store.runs(), IS_ML1M)] == [waiting.id]
