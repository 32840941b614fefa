"""Cancelling, failing, dying, sleeping: what becomes of the run each time."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from store_workers import Nursery, alive, cancelled_when, figures, kill, small, wait_for

from gmc_core.base.errors import NumericalError
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.runs.store import Store, StoreError, artifacts, liveness
from gmc_core.runs.store.queue import Lost, beat, register, take
from gmc_core.runs.worker import attempt, cache, compute, ensure_worker, log_path, work


def in_thread(store: Store, **arguments: object) -> threading.Thread:
    """A worker in this process."""
    options = {"idle_seconds": 0, "polite": False, **arguments}
    thread = threading.Thread(target=work, args=(Store(store.path),), kwargs=options)
    thread.start()
    return thread


def long_run() -> ExperimentConfig:
    return replace(small(iterations=1000), repetitions=2)


def test_cancel_is_prompt_and_the_partial_model_recommends(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = store.submit(long_run())
    thread = in_thread(store)
    wait_for(lambda: len(store.records(run.id)) >= 3)
    began, cpu = time.monotonic(), time.process_time()
    store.cancel(run.id)
    run = wait_for(lambda: (found := store.run(run.id)).state == "cancelled" and found)
    # Beside other programs the wall clock says little; the work that was left does.
    assert min(time.monotonic() - began, time.process_time() - cpu) < 2
    thread.join()
    reached = store.records(run.id)[-1][1].iteration
    assert f"model of iteration {reached} is kept" in run.message
    model = store.model(run.id)
    assert model.iteration == reached
    assert len(model.recommend(model.posterior([0, 1], [5.0, 1.0]), top=5)) == 5
    assert store.picture(run.id, reached) is not None


def test_stopped_while_predicting_state_and_records_stay_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The iteration whose predictions are missing counts as not done."""
    quiet = Store(tmp_path / "quiet")
    expected = quiet.submit(small())
    work(quiet, idle_seconds=0, polite=False)
    store = Store(tmp_path / "noisy")
    run = store.submit(small())
    original = compute.Fit._predict

    def stopped(self: compute.Fit) -> object:
        if self.state.iteration == 3:
            store.cancel(run.id)
            wait_for(lambda: self.team._should_stop and self.team._should_stop())
        return original(self)

    with monkeypatch.context() as patch:
        patch.setattr(compute.Fit, "_predict", stopped)
        work(store, idle_seconds=0, polite=False)
    assert [record.iteration for _, record in store.records(run.id)] == [1, 2]
    assert store.model(run.id).iteration == 2
    store.resume(run.id)
    work(store, idle_seconds=0, polite=False)
    assert figures(store, run.id) == figures(quiet, expected.id)


def test_a_cancelled_run_resumes_to_the_same_figures(tmp_path: Path) -> None:
    quiet = Store(tmp_path / "quiet")
    expected = quiet.submit(small(iterations=30))
    work(quiet, idle_seconds=0, polite=False)
    store = Store(tmp_path / "noisy")
    run = store.submit(small(iterations=30))
    for wanted in (2, 9, 16):
        with cancelled_when(store, run.id, lambda record: record.iteration >= wanted):  # noqa: B023
            work(store, idle_seconds=0, polite=False)
        assert store.run(run.id).state == "cancelled"
        assert wanted <= len(store.records(run.id)) < 30
        store.resume(run.id)
    work(store, idle_seconds=0, polite=False)
    assert figures(store, run.id) == figures(quiet, expected.id)


def test_cancelled_before_the_first_iteration_there_is_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    run = store.submit(small())
    original = cache.prepare

    def slow(config: ExperimentConfig) -> object:
        store.cancel(run.id)
        time.sleep(1.0)
        return original(config)

    monkeypatch.setattr(cache, "prepare", slow)
    work(store, idle_seconds=0, polite=False)
    run = store.run(run.id)
    assert run.state == "cancelled"
    assert "no model" in run.message
    assert store.model_path(run.id) is None
    with pytest.raises(StoreError, match="no model"):
        store.model(run.id)


