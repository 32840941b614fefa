"""How texts are written: the same answer for ratings and tables, and no row lost on the way."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from dialect_files import HABITS, STRAY, R
from reader_files import cells, text_file

from gmc_core.base.errors import DataError
from gmc_core.cli import main
from gmc_core.data.readers import DelimitedOptions, load, preview, read_pairs
from gmc_core.data.readers.dialect import find_dialect
from gmc_core.data.readers.sniff import _ALL_NAMES
from gmc_core.tables.wide_reader import TableOptions, read_table
from gmc_dashboard.data import own_file
from gmc_dashboard.shared import sources


@pytest.mark.parametrize("name", HABITS)
def test_habits_are_found(name):
    text, separator, quoted, header, decimal = HABITS[name]
    found = find_dialect(text.encode(), "x", names=_ALL_NAMES).text
    assert (found.separator, found.quotes, found.header, found.decimal) == (
        separator, quoted, header, decimal,
    )  # fmt: skip


def loaded(tmp_path, text, **options):
    return load(text_file(tmp_path, text), options=DelimitedOptions(**options))


def table(tmp_path, text, **options):
    return read_table(text_file(tmp_path, text), TableOptions(**options))


def test_marks_that_close_nowhere_are_text(tmp_path):
    got = loaded(tmp_path, STRAY)
    assert got.report.rows_read == 5
    assert cells(got.ratings)["u1", '"Rob'] == 4 and cells(got.ratings)["u3", '"Bob'] == 1
    assert any("taken as text (line 2)" in note for note in got.report.notes)
    wide = table(tmp_path, 'k\tx\ty\n"a\t1\t2\nb\t3\t\n"c\t5\t6\n')
    assert list(wide.labels[0]) == ['"a', "b", '"c'] and wide.values.shape == (3, 2)


@pytest.mark.parametrize("ending", ['u3\tx"', 'u3\t"x"'])
def test_a_mark_that_closes_rows_below_takes_none_of_them(tmp_path, ending):
    text = f'user\titem\trating\nu1\t"Rob\t4\nu1\tB\t5\nu2\tB\t2\n{ending}\t1\nu3\tC\t5\n'
    try:
        assert loaded(tmp_path, text).report.rows_read == 5
    except DataError as error:
        assert error.line == 2


def test_a_comma_file_names_the_line_of_the_mark(tmp_path):
    text = 'user,item,rating\nu1,a,3\nu1,"b,4\nu2,a,2\nu2,b",5\nu3,a,1\n'
    for read in (loaded, table):
        with pytest.raises(DataError) as caught:
            read(tmp_path, text)
        assert caught.value.line == 3 and "quotation mark" in str(caught.value)


def test_one_open_mark_in_a_quoted_file_is_text(tmp_path):
    got = loaded(tmp_path, HABITS["one mark never closed"][0])
    assert cells(got.ratings) == {("u1", "a"): 4, ("u1", '"b'): 3, ("u2", "a"): 5}


@pytest.mark.parametrize("name", [n for n in HABITS if HABITS[n][0].count("u1")])
def test_every_record_is_read_or_counted(tmp_path, name):
    text = HABITS[name][0]
    lines = [line for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line]
    rows = [line for line in lines if line[:2] in ("u1", "u2", "u3", " u", '"u')]
    rows = [line for line in rows if "ser" not in line]
    report = loaded(tmp_path, text).report
    assert report.rows_read == len(rows)


def test_row_names_of_r_and_columns_without_a_name(tmp_path):
    expected = {(1, 2): 3, (1, 4): 4, (2, 2): 1}
    texts = [
        '"user","item","rating"\n"1",1,2,3\n"2",1,4,4\n"3",2,2,1\n',
        ",userId,movieId,rating\n0,1,2,3\n1,1,4,4\n2,2,2,1\n",
        '"","u","i","r"\n"1",1,2,3\n"2",1,4,4\n"3",2,2,1\n',
        "Unnamed: 0,u,i,r\n5,1,2,3\n6,1,4,4\n9,2,2,1\n",
        "row,u,i,r\n1,1,2,3\n2,1,4,4\n3,2,2,1\n",
        '"user" "item" "rating"\n"1" 1 2 3\n"2" 1 4 4\n"3" 2 2 1\n',
    ]
    for text in texts:
        assert cells(loaded(tmp_path, text).ratings) == expected, text
    pairs = read_pairs(text_file(tmp_path, '"user","item"\n"1",15,318\n"2",15,356\n'))
    assert pairs.users.tolist() == [15, 15] and pairs.items.tolist() == [318, 356]
    wide = table(tmp_path, '"x","y"\n"1",1,2\n"2",3,NA\n')
    assert wide.names == ("x", "y") and list(wide.labels[0]) == ["1", "2"]


def test_files_beside_the_ratings_are_refused(tmp_path):
    for name, text in {
        "links.csv": "movieId,imdbId,tmdbId\n1,0114709,862\n2,0113497,8844\n",
        "genome-scores.csv": "movieId,tagId,relevance\n1,1,0.15\n1,2,0.25\n",
        "tags.csv": "userId,movieId,tag,timestamp\n2,6,funny,1445714994\n",
    }.items():
        with pytest.raises(DataError, match=r"ratings\.csv"):
            load(text_file(tmp_path, text, name))
    given = DelimitedOptions(user=1, item=0, rating=2)
    path = text_file(tmp_path, "movieId,tagId,relevance\n1,1,0.15\n1,2,0.25\n")
    assert len(load(path, options=given).ratings) == 2


def test_ratings_that_are_numbers_of_things_are_questioned(tmp_path):
    text = "a,b,c\n" + "".join(f"{n % 3},{n},{1000 + 37 * n}\n" for n in range(12))
    with pytest.raises(DataError, match=r"nearly all different whole numbers.*user=…"):
        loaded(tmp_path, text)
    assert len(loaded(tmp_path, text, user="a", item="b", rating="c").ratings) == 12
    text = "user,item,rating\n" + "".join(f"{5 * n},{n % 2},{n % 5}\n" for n in range(8))
    assert any("one rating only" in note for note in loaded(tmp_path, text).report.notes)


def test_sep_line_is_obeyed_for_tables(tmp_path):
    wide = table(tmp_path, "sep=;\nk;x;y\na;1,5;2\nb;2,5;\n")
    np.testing.assert_array_equal(wide.values, [[1.5, 2], [2.5, np.nan]])
    assert wide.lines.tolist() == [3, 4]


@pytest.mark.parametrize("decimal", [None, ","])
def test_quoted_decimal_commas(tmp_path, decimal):
    text = 'k,x,y\n"a","1,5","2,5"\n"b","2,5",""\n'
    np.testing.assert_array_equal(
        table(tmp_path, text, decimal=decimal).values, [[1.5, 2.5], [2.5, np.nan]]
    )
    text = HABITS["quoted decimal comma"][0]
    assert cells(loaded(tmp_path, text, decimal=decimal).ratings)["u1", "a"] == 3.5
    with pytest.raises(DataError, match="both the separator and the decimal sign"):
        loaded(tmp_path, "1,2,3\n1,3,4\n", separator=",", decimal=",")


@pytest.mark.parametrize(
    ("name", "value"),
    [("thousands, comma", 1234.5), ("thousands, point", 1234.5), ("thousands, blank", 1234.5)],
)
def test_thousands(tmp_path, name, value):
    assert table(tmp_path, HABITS[name][0]).values[0, 0] == value
    text = HABITS[name][0].replace("k;x;y", "item;rating;user")
    assert loaded(tmp_path, text).ratings.values.max() == 2100.5


def test_a_comma_that_may_divide_thousands_is_pointed_out(tmp_path):
    wide = table(tmp_path, "k;x;y\na;1,234;2\nb;2,100;3\n")
    assert wide.values[0, 0] == 1.234 and any("give the decimal sign" in n for n in wide.notes)
    assert table(tmp_path, "k;x;y\na;1,234;2\nb;2,100;3\n", decimal=".").values[0, 0] == 1234


QUOTED = 'k,x,y\na,"1,234","2,100"\nb,"2,500",\nc,,"4,000"\nd,"999","1,000"\n'


def test_a_quoted_comma_between_groups_divides_thousands(tmp_path):
    wide = table(tmp_path, QUOTED)
    np.testing.assert_array_equal(
        wide.values, [[1234, 2100], [2500, np.nan], [np.nan, 4000], [999, 1000]]
    )
    assert any("1,234 was read as 1234" in note for note in wide.notes)
    assert table(tmp_path, QUOTED, decimal=",").values[0, 0] == 1.234
    text = 'user,item,rating\nu1,a,"1,234"\nu2,b,"2,500"\nu2,a,"12"\n'
    found = loaded(tmp_path, text)
    assert sorted(found.ratings.values) == [12, 1234, 2500]
    assert any("1,234 was read as 1234" in note for note in found.report.notes)


@pytest.mark.parametrize("odd", ['"1,5"', '"0,125"', "1500", '"12,3456"'])
def test_a_quoted_comma_stays_the_decimal_sign_where_a_number_says_so(tmp_path, odd):
    assert table(tmp_path, f'k,x,y\na,"1,234",2\nb,{odd},3\n').values[0, 0] == 1.234


@pytest.mark.parametrize("sign", [".", ","])
def test_a_sign_before_three_digits_between_semicolons_is_pointed_out(tmp_path, sign):
    wide = table(tmp_path, "k;x;y\na;7;1.234\nb;8;2.500\n".replace(".", sign))
    ratings = loaded(tmp_path, "user;item;rating\na;7;1.234\nb;8;2.500\n".replace(".", sign))
    assert max(wide.values[:, 1]) == max(ratings.ratings.values) == 2.5
    for notes in (wide.notes, ratings.report.notes):
        assert any("give the decimal sign" in note for note in notes)


def test_line_ends_of_all_kinds_and_rows_of_separators_in_tables(tmp_path):
    for end in ("\r", "\r\n"):
        wide = table(tmp_path, "k,x,y\na,1,2\nb,3,\n".replace("\n", end))
        np.testing.assert_array_equal(wide.values, [[1, 2], [3, np.nan]])
    wide = table(tmp_path, "k;x;y;;\na;1;2;;\nb;3;;;\n;;;;\n;;;;\n")
    assert wide.names == ("x", "y") and len(wide.values) == 2
    assert any("2 rows of separators only" in note for note in wide.notes)


def test_long_numbers_stay_digit_for_digit(tmp_path):
    wide = table(tmp_path, "x,account,y\n1,12345678901234567890,2\n3,1234567890123456789,\n")
    assert wide.names == ("x", "y")
    assert list(wide.labels[0]) == ["12345678901234567890", "1234567890123456789"]
    got = loaded(tmp_path, "user,item,rating\n12345678901234567890,1,3\n12345678901234567891,1,4\n")
    assert got.ratings.users.ids.tolist() == ["12345678901234567890", "12345678901234567891"]


def test_ids_that_a_spreadsheet_shortened_are_pointed_out(tmp_path):
    text = "user,item,rating\n7,1,3\n1.23457E+18,1,4\n4.5E+05,2,4\n"
    notes = "\n".join(loaded(tmp_path, text).report.notes)
    assert "1.23457E+18 in line 3" in notes and "as text" in notes
    text = "id,x,y\n1.23457E+18,1,2\n5,2,3\n"
    assert any("1.23457E+18 in line 2" in note for note in table(tmp_path, text).notes)


def test_times_before_1970_and_days_first(tmp_path):
    text = "user,item,rating,timestamp\n1,1,2,1500000000\n1,1,5,-62135596800000\n"
    assert cells(loaded(tmp_path, text).ratings) == {(1, 1): 2}
    text = "user;item;rating;date\n1;1;5;03.02.2020\n1;1;2;31.01.2020\n"
    assert cells(loaded(tmp_path, text).ratings) == {(1, 1): 5}
    text = "user;item;rating;date\n1;1;5;03/02/2020 10:00\n1;1;2;31/01/2020 11:00\n"
    assert cells(loaded(tmp_path, text).ratings) == {(1, 1): 5}


def test_values_that_mean_not_rated(tmp_path, capsys):
    text = "user,item,rating\n1,1,6\n1,2,-1\n2,1,9\n2,2,NR\n2,3,\n3,1,7\n"
    got = loaded(tmp_path, text, not_rated=[-1, "nr", ""])
    assert got.report.rows_read == 6 and got.report.ratings == 3
    assert got.report.dropped == (("marked as not rated (-1, nr, a blank)", 3),)
    path = text_file(tmp_path, "user,item,rating\n1,1,6\n1,2,-1\n2,1,9\n2,2,8\n3,1,7\n")
    assert any("--not-rated -1" in note for note in load(path).report.notes)
    with pytest.raises(DataError, match=r"line 3.*--not-rated -1"):
        load(path, options=DelimitedOptions(low=1, high=10, step=1))
    main(["data", "check", str(path), "--not-rated", "-1", "--scale", "1,10,1"])
    assert "1 rows left out: marked as not rated (-1)" in capsys.readouterr().out
    with pytest.raises(DataError, match="no rating is left"):
        loaded(tmp_path, "user,item,rating\n1,1,9\n1,2,9\n", not_rated=[9])


@pytest.mark.parametrize("name", HABITS)
def test_upload_and_command_line_answer_alike(tmp_path, monkeypatch, name):
    monkeypatch.setenv("GMC_HOME", str(tmp_path / "home"))
    content = HABITS[name][0].encode()
    path = text_file(tmp_path / "own", content)
    kept = sources.keep_upload("mine.csv", content)
    try:
        expected = load(path).ratings.sha256
    except DataError:
        assert preview(kept).problem
        return
    options = preview(kept).options
    token = sources.register(kept, own_file.reading(options, "last"))
    assert sources.load(token).ratings.sha256 == expected


def test_a_quoted_table_is_read_as_the_csv_module_reads_it(tmp_path):
    rows = [["u1", 'say "x", y', "3"], ["u1", "two\nlines", "4"], ["u2", "#b", "5"]]
    out = io.StringIO()
    csv.writer(out).writerows([["user", "item", "rating"], *rows])
    assert cells(loaded(tmp_path, out.getvalue()).ratings) == {(u, i): float(r) for u, i, r in rows}
    assert R.count("\n") == 5
