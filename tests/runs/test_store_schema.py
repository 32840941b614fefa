"""Done when: old stores migrate, newer ones are refused, damaged ones are set aside."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from store_workers import ROOT, small

from gmc_core.data.hashes import file_sha256
from gmc_core.fitting.config import MODEL_VERSIONS
from gmc_core.fitting.preparing import describe, prepare
from gmc_core.runs.store import Store, StoreError, schema
from gmc_core.runs.store.submitting import key_of


def test_a_new_store_has_the_newest_schema(tmp_path: Path) -> None:
    store = Store(tmp_path / "new" / "folder")
    assert store.rows("PRAGMA user_version")[0][0] == schema.SCHEMA_VERSION
    assert store.rows("PRAGMA journal_mode")[0][0] == "wal"


def test_every_older_schema_migrates_with_its_runs(tmp_path: Path) -> None:
    for version in range(1, schema.SCHEMA_VERSION):
        folder = tmp_path / str(version)
        folder.mkdir()
        old = sqlite3.connect(folder / "runs.db")
        for script in schema.MIGRATIONS[:version]:
            old.executescript(script)
        old.execute(f"PRAGMA user_version = {version}")
        old.execute(
            "INSERT INTO runs (id, kind, state, config, request, created, version) "
            "VALUES ('abc', 'run', 'finished', '{}', 'x', 0, '0')"
        )
        old.commit()
        old.close()
        store = Store(folder)
        assert store.rows("PRAGMA user_version")[0][0] == schema.SCHEMA_VERSION
        assert store.run("abc").state == "finished"


@pytest.mark.parametrize("version", [1, 2])
def test_a_copied_key_of_an_older_store_answers_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Runs that such a store has computed go on answering, with keys of old models too."""
    np.save(tmp_path / "noise.npy", np.eye(30))
    noisy = small(noise=str(tmp_path / "noise.npy"))
    configs = {"own": small(), "edited": small(epsilon=0.9), "old": small(epsilon=0.8),
               "noisy": noisy}  # fmt: skip
    data = describe(prepare(small()))
    asked = small(epsilon=0.7)
    keys = {name: key_of(config, data) for name, config in configs.items()}
    keys["edited"] = key_of(asked, data)  # the file's settings were changed, its key copied
    with monkeypatch.context() as patch:
        patch.setitem(MODEL_VERSIONS, "paper", 2)
        keys["old"] = key_of(configs["old"], data)
    told = {**data, "files": {"noise": file_sha256(tmp_path / "noise.npy")}}
    (tmp_path / "noise.npy").unlink()
    old = sqlite3.connect(tmp_path / "runs.db")
    for script in schema.MIGRATIONS[:version]:
        old.executescript(script)
    old.execute(f"PRAGMA user_version = {version}")
    for name, config in configs.items():
        old.execute(
            "INSERT INTO runs (id, kind, state, config, request, key, data, created, version) "
            "VALUES (?, 'run', 'finished', ?, '', ?, ?, 0, '0')",
            (name, json.dumps(config.as_dict()), keys[name], json.dumps(told)),
        )
    old.commit()
    old.close()
    store = Store(tmp_path)
    found = {run.id: run.reusable for run in store.runs()}
    assert found == {"own": True, "edited": False, "old": True, "noisy": True}
    assert store.submit_or_find(small(), data=data)[0].id == "own"
    assert store.submit_or_find(asked, data=data)[1]


def test_a_further_migration_runs_once_and_keeps_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Store(tmp_path).submit(small())
    script = "ALTER TABLE runs ADD COLUMN colour TEXT DEFAULT 'blue'; CREATE TABLE more (x);"
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, script))
    monkeypatch.setattr(schema, "SCHEMA_VERSION", schema.SCHEMA_VERSION + 1)
    for _ in range(2):
        store = Store(tmp_path)
        assert store.run(run.id).config == run.config
        assert store.rows("SELECT colour FROM runs")[0][0] == "blue"


def test_a_failing_migration_leaves_the_store_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Store(tmp_path).submit(small())
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "DROP TABLE runs; NONSENSE"))
        patch.setattr(schema, "SCHEMA_VERSION", schema.SCHEMA_VERSION + 1)
        with pytest.raises(StoreError):
            Store(tmp_path)
    assert Store(tmp_path).run(run.id).state == "queued"


