"""Done when: SIGKILL at random moments costs time, and not one bit of the figures."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from store_workers import Nursery, alive, figures, kill, small, states, wait_for

from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.runs.store import Store, artifacts
from gmc_core.runs.sweeps import SweepConfig, submit_or_find_sweep, sweep_results
from gmc_core.runs.worker import work

KILLS = 20


def undisturbed(home: Path, sweep: SweepConfig) -> tuple[list, list]:
    store = Store(home)
    parent = submit_or_find_sweep(store, sweep, keep_models=True)[0]
    work(store, idle_seconds=0, polite=False)
    assert store.run(parent.id).state == "finished"
    children = store.runs(parent=parent.id)
    sigmas = [store.model(child.id).gaussian.covariance for child in children]
    return [figures(store, child.id) for child in children], sigmas


def test_twenty_kills_during_a_sweep_change_nothing(tmp_path: Path) -> None:
    """Σ, records, predictions and scores equal those of an undisturbed sweep exactly."""
    base = replace(small(), repetitions=1)
    sweep = SweepConfig(base, (0.03, 0.3, 3.0), (2, 5), (0, 1))
    expected, sigmas = undisturbed(tmp_path / "quiet", sweep)

    store = Store(tmp_path / "noisy")
    parent = submit_or_find_sweep(store, sweep, keep_models=True)[0]
    rng = random.Random(20)
    kills = 0
    with Nursery(store.path, idle_seconds=0, checkpoint_seconds=0.0, polite=False) as nursery:
        while kills < KILLS or "finished" != store.run(parent.id).state:
            pid = nursery.worker()
            if kills < KILLS:
                wait_for(lambda: "running" in states(store, parent.id) or not alive(pid))  # noqa: B023
                time.sleep(rng.uniform(0.0, 0.25))
                kills += kill(pid)
            wait_for(lambda: not alive(pid))  # noqa: B023
            store.notice_dead(force=True)
            assert "running" not in states(store, parent.id)
            if "interrupted" in states(store, parent.id):
                store.resume(parent.id)
            elif kills < KILLS and store.run(parent.id).state == "finished":
                # It was faster than the killer: begin anew, the kills count on.
                store.delete(parent.id)
                parent = submit_or_find_sweep(store, sweep, keep_models=True)[0]
    children = store.runs(parent=parent.id)
    assert [figures(store, child.id) for child in children] == expected
    for child, sigma in zip(children, sigmas, strict=True):
        again = store.model(child.id).gaussian.covariance
        assert np.array_equal(again.matrix, sigma.matrix)
        assert [(r, record.iteration) for r, record in store.records(child.id)] == [
            (0, t) for t in range(1, 6)
        ]
        assert not (store.folder(child.id) / artifacts.STATE).exists()
    assert store.rows("PRAGMA integrity_check")[0][0] == "ok"
    table = sweep_results(store, parent.id)
    assert len(table) == 3 * 2 * 2
    assert not table["nmae"].isna().any()


def test_a_killed_run_of_several_repetitions_keeps_the_finished_ones(tmp_path: Path) -> None:
    config = replace(small(), repetitions=4)
    quiet = Store(tmp_path / "quiet")
    expected = quiet.submit(config)
    work(quiet, idle_seconds=0, polite=False)

    store = Store(tmp_path / "noisy")
    run = store.submit(config)
    with Nursery(store.path, idle_seconds=0, checkpoint_seconds=60, polite=False) as nursery:
        pid = nursery.worker()
        wait_for(lambda: len(store.results(run.id)) >= 2)
        kill(pid)
        wait_for(lambda: not alive(pid))
        assert store.run(run.id).state == "interrupted"
        kept = (store.folder(run.id) / "held-out-0.npz").stat().st_mtime_ns
        store.resume(run.id)
        nursery.worker()
        wait_for(lambda: store.run(run.id).state == "finished")
    assert figures(store, run.id) == figures(quiet, expected.id)
    assert (store.folder(run.id) / "held-out-0.npz").stat().st_mtime_ns == kept


def test_a_killed_comparison_keeps_its_fits(tmp_path: Path) -> None:
    slow = "paper:epsilon=0.3:iterations=1000"
    plan = ComparisonPlan(("bias", slow), ("Bias", "Slow"), "bias")
    store = Store(tmp_path)
    run, _ = store.submit_comparison(replace(small(), weak_users=None), plan)
    with Nursery(store.path, idle_seconds=0, polite=False) as nursery:
        pid = nursery.worker()
        wait_for(lambda: [c.state for c in store.cells(run.id)] == ["done", "running"])
        kill(pid)
        wait_for(lambda: not alive(pid))
    store.notice_dead(force=True)
    killed = store.run(run.id)
    assert (killed.state, killed.iteration) == ("interrupted", 1)
    (kept,) = store.folder(run.id).glob("result--bias-*.npz")
    before = kept.stat().st_mtime_ns
    quick = replace(plan, methods=("bias", "item"))
    with store.writing() as database:  # the same run with a method that ends
        database.execute(
            "UPDATE runs SET key = NULL, comparison = ?", (json.dumps(quick.as_dict()),)
        )
    store.resume(run.id)
    work(store, idle_seconds=0, polite=False)
    assert [cell.reused for cell in store.cells(run.id)] == [True, False]
    assert store.run(run.id).state == "finished"
    assert kept.stat().st_mtime_ns == before
