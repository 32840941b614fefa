"""What is written, and where to: links, devices, pipes, descriptors, folders without room."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from making import random_table, ratings_of

from gmc_core import cli
from gmc_core.base import files
from gmc_core.base.errors import ConfigError, ResourceError
from gmc_core.base.files import replacing, try_target
from gmc_core.base.table_files import TableWriter, rounded_text
from gmc_core.fitting.fit import run_fit
from gmc_core.gaussian.settings import FitSettings
from gmc_core.model.model_file import load_model, save_model
from gmc_core.protocol.splits import no_split
from gmc_core.tables.wide_table import complete_table, read_table, write_completed

ROOT = Path(__file__).resolve().parents[1]
TABLE = "k,x,y\na,1,2\nb,2,\nc,,5\nd,4,8\n"
COORDINATES = """point,northing,easting,epoch
a,5412345.67,401234.5,1600000001
b,5412346.12,401235.5,1600000011
c,5412347.01,,1600000033
d,,401238.5,1600000044
e,5412349.55,401239.5,
f,5412350.4,401240.4,1600000065
"""


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setattr(cli, "_tolerate_narrow_terminals", lambda: None)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture
def device(tmp_path):
    """A character device that takes anything, as /dev/null does."""
    path = tmp_path / "device"
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        path.open("wb").close()
    except (OSError, AttributeError) as error:
        pytest.skip(f"devices can be made by root only, where the file system has them ({error})")
    return path


class Listener(threading.Thread):
    """Reads a pipe to its end."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.path, self.content = path, b""
        self.start()

    def run(self) -> None:
        self.content = self.path.read_bytes()

    def heard(self) -> bytes:
        self.join(timeout=20)
        assert not self.is_alive()
        return self.content


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def write(path: Path, content: bytes = b"new") -> None:
    with replacing(path) as file:
        file.write(content)


# Digits -------------------------------------------------------------------------------


def test_a_csv_holds_the_very_numbers_of_the_parquet_file(tmp_path):
    source = tmp_path / "map.csv"
    source.write_text(COORDINATES)
    result = complete_table(read_table(source), sd=True)
    for ending in ("csv", "parquet"):
        write_completed(result, tmp_path / f"o.{ending}")
    for name, expected in (("o", result.values), ("o.sd", result.sd)):
        rows = (tmp_path / f"{name}.csv").read_text().splitlines()[1:]
        text = np.array([row.split(",")[1:] for row in rows], float)
        stored = pyarrow.parquet.read_table(tmp_path / f"{name}.parquet")
        np.testing.assert_array_equal(text, expected)
        np.testing.assert_array_equal(
            np.column_stack([stored[column].to_numpy() for column in stored.column_names[1:]]),
            expected,
        )
    northing = result.values[3, 0]
    assert 5412345 < northing < 5412351 and northing != round(northing, 0)


def test_the_summary_shows_means_to_below_their_deviations(tmp_path, capsys):
    source = tmp_path / "map.csv"
    source.write_text(COORDINATES)
    assert cli.main(["complete", "--table", str(source), "--out", str(tmp_path / "o.csv")]) == 0
    line = next(t for t in capsys.readouterr().err.splitlines() if t.startswith("northing"))
    assert line.split()[3].startswith("5412347.75")


@pytest.mark.parametrize(
    ("value", "sd", "text"),
    [
        (5412347.75, 1.79, "5412347.75"), (1600000030.8, 25.0, "1600000030.8"),
        (3.6602213382720947, 1.0, "3.66022"), (1e-6, 3.3e-9, "1e-06"),
        (1e5 / 3, 1e-3, "33333.333333"),
        (0.0, 1.0, "0"), (7.0, 0.0, "7"), (1e22, 1.0, "1e+22"), (float("nan"), 1.0, ""),
        (123456.0, 1e4, "123456"), (-2.5, float("nan"), "-2.5"),
    ],
)  # fmt: skip
def test_numbers_for_people(value, sd, text):
    assert rounded_text(value, sd) == text


# Where to -----------------------------------------------------------------------------


