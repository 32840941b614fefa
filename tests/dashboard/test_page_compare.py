"""The Compare page: the choice of methods, and a comparison in each of its states."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from stored_runs import (
    DATA,
    FEW_RATINGS,
    METHODS,
    charts,
    opened,
    stored,
    stored_comparison,
    texts,
    use_folders,
)

from gmc_core.base.errors import NumericalError
from gmc_core.comparison.comparators import BASELINES, ItemKnn
from gmc_core.comparison.compare import compare
from gmc_core.fitting import affordable
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.protocol.splits import weak_split
from gmc_core.runs.comparisons import all_comparisons, comparison_of
from gmc_core.runs.store import Run, Store
from gmc_core.runs.store.submitting import source_of
from gmc_core.runs.store.transfer import export, import_run
from gmc_dashboard.compare.figures import (
    PROJECTED_HEIGHT,
    cost_figure,
    describe_differences,
    differences_figure,
)
from gmc_dashboard.compare.table import as_frame, verdict
from gmc_dashboard.compare.view import progress_text
from gmc_dashboard.shared.units import signed

FEW = {"max_items": "60"}


@pytest.fixture(autouse=True)
def asked(tmp_path, monkeypatch):
    """A home of the test's own; returns the stores that asked for a worker."""
    monkeypatch.delenv("GMC_PEER_PYTHON", raising=False)
    return use_folders(tmp_path, monkeypatch)


def page(run: Run):
    return opened("compare", comparison=run.id)


# The choice --------------------------------------------------------------------------


def chosen(methods=("paper", "knn", "bias"), count=2, **query):
    at = opened("compare", **FEW, **query)
    at.multiselect(key="compare_methods").set_value(list(methods))
    return at.slider(key="compare_splits").set_value(count).run()


def test_one_click_queues_the_suggested_methods(asked, store):
    at = chosen(seed="3")
    assert not at.exception
    assert "GMC\\_PEER\\_PYTHON" in texts(at) or "GMC_PEER_PYTHON" in texts(at)
    assert "Seeds 3 to 4" in texts(at)
    at.selectbox(key="compare_reference").set_value("bias").run()
    assert at.button(key="start_compare").label == "Start 6 fits"
    at.button(key="start_compare").click().run()
    assert not at.exception
    assert not at.error
    (run,) = all_comparisons(store)
    assert (run.state, run.comparison.reference, run.seeds) == ("queued", "bias", (3, 4))
    assert run.comparison.methods == ("paper", "knn", "bias")
    assert run.config.filter.max_items == 60
    assert asked
    assert at.query_params["comparison"] in (run.id, [run.id])
    assert at.button(key="cancel_compare")


def test_methods_that_cost_too_much_are_named_and_started_only_if_they_are_wanted(
    store, monkeypatch
):
    monkeypatch.setattr(affordable, "LONGEST_UNASKED", 1e-6)
    at = chosen(("paper", "exact", "bias"))
    assert ["(paper) would take" in one.value for one in at.warning] == [True, False]
    assert "(exact) would take" in at.warning[1].value
    assert "“Low rank, for large tables” as the model" in texts(at) and "--" not in texts(at)
    assert at.button(key="start_compare").disabled
    at.checkbox(key="compare_however_long").check().run()
    at.button(key="start_compare").click().run()
    assert not at.exception
    assert all_comparisons(store)[0].however_long
    monkeypatch.setenv("GMC_MEMORY_LIMIT", "0.000001")
    at = chosen(("exact", "bias"))
    assert "(exact) needs about" in at.error[0].value
    assert at.button(key="start_compare").disabled


def test_one_that_is_on_its_way_is_shown_instead_of_a_second_one(store):
    for _ in range(2):
        at = chosen()
        at.button(key="start_compare").click().run()
    (run,) = all_comparisons(store)
    assert at.query_params["comparison"] in (run.id, [run.id])
    assert "is waiting to be computed" in texts(at) and "nothing new was started" in texts(at)


