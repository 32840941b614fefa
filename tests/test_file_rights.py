"""Rights of the files that are written: as of any new file, without touching the process's mask."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from gmc_core.base.files import replacing

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def mask(monkeypatch):
    """Sets the mask; from then on nobody may."""
    before = os.umask(0o022)
    os.umask(before)
    original = os.umask

    def set_mask(value: int) -> None:
        original(value)

        def refuse(_: int) -> int:
            raise AssertionError("the mask is the whole process's: another thread would see it")

        monkeypatch.setattr(os, "umask", refuse)

    yield set_mask
    original(before)


@pytest.mark.parametrize(("value", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_rights_of_new_files(mask, tmp_path, value, expected):
    mask(value)
    with replacing(tmp_path / "new.csv") as file:
        file.write(b"1")
    assert mode(tmp_path / "new.csv") == expected


def test_a_file_that_is_replaced_keeps_its_rights(mask, tmp_path):
    path = tmp_path / "private.csv"
    path.write_text("old")
    path.chmod(0o600)
    mask(0o022)
    with replacing(path) as file:
        file.write(b"new")
    assert (path.read_text(), mode(path)) == ("new", 0o600)


def test_what_is_written_can_be_read_back_while_it_is_written(tmp_path):
    """As archives of arrays and parquet do."""
    with replacing(tmp_path / "a.bin") as file:
        file.write(b"abc")
        file.seek(0)
        assert file.read() == b"abc"