@pytest.mark.parametrize("there", [True, False], ids=["there", "dangling"])
@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_link_stays_and_its_target_is_written(tmp_path, there, elsewhere):
    folder = tmp_path / "other" if elsewhere else tmp_path
    folder.mkdir(exist_ok=True)
    if there:
        (folder / "real").write_bytes(b"old")
    # A relative link to a link: each is followed from where it stands.
    (tmp_path / "second").symlink_to(os.path.relpath(folder / "real", tmp_path))
    link = tmp_path / "first"
    link.symlink_to("second")
    try_target(link)
    assert (folder / "real").exists() == there
    write(link)
    assert link.is_symlink() and (tmp_path / "second").is_symlink()
    assert (folder / "real").read_bytes() == b"new"


def test_tables_and_models_go_through_links(tmp_path, table):
    (tmp_path / "o.csv").symlink_to("real.csv")
    (tmp_path / "m.npz").symlink_to("real.npz")
    assert cli.main(["complete", "--table", str(table), "--out", str(tmp_path / "o.csv")]) == 0
    save_model(small_model(), tmp_path / "m.npz")
    assert (tmp_path / "o.csv").is_symlink() and (tmp_path / "m.npz").is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("k,x,y\na,1,2\n")
    assert load_model(tmp_path / "real.npz").items.ids.tolist() == [0, 1, 2]


def small_model():
    return run_fit(
        no_split(ratings_of(*random_table(6, 3, 0.7, 1))), FitSettings(iterations=1)
    ).model()


def test_links_in_a_circle_are_refused_before_any_work(tmp_path, table, capsys):
    (tmp_path / "a.csv").symlink_to("b.csv")
    (tmp_path / "b.csv").symlink_to("a.csv")
    assert cli.main(["complete", "--table", str(table), "--out", str(tmp_path / "a.csv")]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert (tmp_path / "a.csv").is_symlink()


def test_a_device_stays_one(device, table):
    again = device.parent / "d.csv"
    for path in (device, again):
        if path == again:
            device.rename(again)
        assert cli.main(["complete", "--table", str(table), "--out", str(path)]) == 0
        assert stat.S_ISCHR(path.stat().st_mode)
    assert cli.main(["data", "check", str(ratings_file(device.parent)), "--json", str(again)]) == 0
    save_model(small_model(), again)
    assert stat.S_ISCHR(again.stat().st_mode)
    assert not [path for path in device.parent.iterdir() if path.name.startswith(files.PART)]


def ratings_file(folder: Path) -> Path:
    path = folder / "r.csv"
    path.write_text("user,item,rating\n1,1,3\n1,2,5\n2,1,4\n2,3,1\n")
    return path


def test_a_pipe_gets_the_table(pipe, table):
    listener = Listener(pipe)
    assert cli.main(["complete", "--table", str(table), "--out", str(pipe)]) == 0
    assert listener.heard().startswith(b"k,x,y\na,1,2\nb,2,")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_reader_that_has_gone_is_no_error(table, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # put back afterwards
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert cli.main(["complete", "--table", str(table), "--out", f"/dev/fd/{writer}"]) == 0
    finally:
        os.close(writer)
    assert "error" not in capsys.readouterr().err


def test_a_pipe_gets_json_and_whole_archives(pipe, tmp_path):
    listener = Listener(pipe)
    assert cli.main(["data", "check", str(ratings_file(tmp_path)), "--json", str(pipe)]) == 0
    assert json.loads(listener.heard())["problem"].startswith("The filter left nothing")
    listener = Listener(pipe)
    save_model(small_model(), pipe)
    (tmp_path / "m.npz").write_bytes(listener.heard())
    assert load_model(tmp_path / "m.npz").items.ids.tolist() == [0, 1, 2]
    listener = Listener(pipe)
    with TableWriter(pipe, ["k"], ["x"], "parquet") as writer:
        writer.write([["a"]], np.array([[1.5]]))
    (tmp_path / "t.parquet").write_bytes(listener.heard())
    assert pyarrow.parquet.read_table(tmp_path / "t.parquet")["x"].to_pylist() == [1.5]


def test_nothing_reaches_a_pipe_from_a_failed_writer(pipe):
    def fail_half_way():
        with replacing(pipe) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert os.read(reader, 10) == b""
    os.close(reader)


def test_open_descriptors_are_written_on_from_where_they_stand(tmp_path):
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.write(b"before ")
        file.flush()
        (tmp_path / "link").symlink_to(f"/dev/fd/{file.fileno()}")
        write(Path(f"/dev/fd/{file.fileno()}"), b"first ")
        write(tmp_path / "link", b"second ")
        file.write(b"after")
    assert path.read_bytes() == b"before first second after"


def test_standard_output_into_a_file_keeps_what_was_printed(tmp_path, table):
    code = (
        "import sys; from gmc_core import cli; print('before');"
        f"cli.main(['complete', '--table', {str(table)!r}, '--out', '/dev/stdout']); print('after')"
    )
    told = tmp_path / "told"
    with told.open("wb") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True, cwd=ROOT)
    lines = told.read_text().splitlines()
    assert lines[:3] == ["before", "k,x,y", "a,1,2"]
    assert lines[-2:] == ["/dev/stdout", "after"]
    assert Path("/dev/stdout").is_symlink()


# Tried before the work begins ----------------------------------------------------------


@pytest.fixture
def no_work(monkeypatch):
    """Fails the test if a command reads its data before it refuses its target."""

    def work(*_: object, **__: object) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr("gmc_core.tables.wide_table.read_table", work)
    monkeypatch.setattr("gmc_core.model.model_file.load_model", work)
    monkeypatch.setattr("gmc_core.data.readers.load", work)


def refused(arguments: list[str], capsys) -> str:
    assert cli.main(arguments) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("target", ["folder", "folder/new/", "", "missing/o.csv", "n" * 300])
def test_targets_that_are_no_files_are_refused_at_once(tmp_path, table, capsys, no_work, target):
    (tmp_path / "folder").mkdir()
    out = str(tmp_path) + "/" + target if target else ""
    assert "--out" in refused(["complete", "--table", str(table), "--out", out], capsys)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "t.csv"]


