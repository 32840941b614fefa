"""Any delimited text: what is found, what can be given, what is an error."""

from __future__ import annotations

import numpy as np
import pytest
from reader_files import cells, text_file

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.data.ratings import RatingScale
from gmc_core.data.readers import DelimitedOptions, load, preview, read_pairs, read_triplets, table
from gmc_core.data.readers.scales import find_scale

EXPECTED = {("a", "x"): 3.5, ("a", "y"): 1, ("b", "x"): 5}


@pytest.mark.parametrize(
    "text",
    [
        "a,x,3.5\na,y,1\nb,x,5\n",
        "user,item,rating\r\na,x,3.5\r\na,y,1\r\nb,x,5\r\n",
        "user;item;rating\na;x;3,5\na;y;1\nb;x;5\n",
        "a\tx\t3.5\na\ty\t1\nb\tx\t5",
        "a::x::3.5\na::y::1\nb::x::5\n",
        "a|x|3.5\na|y|1\nb|x|5\n",
        "  a   x 3.5\na y  1\nb x 5  \n",
        "\ufeffuser,item,rating\n\na,x,3.5\n\na,y,1\nb,x,5\n\n\n",
        '"user","item","rating"\n"a","x","3.5"\n"a","y","1"\n"b","x","5"\n',
        "rating,date,user,item\n3.5,0,a,x\n1,0,a,y\n5,0,b,x\n",
        ",movieId,userId,Rating,\n0,x,a,3.5,\n1,y,a,1,\n2,x,b,5,\n",
        "a,x,3.5\ra,y,1\rb,x,5\r",
    ],
)
def test_layouts_that_are_found(tmp_path, text):
    loaded = load(text_file(tmp_path, text))
    assert cells(loaded.ratings) == EXPECTED
    assert loaded.ratings.scale == RatingScale(0.5, 5, 0.5)
    assert loaded.report.rows_read == loaded.report.ratings == 3


def test_decimal_comma_below_the_sample(tmp_path):
    text = "user;item;rating\n" + "".join(f"{n};i;3\n" for n in range(300)) + "x;i;2,5\n"
    assert cells(load(text_file(tmp_path, text)).ratings)["x", "i"] == 2.5


def test_leading_zeros_make_all_ids_text(tmp_path):
    ratings = load(text_file(tmp_path, "007,1,5\n7,2,4\n12,1,3\n")).ratings
    assert ratings.users.ids.tolist() == ["007", "12", "7"]
    assert ratings.items.ids.tolist() == [1, 2]


def test_large_ids(tmp_path):
    ratings = load(text_file(tmp_path, f"{10**18},-5,5\n3,{2**63},4\n")).ratings
    assert ratings.users.ids.tolist() == [3, 10**18]
    assert ratings.items.ids.tolist() == ["-5", str(2**63)]


@pytest.mark.parametrize("word", ["NA", "null", "None", "nan", "true"])
def test_ids_that_look_like_missing_values_are_ids(tmp_path, word):
    assert word in load(text_file(tmp_path, f"{word},x,5\nb,x,4\n")).ratings.users.ids


def test_a_rating_of_zero_is_a_rating(tmp_path):
    loaded = load(text_file(tmp_path, "1,1,0\n1,2,3\n2,1,0\n"))
    assert len(loaded.ratings) == 3 and loaded.ratings.scale.low == 0


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([1, 2, 5], RatingScale(1, 5, 1)),
        ([3, 5], RatingScale(1, 5, 1)),
        ([0, 5], RatingScale(0, 5, 1)),
        ([1.5, 5], RatingScale(0.5, 5, 0.5)),
        ([1, 7, 10], RatingScale(1, 10, 1)),
        ([0, 30, 100], RatingScale(0, 100, 10)),
        ([0, 31, 100], RatingScale(0, 100, None)),
        ([0, 0.25, 1], RatingScale(0, 1, 0.25)),
        ([0.1, 0.2, 0.7], RatingScale(0.1, 0.7, 0.1)),
        ([-9.66, 0.12, 8.79], RatingScale(-9.66, 8.79, None)),
        ([3, 3, 3], RatingScale(3, 3, 1)),
    ],
)
def test_scales_that_are_found(values, scale):
    found, how = find_scale(np.array(values, dtype=float))
    assert (found.low, found.high, found.step) == (scale.low, scale.high, scale.step)
    assert how.startswith("found")


