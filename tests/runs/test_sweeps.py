"""Sweeps: children, partial results, cancel and resume, the command line."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from store_workers import cancelled_when, small, states

from gmc_core.base.errors import ConfigError
from gmc_core.cli import main
from gmc_core.fitting.experiment import run_experiment
from gmc_core.fitting.fit import IterationRecord
from gmc_core.runs.store import Store
from gmc_core.runs.sweeps import SweepConfig, log_epsilons, submit_or_find_sweep, sweep_results
from gmc_core.runs.worker import work


def sweep(iterations: int = 3, epsilons: tuple[float, ...] = (0.1, 1.0)) -> SweepConfig:
    return SweepConfig(small(iterations=iterations), epsilons, (1, iterations), (0, 5))


def test_log_epsilons() -> None:
    assert log_epsilons(0.01, 10, 4) == (0.01, 0.1, 1.0, 10.0)
    assert log_epsilons(0.3, 0.3, 1) == (0.3,)
    assert log_epsilons(0.01, 1, 5)[1] == 0.0316
    for arguments in ((0, 1, 3), (1, 0.1, 3), (0.1, 1, 1), (0.1, math.inf, 3), (math.nan, 1, 3)):
        with pytest.raises(ConfigError):
            log_epsilons(*arguments)


@pytest.mark.parametrize(
    "values",
    [
        {"epsilons": ()},
        {"epsilons": (0.1, 0.1)},
        {"epsilons": (-1.0,)},
        {"epsilons": (math.nan,)},
        {"epsilons": (0.1,), "iterations": (0, 2)},
        {"epsilons": (0.1,), "seeds": (-1,)},
        {"epsilons": (0.1,), "seeds": ()},
    ],
)
def test_values_without_meaning_are_refused(values: dict) -> None:
    with pytest.raises(ConfigError):
        SweepConfig(small(), **values)


def test_a_sweep_equals_single_fits(tmp_path: Path) -> None:
    store = Store(tmp_path)
    parent = submit_or_find_sweep(store, sweep())[0]
    assert parent.kind == "sweep"
    assert parent.state == "queued"
    assert parent.children == {"queued": 4}
    assert sweep_results(store, parent.id).empty
    assert [run.id for run in store.runs()] == [parent.id]
    work(store, idle_seconds=0, polite=False)
    parent = store.run(parent.id)
    assert parent.state == "finished"
    assert parent.progress == 1
    table = sweep_results(store, parent.id)
    assert list(table.columns[:5]) == ["epsilon", "iterations", "seed", "nmae", "nmae_se"]
    assert len(table) == 8
    for line in table.to_dict("records"):
        config = replace(
            small(epsilon=line["epsilon"], iterations=line["iterations"]), seed=line["seed"]
        )
        result, _ = run_experiment(config)
        assert result["summary"]["nmae"] == line["nmae"]
        assert result["summary"]["rmse"] == line["rmse"]
    assert len(sweep_results(store, parent.id, iterations=(2,))) == 4
    # No models or states, and one picture each.
    for child in store.runs(parent=parent.id):
        assert store.model_path(child.id) is None
        assert store.pictures(child.id) == [(0, 3)]
        assert not (store.folder(child.id) / "state.npz").exists()


def test_the_same_sweep_is_found_and_shares_runs_with_another(tmp_path: Path) -> None:
    store = Store(tmp_path)
    parent = submit_or_find_sweep(store, sweep())[0]
    assert submit_or_find_sweep(store, sweep())[0].id == parent.id
    work(store, idle_seconds=0, polite=False)
    assert submit_or_find_sweep(store, sweep())[0].id == parent.id
    wider = submit_or_find_sweep(store, sweep(epsilons=(0.1, 1.0, 5.0)))[0]
    work(store, idle_seconds=0, polite=False)
    reused = [run for run in store.runs(parent=wider.id) if "identical" in run.message]
    assert len(reused) == 4
    both = sweep_results(store, wider.id)
    old = sweep_results(store, parent.id)
    assert both[both.epsilon < 2].nmae.tolist() == old.nmae.tolist()
    assert submit_or_find_sweep(store, sweep(), again=True)[0].id != parent.id


def test_partial_results_cancel_and_resume(tmp_path: Path) -> None:
    store = Store(tmp_path)
    parent = submit_or_find_sweep(store, sweep(iterations=8))[0]
    on_the_way = []

    def one_is_done(_: IterationRecord) -> bool:
        now = store.run(parent.id)
        if now.iteration:
            on_the_way.append((now.state, len(sweep_results(store, parent.id))))
        return bool(now.iteration)

    with cancelled_when(store, parent.id, one_is_done):
        work(store, idle_seconds=0, polite=False)
    state, results = on_the_way[0]
    assert state == "running"
    assert results >= 2
    assert store.run(parent.id).state == "cancelled"
    assert set(states(store, parent.id)) == {"finished", "cancelled"}
    store.resume(parent.id)
    work(store, idle_seconds=0, polite=False)
    assert states(store, parent.id) == ["finished"] * 4
    assert len(sweep_results(store, parent.id)) == 8
    assert store.delete(parent.id) > 0
    assert store.rows("SELECT * FROM runs") == []
    assert list((tmp_path / "runs").iterdir()) == []


def test_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """sweep, runs and worker, as a person types them."""
    monkeypatch.setenv("GMC_HOME", str(tmp_path))
    monkeypatch.setattr("gmc_core.runs.worker.ensure_worker", lambda store: True)
    small_data = ["--max-items", "250", "--weak-users", "300"]

    def run(*arguments: str, code: int = 0) -> str:
        assert main(arguments) == code
        return capsys.readouterr().out

    id = run(
        "sweep", "--epsilon", "0.1,1", "--iterations", "1,3", "--seeds", "0,5", "--detach",
        "--label", "=1+1", *small_data,
    ).strip()  # fmt: skip
    assert run("worker", "--idle-seconds", "0") == ""
    out = tmp_path / "sweep.json"
    text = run(
        "sweep", "--epsilon", "0.1,1", "--iterations", "1,3", "--seeds", "0,5", "--json", str(out),
        *small_data,
    )  # fmt: skip
    assert "lowest mean NMAE" in text
    assert json.loads(out.read_text())["id"] == id
    assert len(json.loads(out.read_text())["results"]) == 8
    one = run("fit", "--detach", "--iterations", "2", *small_data).strip()
    run("worker", "--once")
    assert run("fit", "--detach", "--iterations", "2", *small_data).strip() == one
    listed = run("runs", "list")
    assert one in listed and id in listed and "MB" in listed and "4/4 runs" in listed
    assert json.loads(run("runs", "list", "--json", "-"))[0]["id"] == one
    assert "--max-items=250" in run("runs", "show", one[:6])
    assert json.loads(run("runs", "show", one, "--json", "-"))["run"]["state"] == "finished"
    child = Store().runs(parent=id)[0].id
    compared = run("runs", "compare", one, child)
    assert "fit.iterations" in compared and "fit.dtype" not in compared
    for suffix in (".html", ".json", ".csv", ".zip", ".npz"):
        run("runs", "export", one, str(tmp_path / f"out{suffix}"))
        assert (tmp_path / f"out{suffix}").stat().st_size > 100
    taken = run("runs", "import", str(tmp_path / "out.zip")).strip()
    run("runs", "rename", taken, "mine")
    run("runs", "note", "mine", "a note")
    assert "a note" in run("runs", "show", "mine")
    run("runs", "cancel", "mine")
    run("runs", "resume", "mine", code=2)
    run("runs", "delete", "mine", id)
    assert "mine" not in run("runs", "list")
    run("runs", "show", "nonsense", code=2)
    run("runs", "export", one, str(tmp_path / "out.xyz"), code=2)
