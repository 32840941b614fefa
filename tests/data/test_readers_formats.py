"""The named formats, each in its true layout and packed in every way."""

from __future__ import annotations

import gzip
import json
import time
import warnings

import numpy as np
import pytest
from reader_files import (
    EACHMOVIE,
    JESTER,
    JESTER_DAT,
    MATRIX_MARKET,
    ML1M,
    ML10M,
    ML100K,
    ML_CSV,
    NETFLIX,
    cells,
    folder,
    real_data,
    text_file,
    zipped,
)

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.data.ratings import RatingScale
from gmc_core.data.readers import FORMATS, load

ALL = {
    "movielens-dat": ML1M,
    "movielens-100k": ML100K,
    "movielens-csv": ML_CSV,
    "eachmovie": EACHMOVIE,
    "netflix": NETFLIX,
    "matrix-market": {"ratings.mtx": MATRIX_MARKET},
    "jester-dat": {"jester_ratings.dat": JESTER_DAT},
}


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("name", ALL)
def test_folder_zip_and_nested_zip_give_the_same(tmp_path, name):
    files = ALL[name]
    plain = load(folder(tmp_path / "set", files))
    assert plain.report.format == name
    flat = load(zipped(tmp_path / "flat.zip", files))
    nested = load(zipped(tmp_path / "nested.zip", files, "a/b/"))
    packed = {key + ".gz": gzip.compress(data) for key, data in files.items()}
    gzipped = load(folder(tmp_path / "packed", packed))
    for other in (flat, nested, gzipped):
        assert other.ratings.sha256 == plain.ratings.sha256
        assert other.ratings.item_info.titles == plain.ratings.item_info.titles
    assert nested.ratings.name == "nested"


def test_ml1m(tmp_path):
    loaded = load(folder(tmp_path / "ml-1m", ML1M))
    ratings, report = loaded.ratings, loaded.report
    assert cells(ratings) == {(1, 10): 5, (1, 20): 3, (2, 10): 4, (3, 30): 1, (3, 10): 2}
    assert ratings.scale == RatingScale(1, 5, 1)
    assert ratings.item_info.titles[0] == "Misérables, Les (1995)"
    assert ratings.item_info.titles[1] == "Star Wars: Episode IV - A New Hope (1977)"
    assert ratings.item_info.genres[2] == ("Animation", "Children's", "Comedy")
    assert ratings.item_info.years.tolist() == [1995, 1977, 1995]
    assert ratings.user_info["gender"].tolist() == ["F", "M", "M"]
    assert ratings.user_info["zip_code"][1] == "02139"
    assert ratings.user_info["occupation"][0] == "K-12 student"
    assert any("latin-1" in note for note in report.notes)
    assert any("1 items of the title file have no rating" in note for note in report.notes)
    assert ratings.n_items == 3
    assert report.rows_read == report.ratings == 5
    assert "1..5" in str(report)


def test_title_with_the_separator_is_kept_whole(tmp_path):
    files = ML1M | {"movies.dat": b"10::A::B (1990)::Drama\n"}
    loaded = load(folder(tmp_path, files))
    assert loaded.ratings.item_info.titles[0] == "A::B (1990)"
    assert loaded.ratings.item_info.titles[1] is None


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("Amélie".encode(), "utf-8"),
        (b"\xef\xbb\xbf" + "Amélie".encode(), "utf-8-sig"),
        ("Amélie".encode("latin-1"), "latin-1"),
        ("Amélie – “x”".encode("cp1252"), "cp1252"),
    ],
)
def test_encodings_are_tried_and_named(tmp_path, data, encoding):
    head, bom = (data[:3], data[3:]) if data.startswith(b"\xef") else (b"", data)
    movies = head + b"10::" + bom + b" (2001)::Comedy\n"
    loaded = load(folder(tmp_path, ML1M | {"movies.dat": movies}))
    assert loaded.ratings.item_info.titles[0].startswith("Amélie")
    assert any(note.endswith(f"encoding {encoding}") for note in loaded.report.notes)


def test_ml10m_has_half_stars_and_utf8(tmp_path):
    loaded = load(folder(tmp_path, ML10M))
    assert loaded.ratings.scale == RatingScale(0.5, 5, 0.5)
    assert loaded.ratings.item_info.titles == ("Amélie (2001)", "Net, The (1995)")
    assert loaded.ratings.user_info == {}


