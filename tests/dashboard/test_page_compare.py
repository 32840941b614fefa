"""The Compare page: the choice of methods, and a comparison in each of its states."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from making import random_table, ratings_of
from stored_runs import charts, opened, texts, use_folders

from gmc_core.base.errors import NumericalError
from gmc_core.comparison.comparators import BASELINES, ItemProximity
from gmc_core.comparison.compare import compare
from gmc_core.comparison.comparison_files import method_key
from gmc_core.fitting.experiment import ExperimentConfig, describe, prepare
from gmc_core.protocol.filters import Filter
from gmc_core.protocol.splits import weak_split
from gmc_core.runs.store import comparison_again, comparisons
from gmc_core.runs.store.comparisons import Plan, Status, folder_for
from gmc_dashboard.compare.figures import cost_figure, describe_differences, differences_figure
from gmc_dashboard.compare.table import as_frame, verdict
from gmc_dashboard.shared.units import signed

FEW = {"max_items": "60"}
RATINGS = ratings_of(*random_table(60, 20, 0.5, 2))
METHODS = [BASELINES["bias"], ItemProximity(), BASELINES["item"]]


@pytest.fixture(autouse=True)
def started(tmp_path, monkeypatch):
    """A home of the test's own; returns the commands that would have been started."""
    use_folders(tmp_path, monkeypatch)
    monkeypatch.delenv("GMC_PEER_PYTHON", raising=False)
    commands: list[tuple[str, ...]] = []

    def spawn(folder, command):
        commands.append(tuple(command))
        return os.getpid()

    monkeypatch.setattr(comparisons, "_spawn", spawn)
    return commands


def stored(state="finished", *, done=3, methods=METHODS, failures=(), message="", title="A & B*"):
    """A comparison on three splits in ``state``, of which ``done`` are computed."""
    folder = folder_for(ExperimentConfig(filter=Filter(max_items=60)))
    splits = [weak_split(RATINGS, seed) for seed in range(done)]
    keys = ()
    if splits:
        able = [method for method in methods if method.name not in {name for name, _ in failures}]
        result = compare(able, splits, folder=folder.path)
        keys = tuple(result.truths)
    folder.keep_plan(
        Plan(
            title,
            ("compare", "--data=sample"),
            "weak",
            (0, 1, 2),
            tuple((m.name, m.label, method_key(m)) for m in methods),
            methods[0].name,
            (1.0, 5.0, 1.0) if splits else None,
            keys,
        )
    )
    told = tuple((name, keys[0], reason) for name, reason in failures)
    total = 3 * len(methods)
    now = "Item proximity, seed 1" if state == "running" else ""
    folder.keep_status(Status(state, done * len(methods), total, now, 0.0, message, told))
    return folder


# The choice --------------------------------------------------------------------------


def test_one_click_starts_the_suggested_methods(started):
    at = opened("compare", seed="3", **FEW)
    assert not at.exception
    assert "GMC\\_PEER\\_PYTHON" in texts(at) or "GMC_PEER_PYTHON" in texts(at)
    at.multiselect(key="compare_methods").set_value(["paper", "knn", "bias"])
    at.slider(key="compare_splits").set_value(2).run()
    assert "Seeds 3 to 4" in texts(at)
    at.selectbox(key="compare_reference").set_value("bias").run()
    assert at.button(key="start_compare").label == "Start 6 fits"
    at.button(key="start_compare").click().run()
    assert not at.exception
    assert not at.error
    (command,) = started
    assert {"--methods=paper,knn,bias", "--reference=bias", "--seeds=3,4", "--max-items=60"} <= set(
        command
    )
    (folder,) = comparisons.comparisons()
    assert folder.plan().reference == "bias"
    assert folder.status().state == "starting"
    assert at.query_params["comparison"] in (folder.id, [folder.id])
    assert at.button(key="cancel_compare")


def test_a_running_comparison_is_shown_instead_of_a_second_one(started):
    folder = stored("running", done=1)
    at = opened("compare", **FEW)
    at.button(key="start_compare").click().run()
    assert started == []
    assert at.query_params["comparison"] in (folder.id, [folder.id])


def test_without_methods_or_hold_out_nothing_starts():
    at = opened("compare", **FEW)
    at.multiselect(key="compare_methods").set_value([]).run()
    assert "at least one method" in at.info[0].value
    at = opened("compare", protocol="none", **FEW)
    assert "nothing is held out" in texts(at)
    assert not at.button


