"""Files that are no delimited text: workbooks, JSON, packed files are read, others are named.

Ratings and plain tables open them through the same door, so each is asked of both.
"""

from __future__ import annotations

import bz2
import datetime
import gzip
import io
import json
import lzma
import pickle
import re
import sqlite3
import tracemalloc
import zipfile

import numpy as np
import openpyxl
import pyarrow as pa
import pytest
from reader_files import MATRIX_MARKET, NETFLIX, cells, folder, text_file, zipped

from gmc_core.base.errors import DataError
from gmc_core.data.readers import (
    bounded,
    file_kinds,
    jester_dat,
    load,
    netflix,
    preview,
    rows_as_text,
    source,
    unpacking,
    workbook,
)
from gmc_core.tables.wide_reader import read_table
from gmc_dashboard.data import own_file

TABLE = b"user,item,rating\nann,007,4.5\nbob,7,3\nann,8,1.5\n"
RATINGS = {("ann", "007"): 4.5, ("bob", "7"): 3, ("ann", "8"): 1.5}
WIDE = b"name,a,b\nx,1,2.5\ny,,-3\nz,12345678901,1e-5\n"
RECORDS = [
    {"user": "ann", "item": "007", "rating": 4.5},
    {"user": "bob", "item": "7", "rating": 3, "text": 'a, "b"\nc'},
    {"user": "ann", "item": "8", "rating": 1.5, "nested": {"x": [1, None]}},
]
PACKED = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


def refused(path, words):
    """Both readers, and the Data page's inspection, say the same."""
    said = set()
    for read in (load, read_table, own_file.inspect):
        with pytest.raises(DataError, match=words) as caught:
            read(path)
        said.add(caught.value.problem)
    assert len(said) == 1
    return said.pop()


def workbook_of(*sheets: list[list[object]], names: tuple[str, ...] = ()) -> bytes:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, content in enumerate(sheets):
        sheet = book.create_sheet(names[number] if names else f"Sheet{number + 1}")
        for row in content:
            sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def same_table(path):
    """The plain table of ``WIDE``, digit for digit."""
    found = read_table(path)
    assert found.names == ("a", "b") and found.label_names == ("name",)
    np.testing.assert_array_equal(found.values, [[1, 2.5], [np.nan, -3], [12345678901, 1e-5]])
    assert list(found.labels[0]) == ["x", "y", "z"]


# Packed files ---------------------------------------------------------------------


@pytest.mark.parametrize("ending", PACKED)
def test_packed_files_read_as_the_plain_ones(tmp_path, ending):
    pack = PACKED[ending]
    loaded = load(text_file(tmp_path, pack(TABLE), f"mine.csv{ending}"))
    assert cells(loaded.ratings) == RATINGS
    assert loaded.ratings.name == "mine"
    same_table(text_file(tmp_path, pack(WIDE), f"wide.csv{ending}"))
    inside = load(zipped(tmp_path / "a.zip", {f"ratings.csv{ending}": pack(TABLE)}))
    assert cells(inside.ratings) == RATINGS
    matrix = load(text_file(tmp_path, pack(MATRIX_MARKET), f"m.mtx{ending}"))
    assert matrix.report.format == "matrix-market"
    split = load(folder(tmp_path / "nf", {k + ending: pack(v) for k, v in NETFLIX.items()}))
    assert len(split.ratings) == 3


@pytest.mark.parametrize("ending", PACKED)
def test_packed_files_that_are_cut_are_damaged(tmp_path, ending):
    packed = PACKED[ending](TABLE * 3)
    refused(text_file(tmp_path, packed[:-6], f"mine.csv{ending}"), "file is damaged or incomplete")


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
def test_parts_written_one_after_the_other(tmp_path, ending):
    pack = PACKED[ending]
    path = text_file(tmp_path, pack(TABLE) + pack(b"eve,7,2\n"), f"a.csv{ending}")
    assert cells(load(path).ratings) == RATINGS | {("eve", "7"): 2}


