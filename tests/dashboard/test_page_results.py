"""The Results page, and which runs count as reproducing the paper."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import pytest
from stored_runs import DATA, ML1M, opened, stored, stored_comparison, texts

from gmc_core.comparison.comparators import method_named
from gmc_core.comparison.systems.ipcf import Ipcf
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.config import ExperimentConfig
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
from gmc_core.paper.systems_map import PLACES
from gmc_core.protocol.filters import Filter
from gmc_dashboard.results.random_table import as_frame, own_runs
from gmc_dashboard.results.systems_figure import cost_svg, map_svg
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
    assert len(at.table) == 5  # the nine in words, the paper's two, two under random hold-out
    assert len(at.table[1].value) == 9
    assert [one.label for one in at.expander] == ["What the nine methods are, on one map"]
    assert "withdrawn in 2004" in texts(at)
    assert at.button(key="reproduce_ml-1m").disabled
    assert at.button(key="reproduce_eachmovie").disabled
    assert "minus the measured one" not in texts(at)


def test_measured_values_have_errors_and_name_their_run(store):
    run = stored(store, config=WEAK, data=ML1M, nmae=0.3941)
    at = opened("results")
    assert not at.exception
    last = at.table[1].value.iloc[-1]
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
    assert len(at.table[3].value) == len(frame)
    monkeypatch.setattr(
        "gmc_dashboard.compare.view.random_table_for", lambda data: data and MOVIELENS_1M
    )
    at = opened("compare", comparison=compared.id)
    assert not at.exception
    assert any("random tenth of MovieLens 1M" in one.label for one in at.expander)


# The systems of the tables ----------------------------------------------------------------

PAPER = method_named("paper:dtype=float32", RatingScale(1, 5))


def measured(store, protocol="weak", data=ML1M, **changes):
    config = replace(WEAK, protocol=protocol, repetitions=1)
    return stored_comparison(store, methods=[PAPER, Ipcf()], config=config, data=data, **changes)


def test_systems_that_are_not_measured_are_offered_with_the_command(store):
    at = opened("results")
    assert "Not measured here on 3 splits, weak and strong:** URP, Attitude, MMMF" in texts(at)
    assert at.button(key="measure_ml-1m").disabled
    assert "gmc reproduce --table 2 --data PATH --systems urp,attitude" in at.code[0].value
    assert "gmc reproduce --table 1" in at.code[1].value


def test_printed_and_measured_figures_are_one_table(store):
    run = measured(store)
    at = opened("results")
    assert not at.exception
    lines = at.table[2].value.set_index("Method")
    assert list(lines.columns[:3]) == ["Printed", "Measured", "Verdict"]
    assert lines.loc["IPCF", "Printed"] == "0.4096"
    assert "±" in lines.loc["IPCF", "Measured"] and lines.loc["IPCF", "Splits"] == "3"
    assert lines.loc["IPCF", "Verdict"] in ("within 3 SE", "better", "worse")
    assert "…" in lines.loc["IPCF", "95 %"] and lines.loc["**GM**", "95 %"] == ""
    assert lines.loc["M³F", "Printed"] == "n/a"
    assert lines.loc["GPLVM", "Measured"] == "not measured here"
    assert "the other has no result yet" in texts(at)
    assert f"comparison={run.id}" in [link.proto.query_string for link in at.get("page_link")]
    # Strong is missing, so all are.
    assert "IPCF, E-MMMF" in texts(at)

    measured(store, "strong")
    at = opened("results")
    weak = at.table[2].value
    at.segmented_control(key="systems_ml-1m").set_value("strong").run()
    assert not at.exception
    assert at.table[2].value["Printed"].tolist() != weak["Printed"].tolist()
    assert "MMMF, E-MMMF" in texts(at), "IPCF is complete"


def test_measuring_queues_what_is_missing(store, asked, tmp_path):
    measured(store)
    measured(store, "strong")
    file = tmp_path / "ratings.csv"
    file.write_text("user,item,rating\n1,1,3\n")
    at = opened("results")
    at.text_input(key="path_ml-1m").set_value(str(file)).run()
    at.button(key="measure_ml-1m").click().run()
    assert not at.exception
    queued = [run for run in store.runs() if run.state == "queued"]
    assert {run.config.protocol for run in queued} == {"weak", "strong"}
    for run in queued:
        assert run.config.data == str(file)
        assert run.comparison is not None
        assert run.comparison.seeds == (0, 1, 2)
        assert run.comparison.methods[:3] == ("paper:dtype=float32", "urp", "attitude")
        assert "ipcf" not in run.comparison.methods
    assert asked
    assert all(button.key != "measure_ml-1m" for button in at.button)
    assert any("MovieLens 1M, weak" in link.label for link in at.get("page_link"))


def test_data_without_a_table_say_that_the_printed_figures_do_not_compare(store):
    measured(store, data=DATA, done=1)
    at = opened("results")
    assert not at.exception
    assert "sample: measured only" in [each.value for each in at.subheader]
    assert "The printed figures do not compare: they are of EachMovie (36,656 users" in texts(at)
    lines = at.table[3].value
    assert "Printed" not in lines and "Verdict" not in lines
    assert lines["Method"].tolist() == ["IPCF", "**GM**"]


def test_the_map_has_a_place_for_every_method_and_no_two_boxes_overlap():
    assert [place.method for place in PLACES] == [row.method for row in MOVIELENS.results]
    for dark in (False, True):
        root = ElementTree.fromstring(map_svg({"URP": 70.0, "GM": 0.4}, dark=dark))
        boxes = [
            tuple(float(one.get(name) or 0) for name in ("x", "y", "width", "height"))
            for one in root.iter("{http://www.w3.org/2000/svg}rect")
            if one.get("stroke")
        ]
        assert len(boxes) == len(PLACES)
        for (x, y, w, h), (a, b, _, _) in combinations(sorted(boxes), 2):
            assert a >= x + w or abs(b - y) >= h
        assert "70 CPU s" in "".join(root.itertext())
    points = {"GM": (30.0, 0.4, 0.005, 0.39), "M³F": (900.0, 0.39, 0.005, None)}
    drawn = ElementTree.fromstring(cost_svg(points))
    assert "M³F 0.3900 in 900 s" in "".join(drawn.itertext())
