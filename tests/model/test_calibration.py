"""Calibrated intervals: kept with the model, and used wherever an interval is shown."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from making import ratings_of, skewed_table

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.cli import main
from gmc_core.fitting import intervals
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.fit import run_fit
from gmc_core.fitting.intervals import calibrate, calibrated, covered, pair_intervals
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.settings import FitSettings
from gmc_core.model.calibration import UNCALIBRATED, Calibration, note_of
from gmc_core.model.completion import completed_blocks
from gmc_core.model.model_file import load_model, save_model
from gmc_core.protocol.filters import Filter
from gmc_core.protocol.splits import weak_split
from gmc_core.runs.store import Store, StoreError, calibrations
from gmc_core.runs.store import queue as worker_side
from gmc_core.runs.worker import calibrating, work

KNOWN = Calibration(0.9, 2.5, 300, 100, 1e9)


def fitted(name="paper", seed=0, **changes):
    settings = {**settings_for(name).as_dict(), "iterations": 4, **changes}
    return run_fit(weak_split(skewed_table(seed), seed), FitSettings.from_dict(settings))


@pytest.fixture(scope="module")
def plain():
    return fitted().model()


@pytest.fixture(scope="module")
def known(plain):
    return replace(plain, calibration=KNOWN)


def test_a_model_file_keeps_its_calibration_and_older_files_have_none(known, plain, tmp_path):
    path = save_model(known, tmp_path / "model.npz")
    assert load_model(path).calibration == KNOWN
    assert load_model(save_model(known, path, with_ratings=False)).calibration == KNOWN
    assert load_model(save_model(plain, path)).calibration is None


@pytest.mark.parametrize("name", ["paper", "exact", "ordinal"])
def test_the_shown_interval_is_the_one_that_was_calibrated(name):
    """In ratings, through recommend's and predict's own functions: as many as counted."""
    running = fitted(name)
    split, model = running.split, running.model()
    model = replace(model, calibration=replace(KNOWN, factor=1.3))
    ids = split.train.users.ids[split.test_users], model.items.ids[split.test_items]
    low, high = pair_intervals(model, *ids)
    inside = (low <= split.test_values) & (split.test_values <= high)
    np.testing.assert_array_equal(inside, covered(running, 1.3))
    for k in range(5):
        posterior = model.posterior_of(ids[0][k])
        ends = model.answers_of(posterior, [split.test_items[k]]).interval()
        np.testing.assert_allclose(np.ravel(ends), [low[k], high[k]], atol=1e-3)


def test_recommend_gives_the_calibrated_interval(known, plain):
    posterior = known.posterior([0, 1], [5.0, 4.0])
    for item, narrow in zip(
        known.recommend(posterior, 5), plain.recommend(posterior, 5), strict=True
    ):
        scale = known.scale
        assert item.low == pytest.approx(max(item.predicted - 2.5 * item.sd, scale.low))
        assert item.high == pytest.approx(min(item.predicted + 2.5 * item.sd, scale.high))
        assert narrow.low == pytest.approx(max(item.predicted - 1.64 * item.sd, scale.low))


def test_which_interval_it_is_is_said(known):
    assert "90 % of 300 ratings" in note_of(KNOWN)
    assert "2.50" in note_of(KNOWN)
    assert "not been calibrated" in note_of(None)
    with pytest.raises(ValueError, match="no level"):
        Calibration(0.9, float("nan"), 1, 1)


def test_calibrating_uses_training_ratings_and_leaves_predictions_alone(plain):
    model = calibrated(plain, 0.8)
    assert model.calibration.level == 0.8
    assert model.calibration.users == (plain.ratings.user_counts >= 2).sum()
    assert model.gaussian is plain.gaussian
    with pytest.raises(ConfigError, match="without its training ratings"):
        calibrated(replace(plain, ratings=None))


def test_five_users_calibrate_no_interval_of_nine_in_ten():
    values = np.random.default_rng(0).integers(1, 6, (5, 8)).astype(float)
    few = ratings_of(values, np.ones(values.shape, dtype=bool))
    with pytest.raises(DataError, match="5 users .* too few"):
        calibrate(few, FitSettings(iterations=2), 0.9)
    assert calibrate(few, FitSettings(iterations=2), 0.8).users == 5


@pytest.mark.parametrize("settings", [{"signals": "columns"}, {"components": 2}])
def test_intervals_of_pairs_for_signals_of_every_kind(settings):
    name = "mixture" if "components" in settings else "paper"
    model = fitted(name, **settings).model()
    users, items = model.ratings.users.ids[:3].tolist(), model.items.ids[:3].tolist()
    low, high = pair_intervals(model, [*users, "nobody", users[0]], [*items, items[0], 10**9])
    assert np.all(low[:3] <= high[:3])
    assert np.isnan(low[3]) == (not model.folds_in)
    assert np.isnan(low[4])
    (block,) = completed_blocks(model, interval=True)
    unknown = [k for k in range(3) if not block.observed[k, k]]
    np.testing.assert_allclose(block.low[unknown, unknown], low[unknown], atol=1e-6)
    np.testing.assert_allclose(block.high[unknown, unknown], high[unknown], atol=1e-6)


def test_the_commands_use_and_say_it(known, plain, tmp_path, capsys):
    path = str(save_model(known, tmp_path / "known.npz"))
    user, item = known.ratings.users.ids[0], known.items.ids[0]
    assert main(["recommend", "--model", path, "--rate", f"id:{item}=5", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["interval"]["calibrated"]
    assert told["interval"]["factor"] == 2.5
    low, high = told["recommendations"][0]["interval"]
    assert low < told["recommendations"][0]["predicted"] <= high
    assert main(["recommend", "--model", path, "--rate", f"id:{item}=5"]) == 0
    out, err = capsys.readouterr()
    assert "90 % interval" in out
    assert "90 % of 300 ratings" in err

    pairs = tmp_path / "pairs.csv"
    pairs.write_text(f"user,item\n{user},{item}\n{user},999999\n")
    arguments = ["predict", "--model", path, "--pairs", str(pairs)]
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("user,item,prediction,known\n")
    assert main([*arguments, "--interval"]) == 0
    out, err = capsys.readouterr()
    rows = list(csv.DictReader(out.splitlines()))
    expected = pair_intervals(known, [user], [item])
    assert [float(rows[0]["low"]), float(rows[0]["high"])] == pytest.approx(
        np.ravel(expected), 1e-4
    )
    assert rows[1]["low"] == rows[1]["high"] == ""
    assert "90 % of 300 ratings" in err

    out_file = tmp_path / "filled.csv"
    arguments = ["complete", "--model", path, "--out", str(out_file), "--sd", "--interval"]
    assert main([*arguments, "--long"]) == 0
    assert "90 % of 300 ratings" in capsys.readouterr().err
    header = out_file.read_text().split("\n", 1)[0]
    assert header == "user,item,rating,observed,sd,low,high"
    assert main(arguments) == 0
    files = [line.rsplit("/", 1)[1] for line in capsys.readouterr().out.splitlines()]
    assert files == ["filled.csv", "filled.sd.csv", "filled.low.csv", "filled.high.csv"]

    bare = str(save_model(plain, tmp_path / "plain.npz"))
    assert main(["recommend", "--model", bare, "--rate", f"id:{item}=5"]) == 0
    err = capsys.readouterr().err
    assert UNCALIBRATED in err
    assert f"gmc calibrate --model {bare}" in err
    assert main(["calibrate", "--model", bare, "--level", "0.8"]) == 0
    assert "80 % of" in capsys.readouterr().out
    assert load_model(bare).calibration.level == 0.8
    assert main(["calibrate", "--model", bare, "--level", "80"]) == 2
    assert "between 0 and 1" in capsys.readouterr().err


def test_fit_calibrates_what_it_saves(tmp_path, capsys):
    out = str(tmp_path / "m.npz")
    arguments = ["fit", "--data", "sample", "--max-items", "40", "--iterations", "2"]
    assert main([*arguments, "--model-out", out, "--without-ratings"]) == 0
    assert "calibrating the intervals" in capsys.readouterr().err
    assert load_model(out).calibration.level == 0.9
    assert main([*arguments, "--model-out", out, "--intervals", "none"]) == 0
    assert load_model(out).calibration is None
    assert main([*arguments, "--intervals", "0.9"]) == 2
    assert "give --model-out" in capsys.readouterr().err
    assert main([*arguments, "--model-out", out, "--intervals", "90"]) == 2
    assert "between 0 and 1" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["fit", "--iterations", "2"], ["auto", "--seconds", "0.1"]])
@pytest.mark.parametrize("trouble", [KeyboardInterrupt(), ConfigError("It broke.")])
def test_a_finished_fit_outlives_the_end_of_its_calibration(
    command, trouble, tmp_path, capsys, monkeypatch
):
    def broken(*arguments, **more):
        raise trouble

    monkeypatch.setattr(intervals, "calibrated", broken)
    out = str(tmp_path / "m.npz")
    arguments = ["--data", "sample", "--max-items", "30", "--intervals", "0.9", "--model-out", out]
    assert main([*command, *arguments]) != 0
    said = capsys.readouterr().err
    assert "not calibrated" in said
    assert f"gmc calibrate --model {out}" in said
    model = load_model(out)
    assert model.iteration > 0
    assert model.calibration is None


def experiment():
    return ExperimentConfig(filter=Filter(max_items=40), fit=FitSettings(iterations=2))


def test_the_worker_calibrates_a_finished_run_in_spare_time(tmp_path, monkeypatch):
    monkeypatch.setenv("GMC_SPARE_TIME", "1")
    with Store(tmp_path) as store:
        run = store.submit(experiment())
        assert work(store, idle_seconds=0, polite=False) == 1
        model = store.model(run.id)
        assert model.calibration is not None
        assert calibrations.trouble(store, run.id) is None
        assert store.run(run.id).summary["nmae"] is not None


def test_a_costly_run_is_calibrated_only_when_asked_and_a_queued_run_goes_first(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(calibrating, "AFFORDABLE_SECONDS", 0.0)
    monkeypatch.setattr(calibrating, "_LOOK_SECONDS", 0.0)
    with Store(tmp_path) as store:
        run = store.submit(experiment())
        work(store, idle_seconds=0, polite=False)
        assert store.model(run.id).calibration is None
        calibrations.ask(store, run.id)
        other = store.submit(experiment(), again=True)
        heartbeat = calibrating.Heartbeat(store.path, "x")
        assert calibrating.calibrate_one(store, heartbeat)
        heartbeat.stop()
        assert calibrations.waiting(store) == [run.id]  # stopped at once
        work(store, idle_seconds=0, polite=False)
        assert store.run(other.id).state == "finished"
        assert store.model(run.id).calibration is not None


def test_what_cannot_be_calibrated_says_why_and_a_deleted_run_leaves_nothing(tmp_path):
    with Store(tmp_path) as store:
        run = store.submit(experiment())
        worker_side.register(store, "w", beside=True)
        path = store.folder(run.id) / "model.npz"
        path.parent.mkdir(parents=True)
        store.cancel(run.id)
        worker_side.retire(store, "w")
        save_model(replace(fitted().model(), ratings=None), path)
        calibrations.ask(store, run.id)
        work(store, idle_seconds=0, polite=False)
        assert "without its training ratings" in calibrations.trouble(store, run.id)
        assert calibrations.waiting(store) == []
        calibrations.ask(store, run.id)
        store.delete(run.id)
        work(store, idle_seconds=0, polite=False)
        assert calibrations.trouble(store, run.id) is None


@pytest.mark.parametrize("level", ["1", "0", "90"])
def test_a_level_that_is_none_is_refused_before_anything(tmp_path, capsys, level):
    missing = str(tmp_path / "not there.npz")
    assert main(["calibrate", "--model", missing, f"--level={level}"]) == 2
    assert "between 0 and 1" in capsys.readouterr().err


@pytest.fixture
def asked(tmp_path, plain):
    """A store, a cancelled run with a model whose calibration was asked for, and a heartbeat."""
    with Store(tmp_path) as store:
        run = store.submit(experiment())
        path = store.folder(run.id) / "model.npz"
        path.parent.mkdir(parents=True)
        store.cancel(run.id)
        save_model(plain, path)
        calibrations.ask(store, run.id)
        heartbeat = calibrating.Heartbeat(store.path, "x")
        yield store, run.id, path, heartbeat
        heartbeat.stop()


def test_a_model_that_was_replaced_during_its_calibration_stays(asked, plain, monkeypatch):
    store, id, path, heartbeat = asked

    def slow(model, level, **more):
        save_model(replace(plain, iteration=3), path)
        return replace(model, calibration=KNOWN)

    monkeypatch.setattr(intervals, "calibrated", slow)
    assert calibrating.calibrate_one(store, heartbeat)
    assert load_model(path).iteration == 3
    assert load_model(path).calibration is None
    assert calibrations.waiting(store) == [id]  # the new one is to be calibrated
    assert sorted(one.name for one in path.parent.iterdir()) == ["model.npz"]


def test_the_model_of_a_run_that_goes_on_is_left_alone(asked, monkeypatch):
    store, id, path, heartbeat = asked

    def slow(model, level, **more):
        with store.writing() as database:
            database.execute("UPDATE runs SET state = 'running' WHERE id = ?", (id,))
        return replace(model, calibration=KNOWN)

    monkeypatch.setattr(intervals, "calibrated", slow)
    assert calibrating.calibrate_one(store, heartbeat)
    assert load_model(path).calibration is None
    assert calibrations.waiting(store) == [id]
    assert not calibrating.calibrate_one(store, heartbeat)  # nothing can be done while it runs


def test_the_command_leaves_a_file_that_was_replaced(plain, tmp_path, capsys, monkeypatch):
    path = save_model(plain, tmp_path / "m.npz")

    def slow(model, level, **more):
        save_model(replace(plain, iteration=3), path)
        return replace(model, calibration=KNOWN)

    monkeypatch.setattr(intervals, "calibrated", slow)
    assert main(["calibrate", "--model", str(path)]) != 0
    assert "Calibrate it again" in capsys.readouterr().err
    assert load_model(path).iteration == 3


def test_a_calibration_that_breaks_ends_no_worker(asked, monkeypatch):
    store, id, _, heartbeat = asked

    def broken(*arguments, **more):
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(intervals, "calibrated", broken)
    assert calibrating.calibrate_one(store, heartbeat)
    assert "ZeroDivisionError: by nothing" in calibrations.trouble(store, id)
    assert calibrations.waiting(store) == []


def test_a_store_that_cannot_be_asked_makes_a_calibration_wait(asked, monkeypatch):
    store, id, _, heartbeat = asked

    def busy(*arguments, **more):
        raise StoreError("The store is busy.")

    monkeypatch.setattr(intervals, "calibrated", busy)
    assert not calibrating.calibrate_one(store, heartbeat)
    assert calibrations.waiting(store) == [id]
    # A look at the queue that fails is no reason to stop.
    sooner = calibrating._MoreUrgent(store, heartbeat, id)
    monkeypatch.setattr(store, "rows", busy)
    assert not sooner()


def test_a_deleted_run_takes_its_request_along(asked):
    store, id, _, _ = asked
    store.delete(id)
    assert calibrations.trouble(store, id) is None
