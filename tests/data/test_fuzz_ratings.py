"""Ratings, tables, variances from damaged and hostile files: a correct load or one clear error.

The files are made by :mod:`fuzzing` from seeds, so that a failure can be repeated. The number
of files a kind is ``fuzzing.FILES``.
"""

from __future__ import annotations

import io
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from fuzzing import FILES, SETS, check_loaded, generated, mutated, packed, tried
from making import random_table, ratings_of
from reader_files import folder

from gmc_core import cli
from gmc_core.data import datasets
from gmc_core.data.readers import load, preview, read_pairs, read_triplets
from gmc_core.gaussian.noise_files import load_noise
from gmc_core.gaussian.signals import Layout
from gmc_core.tables.wide_reader import read_table
from gmc_dashboard.data import own_file
from gmc_dashboard.shared import sources

NAMES = ("a.csv", "ratings.dat", "u.data", "vote.txt", "ratings.csv", "jester.csv", "b.txt")
WIDE = (
    b"name,a,b,c\nx,1,2,\ny,,3.5,NA\nz,1e3,-2,7\n",
    b"a;b;c\n1,5;2;\n;3,5;4\n",
    "id\ta\té\n1\t2\t3\n2\t\t4\n".encode("latin-1"),
)
VARIANCES = (b"item,variance\n0,0.5\n1,0.25\n2,1\n", b"0.5\n0.25\n1\n")


def files_of(place: Path, rng: random.Random, *, archives: bool = False) -> Path:
    """A damaged data set, or a table of the generator; the path that a person would give."""
    files = dict(SETS[rng.choice(sorted(SETS))])
    if archives:
        path = place / "set.zip"
        path.write_bytes(packed(files, rng))
        return path
    if rng.random() < 0.4:
        path = place / rng.choice(NAMES)
        path.write_bytes(generated(rng))
        return path
    first = next(iter(files))
    name = first if rng.random() < 0.7 else rng.choice(sorted(files))
    files[name] = mutated(files[name], rng)
    folder(place, files)
    return place if rng.random() < 0.4 else place / first


def inspected(path: Path) -> None:
    """As the Data page shows a file before it is read."""
    found = own_file.inspect(path)
    if found.preview is not None:
        frame = own_file.preview_frame(found.preview)
        assert frame.columns.is_unique


OTHERS = (preview, inspected, read_pairs, read_triplets)


def test_a_full_run_tries_two_thousand_files():
    assert sum(FILES.values()) >= 2000


@pytest.mark.parametrize("kind", ["ratings", "archives"])
def test_ratings_load_or_are_refused(tmp_path, kind):
    loads = 0
    for seed in range(FILES[kind]):
        rng = random.Random(f"{kind} {seed}")
        place = tmp_path / str(seed)
        place.mkdir()
        path = files_of(place, rng, archives=kind == "archives")
        loaded = tried(load, path, path=path)
        if loaded is not None:
            loads += 1
            check_loaded(loaded)
        tried(OTHERS[seed % len(OTHERS)], path, path=path)
    # Neither "refuse all" nor "take anything" would pass.
    assert 0.1 < loads / FILES[kind] < 0.9


def parquet_file() -> bytes:
    file = io.BytesIO()
    columns = {
        "id": ["a", "b", "c"],
        "x": [1.5, None, 2.0],
        "y": [1, 2, None],
        "z": pa.array([1, 2, 3], pa.decimal128(5, 2)),
    }
    pyarrow.parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def test_tables_load_or_are_refused(tmp_path):
    packed_table = parquet_file()
    loads = 0
    for seed in range(FILES["tables"]):
        rng = random.Random(seed)
        ending, valid = (".parquet", packed_table) if seed % 3 == 0 else (".csv", rng.choice(WIDE))
        path = tmp_path / f"{seed}{ending}"
        path.write_bytes(mutated(valid, rng))
        table = tried(read_table, path, path=path)
        if table is not None:
            loads += 1
            assert not np.isinf(table.values).any()
            assert table.values.shape == (len(table.lines), len(table.names))
            assert all(len(labels) == len(table.lines) for labels in table.labels)
    assert 0.05 < loads / FILES["tables"] < 0.9


def test_variances_load_or_are_refused(tmp_path):
    ratings = ratings_of(*random_table(6, 3, 0.5, 1))
    layout = Layout("rows", 6, 3)
    file = io.BytesIO()
    np.save(file, np.eye(3))
    for seed in range(FILES["noise"]):
        rng = random.Random(seed)
        ending, valid = (".npy", file.getvalue()) if seed % 2 else (".csv", rng.choice(VARIANCES))
        path = tmp_path / f"{seed}{ending}"
        path.write_bytes(mutated(valid, rng))
        found = tried(load_noise, str(path), ratings, layout, path=path)
        if found is not None and ending == ".csv":
            assert np.isfinite(found).all()
            assert found.shape == (3,)


# The three ways to ratings answer alike ---------------------------------------------


@pytest.fixture
def own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("GMC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GMC_CACHE", str(tmp_path / "cache"))


def test_command_line_upload_and_download_agree(tmp_path, own_folders, capsys, monkeypatch):
    monkeypatch.setattr(cli, "_tolerate_narrow_terminals", lambda: None)
    for seed in range(FILES["doors"]):
        rng = random.Random(f"doors {seed}")
        place = tmp_path / str(seed)
        place.mkdir()
        path = files_of(place, rng, archives=seed % 2 == 0)
        if path.is_dir():
            continue
        content = path.read_bytes()
        alone = place / "alone"
        alone.mkdir()
        (alone / path.name).write_bytes(content)
        direct = tried(load, alone / path.name, path=alone)
        expected = direct and direct.ratings.sha256

        code = cli.main(["data", "check", str(alone / path.name)])
        told = capsys.readouterr().err
        assert code == (2 if direct is None else 0), told
        assert (direct is not None) or told.startswith("gmc: error: ")
        assert "Traceback" not in told

        def upload(path: Path = path, content: bytes = content):
            return sources.load(sources.register(sources.keep_upload(path.name, content)))

        uploaded = tried(upload)
        assert (uploaded and uploaded.ratings.sha256) == expected
        if path.suffix == ".zip":
            cached = tmp_path / "cache" / "ml-latest-small.zip"
            cached.parent.mkdir(exist_ok=True)
            cached.write_bytes(content)
            (cached.parent / f"{cached.name}.sha256").unlink(missing_ok=True)
            downloaded = tried(datasets.load_named, "ml-latest-small")
            assert (downloaded and downloaded.ratings.sha256) == expected