@pytest.mark.parametrize("ending", PACKED)
def test_packed_bombs_stop_while_they_grow(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(bounded, "RATIO_APPLIES_FROM_BYTES", 1000)
    monkeypatch.setattr(bounded, "CHUNK", 1 << 16)
    bomb = b"1,2,3\n" * 500_000
    packed = lzma.compress(bomb, preset=0) if ending == ".xz" else PACKED[ending](bomb)
    path = text_file(tmp_path, packed, f"ratings.csv{ending}")
    pool = pa.default_memory_pool()
    held, most = pool.bytes_allocated(), pool.max_memory()
    tracemalloc.start()
    try:
        for read in (load, read_table):
            with pytest.raises(DataError, match="200 times its size"):
                read(path)
        assert tracemalloc.get_traced_memory()[1] < len(bomb)
    finally:
        tracemalloc.stop()
    assert pool.max_memory() <= max(most, held + len(bomb))


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "run",
    [b" ", b"\n", b"\t", b"[", b"[ ", b"{", b"{'a", b"1", b"1\t\t2\t\t3", b"1:", b"1:\n", b"."],
)
def test_no_first_bytes_take_minutes_to_judge(run):
    # Blanks and digits that could be divided in many ways, then what makes each of them wrong.
    for start in (b"", b"[", b"{'", b"1:\n"):
        data = start + run * (1_000_000 // len(run)) + b"x\n"
        file_kinds.refuse(data, "a.csv")
        file_kinds.is_json(data)
        netflix.is_netflix(data)


@pytest.mark.timeout(60)
def test_no_run_of_digits_takes_minutes_to_judge(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "HEAD_BYTES", 1_000_000)  # of which the layouts are judged
    path = text_file(tmp_path, b"1\t\t2\t\t" + b"3" * 990_000 + b"x\n", "a.dat")
    assert not jester_dat.matches(source.open_source(path))


def test_a_dictionary_of_gigabytes_is_not_allocated(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "MAX_DICTIONARY", 1 << 20)
    path = text_file(tmp_path, lzma.compress(TABLE, preset=9), "a.csv.xz")
    refused(path, "xz file is damaged.*[Mm]emory")


# JSON -------------------------------------------------------------------------------


def columns_of(records):
    names = list(dict.fromkeys(name for record in records for name in record))
    return {n: {str(k): r.get(n) for k, r in enumerate(records)} for n in names}


JSONS = {
    "lines": "\n".join(map(json.dumps, RECORDS)),
    "array": json.dumps(RECORDS),
    "indented": json.dumps(RECORDS, indent=2),
    "under a name": json.dumps({"reviews": RECORDS, "count": 3}),
    "columns": json.dumps(columns_of(RECORDS)),
    "lists": json.dumps({n: list(c.values()) for n, c in columns_of(RECORDS).items()}),
    "split": json.dumps({
        "columns": ["user", "item", "rating"], "index": [0, 1, 2],
        "data": [[r["user"], r["item"], r["rating"]] for r in RECORDS],
    }),
    "rows": json.dumps([["user", "item", "rating"], ["ann", "007", 4.5], ["bob", "7", 3],
                        ["ann", "8", 1.5]]),
    "with a mark": "\ufeff" + json.dumps(RECORDS),
}  # fmt: skip


@pytest.mark.parametrize("layout", JSONS)
def test_json_in_every_layout(tmp_path, layout):
    path = text_file(tmp_path, JSONS[layout], "mine.json")
    assert cells(load(path).ratings) == RATINGS
    assert preview(path).rows[0][:3] == ("ann", "007", "4.5")
    assert cells(load(folder(tmp_path / "alone", {"r.jsonl": path.read_bytes()})).ratings) == (
        RATINGS
    )


def test_the_json_lines_of_reviews(tmp_path):
    lines = (
        '{"reviewerID":"A1","asin":"B1","overall":5.0}\n{"reviewerID":"A2","asin":"B1","overall":4}'
    )
    loaded = load(text_file(tmp_path, lines, "reviews.json"))
    assert cells(loaded.ratings) == {("A1", "B1"): 5, ("A2", "B1"): 4}


def test_json_tables_keep_numbers_as_they_are_written(tmp_path):
    text = '[{"name":"x","a":1,"b":2.5},{"b":-3,"name":"y","a":null},' + (
        '{"name":"z","b":1e-5,"a":12345678901}]'
    )
    same_table(text_file(tmp_path, text, "wide.json"))
    ids = '{"user":12345678901234567890,"item":"i","rating":3}\n' * 2
    assert load(text_file(tmp_path, ids)).ratings.users.ids.tolist() == ["12345678901234567890"]


def test_more_json_than_its_first_kilobytes(tmp_path):
    records = [{"user": k, "item": k % 7, "rating": 1 + k % 5} for k in range(5000)]
    for text in (json.dumps(records), json.dumps(columns_of(records))):
        path = text_file(tmp_path, text, "a.json")
        assert len(preview(path).rows) == 20
        assert len(load(path).ratings) == 5000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"user":1,"item":2,"rating":3}\n{"user":1,"item":3,"rating":}\n', "line 2.*JSON is dam"),
        ('[{"user":1,"item":2,"rating":3},\n7]', "Record 2 .*no object"),
        ("[]", "JSON array is empty"),
        ('{"a":[1,2],"b":[1]}', "not equally long"),
        ("[[1,2],[3,[4]]]", "Row 2 .*no array of numbers"),
        ("{'user': 1, 'item': 2}\n", "Python's notation"),
        ("[" * 100_000, "JSON is damaged"),
    ],
)
def test_json_that_is_no_table(tmp_path, text, said):
    refused(text_file(tmp_path, text, "a.json"), said)


