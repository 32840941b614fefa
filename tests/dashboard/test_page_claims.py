"""The Claims page: before the start, under way, stopped and done."""

from __future__ import annotations

import secrets
import time
from dataclasses import replace

import pandas as pd
import pytest
from made_claims import DATA, comparison, measured, results, subject
from stored_runs import charts, opened, texts

from gmc_core.fitting import affordable
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.preparing import prepare
from gmc_core.paper.claims import CLAIMS, Measured, Subject, check, judge
from gmc_core.protocol.filters import Filter
from gmc_core.runs.comparisons import all_comparisons
from gmc_core.runs.store import queue as worker_side
from gmc_core.runs.store.cells import Cell
from gmc_dashboard.claims.figures import describe_intervals, intervals_figure, overview
from gmc_dashboard.claims.view import progress_text

pytestmark = pytest.mark.usefixtures("asked")

FEW = {"max_items": "60"}
BASE = ExperimentConfig(filter=Filter(max_items=60))


@pytest.fixture(scope="module")
def about():
    return Subject.of(BASE, prepare(BASE))


def end(store, count, state="finished", message="", kind=None):
    """A worker ends the oldest runs."""
    name = secrets.token_hex(4)
    worker_side.register(store, name, beside=True)
    for _ in range(count):
        claim = worker_side.take(store, name)
        summary = {"nmae": 0.4} if state == "finished" else None
        claim.end(state, message, summary, error_kind=kind)
    worker_side.retire(store, name)


def keep_comparison(store, about, state="finished"):
    """The claims' comparison in ``state``, without files."""
    run = check.submit_comparison(store, about)
    worker_side.register(store, "c", beside=True)
    claim = worker_side.take(store, "c", run.id)
    for method in run.comparison.methods[:2]:
        claim.put_cell(Cell(0, method, "done"))
    if state == "running":
        claim.put_cell(Cell(1, "knn", "running"))
        return
    claim.end(state, "Disk full.", {"failed": 0} if state == "finished" else None)
    worker_side.retire(store, "c")


def pretend(monkeypatch, found):
    """All experiments have these results."""
    monkeypatch.setattr(check, "look", lambda store, about: found)


def test_before_the_start_every_claim_is_there_and_one_click_submits_all(store, asked, about):
    at = opened("claims", **FEW)
    assert not at.exception and not at.error
    assert "are not measured" in texts(at)
    assert [e.label.partition(" :")[0] for e in at.expander] == [claim.title for claim in CLAIMS]
    assert len(at.dataframe[0].value) == len(CLAIMS)
    button = at.button(key="check_claims")
    assert "Sample" in button.label
    assert f"{len(about.experiments())} experiments" in texts(at)
    button.click().run()
    assert not at.exception and not at.error
    assert len(store.runs()) == len(about.experiments()) + 1
    newest = store.runs()[0]  # so the worker takes it last
    assert newest.comparison.methods == ("paper", "mf", "knn", "bias")
    assert asked  # a worker was asked for
    assert at.button(key="cancel_claims")
    assert "0 of 15 experiments are done" in at.get("progress")[0].proto.text


def test_experiments_that_cost_too_much_are_refused_before_they_are_queued(store, monkeypatch):
    monkeypatch.setenv("GMC_MEMORY_LIMIT", "0.000001")
    at = opened("claims", **FEW)
    assert not at.exception
    assert "The experiment “" in at.error[0].value and "memory" in at.error[0].value
    assert at.button(key="check_claims").disabled
    monkeypatch.delenv("GMC_MEMORY_LIMIT")
    monkeypatch.setattr(affordable, "LONGEST_UNASKED", 0.0)
    at = opened("claims", **FEW)
    assert "would take about" in at.warning[0].value
    assert at.button(key="check_claims").disabled
    assert "low-rank" not in at.warning[0].value  # what the claims are about is given
    (anyway,) = (box for box in at.checkbox if box.key.startswith("claims_however_long"))
    anyway.check().run()
    at.button(key="check_claims").click().run()
    assert not at.exception and not at.error
    runs = store.runs()
    assert len(runs) == 16 and all(run.however_long for run in runs)


def test_experiments_that_are_there_are_not_in_the_way_of_the_rest(store, about, monkeypatch):
    at = opened("claims", **FEW)
    at.button(key="check_claims").click().run()
    end(store, len(about.experiments()))
    keep_comparison(store, about, "failed")
    monkeypatch.setenv("GMC_MEMORY_LIMIT", "0.000001")
    at = opened("claims", **FEW)
    assert not at.exception and not at.error
    assert at.button(key="check_claims").label == "Go on"
    assert not at.button(key="check_claims").disabled


def test_the_comparison_follows_the_runs(store, about):
    at = opened("claims", **FEW)
    at.button(key="check_claims").click().run()
    end(store, len(about.experiments()))
    at.run()
    assert at.button(key="cancel_claims")
    assert "The comparison: 0 of" in at.get("progress")[0].proto.text
    keep_comparison(store, about, "failed")
    at.run()
    assert "The comparison failed: Disk full" in texts(at)
    assert "Missing: a comparison with other methods." in texts(at)
    at.button(key="check_claims").click().run()
    (run,) = all_comparisons(store)
    assert run.state == "queued"


def test_cancel_and_go_on(store, about):
    check.submit(store, about)
    at = opened("claims", **FEW)
    at.button(key="cancel_claims").click().run()
    assert {run.state for run in store.runs()} == {"cancelled"}
    button = at.button(key="check_claims")
    assert button.label == "Go on"
    assert "15 experiments" in texts(at)
    button.click().run()
    assert {run.state for run in store.runs()} == {"queued"}


