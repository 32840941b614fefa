"""What the heartbeat tells the store of the step that goes on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from stored_runs import small, stored

from gmc_core.gaussian.linalg.progress import StepProgress, StepShare
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.filters import Filter
from gmc_core.runs.store import Store
from gmc_core.runs.worker.heartbeat import Heartbeat
from gmc_core.runs.worker.loop import work

FAST = 0.01


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def words(store: Store, run: str, wanted: str) -> str:
    """What a page says of the step, once it is ``wanted``, or what it says in the end."""
    until = time.monotonic() + 30
    while (found := store.run(run).step_words) != wanted and time.monotonic() < until:
        time.sleep(FAST)
    return found


def test_the_step_and_its_share_reach_the_store(store, monkeypatch):
    monkeypatch.setattr("gmc_core.runs.worker.heartbeat.BEAT_SECONDS", FAST)
    run = stored(store, "running", done=1)
    assert run.worker is not None
    assert run.step_words == ""
    heartbeat = Heartbeat(store.path, run.worker)
    try:
        heartbeat.watch(run.id)
        heartbeat.step = lambda: StepShare("E-step", 0.4149)
        assert words(store, run.id, "41 % of the E-step") == "41 % of the E-step"
        assert store.run(run.id).step_share == 0.41
        heartbeat.step = lambda: StepShare("M-step")
        assert words(store, run.id, "M-step") == "M-step"
        heartbeat.step = lambda: None
        assert words(store, run.id, "") == ""
        heartbeat.step = lambda: StepShare("E-step", 1.0)
        assert words(store, run.id, "100 % of the E-step") == "100 % of the E-step"
        heartbeat.step = lambda: StepShare("E-step", 0.996)  # it goes on
        assert words(store, run.id, "99 % of the E-step") == "99 % of the E-step"
        heartbeat.watch(None)
    finally:
        heartbeat.stop()
    store.rows("UPDATE runs SET state = 'interrupted' WHERE id = ?", run.id)
    assert store.run(run.id).step_words == "", "nothing goes on any more"


def test_a_worker_tells_what_its_fit_is_at(store, monkeypatch):
    """Whenever the heartbeat asks."""
    hearts: list[Heartbeat] = []
    seen = set()
    begin, init = StepProgress.begin, Heartbeat.__init__

    def begun(progress, step=""):
        begin(progress, step)
        asked = hearts[-1].step
        if asked is not None:
            seen.add(asked())

    def made(heartbeat, *args):
        hearts.append(heartbeat)
        init(heartbeat, *args)

    monkeypatch.setattr(StepProgress, "begin", begun)
    monkeypatch.setattr(Heartbeat, "__init__", made)
    run = stored(store, "queued", small(filter=Filter(max_items=30), fit=FitSettings(iterations=1)))
    work(store, once=True, polite=False)
    assert store.run(run.id).state == "finished"
    assert store.run(run.id).step is None
    assert None in seen
    assert {at.step for at in seen if at} == {
        "E-step", "M-step", "predictions", "picture of Σ", "saving of the model"
    }  # fmt: skip
    assert hearts[-1].step is None