def test_without_methods_or_hold_out_nothing_starts():
    at = opened("compare", **FEW)
    at.multiselect(key="compare_methods").set_value([]).run()
    assert "at least one method" in at.info[0].value
    at = opened("compare", protocol="none", **FEW)
    assert "nothing is held out" in texts(at)
    assert [button.key for button in at.button] == ["present_start"]  # the header's own


def test_a_wrong_peer_python_is_told_and_the_rest_works(monkeypatch):
    monkeypatch.setenv("GMC_PEER_PYTHON", "/nonexistent/python")
    at = opened("compare", **FEW)
    assert "does not run" in at.warning[0].value
    assert at.button(key="start_compare")


def test_earlier_comparisons_are_linked(store):
    run = stored_comparison(store, label="A & B*")
    at = opened("compare", **FEW)
    links = {link.proto.query_string: link.proto.label for link in at.get("page_link")}
    label = links[f"comparison={run.id}"]
    assert "(finished, 9 of 9 fits)" in label
    assert "A \\& B\\*" in label


def test_a_comparison_that_is_there_is_said_to_be_there(store):
    run = stored_comparison(store)
    store.remember_data(source_of(ExperimentConfig(filter=run.config.filter)), run.data)
    at = chosen([method.name for method in METHODS], 3)
    at.button(key="start_compare").click().run()
    assert not at.exception
    assert len(all_comparisons(store)) == 1
    assert "was computed on" in texts(at) and "nothing new was started" in texts(at)
    assert any(code.value.startswith("gmc compare --data=sample") for code in at.code)
    assert any("--ratings-sha256=" in code.value for code in at.code)
    at.button(key="run_again").click().run()
    assert not at.exception
    again, first = all_comparisons(store)
    assert (again.state, first.id) == ("queued", run.id)


# States ------------------------------------------------------------------------------


def test_waiting_says_behind_what(asked, store):
    stored(store, "queued", label="A fit")
    at = page(stored_comparison(store, "queued"))
    assert not at.exception
    assert "Waiting behind “A fit”" in at.get("progress")[0].proto.text
    assert "The table appears with the first result" in texts(at)
    assert not at.get("plotly_chart")
    assert asked  # whoever looks sees to it that there is a worker


def test_reading_the_data(store):
    run = stored_comparison(store, "running", done=0)
    at = page(run)
    assert "Reading the data" in at.get("progress")[0].proto.text
    store.rows("UPDATE runs SET iteration_began = ? WHERE id = ?", time.time() - 40, run.id)
    assert "preparing, for 40 s." in progress_text(store.run(run.id), [])


def test_what_a_fit_is_at(store, monkeypatch):
    run = stored_comparison(store, "running", done=1)
    store.rows("UPDATE runs SET step = 'E-step', step_share = 0.41 WHERE id = ?", run.id)
    later = time.time() + 40
    monkeypatch.setattr(time, "time", lambda: later)
    text = progress_text(store.run(run.id), store.cells(run.id))
    assert " s (41 % of the E-step)." in text


def test_running_fills_in_and_can_be_cancelled(store):
    run = stored_comparison(store, "running", done=1)
    at = page(run)
    assert not at.exception
    assert not at.error
    text = at.get("progress")[0].proto.text
    assert text.startswith("3 of 9 fits are done. Now: User and item bias, seed 1")
    assert "left." in text or "longer than estimated" in text  # on a slow machine
    assert "Lowest so far" in texts(at)
    assert len(charts(at)) == 2
    assert len(at.dataframe[0].value) == 3
    at.button(key="cancel_compare").click().run()
    assert not at.exception
    assert store.run(run.id).cancelling
    assert at.button(key="cancel_compare").disabled