def test_a_newer_store_is_refused_and_not_touched(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.submit(small())
    store.close()
    database = sqlite3.connect(tmp_path / "runs.db")
    database.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION + 1}")
    database.close()
    before = (tmp_path / "runs.db").read_bytes()
    with pytest.raises(StoreError, match="newer version.*GMC_HOME"):
        Store(tmp_path)
    assert (tmp_path / "runs.db").read_bytes() == before


@pytest.mark.parametrize("damage", ["garbage", "middle", "truncated"])
def test_a_damaged_file_is_set_aside_and_reported(tmp_path: Path, damage: str) -> None:
    store = Store(tmp_path)
    for seed in range(30):
        store.submit(small(epsilon=1.0 + seed))
    store.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    path = tmp_path / "runs.db"
    content = bytearray(path.read_bytes())
    if damage == "garbage":
        content = bytearray(b"these are no runs " * 1000)
    elif damage == "middle":
        content[4096:12288] = os.urandom(8192)
    else:
        del content[len(content) // 2 :]
    path.write_bytes(content)

    store = Store(tmp_path)
    assert store.set_aside == tmp_path / "runs.db.damaged-1"
    assert store.set_aside.read_bytes() == bytes(content)
    assert store.runs() == []
    ((_, level, text),) = store.messages()
    assert level == "warning"
    assert "runs.db.damaged-1" in text
    store.submit(small())
    store.close()
    path.write_bytes(content)
    assert Store(tmp_path).set_aside == tmp_path / "runs.db.damaged-2"
    assert (tmp_path / "runs.db.damaged-1").read_bytes() == bytes(content)


def test_of_two_that_find_the_damage_one_sets_it_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(b"these are no runs " * 1000)
    original = schema._open

    def slower_than_another_process(name: Path) -> sqlite3.Connection:
        try:
            return original(name)
        except sqlite3.DatabaseError:
            path.rename(tmp_path / "runs.db.damaged-1")
            original(name).close()
            raise

    monkeypatch.setattr(schema, "_open", slower_than_another_process)
    store = Store(tmp_path)
    assert store.set_aside is None
    assert store.runs() == []
    assert [file.name for file in tmp_path.glob("*damaged*")] == ["runs.db.damaged-1"]


def test_setting_aside_overwrites_no_log_either(tmp_path: Path) -> None:
    path, old = tmp_path / "runs.db", tmp_path / "runs.db.damaged-1-wal"
    old.write_bytes(b"a log without its database")
    path.write_bytes(b"these are no runs " * 1000)
    (tmp_path / "runs.db-wal").write_bytes(b"its log")
    aside = schema._set_aside(path)
    assert aside == tmp_path / "runs.db.damaged-2"
    assert (tmp_path / "runs.db.damaged-2-wal").read_bytes() == b"its log"
    assert old.read_bytes() == b"a log without its database"
    assert not path.exists()


def test_a_store_that_is_no_folder_is_a_clear_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written.*GMC_HOME"):
        Store(tmp_path / "file")


def test_a_read_only_folder_is_a_clear_message() -> None:
    """As another user, since root may write everywhere."""
    code = (
        "import os, sys\n"
        "from gmc_core.runs.store import Store, StoreError\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "try: Store(sys.argv[1])\n"
        "except StoreError as error: print(error)\n"
    )
    # Not pytest's folder, which other users cannot even enter.
    with tempfile.TemporaryDirectory() as locked:
        os.chmod(locked, 0o555)
        done = subprocess.run(
            [sys.executable, "-c", code, f"{locked}/gmc"],
            capture_output=True, text=True, cwd=ROOT,
        )  # fmt: skip
        assert "cannot be written" in done.stdout, done.stderr


def test_a_full_disk_is_a_clear_message_and_loses_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = store.submit(small())
    pages = store.rows("PRAGMA page_count")[0][0]
    store.rows(f"PRAGMA max_page_count = {pages}")  # SQLite then says that the disk is full

    def fill() -> None:
        for seed in range(200):
            store.submit(small(epsilon=1.0 + seed))

    with pytest.raises(StoreError, match="is full"):
        fill()
    store.rows("PRAGMA max_page_count = 1000000")
    assert store.run(run.id).state == "queued"
    assert store.rows("PRAGMA integrity_check")[0][0] == "ok"
    store.submit(small(epsilon=99.0))
