"""The Results page, and which runs count as reproducing the paper."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from stored_runs import DATA, ML1M, opened, stored, stored_comparison, texts

from gmc_core.fitting.experiment import ExperimentConfig
from gmc_core.gaussian.settings import FitSettings
from gmc_core.paper.published import TABLES
from gmc_core.paper.random_holdout import MOVIELENS_1M
from gmc_core.paper.reproduction import (
    has_paper_settings,
    paper_nmae,
    reproducing_run,
    reproduction,
    table_for,
)
from gmc_core.protocol.filters import Filter
from gmc_dashboard.results.random_table import as_frame, own_runs
from gmc_dashboard.results.table import as_csv, as_html, as_json

pytestmark = pytest.mark.usefixtures("asked")

MOVIELENS = TABLES["ml-1m"]
WEAK = ExperimentConfig(data="ml-1m", repetitions=3)


def test_tables_are_found_by_their_numbers():
    assert table_for(ML1M) is MOVIELENS
    assert table_for({**ML1M, "name": "my own file"}) is MOVIELENS
    assert table_for({**ML1M, "items": 500}) is None
    assert table_for({**ML1M, "scale": [0.5, 5.0, 0.5]}) is None
    assert table_for(DATA) is None
    assert table_for(None) is None
    eachmovie = {**ML1M, "users": 36_656, "items": 1_621, "scale": [1, 6, 1]}
    assert table_for(eachmovie) is TABLES["eachmovie"]


def test_the_papers_own_figure():
    assert paper_nmae(MOVIELENS, "weak") == 0.3959
    assert paper_nmae(MOVIELENS, "strong") == 0.3928
    assert paper_nmae(MOVIELENS, "none") is None


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"repetitions": 1}, True),
        ({"fit": FitSettings(epsilon=0.3, initial=3.0)}, True),
        ({"fit": FitSettings(dtype="float32", objective=True)}, True),
        ({"fit": FitSettings(block=(4, 4))}, True),
        ({"protocol": "strong"}, True),
        ({"fit": FitSettings(epsilon=0.5)}, False),
        ({"fit": FitSettings(iterations=11)}, False),
        ({"fit": FitSettings(noise=0.1)}, False),
        ({"fit": FitSettings(signals="columns")}, False),
        ({"filter": Filter(max_items=500)}, False),
        ({"weak_users": 100}, False),
        ({"protocol": "none"}, False),
    ],
)
def test_what_counts_as_the_papers_settings(change, same):
    assert has_paper_settings(replace(WEAK, **change), ML1M) is same


def test_the_run_with_most_repetitions_counts(store):
    once = stored(store, config=replace(WEAK, repetitions=1), data=ML1M)
    thrice = stored(store, config=WEAK, data=ML1M)
    stored(store, config=replace(WEAK, repetitions=2), data=ML1M)
    stored(store, "cancelled", WEAK, data=ML1M, done=1)
    assert reproducing_run([once], MOVIELENS, "weak").id == once.id
    assert reproducing_run(store.runs(), MOVIELENS, "weak").id == thrice.id
    assert reproducing_run(store.runs(), MOVIELENS, "strong") is None
    assert reproducing_run(store.runs(), TABLES["eachmovie"], "weak") is None


def test_nothing_measured_yet():
    at = opened("results")
    assert not at.exception
    assert len(at.table) == 4  # the paper's two, and two under random hold-out
    assert len(at.table[0].value) == 9
    assert "withdrawn in 2004" in texts(at)
    assert at.button(key="reproduce_ml-1m").disabled
    assert at.button(key="reproduce_eachmovie").disabled
    assert "minus the measured one" not in texts(at)


def test_measured_values_have_errors_and_name_their_run(store):
    run = stored(store, config=WEAK, data=ML1M, nmae=0.3941)
    at = opened("results")
    assert not at.exception
    last = at.table[0].value.iloc[-1]
    assert last["Weak NMAE"] == "**0.3941 ± 0.0200**"
    assert last["Strong NMAE"] == "n/a"
    assert "0.0018 below the paper’s 0.3959" in texts(at)
    links = [link.proto.query_string for link in at.get("page_link")]
    assert f"run={run.id}" in links
    assert texts(at).count("minus the measured one") == 1


def test_start_with_a_path_queues_both_protocols(store, asked, tmp_path):
    file = tmp_path / "ratings.csv"
    file.write_text("user,item,rating\n1,1,3\n")
    at = opened("results")
    at.text_input(key="path_ml-1m").set_value(str(file)).run()
    at.button(key="reproduce_ml-1m").click().run()
    assert not at.exception
    runs = store.runs()
    assert {run.config.protocol for run in runs} == {"weak", "strong"}
    assert all(run.repetitions == 3 and run.config.data == str(file) for run in runs)
    assert all(run.config.fit == FitSettings() for run in runs)
    assert asked
    labels = [link.label for link in at.get("page_link")]
    assert any("waiting" in label for label in labels)


def test_runs_under_way_are_found_by_their_settings(store):
    run = stored(store, "cancelled", WEAK, data=ML1M, done=1, label="my own name")
    other = stored(store, "cancelled", replace(WEAK, fit=FitSettings(epsilon=1.0)), data=ML1M)
    queued = store.submit(replace(WEAK, protocol="strong"))
    at = opened("results")
    links = [link.proto.query_string for link in at.get("page_link")]
    assert f"run={run.id}" in links
    assert f"run={queued.id}" in links
    assert f"run={other.id}" not in links
    store.cancel(queued.id)
    stored(store, config=WEAK, data=ML1M)
    links = [link.proto.query_string for link in opened("results").get("page_link")]
    assert f"run={run.id}" not in links, "what it would measure is measured"


def test_a_wrong_path_is_a_sentence(store):
    at = opened("results")
    at.text_input(key="path_eachmovie").set_value("/nowhere/vote.txt").run()
    at.button(key="reproduce_eachmovie").click().run()
    assert "no such file or folder" in at.error[0].value
    assert not store.runs()


def test_files(store):
    run = stored(store, config=WEAK, data=ML1M, nmae=0.3941)
    found = reproduction(store.runs(), MOVIELENS)
    assert as_csv(found).count("\n") == 11
    content = json.loads(as_json(found))
    assert content["weak_run"] == run.id
    assert content["rows"][-1]["weak_nmae"] == 0.3941
    assert "<h1>MovieLens 1M: NMAE</h1>" in as_html(found)


# Random hold-out ------------------------------------------------------------------------

WHOLE = {**ML1M, "items": 3706}
TENTH = ExperimentConfig(
    data="ml-1m", protocol="random", filter=Filter(0, 0), fit=FitSettings(iterations=2)
)


def test_results_and_compare_show_them(store, monkeypatch):
    found = stored(store, config=TENTH, data=WHOLE)
    stored(store, config=replace(TENTH, held_out=0.3), data=WHOLE)
    assert [one.id for one in own_runs(store.runs(), MOVIELENS_1M)] == [found.id]
    frame = as_frame(MOVIELENS_1M, [found])
    assert len(frame) == len(MOVIELENS_1M.results) + 1
    assert frame["RMSE"].str.contains(r"\*\*0.9000").sum() == 1
    assert frame["Settings chosen"].str.contains("on the test").sum() == 2
    compared = stored_comparison(store, config=replace(TENTH, fit=FitSettings()))
    at = opened("results")
    assert not at.exception
    assert "MovieLens 1M, random hold-out" in [each.value for each in at.subheader]
    assert len(at.table[2].value) == len(frame)
    monkeypatch.setattr(
        "gmc_dashboard.compare.view.random_table_for", lambda data: data and MOVIELENS_1M
    )
    at = opened("compare", comparison=compared.id)
    assert not at.exception
    assert any("random tenth of MovieLens 1M" in one.label for one in at.expander)
