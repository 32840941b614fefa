"""Large files are read in pieces, and what is read is what reading them whole gives."""

from __future__ import annotations

import zipfile
from dataclasses import replace

import numpy as np
import pytest
from reader_files import same_ratings

from gmc_core.base.errors import DataError
from gmc_core.data.readers import load, movielens_csv, pieces, table
from gmc_core.data.readers import source as sources

HEADER = b"userId,movieId,rating,timestamp\n"


@pytest.fixture
def small_pieces(monkeypatch):
    """Every file counts as large, a piece holds a few lines, and the ways taken are kept."""
    monkeypatch.setattr(pieces, "LARGE_BYTES", 0)
    monkeypatch.setattr(pieces, "PIECE_BYTES", 100)
    taken = []
    whole = movielens_csv._read_whole
    monkeypatch.setattr(
        movielens_csv, "_read_whole", lambda *args: taken.append("whole") or whole(*args)
    )
    return taken


def rows(count=200, seed=0, sort=True):
    rng = np.random.default_rng(seed)
    cells = rng.choice(30 * 40, count, replace=False)
    cells = np.sort(cells) if sort else cells
    return [
        f"{cell // 40 + 1},{cell % 40 * 7 + 1},{rng.integers(1, 11) / 2},{10**9 + cell}\n"
        for cell in cells.tolist()
    ]


def written(folder, text):
    folder.mkdir(exist_ok=True)
    (folder / "movies.csv").write_text('movieId,title,genres\n1,"One, The (1999)",Drama\n')
    path = folder / "ratings.csv"
    path.write_bytes(text if isinstance(text, bytes) else HEADER + "".join(text).encode())
    return path


@pytest.mark.parametrize("sort", [True, False])
def test_pieces_give_what_the_whole_gives(tmp_path, small_pieces, monkeypatch, sort):
    path = written(tmp_path, [*rows(sort=sort), "1,1,5.0,1\n"])
    found = load(path)
    assert small_pieces == []
    monkeypatch.setattr(pieces, "LARGE_BYTES", 2**60)
    expected = load(path)
    assert small_pieces == ["whole"]
    same_ratings(found.ratings, expected.ratings)
    assert found.report == expected.report


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [*lines[:-1], lines[-1].rstrip("\n")],  # no line end at the end
        lambda lines: [line.replace("\n", "\r\n") for line in lines],
        lambda lines: [*lines[:9], "\n", *lines[9:]],
        lambda lines: [f"{line.split(',')[0]}x,{line.split(',', 1)[1]}" for line in lines],
        lambda lines: [*lines[:9], '7,"3",1.5,1\n', *lines[10:]],
        lambda lines: [*lines[:9], "007,3,1.5,1\n", *lines[10:]],
        lambda lines: [*lines[:9], "7,3,1.5,\n", *lines[10:]],
        lambda lines: [line.rpartition(",")[0] + ",2001-05-06\n" for line in lines],
        lambda lines: [*lines[:9], "7,3,1.5\n", *lines[10:]],
        lambda lines: [*lines[:9], "7,3,1.7,4\n", *lines[10:]],
        lambda lines: [*lines[:9], "7,3,nan,4\n", *lines[10:]],
        lambda lines: [*lines[:9], "7,3é,1.5,4\n", *lines[10:]],
        lambda lines: [],
    ],
)
def test_any_text_is_read_or_refused_as_when_it_is_read_whole(
    tmp_path, small_pieces, monkeypatch, change
):
    path = written(tmp_path, change(rows()))

    def outcome():
        try:
            return load(path)
        except DataError as error:
            return str(error)

    found = outcome()
    monkeypatch.setattr(pieces, "LARGE_BYTES", 2**60)
    expected = outcome()
    if isinstance(expected, str):
        assert found == expected
    else:
        same_ratings(found.ratings, expected.ratings)
        assert found.report == expected.report


def test_a_repeated_rating_is_named_with_its_line(tmp_path, small_pieces):
    lines = rows()
    path = written(tmp_path, [*lines, lines[3]])
    with pytest.raises(DataError, match=f"line {len(lines) + 2}.*has rated item"):
        load(path, duplicates="error")


def test_a_zipped_file_is_read_in_pieces_and_tells_how_far(tmp_path, small_pieces, monkeypatch):
    monkeypatch.setattr(sources, "TOLD_FROM_BYTES", 0)
    path = written(tmp_path / "ml", rows())
    with zipfile.ZipFile(tmp_path / "ml.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(path.parent.iterdir()):
            archive.write(file, f"ml/{file.name}")
    told = []
    found = load(tmp_path / "ml.zip", on_read=lambda *share: told.append(share))
    assert small_pieces == [] and (path.stat().st_size,) * 2 in told
    same_ratings(found.ratings, replace(load(path).ratings, name="ml"))


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines,
        lambda lines: [line.replace(",", "::") for line in lines],
        lambda lines: [f"u{line}" for line in lines],
        lambda lines: [line.rpartition(",")[0] + ",2001-05-06\n" for line in lines],
        lambda lines: [*lines[:150], "7,3,1.5,late\n", *lines[151:]],  # no time, far below
        lambda lines: [*lines[:150], "7,3,1.5\n", *lines[151:]],
        lambda lines: [*lines[:150], *["\n"] * 150, *lines[150:]],
        lambda lines: [*lines[:150], '7,3,"1.5",9\n', *lines[151:]],
    ],
)
def test_own_tables_are_parsed_in_pieces_as_they_are_as_a_whole(tmp_path, monkeypatch, change):
    path = tmp_path / "mine.csv"
    path.write_text("".join(change(rows())))

    def outcome(piece):
        monkeypatch.setattr(table, "PIECE_BYTES", piece)
        try:
            return load(path)
        except DataError as error:
            return str(error)

    found, expected = outcome(100), outcome(2**60)
    if isinstance(expected, str):
        assert found == expected
    else:
        same_ratings(found.ratings, expected.ratings)
        assert found.report == expected.report