def test_finished_shows_differences_and_cost(store):
    run = stored_comparison(store)
    at = page(run)
    assert not at.exception
    assert not at.error
    assert not at.warning
    rows = comparison_of(store, run).rows()
    assert charts(at)[0] == describe_differences(rows, "User and item bias")
    assert "Item-based kNN" in charts(at)[1]
    assert "over splits" in charts(at)[0]
    assert any("gmc compare --data=sample" in code.value for code in at.code)
    table = at.dataframe[0].value
    assert list(table["splits"]) == [3, 3, 3]
    assert table["nmae"].iloc[1] == pytest.approx(rows[1].scores.nmae)
    assert np.isnan(table["nmae_difference"].iloc[0])
    assert table["over_ratings"].isna().iloc[0]
    ends = rows[1].nmae.ratings
    assert table["over_ratings"].iloc[1] == f"{signed(ends.low, 4)} … {signed(ends.high, 4)}"
    assert "rmse" not in table
    assert not [button for button in at.button if button.key == "resume_compare"]


def test_with_the_reference_alone_there_is_no_difference_to_draw(store):
    at = page(stored_comparison(store, "running", done=1, methods=METHODS[:1]))
    assert not at.exception
    (only,) = charts(at)
    assert only.startswith("NMAE against time")
    assert "needs two methods" in texts(at)


def test_reference_metric_and_time_can_be_changed(store):
    at = page(stored_comparison(store))
    at.selectbox[0].set_value("knn").run()
    assert "NMAE minus that of Item-based kNN" in charts(at)[0]
    at.segmented_control(key="compare_metric").set_value("rmse").run()
    at.segmented_control(key="compare_time").set_value("CPU").run()
    assert "RMSE minus that of Item-based kNN" in charts(at)[0]
    assert "RMSE against processor time" in charts(at)[1]
    table = at.dataframe[0].value
    assert {"rmse", "rmse_difference", "over_splits"} <= set(table)
    assert "nmae" not in table
    assert not at.exception


@pytest.mark.parametrize("state", ["cancelled", "failed", "interrupted"])
def test_ended_early_says_why_and_resumes(state, store, asked):
    run = stored_comparison(store, state, done=1, message="The disk_is full. Make room.")
    at = page(run)
    said = (at.error if state == "failed" else at.warning)[0].value
    assert "3 of 9 fits are done" in said
    assert "disk\\_is full" in said
    at.button(key="resume_compare").click().run()
    assert store.run(run.id).state == "queued"
    assert asked


def test_a_method_that_failed_is_named(store):
    at = page(stored_comparison(store, failures=(("item", "It <b>broke</b>. Mend it."),)))
    assert not at.exception
    assert "Item mean: It \\<b\\>broke" in at.warning[0].value
    assert at.button(key="resume_compare")
    assert len(at.dataframe[0].value) == 3


def test_delete_leads_back(store):
    run = stored_comparison(store)
    at = opened("compare", comparison=run.id, **FEW)
    at.button(key="delete_compare").click().run()
    assert all_comparisons(store) == [] and not store.folder(run.id).exists()
    assert at.button(key="start_compare")


def test_imported_without_its_files(store, tmp_path):
    path = export(store, stored_comparison(store).id, tmp_path / "c.json")
    with Store(tmp_path / "other") as other:
        path = export(other, import_run(other, path).id, tmp_path / "d.json")
    at = page(import_run(store, path))
    assert not at.exception
    assert "are not in the store" in at.info[0].value
    assert "not known to be this store's own" in texts(at)


@pytest.mark.parametrize("identity", ["nonesuch", "../../etc", "a" * 99])
def test_wrong_links(identity, store):
    stored_comparison(store, label="Mine")
    at = opened("compare", comparison=identity)
    assert "no comparison" in at.error[0].value
    assert any("Mine" in link.label for link in at.get("page_link"))
    at.button(key="new_compare").click().run()
    assert at.button(key="start_compare")


@pytest.mark.parametrize(("other", "parameter"), [("fit", "run"), ("sensitivity", "sweep")])
def test_links_of_other_pages_lead_here(store, other, parameter):
    run = stored_comparison(store)
    at = opened(other, **{parameter: run.id})
    assert not at.exception
    (link,) = [one for one in at.get("page_link") if one.proto.query_string]
    assert "comparison has a page" in texts(at).replace("comparison, which", "comparison")
    assert link.proto.query_string == f"comparison={run.id}"