def test_ml100k(tmp_path):
    ratings = load(folder(tmp_path, ML100K)).ratings
    assert cells(ratings) == {(196, 242): 3, (186, 302): 3, (196, 302): 1}
    assert ratings.item_info.genres == (("Comedy",), ("Action", "Crime"))
    assert ratings.item_info.years.tolist() == [1996, 1994]
    assert ratings.item_info.titles[1] == "Léon"
    assert ratings.user_info["age"].tolist() == [39, 49]
    assert ratings.user_info["zip_code"][0] == "00000"


def test_ml100k_genres_from_its_file(tmp_path):
    genres = "".join(f"G{number}|{number}\n" for number in range(19)).encode()
    ratings = load(folder(tmp_path, ML100K | {"u.genre": genres})).ratings
    assert ratings.item_info.genres[0] == ("G5",)


def test_movielens_csv(tmp_path):
    ratings = load(folder(tmp_path, ML_CSV)).ratings
    assert ratings.scale == RatingScale(0.5, 5, 0.5)
    assert ratings.item_info.titles == ("American President, The (1995)", "Nothing Known")
    assert ratings.item_info.genres[1] == ()
    assert np.isnan(ratings.item_info.years[1])
    assert cells(ratings)[7, 31] == 0.5


def test_a_ratings_file_finds_its_neighbours(tmp_path):
    folder(tmp_path, ML1M)
    loaded = load(tmp_path / "ratings.dat")
    assert loaded.report.format == "movielens-dat"
    assert loaded.ratings.item_info.titles[2] == "Toy Story (1995)"


def test_eachmovie(tmp_path):
    loaded = load(folder(tmp_path, EACHMOVIE))
    ratings, report = loaded.ratings, loaded.report
    # A zero score is a rating of 1; with another weight it is no rating at all.
    assert cells(ratings) == {(1, 1): 4, (1, 2): 1, (2, 1): 6, (2, 3): 2}
    assert ratings.scale == RatingScale(1, 6, 1)
    assert report.dropped[0][1] == 1 and "sounds awful" in report.dropped[0][0]
    assert report.rows_read == 5 and report.ratings == 4
    assert "sounds awful" in str(report)
    assert ratings.item_info.years[:2].tolist() == [1995, 1996]
    assert ratings.item_info.genres[0] == ("Animation", "Comedy", "Family")
    assert ratings.item_info.titles[1] == "Café"
    assert ratings.user_info["age"][0] == 34 and np.isnan(ratings.user_info["age"][1])


def test_eachmovie_votes_alone(tmp_path):
    loaded = load(text_file(tmp_path, EACHMOVIE["vote.txt"], "vote.txt"))
    assert loaded.report.format == "eachmovie"
    assert loaded.ratings.item_info.titles == (None,) * 3


def test_eachmovie_dates_decide_between_repeated_votes(tmp_path):
    votes = b"1\t1\t0.6\t1\t3/7/96 10:31:00\n1\t1\t1\t1\t2/7/96 10:31:00\n1\t2\t0\t0\t\n"
    loaded = load(text_file(tmp_path, votes, "vote.txt"))
    assert cells(loaded.ratings) == {(1, 1): 4}
    assert loaded.report.duplicates == 1


def test_eachmovie_odd_score_is_an_error(tmp_path):
    votes = b"1\t1\t0.6\t1\t\n\n1\t2\t0.5\t1\t\n"
    with pytest.raises(DataError, match=r"vote\.txt, line 3.*scale 1\.\.6.*3\.5"):
        load(text_file(tmp_path, votes, "vote.txt"))


def test_jester(tmp_path):
    loaded = load(text_file(tmp_path, JESTER, "jester-data-1.csv"))
    assert loaded.report.format == "jester"
    assert loaded.ratings.scale == RatingScale(-10, 10, None)
    assert len(loaded.ratings) == 9
    assert cells(loaded.ratings)[3, 5] == 10
    assert loaded.ratings.users.ids.tolist() == [1, 2, 3]


