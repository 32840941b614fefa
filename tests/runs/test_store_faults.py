"""A store whose disk is full, read-only or locked, whose clock is wrong, whose users are killed."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import BinaryIO

import pytest
from store_workers import ROOT, small, wait_for

from gmc_core.base.errors import GmcError, ModelFileError
from gmc_core.base.files import replacing
from gmc_core.runs.store import Store, StoreError, schema
from gmc_core.runs.store.folders import write_atomically
from gmc_core.runs.store.store import LEAVING
from gmc_core.runs.worker import ensure_worker


@pytest.fixture
def tiny_disk(tmp_path: Path):
    """A file system of one megabyte; skips where none may be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    try:
        done = subprocess.run(command, capture_output=True)
    except OSError:
        pytest.skip("no mount command")
    if done.returncode:
        pytest.skip("this user may not mount a file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(file: BinaryIO) -> None:
    """Write until there is no room."""
    while True:
        file.write(b"x" * 4096)


def test_a_disk_that_is_full_loses_nothing_and_goes_on_when_there_is_room(tiny_disk):
    store = Store(tiny_disk / "home")
    first = store.submit(small())
    ballast = tiny_disk / "ballast"
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="space"):
        fill(file)

    def submit_many() -> None:
        for seed in range(500):
            store.submit(small(epsilon=1.0 + seed))

    with pytest.raises(StoreError, match="is full"):
        submit_many()
    with pytest.raises(StoreError, match="is full"):
        write_atomically(store.folder(first.id) / "x.npz", lambda file: file.write(b"x" * 100_000))
    assert not list(tiny_disk.rglob(".part-*"))
    ballast.unlink()
    assert store.run(first.id).state == "queued"
    assert store.submit(small(epsilon=0.9)).state == "queued"
    store.close()
    with Store(tiny_disk / "home") as again:
        assert again.set_aside is None
        assert len(again.runs()) >= 2


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch, number):
    path = tmp_path / "model.npz"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError) as caught:
        write_atomically(path, lambda file: file.write(b"new"))
    assert "full" in str(caught.value) or number not in (errno.ENOSPC, errno.EDQUOT)
    from gmc_core.base import array_archive

    with pytest.raises(ModelFileError, match="make room"):
        array_archive.write(path, "x", 1, {}, {})
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.npz"]


READER = """
import os, sys
from gmc_core.runs.store import Store, StoreError
if os.getuid() == 0: os.setuid(65534)
try:
    store = Store(sys.argv[1])
    print("runs:", len(store.runs()))
    store.rename(store.runs()[0].id, "new")
except StoreError as error:
    print("error:", error)
"""


def test_a_store_that_may_only_be_read_says_so():
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        with Store(Path(place) / "home") as store:
            store.submit(small())
        for path in Path(place).rglob("*"):
            os.chmod(path, 0o555 if path.is_dir() else 0o444)
        done = subprocess.run(
            [sys.executable, "-c", READER, f"{place}/home"],
            capture_output=True, text=True, cwd=ROOT,
        )  # fmt: skip
        assert "error: " in done.stdout, done.stderr
        assert "cannot be written" in done.stdout
        assert "Traceback" not in done.stderr


def test_a_store_locked_by_another_program_says_so_and_recovers(tmp_path, monkeypatch):
    monkeypatch.setattr(schema, "BUSY_SECONDS", 0.05)
    store = Store(tmp_path)
    run = store.submit(small())
    other = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(StoreError, match="busy"):
            store.rename(run.id, "new")
        assert store.run(run.id).label == ""  # reading goes on meanwhile
    finally:
        other.execute("ROLLBACK")
        other.close()
    assert store.rename(run.id, "new").label == "new"


# Deleting ---------------------------------------------------------------------------


def with_files(store: Store, seed: int = 0):
    run = store.submit(small(epsilon=1.0 + seed))
    write_atomically(store.folder(run.id) / "model.npz", lambda file: file.write(b"x" * 1000))
    return run


def test_deleting_that_was_killed_is_finished_by_the_next(tmp_path):
    store = Store(tmp_path)
    gone, other = with_files(store), with_files(store, 1)
    code = (
        "import os, shutil, signal, sys\n"
        "from gmc_core.runs.store import Store\n"
        "shutil.rmtree = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "Store(sys.argv[1]).delete(sys.argv[2])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path), gone.id], cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    assert [run.id for run in store.runs()] == [other.id]
    assert list((tmp_path / "runs").glob(f"*{LEAVING}"))
    store.delete(other.id)
    assert not list((tmp_path / "runs").iterdir())


def test_deleting_that_fails_gives_the_files_back(tmp_path, monkeypatch):
    store = Store(tmp_path)
    run = with_files(store)
    with monkeypatch.context() as patch:
        rows = store.rows

        def full(query: str, *values: object):
            if query.startswith("SELECT id, state"):
                store.folder(run.id).rename(store.folder(run.id).with_suffix(LEAVING))
                raise StoreError("The disk is full.")
            return rows(query, *values)

        patch.setattr(store, "rows", full)
        with pytest.raises(StoreError, match="full"):
            store.delete(run.id)
    assert store.model_path(run.id) is not None


def test_files_of_a_database_that_was_set_aside_stay(tmp_path):
    store = Store(tmp_path)
    kept = with_files(store)
    store.close()
    for path in tmp_path.glob("runs.db*"):
        path.unlink()
    store = Store(tmp_path)
    store.delete(with_files(store, 1).id)
    assert (tmp_path / "runs" / kept.id / "model.npz").exists()


# Clocks and killed servers ----------------------------------------------------------


@pytest.mark.parametrize("clock", [0.0, 1.0, 4e9])
def test_a_clock_that_jumps_spoils_no_order(tmp_path, monkeypatch, clock):
    store = Store(tmp_path)
    first = store.submit(small())
    monkeypatch.setattr(time, "time", lambda: clock)
    second = store.submit(small(epsilon=2.0))
    store.cancel(first.id)
    store.resume(first.id)
    assert [run.id for run in store.runs()] == [second.id, first.id]
    assert store.remaining_seconds(first.id) is None or store.remaining_seconds(first.id) >= 0


SERVER = """
import sys, time
from gmc_core.runs.store import Store
from gmc_core.runs.worker import ensure_worker
from store_workers import small
store = Store(sys.argv[1])
run = store.submit(small(iterations=40), again=True)
ensure_worker(store, idle_seconds=0)
print(run.id, flush=True)
time.sleep(600)
"""


def test_a_server_killed_during_its_run_loses_nothing_to_another_on_the_same_store(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path)],
        stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment,
    )  # fmt: skip
    assert server.stdout is not None
    runs = [server.stdout.readline().strip()]
    with Store(tmp_path) as store:  # the other dashboard
        runs.append(store.submit(small(iterations=40), again=True).id)
        ensure_worker(store, idle_seconds=0)
        wait_for(lambda: store.run(runs[0]).state == "running")
        server.kill()
        server.wait()
        wait_for(lambda: all(store.run(run).state == "finished" for run in runs))
        assert all(len(store.records(run)) == 40 for run in runs)


def test_errors_of_rights_are_sentences(tmp_path):
    with pytest.raises(GmcError):
        Store(tmp_path / "x" / ("y" * 300))
    with pytest.raises(OSError, match="No such file"), replacing(tmp_path / "missing" / "file"):
        pass