def test_a_wrong_peer_python_is_told_and_the_rest_works(monkeypatch):
    monkeypatch.setenv("GMC_PEER_PYTHON", "/nonexistent/python")
    at = opened("compare", **FEW)
    assert "does not run" in at.warning[0].value
    assert at.button(key="start_compare")


def test_earlier_comparisons_are_linked():
    folder = stored()
    at = opened("compare", **FEW)
    links = {link.proto.query_string: link.proto.label for link in at.get("page_link")}
    label = links[f"comparison={folder.id}"]
    assert "3 methods, 3 splits (finished)" in label
    assert "A \\& B\\*" in label


# States ------------------------------------------------------------------------------


def test_starting():
    at = opened("compare", comparison=stored("starting", done=0).id)
    assert not at.exception
    assert "The table appears with the first result" in texts(at)
    assert not at.get("plotly_chart")


def test_running_fills_in_and_can_be_cancelled():
    folder = stored("running", done=1)
    at = opened("compare", comparison=folder.id)
    assert not at.exception
    assert not at.error
    assert "Lowest so far" in texts(at)
    assert len(charts(at)) == 2
    assert len(at.dataframe[0].value) == 3
    at.button(key="cancel_compare").click().run()
    assert not at.exception
    assert folder.cancelled()


def test_finished_shows_differences_and_cost():
    folder = stored()
    at = opened("compare", comparison=folder.id)
    assert not at.exception
    assert not at.error
    assert not at.warning
    rows = folder.comparison().rows()
    assert charts(at)[0] == describe_differences(rows, "User and item bias")
    assert "Item proximity" in charts(at)[1]
    assert "over splits" in charts(at)[0]
    assert any("compare --data=sample" in code.value for code in at.code)
    table = at.dataframe[0].value
    assert list(table["splits"]) == [3, 3, 3]
    assert table["nmae"].iloc[1] == pytest.approx(rows[1].scores.nmae)
    assert np.isnan(table["nmae_difference"].iloc[0])
    assert table["over_ratings"].isna().iloc[0]
    ends = rows[1].nmae.ratings
    assert table["over_ratings"].iloc[1] == f"{signed(ends.low, 4)} … {signed(ends.high, 4)}"
    assert "rmse" not in table
    assert not [button for button in at.button if button.key == "resume_compare"]


def test_with_the_reference_alone_there_is_no_difference_to_draw():
    at = opened("compare", comparison=stored("running", done=1, methods=METHODS[:1]).id)
    assert not at.exception
    (only,) = charts(at)
    assert only.startswith("NMAE against time")
    assert "needs two methods" in texts(at)


def test_reference_metric_and_time_can_be_changed():
    at = opened("compare", comparison=stored().id)
    at.selectbox[0].set_value("knn").run()
    assert "NMAE minus that of Item proximity" in charts(at)[0]
    at.segmented_control(key="compare_metric").set_value("rmse").run()
    at.segmented_control(key="compare_time").set_value("CPU").run()
    assert "RMSE minus that of Item proximity" in charts(at)[0]
    assert "RMSE against processor time" in charts(at)[1]
    table = at.dataframe[0].value
    assert {"rmse", "rmse_difference", "over_splits"} <= set(table)
    assert "nmae" not in table
    assert not at.exception


@pytest.mark.parametrize("state", ["cancelled", "failed", "interrupted"])
def test_ended_early_says_why_and_resumes(state, started):
    folder = stored(state, done=1, message="The disk_is full. Make room.")
    at = opened("compare", comparison=folder.id)
    said = (at.error if state == "failed" else at.warning)[0].value
    assert "3 of 9 fits are done" in said
    assert "disk\\_is full" in said
    at.button(key="resume_compare").click().run()
    assert started == [("compare", "--data=sample")]
    assert folder.status().state == "starting"


def test_a_method_that_failed_is_named():
    folder = stored(failures=[("item", "It <b>broke</b>. Mend it.")])
    at = opened("compare", comparison=folder.id)
    assert not at.exception
    assert "Item mean: It \\<b\\>broke" in at.warning[0].value
    assert at.button(key="resume_compare")
    assert len(at.dataframe[0].value) == 3


def test_delete_leads_back():
    folder = stored()
    at = opened("compare", comparison=folder.id, **FEW)
    at.button(key="delete_compare").click().run()
    assert not folder.path.exists()
    assert at.button(key="start_compare")


