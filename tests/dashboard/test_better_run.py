"""Which run a page opens by itself, and what it says where a better one is there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from computed_runs import computed, opened, small, texts

from gmc_core.protocol.baselines import BIAS
from gmc_core.runs.store import Store
from gmc_dashboard.shared.better_run import beaten

pytestmark = pytest.mark.usefixtures("fresh")

PLACES = [
    ("pages/covariance.py", {}),
    ("pages/recommend.py", {}),
    ("pages/recommend.py", {"who": "guess"}),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    with Store(folder) as store:
        runs = {
            "elsewhere": computed(store, small("strong", iterations=1)),
            "good": computed(store, small(), "the good one"),
            "bad": computed(store, small(epsilon=5.0), "the bad one"),
        }
    return folder, runs


@pytest.fixture
def runs(home, monkeypatch):
    monkeypatch.setenv("GMC_HOME", str(home[0]))
    assert home[1]["good"].summary["nmae"] < home[1]["bad"].summary["nmae"]
    return home[1]


def shown_run(at):
    return next(box.value for box in at.selectbox if box.label == "Model of the run")


def ways_on(at):
    return [button for button in at.button if button.key == "open_better_run"]


@pytest.mark.parametrize(("page", "query"), PLACES)
def test_without_a_choice_the_best_of_the_newest_split_opens(runs, page, query):
    at = opened(page, **query)
    assert not at.exception
    assert shown_run(at) == runs["good"].id
    assert not ways_on(at)


@pytest.mark.parametrize(("page", "query"), PLACES)
def test_a_link_opens_its_run_and_says_that_a_better_one_is_there(runs, page, query):
    at = opened(page, run=runs["bad"].id, **query)
    assert not at.exception
    assert shown_run(at) == runs["bad"].id
    assert "“the good one” errs less" in texts(at)
    [way] = ways_on(at)
    at = way.click().run()
    assert not at.exception
    assert shown_run(at) == runs["good"].id
    assert at.query_params["run"] in (runs["good"].id, [runs["good"].id])
    assert "errs less" not in texts(at)


def test_other_data_are_chosen_and_have_no_run(runs):
    at = opened("pages/recommend.py", data="ml-1m")
    assert not at.exception
    assert shown_run(at) == runs["good"].id


def with_bias(run, difference):
    known = {BIAS: {"nmae": run.summary["nmae"] + difference}}
    return replace(run, summary={**run.summary, "baselines": known})


def test_a_fit_that_the_averages_beat_is_said_to_be(runs):
    run = with_bias(runs["bad"], -0.2)
    words, better = beaten(run, [run])
    assert "Two averages that know nothing of tastes" in words
    assert better is None
    run = with_bias(runs["bad"], -1e-6)  # chance
    assert beaten(run, [run]) == ("", None)
    words, better = beaten(run, [run, runs["elsewhere"], runs["good"]])
    assert better.id == runs["good"].id
    assert "against" in words