def test_scale_that_is_given(tmp_path):
    path = text_file(tmp_path, "1,1,2\n1,2,4\n")
    options = DelimitedOptions(low=0, high=10, step=1)
    assert load(path, options=options).ratings.scale == RatingScale(0, 10, 1)
    options = DelimitedOptions(low=0, high=10, step="continuous")
    assert load(path, options=options).ratings.scale.step is None
    options = DelimitedOptions(low=0, high=10)
    assert load(path, options=options).ratings.scale == RatingScale(0, 10, 1)
    with pytest.raises(DataError, match=r"line 2.*not on the scale 1\.\.3"):
        load(path, options=DelimitedOptions(low=1, high=3, step=1))


TIMED = "user,item,rating,timestamp\n1,1,5,300\n1,1,2,100\n1,2,4,1\n1,1,3,200\n"


@pytest.mark.parametrize(
    ("policy", "value"), [("last", 5), ("first", 2), ("mean", pytest.approx(10 / 3))]
)
def test_duplicates_by_time(tmp_path, policy, value):
    loaded = load(text_file(tmp_path, TIMED), duplicates=policy)
    assert cells(loaded.ratings) == {(1, 1): value, (1, 2): 4}
    assert loaded.report.duplicates == 2
    assert loaded.report.rows_read == 4 and loaded.report.ratings == 2
    assert policy in str(loaded.report)


@pytest.mark.parametrize(("policy", "value"), [("last", 3), ("first", 5)])
def test_duplicates_by_position(tmp_path, policy, value):
    for stamp in ("0", "2015-03-02 10:00:00"):  # equal times
        text = TIMED.replace("300", stamp).replace("100", stamp).replace("200", stamp)
        text = text.replace("4,1\n", f"4,{stamp}\n")
        assert cells(load(text_file(tmp_path, text), duplicates=policy).ratings)[1, 1] == value
    no_times = "1,1,5\n1,1,2\n1,2,4\n1,1,3\n"
    assert cells(load(text_file(tmp_path, no_times), duplicates=policy).ratings)[1, 1] == value


def test_duplicates_by_date(tmp_path):
    text = "1,1,5,2015-03-02\n1,1,2,2015-03-01\n"
    assert cells(load(text_file(tmp_path, text)).ratings)[1, 1] == 5


def test_duplicates_as_an_error(tmp_path):
    with pytest.raises(DataError, match=r"line 3: User 1 has rated item 1 before"):
        load(text_file(tmp_path, TIMED), duplicates="error")
    with pytest.raises(ConfigError, match="last, first, mean, error"):
        load(text_file(tmp_path, TIMED), duplicates="newest")


@pytest.mark.parametrize("bad", ["nan", "NaN", "inf", "-Infinity", "", "good", "0x10", "1_0"])
def test_bad_ratings_name_line_column_and_value(tmp_path, bad):
    text = f"userId;movieId;rating\n1;1;5\n\n1;2;{bad}\n1;3;4\n"
    with pytest.raises(DataError) as caught:
        load(text_file(tmp_path, text))
    assert caught.value.line == 4 and caught.value.value == bad
    assert "column 3 (rating)" in str(caught.value)


def test_a_bad_first_row_is_not_taken_for_a_header(tmp_path):
    with pytest.raises(DataError, match="line 1"):
        load(text_file(tmp_path, "1,2,good\n1,3,5\n1,4,4\n"))