def test_a_numerical_failure_keeps_records_and_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Breaking(compute.Fit):
        def records(self):  # type: ignore[no-untyped-def]
            for record in super().records():
                if record.iteration == 4:
                    raise NumericalError("Iteration 4: broke down; raise ε.", iteration=4)
                yield record

    monkeypatch.setattr(compute, "Fit", Breaking)
    store = Store(tmp_path)
    run, later = store.submit(small()), store.submit(small(epsilon=1.0, iterations=2))
    work(store, idle_seconds=0, polite=False)
    run = store.run(run.id)
    assert run.state == "failed"
    assert "Iteration 4: broke down; raise ε." in run.message
    assert (run.error_kind, run.error_iteration) == ("numerical", 4)
    assert [record.iteration for _, record in store.records(run.id)] == [1, 2, 3]
    assert store.model(run.id).iteration in (3, 4)
    assert store.messages(run.id)[-1][1] == "error"
    assert store.run(later.id).state == "finished"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (ExperimentConfig(data="/nowhere/ratings.csv"), "no such file"),
        (replace(small(), weak_users=10**6), "are more than the"),
        (replace(small(), protocol="strong", weak_users=None, fit=small(signals="columns").fit),
         "Strong generalization"),
    ],
)  # fmt: skip
def test_bad_input_fails_with_its_sentence(
    tmp_path: Path, config: ExperimentConfig, message: str
) -> None:
    store = Store(tmp_path)
    run = store.submit(config)
    work(store, idle_seconds=0, polite=False)
    run = store.run(run.id)
    assert run.state == "failed"
    assert message in run.message


def test_too_little_memory_fails_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GMC_MEMORY_LIMIT", "0.0001")
    store = Store(tmp_path)
    run = store.submit(small())
    work(store, idle_seconds=0, polite=False)
    assert "GMC_MEMORY_LIMIT" in store.run(run.id).message


def test_a_defect_does_not_end_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("oops")

    monkeypatch.setattr(compute, "describe", broken)
    store = Store(tmp_path)
    runs = [store.submit(small(epsilon=1.0 + k)) for k in range(2)]
    assert work(store, idle_seconds=0, polite=False) == 2
    assert "RuntimeError: oops" in store.run(runs[1].id).message


