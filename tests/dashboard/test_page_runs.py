"""The Runs page: table, filters, one run, several runs, import, delete."""

from __future__ import annotations

import io
import time
import zipfile
from dataclasses import replace

import pytest
from stored_runs import ML1M, charts, opened, small, stored, stored_comparison, texts

from gmc_core.base.extras import EXTRAS
from gmc_core.gaussian.settings import FitSettings
from gmc_core.runs.worker import work
from gmc_core.runs.worker.place import Place, choose, place_of
from gmc_dashboard.runs.figures import link, runs_table
from gmc_dashboard.runs.picking import taken_over
from gmc_dashboard.shared import run_actions

pytestmark = pytest.mark.usefixtures("asked")


def table(at):
    return at.dataframe[0].value


def pick(at, *runs):
    at.multiselect(key="picked").set_value([run.id for run in runs]).run()
    assert not at.error
    return at


def test_empty_offers_the_first_fit():
    at = opened("runs")
    assert not at.exception
    assert "no run yet" in texts(at)


def test_all_states_are_listed_newest_first(store):
    states = ("finished", "cancelled", "failed", "interrupted", "running", "queued")
    for state in states:
        stored(store, state, done=2)
    at = opened("runs")
    assert not at.exception
    assert list(table(at)["state"]) == list(reversed(states))
    assert at.metric[1].value == "2"


def test_filters(store):
    stored(store, label="alpha")
    stored(store, "failed", done=1, message="Too much. Do less.")
    stored(store, data=ML1M)
    at = opened("runs")
    at.text_input(key="search").set_value("ALPHA").run()
    assert len(table(at)) == 1
    at.text_input(key="search").set_value("").run()
    at.multiselect(key="states").set_value(["failed"]).run()
    assert list(table(at)["state"]) == ["failed"]
    at.multiselect(key="states").set_value([])
    at.multiselect(key="data_names").set_value(["ml-1m"]).run()
    assert list(table(at)["data"]) == ["ml-1m"]
    at.text_input(key="search").set_value("nothing like this").run()
    assert "clear one of them" in at.info[0].value


def test_rename_and_note(store):
    run = stored(store)
    at = pick(opened("runs"), run)
    at.text_input(key=f"name_{run.id}").set_value("my best").run()
    at.text_input(key=f"note_{run.id}").set_value("after lunch").run()
    assert not at.exception
    kept = store.run(run.id)
    assert (kept.label, kept.note) == ("my best", "after lunch")


def test_delete_asks_first(store):
    run, other = stored(store), stored(store, config=small(seed=1))
    at = pick(opened("runs"), run)
    assert "final" in texts(at)
    at.button(key="delete_confirmed").click().run()
    assert not at.exception
    assert [left.id for left in store.runs()] == [other.id]


def test_of_several_runs_none_is_deleted_if_one_runs(store):
    ended, running = stored(store), stored(store, "running", small(seed=1), done=1)
    at = pick(opened("runs"), ended, running)
    at.button(key="delete_confirmed").click().run()
    assert "cancel it first" in at.error[0].value
    assert len(store.runs()) == 2
    another = stored(store, config=small(seed=2))
    at = pick(opened("runs"), ended, another)
    at.button(key="delete_confirmed").click().run()
    assert [run.id for run in store.runs()] == [running.id]


def test_a_warning_of_the_store_goes_when_it_was_read(store):
    store.say(None, "The database was damaged.", level="warning")
    at = opened("runs")
    assert "was damaged" in at.warning[0].value
    at = at.button(key="acknowledge").click().run()
    assert not at.warning
    assert len(store.messages()) == 1


def test_resume_and_cancel(store, asked):
    run = stored(store, "interrupted", done=1)
    at = pick(opened("runs"), run)
    at.button(key="resume").click().run()
    assert store.run(run.id).state == "queued"
    assert asked
    at.button(key="cancel").click().run()
    assert store.run(run.id).state == "cancelled"


