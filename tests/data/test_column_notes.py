"""What is said of the columns of ratings: times left out, texts for numbers, doubtful rows."""

from __future__ import annotations

import pytest
from reader_files import text_file

from gmc_core.base.errors import DataError
from gmc_core.data.readers import DelimitedOptions, load

HEAD = "user,item,rating"


def read(tmp_path, text, **options):
    return load(text_file(tmp_path, text), options=DelimitedOptions(**options))


def notes(tmp_path, text, **options):
    return " | ".join(read(tmp_path, text, **options).report.notes)


@pytest.mark.parametrize("name", ["when", "rated_at", "rated_on", "created_on", "date", "time"])
def test_a_column_of_times_decides_between_repeated_ratings(tmp_path, name):
    text = f"{HEAD},{name}\na,x,1,2020-01-01\na,x,3,2020-01-03\na,x,2,2020-01-02\n"
    assert read(tmp_path, text).ratings.values.tolist() == [3]


def test_a_column_of_dates_without_a_role_is_named(tmp_path):
    text = f"{HEAD},published\na,x,1,2020-01-01\na,y,3,2020-01-03\nb,x,2,\n"
    assert "'published' looks like times and is not used" in notes(tmp_path, text)
    assert "--columns timestamp=published" in notes(tmp_path, text)
    assert (
        "published" not in notes(tmp_path, text, timestamp="published").split("columns: ")[1][60:]
    )
    assert "times" not in notes(tmp_path, f"{HEAD},price\na,x,1,12\na,y,3,14\nb,x,2,15\n")


def test_a_column_named_like_times_that_holds_others_is_named(tmp_path):
    text = f"{HEAD},date\na,x,1,2020-01-01\na,x,3,yesterday\nb,x,2,\n"
    assert "'date' is named like times, but 'yesterday' (line 3)" in notes(tmp_path, text)


def test_the_date_that_is_none_is_named(tmp_path):
    dates = ("01/01/2020", "31/31/2020", "13/02/2020", "14/02/2020")
    rows = "".join(f"{user},x,1,{date}\n" for user, date in zip("aaab", dates, strict=True))
    text = f"{HEAD},date\n{rows}"
    assert "'31/31/2020' (line 3) is neither a number nor a date" in notes(tmp_path, text)
    with pytest.raises(DataError, match=r"line 3: The timestamp .*31/31/2020"):
        read(tmp_path, text, timestamp="date")


@pytest.mark.parametrize("rating", ["4/5", "3 stars", "80%"])
@pytest.mark.parametrize("head", [HEAD, "who,what,how"])
def test_ratings_that_are_texts_are_shown_by_the_first_one(tmp_path, head, rating):
    text = f"{head}\nu1,a,{rating}\nu1,b,{rating}\n"
    for options in ({}, {"rating": 2}):
        with pytest.raises(DataError, match=r"line 2: .* column 3.* is not a finite") as e:
            read(tmp_path, text, **options)
        assert f"'{rating}'" in str(e.value)


def test_which_of_two_columns_of_one_name_is_taken(tmp_path):
    text = "user,item,item,rating\na,x,p,1\na,y,q,3\n"
    assert "columns 2, 3 are all named 'item'; column 2 is taken" in notes(tmp_path, text)
    assert "column 3 is taken" in notes(tmp_path, text, item=2)


def test_a_last_row_that_may_sum_up_the_others_is_pointed_out(tmp_path):
    for word in ("Total", "MEAN", "average:"):
        assert f"(line 4, '{word}')" in notes(tmp_path, f"{HEAD}\na,x,1\nb,y,3\n{word},y,2\n")
    assert "last row" not in notes(tmp_path, f"{HEAD}\nTotal,x,1\nb,y,3\n")


def test_a_code_for_not_rated_that_matched_nothing_is_noted(tmp_path):
    text = f"{HEAD}\na,x,1\nb,y,3\na,y,99\n"
    assert "not found: '7' (0)" in notes(tmp_path, text, not_rated=("7", 99))
    assert "not found" not in notes(tmp_path, text, not_rated=(99,))
