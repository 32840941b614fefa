"""Folders of older comparisons become runs, once, and nothing in them is lost."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gmc_core.cli import main
from gmc_core.cli.older_comparisons import take_in_older
from gmc_core.comparison.comparators import BASELINES
from gmc_core.comparison.comparators.method import Baseline
from gmc_core.comparison.compare import compare
from gmc_core.comparison.comparison_files import method_key
from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.preparing import describe, make_split, prepare
from gmc_core.protocol.filters import Filter
from gmc_core.runs.comparisons import (
    all_comparisons,
    comparison_named,
    comparison_of,
)
from gmc_core.runs.store import Store
from gmc_core.runs.store.identity import host, process_mark
from gmc_core.runs.worker import work

NAME = "0fe749eb6e0b"
METHODS = [BASELINES[name] for name in ("bias", "item")]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ExperimentConfig:
    """A home of the test's own, beside a few ratings."""
    monkeypatch.setenv("GMC_HOME", str(tmp_path / "home"))
    file = tmp_path / "ratings.csv"
    lines = [f"{u},{i},{1 + (3 * u + i * i + u * i) % 5}" for u in range(40) for i in range(12)]
    file.write_text("user,item,rating\n" + "\n".join(lines[::2] + lines[1::4]))
    return ExperimentConfig(data=str(file), filter=Filter(1, 1))


def older(config: ExperimentConfig, state: str = "finished", *, name: str = NAME, done: int = 2):
    """A folder as earlier versions wrote it, with ``done`` of two splits; and the result."""
    path = Path(os.environ["GMC_HOME"]) / "comparisons" / name
    prepared = prepare(config)
    splits = [make_split(config, prepared, seed) for seed in range(done)]
    result = compare(METHODS, splits, folder=path) if done else None
    for file in list(path.glob("*.npz")):
        kind, _, rest = file.name.partition("--")
        (path / f"{kind}s").mkdir(exist_ok=True)
        file.rename(path / f"{kind}s" / rest)
    path.mkdir(parents=True, exist_ok=True)
    command = [
        "compare", f"--data={config.data}", "--protocol=weak", "--min-user-ratings=1",
        "--min-item-ratings=1",
    ]  # fmt: skip
    last = ["--seeds=0,1", "--methods=bias,item", "--reference=item"]
    scale = prepared.ratings.scale
    plan = {
        "title": "Mine, weak generalization",
        "command": [*command, *last, f"--folder={path}"],
        "protocol": "weak",
        "seeds": [0, 1],
        "methods": [[m.name, m.label, method_key(m)] for m in METHODS],
        "reference": "item",
        "scale": [scale.low, scale.high, scale.step],
        "splits": list(result.held_out) if result else [],
        "repeat": [*command, f"--ratings-sha256={prepared.data_sha256[:16]}", *last],
    }
    (path / "comparison.json").write_text(json.dumps(plan))
    status = {
        "status": {
            "state": state, "done": 2 * done, "total": 4, "now": "", "began": 0.0,
            "message": "Why.",
        },
        "failures": [], "host": host(), "pid": os.getpid(), "process": process_mark(os.getpid()),
    }  # fmt: skip
    (path / "status.json").write_text(json.dumps(status))
    os.utime(path / "comparison.json", (1000, 1000))
    os.utime(path / "status.json", (2000, 2000))
    return path, result


def files(path: Path) -> dict[str, bytes]:
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


def test_a_finished_one_becomes_a_run_and_stays_where_it_is(config: ExperimentConfig) -> None:
    path, result = older(config)
    before = files(path)
    store = Store()
    assert take_in_older(store) == []
    (run,) = all_comparisons(store)
    assert (run.state, run.title, run.iteration, run.progress) == (
        "finished", "Mine, weak generalization", 4, 1.0,
    )  # fmt: skip
    assert (run.created, run.ended) == (1000, 2000)
    assert run.config.data == config.data and run.config.filter == config.filter
    found = comparison_of(store, run)
    assert found.reference == "item"
    assert run.version == "before 0.2"
    assert found.rows() == result.against("item").rows()
    assert run.summary["table"] == found.as_dict()
    assert files(path) == before
    assert comparison_named(store, NAME).id == run.id
    assert comparison_named(store, run.id).id == run.id
    with store.writing() as database:  # as it was stored at first
        database.execute("UPDATE runs SET version = 'of before'")
    assert store.run(run.id).version == "before 0.2"
    for _ in range(2):
        assert take_in_older(Store()) == []
    assert len(all_comparisons(store)) == 1