def test_a_link_of_before_that_names_a_folder_opens(store):
    run = stored_comparison(store)
    with store.writing() as database:
        database.execute("INSERT INTO older_comparisons VALUES ('claims-0fe749', ?)", (run.id,))
    at = opened("compare", comparison="claims-0fe749")
    assert not at.error
    assert at.subheader[0].value.startswith("Comparison of 3 methods on sample")
    assert DATA["name"] in run.title


# Figures and words ------------------------------------------------------------------------


def result(methods=METHODS, count=3):
    return compare(methods, [weak_split(FEW_RATINGS, seed) for seed in range(count)])


def test_the_figure_draws_both_intervals_and_the_zero():
    rows = result().rows()
    figure = differences_figure(rows, "a reference")
    splits, ratings = figure.data
    assert list(ratings.y) == ["Item-based kNN", "Item mean"]
    knn = rows[1].nmae
    assert ratings.x[0] == pytest.approx(knn.ratings.mean)
    assert ratings.x[0] + ratings.error_x.array[0] == pytest.approx(knn.ratings.high)
    assert splits.x[0] - splits.error_x.arrayminus[0] == pytest.approx(knn.splits.low)
    assert figure.layout.shapes[0].x0 == 0
    assert len(differences_figure(result(count=1).rows(), "a").data) == 1


def test_titles_are_text_in_figures():
    method = replace(ItemKnn(), label="<b>bold</b>")
    rows = result([BASELINES["bias"], method]).rows()
    assert differences_figure(rows, "<i>").data[-1].y[0] == "&lt;b&gt;bold&lt;/b&gt;"
    assert cost_figure(rows).data[1].name == "&lt;b&gt;bold&lt;/b&gt;"
    assert "&lt;i&gt;" in differences_figure(rows, "<i>").layout.xaxis.title.text


def test_times_of_nothing_fit_on_a_log_axis():
    rows = [replace(row, seconds=0.0) for row in result().rows()]
    assert all(point.x[0] > 0 for point in cost_figure(rows).data)


class Sometimes(ItemKnn):
    """Never gives a result."""

    def predict(self, split, team):
        raise NumericalError("It broke. Mend it.")


def test_a_method_without_result_is_in_the_table_but_not_in_the_figures():
    rows = result([BASELINES["bias"], Sometimes()]).rows()
    frame = as_frame(rows)
    assert frame["splits"].tolist() == [3, 0]
    assert frame["failure"].tolist() == ["", "It broke. Mend it."]
    assert np.isnan(frame["nmae"].iloc[1])
    assert len(cost_figure(rows).data) == 1
    assert "no method has finished" in describe_differences(rows, "a")


def test_on_a_projector_the_names_stand_at_the_points():
    figure = cost_figure(result().rows(), large=True)
    assert not figure.layout.showlegend
    assert [trace.text[0].strip() for trace in figure.data] == [t.name for t in figure.data]
    sides = {trace.textposition for trace in figure.data}
    assert sides == {"middle left", "middle right"}
    heights = {
        figure.layout.height,
        differences_figure(result().rows(), "a", large=True).layout.height,
    }
    assert heights == {PROJECTED_HEIGHT}


def test_the_verdict_says_what_the_intervals_say():
    rows = result().rows()
    best = min(rows, key=lambda row: row.scores.nmae)
    others = [row for row in rows if row is not best]
    reference = others[0].name
    against = result().against(reference).rows()
    assert f"{best.scores.nmae:.4f} ± {best.scores.nmae_se:.4f}" in verdict(against, reference)
    assert "That is the reference" in verdict(result().against(best.name).rows(), best.name)
    short = verdict(against, reference, short=True)
    assert "95 %" in verdict(against, reference) and "95 %" not in short
    assert "the reference." in short
    single = result(count=1).rows()
    lowest = min(single, key=lambda row: row.scores.nmae)
    worst = max(single, key=lambda row: row.scores.nmae)
    said = verdict(result(count=1).against(worst.name).rows(), worst.name, complete=False)
    assert said.startswith("Lowest so far")
    assert f"{lowest.scores.nmae:.4f}" in said
    assert "One split does not say" in said or "do not tell the two apart" in said
    assert verdict([], "any") == ""
