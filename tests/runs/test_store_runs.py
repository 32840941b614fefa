"""Submitting, finding, changing, deleting; many submitters at once."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from store_workers import ROOT, Nursery, small, wait_for

from gmc_core.fitting.config import ExperimentConfig
from gmc_core.runs.store import Store, StoreError, home
from gmc_core.runs.worker import work

# Five processes that submit at the same time: forked, so that the imports are done once.
SUBMITTERS = """
import os, sys
from store_workers import small
from gmc_core.runs.store import Store
sys.stdin.readline()
for first in range(0, 50, 10):
    if os.fork() == 0:
        store = Store(sys.argv[1])
        for number in range(first, first + 10):
            # A name tells who asked; every setting is asked for by two of the processes.
            config = small(epsilon=0.1 + number // 2 % 25, iterations=1)
            os.write(1, f"{store.submit(config, label=str(number)).id}\\n".encode())
        os._exit(0)
assert [os.wait()[1] for _ in range(5)] == [0] * 5
"""


def test_fifty_submissions_from_five_processes(tmp_path: Path) -> None:
    """Done when: none lost, none run twice, not corrupt, states consistent."""
    submitters = subprocess.Popen(
        [sys.executable, "-c", SUBMITTERS, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "PATH": ""},
    )
    with Nursery(tmp_path, idle_seconds=0.5, beside=True, polite=False) as nursery:
        assert submitters.stdin is not None
        submitters.stdin.write("go\n")
        submitters.stdin.flush()
        for _ in range(2):  # two workers take runs while they are being submitted
            nursery.worker()
        ids = submitters.communicate()[0].split()
        assert submitters.returncode == 0
        assert len(ids) == 50
        store = Store(tmp_path)

        def all_done() -> bool:
            done = {run.id for run in store.runs() if run.state == "finished"}
            if not store.rows("SELECT 1 FROM workers"):
                nursery.worker()
            return set(ids) <= done

        wait_for(all_done, 90)
    runs = store.runs()
    assert len(runs) == len(set(ids)) == 25
    assert all(run.state == "finished" and run.worker is None for run in runs)
    assert len({run.key for run in runs}) == 25
    assert store.rows("SELECT max(n) FROM (SELECT count(*) n FROM records GROUP BY run)")[0][0] == 1
    assert store.rows("PRAGMA integrity_check")[0][0] == "ok"


def test_two_workers_never_take_the_same_run(tmp_path: Path) -> None:
    from gmc_core.runs.store.queue import register, take

    store = Store(tmp_path)
    other = Store(tmp_path)
    for number in range(20):
        store.submit(small(epsilon=1.0 + number))
    assert register(store, "one")
    assert not register(other, "two")
    assert register(other, "two", beside=True)
    taken = [take(store if k % 2 else other, "one" if k % 2 else "two") for k in range(20)]
    assert len({claim.run.id for claim in taken if claim}) == 20
    assert take(store, "one") is None
    # In the order of submission.
    assert [claim.run.config.fit.epsilon for claim in taken if claim] == [
        1.0 + k for k in range(20)
    ]


def test_the_same_run_is_found_and_can_be_repeated(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = store.submit(small())
    assert store.submit(small()).id == run.id
    work(store, idle_seconds=0, polite=False)
    assert store.submit(small()).id == run.id
    # The scale's default is .3: the same figures, so the same run.
    assert store.submit(small(epsilon=None)).id == run.id
    assert store.submit(small(epsilon=0.31)).id != run.id
    again = store.submit(small(), again=True)
    assert again.id != run.id
    work(store, idle_seconds=0, polite=False)
    again = store.run(again.id)
    assert again.key == store.run(run.id).key
    assert "identical" not in again.message


def test_the_same_data_under_another_name_are_recognised(tmp_path: Path) -> None:
    """The worker takes over the result; nothing is computed twice."""
    text = "user,item,rating\n" + "".join(
        f"{u},{i},{1 + (u * i) % 5}\n" for u in range(40) for i in range(30) if (u + i) % 3
    )
    store = Store(tmp_path / "store")
    runs = []
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text(text)
        config = ExperimentConfig(data=str(tmp_path / name), fit=small().fit)
        runs.append(store.submit(config))
    assert runs[0].id != runs[1].id
    work(store, idle_seconds=0, polite=False)
    first, second = (store.run(run.id) for run in runs)
    assert second.state == "finished", second.message
    assert first.id in second.message
    assert store.records(first.id) == store.records(second.id)
    assert second.summary == first.summary
    store.delete(first.id)
    assert store.model(second.id).iteration == 5
    # Changed data are other data.
    (tmp_path / "two.csv").write_text(text + "99,1,5\n" * 1)
    config = ExperimentConfig(data=str(tmp_path / "two.csv"), fit=small().fit)
    assert store.submit(config).id != second.id


def test_paths_do_not_depend_on_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.csv").write_text("user,item,rating\n1,1,3\n")
    run = Store(tmp_path / "store").submit(ExperimentConfig(data="my.csv"))
    assert run.config.data == str(tmp_path / "my.csv")
    run = Store(tmp_path / "store").submit(ExperimentConfig(data="sample"))
    assert run.config.data == "sample"


def test_labels_notes_search_and_ids(tmp_path: Path) -> None:
    store = Store(tmp_path)
    one, two = store.submit(small()), store.submit(small(epsilon=2.0))
    assert one.id.isalnum() and len(one.id) == 10
    assert store.rename(one.id, " Erstes ε ").label == "Erstes ε"
    assert store.annotate(two.id, "look here").note == "look here"
    assert [run.id for run in store.runs()] == [two.id, one.id]
    assert [run.id for run in store.runs(text="erstes")] == [one.id]
    assert [run.id for run in store.runs(text="LOOK")] == [two.id]
    assert store.runs(state="finished") == []
    assert store.find(one.id[:7]).id == one.id
    assert store.find("Erstes ε").id == one.id
    with pytest.raises(StoreError, match="no run 'nonsense'"):
        store.find("nonsense")
    with pytest.raises(StoreError, match="no run"):
        store.run("../..")
    with pytest.raises(StoreError):
        store.folder("../..")


def test_cancel_and_resume_a_queued_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = store.submit(small())
    assert store.cancel(run.id).state == "cancelled"
    assert store.cancel(run.id).state == "cancelled"
    assert store.resume(run.id).state == "queued"
    with pytest.raises(StoreError, match="nothing to resume"):
        store.resume(run.id)


def test_disk_use_is_shown_and_deleting_frees_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = store.submit(replace(small(), repetitions=2))
    work(store, idle_seconds=0, polite=False)
    run = store.run(run.id)
    folder = store.folder(run.id)
    assert run.disk_bytes == sum(file.stat().st_size for file in folder.iterdir()) > 500_000
    assert store.disk_usage() >= run.disk_bytes
    assert store.delete(run.id) == run.disk_bytes
    assert not folder.exists()
    assert store.runs() == []
    assert store.rows("SELECT count(*) FROM records")[0][0] == 0


def test_home_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GMC_HOME", str(tmp_path / "here"))
    assert home() == tmp_path / "here"
    monkeypatch.delenv("GMC_HOME")
    assert "gmc" in str(home())
