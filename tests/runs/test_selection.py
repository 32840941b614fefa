"""Runs whose settings auto chooses: inside the training set, then fitted like any others."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from store_workers import small

from gmc_core.base.errors import ConfigError
from gmc_core.cli import build_parser
from gmc_core.cli.arguments import config_from_arguments
from gmc_core.data.ratings import Ratings
from gmc_core.fitting import auto
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.preparing import make_split, prepare
from gmc_core.protocol.filters import Filter
from gmc_core.runs.report_html import report
from gmc_core.runs.store import Run, Store, StoreError
from gmc_core.runs.store.selection import Selection
from gmc_core.runs.store.submitting import key_of
from gmc_core.runs.store.transfer import export, import_run
from gmc_core.runs.worker import compute, work

ASKED = Selection(seconds=0.2)


def few(**changes: Any) -> ExperimentConfig:
    """The sample's 60 most rated titles, in single precision."""
    return replace(small(dtype="float32"), filter=Filter(max_items=60), **changes)


def computed(store: Store) -> None:
    work(store, idle_seconds=0, polite=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Run, list[Ratings]]:
    """A store with such a run, and what its settings were chosen on."""
    store, seen = Store(tmp_path_factory.mktemp("store")), []

    def choose(train: Ratings, **options: Any) -> auto.Choice:
        seen.append(train)
        return auto.choose(train, **options)

    run, new = store.submit_or_find(few(seed=4), selection=ASKED)
    assert new and run.choosing and run.key is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compute, "choose", choose)
        computed(store)
    return store, store.run(run.id), seen


def test_the_settings_are_chosen_on_the_training_ratings_of_the_runs_split(finished) -> None:
    _, run, (train,) = finished
    split = make_split(run.config, prepare(run.config), 4)
    np.testing.assert_array_equal(train.values, split.train.values)
    for user, item in zip(split.test_users.tolist(), split.test_items.tolist(), strict=True):
        assert item not in train.of_user(user)[0]


def test_the_run_has_the_chosen_settings_and_says_how_they_came(finished) -> None:
    store, run, _ = finished
    assert run.state == "finished" and not run.choosing
    assert "held out inside the training set" in run.selection.reason
    assert run.selection.tried >= 2 and run.selection.best > 0
    assert run.config.fit.dtype == "float32"
    assert run.title.startswith("sample, auto: ")
    assert f"L = {run.iterations}" in run.title
    assert len(store.records(run.id)) == run.iterations
    page = report(store, run.id)
    assert "auto.reason" in page and "held out inside the training set" in page


def test_its_key_and_its_command_are_those_of_the_chosen_settings(finished) -> None:
    store, run, _ = finished
    same, new = store.submit_or_find(run.config)
    assert same.id == run.id and not new
    program, name, *arguments = shlex.split(store.command(run.id))
    assert (program, name) == ("gmc", "fit")
    repeated = config_from_arguments(build_parser().parse_args([name, *arguments]))
    assert repeated.seed == 4
    assert key_of(repeated, run.data) == run.key


def test_the_same_question_finds_the_answer_and_another_is_asked_anew(finished) -> None:
    store, run, _ = finished
    other_fit = replace(few(seed=4), fit=replace(run.config.fit, iterations=2))
    assert store.submit_or_find(other_fit, selection=ASKED)[0].id == run.id
    for selection, config in ((Selection(seconds=3), few(seed=4)), (ASKED, few(seed=5))):
        other, new = store.submit_or_find(config, selection=selection)
        assert new
        assert store.submit_or_find(config, selection=selection) == (other, False)
        store.cancel(other.id)
        store.delete(other.id)


def test_a_run_that_has_not_chosen_has_no_settings_to_show(tmp_path: Path) -> None:
    store = Store(tmp_path)
    selection = Selection(seconds=30, attributes=False)
    run = store.submit_or_find(few(), selection=selection)[0]
    assert "settings not chosen yet" in run.title
    assert "L =" not in run.title and "ε" not in run.title
    program, name, *arguments = shlex.split(store.command(run.id))
    assert (program, name) == ("gmc", "auto")
    parsed = build_parser().parse_args([name, *arguments])
    assert (parsed.seconds, parsed.use_attributes, parsed.use_times) == (30, False, False)
    assert config_from_arguments(parsed).fit.dtype == "float32"
    assert "fit.epsilon" not in report(store, run.id)


def test_cancelled_while_choosing_it_chooses_anew_when_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    run = store.submit_or_find(few(), selection=ASKED)[0]

    def stopped(train: Ratings, **options: Any) -> auto.Choice:
        options["on_trial"](auto.Trial("paper", few().fit, 0.5, 3, 0.1))
        store.cancel(run.id)
        while True:
            options["team"].check()

    with monkeypatch.context() as patch:
        patch.setattr(compute, "choose", stopped)
        computed(store)
    run = store.run(run.id)
    assert (run.state, run.choosing) == ("cancelled", True)
    assert (run.selection.tried, run.selection.best) == (1, 0.5)
    assert store.model_path(run.id) is None
    store.resume(run.id)
    computed(store)
    run = store.run(run.id)
    assert run.state == "finished" and not run.choosing
    assert run.selection.tried > 1


def test_what_one_split_trains_on_another_holds_out(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="training set of one split"):
        Store(tmp_path).submit_or_find(few(repetitions=2), selection=ASKED)


@pytest.mark.parametrize("chosen", [True, False])
def test_it_travels(finished, tmp_path: Path, chosen: bool) -> None:
    store, run, _ = finished
    if not chosen:
        store = Store(tmp_path / "one")
        run = store.submit_or_find(few(), selection=ASKED)[0]
    export(store, run.id, tmp_path / "run.zip")
    taken = import_run(Store(tmp_path / "other"), tmp_path / "run.zip")
    assert taken.selection == run.selection
    assert taken.config == run.config
    assert taken.key == run.key
    assert taken.title == run.title


def test_numbers_without_a_meaning_are_refused(finished, tmp_path: Path) -> None:
    store, run, _ = finished
    export(store, run.id, tmp_path / "run.json")
    content = json.loads((tmp_path / "run.json").read_text())
    for name, value in (("seconds", 0), ("spent", float("nan")), ("tried", -1), ("best", "low")):
        changed = json.loads(json.dumps(content))
        changed["run"]["selection"][name] = value
        (tmp_path / "changed.json").write_text(json.dumps(changed))
        with pytest.raises(StoreError, match="damaged"):
            import_run(Store(tmp_path / "other"), tmp_path / "changed.json")