def full(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_full_disk_is_found_at_once(tmp_path, table, capsys, no_work, monkeypatch):
    monkeypatch.setattr(files.tempfile, "NamedTemporaryFile", full)
    out = str(tmp_path / "o.csv")
    told = refused(["complete", "--table", str(table), "--out", out], capsys)
    assert "No space left" in told and "make room" in told


def test_a_folder_that_may_not_be_written_to_is_found_at_once(tmp_path, monkeypatch):
    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files.tempfile, "NamedTemporaryFile", forbidden)
    with pytest.raises(PermissionError):
        try_target(tmp_path / "x.json")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs the rights of POSIX systems")
def test_rights_are_those_of_the_person(tmp_path):
    """As somebody without rights in the folder; root has them everywhere."""
    folder = tmp_path / "read only"
    folder.mkdir()
    folder.chmod(0o555)
    tmp_path.chmod(0o755)
    code = (
        "import os, sys, pathlib\n"
        "from gmc_core.base.files import try_target\n"
        "os.geteuid() or (os.setgroups([]), os.setgid(65534), os.setuid(65534))\n"
        "try: try_target(pathlib.Path(sys.argv[1]))\n"
        "except OSError as error: print(error.errno)"
    )
    # The folders above are this user's alone, so the work is done from inside.
    done = subprocess.run(
        [sys.executable, "-c", code, "x.json"], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": "/tmp"}, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "13"
    assert list(folder.iterdir()) == []


def test_the_second_file_is_tried_too(tmp_path, table, capsys, no_work, device):
    (tmp_path / "o.sd.csv").mkdir()
    out = str(tmp_path / "o.csv")
    assert "--sd" in refused(["complete", "--table", str(table), "--out", out, "--sd"], capsys)
    arguments = ["complete", "--table", str(table), "--out", str(device), "--sd"]
    assert "second one" in refused(arguments, capsys)


def test_a_device_without_a_driver_is_refused_at_once(tmp_path, device):
    path = tmp_path / "none"
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(240, 77))
    with pytest.raises(OSError, match="No such"):
        try_target(path)


def test_a_device_that_is_full_is_one_clear_error(tmp_path, device):
    path = tmp_path / "full.csv"
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
    with pytest.raises(ResourceError, match="No space left"), TableWriter(path, [], ["a"]) as out:
        out.write([], np.ones((1, 1)))
    assert stat.S_ISCHR(path.stat().st_mode)


def test_a_table_needs_a_name_that_says_its_format(tmp_path, table):
    with pytest.raises(ConfigError, match=r"\.csv or \.parquet"):
        write_completed(complete_table(read_table(table)), tmp_path / "o")
