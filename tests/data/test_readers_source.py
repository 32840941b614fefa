"""Folders, zips and files: what is opened, what is refused, and why."""

from __future__ import annotations

import contextlib
import gzip
import tarfile
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reader_files import ML1M, folder, text_file, zipped

from gmc_core.base.errors import DataError, GmcError
from gmc_core.data.readers import bounded, load, source


def test_missing_path(tmp_path):
    with pytest.raises(DataError, match=r"nowhere.*no such file or folder"):
        load(tmp_path / "nowhere")


def test_folder_without_known_files(tmp_path):
    folder(tmp_path, {"photo.png": b"x", "notes.md": b"y"})
    with pytest.raises(DataError, match=r"looked for ratings\.dat.*notes\.md, photo\.png"):
        load(tmp_path)


def test_folder_with_several_text_files(tmp_path):
    folder(tmp_path, {"a.csv": b"1,2,3\n", "b.csv": b"1,2,3\n"})
    with pytest.raises(DataError, match=r"a\.csv, b\.csv"):
        load(tmp_path)


@pytest.mark.parametrize("data", [b"", b"\n\n  \n"])
def test_empty_file(tmp_path, data):
    with pytest.raises(DataError, match="empty|blank"):
        load(text_file(tmp_path, data))


def test_empty_ratings_file(tmp_path):
    with pytest.raises(DataError, match="empty"):
        load(folder(tmp_path, {"ratings.dat": b""}), format="movielens-dat")


def test_nul_bytes(tmp_path):
    with pytest.raises(DataError, match="line 2.*NUL"):
        load(text_file(tmp_path, b"1,2,3\n1,\0,3\n"))
    with pytest.raises(DataError, match="UTF-16"):
        load(text_file(tmp_path, "1,2,3\n".encode("utf-16")))


def test_members_that_leave_the_archive_are_ignored(tmp_path):
    path = zipped(tmp_path / "x.zip", ML1M)
    with zipfile.ZipFile(path, "a") as archive:
        for name in ("../u.data", "/etc/u.data", "a/../../u.data", "C:\\u.data", "..\\u.data"):
            archive.writestr(name, b"1\t1\t1\t1\n")
        archive.writestr("__MACOSX/._ratings.dat", b"junk")
    loaded = load(path)
    assert loaded.report.format == "movielens-dat"
    assert source.open_source(path).find("u.data") is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.zip"]


def test_two_files_of_one_name(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/ratings.dat", ML1M["ratings.dat"])
        archive.writestr("b/ratings.dat", ML1M["ratings.dat"])
    with pytest.raises(DataError, match=r"two files named ratings\.dat.*a/ratings\.dat"):
        load(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("ratings.dat", b"1::1::5::0\n")
    assert len(load(path).ratings) == 1  # the least deep one


@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_truncated_zip(tmp_path, keep):
    path = zipped(tmp_path / "x.zip", ML1M)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(DataError, match="zip file is damaged"):
        load(path)


def test_corrupted_member(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("ratings.dat", b"1::1::5::0\n" * 10)
    data = bytearray(path.read_bytes())
    data[60] ^= 0x0F
    path.write_bytes(bytes(data))
    with pytest.raises(DataError, match="zip file is damaged"):
        load(path)


def test_encrypted_zip(tmp_path):
    path = zipped(tmp_path / "x.zip", {"ratings.dat": ML1M["ratings.dat"]})
    data = bytearray(path.read_bytes())
    data[6] |= 1  # the flag in the local header and in the directory
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(bytes(data))
    with pytest.raises(DataError, match="password"):
        load(path)


def test_archive_bombs_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(bounded, "RATIO_APPLIES_FROM_BYTES", 1000)
    path = zipped(tmp_path / "x.zip", {"ratings.dat": b"\n" * 1_000_000})
    with pytest.raises(DataError, match="200 times its size"):
        load(path)
    packed = text_file(tmp_path, gzip.compress(b"\n" * 1_000_000), "ratings.csv.gz")
    with pytest.raises(DataError, match="200 times its size"):
        load(packed)
    inner = gzip.compress(b"\n" * 1_000_000)
    with pytest.raises(DataError, match="200 times its size"):
        load(zipped(tmp_path / "z.zip", {"ratings.csv.gz": inner}))
    monkeypatch.setattr(bounded, "MAX_TOTAL_BYTES", 20_000)
    path = zipped(tmp_path / "y.zip", {"a.csv": bytes(range(1, 250)) * 100})
    with pytest.raises(DataError, match="archive bombs"):
        load(path)


def test_gzip(tmp_path):
    packed = gzip.compress(b"user,item,rating\n1,2,3\n1,3,5\n")
    assert len(load(text_file(tmp_path, packed, "mine.csv.gz")).ratings) == 2
    with pytest.raises(DataError, match="gzip file is damaged"):
        load(text_file(tmp_path, packed[:-9], "cut.csv.gz"))


def test_gzip_inside_a_zip(tmp_path):
    packed = gzip.compress(ML1M["ratings.dat"])
    assert len(load(zipped(tmp_path / "x.zip", {"ratings.dat.gz": packed})).ratings) == 5
    for cut in (packed[:-20], packed[:12] + b"x" * 20):
        path = zipped(tmp_path / "y.zip", {"ratings.csv.gz": cut})
        with pytest.raises(DataError, match="gzip file is"):
            load(path)


def test_tar_archives_are_named(tmp_path):
    content = text_file(tmp_path, "1,2,3\n", "a.csv")
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as archive:
        archive.add(content, "a.csv")
    with pytest.raises(DataError, match="Tar archives"):
        load(tmp_path / "x.tar.gz")


def test_links_out_of_the_folder_are_refused(tmp_path):
    outside = text_file(tmp_path / "secret", ML1M["ratings.dat"], "ratings.dat")
    inside = folder(tmp_path / "open", {})
    (inside / "ratings.dat").symlink_to(outside)
    with pytest.raises(DataError, match="link to a place outside"):
        load(inside)


def test_a_link_that_was_named_is_followed(tmp_path):
    outside = text_file(tmp_path / "data", ML1M["ratings.dat"], "ratings.dat")
    link = folder(tmp_path / "open", {}) / "ratings.dat"
    link.symlink_to(outside)
    assert len(load(link).ratings) == 5


def test_zip_with_one_text_file(tmp_path):
    path = zipped(tmp_path / "mine.zip", {"deep/x.csv": b"a,b,5\na,c,1\n"})
    loaded = load(path)
    assert loaded.report.format == "delimited" and loaded.ratings.n_items == 2


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=4))
def test_damaged_zips_give_ratings_or_a_clear_error(tmp_path_factory, changes):
    path = zipped(tmp_path_factory.mktemp("zip") / "x.zip", ML1M)
    data = bytearray(path.read_bytes())
    for place, value in changes:
        data[int(place * len(data))] = value
    path.write_bytes(bytes(data))
    with contextlib.suppress(GmcError):
        load(path)
