"""What one file may take: memory, length of a line, inflation, time; and what is no file at all."""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from fuzzing import tried
from making import random_table, ratings_of
from reader_files import text_file

from gmc_core.base.errors import DataError, FetchError
from gmc_core.data import downloads
from gmc_core.data.readers import DelimitedOptions, bounded, load, preview, read_pairs
from gmc_core.gaussian.noise_files import load_noise
from gmc_core.gaussian.signals import Layout
from gmc_core.tables import wide_reader
from gmc_dashboard.data import own_file

MB = 1_000_000
# The bound that docs/security.md states, in bytes a byte of text, and beside it.
PER_BYTE, BESIDE = 40, 200 * MB


def peak_of(action: Callable[[], object]) -> int:
    """The most memory that Python's objects took meanwhile."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """2 GB without a line end, that take no room on the disk."""
    path = tmp_path / "endless.csv"
    path.write_bytes(b"user,item,rating\n1,2,3\n1,3,")
    os.truncate(path, 2 * 1024**3)
    return path


def ask(endless: Path) -> dict[str, Callable[[], object]]:
    ratings = ratings_of(*random_table(6, 3, 0.5, 1))
    return {
        "load": lambda: load(endless),
        "pairs": lambda: read_pairs(endless),
        "table": lambda: wide_reader.read_table(endless),
        "variances": lambda: load_noise(str(endless), ratings, Layout("rows", 6, 3)),
        "folder": lambda: load(endless.parent),
    }


@pytest.mark.parametrize("way", ["load", "pairs", "table", "variances", "folder"])
def test_a_line_of_2_gb_is_refused_before_it_is_in_memory(endless, way):
    def refused():
        with pytest.raises(DataError, match="A line is longer than 16 MB"):
            ask(endless)[way]()

    assert peak_of(refused) < 80 * MB


def test_a_preview_reads_only_the_start_of_a_long_line(endless):
    assert peak_of(lambda: own_file.inspect(endless)) < 10 * MB


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_of_any_system_are_short(tmp_path, monkeypatch, end):
    monkeypatch.setattr(bounded, "MAX_LINE_BYTES", 50)
    monkeypatch.setattr(bounded, "CHUNK", 7)
    rows = [b"%d,%d,%d" % (k, 2 * k, 1 + k % 5) for k in range(30)]
    assert len(load(text_file(tmp_path, end.join(rows))).ratings) == 30
    rows[20] += b" " * 60
    with pytest.raises(DataError, match="longer than"):
        load(text_file(tmp_path, end.join(rows)))


def lying_zip(path: Path, method: int, size: int) -> Path:
    """Ratings that the archive says are 30 bytes."""
    data = b"1,2,3\n" * (size // 6)
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("ratings.txt", data)
    content = path.read_bytes()
    told, lie = struct.pack("<I", len(data)), struct.pack("<I", 30)
    assert content.count(told) == 2  # in the member's header and in the directory
    path.write_bytes(content.replace(told, lie))
    return path


@pytest.mark.parametrize(
    ("method", "size"), [(zipfile.ZIP_DEFLATED, 100 * MB), (zipfile.ZIP_BZIP2, 5 * MB)]
)
def test_a_zip_that_lies_about_its_size_takes_no_memory(tmp_path, method, size):
    path = lying_zip(tmp_path / "x.zip", method, size)
    assert peak_of(lambda: tried(load, path, path=path)) < size / 4
    assert tried(load, path, path=path) is None


def test_rare_compressions_are_refused_with_the_remedy(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("ratings.txt", b"1,2,3\n")
    with pytest.raises(DataError, match="unpack it"):
        load(tmp_path / "x.zip")


def test_a_gzip_bomb_in_a_zip_stops_while_it_grows(tmp_path, monkeypatch):
    monkeypatch.setattr(bounded, "RATIO_APPLIES_FROM_BYTES", 4 * MB)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("ratings.csv.gz", gzip.compress(b"1,2,3\n" * (50 * MB // 6)))

    def refused():
        with pytest.raises(DataError, match="archive bombs"):
            load(tmp_path / "x.zip")

    assert peak_of(refused) < 25 * MB


def test_more_text_than_fits_into_the_free_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(bounded, "RATIO_APPLIES_FROM_BYTES", 10)
    monkeypatch.setattr(bounded.psutil, "virtual_memory", lambda: type("M", (), {"available": 500}))
    with pytest.raises(DataError, match="memory"):
        load(text_file(tmp_path, "1,2,3\n" * 100))


CHILD = """
import resource, sys
from gmc_core.data.readers import load
load(sys.argv[1])  # a small file first: libraries and buffers
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
load(sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts KiB as Linux does")
def test_reading_takes_no_more_memory_than_stated(tmp_path):
    rng = np.random.default_rng(0)
    count = 400_000  # in no order, each user and item new: the worst that rows can be
    rows = np.column_stack(
        [rng.permutation(count), rng.permutation(count), rng.integers(1, 6, count)]
    )
    large = text_file(tmp_path, "".join(f"{u},{i},{r}\n" for u, i, r in rows.tolist()))
    small = text_file(tmp_path / "small", "1,2,3\n2,2,1\n")
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(small), str(large)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert int(done.stdout) * 1024 < PER_BYTE * large.stat().st_size + BESIDE


def test_a_parquet_file_of_billions_of_equal_entries_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(wide_reader, "MAX_CELLS", 1000)
    path = tmp_path / "x.parquet"
    columns = {name: np.ones(600) for name in "ab"}
    pyarrow.parquet.write_table(pa.table(columns), path)
    with pytest.raises(DataError, match="more than the 1,000 entries"):
        wide_reader.read_table(path)


@pytest.mark.timeout(60)  # quadratic time would take hours
def test_a_long_run_of_blanks_takes_no_time(tmp_path):
    blanks = " " * 1_500_000
    path = text_file(tmp_path, f"1 2 3\n2 2{blanks}4\n2 3 4{blanks}\n", "r.dat")
    loaded = load(path, options=DelimitedOptions(separator="whitespace"))
    assert len(loaded.ratings) == 3


@pytest.mark.timeout(60)
@pytest.mark.parametrize("format", [None, "jester", "delimited"])
def test_a_table_as_wide_as_a_catalogue_is_no_table_of_ratings(tmp_path, format):
    wide = ",".join(["1"] * 500_000)
    path = text_file(tmp_path, f"{wide}\n{wide}\n")
    with pytest.raises(DataError, match="columns"):
        load(path, format=format)
    if format is None:
        with pytest.raises(DataError, match="columns"):
            own_file.inspect(text_file(tmp_path, ",".join(["1"] * 20_000) + "\n"))


def test_headings_of_a_preview_are_distinct():
    names = ["a", "a", "a (2)", "b", ""]
    assert len(set(own_file._distinct(names))) == len(names)
    assert own_file._distinct(names)[3] == "b"


# No files ---------------------------------------------------------------------------


@pytest.mark.timeout(60)
def test_a_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "ratings.dat")
    for path in (tmp_path, tmp_path / "ratings.dat"):
        assert tried(load, path, path=tmp_path) is None
        assert tried(preview, path, path=tmp_path) is None


