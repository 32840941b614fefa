"""One person's list: refused as data, matched to a model's titles, brought to its scale."""

from __future__ import annotations

import pytest
from reader_files import text_file

from gmc_core.errors import DataError
from gmc_core.lookup import TitleIndex
from gmc_core.readers import load
from gmc_core.readers.one_person import read_person

IMDB = "Const,Your Rating,Title,Year\ntt01,9,Heat,1995\ntt02,,Up,2009\n"
LETTERBOXD = "Date,Name,Year,Letterboxd URI,Rating\n2020-01-01,Heat,1995,https://x,4.5\n"
MOVIELENS = (
    "movie_id,imdb_id,tmdb_id,rating,average_rating,title\n1,0114709,862,3.5,3.8,Toy Story (1995)\n"
)
TITLES = ("Heat (1995)", "Heat (1986)", "Matrix, The (1999)", "Up in the Air (2009)")


@pytest.mark.parametrize("text", [IMDB, LETTERBOXD, MOVIELENS])
def test_a_list_is_no_data_for_a_model(tmp_path, text):
    with pytest.raises(DataError, match="one person's list.*--ratings-file.*Recommend.*--rate"):
        load(text_file(tmp_path, text))


def test_exports_are_read_with_their_scale(tmp_path):
    found = read_person(text_file(tmp_path, IMDB))
    assert [(e.title, e.year, e.rating) for e in found.entries] == [("Heat", 1995, 9)]
    assert found.without_rating == 1 and found.scale.high == 10
    with pytest.raises(DataError, match="line 2.*scale 1..10.*'11'"):
        read_person(text_file(tmp_path, IMDB.replace(",9,", ",11,")))


@pytest.mark.parametrize(
    ("title", "year", "item"),
    [("Heat", 1995, 0), ("heat", 1987, 1), ("The Matrix", 1999, 2), ("Heat", None, None),
     ("Up", 2009, None), ("Heat", 2013, None)],
)  # fmt: skip
def test_titles_are_matched_whole_and_with_their_year(title, year, item):
    assert TitleIndex(TITLES).find(title, year)[0] == item
