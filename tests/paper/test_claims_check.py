"""Claims and the run store: what is missing is computed, what is there is found."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from made_claims import comparison
from stored_runs import SMALL, use_folders

from gmc_core.base.errors import BREAKDOWNS, ConfigError
from gmc_core.cli import main
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.preparing import prepare
from gmc_core.gaussian.settings import FitSettings
from gmc_core.paper.claims import CLAIMS, Subject, check, judge
from gmc_core.paper.claims.check import (
    comparison_run,
    look,
    plan_of,
    progress,
    runs_of,
    submit,
    submit_comparison,
)
from gmc_core.protocol.filters import Filter
from gmc_core.runs.comparisons import all_comparisons
from gmc_core.runs.store import Store
from gmc_core.runs.store import queue as worker_side
from gmc_core.runs.worker import work

BASE = ExperimentConfig(filter=SMALL)


@pytest.fixture(autouse=True)
def asked(tmp_path, monkeypatch):
    return use_folders(tmp_path, monkeypatch)


@pytest.fixture
def store(asked):
    with Store() as opened:
        yield opened


@pytest.fixture(scope="module")
def subject():
    return Subject.of(BASE, prepare(BASE), 2)


def end_one(store, state="finished", message="", kind=None):
    """A worker takes the oldest run and ends it."""
    worker_side.register(store, "w", beside=True)
    claim = worker_side.take(store, "w")
    summary = {"nmae": 0.4} if state == "finished" else None
    claim.end(state, message, summary, error_kind=kind)
    worker_side.retire(store, "w")
    return claim.run.id


def finish_comparison(store, subject, plan=None, state="finished"):
    """The comparison of the claims (or of ``plan``), ended without files."""
    plan = plan or plan_of(subject)
    run, _ = store.submit_comparison(subject.base, plan, data=subject.data)
    worker_side.register(store, "w", beside=True)
    claim = worker_side.take(store, "w", run.id)
    claim.end(state, "", {"nmae": 0.4, "failed": 0} if state == "finished" else None)
    worker_side.retire(store, "w")
    return store.run(run.id)


def test_shared_experiments_are_submitted_once(store, subject):
    runs = submit(store, subject)
    assert set(runs) == set(subject.experiments())
    assert len({run.id for run in runs.values()}) == len(runs)
    assert len(store.runs()) == len(runs)
    again = submit(store, subject)
    assert {name: run.id for name, run in again.items()} == {n: r.id for n, r in runs.items()}
    assert len(store.runs()) == len(runs)
    assert not any(run.keeps_model for run in runs.values())
    assert all(run.label.startswith("Claims: ") and run.label[8:] for run in runs.values())


def test_a_finished_run_of_anyone_is_found(store, subject):
    config = subject.experiments()["columns"]
    run = store.submit(config, label="mine", data=subject.data)
    end_one(store)
    assert submit(store, subject)["columns"].id == run.id


def test_more_repetitions_serve_and_fewer_do_not(store, subject):
    config = subject.experiments()["longer"]
    few = store.submit(replace(config, repetitions=1), data=subject.data)
    end_one(store)
    assert "longer" not in runs_of(store, subject)
    many = store.submit(replace(config, repetitions=4), data=subject.data)
    assert "longer" not in runs_of(store, subject)  # not before it is finished
    end_one(store)
    assert runs_of(store, subject)["longer"].id == many.id != few.id


def test_what_was_stopped_goes_on_but_a_breakdown_is_a_result(store, subject):
    runs = submit(store, subject)
    ends = (
        ("interrupted", "The worker died."),
        ("failed", "Whatever it says.", "not-positive-definite"),
        ("failed", "The disk is full, or Σ is not positive definite.", "system"),
    )
    ended = [end_one(store, *how) for how in ends]
    names = [next(name for name, run in runs.items() if run.id == id) for id in ended]
    found = progress(store, subject)
    assert set(found.missing) == {names[0], names[2]}
    assert not found.complete
    runs = submit(store, subject)
    assert [runs[name].state for name in names] == ["queued", "failed", "queued"]
    broken = look(store, subject).measured[names[1]]
    assert broken.broke_down and not broken.finished


@pytest.mark.parametrize("kind", sorted(BREAKDOWNS))
def test_a_fit_that_is_not_repeated_is_counted(store, subject, kind):
    runs = submit(store, subject)
    ended = end_one(store, "failed", "It went awry.", kind)
    name = next(name for name, run in runs.items() if run.id == ended)
    assert name not in progress(store, subject).missing
    assert look(store, subject).measured[name].broke_down


def test_progress_counts_runs_and_the_comparison(store, subject):
    assert progress(store, subject).share == 0
    assert len(progress(store, subject).missing) == len(subject.experiments())
    runs = submit(store, subject)
    for _ in runs:
        end_one(store)
    done = progress(store, subject)
    assert (done.share, done.missing, done.active) == (1.0, (), ())
    assert done.comparison is None and done.comparison_missing and not done.complete
    whole = plan_of(subject)
    few = replace(whole, methods=whole.methods[:2], labels=whole.labels[:2])
    finish_comparison(store, subject, few)
    assert progress(store, subject).comparison_missing  # it lacks methods
    finish_comparison(store, subject, state="failed")
    assert progress(store, subject).comparison_missing  # it can go on
    finish_comparison(store, subject)
    assert progress(store, subject).complete


def test_a_comparison_with_more_methods_and_splits_serves_as_well(store, subject):
    whole = plan_of(subject)
    more = replace(
        whole,
        methods=(*whole.methods, "item"),
        labels=(*whole.labels, "Item mean"),
        seeds=(0, 1, 2),
    )
    run = finish_comparison(store, subject, more)
    assert comparison_run(store, subject).id == run.id
    assert not progress(store, subject).comparison_missing
    other = {**subject.data, "sha256": "0" * 64}
    assert comparison_run(store, replace(subject, data=other)) is None


def test_cancelling_stops_runs_and_comparison(store, subject):
    submit(store, subject)
    submit_comparison(store, subject)
    check.cancel(store, subject)
    assert {run.state for run in store.runs()} == {"cancelled"}
    assert len(all_comparisons(store)) == 1


def test_the_comparison_is_queued_once_and_behind_the_runs(store, subject):
    submit(store, subject)
    run = submit_comparison(store, subject)
    assert run.comparison.methods == ("paper", "mf", "knn", "bias")
    assert run.comparison.reference == "paper" and run.seeds == (0, 1)
    assert run.title.startswith("Claims: sample, 60 items")
    assert len(store.waiting(run.id).ahead) == len(subject.experiments())
    assert submit_comparison(store, subject).id == run.id
    finish_comparison(store, subject)
    assert submit_comparison(store, subject).state == "finished"
    assert len(all_comparisons(store)) == 1


def test_methods_that_were_compared_on_the_same_splits_count():
    own = comparison({"paper": 0.0, "knn": 0.1})
    other = comparison({"paper": 0.5, "myfm-mf": -0.1, "item": 0.2, "user": 0.2})
    del other.outcomes["item", "weak-1"]
    both = check.with_rivals(own, other)
    assert set(both.labels) == {"paper", "knn", "myfm-mf", "user"}
    assert both.outcomes["paper", "weak-0"] is own.outcomes["paper", "weak-0"]
    assert both.rows()[2].scores.n == both.rows()[0].scores.n
    assert set(own.labels) == {"paper", "knn"}
    assert check.with_rivals(own, None) is own


def test_the_number_of_splits_follows_the_data():
    prepared = prepare(BASE)
    assert 3 <= Subject.of(BASE, prepared).splits <= 10
    usual = Subject.of(BASE, prepared)
    assert usual.table_weak == usual.table_strong == usual.splits  # nothing is printed for them
    assert Subject.of(BASE, prepared, 7).splits == 7
    with pytest.raises(ConfigError, match="2..100"):
        Subject.of(BASE, prepared, 1)
    pair = replace(prepared, pair=object())
    with pytest.raises(ConfigError, match="--data"):
        Subject.of(BASE, pair)


def test_the_estimate_grows_with_the_data(subject):
    assert 0 < subject.seconds() < Subject.of(BASE, prepare(BASE), 4).seconds()


# The command ---------------------------------------------------------------------------------


def test_everything_from_the_command(tmp_path, monkeypatch, capsys):
    """On 30 titles, with a worker of this process and a made-up comparison."""

    def ensure_worker(store):
        worker = threading.Thread(
            target=work,
            args=(store,),
            kwargs={"idle_seconds": 0, "beside": True, "polite": False},
        )
        worker.start()
        worker.join()

    monkeypatch.setitem(
        sys.modules, "gmc_core.runs.worker", SimpleNamespace(ensure_worker=ensure_worker)
    )
    monkeypatch.setattr(check, "submit_comparison", finish_comparison)
    made = comparison({"paper": 0.0, "knn": 0.1})
    monkeypatch.setattr(check, "known_comparison", lambda store, run: made)
    files = {name: tmp_path / name for name in ("r.html", "r.md", "r.json")}
    command = [
        "claims", "--data", "sample", "--max-items", "30", "--splits", "2",
        "--out", str(files["r.html"]), "--markdown", str(files["r.md"]),
        "--json", str(files["r.json"]),
    ]  # fmt: skip
    assert main(command) == 0
    told = capsys.readouterr()
    assert "[15/15]" in told.err
    assert "15 experiments, 0 of them were there already" in told.err
    assert "Of 18 claims" in told.out
    found = {c["name"]: c for c in json.loads(files["r.json"].read_text())["claims"]}
    assert set(found) == {claim.name for claim in CLAIMS}
    unknown = {name for name, c in found.items() if c["verdict"] == "not measured"}
    assert unknown == {"table-weak", "table-strong", "gap", "filled"}
    assert found["objective"]["runs"] and found["memory"]["comparison"]
    low, value, high = (found["epsilon"][name] for name in ("low", "value", "high"))
    assert low < value < high
    # The second time it only reports, and the verdicts are the same.
    assert main([*command[:-6], "--now", "--json", "-"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert {c["name"]: c["verdict"] for c in again["claims"]} == {
        name: c["verdict"] for name, c in found.items()
    }


def test_a_run_whose_worker_died_is_resumed_a_few_times(store, subject, monkeypatch, capsys):
    from gmc_core.cli.claims import PATIENCE, _follow_runs

    tries = []

    def dying_worker(store):
        tries.append(1)
        end_one(store, "interrupted", "The worker died.")

    monkeypatch.setattr("gmc_core.cli.claims.POLL_SECONDS", 0)
    one = {"paper": submit(store, subject)["paper"]}
    for run in store.runs():
        if run.id != one["paper"].id:
            store.cancel(run.id)
    _follow_runs(store, one, lambda: dying_worker(store))
    assert len(tries) == 1 + PATIENCE
    assert "interrupted. The worker died." in capsys.readouterr().err


def test_without_results_the_command_says_so(capsys):
    assert main(["claims", "--data", "sample", "--max-items", "30", "--now"]) == 0
    told = capsys.readouterr()
    assert "not everything has been computed" in told.err
    assert "are not measured" in told.out


def test_mistakes_are_told_before_any_work(tmp_path, capsys):
    assert main(["claims", "--splits", "1"]) == 2
    assert "--splits must be 2 or more" in capsys.readouterr().err
    assert main(["claims", "--out", str(tmp_path / "no" / "x.html")]) == 2
    assert "no folder" in capsys.readouterr().err
    assert main(["claims", "--protocol", "strong"]) == 2


def test_data_that_the_filter_empties_are_told(capsys):
    assert main(["claims", "--data", "sample", "--min-user-ratings", "5000", "--now"]) == 2
    assert "left nothing" in capsys.readouterr().err


def test_a_label_for_every_experiment(subject):
    configs = subject.experiments()
    labels = {check.label(name, config) for name, config in configs.items()}
    assert len(labels) == len(configs)
    one = ExperimentConfig(
        filter=Filter(max_items=60), fit=FitSettings(components=2, model="mixture")
    )
    assert check.label("mixture 2", one) == "Claims: a mixture of 2"


def test_verdicts_of_a_store_without_runs(store, subject):
    verdicts = judge(look(store, subject))
    assert {name for name, v in verdicts.items() if v.verdict != "not measured"} == {"cost"}


def test_printed_figures_get_more_splits(monkeypatch):
    prepared = prepare(BASE)
    monkeypatch.setattr("gmc_core.paper.claims.subject.table_for", lambda data: "a table")
    monkeypatch.setattr("gmc_core.paper.claims.subject.default_counts", lambda users: (5000, 1000))
    like_movielens = Subject.of(BASE, prepared)
    assert (like_movielens.splits, like_movielens.table_weak) == (3, 16)
    assert like_movielens.table_strong == 60
    assert "strong" in like_movielens.experiments()
    assert like_movielens.experiments()["strong"].repetitions == 60
