"""One person's list: refused as data, matched to a model's titles, brought to its scale."""

from __future__ import annotations

import pytest
from making import movielens_folder
from reader_files import text_file

from gmc_core.base.errors import DataError
from gmc_core.data.ratings import RatingScale
from gmc_core.data.readers import load
from gmc_core.data.readers.one_person import read_person
from gmc_core.fitting.fit import run_fit
from gmc_core.gaussian.settings import FitSettings
from gmc_core.model.lookup import TitleIndex
from gmc_core.model.person_ratings import match
from gmc_core.protocol.splits import no_split

IMDB = "Const,Your Rating,Title,Year\ntt01,9,Heat,1995\ntt02,,Up,2009\n"
LETTERBOXD = "Date,Name,Year,Letterboxd URI,Rating\n2020-01-01,Heat,1995,https://x,4.5\n"
MOVIELENS = (
    "movie_id,imdb_id,tmdb_id,rating,average_rating,title\n1,0114709,862,3.5,3.8,Toy Story (1995)\n"
)
TITLES = ("Heat (1995)", "Heat (1986)", "Matrix, The (1999)", "Up in the Air (2009)")


GOODREADS = "Book Id,Title,Author,My Rating\n1,Emma,Austen,4\n2,Kim,Kipling,0\n"
PLAIN = "Title;Year;Rating;Review\nHeat;1995;4,5;good\nUp;2009;5;\nToy Story;1995;3;\n"


@pytest.mark.parametrize("text", [IMDB, LETTERBOXD, MOVIELENS, GOODREADS, PLAIN])
def test_a_list_is_no_data_for_a_model(tmp_path, text):
    with pytest.raises(DataError, match="one person's list.*--ratings-file.*Recommend.*--rate"):
        load(text_file(tmp_path, text))


def test_exports_are_read_with_their_scale(tmp_path):
    found = read_person(text_file(tmp_path, IMDB))
    assert [(e.title, e.year, e.rating) for e in found.entries] == [("Heat", 1995, 9)]
    assert found.without_rating == 1 and found.scale.high == 10
    with pytest.raises(DataError, match="line 2.*scale 1..10.*'11'"):
        read_person(text_file(tmp_path, IMDB.replace(",9,", ",11,")))


def test_titles_rated_by_many_are_data(tmp_path):
    text = "critic,film,rating\n" + "".join(f"c{k % 3},t{k % 5},{k % 4 + 1}\n" for k in range(12))
    assert load(text_file(tmp_path, text)).ratings.n_users == 3