def test_decimal_comma_is_hinted_at(tmp_path):
    path = text_file(tmp_path, "a;x;3,5\nb;x;4,5\n")
    with pytest.raises(DataError, match="decimal comma; set the decimal sign"):
        load(path, options=DelimitedOptions(decimal="."))


@pytest.mark.parametrize("row", ["1,2", "1,2,3,4,5", ",2,3", " ,2,3"])
def test_bad_rows(tmp_path, row):
    with pytest.raises(DataError, match="line 4"):
        load(text_file(tmp_path, f"user,item,rating\n1,1,5\n2,1,4\n{row}\n3,1,2\n4,1,2\n5,1,1\n"))


def test_columns_that_are_given(tmp_path):
    path = text_file(tmp_path, "score,who,what,name\n5,a,x,Ex\n4,b,y,Why (1999)\n")
    options = DelimitedOptions(user="who", item="what", rating="score", title="name")
    ratings = load(path, options=options).ratings
    assert cells(ratings) == {("a", "x"): 5, ("b", "y"): 4}
    assert ratings.item_info.titles == ("Ex", "Why (1999)")
    assert ratings.item_info.years[1] == 1999
    options = DelimitedOptions(user=1, item=2, rating=0)
    assert cells(load(path, options=options).ratings) == cells(ratings)
    with pytest.raises(DataError, match=r"no column named 'stars'.*score, who, what, name"):
        load(path, options=DelimitedOptions(rating="stars"))
    with pytest.raises(DataError, match="from 0 to 3"):
        load(path, options=DelimitedOptions(rating=9))
    with pytest.raises(DataError, match="two purposes"):
        load(path, options=DelimitedOptions(user="who", item=1))


@pytest.mark.parametrize(
    "options",
    [
        {"separator": ""},
        {"separator": "ab"},
        {"decimal": ";"},
        {"low": 1},
        {"low": 5, "high": 1},
        {"low": 1, "high": 5, "step": 3},
        {"user": 1, "item": 1},
    ],
)
def test_options_without_meaning(options):
    with pytest.raises(ConfigError):
        DelimitedOptions(**options)


def test_encoding_that_is_given(tmp_path):
    path = text_file(tmp_path, "é,x,5\nb,x,4\n".encode("utf-16"))
    ratings = load(path, options=DelimitedOptions(encoding="utf-16")).ratings
    assert ratings.users.ids.tolist() == ["b", "é"]
    path = text_file(tmp_path, "b,x,4\né,x,5\n".encode("latin-1"))
    with pytest.raises(DataError, match="line 2.*not utf-8"):
        load(path, options=DelimitedOptions(encoding="utf-8"))
    loaded = load(path)
    assert loaded.report.encoding == "latin-1" and "é" in loaded.ratings.users.ids


def test_one_bad_row_among_few_is_named(tmp_path):
    with pytest.raises(DataError, match="line 2.*4 columns where the others have 3"):
        load(text_file(tmp_path, "1,2,3\n1,3,4,5\n2,2,2\n"))
    with pytest.raises(DataError, match="line 2.*200001 columns"):
        load(text_file(tmp_path, '1,2,3\n"1' + "," * 200_000 + "\n"))


def test_one_row_without_a_line_end(tmp_path):
    for text in ("1,2,3", "1 2 3", "1::2::3"):
        assert cells(load(text_file(tmp_path, text)).ratings) == {(1, 2): 3}


def test_no_table(tmp_path):
    with pytest.raises(DataError, match="No separator"):
        load(text_file(tmp_path, "just\nwords\n"))
    with pytest.raises(DataError, match=r"no column left for the rating"):
        load(text_file(tmp_path, "1,2\n3,4\n"))
    with pytest.raises(DataError, match="header line but no ratings"):
        load(text_file(tmp_path, "user,item,rating\n"))


def test_quoted_separators_and_line_ends(tmp_path):
    text = 'user,item,rating,title\n1,1,5,"A, B"\n1,2,4,"two\nlines"\n1,3,x,C\n'
    with pytest.raises(DataError) as caught:
        load(text_file(tmp_path, text))
    assert caught.value.line == 5  # the title above takes two lines
    ratings = load(text_file(tmp_path, text.replace(",x,", ",3,"))).ratings
    assert ratings.item_info.titles == ("A, B", "two\nlines", "C")


