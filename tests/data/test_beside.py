"""Titles and users' attributes for a table of one's own, from its data set's files beside it."""

from __future__ import annotations

import json

import pytest
from commands import refused, run
from reader_files import EACHMOVIE, ML1M, ML100K, ML_CSV, folder, zipped

from gmc_core.base.errors import DataError
from gmc_core.data.readers import load
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.preparing import prepare
from gmc_core.gaussian.models import settings_for

TABLE = b"user,item,rating\n1,10,5\n1,20,3\n2,10,4\n3,30,1\n9,99,2\n"


def test_movielens_1m(tmp_path):
    place = folder(tmp_path, {**ML1M, "train.csv": TABLE})
    plain, known = (load(place / "train.csv", beside=beside) for beside in (False, True))
    assert plain.ratings.sha256 == known.ratings.sha256
    assert plain.ratings.item_info.titles == (None,) * 4 and not plain.ratings.user_info
    assert known.ratings.title(2) == "Toy Story (1995)" and known.ratings.title(3) == "99"
    assert known.ratings.user_info["gender"].tolist() == ["F", "M", "M", None]
    assert known.report.reading["beside"] is True and "beside" not in plain.report.reading
    assert any("titles from" in note for note in known.report.notes)


@pytest.mark.parametrize(
    ("files", "table", "title"),
    [
        (ML100K, b"196\t242\t3\t881250949\n186\t302\t3\t891717742\n", "Kolya (1996)"),
        (ML_CSV, b"user,item,rating\n1,31,2.5\n7,1029,3\n", "American President, The (1995)"),
        (EACHMOVIE, b"user,item,rating\n1,1,4\n2,2,6\n", "Toy Story"),
    ],
)
def test_other_sets(tmp_path, files, table, title):
    place = folder(tmp_path, {**files, "mine.txt": table})
    assert load(place / "mine.txt", beside=True, format="delimited").ratings.title(0) == title


def test_titles_in_the_table_go_first(tmp_path):
    table = b"user,item,rating,title\n1,10,5,Mine\n2,20,3,\n"
    ratings = load(folder(tmp_path, {**ML1M, "t.csv": table}) / "t.csv", beside=True).ratings
    assert ratings.title(0) == "Mine"
    # What the table does not say comes from the files.
    assert ratings.item_info.genres == (("Drama", "Musical"), ("Action", "Sci-Fi"))
    assert ratings.title(1) == "Star Wars: Episode IV - A New Hope (1977)"
    assert ratings.item_info.years.tolist() == [1995, 1977]


def test_a_layout_with_its_own_files_says_that_it_has_no_effect(tmp_path):
    place = folder(tmp_path, ML1M)
    plain, wished = (load(place, beside=beside).report for beside in (False, True))
    (said,) = set(wished.notes) - set(plain.notes)
    assert said.startswith("--beside") and "no effect" in said


def test_what_does_not_belong_to_the_ratings_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"None of u\.item.*leave out --beside"):
        load(folder(tmp_path / "a", {"t.csv": TABLE}) / "t.csv", beside=True)
    other = TABLE.replace(b",10,", b",910,").replace(b",20,", b",920,").replace(b",30,", b",930,")
    with pytest.raises(DataError, match=r"movies\.dat and users\.dat know none of the ids"):
        load(folder(tmp_path / "b", {**ML1M, "t.csv": other}) / "t.csv", beside=True)
    only = {"ratings.csv": TABLE, "movies.dat": ML1M["movies.dat"]}
    inside = load(zipped(tmp_path / "c.zip", only), beside=True, format="delimited").ratings
    assert inside.title(2) == "Toy Story (1995)"


def pair(tmp_path):
    rows = [f"{u},{i},{1 + (u + i // 10) % 5}" for u in range(1, 81) for i in (10, 20, 30)]
    test = rows[::4]
    files = {
        "train.csv": "\n".join(["user,item,rating", *(r for r in rows if r not in set(test))]),
        "test.csv": "\n".join(["user,item,rating", *test]),
        "users.dat": "".join(f"{u}::{'FM'[u % 2]}::25::3::0\n" for u in range(1, 81)),
        "movies.dat": ML1M["movies.dat"].decode("latin-1"),
    }
    return folder(tmp_path, {name: text.encode() for name, text in files.items()})


def test_training_and_test_files_have_them_too(tmp_path, capsys):
    place = pair(tmp_path)
    argv = ["fit", "--train", place / "train.csv", "--test", place / "test.csv"]
    argv += ["--model", "ordinal", "--iterations", "1", "--json", "-"]
    code, out, err = run(capsys, *argv)
    assert code == 0, err
    assert not json.loads(out)["user_groups"]
    assert "--beside takes them" in err
    code, out, err = run(capsys, *argv, "--beside")
    result = json.loads(out)
    assert code == 0 and result["user_groups"] and "--beside takes" not in err
    assert result["data"]["reading"]["beside"] is True
    config = ExperimentConfig(
        data="", protocol="pair", train_file=str(place / "train.csv"),
        test_file=str(place / "test.csv"), reading={"beside": True},
        fit=settings_for("ordinal"),
    )  # fmt: skip
    bare = prepare(ExperimentConfig.from_dict({**config.as_dict(), "reading": {}}))
    full = prepare(config)
    assert full.data_sha256 == bare.data_sha256 and full.ratings.side_sha256 != ""
    assert full.ratings.title(0).startswith("Mis")
    assert "--beside" in refused(capsys, "predict", "--beside", "--model", "m", "--pairs", "p")