def test_a_full_disk_makes_the_run_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "_RETRY_SECONDS", 0.01)
    failures = iter([True] * 5)
    original = compute.Claim.add_record

    def sometimes(self: compute.Claim, *arguments: object) -> None:
        if next(failures, False):
            raise StoreError("The disk is full.")
        original(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(compute.Claim, "add_record", sometimes)
    store = Store(tmp_path)
    run = store.submit(small())
    work(store, idle_seconds=0, polite=False)
    assert store.run(run.id).state == "finished"
    assert len(store.records(run.id)) == 5


def test_a_damaged_state_costs_time_but_no_figure(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = store.submit(small(iterations=30))
    with cancelled_when(store, run.id, lambda record: record.iteration >= 3):
        work(store, idle_seconds=0, checkpoint_seconds=0, polite=False)
    state = store.folder(run.id) / artifacts.STATE
    state.write_bytes(state.read_bytes()[:1000])
    key = store.run(run.id).key
    assert key is not None
    assert artifacts.load_checkpoint(store.folder(run.id), key) is None
    assert artifacts.load_checkpoint(tmp_path, key) is None


def test_a_state_of_other_dimensions_is_not_used(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = store.submit(small(iterations=30))
    with cancelled_when(store, run.id, lambda record: record.iteration >= 3):
        work(store, idle_seconds=0, checkpoint_seconds=0, polite=False)
    folder, key = store.folder(run.id), store.run(run.id).key
    assert key is not None
    found = artifacts.load_checkpoint(folder, key)
    assert found is not None
    short = replace(found.state, weights=found.state.weights[:-1])
    artifacts.save_checkpoint(folder, replace(found, state=short))
    before = store.records(run.id)
    store.resume(run.id)
    work(store, idle_seconds=0, polite=False)
    assert store.run(run.id).state == "finished"
    again = store.records(run.id)
    assert [record.iteration for _, record in again] == list(range(1, 31))
    assert [r.nmae for _, r in again][: len(before)] == [r.nmae for _, r in before]


def test_a_clock_that_is_set_back_expires_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    run = store.submit(small())
    assert register(store, "me")
    assert take(store, "me") is not None
    for clock in (0.0, 4e9, time.time() - 86400):
        monkeypatch.setattr(time, "time", lambda clock=clock: clock)
        assert store.notice_dead(force=True) == []
    assert store.run(run.id).state == "running"


def test_missed_heartbeats_interrupt_and_a_late_worker_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of another computer falls silent, and wakes up when it is too late."""
    now = [1000.0]
    monkeypatch.setattr(liveness.time, "monotonic", lambda: now[0])
    store, looker = Store(tmp_path), Store(tmp_path)
    run = store.submit(small())
    assert register(store, "far")
    with store.writing() as database:
        database.execute("UPDATE workers SET host = 'elsewhere', pid = 1")
    claim = take(store, "far")
    assert claim is not None
    for _ in range(5):
        now[0] += 8
        beat(store, "far", run.id)
        assert looker.notice_dead(force=True) == []
    now[0] += 9
    assert looker.notice_dead(force=True) == []
    now[0] += 2
    assert looker.notice_dead(force=True) == ["far"]
    assert looker.run(run.id).state == "interrupted"
    assert beat(store, "far", run.id) == (False, True)
    with pytest.raises(Lost):
        claim.start_at(0, [], {})
    with pytest.raises(Lost):
        claim.end("finished")
    with pytest.raises(Lost):
        take(store, "far")


def test_a_silent_process_of_this_computer_gets_more_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(liveness.time, "monotonic", lambda: now[0])
    store = Store(tmp_path)
    run = store.submit(small())
    assert register(store, "here")
    assert take(store, "here") is not None
    for seconds in (
        0,
        liveness.STALE_SECONDS + 1,
        liveness.SILENT_SECONDS - liveness.STALE_SECONDS - 2,
    ):
        now[0] += seconds
        assert store.notice_dead(force=True) == []
    now[0] += 2
    assert store.notice_dead(force=True) == ["here"]
    assert store.run(run.id).state == "interrupted"


def test_half_written_files_go_when_the_run_is_taken_up(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = store.submit(small())
    part = store.folder(run.id) / ".part-killed"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"half")
    work(store, idle_seconds=0, polite=False)
    assert store.run(run.id).state == "finished"
    assert not part.exists()


def test_a_killed_worker_is_noticed_and_the_next_run_starts(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first, second = store.submit(long_run()), store.submit(small(epsilon=1.0))
    with Nursery(tmp_path, idle_seconds=0, polite=False) as nursery:
        pid = nursery.worker()
        wait_for(lambda: store.records(first.id))
        kill(pid)
        run = wait_for(lambda: (found := store.run(first.id)).state == "interrupted" and found)
        assert "died" in run.message
        assert run.resumable
        nursery.worker()
        wait_for(lambda: store.run(second.id).state == "finished")
    assert store.run(first.id).state == "interrupted"


def test_ensure_worker_starts_one_that_outlives_a_kill(tmp_path: Path) -> None:
    """The detached worker: started once by many, started again after SIGKILL."""
    store = Store(tmp_path)
    first, second = store.submit(long_run()), store.submit(small(epsilon=1.0))
    started: list[bool] = []

    def ensure() -> None:
        with Store(tmp_path) as own:
            started.append(ensure_worker(own, idle_seconds=0.2))

    callers = [threading.Thread(target=ensure) for _ in range(5)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert sorted(started) == [False] * 4 + [True]
    wait_for(lambda: store.records(first.id))
    assert not ensure_worker(store)
    ((pid,),) = store.rows("SELECT pid FROM workers")
    kill(pid)
    wait_for(lambda: store.run(second.id).state == "finished")
    assert store.run(first.id).state == "interrupted"
    wait_for(lambda: not store.rows("SELECT 1 FROM workers"))
    assert not alive(pid)
    assert "starting another" in log_path(store).read_text()
    assert store.rows("SELECT * FROM settings") == []


def test_sigterm_keeps_everything_for_resume(tmp_path: Path) -> None:
    import os
    import signal

    store = Store(tmp_path)
    run = store.submit(long_run())
    with Nursery(tmp_path, idle_seconds=0, checkpoint_seconds=1000, polite=False) as nursery:
        pid = nursery.worker()
        wait_for(lambda: len(store.records(run.id)) >= 3)
        os.kill(pid, signal.SIGTERM)
        run = wait_for(lambda: (found := store.run(run.id)).state == "interrupted" and found)
        wait_for(lambda: not alive(pid))
    assert "asked to end" in run.message
    assert run.key is not None
    checkpoint = artifacts.load_checkpoint(store.folder(run.id), run.key)
    assert checkpoint is not None
    assert checkpoint.state.iteration == store.records(run.id)[-1][1].iteration
    assert [record for _, record in store.records(run.id)] == list(checkpoint.records)


def test_no_iterations_is_a_run_too(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = store.submit(small(iterations=0))
    work(store, idle_seconds=0, polite=False)
    run = store.run(run.id)
    assert run.state == "finished", run.message
    assert run.summary is not None and np.isfinite(run.summary["nmae"])
    assert store.records(run.id) == []


def test_all_kinds_of_signals_and_protocols_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    runs = [
        store.submit(small(signals="columns", iterations=2)),
        store.submit(small(signals="blocks", iterations=2)),
        store.submit(replace(small(iterations=2), protocol="strong", weak_users=200)),
        store.submit(replace(small(iterations=2), protocol="none", weak_users=None)),
        store.submit(replace(small(iterations=2), weak_users=100)),  # M < N: a factored Σ
    ]
    work(store, idle_seconds=0, polite=False)
    for run in map(store.run, [run.id for run in runs]):
        assert run.state == "finished", run.message
        picture = store.picture(run.id, 2)
        assert picture is not None
        wanted = ("popularity", "genre", "year", "title")
        assert picture.orders == (wanted if run.config.fit.signals == "rows" else ("index",))
    assert store.run(runs[3].id).summary["nmae"] is None  # type: ignore[index]