@pytest.mark.parametrize("path", ["/dev/zero", "a\0b", "x" * 5000, "~no-such-user/x", "", "\ud800"])
def test_odd_paths_are_errors(path):
    with pytest.raises(DataError):
        load(path)


def test_links_in_a_circle_are_an_error(tmp_path):
    (tmp_path / "ratings.dat").symlink_to(tmp_path / "ratings.dat")
    assert tried(load, tmp_path / "ratings.dat", path=tmp_path) is None
    assert tried(load, tmp_path, path=tmp_path) is None


def test_linked_folders_are_not_entered(tmp_path):
    text_file(tmp_path / "outside", "1,2,3\n", "ratings.csv")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(DataError, match="there is no file"):
        load(tmp_path / "inside")


@pytest.mark.parametrize("encoding", ["idna", "undefined", "rot13", "hex", "utf\0", "x" * 3000, ""])
def test_encodings_that_are_none(tmp_path, encoding):
    path = text_file(tmp_path, "1,2,3\n\xfc,1,1\n")
    tried(load, path, path=path)
    with pytest.raises(DataError, match="encoding"):
        load(path, options=DelimitedOptions(encoding=encoding))


def test_halves_of_characters_are_no_text(tmp_path):
    path = text_file(tmp_path, "1,\\ud800,3\n2,x,1\n")
    with pytest.raises(DataError, match="no character"):
        load(path, options=DelimitedOptions(encoding="unicode_escape"))


@pytest.mark.parametrize("value", ["1e16", "-1e300"])
def test_ratings_too_large_to_compute_with_are_refused(tmp_path, value):
    with pytest.raises(DataError, match="line 2.*larger than 1e\\+15"):
        load(text_file(tmp_path, f"1,2,3\n1,3,{value}\n"))


# Downloads --------------------------------------------------------------------------


class Endless:
    """A server that sends without end, and says so or not."""

    is_redirect = False

    def __init__(self, told: str | None) -> None:
        self.headers = {} if told is None else {"content-length": told}
        self.sent = 0

    def __enter__(self) -> Endless:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def raise_for_status(self) -> None:
        pass

    def iter_content(self, size: int) -> Iterator[bytes]:
        while True:
            self.sent += size
            yield b"x" * size


@pytest.mark.parametrize("told", [None, "10", "9" * 15, "many", "-1"])
def test_a_download_without_end_ends(tmp_path, monkeypatch, told):
    server = Endless(told)
    monkeypatch.setattr("requests.get", lambda *_, **__: server)
    monkeypatch.setattr(downloads, "MAX_BYTES", 3_000_000)
    with pytest.raises(FetchError):
        downloads.download(["https://127.0.0.1/x.zip"], tmp_path, "x.zip", "md5:0")
    assert server.sent < 4_000_000
    assert list(tmp_path.iterdir()) == []