# Workbooks --------------------------------------------------------------------------


def test_workbooks(tmp_path):
    day = datetime.datetime(2020, 1, 2)
    content = [
        ["user", "item", "rating", "when"],
        ["ann", "007", 4.5, day],
        [],
        ["bob", "7", 3, None],
        ["ann", "8", 1.5, day],
    ]
    path = text_file(tmp_path, workbook_of(content), "mine.xlsx")
    loaded = load(path)
    assert cells(loaded.ratings) == RATINGS
    assert loaded.report.blank_lines == 1
    assert loaded.ratings.name == "mine"
    found = preview(path)
    assert found.rows[0] == ("ann", "007", "4.5", "2020-01-02")
    content[4][2] = "good"
    with pytest.raises(DataError, match=r"mine\.xlsx, line 5: The rating.*'good'"):
        load(text_file(tmp_path, workbook_of(content), "mine.xlsx"))
    wide = [["name", "a", "b"], ["x", 1, 2.5], ["y", None, -3], ["z", 12345678901, 1e-5]]
    same_table(text_file(tmp_path, workbook_of(wide), "wide.xlsx"))
    same_table(text_file(tmp_path, gzip.compress(workbook_of(wide)), "wide.xlsx.gz"))
    same_table(zipped(tmp_path / "w.zip", {"wide.xlsx": workbook_of(wide)}))


def test_the_first_sheet_that_holds_anything_is_read_and_named(tmp_path):
    sheet = [["user", "item", "rating"], ["ann", "7", 4], ["bob", "7", 3]]
    data = workbook_of([], sheet, [["other"]], names=("Notes", "Votes", "More"))
    loaded = load(text_file(tmp_path, data, "mine.xlsx"))
    assert len(loaded.ratings) == 2
    assert "sheet 'Votes' of 3" in loaded.report.source
    refused(text_file(tmp_path, workbook_of([]), "empty.xlsx"), "No sheet .* holds anything")


