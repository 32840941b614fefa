"""Changed files are noticed, wherever a reader would find them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from making import movielens_folder

from gmc_core.data.readers.stamps import stamps
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.runs.store.submitting import source_of


def touch(file: Path) -> None:
    """Change a file, and make sure that its time tells."""
    file.write_bytes(file.read_bytes() + b"\n")
    os.utime(file, ns=(1, 1))


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_a_change_at_any_depth_that_is_read_is_noticed(tmp_path, depth):
    folder = tmp_path.joinpath(*"abc"[:depth])
    folder.parent.mkdir(parents=True, exist_ok=True)
    movielens_folder(folder / "ml")
    config = ExperimentConfig(data=str(tmp_path))
    before, source = stamps(tmp_path), source_of(config)
    assert before
    touch(folder / "ml" / "ratings.dat")
    assert stamps(tmp_path) != before
    assert source_of(config) != source


def test_titles_beside_a_named_file_count_and_other_files_do_not(tmp_path):
    folder = tmp_path / "ml"
    movielens_folder(folder)
    ratings = folder / "ratings.dat"
    before = stamps(ratings)
    (folder / "notes.log").write_text("grows all the time")
    assert stamps(ratings) == before
    touch(folder / "movies.dat")
    assert stamps(ratings) != before


def test_what_is_not_there_has_no_stamp(tmp_path):
    assert stamps(tmp_path / "absent.csv") == []
    assert stamps(Path("sample-that-is-no-file")) == []


def test_a_link_that_leads_nowhere_is_no_error(tmp_path):
    (tmp_path / "ratings.csv").symlink_to(tmp_path / "gone.csv")
    assert len(stamps(tmp_path)) == 1


def test_a_folder_of_files_is_stamped_as_before(tmp_path):
    """The hash of a source is kept in stores, so a flat folder must give the same."""
    for name in ("b.csv", "a.csv"):
        (tmp_path / name).write_text("user,item,rating\n")
    facts = [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in sorted(tmp_path.iterdir())]
    assert stamps(tmp_path) == facts