def test_jester_files_are_numbered_on(tmp_path):
    files = {"jester-data-1.csv": JESTER, "jester-data-2.csv": JESTER}
    loaded = load(zipped(tmp_path / "jester.zip", files))
    assert loaded.ratings.n_users == 6 and loaded.ratings.n_items == 5
    assert cells(loaded.ratings)[6, 5] == 10


def test_jester_decimal_comma_and_bad_values(tmp_path):
    text = JESTER.decode().replace(",", ";").replace(".", ",")
    assert len(load(text_file(tmp_path, text, "a.csv")).ratings) == 9
    bad = JESTER.replace(b"99,99,99,99,10", b"99,99,99,99,10.5")
    with pytest.raises(DataError, match=r"line 3.*-10\.\.10"):
        load(text_file(tmp_path, bad, "b.csv"), format="jester")
    bad = JESTER.replace(b"-0.29", b"")
    with pytest.raises(DataError, match=r"line 2.*joke 2.*blank"):
        load(text_file(tmp_path, bad, "c.csv"), format="jester")


def test_netflix(tmp_path):
    loaded = load(folder(tmp_path / "training_set", NETFLIX))
    ratings, report = loaded.ratings, loaded.report
    # The later of two dates counts, wherever it stands.
    assert cells(ratings) == {(1488844, 1): 3, (822109, 1): 5, (822109, 2): 2}
    assert report.duplicates == 1 and report.rows_read == 4 and report.blank_lines == 0
    assert ratings.scale == RatingScale(1, 5, 1)
    assert ratings.item_info.titles == ("Dinosaur Planet", "Isle, of Léon")
    assert ratings.item_info.years[0] == 2003 and np.isnan(ratings.item_info.years[1])


def test_netflix_in_a_zip(tmp_path):
    plain = load(folder(tmp_path / "training_set", NETFLIX))
    packed = load(zipped(tmp_path / "nf_prize.zip", NETFLIX, "download/training_set/"))
    assert packed.report.format == "netflix"
    assert cells(packed.ratings) == cells(plain.ratings) == {
        (1488844, 1): 3, (822109, 1): 5, (822109, 2): 2,
    }  # fmt: skip
    assert packed.ratings.item_info.titles == ("Dinosaur Planet", "Isle, of Léon")
    parts = {
        "combined_data_1.txt": b"1:\n7,3,2005-09-06\n2:\n7,4,2005-09-06\n",
        "combined_data_2.txt": b"3:\n8,1,2005-09-06",
    }
    combined = load(zipped(tmp_path / "archive.zip", parts))
    assert cells(combined.ratings) == {(7, 1): 3, (7, 2): 4, (8, 3): 1}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", ["combined_data_1.txt", "anything.csv"])
def test_netflix_in_one_file_whatever_its_name(tmp_path, name, end):
    rows = ["1:", "7,3,2005-09-06", "", "8,5,2005-05-13", "12:", "7,1,2005-09-07", "3:"]
    loaded = load(text_file(tmp_path, end.join(rows), name))
    assert loaded.report.format == "netflix"
    assert cells(loaded.ratings) == {(7, 1): 3, (8, 1): 5, (7, 12): 1}
    assert loaded.report.blank_lines == 1


def test_netflix_errors_name_file_and_line(tmp_path):
    files = NETFLIX | {"mv_0000002.txt": b"2:\n822109,2,2005-05-14\n\n5,6,2005-05-14\n"}
    with pytest.raises(DataError, match=r"mv_0000002\.txt, line 4.*scale 1\.\.5.*'6'"):
        load(folder(tmp_path / "set", files))
    with pytest.raises(DataError, match=r"line 2.*users without ratings.*combined_data"):
        load(text_file(tmp_path, NETFLIX["probe.txt"], "probe.txt"))
    with pytest.raises(DataError, match=r"line 2.*movie's number"):
        load(text_file(tmp_path, b"\n5,3,2005-09-06\n1:\n", "mv_1.txt"), format="netflix")
    with pytest.raises(DataError, match=r"movie_titles\.txt, line 2.*id,year,title"):
        load(folder(tmp_path / "t", NETFLIX | {"movie_titles.txt": b"1,2003,A\n2;2004;B\n"}))