def test_a_formula_without_its_value_is_no_blank(tmp_path):
    data = workbook_of([["name", "a", "b"], ["x", 1, 2], ["y", "=B2+1", 3], ["z", 2, 5]])
    refused(text_file(tmp_path, data, "a.xlsx"), r"line 3.*formula without its value.*=B2\+1")
    for value, wanted in ((b"<v>7</v>", 7), (b"<v></v>", np.nan)):
        # The value that a spreadsheet program kept; an empty text is one.
        kept = b't="str"><f>B2+1</f>' + value
        path = text_file(
            tmp_path,
            altered(
                data,
                SHEET,
                lambda part, kept=kept: re.sub(rb"><f>B2\+1</f>.*?(?=</c>)", b" " + kept, part),
            ),
            "a.xlsx",
        )
        np.testing.assert_array_equal(read_table(path).values[1], [wanted, 3])


def altered(data: bytes, name: str, change) -> bytes:
    """The workbook with one part changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", 8) as new:
        for info in old.infolist():
            part = old.read(info)
            new.writestr(info.filename, change(part) if info.filename == name else part)
    return out.getvalue()


SHEET = "xl/worksheets/sheet1.xml"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda part: part.replace(b'r="2"', b'r="99999999999"'),
            "a row 99,999,999,999.*1,048,576",
        ),
        (lambda part: part.replace(b'<row r="2"', b'<row r="1"'), "row 1 comes after row 1"),
        (lambda part: part.replace(b'"C2"', b'"ZZZZ2"'), "damaged"),
        (lambda part: part.decode().encode("utf-16"), "unusual encoding"),
        (lambda part: part[:-30], "damaged"),
        (lambda part: b'<!DOCTYPE x [<!ENTITY a "b">]>' + part, "entities"),
        (lambda part: part + b" " * 20_000_000, "200 times its size"),
    ],
)
def test_hostile_workbooks(tmp_path, monkeypatch, change, said):
    monkeypatch.setattr(bounded, "RATIO_APPLIES_FROM_BYTES", 10_000_000)
    data = workbook_of([["user", "item", "rating"], ["ann", "7", 4]])
    refused(text_file(tmp_path, altered(data, SHEET, change), "a.xlsx"), said)


def test_limits_of_a_workbook(tmp_path, monkeypatch):
    data = workbook_of([["user", "item", "rating"], ["ann", "7", 4], ["bob", "7", 4]])
    path = text_file(tmp_path, data, "a.xlsx")
    monkeypatch.setattr(rows_as_text, "MAX_CELLS", 8)
    refused(path, "more than 8 cells")
    monkeypatch.setattr(workbook, "MAX_INFLATED", 1024)
    refused(path, "holds more than")
    path.write_bytes(data[: len(data) // 2])
    refused(path, "damaged or incomplete")


def test_without_the_library_a_workbook_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    path = text_file(tmp_path, workbook_of([["a", "b"], [1, 2]]), "a.xlsx")
    refused(path, "Excel workbook; save it as CSV.*openpyxl")


# No tables --------------------------------------------------------------------------


def database(path) -> bytes:
    with sqlite3.connect(path) as connection:
        connection.execute("create table ratings (user, item, rating)")
    connection.close()
    return path.read_bytes()


def array_of(save) -> bytes:
    file = io.BytesIO()
    save(file, np.arange(12.0).reshape(4, 3))
    return file.getvalue()


def zip_of(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, b"<x/>")
    return file.getvalue()


OTHERS = {
    "PDF": b"%PDF-1.7\n1 0 obj\n",
    "picture .PNG.": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "picture .JPEG.": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "web page .HTML.": b"\n <!DOCTYPE html>\n<html><body>1,2,3</body></html>",
    "web page": b"\xef\xbb\xbf<HTML><head>",
    "XML": b"<?xml version='1.0'?><ratings/>",
    "pickle of Python": pickle.dumps([(1, 2, 3)]),
    "a pickle": pickle.dumps({"a": 1}, protocol=2),
    "NumPy array ": array_of(np.save),
    "archive of NumPy arrays": array_of(np.savez),
    "old Excel workbook": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 512,
    "HDF5": b"\x89HDF\r\n\x1a\n\0",
    "Feather": b"ARROW1\0\0",
    "file of R": b"RDX3\nX\n\0\0",
    "MATLAB": b"MATLAB 5.0 MAT-file",
    "7z": b"7z\xbc\xaf\x27\x1c",
    "RAR": b"Rar!\x1a\x07",
    "Git LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n",
    "Word document": zip_of("[Content_Types].xml", "word/document.xml"),
    "OpenDocument": zip_of("mimetype", "content.xml"),
}


@pytest.mark.parametrize("name", ["ratings.csv", "mine.dat"])
@pytest.mark.parametrize("what", OTHERS)
def test_what_is_no_table_is_named(tmp_path, what, name):
    said = refused(text_file(tmp_path, OTHERS[what], name), what)
    assert said.count(";") == 1  # what it is; the remedy
    if not OTHERS[what].startswith(b"PK"):
        refused(text_file(tmp_path, gzip.compress(OTHERS[what]), name), what)


def test_a_database_by_its_first_bytes(tmp_path):
    data = database(tmp_path / "made.db")
    refused(text_file(tmp_path / "x", data, "ratings.csv"), "SQLite database.*CSV")


def test_pickles_are_never_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    refused(text_file(tmp_path / "x", pickle.dumps(Trap()), "ratings.csv"), "pickle")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("data", [MATRIX_MARKET, NETFLIX["mv_0000001.txt"]])
def test_ratings_in_another_layout_are_no_plain_table(tmp_path, data):
    with pytest.raises(DataError, match="gmc fit --data"):
        read_table(text_file(tmp_path, data, "a.csv"))


# Files beside ratings ---------------------------------------------------------------

BESIDE = {
    "links.csv": b"movieId,imdbId,tmdbId\n1,0114001,803\n2,0114002,806\n",
    "genome-scores.csv": b"movieId,tagId,relevance\n1,1,0.150\n1,2,0.250\n2,1,.5\n",
    "tags.csv": b"userId,movieId,tag,timestamp\n2,60756,funny,1445714994\n",
}
OLDER = {
    "users.dat": (b"1::F::1::10::48067\n2::M::56::16::70072\n", r"ratings\.dat"),
    "movies.dat": (b"1::Toy Story (1995)::Animation\n", r"ratings\.dat"),
    "u.user": (b"1|24|M|technician|85711\n2|53|F|other|94043\n", r"u\.data"),
    "person.txt": (b"1\t34\tM\t02139\n2\t20\tF\t02138\n", r"vote\.txt"),
    "movie_titles.txt": (NETFLIX["movie_titles.txt"], "combined_data_1"),
}


@pytest.mark.parametrize("name", BESIDE)
def test_files_beside_movielens_ratings_are_refused(tmp_path, name):
    path = text_file(tmp_path, BESIDE[name], name)
    for place in (path, tmp_path, zipped(tmp_path / "a.zip", {name: BESIDE[name]}, "ml/")):
        for read in (load, own_file.inspect):
            with pytest.raises(DataError, match=r"no ratings; give ratings\.csv"):
                read(place)
    other = text_file(tmp_path / "renamed", BESIDE[name], "votes.csv")
    with pytest.raises(DataError, match=r"give ratings\.csv"):
        load(other)


def test_a_movielens_folder_without_ratings(tmp_path):
    with pytest.raises(DataError, match=r"no ratings.*ratings\.csv"):
        load(folder(tmp_path, BESIDE))


@pytest.mark.parametrize("name", OLDER)
def test_files_beside_older_ratings_are_refused(tmp_path, name):
    data, wanted = OLDER[name]
    with pytest.raises(DataError, match=f"no ratings; give {wanted}"):
        load(text_file(tmp_path, data, name))