@pytest.mark.parametrize("header", ["", "name,m1,m2,m3,m4,m5\n"])
def test_a_wide_matrix_is_not_read_as_triplets(tmp_path, header):
    with pytest.raises(DataError, match="is not clear"):
        load(text_file(tmp_path, header + "7,5,3,4,1,2\n8,1,1,2,3,3\n"))


def test_times_that_are_not_times(tmp_path):
    text = "user,item,rating,date\n1,1,5,2015-03-02\n1,1,2,spring\n"
    rows = "".join(f"2,{n},3,2015-03-02\n" for n in range(200))
    text = text.replace("1,1,2,spring\n", "") + rows + "1,1,2,spring\n"
    loaded = load(text_file(tmp_path, text))
    assert cells(loaded.ratings)[1, 1] == 2
    assert any("'spring' (line 203)" in note for note in loaded.report.notes)
    with pytest.raises(DataError, match=r"line 203: .*spring"):
        load(text_file(tmp_path, text), options=DelimitedOptions(timestamp="date"))


def test_a_readme_does_not_hide_the_data(tmp_path):
    text_file(tmp_path, "a,b,5\nc,b,4\n")
    text_file(tmp_path, "words", "README.txt")
    assert len(load(tmp_path).ratings) == 2


def test_preview(tmp_path):
    path = text_file(tmp_path, "who;what;Score\na;x;3,5\na;y;1\nb;x;5\n")
    shown = preview(path)
    assert shown.columns == ("who", "what", "Score")
    assert shown.rows[0] == ("a", "x", "3,5")
    assert dict(shown.roles) == {"user": 0, "item": 1, "rating": 2}
    assert shown.problem is None
    assert (shown.options.separator, shown.options.decimal) == (";", ",")
    assert cells(load(path, options=shown.options).ratings) == EXPECTED


def test_preview_of_a_file_that_needs_help(tmp_path):
    shown = preview(text_file(tmp_path, "1,2\n3,4\n"))
    assert "rating" in shown.problem and shown.rows == (("1", "2"), ("3", "4"))
    shown = preview(text_file(tmp_path, "a,b,c\n1,x,y\n2,x,z\n"))
    assert "not a finite number" in shown.problem and len(shown.rows) == 2


def test_triplets_are_taken_as_they_are(tmp_path):
    triplets = read_triplets(text_file(tmp_path, "user,item,rating\n2,x,5\n1,x,9\n2,x,4\n"))
    assert triplets.users.tolist() == [2, 1, 2]
    assert triplets.items.tolist() == ["x"] * 3
    assert triplets.values.tolist() == [5, 9, 4]


def test_pairs(tmp_path):
    pairs = read_pairs(text_file(tmp_path, "user,item\n2,01\n1,2\n2,01\n"))
    assert pairs.users.tolist() == [2, 1, 2] and pairs.items.tolist() == ["01", "2", "01"]
    assert read_pairs(text_file(tmp_path, "5;7\n6;8\n")).items.tolist() == [7, 8]


def test_arrow_s_threads_hold_nothing_of_python_s(tmp_path, monkeypatch):
    """They let go of the text while the program ends, when nothing of Python's may be touched.

    ``benchmarks/exits.py`` counts how often that takes a program down.
    """
    given = []
    original = table.arrow_csv.read_csv

    def read_csv(buffer, **options):
        given.append(buffer)
        return original(buffer, **options)

    monkeypatch.setattr(table.arrow_csv, "read_csv", read_csv)
    load(text_file(tmp_path, "user,item,rating\n1,1,3\n1,2,5\n"))
    assert given
    # A buffer over bytes of Python cannot be written to; Arrow's own memory can.
    assert all(buffer.is_mutable for buffer in given)