def test_comparison_shows_curves_and_only_differences(store):
    first = stored(store, label="first")
    second = stored(store, config=small(fit=FitSettings(epsilon=1.0, iterations=4)), label="second")
    at = pick(opened("runs"), first, second)
    assert not at.exception
    assert "first" in charts(at)[0]
    assert "second" in charts(at)[0]
    differences = at.dataframe[1].value
    assert list(differences.index) == ["fit.epsilon"]
    at.toggle(key="all_settings").set_value(True).run()
    assert len(at.dataframe[1].value) > 10


def test_equal_settings_are_said_to_be_equal(store):
    same = stored(store), stored(store)
    at = pick(opened("runs"), *same)
    assert "are the same" in texts(at)


def test_table_rows(store):
    run = stored(store)
    row = runs_table([run]).iloc[0]
    assert row["nmae"] == 0.42
    assert row["fits"] == 1
    assert row["epsilon"] == "0.3"
    unseen = replace(run, data=None)  # its scale is not known yet
    assert runs_table([unseen]).iloc[0]["epsilon"] == "default"
    assert "ε = 0.3" in run.title
    assert "ε = default" in unseen.title
    assert row["open"].startswith("fit?run=")
    assert runs_table([]).empty


def test_a_run_links_to_its_page(store):
    run = stored(store)
    assert link(run) == f"fit?run={run.id}"


def test_a_comparison_is_a_row_with_its_link_and_actions(store, asked):
    run = stored_comparison(store, "cancelled", done=1)
    whole = stored_comparison(store)
    row = runs_table([whole]).iloc[0]
    assert (row["kind"], row["model"], row["fits"]) == ("comparison", "3 methods", 9)
    assert row["open"] == f"compare?comparison={whole.id}"
    assert row["nmae"] == whole.summary["nmae"]
    assert (row["epsilon"], row["L"]) == ("–", None)
    at = pick(opened("runs"), run)
    assert not at.exception
    links = [one.proto.query_string for one in at.get("page_link")]
    assert f"comparison={run.id}" in links
    at.button(key="resume").click().run()
    assert store.run(run.id).state == "queued"
    at.button(key="cancel").click().run()
    assert store.run(run.id).state == "cancelled"
    at = pick(opened("runs"), run, whole, stored(store))
    assert not at.exception
    assert "methods" in at.dataframe[1].value.index


def test_a_link_reproduces_what_is_picked(store):
    first, second = stored(store), stored(store)
    at = opened("runs", picked=f"{first.id},{second.id},gone")
    assert at.multiselect(key="picked").value == [first.id, second.id]
    at.multiselect(key="picked").set_value([second.id]).run()
    assert at.query_params["picked"] in (second.id, [second.id])
    at.multiselect(key="picked").set_value([]).run()
    assert "picked" not in at.query_params


def test_a_name_given_in_another_tab_is_not_taken_back(store):
    run = stored(store, label="old")
    at = pick(opened("runs"), run)
    store.rename(run.id, "new")
    at.run()
    assert store.run(run.id).label == "new"
    assert at.text_input(key=f"name_{run.id}").value == "new"


def ticked(at):
    return at.session_state["runs_table"]["selection"]["rows"]


def test_what_is_picked_otherwise_is_ticked_in_the_table(store):
    first, second, third = (stored(store, config=small(seed=seed)) for seed in range(3))
    at = opened("runs", picked=f"{first.id},{third.id}")
    assert not at.exception
    assert sorted(ticked(at)) == [0, 2]  # newest first
    at = pick(at, second)
    assert ticked(at) == [1]
    at.text_input(key="search").set_value("seed 0").run()
    assert len(table(at)) == 1 and ticked(at) == []
    assert at.multiselect(key="picked").value == [second.id]
    at.text_input(key="search").set_value("").run()
    assert ticked(at) == [1]
    at = pick(at)
    assert ticked(at) == []


def test_a_projected_table_has_nothing_to_tick(store):
    run = stored(store)
    at = opened("runs", picked=run.id, present="1")
    assert not at.exception
    assert "runs_table" not in at.session_state