def test_its_fits_serve_a_new_one(
    config: ExperimentConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    older(config)
    store = Store()
    take_in_older(store)
    fits = []
    original = Baseline.predict
    monkeypatch.setattr(
        Baseline, "predict", lambda m, *a: (fits.append(m.name), original(m, *a))[1]
    )
    plan = ComparisonPlan.of([*METHODS, BASELINES["user"]], (0, 1))
    run, _ = store.submit_comparison(config, plan)
    work(store, idle_seconds=0, polite=False)
    assert store.run(run.id).state == "finished"
    assert fits == ["user", "user"]


def test_where_the_data_are_known_it_answers_for_a_new_start(config: ExperimentConfig) -> None:
    older(config)
    store = Store()
    run = store.submit(config, data=describe(prepare(config)))
    store.cancel(run.id)
    take_in_older(store)
    (taken,) = all_comparisons(store)
    plan = ComparisonPlan.of(METHODS, (0, 1))
    found, new = store.submit_comparison(config, plan)
    assert (found.id, new) == (taken.id, False)


@pytest.mark.parametrize("state", ["cancelled", "failed", "interrupted"])
def test_one_that_was_stopped_goes_on(config: ExperimentConfig, state: str) -> None:
    older(config, state, done=1)
    store = Store()
    take_in_older(store)
    (run,) = all_comparisons(store)
    assert (run.state, run.message, run.iteration) == (state, "Why.", 2)
    store.resume(run.id)
    work(store, idle_seconds=0, polite=False)
    run = store.run(run.id)
    assert (run.state, run.iteration) == ("finished", 4)
    assert run.key is not None
    assert [cell.reused for cell in store.cells(run.id)] == [True, True, False, False]


def test_one_that_was_never_begun_or_whose_process_died(config: ExperimentConfig) -> None:
    path, _ = older(config, "running", done=0)
    status = json.loads((path / "status.json").read_text())
    (path / "status.json").write_text(json.dumps({**status, "process": "another"}))
    other, _ = older(config, name="claims-1", done=0)
    (other / "status.json").unlink()
    store = Store()
    take_in_older(store)
    assert {run.state for run in all_comparisons(store)} == {"interrupted"}
    assert (
        comparison_named(store, "claims-1").message
        == "It has not been started. Resume computes it."
    )


def test_one_that_is_being_computed_waits(config: ExperimentConfig) -> None:
    path, _ = older(config, "running", done=1)
    store = Store()
    assert take_in_older(store) == []
    assert all_comparisons(store) == []
    status = json.loads((path / "status.json").read_text())
    status["status"]["state"] = "cancelled"
    (path / "status.json").write_text(json.dumps(status))
    take_in_older(store)
    assert [run.state for run in all_comparisons(store)] == ["cancelled"]


def test_deleted_it_goes_with_its_folder_and_does_not_come_back(config: ExperimentConfig) -> None:
    path, _ = older(config)
    kept, _ = older(config, name="other")
    store = Store()
    take_in_older(store)
    store.delete(comparison_named(store, NAME).id)
    assert not path.exists() and kept.exists()
    older(config)
    take_in_older(store)
    assert len(all_comparisons(store)) == 1


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"command": ["fit"]}', '{"command": ["compare", "--nonsense"]}']
)
def test_what_cannot_be_read_stays_and_is_told_once(
    config: ExperimentConfig, text: str, capsys: pytest.CaptureFixture
) -> None:
    path, _ = older(config, done=0)
    (path / "comparison.json").write_text(text)
    assert main(["runs", "list"]) == 0
    assert f"{path} cannot be read" in capsys.readouterr().err
    assert main(["runs", "list"]) == 0
    assert "cannot be read" not in capsys.readouterr().err
    with Store() as store:
        assert all_comparisons(store) == []
        assert [level for _, level, _ in store.messages()] == ["warning"]
    assert path.exists()


def test_damaged_results_count_as_missing(config: ExperimentConfig) -> None:
    path, _ = older(config)
    damaged = sorted((path / "results").iterdir())[0]
    damaged.write_bytes(b"no archive")
    store = Store()
    take_in_older(store)
    (run,) = all_comparisons(store)
    assert len(comparison_of(store, run).outcomes) == run.iteration == 3
    assert run.resumable and "missing" in run.message
    assert damaged.read_bytes() == b"no archive"
