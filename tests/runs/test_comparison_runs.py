"""A comparison is a run: queue, cancel, resume, death of its worker, the same one."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from compared_runs import CONFIG, NAMES, Counting, computed, home, plan, submitted

from gmc_core.base.errors import ConfigError, NumericalError
from gmc_core.cli import build_parser
from gmc_core.cli.arguments import config_from_arguments
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.preparing import describe, prepare
from gmc_core.gaussian.settings import FitSettings
from gmc_core.runs.comparisons import comparison_named, comparison_of
from gmc_core.runs.store import Store, StoreError, queue
from gmc_core.runs.store.keys import key_of
from gmc_core.runs.worker import ensure_worker, work
from gmc_core.runs.worker.heartbeat import BEAT_SECONDS


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    return home(tmp_path, monkeypatch)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    return Counting(monkeypatch)


# The queue -----------------------------------------------------------------------------


def test_it_waits_behind_a_fit_and_others_wait_behind_it(store: Store) -> None:
    fit = store.submit(replace(CONFIG, fit=FitSettings(iterations=1)))
    run = submitted(store)
    last = store.submit(replace(CONFIG, seed=5, fit=FitSettings(iterations=1)))
    assert [one.id for one in store.waiting(run.id).ahead] == [fit.id]
    assert [one.id for one in store.waiting(last.id).ahead] == [fit.id, run.id]
    assert store.waiting(last.id).seconds is None  # nobody knows what the methods take
    work(store, idle_seconds=0, polite=False)
    ended = [store.run(one.id) for one in (fit, run, last)]
    assert [one.state for one in ended] == ["finished"] * 3
    assert ended[0].ended <= ended[1].started and ended[1].ended <= ended[2].started
    assert ended[1].progress == 1.0
    assert ended[1].machine == ended[0].machine


def test_progress_is_a_record_for_each_fit(store: Store, counting: Counting) -> None:
    run = submitted(store)
    seen = []

    def look() -> None:
        now = store.run(run.id)
        cells = store.cells(run.id)
        seen.append((now.iteration, [(c.split, c.method, c.state) for c in cells][-1]))
        seen.append(store.remaining_seconds(run.id))

    counting.at, counting.do = ("item", 1), look
    work(store, idle_seconds=0, polite=False)
    assert seen[0] == (4, (1, "item", "running"))
    assert 0 <= seen[1] < 5
    cells = store.cells(run.id)
    assert [(c.split, c.method) for c in cells] == [(s, n) for s in (0, 1) for n in NAMES]
    assert all(c.state == "done" and c.nmae is not None and c.seconds >= 0 for c in cells)
    assert store.remaining_seconds(run.id) is None
    rows = comparison_of(store, store.run(run.id)).rows()
    assert [row.splits for row in rows] == [2, 2, 2]
    best = min(rows, key=lambda row: row.scores.nmae)
    summary = store.run(run.id).summary
    assert (summary["best"], summary["nmae"]) == (best.name, best.scores.nmae)


def test_a_command_that_computes_one_run_takes_nobodys_place(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = submitted(store)
    assert queue.register(store, "command", only_run=run.id)
    claim = queue.take(store, "command", run.id)
    assert claim is not None and claim.run.id == run.id
    spawned = []
    monkeypatch.setattr(
        "gmc_core.runs.worker.launch._spawn", lambda *arguments: spawned.append(1) or 1
    )
    assert ensure_worker(store) and spawned
    assert queue.register(store, "worker")
    queue.retire(store, "command")
    assert store.rows("SELECT 1 FROM settings WHERE name = 'starting'")
    queue.retire(store, "worker")


# Stopped and gone on with -----------------------------------------------------------------


def test_cancelled_and_resumed_it_computes_only_what_is_missing(
    store: Store, counting: Counting
) -> None:
    run = submitted(store)

    def cancel() -> None:
        store.cancel(run.id)
        time.sleep(3 * BEAT_SECONDS)  # until the worker has heard of it

    counting.at, counting.do = ("item", 1), cancel
    work(store, idle_seconds=0, polite=False)
    stopped = store.run(run.id)
    assert (stopped.state, stopped.iteration, stopped.message) == ("cancelled", 4, "Cancelled.")
    assert stopped.resumable
    assert len(comparison_of(store, stopped).outcomes) == 4
    counting.at = None
    counting.fits.clear()
    # A start with the same methods leads to it, too.
    found, work_left = store.submit_comparison(CONFIG, plan("user", "bias", "item"))
    assert (found.id, found.state, work_left) == (run.id, "queued", True)
    work(store, idle_seconds=0, polite=False)
    assert counting.fits == [("item", 1), ("user", 1)]
    assert store.run(run.id).state == "finished"


def test_a_worker_that_died_leaves_what_is_done(store: Store, counting: Counting) -> None:
    run = submitted(store)
    queue.register(store, "w")
    with pytest.MonkeyPatch.context() as patch:
        # As if the process were killed: nothing after this is written.
        patch.setattr("gmc_core.runs.worker.attempt.Attempt._end", lambda *a, **k: None)
        counting.at, counting.do = ("bias", 1), _die
        queue.retire(store, "w")
        work(store, idle_seconds=0, polite=False)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    queue.register(store, "w", beside=True)
    with store.writing() as database:
        database.execute("UPDATE workers SET pid = ?, process = 'x'", (dead.pid,))
        database.execute("UPDATE runs SET worker = 'w', state = 'running'")
    store.notice_dead(force=True)
    killed = store.run(run.id)
    assert (killed.state, killed.iteration) == ("interrupted", 3)
    assert "Resume" in killed.message
    counting.at = None
    counting.fits.clear()
    store.resume(run.id)
    work(store, idle_seconds=0, polite=False)
    assert counting.fits == [("bias", 1), ("item", 1), ("user", 1)]
    assert store.run(run.id).state == "finished"


def _die() -> None:
    raise RuntimeError("killed")


def test_a_fit_that_fails_is_told_and_computed_again(store: Store, counting: Counting) -> None:
    def fail() -> None:
        raise NumericalError("It broke. Mend it.")

    counting.at, counting.do = ("item", 1), fail
    run = computed(store)
    assert (run.state, run.summary["failed"], run.iteration) == ("finished", 1, 6)
    assert "1 of 6 fits have failed" in run.message
    assert run.resumable
    (failed,) = [cell for cell in store.cells(run.id) if cell.state == "failed"]
    assert (failed.method, failed.split, failed.failure) == ("item", 1, "It broke. Mend it.")
    assert comparison_of(store, run).rows()[1].failure == "It broke. Mend it."
    counting.at = None
    counting.fits.clear()
    assert submitted(store).id == run.id  # no other run for the rest
    work(store, idle_seconds=0, polite=False)
    assert counting.fits == [("item", 1)]
    mended = store.run(run.id)
    assert (mended.summary["failed"], mended.message, mended.resumable) == (0, "", False)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MemoryError(), "memory"),
        (OSError(5, "broken", "/x"), "system"),
        (ZeroDivisionError(), "defect"),
    ],
)
def test_errors_have_their_kinds(
    store: Store, counting: Counting, error: Exception, kind: str
) -> None:
    def fail() -> None:
        raise error

    counting.at, counting.do = ("item", 0), fail
    run = computed(store)
    assert (run.state, run.error_kind, run.iteration) == ("failed", kind, 1)
    counting.at = None
    store.resume(run.id)
    work(store, idle_seconds=0, polite=False)
    assert store.run(run.id).state == "finished"


def test_data_that_cannot_be_read_fail_it(store: Store, tmp_path: Path) -> None:
    missing = replace(CONFIG, data=str(tmp_path / "no.csv"))
    run, _ = store.submit_comparison(missing, plan())
    work(store, idle_seconds=0, polite=False)
    failed = store.run(run.id)
    assert (failed.state, failed.error_kind) == ("failed", "data")
    assert "no.csv" in failed.message
    with pytest.raises(ConfigError, match="hold-out"):
        store.submit_comparison(replace(CONFIG, protocol="none"), plan())


# The same one ---------------------------------------------------------------------------


def test_an_identical_one_is_found_and_others_share_fits(store: Store, counting: Counting) -> None:
    run = computed(store, "bias", "item")
    found, new = store.submit_comparison(
        replace(CONFIG, seed=7, fit=FitSettings(epsilon=2.0)), plan("item", "bias")
    )
    assert (found.id, new) == (run.id, False)
    counting.fits.clear()
    more = computed(store)
    assert more.id != run.id
    assert counting.fits == [("user", 0), ("user", 1)]
    assert [cell.reused for cell in store.cells(more.id)] == [True, True, False] * 2
    store.delete(run.id)  # the fits that it has given away stay
    assert [row.splits for row in comparison_of(store, store.run(more.id)).rows()] == [2, 2, 2]
    counting.fits.clear()
    again = submitted(store, again=True)
    work(store, idle_seconds=0, polite=False)
    assert again.id != more.id and len(counting.fits) == 6


def test_other_data_protocols_and_seeds_are_others(store: Store) -> None:
    data = describe(prepare(CONFIG))
    runs = {
        store.submit_comparison(config, plan(seeds=seeds), data=about)[0].id
        for config, seeds, about in (
            (CONFIG, (0, 1), data),
            (replace(CONFIG, protocol="strong"), (0, 1), data),
            (replace(CONFIG, weak_users=20), (0, 1), data),
            (CONFIG, (0, 2), data),
            (CONFIG, (0, 1), {**data, "sha256": "0" * 64}),
        )
    }
    assert len(runs) == 4
    keys = {
        key_of(CONFIG, about, plan(*names))
        for names in ((), ("item", "user", "bias"), ("bias", "item"))
        for about in (data, {**data, "sha256": "0" * 64}, {**data, "side_sha256": "1"})
    }
    assert len(keys) == 6 and None not in keys
    assert key_of(CONFIG, None, plan()) is None


def test_the_worker_finds_the_twin_that_nobody_could_know_of(
    store: Store, counting: Counting
) -> None:
    first = computed(store)
    with store.writing() as database:
        database.execute("DELETE FROM sources")  # as if it were another path of the same data
    second = submitted(store)
    assert second.key is None and second.id != first.id
    counting.fits.clear()
    work(store, idle_seconds=0, polite=False)
    second = store.run(second.id)
    assert (second.state, second.key, second.iteration) == ("finished", first.key, 6)
    assert first.id in second.message
    assert counting.fits == []
    assert comparison_of(store, second).rows() == comparison_of(store, first).rows()


def test_its_command_makes_the_same_one(store: Store) -> None:
    run = computed(store)
    words = shlex.split(store.command(run.id))
    assert words[:2] == ["gmc", "compare"]
    assert any(word.startswith("--ratings-sha256=") for word in words)
    arguments = build_parser().parse_args(words[1:])
    assert (arguments.methods, arguments.seeds, arguments.reference) == (NAMES, (0, 1), "bias")
    config = config_from_arguments(arguments)
    again, new = store.submit_comparison(config, plan(), data=run.data)
    assert (again.id, new) == (run.id, False)


def test_its_files_are_found_from_another_folder(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("1,1,3\n")
    pair = ExperimentConfig(data="", protocol="pair", train_file="a.csv", test_file="b.csv")
    wanted = replace(plan("bias", seeds=(0,)), pythons=("p/python",))
    run, _ = store.submit_comparison(pair, wanted)
    command = shlex.split(store.command(run.id))
    for option, name in (("train", "a.csv"), ("test", "b.csv"), ("peer-python", "p/python")):
        assert f"--{option}={tmp_path / name}" in command
    assert not [word for word in command if word.startswith("--seeds")]


def test_names(store: Store) -> None:
    run = submitted(store)
    assert run.title.startswith("Comparison of 3 methods on ratings.csv, seeds 0–1, weak, ")
    assert comparison_named(store, run.id).id == run.id
    fit = store.submit(CONFIG)
    for wrong in (fit.id, "nonesuch", "../../etc"):
        with pytest.raises(StoreError, match="no comparison"):
            comparison_named(store, wrong)


def test_a_store_of_the_schema_before_takes_comparisons(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gmc_core.runs.store import schema

    with monkeypatch.context() as patch:
        patch.setattr(schema, "SCHEMA_VERSION", 3)
        connection, _ = schema.connect(tmp_path / "runs.db")
        connection.execute(
            "INSERT INTO runs (id, kind, state, config, request, created, version) "
            "VALUES ('abc', 'run', 'finished', ?, 'r', 0, '1')",
            (json.dumps(ExperimentConfig().as_dict()),),
        )
        connection.close()
    older = Store(tmp_path)
    assert older.rows("PRAGMA user_version")[0][0] == schema.SCHEMA_VERSION
    assert older.run("abc").comparison is None
    assert computed(older).state == "finished"
