"""A comparison is a run: queue, cancel, resume, death of its worker, export, the same one."""

from __future__ import annotations

import csv
import json
import shlex
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from gmc_core.base.errors import ConfigError, NumericalError
from gmc_core.cli import build_parser, main
from gmc_core.cli.arguments import config_from_arguments
from gmc_core.comparison.comparators import BASELINES
from gmc_core.comparison.comparators.method import Baseline
from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.fitting.experiment import ExperimentConfig, describe, prepare
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.filters import Filter
from gmc_core.runs.comparisons import comparison_named, comparison_of, submit_or_find_comparison
from gmc_core.runs.report_html import report
from gmc_core.runs.store import Run, Store, StoreError, queue
from gmc_core.runs.store.keys import key_of
from gmc_core.runs.store.transfer import content_of, export, import_run
from gmc_core.runs.worker import ensure_worker, work
from gmc_core.runs.worker.heart import BEAT_SECONDS

CONFIG = ExperimentConfig(data="ratings.csv", filter=Filter(1, 1))
NAMES = ("bias", "item", "user")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A home of the test's own, beside a few ratings of 40 users and 12 items."""
    monkeypatch.setenv("GMC_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    lines = [f"{u},{i},{1 + (3 * u + i * i + u * i) % 5}" for u in range(40) for i in range(12)]
    Path("ratings.csv").write_text("user,item,rating\n" + "\n".join(lines[::2] + lines[1::4]))
    return Store()


def plan(*names: str, seeds: tuple[int, ...] = (0, 1)) -> ComparisonPlan:
    return ComparisonPlan.of([BASELINES[name] for name in names or NAMES], seeds)


def submitted(store: Store, *names: str, again: bool = False) -> Run:
    return submit_or_find_comparison(store, CONFIG, plan(*names), again=again)[0]


def computed(store: Store, *names: str) -> Run:
    run = submitted(store, *names)
    work(store, idle_seconds=0, polite=False)
    return store.run(run.id)


class Counting:
    """Counts the fits of each baseline, and does something at one of them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.fits: list[tuple[str, int]] = []
        self.at: tuple[str, int] | None = None
        self.do = lambda: None
        original = Baseline.predict

        def predict(method: Baseline, split, team):
            self.fits.append((method.name, split.seed))
            if (method.name, split.seed) == self.at:
                self.do()
            return original(method, split, team)

        patch.setattr(Baseline, "predict", predict)


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
    found, work_left = submit_or_find_comparison(store, CONFIG, plan("user", "bias", "item"))
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
    run, _ = submit_or_find_comparison(store, missing, plan())
    work(store, idle_seconds=0, polite=False)
    failed = store.run(run.id)
    assert (failed.state, failed.error_kind) == ("failed", "data")
    assert "no.csv" in failed.message
    with pytest.raises(ConfigError, match="hold-out"):
        submit_or_find_comparison(store, replace(CONFIG, protocol="none"), plan())


# The same one ---------------------------------------------------------------------------


def test_an_identical_one_is_found_and_others_share_fits(store: Store, counting: Counting) -> None:
    run = computed(store, "bias", "item")
    found, new = submit_or_find_comparison(
        store, replace(CONFIG, seed=7, fit=FitSettings(epsilon=2.0)), plan("item", "bias")
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
        submit_or_find_comparison(store, config, plan(seeds=seeds), data=about)[0].id
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
    again, new = submit_or_find_comparison(store, config, plan(), data=run.data)
    assert (again.id, new) == (run.id, False)


def test_its_files_are_found_from_another_folder(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("1,1,3\n")
    pair = ExperimentConfig(data="", protocol="pair", train_file="a.csv", test_file="b.csv")
    wanted = replace(plan("bias", seeds=(0,)), pythons=("p/python",))
    run, _ = submit_or_find_comparison(store, pair, wanted)
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


# Files ------------------------------------------------------------------------------------


def test_exported_and_imported_it_is_the_same_and_still_answers(
    store: Store, tmp_path: Path
) -> None:
    run = computed(store)
    rows = [row.as_dict() for row in comparison_of(store, run).rows()]
    cells = store.cells(run.id)
    path = export(store, run.id, tmp_path / "c.zip")
    store.delete(run.id)
    back = import_run(store, path)
    assert (back.kind, back.state, back.answers, back.key) == (
        "comparison",
        "finished",
        True,
        run.key,
    )
    assert [row.as_dict() for row in comparison_of(store, back).rows()] == rows
    assert store.cells(back.id) == cells
    assert [replace(c, began=0) for c in store.cells(back.id)][0].nmae == rows[0]["scores"][
        "nmae"
    ] or rows
    assert submitted(store).id == back.id
    other = Store(tmp_path / "other")
    foreign = import_run(other, path)
    assert not foreign.answers and foreign.message == ""
    assert [row.as_dict() for row in comparison_of(other, foreign).rows()] == rows
    with zipfile.ZipFile(path) as archive:
        assert "gmc compare" in archive.read("repeat.txt").decode()


def test_fits_of_a_foreign_comparison_are_computed_anew(
    store: Store, tmp_path: Path, counting: Counting
) -> None:
    path = export(store, computed(store).id, tmp_path / "c.zip")
    other = Store(tmp_path / "other")
    import_run(other, path)
    counting.fits.clear()
    submitted(other)
    work(other, idle_seconds=0, polite=False)
    assert len(counting.fits) == 6


def test_edited_figures_are_told(store: Store, tmp_path: Path) -> None:
    path = export(store, computed(store).id, tmp_path / "c.zip")
    edited = tmp_path / "e.zip"
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(edited, "w") as target:
        for member in archive.infolist():
            content = archive.read(member)
            if member.filename == "run.json":
                about = json.loads(content)
                about["summary"]["table"]["methods"][1]["scores"]["nmae"] = 0.1
                content = json.dumps(about).encode()
            target.writestr(member.filename, content)
    taken = import_run(store, edited)
    assert not taken.answers
    assert "NMAE of Item mean is given as 0.1000" in taken.message


@pytest.mark.parametrize(
    "change",
    [
        {"cells": [{"split": 9, "method": "bias", "state": "done"}]},
        {"cells": [{"split": 0, "method": "other", "state": "done"}]},
        {"cells": [{"split": 0, "method": "bias", "state": "odd"}]},
        {"cells": [{"split": 0, "method": "bias", "state": "done", "nmae": "x"}]},
        {"cells": [{"split": 0.5, "method": "bias", "state": "done"}]},
        {"cells": [{"split": 0, "method": "bias", "state": "done", "split_key": 3}]},
        {"cells": "x"},
        {"comparison": {"methods": []}},
        {"comparison": 3},
    ],
)
def test_imports_that_make_no_sense_are_refused(store: Store, tmp_path: Path, change: dict) -> None:
    content = json.loads(json.dumps(content_of(store, submitted(store))))
    if "cells" in change:
        content |= change
    else:
        content["run"] |= change
    (tmp_path / "c.json").write_text(json.dumps(content))
    with pytest.raises(StoreError, match="damaged or is no exported run"):
        import_run(store, tmp_path / "c.json")


def test_table_and_report(store: Store, tmp_path: Path) -> None:
    run = computed(store)
    lines = list(csv.DictReader(export(store, run.id, tmp_path / "c.csv").open()))
    assert [line["name"] for line in lines] == list(NAMES)
    assert float(lines[0]["nmae"]) == comparison_of(store, run).rows()[0].scores.nmae
    assert lines[0]["nmae_difference"] == ""
    text = report(store, run.id)
    assert "Item mean" in text and "over splits" in text and "gmc compare" in text
    assert "<th>methods</th><td>bias, item, user</td>" in text
    with pytest.raises(StoreError, match="no model"):
        export(store, run.id, tmp_path / "c.npz")


def test_the_command_lists_shows_compares_and_imports(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    run = computed(store)
    assert main(["runs", "list"]) == 0
    assert "6/6 fits" in capsys.readouterr().out
    assert main(["runs", "show", run.id]) == 0
    out = capsys.readouterr().out
    assert "Item mean" in out and "methods bias, item, user" in out and "table" not in out
    assert main(["runs", "compare", run.id, submitted(store, "bias").id]) == 0
    assert "methods" in capsys.readouterr().out
    assert main(["runs", "export", run.id, str(tmp_path)]) == 2
    assert "is a folder; give the name of a file" in capsys.readouterr().err
    assert main(["runs", "export", run.id, str(tmp_path / "c.json")]) == 0
    assert main(["runs", "import", str(tmp_path / "c.json")]) == 0
    assert "imported Comparison of 3 methods" in capsys.readouterr().err


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