def test_a_tick_is_taken_over_and_hidden_runs_stay_picked():
    assert taken_over([], ["b"], ["a", "b"]) == ["b"]
    assert taken_over(["b"], ["a", "b"], ["a", "b"]) == ["b", "a"]  # the order of the picks
    assert taken_over(["b", "a"], ["a"], ["a", "b"]) == ["a"]
    assert taken_over(["hidden", "a"], ["a", "b"], ["a", "b"]) == ["hidden", "a", "b"]
    assert taken_over(["hidden"], [], ["a"]) == ["hidden"]


def test_picked_fits_on_one_split_lead_to_one_chart(store):
    run = stored(store)
    other = stored(store, config=small(fit=FitSettings(epsilon=1.0, iterations=4)))
    elsewhere = stored(store, config=small(seed=5))
    at = pick(opened("runs"), run, other)
    links = [link.proto for link in at.get("page_link")]
    (beside,) = [link for link in links if link.label == "Draw beside each other on Fit"]
    assert {run.id, other.id} <= set(beside.query_string.replace("=", "&").split("&"))
    pick(at, run, other, elsewhere)
    labels = [link.proto.label for link in at.get("page_link")]
    assert "Draw beside each other on Fit" not in labels


def test_a_paper_bundle_is_offered_where_there_is_something_to_draw(store, monkeypatch):
    def button(run):
        at = opened("runs", picked=run.id)
        labelled = {element.proto.label: element.proto for element in at.get("download_button")}
        return labelled["For a paper (zip)"]

    done = stored(store)
    assert not button(done).disabled
    with zipfile.ZipFile(io.BytesIO(run_actions.bundled(done.id))) as archive:
        assert f"gmc-run-{done.id}/README.txt" in archive.namelist()
    with monkeypatch.context() as patch:
        patch.setitem(EXTRAS, "figures", {"matplotlib": "no_such_module"})
        found = button(done)
    assert found.disabled
    assert "[figures]" in found.help
    waiting = button(stored(store, "queued"))
    assert waiting.disabled
    assert waiting.help == "Nothing has been computed yet."


# Where fits are computed ---------------------------------------------------------------


def use(at, where: str):
    at.text_input(key="place").set_value(where)
    at.button(key="use_place").click().run()
    assert not at.exception
    return at


def test_a_cluster_is_named_checked_and_kept(store, monkeypatch):
    monkeypatch.delenv("GMC_DASK", raising=False)
    at = opened("runs")
    assert "are computed on this machine" in texts(at)
    at = use(at, "local:2")
    assert "processes of this machine: 2 workers, " in texts(at) and " threads in all" in texts(at)
    assert place_of(store).where == "local:2"
    monkeypatch.setattr("gmc_core.runs.cluster.cluster.CONNECT_SECONDS", 0.2)
    for where, said in (
        ("tcp://127.0.0.1:1", "No Dask scheduler answers at"),
        ("local:0", "from 1 to"),
        ("nowhere", "the address of a scheduler"),
    ):
        at = use(at, where)
        assert any(said in error.value for error in at.error), where
        assert place_of(store).where == "local:2"
    monkeypatch.setitem(EXTRAS, "dask", {"dask": "no_such_module"})
    at = use(at, "local:3")
    assert any("which is not installed" in error.value for error in at.error)
    at = use(at, "")
    assert "are computed on this machine" in texts(at) and not at.error
    assert place_of(store).where == ""


def test_what_a_page_says_goes_before_the_environment(store, monkeypatch):
    monkeypatch.setenv("GMC_DASK", "local:3")
    assert place_of(store) == Place("local:3")
    assert "by processes of this machine." in texts(opened("runs"))
    choose(store, Place("tcp://first:8786", 3, 24))
    assert "//first:8786: 3 workers, 24 threads in all" in texts(opened("runs"))


def test_a_worker_of_another_place_leaves_between_two_runs(store):
    began = time.monotonic()
    changes = iter([False, True])
    for seed in (4, 5):
        store.submit(small(seed=seed))
    done = work(store, idle_seconds=60, polite=False, leave=lambda: next(changes, True))
    assert done == 1 and time.monotonic() - began < 50
    assert sorted(run.state for run in store.runs()) == ["finished", "queued"]