def test_matrix_market(tmp_path):
    loaded = load(text_file(tmp_path, MATRIX_MARKET, "anything.txt"))
    assert loaded.report.format == "matrix-market"
    assert cells(loaded.ratings) == {(1, 1): 4, (1, 4): 3.5, (2, 1): 1, (3, 2): 5}
    assert loaded.report.blank_lines == 0
    assert "rows are taken as users" in str(loaded.report)
    integers = MATRIX_MARKET.replace(b"real", b"integer").replace(b"3.5", b"3")
    assert load(text_file(tmp_path, integers, "b.mtx")).ratings.scale == RatingScale(1, 5, 1)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"real", b"pattern", r"line 1.*without ratings"),
        (b"real", b"complex", r"line 1.*complex numbers"),
        (b"coordinate", b"array", r"line 1.*dense"),
        (b"general", b"symmetric", r"line 1.*real general.*symmetric"),
        (b"3 4 4", b"3 4 5", r"line 3.*5 entries and has 4"),
        (b"3 4 4", b"3 4", r"line 3.*rows, columns"),
        (b"1 4 3.5", b"1 5 3.5", r"line 5.*item id must lie in 1\.\.4.*'5'"),
        (b"1 4 3.5", b"0 4 3.5", r"line 5.*user id must lie in 1\.\.3.*'0'"),
        (b"1 4 3.5", b"1 4 nan", r"line 5.*not a finite number"),
    ],
)
def test_what_a_matrix_cannot_be(tmp_path, old, new, said):
    with pytest.raises(DataError, match=said):
        load(text_file(tmp_path, MATRIX_MARKET.replace(old, new), "a.mtx"))


def test_jester_with_two_tabs(tmp_path):
    loaded = load(text_file(tmp_path, JESTER_DAT, "jester_ratings.dat"))
    assert cells(loaded.ratings) == {(1, 5): 0.219, (1, 7): -9.281, (22, 7): 10}
    assert loaded.ratings.scale == RatingScale(-10, 10, None)
    assert loaded.report.dropped == (("jokes that were not rated (99)", 1),)
    with pytest.raises(DataError, match=r"line 5.*-10\.\.10.*'11'"):
        load(text_file(tmp_path, JESTER_DAT + b"23\t\t7\t\t11\n", "jester_ratings.dat"))


def test_copies_without_times_use_the_position(tmp_path):
    for name, text in (("ratings.dat", b"1::2::3\n1::2::4\n"), ("u.data", b"1\t2\t3\n1\t2\t4\n")):
        loaded = load(text_file(tmp_path / name[0], text, name))
        assert cells(loaded.ratings) == {(1, 2): 4}


@pytest.mark.parametrize(
    ("files", "name", "line"),
    [
        (ML1M, "movies.dat", b"50::No genres"),
        (ML1M, "users.dat", b"9::F::1"),
        (ML100K, "u.item", b"9|Short|1|0"),
        (ML100K, "u.user", b"9|33"),
        (ML100K, "u.genre", b"Comedy"),
        (ML_CSV, "movies.csv", b"9,A, comma,Drama"),
        (EACHMOVIE, "movie.txt", b"9 no tab"),
    ],
)
def test_a_bad_row_of_titles_or_users_names_the_line(tmp_path, files, name, line):
    data = files.get(name, b"") + b"\n" + line + b"\n"
    with pytest.raises(DataError) as caught:
        load(folder(tmp_path, files | {name: data}))
    assert caught.value.line == data.count(b"\n")
    assert caught.value.path.endswith(name)
    assert "Correct the line" in str(caught.value)


def test_jester_notes_and_sheets(tmp_path):
    text = JESTER + b"0,99,99,99,99,99\n2,99,99,99,99,1\n"
    loaded = load(text_file(tmp_path, text, "jester-data-1.csv"), format="jester")
    assert loaded.ratings.users.ids.tolist() == [1, 2, 3, 5]
    assert any("1 users without any rating" in note for note in loaded.report.notes)
    assert any("another number of ratings" in note for note in loaded.report.notes)
    with pytest.raises(DataError, match="save it as CSV"):
        load(text_file(tmp_path, b"\xd0\xcf", "jester-data-1.xls"), format="jester")