def test_plain_lists(tmp_path):
    found = read_person(text_file(tmp_path, PLAIN))
    assert [(e.title, e.year, e.rating) for e in found.entries] == [
        ("Heat", 1995, 4.5), ("Up", 2009, 5), ("Toy Story", 1995, 3),
    ]  # fmt: skip
    assert found.scale is None
    # A rating of Goodreads that is 0 means a book without one.
    books = read_person(text_file(tmp_path, GOODREADS))
    assert [(e.title, e.rating) for e in books.entries] == [("Emma", 4)]
    assert books.without_rating == 1
    with pytest.raises(DataError, match="line 3: The rating is no number.*'good'"):
        read_person(text_file(tmp_path, "title,rating\nHeat,4\nUp,good\nEmma,3\n"))
    with pytest.raises(DataError, match="column 'title'.*there is who, what"):
        read_person(text_file(tmp_path, "who,what\n1,2\n3,4\n"))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Of the titles "Title 1 (1970)" to "Title 30 (1999)", on 1..5."""
    place = movielens_folder(tmp_path_factory.mktemp("ml") / "ml")
    return run_fit(no_split(load(place).ratings), FitSettings(iterations=1)).model()


def listed(tmp_path, text, model, scale=None):
    return match(read_person(text_file(tmp_path, text)), model, scale)


def test_a_list_is_matched_counted_and_brought_to_the_scale(tmp_path, model):
    text = (
        "Const,Your Rating,Title,Year\n"
        "tt1,10,Title 1,1970\ntt2,1,Title 2,1972\ntt3,6,Title 3,1990\ntt4,3,Elsewhere,1980\n"
        "tt5,7,Title 5,1974\ntt6,4,TITLE 5,\ntt7,,Title 7,1976\n"
    )
    found = listed(tmp_path, text, model)
    # 1..10 to 1..5, end to end: 10 → 5, 1 → 1, 4 → 2.33 → 2.
    assert found.ratings == {0: 5, 1: 1, 4: 2}
    assert [(entry.line, reason) for entry, reason in found.unmatched] == [
        (4, "only of another year"), (5, "no such title"),
    ]  # fmt: skip
    assert (found.listed, found.repeated, found.without_rating) == (6, 1, 1)
    assert found.listed == len(found.ratings) + found.repeated + len(found.unmatched)
    for words in ("6 ratings: 3 matched", "2 not", "1 of a title that comes again", "1 rows"):
        assert words in found.summary()
    assert "from 1..10 to the model's 1..5, end to end" in found.scaling


def test_a_list_without_a_known_scale(tmp_path, model):
    text = "title,rating\nTitle 1,4\nTitle 2,1\n"
    assert listed(tmp_path, text, model).ratings == {0: 4, 1: 1}
    assert "taken as they are" in listed(tmp_path, text, model).scaling
    wide = text.replace(",4", ",80").replace(",1", ",0")
    with pytest.raises(DataError, match="line 2.*scale 1..5.*does not tell.*--file-scale.*'80'"):
        listed(tmp_path, wide, model)
    given = listed(tmp_path, wide, model, RatingScale(0, 100, None))
    assert given.ratings == {0: 4, 1: 1}  # 80 of 100 is 4.2 of 1..5
    with pytest.raises(DataError, match="line 2.*scale .*as it is.*'80'"):
        listed(tmp_path, wide, model, RatingScale(0, 10, None))


def test_ids_where_there_are_no_titles(tmp_path, model):
    found = listed(tmp_path, "id,rating\n3,5\n99,2\n7,1\n", model)
    assert found.ratings == {2: 5, 6: 1}
    assert [reason for _, reason in found.unmatched] == ["no such id"]


def test_ids_are_the_titles_of_a_model_without_any(tmp_path):
    """Where a file names its items by their titles, they are ids, and what people see."""
    rows = [f"u{user},{name},{1 + user % 5}" for user in range(20) for name in ("Heat", "Kim")]
    ratings = load(
        text_file(tmp_path, "user,book,rating\n" + "\n".join(rows) + "\n", "own.csv")
    ).ratings
    named = run_fit(no_split(ratings), FitSettings(iterations=1)).model()
    found = listed(tmp_path, "title,rating\nkim,5\nEmma,2\n", named)
    assert found.ratings == {named.items.index("Kim"): 5}
    assert [reason for _, reason in found.unmatched] == ["no such title"]


def test_numbers_are_ids_and_no_titles(tmp_path):
    """A film is called "300", and another one's id may be the same."""
    rows = [f"u{user},{item},{1 + user % 5}" for user in range(20) for item in (296, 300)]
    ratings = load(text_file(tmp_path, "user,item,rating\n" + "\n".join(rows) + "\n", "own.csv"))
    numbered = run_fit(no_split(ratings.ratings), FitSettings(iterations=1)).model()
    found = listed(tmp_path, "title,rating\n300,5\n", numbered)
    assert not found.ratings
    assert [reason for _, reason in found.unmatched] == ["no such id"]


@pytest.mark.parametrize(
    ("title", "year", "item"),
    [("Heat", 1995, 0), ("heat", 1987, 1), ("The Matrix", 1999, 2), ("Heat", None, None),
     ("Up", 2009, None), ("Heat", 2013, None)],
)  # fmt: skip
def test_titles_are_matched_whole_and_with_their_year(title, year, item):
    assert TitleIndex(TITLES).find(title, year)[0] == item
