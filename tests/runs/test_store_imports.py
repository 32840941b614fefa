"""What others hand in is not believed: an imported run answers only if this store sealed it."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from store_workers import figures, small

from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.duration import Estimate
from gmc_core.paper.claims.check import runs_of
from gmc_core.runs.store import Run, Store
from gmc_core.runs.store.submitting import key_of, source_of
from gmc_core.runs.store.transfer import content_of, export, import_run
from gmc_core.runs.sweeps import SweepConfig, submit_or_find_sweep
from gmc_core.runs.worker import work

CONFIG = replace(small(iterations=3), repetitions=2)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("store"))
    store.submit(CONFIG)
    work(store, idle_seconds=0, polite=False)
    return store


@pytest.fixture
def run(store: Store) -> Run:
    return store.runs()[-1]


@pytest.fixture
def exported(store: Store, run: Run, tmp_path: Path) -> Path:
    return export(store, run.id, tmp_path / "run.zip")


@pytest.fixture
def again(store: Store, exported: Path, tmp_path: Path) -> Store:
    """The same store, with its secret and without its runs."""
    other = Store(tmp_path / "again")
    for row in store.rows("SELECT value FROM settings WHERE name = 'seal'"):
        with other.writing() as database:
            database.execute("INSERT INTO settings VALUES ('seal', ?)", (row["value"],))
    return other


def edited(exported: Path, edit: Callable[[dict[str, Any]], None], **files: bytes) -> Path:
    """The archive with its run.json and some of its files changed."""
    target = exported.with_name("edited.zip")
    with zipfile.ZipFile(exported) as source, zipfile.ZipFile(target, "w") as archive:
        for name in source.namelist():
            content = files.get(Path(name).name.removesuffix(".npz"), source.read(name))
            if name == "run.json":
                told = json.loads(content)
                edit(told)
                content = json.dumps(told).encode()
            archive.writestr(name, content)
    return target


def answers(store: Store, config: Any, data: dict[str, Any] | None) -> bool:
    """Whether a fresh start finds a finished run."""
    assert data is not None
    store.remember_data(source_of(config), data)
    found, new = store.submit_or_find(config)
    if new:
        store.delete(found.id)
    return not new


def test_the_stores_own_run_comes_back_and_answers(
    exported: Path, again: Store, store: Store, run: Run
) -> None:
    taken = import_run(again, exported)
    assert taken.reusable
    assert taken.key == run.key
    assert figures(again, taken.id) == figures(store, run.id)
    assert answers(again, run.config, run.data)
    new = again.submit(run.config, again=False)
    assert new.id == taken.id


def test_the_json_of_the_stores_own_run_answers_without_a_model(
    again: Store, store: Store, run: Run, tmp_path: Path
) -> None:
    taken = import_run(again, export(store, run.id, tmp_path / "run.json"))
    assert taken.reusable
    assert not taken.keeps_model


def test_another_stores_run_is_shown_and_computed_anew(
    exported: Path, run: Run, tmp_path: Path
) -> None:
    other = Store(tmp_path / "other")
    taken = import_run(other, exported)
    assert taken.state == "finished"
    assert taken.summary == run.summary
    assert not taken.reusable
    assert not answers(other, run.config, run.data)
    new = other.submit(run.config)
    work(other, idle_seconds=0, polite=False)
    assert "identical" not in other.run(new.id).message
    assert other.run(new.id).reusable
    assert other.submit(run.config).id == new.id
    # Exported from there and taken in there again, it is still not that store's own.
    export(other, taken.id, tmp_path / "twice.zip")
    assert not import_run(other, tmp_path / "twice.zip").reusable


def change_epsilon(told: dict[str, Any]) -> None:
    told["config"]["fit"]["epsilon"] = 0.77
    told["run"]["config"]["fit"]["epsilon"] = 0.77


def change_figures(told: dict[str, Any]) -> None:
    told["summary"]["nmae"] = 0.1
    told["run"]["summary"]["nmae"] = 0.1


def change_repetition(told: dict[str, Any]) -> None:
    told["repetitions"][1]["scores"]["nmae"] = 0.1


def change_data(told: dict[str, Any]) -> None:
    told["data"]["sha256"] = told["run"]["data_sha256"] = "0" * 64


def change_epsilon_with_its_key(told: dict[str, Any]) -> None:
    change_epsilon(told)
    config = ExperimentConfig.from_dict(told["config"])
    told["run"]["key"] = key_of(config, told["data"])


def drop_seal(told: dict[str, Any]) -> None:
    del told["seal"]


@pytest.mark.parametrize(
    "edit",
    [
        change_epsilon, change_figures, change_repetition, change_data,
        change_epsilon_with_its_key, drop_seal,
    ],
)  # fmt: skip
def test_an_edited_run_answers_for_nothing(
    exported: Path, again: Store, run: Run, edit: Callable[[dict[str, Any]], None]
) -> None:
    taken = import_run(again, edited(exported, edit))
    assert not taken.reusable
    # Its key is that of what it now says, not the one it was handed in with.
    assert taken.key == key_of(taken.config, taken.data)
    assert taken.data_sha256 == taken.data["sha256"]  # type: ignore[index]
    for config, data in ((taken.config, taken.data), (run.config, run.data)):
        assert not answers(again, config, data)


def test_a_key_is_never_copied(exported: Path, again: Store, run: Run) -> None:
    wanted = key_of(replace(run.config, seed=99), run.data)

    def edit(told: dict[str, Any]) -> None:
        told["run"]["key"] = wanted

    taken = import_run(again, edited(exported, edit))
    assert taken.key == run.key
    assert not taken.reusable


def test_edited_predictions_and_files_break_the_seal(
    exported: Path, again: Store, store: Store, run: Run, tmp_path: Path
) -> None:
    held_out = store.held_out(run.id, 0)
    assert held_out is not None
    np.savez(tmp_path / "x.npz", **{**vars(held_out), "predictions": held_out.actual})
    files = {"held-out-0": (tmp_path / "x.npz").read_bytes()}
    taken = import_run(again, edited(exported, lambda told: None, **files))
    assert not taken.reusable
    assert "Do not rely on these figures" in taken.message
    assert "repetition 1" in taken.message


def test_figures_that_are_not_of_their_predictions_are_told(exported: Path, again: Store) -> None:
    told = import_run(again, edited(exported, change_figures)).message
    assert "the NMAE of the result is given as 0.1000" in told
    assert import_run(again, exported).message == ""


@pytest.mark.parametrize("version", [None, 0, 10**6])
def test_a_run_of_another_version_of_the_model_does_not_answer(
    tmp_path: Path, version: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "s")
    with monkeypatch.context() as patch:
        if version is not None:
            patch.setattr(ExperimentConfig, "key", _key_of_version(version))
        run = store.submit(small(iterations=2))
        work(store, idle_seconds=0, polite=False)
        run = store.run(run.id)
        export(store, run.id, tmp_path / "run.zip")
    store.delete(run.id)
    taken = import_run(store, tmp_path / "run.zip")
    assert taken.reusable == (version is None)
    assert (taken.key == run.key) == (version is None)
    assert answers(store, run.config, run.data) == (version is None)


def _key_of_version(version: int) -> Callable[..., str]:
    usual = ExperimentConfig.key
    return lambda self, *args: f"{version}{usual(self, *args)}"


def test_an_archive_without_a_key_does_not_answer(exported: Path, again: Store) -> None:
    def edit(told: dict[str, Any]) -> None:
        told["run"]["key"] = None

    assert not import_run(again, edited(exported, edit)).reusable


@pytest.mark.parametrize(
    "junk",
    [{"iterations": "ab"}, {"iterations": [1, "x", 1]}, {"iterations": [1.0, math.nan, 1.0]},
     {"saving": None}, {"preparing": math.inf}, {"repetitions": 10**400}],
)  # fmt: skip
def test_what_a_file_says_of_time_breaks_no_page(
    exported: Path, again: Store, run: Run, junk: dict[str, Any]
) -> None:
    assert run.cost is not None
    estimate = {**run.cost["estimate"], **junk}
    with pytest.raises(ValueError, match="no number|no length|no estimate"):
        Estimate.from_dict(estimate)

    def edit(told: dict[str, Any]) -> None:
        told["run"]["state"] = "interrupted"
        told["repetitions"] = []
        told["run"]["cost"]["estimate"] = estimate

    taken = import_run(again, edited(exported, edit))
    again.resume(taken.id)
    assert "estimate" not in (again.run(taken.id).cost or {})
    # Of one that an older version has taken in, as well.
    with again.writing() as database:
        cost = json.dumps({**(taken.cost or {}), "estimate": estimate})
        database.execute("UPDATE runs SET cost = ? WHERE id = ?", (cost, taken.id))
    behind = again.submit(small(epsilon=9.0))
    assert again.remaining_seconds(taken.id) == pytest.approx(6 * run.cost["seconds"])
    assert again.waiting(behind.id).seconds == again.remaining_seconds(taken.id)


def test_an_unfinished_run_of_other_settings_begins_anew(
    store: Store, run: Run, exported: Path, again: Store
) -> None:
    def stop(told: dict[str, Any]) -> None:
        told["run"]["state"] = "interrupted"
        told["repetitions"][1] = {"seed": 1, "records": []}

    def stop_and_change(told: dict[str, Any]) -> None:
        stop(told)
        change_epsilon(told)

    kept = import_run(again, edited(exported, stop))
    assert again.held_out(kept.id, 0) is not None
    taken = import_run(again, edited(exported, stop_and_change))
    assert again.held_out(taken.id, 0) is None
    again.resume(taken.id)
    work(again, idle_seconds=0, polite=False)
    fresh = again.submit(taken.config)
    assert fresh.id != taken.id
    work(again, idle_seconds=0, polite=False)
    assert figures(again, taken.id) == figures(again, fresh.id)
    assert not again.run(taken.id).reusable


def test_a_sweeps_fits_are_judged_one_by_one(again: Store, tmp_path: Path) -> None:
    sweep = submit_or_find_sweep(again, SweepConfig(small(), (0.1,), (1,), (0, 1)))[0]
    work(again, idle_seconds=0, polite=False)
    export(again, sweep.id, tmp_path / "sweep.zip")
    again.delete(sweep.id)
    taken = import_run(again, tmp_path / "sweep.zip")
    assert [child.reusable for child in again.runs(parent=taken.id)] == [True, True]

    def edit(told: dict[str, Any]) -> None:
        told["children"][0]["summary"]["nmae"] = 0.1

    other = import_run(again, edited(tmp_path / "sweep.zip", edit))
    assert [child.reusable for child in again.runs(parent=other.id)] == [False, False]


def test_claims_rest_on_no_imported_run(exported: Path, run: Run, tmp_path: Path) -> None:
    class About:
        data = run.data

        def experiments(self) -> dict[str, Any]:
            return {"paper": run.config}

    other = Store(tmp_path / "claims")
    taken = import_run(other, exported)
    assert taken.key == key_of(run.config, run.data)
    assert runs_of(other, About()) == {}  # type: ignore[arg-type]


def test_the_secret_of_the_seal_is_in_no_export(
    store: Store, run: Run, exported: Path, tmp_path: Path
) -> None:
    secret = store.rows("SELECT value FROM settings WHERE name = 'seal'")[0]["value"]
    for name in ("run.json", "run.html", "run.csv"):
        assert secret.encode() not in export(store, run.id, tmp_path / name).read_bytes()
    assert secret.encode() not in exported.read_bytes()
    assert "seal" not in content_of(store, run)