def test_a_run_that_failed_tells_why_and_numerics_without_epsilon_do_not(store, about):
    check.submit(store, about)
    end(store, 1, "failed", "The disk is *full*.", "system")
    end(store, 1)
    end(store, 1, "failed", "Whatever it says.", "not-positive-definite")
    at = opened("claims", **FEW)
    assert [warning.value for warning in at.warning] == [
        "Claims: the paper's settings, weak: The disk is \\*full\\*."
    ]


def test_verdicts_figures_and_links_when_all_is_done(store, monkeypatch, about):
    check.submit(store, about)
    end(store, len(about.experiments()))
    keep_comparison(store, about)
    found = results(
        {"longer": measured("longer", 0.05, iterations=20)},
        comparison=comparison({"paper": 0.0, "knn": 0.1}),
        comparison_id="abc",
    )
    pretend(monkeypatch, found)
    at = opened("claims", **FEW)
    assert not at.exception and not at.error
    assert "Everything is computed" in texts(at)
    assert not [b for b in at.button if b.key in ("check_claims", "cancel_claims")]
    frame = at.dataframe[0].value.set_index("claim")
    row = frame.loc["Converges within 10 iterations"]
    assert row["verdict"] == "✗ does not hold"
    assert row["figure"] == "+0.0312 NMAE"
    assert row["interval"].startswith("[+0.0")
    assert row["run"] == "/fit?run=runlonger"
    ballpark = frame.loc["As good as the best methods, at lower cost"]
    assert ballpark["run"] == "/compare?comparison=abc"
    (chart,) = charts(at)
    assert "20 iterations against 10 +0.0312" in chart
    labels = [expander.label for expander in at.expander]
    assert any("Converges" in label and "does not hold" in label for label in labels)
    assert "From iteration 10 to 20 NMAE changes by +0.0312" in texts(at)


def test_data_that_cannot_be_read_lead_to_the_data_page():
    at = opened("claims", data="ml-1m")
    assert not at.exception
    assert "not on this machine" in texts(at)
    assert [button.key for button in at.button] == ["present_start"]  # the header's own


def test_ratings_that_are_all_equal_are_explained(tmp_path):
    from gmc_dashboard.shared import sources

    file = tmp_path / "flat.csv"
    lines = [f"{user},{item},3" for user in range(25) for item in range(25)]
    file.write_text("user,item,rating\n" + "\n".join(lines))
    at = opened("claims", data=sources.register(file))
    assert not at.exception
    assert "All ratings equal 3" in at.error[0].value


# Figures -----------------------------------------------------------------------------------


def test_the_overview_links_what_was_varied():
    frame = overview(judge(results()))
    assert list(frame["claim"]) == [claim.title for claim in CLAIMS]
    by_claim = frame.set_index("claim")["run"]
    assert by_claim["Insensitive to ε around .3"] == "/fit?run=runepsilon015"
    assert by_claim["The projection to integers helps NMAE"] == "/fit?run=runpaper"
    assert pd.isna(by_claim["The cost formula"])


def test_figures_of_the_overview_have_the_sign_of_other_pages():
    verdicts = judge(results())
    name = CLAIMS[3].name
    below = replace(
        verdicts[name], unit="NMAE", value=-0.0044, low=-0.0097, high=0.0008, range_of=0
    )
    row = overview({**verdicts, name: below}).iloc[3]
    assert (row["figure"], row["interval"]) == ("−0.0044 NMAE", "[−0.0097, +0.0008]")


@pytest.mark.parametrize("dark", [False, True])
def test_the_intervals_have_a_place_each_and_the_margin_in_sight(dark):
    verdicts = judge(results({"columns": measured("columns", 0.4)}))
    fig = intervals_figure(verdicts, dark=dark)
    places = sorted(y for trace in fig.data for y in trace.y)
    assert places == list(range(len(fig.layout.yaxis.ticktext)))
    assert all(abs(x) <= 0.05 for trace in fig.data for x in trace.x)
    assert "+0.250" in [text for trace in fig.data for text in trace.text]
    assert fig.layout.shapes[0].x0 == -fig.layout.shapes[0].x1 == -0.005
    assert "columns against rows +0.2500" in describe_intervals(verdicts)


def test_without_results_the_figure_is_empty_and_says_so():
    nothing = judge(results({name: None for name in subject().experiments()}))
    assert intervals_figure(nothing).data == ()
    assert describe_intervals(nothing).endswith("none yet.")


def test_progress_in_words():
    about = {"state": "running", "title": "ε *0.1*", "ended_for_good": False}
    step = "41 % of the E-step"
    for spent, said, more in (
        (2.0, step, ""), (30.0, "", ", for 30 s"), (30.0, step, f", for 30 s ({step})"),
    ):  # fmt: skip
        began = time.time() - spent
        run = type("R", (), {**about, "iteration_began": began, "step_words": said})()
        text = progress_text(check.Progress({"a": run}, (), ("a",), None, False))
        assert text == f"0 of 1 experiments are done. Now: ε \\*0.1\\*{more}."


def test_progress_of_the_comparison_in_words(store, about):
    keep_comparison(store, about, "running")
    at = opened("claims", **FEW)
    text = at.get("progress")[0].proto.text
    total = 4 * about.splits
    now = f"The comparison: 2 of {total} fits are done. Now: Item-based kNN, seed 1, for "
    assert text.startswith(now)


def test_a_stopped_run_is_named_in_its_claim(monkeypatch):
    found = results({"longer": Measured("runlonger", "interrupted", "Worker died.")})
    pretend(monkeypatch, found)
    at = opened("claims", **FEW)
    assert "Run runlonger is interrupted. Worker died." in texts(at)
    assert DATA["name"] not in texts(at)
