"""``gmc doctor``: each check under conditions that are made for it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import webbrowser
from collections import namedtuple
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from commands import run

from gmc_core.base import ports
from gmc_core.doctor import Check, examine, folders, installed, machine, workers, worst
from gmc_core.doctor.examine import all_checks
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.runs.store import Store
from gmc_core.runs.store.identity import host, process_mark
from gmc_core.runs.store.schema import SCHEMA_VERSION

GB = 1e9


def is_bad(check: Check, status: str, *words: str) -> None:
    """A check that is not ok says what was found, and a remedy."""
    assert check.status == status, check
    assert all(word in check.found for word in words), check
    assert check.remedy.rstrip(".").strip(), check


# All of them ------------------------------------------------------------------------


@pytest.fixture
def here(monkeypatch, tmp_path):
    """Folders of this test, which are not there yet."""
    for name in ("HOME", "CACHE"):
        monkeypatch.setenv(f"GMC_{name}", str(tmp_path / name.lower()))
    return tmp_path


def test_the_command_shows_every_check_and_makes_nothing(capsys, here):
    code, out, err = run(capsys, "doctor")
    assert err == ""
    for name, _ in all_checks():
        assert name == "packages" or f"  {name} " in out, name
    assert "numpy" in out
    assert code == int("\nfail  " in out)
    assert not list(here.iterdir())


def test_json_has_the_same_and_the_exit_code_follows_the_worst(capsys, monkeypatch, tmp_path):
    bad = Check("blas", "fail", "none", "Get one.")
    for checks, status in (([], "ok"), ([bad], "fail")):
        made = [Check("python", "ok", "3.11"), Check("port", "warn", "x", "y"), *checks]
        monkeypatch.setattr("gmc_core.doctor.examine", lambda made=made: made)
        code, out, _ = run(capsys, "doctor", "--json", "-")
        content = json.loads(out)
        assert content["status"] == worst(made) == ("fail" if checks else "warn")
        assert code == int(status == "fail")
        assert content["checks"] == [check.as_dict() for check in made]
    file = tmp_path / "doctor.json"
    code, out, _ = run(capsys, "doctor", "--json", file)
    assert json.loads(file.read_text())["status"] == "fail"
    assert "fail  blas" in out
    assert "→ Get one." in out
    assert "3 checks: 1 failed, 1 with a warning" in out


def test_a_check_that_breaks_is_a_failed_one_and_the_others_go_on(monkeypatch):
    def broken():
        raise OSError("no\nsuch library")

    monkeypatch.setenv("GMC_THREADS", "many")
    monkeypatch.setenv("GMC_MEMORY_LIMIT", "much")
    found = examine(
        [("numba", broken), ("blas", machine.cores_and_blas), ("free memory", machine.memory),
         ("python", installed.python)]
    )  # fmt: skip
    is_bad(found[0], "fail", "OSError: no such library")
    is_bad(found[1], "fail", "GMC_THREADS", "'many'")
    is_bad(found[2], "fail", "GMC_MEMORY_LIMIT", "'much'")
    assert found[3].status == "ok"


def test_of_no_checks_none_is_bad():
    assert worst([]) == "ok"


# Installed --------------------------------------------------------------------------


def test_an_old_python_is_named(monkeypatch):
    assert installed.python().status == "ok"
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    is_bad(installed.python(), "fail", sys.executable)


def test_a_package_of_the_core_must_be_there_and_of_an_extra_may(monkeypatch):
    real = metadata.version

    def version(name):
        if name in ("numba", "streamlit"):
            raise metadata.PackageNotFoundError(name)
        return "1.9.3" if name == "numpy" else real(name)

    monkeypatch.setattr(installed.metadata, "version", version)
    monkeypatch.setattr(installed, "tested_ranges", lambda: {"numpy": ">=2.2,<3"})
    found = {check.name: check for check in installed.packages()}
    is_bad(found["numba"], "fail", "not installed")
    assert found["streamlit"].status == "ok"
    assert "[app]" in found["streamlit"].remedy
    is_bad(found["numpy"], "warn", "1.9.3", ">=2.2,<3")
    assert found["pandas"].status == "ok"


def test_the_tested_ranges_are_those_of_the_installed_metadata(monkeypatch):
    lines = ["numpy<3,>=2.2", "pyarrow>=18", "streamlit<2,>=1.67; extra == 'app'", "one[two]>=1"]
    monkeypatch.setattr(installed.metadata, "requires", lambda _: lines)
    assert installed.tested_ranges() == {
        "numpy": "<3,>=2.2", "pyarrow": ">=18", "streamlit": "<2,>=1.67", "one": ">=1"
    }  # fmt: skip
    monkeypatch.setattr(installed.metadata, "requires", lambda _: None)
    assert installed.tested_ranges() == {}


@pytest.mark.parametrize(
    ("version", "wanted", "expected"),
    [
        ("2.4.6", ">=2.2,<3", True), ("2.2", ">=2.2.0", True), ("2.10", ">=2.9", True),
        ("3.0.0rc1", "<3", False), ("2.1.9", ">=2.2,<3", False), ("18", "", True),
        ("2026.6", ">=2025", True), ("1.0", "~=2.0", True),
    ],
)  # fmt: skip
def test_versions_are_compared_as_numbers(version, wanted, expected):
    assert installed.is_within(version, wanted) is expected


def test_another_copy_than_the_installed_one_is_pointed_out(monkeypatch):
    monkeypatch.setattr(installed.metadata, "version", lambda _: "0.0.1")
    is_bad(installed.program(), "warn", "0.0.1")
    monkeypatch.setattr(installed.metadata, "version", lambda _: installed.package_version())
    assert installed.program().status == "ok"


# Machine ----------------------------------------------------------------------------


def test_blas_is_named_with_kernels_and_threads():
    pool = {"user_api": "blas", "internal_api": "openblas", "version": "0.3.30", "num_threads": 2}
    check = machine.blas_check([{**pool, "architecture": "Zen"}, {"user_api": "openmp"}], 2)
    assert (check.status, check.found) == ("ok", "2 cores; openblas 0.3.30 (Zen, 2 threads)")
    assert "unknown kernels" in machine.blas_check([pool], 1).found
    is_bad(machine.blas_check([], 1), "warn", "1 core;")
    assert "threads)" in machine.cores_and_blas().found


@pytest.mark.parametrize(("free", "status"), [(0.2, "fail"), (0.9, "warn"), (16, "ok")])
def test_little_memory_is_found(monkeypatch, free, status):
    monkeypatch.delenv("GMC_MEMORY_LIMIT", raising=False)
    memory = SimpleNamespace(available=free * GB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    check = machine.memory()
    assert check.status == status
    assert f"{free:.1f} GB free" in check.found
    assert bool(check.remedy) == (status != "ok")


def test_a_limit_of_ones_own_counts_too(monkeypatch):
    monkeypatch.setenv("GMC_MEMORY_LIMIT", "0.1")
    is_bad(machine.memory(), "fail", "0.1 GB")


def test_a_taken_port_is_found_and_the_next_one_named(monkeypatch):
    with socket.socket() as server:
        server.bind((ports.ADDRESS, 0))
        server.listen()
        taken = server.getsockname()[1]
        monkeypatch.setattr(machine, "DEFAULT_PORT", taken)
        monkeypatch.setattr(machine, "first_free", lambda: ports.first_free(taken))
        check = machine.port()
        is_bad(check, "warn", f"{taken} is taken")
        assert int(check.remedy.rstrip(".").split()[-1]) > taken
        monkeypatch.setattr(machine, "first_free", lambda: None)
        is_bad(machine.port(), "fail")
    assert machine.port() == Check("port", "ok", f"{taken} is free")


def test_no_browser_is_no_failure(monkeypatch):
    def none():
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "get", none)
    is_bad(machine.browser(), "warn", "none found")
    monkeypatch.setattr(webbrowser, "get", lambda: SimpleNamespace(name="firefox"))
    assert machine.browser() == Check("browser", "ok", "firefox")


# Folders ----------------------------------------------------------------------------


def test_folders_need_not_be_there(here):
    for check in (folders.runs_folder(), folders.downloads_folder()):
        assert check.status in ("ok", "warn"), check  # as much room as this machine has
        assert str(here) in check.found
    assert not list(here.iterdir())


def test_a_folder_that_cannot_be_written_is_found(monkeypatch, here):
    (here / "file").write_text("")
    monkeypatch.setenv("GMC_HOME", str(here / "file" / "runs"))
    is_bad(folders.runs_folder(), "fail", "cannot be written")

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(folders, "try_target", refuse)
    check = folders.downloads_folder()
    is_bad(check, "fail", "Permission denied")
    assert "GMC_CACHE" in check.remedy
    is_bad(folders.compiled_folder(), "fail", "Permission denied")


@pytest.mark.parametrize(("free", "status"), [(0.05, "fail"), (0.5, "warn"), (100, "ok")])
def test_a_full_disk_is_found(monkeypatch, tmp_path, free, status):
    usage = namedtuple("usage", "free")(free * GB)
    monkeypatch.setattr(folders.shutil, "disk_usage", lambda _: usage)
    check = folders.folder_check("x", tmp_path, "r")
    assert check.status == status
    assert bool(check.remedy) == (status != "ok")


def test_a_disk_without_any_room_is_full_and_not_forbidden(monkeypatch, tmp_path):
    def full(path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(folders, "try_target", full)
    is_bad(folders.folder_check("x", tmp_path, "r"), "fail", "0.0 GB free")


def test_where_compiled_code_is_kept(monkeypatch, tmp_path):
    from gmc_core.gaussian.linalg import solve

    kept = SimpleNamespace(stats=SimpleNamespace(cache_path=str(tmp_path)))
    monkeypatch.setattr(solve, "solve_lanes", kept)
    assert "nothing compiled yet" in folders.compiled_folder().found
    (tmp_path / "solve_lanes.1.nbc").write_text("")
    assert "nothing compiled yet" not in folders.compiled_folder().found
    monkeypatch.setattr(solve, "solve_lanes", SimpleNamespace(stats=None))
    is_bad(folders.compiled_folder(), "warn")


def test_nowhere_to_keep_compiled_code_is_a_failure(monkeypatch):
    """As numba says it, while the module is being imported."""
    monkeypatch.delattr("gmc_core.gaussian.linalg.solve")
    monkeypatch.delitem(sys.modules, "gmc_core.gaussian.linalg.solve")

    def refuse(*_, **__):
        raise RuntimeError("cannot cache function 'f': no locator available for file 'x.py'")

    monkeypatch.setattr("numba.njit", refuse)
    check = folders.compiled_folder()
    is_bad(check, "fail", "no locator available")
    assert "NUMBA_CACHE_DIR" in check.remedy


# Runs and workers -------------------------------------------------------------------


@pytest.fixture
def store(monkeypatch, tmp_path):
    monkeypatch.setenv("GMC_HOME", str(tmp_path))
    with Store() as made:
        yield made


def add_worker(
    store: Store,
    name: str,
    pid: int,
    process: str | None,
    where: str = "",
    only_run: str | None = None,
) -> None:
    with store.writing() as database:
        database.execute(
            "INSERT INTO workers (id, host, pid, process, started, only_run) "
            "VALUES (?, ?, ?, ?, 0, ?)",
            (name, where or host(), pid, process, only_run),
        )


def run_of(store: Store, state: str, worker: str | None = None) -> str:
    id = store.submit(ExperimentConfig(seed=len(store.runs()))).id
    with store.writing() as database:
        database.execute("UPDATE runs SET state = ?, worker = ? WHERE id = ?", (state, worker, id))
    return id


def state_of(folder: Path) -> list[tuple]:
    import sqlite3

    with sqlite3.connect(folder / "runs.db") as database:
        tables = ("runs", "workers", "messages")
        return [row for table in tables for row in database.execute(f"SELECT * FROM {table}")]


def test_no_store_is_no_fault_and_none_is_made(here):
    assert [check.status for check in workers.workers()] == ["ok", "ok"]
    assert not list(here.iterdir())


def test_an_idle_store_is_sound(store):
    runs, at_work = workers.workers()
    assert (runs.status, at_work.status) == ("ok", "ok")
    run_of(store, "finished")
    assert workers.workers()[0].found == "1"


def test_a_queue_without_a_worker_is_found(store):
    id = run_of(store, "queued")
    is_bad(workers.workers()[0], "warn", id)
    add_worker(store, "w", os.getpid(), process_mark(os.getpid()))
    assert workers.workers(0)[0].status == "ok"


def test_a_worker_that_was_killed_and_its_run_are_found_and_left_as_they_are(store):
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        mark = process_mark(ended.pid) or "1"
    id = run_of(store, "running", "w")
    add_worker(store, "w", ended.pid, mark)
    before = state_of(store.path)
    runs, at_work = workers.workers(0)
    is_bad(runs, "warn", id)
    assert f"gmc runs resume {id}" in runs.remedy
    is_bad(at_work, "warn", str(ended.pid))
    assert state_of(store.path) == before
    with Store() as another:  # as the command that the remedy names has it
        assert another.resume(id).state == "queued"


def test_a_run_of_no_worker_at_all_is_found(store):
    id = run_of(store, "running", "gone")
    runs, at_work = workers.workers()
    is_bad(runs, "warn", id)
    assert at_work.status == "ok"


@pytest.mark.parametrize("where", ["", "another computer"])
def test_a_silent_worker_is_told_from_one_that_gives_signs_of_life(store, monkeypatch, where):
    run_of(store, "running", "w")
    add_worker(store, "w", os.getpid(), process_mark(os.getpid()), where)

    def beat(_):
        with store.writing() as database:
            database.execute("UPDATE workers SET beat = beat + 1")

    runs, at_work = workers.workers(0)
    assert runs.status == "ok"
    is_bad(at_work, "warn", f"{os.getpid()} there but silent")
    monkeypatch.setattr(workers.time, "sleep", beat)
    assert workers.workers()[1] == Check("workers", "ok", f"process {os.getpid()} at work")

    def leave(_):
        with store.writing() as database:
            database.execute("DELETE FROM workers")

    monkeypatch.setattr(workers.time, "sleep", leave)
    assert [check.status for check in workers.workers()] == ["ok", "ok"]


def test_a_command_that_computes_its_own_run_is_no_worker(store, monkeypatch):
    def beat(_):
        with store.writing() as database:
            database.execute("UPDATE workers SET beat = beat + 1")

    monkeypatch.setattr(workers.time, "sleep", beat)
    pid = os.getpid()
    id = run_of(store, "running", "command")
    add_worker(store, "command", pid, process_mark(pid), only_run=id)
    runs, at_work = workers.workers()
    assert runs == Check("runs", "ok", "1")
    own = f"a command computes a run of its own: process {pid}"
    assert at_work == Check("workers", "ok", f"none; {own}")
    waits = run_of(store, "queued")
    is_bad(workers.workers()[0], "warn", waits, "there is no worker")
    add_worker(store, "w", pid, process_mark(pid))
    runs, at_work = workers.workers()
    assert runs.status == "ok"
    assert at_work == Check("workers", "ok", f"process {pid} at work; {own}")


def test_workers_of_an_older_store_are_read(store):
    add_worker(store, "w", 1, "another process")
    store._database.execute("ALTER TABLE workers DROP COLUMN only_run")
    is_bad(workers.workers()[1], "warn", "process 1 left behind")


def test_a_worker_that_comes_between_two_looks_has_its_run(store, monkeypatch):
    add_worker(store, "w", os.getpid(), process_mark(os.getpid()))
    id = run_of(store, "queued")

    def come(_):
        add_worker(store, "new", os.getpid(), process_mark(os.getpid()))
        with store.writing() as database:
            database.execute(
                "UPDATE runs SET state = 'running', worker = 'new' WHERE id = ?", (id,)
            )

    monkeypatch.setattr(workers.time, "sleep", come)
    assert workers.workers()[0].status == "ok"


def test_a_damaged_database_is_found_and_not_set_aside(monkeypatch, tmp_path):
    monkeypatch.setenv("GMC_HOME", str(tmp_path))
    (tmp_path / "runs.db").write_bytes(b"no database at all " * 300)
    (check,) = workers.workers()
    is_bad(check, "fail", "damaged")
    assert [path.name for path in tmp_path.iterdir()] == ["runs.db"]


def test_a_store_of_a_newer_version_is_found(store):
    store._database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    is_bad(workers.workers()[0], "fail", "newer version")


def test_an_empty_file_is_a_store_without_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("GMC_HOME", str(tmp_path))
    (tmp_path / "runs.db").touch()
    assert [check.status for check in workers.workers()] == ["ok", "ok"]