@pytest.mark.parametrize("name", ["movielens-dat", "movielens-100k", "movielens-csv"])
def test_a_value_outside_the_known_scale_names_the_line(tmp_path, name):
    key, separator = {
        "movielens-dat": ("ratings.dat", b"::"),
        "movielens-100k": ("u.data", b"\t"),
        "movielens-csv": ("ratings.csv", b","),
    }[name]
    data = ALL[name][key] + b"\n" + separator.join([b"9", b"9", b"7", b"0"]) + b"\n"
    line = data.count(b"\n")
    with pytest.raises(DataError) as caught:
        load(folder(tmp_path, ALL[name] | {key: data}))
    assert caught.value.line == line and caught.value.value == "7"


@pytest.mark.parametrize("bad", [b"nan", b"inf", b"-inf", b"", b"five", b"1_0"])
def test_an_unreadable_rating_names_file_line_and_value(tmp_path, bad):
    data = ML1M["ratings.dat"] + b"\n\n4::10::" + bad + b"::978300760\n5::10::3::1\n"
    with pytest.raises(DataError) as caught:
        load(folder(tmp_path, {"ratings.dat": data}))
    assert caught.value.line == 8
    assert caught.value.path.endswith("ratings.dat")
    assert caught.value.value == bad.decode()


@pytest.mark.parametrize("row", [b"4::10::3\n", b"4::10::3::0::9\n", b"4\n"])
def test_a_row_of_another_width_names_the_line(tmp_path, row):
    data = ML1M["ratings.dat"] + row + b"5::10::3::1\n"
    with pytest.raises(DataError, match=r"line 6.*columns where the others have 4"):
        load(folder(tmp_path, {"ratings.dat": data}))


def test_the_line_is_right_far_down(tmp_path):
    rows = [f"{user}::{item}::3::0" for user in range(1, 301) for item in range(1, 301)]
    rows[77_776] = "x::5::3::0"
    with pytest.raises(DataError, match=r"line 77777: The user id.*not a whole number"):
        load(text_file(tmp_path, "\n".join(rows), "ratings.dat"))


def test_blank_lines_are_counted(tmp_path):
    data = b"\n  \n" + ML1M["ratings.dat"].replace(b"\n", b"\r\n\r\n") + b"\t\n"
    loaded = load(folder(tmp_path, {"ratings.dat": data}))
    assert loaded.report.ratings == 5
    assert loaded.report.blank_lines == 8


def test_format_given_and_missing(tmp_path):
    place = folder(tmp_path, ML1M)
    with pytest.raises(DataError, match=r"needs a file u\.data.*movies\.dat"):
        load(place, format="movielens-100k")
    with pytest.raises(ConfigError, match="movielens-dat"):
        load(place, format="ml")
    assert set(FORMATS) >= {"movielens-dat", "jester", "delimited"}


def test_report_as_json(tmp_path):
    report = load(folder(tmp_path, EACHMOVIE)).report
    plain = json.loads(json.dumps(report.as_dict()))
    assert plain["ratings"] == 4 and plain["scale"]["high"] == 6
    assert plain["dropped"][0]["count"] == 1


@pytest.mark.realdata
def test_real_ml1m():
    path = real_data("ml-1m.zip")
    start = time.perf_counter()
    loaded = load(path)
    assert time.perf_counter() - start < 5  # about half a second; a Python parser takes 10
    ratings = loaded.ratings
    assert (len(ratings), ratings.n_users, ratings.n_items) == (1_000_209, 6_040, 3_706)
    values, counts = np.unique(ratings.values, return_counts=True)
    assert values.tolist() == [1, 2, 3, 4, 5]
    assert counts.tolist() == [56_174, 107_557, 261_197, 348_971, 226_310]
    assert any("latin-1" in note for note in loaded.report.notes)
    assert loaded.report.duplicates == 0
    assert None not in ratings.item_info.titles


@pytest.mark.realdata
def test_real_eachmovie():
    ratings = load(real_data("eachmovie-heavy-users.zip")).ratings
    assert (len(ratings), ratings.n_users, ratings.n_items) == (1_009_402, 5_055, 1_619)
    assert ratings.scale == RatingScale(1, 6, 1)