@pytest.mark.parametrize("identity", ["nonesuch", "../../etc", "a" * 99])
def test_wrong_links(identity):
    folder = stored()
    at = opened("compare", comparison=identity)
    assert "no comparison" in at.error[0].value
    assert any(folder.plan().title.split()[0] in link.label for link in at.get("page_link"))
    at.button(key="new_compare").click().run()
    assert at.button(key="start_compare")


# Figures and words ------------------------------------------------------------------------


def result(methods=METHODS, count=3):
    return compare(methods, [weak_split(RATINGS, seed) for seed in range(count)])


def test_the_figure_draws_both_intervals_and_the_zero():
    rows = result().rows()
    figure = differences_figure(rows, "a reference")
    splits, ratings = figure.data
    assert list(ratings.y) == ["Item proximity", "Item mean"]
    knn = rows[1].nmae
    assert ratings.x[0] == pytest.approx(knn.ratings.mean)
    assert ratings.x[0] + ratings.error_x.array[0] == pytest.approx(knn.ratings.high)
    assert splits.x[0] - splits.error_x.arrayminus[0] == pytest.approx(knn.splits.low)
    assert figure.layout.shapes[0].x0 == 0
    assert len(differences_figure(result(count=1).rows(), "a").data) == 1


def test_titles_are_text_in_figures():
    method = replace(ItemProximity(), label="<b>bold</b>")
    rows = result([BASELINES["bias"], method]).rows()
    assert differences_figure(rows, "<i>").data[-1].y[0] == "&lt;b&gt;bold&lt;/b&gt;"
    assert cost_figure(rows).data[1].name == "&lt;b&gt;bold&lt;/b&gt;"
    assert "&lt;i&gt;" in differences_figure(rows, "<i>").layout.xaxis.title.text


def test_times_of_nothing_fit_on_a_log_axis():
    rows = [replace(row, seconds=0.0) for row in result().rows()]
    assert all(point.x[0] > 0 for point in cost_figure(rows).data)


class Sometimes(ItemProximity):
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


def test_the_verdict_says_what_the_intervals_say():
    rows = result().rows()
    best = min(rows, key=lambda row: row.scores.nmae)
    others = [row for row in rows if row is not best]
    reference = others[0].name
    against = result().against(reference).rows()
    assert f"{best.scores.nmae:.4f} ± {best.scores.nmae_se:.4f}" in verdict(against, reference)
    assert "That is the reference" in verdict(result().against(best.name).rows(), best.name)
    single = result(count=1).rows()
    lowest = min(single, key=lambda row: row.scores.nmae)
    worst = max(single, key=lambda row: row.scores.nmae)
    said = verdict(result(count=1).against(worst.name).rows(), worst.name, complete=False)
    assert said.startswith("Lowest so far")
    assert f"{lowest.scores.nmae:.4f}" in said
    assert "One split does not say" in said or "do not tell the two apart" in said
    assert verdict([], "any") == ""


def test_a_comparison_that_is_there_is_said_to_be_there(started):
    at = opened("compare", **FEW)
    at.multiselect(key="compare_methods").set_value(["paper", "bias"])
    at.slider(key="compare_splits").set_value(3).run()
    at.button(key="start_compare").click().run()
    assert len(started) == 1
    (folder,) = comparisons.comparisons()
    plan = folder.plan()
    data = describe(prepare(ExperimentConfig(filter=Filter(max_items=60))))
    config = ExperimentConfig(filter=Filter(max_items=60))
    again = comparison_again.repeating_command(config, data, plan.seeds, ["paper", "bias"], "paper")
    made = replace(plan, repeat=again)
    folder.keep_plan(made)
    folder.keep_status(Status("finished", 6, 6))
    at = opened("compare", **FEW)
    at.multiselect(key="compare_methods").set_value(["paper", "bias"])
    at.slider(key="compare_splits").set_value(3).run()
    at.button(key="start_compare").click().run()
    assert not at.exception
    assert len(started) == 1, "nothing new was started"
    assert "was computed on" in texts(at) and "nothing new was started" in texts(at)
    assert any(code.value.startswith("gmc compare --data=sample") for code in at.code)
    assert any("--ratings-sha256=" in code.value for code in at.code)
    assert not any("--folder" in code.value for code in at.code)
    at.button(key="run_again").click().run()
    assert not at.exception
    assert len(started) == 2
    # Of other ratings under the same name nothing counts.
    folder.keep_plan(made)
    folder.keep_status(Status("finished", 6, 6))
    assert not comparison_again.computed(folder, made, "0" * 64)
