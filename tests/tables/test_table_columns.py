"""Which columns of a plain table are labels, and which of its cells are missing entries."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from making import random_table, ratings_of

from gmc_core import cli
from gmc_core.base.errors import ConfigError, DataError
from gmc_core.fitting.fit import run_fit
from gmc_core.gaussian.settings import FitSettings
from gmc_core.model.completion import complete
from gmc_core.protocol.splits import no_split
from gmc_core.tables.table_columns import is_identifier
from gmc_core.tables.wide_table import TableOptions, complete_table, read_table, write_completed

BODY = ("1,2", "2,", ",5", "3,7")


def read(tmp_path, text, **options):
    path = tmp_path / "t.csv"
    path.write_text(text)
    return read_table(path, TableOptions(**options))


def with_column(name, cells):
    return f"{name},x,y\n" + "".join(f"{c},{row}\n" for c, row in zip(cells, BODY, strict=True))


def filled(table):
    return complete_table(table).values


# Labels -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("user", "1234"), ("patient_id", ("1001", "1002", "1003", "1004")), ("PatientID", "4231"),
        ("userId", "1123"), ("record", "1234"), ("Row", "0123"), ("#", "1234"), ("nr.", "1234"),
        ("account", ("12345678901234567890", "98765432109876543210", "1234567890123456789",
                     "4444444444444444444")),
        ("anything", ("12345678901234567", "2345678901234567890", "", "98765432109876543")),
        ("zip", ("02139", "10001", "94110", "60601")), ("", "1234"), ("row.names", "1234"),
        ("Unnamed: 0", "0123"), ("__index_level_0__", "0123"), ("id", "1234"), ("city", "abcd"),
    ],
)  # fmt: skip
def test_numbers_that_only_name_the_row_are_labels(tmp_path, name, cells):
    found = read(tmp_path, with_column(name, cells))
    assert found.label_names == (name,) and found.names == ("x", "y")
    assert list(found.labels[0]) == list(cells)  # digit for digit
    assert any("kept aside as labels" in note for note in found.notes)
    np.testing.assert_array_equal(filled(found), filled(read(tmp_path, with_column("k", "abcd"))))
    write_completed(complete_table(found), tmp_path / "o.csv")
    rows = (tmp_path / "o.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == [name, *cells]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("x1", "1234"), ("year", ("2001", "2002", "2003", "2004")), ("user", "1122"),
        ("body mass index", ("21", "22", "23", "24")), ("patient_id", ("1.5", "2", "3", "4")),
        ("month", ("01", "02", "03", "04")), ("count", ("1", "2", "9007199254740993", "4")),
        ("paid", "1234"), ("width", "1234"), ("valid", "1010"),
    ],
)  # fmt: skip
def test_quantities_stay_quantities(tmp_path, name, cells):
    assert read(tmp_path, with_column(name, cells)).names == (name, "x", "y")


def test_an_identifier_need_not_come_first(tmp_path):
    found = read(tmp_path, "x,patient_id,y\n1,7,2\n2,8,\n,9,5\n3,10,7\n")
    assert (found.label_names, found.names) == (("patient_id",), ("x", "y"))
    # "item" tells the rows apart only where it leads them.
    found = read(tmp_path, "x,item,y\n1,7,2\n2,8,\n,9,5\n3,10,7\n")
    assert found.names == ("x", "item", "y")


def test_after_an_index_the_next_column_leads_the_row(tmp_path):
    found = read(tmp_path, ",user,x,y\n1,7,1,2\n2,3,2,\n3,9,,5\n")
    assert (found.label_names, found.names) == (("", "user"), ("x", "y"))
    found = read(tmp_path, ",city,x,y\n1,a,1,2\n2,b,2,\n3,c,,5\n")
    assert (found.label_names, found.names) == (("", "city"), ("x", "y"))


def test_what_is_named_wins(tmp_path):
    text = with_column("user", "1234")
    assert read(tmp_path, text, quantities=("user",)).names == ("user", "x", "y")
    assert read(tmp_path, with_column("k", "1234"), id_columns=("k",)).names == ("x", "y")
    with pytest.raises(ConfigError, match="labels and as a quantity"):
        read(tmp_path, text, quantities=("user",), id_columns=("user",))
    with pytest.raises(ConfigError, match="the columns are user, x, y"):
        read(tmp_path, text, quantities=("z",))
    with pytest.raises(DataError, match="Kept aside as labels: user.*--quantity"):
        read(tmp_path, "user,x\n1,2\n2,3\n")


def test_a_column_that_counts_the_rows_is_pointed_out(tmp_path):
    rows = "".join(f"{k},{k * k % 7},{k % 5}\n" for k in range(1, 13))
    found = read(tmp_path, "t,x,y\n" + rows)
    assert found.names == ("t", "x", "y")
    assert any("--id-column 't'" in note for note in found.notes)
    assert not any("counts" in note for note in read(tmp_path, "t,x\n" + "1,2\n" * 12).notes)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_this_program_wrote_comes_back(tmp_path, ending):
    values, known = random_table(12, 5, 0.6, 3)
    model = run_fit(no_split(ratings_of(values, known)), FitSettings(iterations=2)).model()
    path = complete(model, tmp_path / f"o.{ending}").files[0]
    found = read_table(path)
    assert found.label_names == ("user",) and found.names == tuple("01234")
    np.testing.assert_array_equal(found.values[known], values[known])


# Parquet ------------------------------------------------------------------------------


def frame(index):
    columns = {"x": [1.0, 2.0, np.nan, 4.0], "y": [2.0, np.nan, 5.0, 8.0]}
    return pd.DataFrame(columns, index=index)


@pytest.mark.parametrize(
    ("index", "names", "labels"),
    [
        (None, (), ()),
        ([101, 205, 307, 411], ("index",), ([101, 205, 307, 411],)),
        (list("abcd"), ("index",), (list("abcd"),)),
        (pd.Index([5, 3, 8, 1], name="depth"), ("depth",), ([5, 3, 8, 1],)),
        (pd.Index([0.5, 1.5, 2.5, 3.5], name="depth"), ("depth",), ([0.5, 1.5, 2.5, 3.5],)),
        (
            pd.MultiIndex.from_product([["a", "b"], [1, 2]]),
            ("__index_level_0__", "__index_level_1__"),
            (["a", "a", "b", "b"], [1, 2, 1, 2]),
        ),
    ],
    ids=["none", "numbers", "text", "named", "fractions", "levels"],
)
def test_the_index_that_pandas_stored_is_labels(tmp_path, index, names, labels):
    frame(index).to_parquet(tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet")
    assert found.names == ("x", "y") and found.label_names == names
    assert tuple(found.labels) == labels
    frame(None).to_parquet(tmp_path / "plain.parquet")
    np.testing.assert_array_equal(filled(found), filled(read_table(tmp_path / "plain.parquet")))
    if names != ("depth",):  # which only its owner can tell from a quantity afterwards
        for ending in ("csv", "parquet"):
            write_completed(complete_table(found), tmp_path / f"o.{ending}")
            assert read_table(tmp_path / f"o.{ending}").names == ("x", "y")


@pytest.mark.parametrize("told", [b"{", b"[]", b'{"index_columns": [[1]]}', b"\xff", b"null"])
def test_damaged_metadata_leave_the_names(tmp_path, told):
    columns = pa.table({"x": [1.0, 2.0], "y": [2.0, None]})
    pyarrow.parquet.write_table(
        columns.replace_schema_metadata({b"pandas": told}), tmp_path / "t.parquet"
    )
    assert read_table(tmp_path / "t.parquet").names == ("x", "y")


def test_ids_in_parquet(tmp_path):
    long = [12345678901234567, 2, 98765432109876543]
    columns = {"x": [1.0, 2.0, 4.0], "account": long, "patient_id": [1, 1, 2], "y": [1, None, 3]}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet")
    assert (found.names, found.label_names) == (("x", "y"), ("account", "patient_id"))
    assert found.labels[0] == long


def test_long_numbers_of_which_a_spreadsheet_shortened_some_are_labels(tmp_path):
    cells = ["1234567890123456789", "1.23457E+18", "", "1.5E+18"]
    assert is_identifier("account", cells, first=False)
    assert not is_identifier("mass", ["1.23457E+18", "12", "1.5E+18"], first=False)
    rows = "".join(f"{k},{cell},{k % 3}\n" for k, cell in enumerate(cells))
    found = read(tmp_path, "x,account,y\n" + rows)
    assert found.names == ("x", "y") and list(found.labels[0]) == cells
    assert "kept aside as labels, not completed: account" in found.notes


# Missing values -----------------------------------------------------------------------


def test_codes_for_missing_values(tmp_path):
    text = "k,x,y\na,1,2\nb,-99,?\nc,2,-99.0\nd,3,NA\ne,4,6\nf,?,7\n"
    found = read(tmp_path, text, missing=("?", "-99"))
    expected = [[1, 2], [np.nan] * 2, [2, np.nan], [3, np.nan], [4, 6], [np.nan, 7]]
    np.testing.assert_array_equal(found.values, expected)
    assert "read as missing, besides blanks: '?' (2), '-99' (2)" in found.notes
    blank = read(tmp_path, text.replace("-99.0", "").replace("-99", "").replace("?", ""))
    np.testing.assert_array_equal(filled(found), filled(blank))


def test_codes_with_a_decimal_comma_and_in_other_case(tmp_path):
    text = "k;x;y\na;1,5;2\nb;-9,9;MISSING\nc;2;3\n"
    found = read(tmp_path, text, missing=("-9,9", "missing"))
    np.testing.assert_array_equal(found.values, [[1.5, 2], [np.nan, np.nan], [2, 3]])


def test_codes_in_parquet(tmp_path):
    columns = {"x": [1.0, -99.0, 2.0], "y": [1, 2, -99]}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet", TableOptions(missing=("-99",)))
    np.testing.assert_array_equal(found.values, [[1, 1], [np.nan, 2], [2, np.nan]])
    assert "read as missing, besides blanks: '-99' (2)" in found.notes


def test_an_unknown_code_is_an_error_that_names_the_option(tmp_path):
    with pytest.raises(DataError, match=r"line 3.*--na '\?'"):
        read(tmp_path, "k,x,y\na,1,2\nb,?,3\n")


def test_codes_on_the_command_line(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("k,x,y\na,1,2\nb,-99,?\nc,2,5\nd,0,1\n")
    out = str(tmp_path / "o.csv")
    assert cli.main(["complete", "--table", str(path), "--out", out, "--na", "?", "-99"]) == 0
    assert "'?' (1), '-99' (1)" in capsys.readouterr().err
    row = (tmp_path / "o.csv").read_text().splitlines()[2].split(",")
    assert 0 < float(row[1]) < 2


@pytest.mark.parametrize(
    ("column", "code"),
    [
        ([1, -99, 2, 3, -99, 4], "-99"), ([12.5, 999, 13, 11, 999, 12], "999"),
        ([1, 2, 3, 4, 8, 8, 5], None), ([1, 2, 3, 5, 9, 9, 4], "9"), ([0, 0, 0, 1, 1, 0], None),
        ([1, 2, 3, 4, 100, 5], None), ([1, 2, 3, 4, 4, 1], None),
    ],
)  # fmt: skip
def test_a_far_off_repeated_value_is_pointed_out(tmp_path, column, code):
    rows = "".join(f"{value},{k % 3}\n" for k, value in enumerate(column))
    notes = [note for note in read(tmp_path, "x,y\n" + rows).notes if "far from" in note]
    assert len(notes) == (code is not None)
    assert code is None or f"--na {code})" in notes[0]


def test_one_code_in_several_columns_is_pointed_out_once(tmp_path):
    found = read(tmp_path, "k,x,y\na,1,2\nb,-99,3\nc,2,-99\nd,3,\ne,4,6\nf,,7\n")
    notes = [note for note in found.notes if "far from" in note]
    assert len(notes) == 1 and "-99 occurs 2 times" in notes[0] and "x, y" in notes[0]


def test_a_code_is_compared_in_the_form_of_the_numbers(tmp_path):
    text = 'k,x,y\na,"9,000",1\nb,9,2\nc,"1,234.5",9.0\nd,"2,500",4\n'
    found = read(tmp_path, text, missing=("9",))
    np.testing.assert_array_equal(
        found.values, [[9000, 1], [np.nan, 2], [1234.5, np.nan], [2500, 4]]
    )
    assert "read as missing, besides blanks: '9' (2)" in found.notes
    text = "k;x;y\na;1,5;2\nb;-9,90;9.000\nc;1.200,5;3\n"
    found = read(tmp_path, text, missing=("-9,9", "9"))
    np.testing.assert_array_equal(found.values, [[1.5, 2], [np.nan, 9000], [1200.5, 3]])


@pytest.mark.parametrize("code", ["99999999", "-1234567.25", "1e+300"])
def test_advice_on_a_code_matches_when_it_is_followed(tmp_path, code):
    text = f"k,x,y\na,1,2\nb,{code},3\nc,2,{code}\nd,3,1\ne,4,6\nf,,7\n"
    advice = next(note for note in read(tmp_path, text).notes if "far from" in note)
    assert f"(--na {code})" in advice
    followed = read(tmp_path, text, missing=(advice.split("--na ")[1].rstrip(")"),))
    assert np.isnan(followed.values[1, 0]) and np.isnan(followed.values[2, 1])


# what is said of odd columns and rows ---------------------------------------------


def test_why_a_column_of_texts_was_kept_aside(tmp_path):
    with pytest.raises(DataError, match=r"There is 1 column of quantities") as error:
        read(tmp_path, "k,x,y\na,10%,2\nb,20%,\nc,,4\n")
    assert "x ('10%' in line 2 is no number)" in str(error.value)
    found = read(tmp_path, "k,x,y,z\na,,2,1\nb,20%,,2\nc,,4,3\n")
    assert "because '20%' (line 3) is no number" in " ".join(found.notes)
    plain = read(tmp_path, "k,name,y,z\na,Ann,2,1\nb,Bob,,2\n")
    assert "is no number" not in " ".join(plain.notes)


def test_two_columns_of_one_name_are_an_error(tmp_path):
    with pytest.raises(DataError, match="There are two columns named 'x'; give"):
        read(tmp_path, "k,x,x\na,1,2\nb,3,4\n")


@pytest.mark.parametrize("word", ["Total", "SUM", "Average:"])
def test_a_last_row_that_may_sum_up_the_others_is_pointed_out(tmp_path, word):
    found = read(tmp_path, f"k,x,y\na,1,2\nb,3,\n{word},4,2\n")
    assert any(f"(line 4, {word!r})" in note for note in found.notes) and len(found.values) == 3
    assert not any(
        "last row" in note for note in read(tmp_path, f"k,x,y\n{word},1,2\nb,3,\n").notes
    )


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (["--min-value", "5", "--max-value", "3"], "The least value, --min-value 5, is above"),
        (["--min-value", "x=5", "--max-value", "3"], "(column 'x')"),
    ],
)
def test_limits_that_are_exchanged_are_refused_before_reading(tmp_path, capsys, limits, words):
    missing = str(tmp_path / "not there.csv")
    assert (
        cli.main(["complete", "--table", missing, "--out", str(tmp_path / "o.csv"), *limits]) == 2
    )
    said = capsys.readouterr().err
    assert words in said and "column 1" not in said
