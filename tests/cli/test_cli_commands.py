"""The commands beside ``fit``: data, predict, complete, recommend, reproduce."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import refused, run, write_ratings
from making import movielens_folder

from gmc_core.base.errors import UnknownIdError
from gmc_core.cli import main, reproduce
from gmc_core.data.ratings import RatingScale
from gmc_core.model.lookup import find_title
from gmc_core.model.model_file import load_model
from gmc_core.paper.published import MOVIELENS_1M
from gmc_core.protocol.metrics import score
from gmc_core.tables.wide_table import complete_table, read_table


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of the sample's best known movies."""
    path = tmp_path_factory.mktemp("model") / "m.npz"
    argv = ["fit", "--max-items", "300", "--iterations", "2", "--protocol", "none"]
    assert main([*argv, "--model-out", str(path)]) == 0
    return path


# data ---------------------------------------------------------------------------


def test_data_list_and_info(capsys):
    code, out, _ = run(capsys, "data", "list")
    assert code == 0
    assert "ml-1m" in out
    assert "your own copy" in out
    _, out, _ = run(capsys, "data", "info", "ml-1m")
    assert "licence" in out
    assert "sha256:" in out
    assert "ml-1m" in refused(capsys, "data", "info", "nothing")
    assert run(capsys, "data")[0] == 0


def test_data_that_cannot_be_fetched(capsys):
    assert "nothing to download" in refused(capsys, "data", "fetch", "sample")
    assert "your copy" in refused(capsys, "data", "fetch", "eachmovie")


def test_data_check_reports_reading_and_filter(capsys, tmp_path):
    path = write_ratings(tmp_path / "r.csv")
    with open(path, "a") as file:
        file.write("u00,0,3\nu00,0,4\n")
    code, out, _ = run(capsys, "data", "check", path, "--duplicates", "first")
    assert code == 0
    assert "repeated ratings" in out
    assert "filter: After" in out
    _, out, _ = run(capsys, "data", "check", path, "--json", "-")
    assert json.loads(out)["load_report"]["duplicates"] >= 1


def test_data_check_of_few_ratings_says_which_threshold_is_too_high(capsys, tmp_path):
    code, out, _ = run(capsys, "data", "check", write_ratings(tmp_path / "r.csv", 9, 5))
    assert code == 0
    assert "Lower min_user_ratings" in out


def test_data_check_names_the_bad_line(capsys, tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("user,item,rating\n1,1,3\n1,2,bad\n")
    assert "line 3" in refused(capsys, "data", "check", path)


# predict ------------------------------------------------------------------------


def test_predict_pairs(capsys, model, tmp_path):
    pairs = tmp_path / "p.csv"
    pairs.write_text("user,item\n2,1\n999999,1\n2,99999999\n")
    code, out, err = run(capsys, "predict", "--model", model, "--pairs", pairs)
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    expected = load_model(model).predict([2, 999999], [1, 1]).values
    assert [row["known"] for row in rows] == ["yes", "unknown user", "unknown item"]
    assert float(rows[0]["prediction"]) == pytest.approx(expected[0], rel=1e-5)
    assert float(rows[1]["prediction"]) == pytest.approx(expected[1], rel=1e-5)
    assert rows[2]["prediction"] == ""
    assert "unknown item" in err
    out_file = tmp_path / "o.csv"
    run(capsys, "predict", "--model", model, "--pairs", pairs, "--projected", "--out", out_file)
    rows = list(csv.DictReader(out_file.open()))
    assert float(rows[0]["prediction"]) * 2 % 1 == 0


def test_predict_errors(capsys, model, tmp_path):
    assert "Check the path" in refused(capsys, "predict", "--model", "no.npz", "--pairs", "no.csv")
    assert "no such file" in refused(capsys, "predict", "--model", model, "--pairs", "no.csv")
    foreign = tmp_path / "f.npz"
    np.savez(foreign, a=np.arange(3))
    assert "no model file" in refused(capsys, "predict", "--model", foreign, "--pairs", "no.csv")


# complete -----------------------------------------------------------------------


def test_complete_a_model(capsys, model, tmp_path):
    out_file = tmp_path / "c.csv"
    code, out, err = run(capsys, "complete", "--model", model, "--out", out_file, "--titles")
    assert code == 0
    assert out.strip() == str(out_file)
    rows = list(csv.reader(out_file.open(encoding="utf-8")))
    loaded = load_model(model)
    assert len(rows) == 1 + loaded.ratings.n_users
    assert len(rows[0]) == 1 + len(loaded.items)
    assert any(name.startswith("Toy Story (1995) [1]") for name in rows[0])
    assert loaded.licence in err


def test_complete_a_table(capsys, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("station;temp;hum\nA;1,5;3\nB;2,5;\nC;;5\nD;3;3\n")
    argv = ["complete", "--table", table, "--out", tmp_path / "o.csv", "--sd"]
    code, out, err = run(capsys, *argv)
    assert code == 0
    assert out.split() == [str(tmp_path / "o.csv"), str(tmp_path / "o.sd.csv")]
    rows = list(csv.reader((tmp_path / "o.csv").open()))
    assert rows[0] == ["station", "temp", "hum"]
    assert rows[1] == ["A", "1.5", "3"]
    assert all(all(row) for row in rows)
    assert "labels" in err


def test_complete_a_table_by_exact_em_with_the_chosen_epsilon(capsys, tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 1)) + 0.2 * rng.normal(size=(40, 4))
    values[rng.random(values.shape) < 0.2] = np.nan
    table, out = tmp_path / "t.csv", tmp_path / "o.csv"
    pd.DataFrame(values, columns=list("abcd")).to_csv(table, index=False)
    argv = ("complete", "--table", table, "--out", out, "--method", "exact", "--epsilon", "auto")
    code, _, err = run(capsys, *argv)
    assert code == 0
    wanted = complete_table(read_table(table), method="exact", epsilon="auto")
    assert f"ε = {wanted.epsilon:g} predicts {wanted.choice.hidden} hidden entries best" in err
    np.testing.assert_allclose(pd.read_csv(out).to_numpy(), wanted.values, rtol=1e-5)
    by_paper = complete_table(read_table(table), epsilon=wanted.epsilon)
    assert not np.allclose(by_paper.values, wanted.values)
    assert "no number" in refused(capsys, *argv[:-1], "much")


def test_complete_errors(capsys, model, tmp_path):
    out = tmp_path / "o.csv"
    table = tmp_path / "t.csv"
    table.write_text("a,b\n1,2\n3,x\n")
    assert "'b'" in refused(capsys, "complete", "--table", table, "--out", out)
    assert "belongs to --table" in refused(
        capsys, "complete", "--model", model, "--out", out, "--epsilon", "1"
    )
    assert "belongs to --model" in refused(
        capsys, "complete", "--table", table, "--out", out, "--long"
    )
    assert ".parquet" in refused(capsys, "complete", "--table", table, "--out", "o.xls")
    refused(capsys, "complete", "--out", out)
    assert not out.exists()


# recommend ----------------------------------------------------------------------


def test_recommend_to_a_known_user(capsys, model):
    code, out, err = run(
        capsys, "recommend", "--model", model, "--user", "2", "--top", "3", "--explain"
    )
    assert code == 0
    assert "training ratings" in err
    assert "mean of all users" in out
    loaded = load_model(model)
    best = loaded.recommend(loaded.posterior_of(2), 1)[0]
    assert best.title in out


def test_recommend_to_a_new_user(capsys, model):
    code, out, err = run(
        capsys, "recommend", "--model", model, "--rate", "title:the matrix=5",
        "--rate", "title:Pulp Fiction (1994)=4.5", "--rate", "id:1=2", "--top", "4", "--json", "-",
    )  # fmt: skip
    assert code == 0
    assert "Matrix, The (1999): 5" in err
    result = json.loads(out)
    assert [rating["rating"] for rating in result["ratings"]] == [2, 4.5, 5]
    assert len(result["recommendations"]) == 4
    for item in result["recommendations"]:
        total = item["before_any_rating"] + sum(part["share"] for part in item["contributions"])
        assert total == pytest.approx(item["predicted"])
        assert item["sd"] > 0


def test_recommend_with_a_minimum(capsys, model):
    argv = ["recommend", "--model", model, "--user", "2", "--min-ratings", "200", "--json", "-"]
    _, out, _ = run(capsys, *argv)
    items = json.loads(out)["recommendations"]
    assert items
    assert all(item["n_ratings"] >= 200 for item in items)


def test_recommend_ambiguous_title_lists_choices(capsys, model):
    code, _, err = run(capsys, "recommend", "--model", model, "--rate", "title:star wars=5")
    assert code == 2
    assert "gmc: error: " in err
    assert "Star Wars: Episode IV - A New Hope (1977)  (id:260)" in err


def test_recommend_finds_items_by_the_name_that_it_shows(capsys, tmp_path):
    """Of a file without titles these are the ids."""
    data, file = write_ratings(tmp_path / "r.csv"), tmp_path / "m.npz"
    fit = ["fit", "--data", data, "--no-filter", "--protocol", "none", "--iterations", "1"]
    assert run(capsys, *fit, "--model-out", file)[0] == 0
    assert "No title contains '3'" in refused(
        capsys,
        "recommend",
        "--model",
        file,
        "--rate",
        "title:3=5",  # numbers are no names
    )
    named = tmp_path / "named.csv"
    rows = [line.split(",") for line in Path(data).read_text().splitlines()]
    lines = [[user, f"Book {item}", rating] for user, item, rating in rows[1:]]
    named.write_text("\n".join(map(",".join, [rows[0], *lines])) + "\n")
    assert run(capsys, *fit[:2], named, *fit[3:], "--model-out", file)[0] == 0
    code, out, _ = run(capsys, "recommend", "--model", file, "--rate", "title:book 3=5")
    assert code == 0
    assert "Book" in out and "(id:" not in out  # it would be the same name again
    # A part of an id is none.
    assert "No title contains 'ook 3'" in refused(
        capsys, "recommend", "--model", file, "--rate", "title:ook 3=5"
    )


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (["--user", "999999"], "999999"),
        (["--user", "x"], "whole numbers"),
        (["--rate", "title:no such movie=5"], "No title"),
        (["--rate", "id:987654=5"], "987654"),
        (["--rate", "Toy Story=5"], "title:NAME"),
        (["--rate", "title:Toy Story"], "title:NAME"),
        (["--rate", "id:1=good"], "title:NAME"),
        (["--rate", "id:1=nan"], "title:NAME"),
        (["--rate", "id:1=9"], "scale"),
        (["--rate", "id:1=4", "--rate", "title:toy story=3"], "twice"),
        (["--rate", "title:=3"], "empty"),
        (["--user", "2", "--top", "0"], "--top"),
        (["--user", "2", "--rate", "id:1=4"], "not allowed"),
        (["--user", "2", "--group", "gender F"], "--group describes a new user"),
        (["--rate", "id:1=4", "--group", "gender F"], "knows of no groups"),
        ([], "Give --user, or"),
        (["--user", "2", "--ratings-file", "none.csv"], "leave out it or --user"),
        (["--rate", "id:1=4", "--file-scale", "1,10"], "--file-scale is for --ratings-file"),
        (["--ratings-file", "none.csv"], "no such file"),
    ],
)
def test_recommend_errors(capsys, model, argv, part):
    assert part in refused(capsys, "recommend", "--model", model, *argv)


def test_recommend_from_a_list_in_a_file(capsys, tmp_path, model):
    path = tmp_path / "mine.csv"
    path.write_text("Title,Year,Rating\nThe Matrix,1999,10\nPulp Fiction,1994,8\nNowhere,1950,1\n")
    argv = ["recommend", "--model", model, "--ratings-file", path, "--top", "3"]
    assert "--file-scale" in refused(capsys, *argv)  # 10 is none of the sample's ratings
    code, out, err = run(capsys, *argv, "--file-scale", "1,10", "--json", "-")
    assert code == 0
    assert "3 ratings: 2 matched to titles of the model, 1 not" in err
    assert "not matched, line 4: Nowhere (1950): no such title" in err
    result = json.loads(out)
    assert result["ratings_file"]["matched"] == 2
    assert [entry["line"] for entry in result["ratings_file"]["unmatched"]] == [4]
    # From 1..10 to half stars: 10 is 5, and 8 is .5 + 7/9 · 4.5 = 4.
    given = ["--rate", "title:the matrix=5", "--rate", "title:pulp fiction=4"]
    rated = json.loads(run(capsys, *argv[:3], *given, "--top", "3", "--json", "-")[1])
    assert result["ratings"] == rated["ratings"]
    assert result["recommendations"] == rated["recommendations"]
    # What --rate says counts before the list.
    more = run(capsys, *argv, "--file-scale", "1,10", "--rate", "title:the matrix=1", "--json", "-")
    both = {rating["title"]: rating["rating"] for rating in json.loads(more[1])["ratings"]}
    assert both["Matrix, The (1999)"] == 1
    path.write_text("Title,Rating\nNowhere,3\nNobody,4\n")
    assert "None of its titles" in refused(capsys, *argv)


def test_recommend_to_somebody_of_a_group(capsys, tmp_path):
    path, data = tmp_path / "m.npz", movielens_folder(tmp_path / "ml-1m")
    code, _, _ = run(
        capsys, "fit", "--data", data, "--model", "exact", "--iterations", 6, "--protocol", "none",
        "--model-out", path, "--without-ratings",
    )  # fmt: skip
    assert code == 0
    argv = ["recommend", "--model", path, "--rate", "id:3=4", "--top", "5"]
    for group, liked in (("gender F", range(1, 16)), ("gender M", range(16, 31))):
        _, out, _ = run(capsys, *argv, "--group", group, "--json", "-")
        found = json.loads(out)["recommendations"]
        assert {item["id"] for item in found} <= set(liked)
        total = found[0]["before_any_rating"] + sum(
            part["share"] for part in found[0]["contributions"]
        )
        assert total == pytest.approx(found[0]["predicted"])
    _, out, _ = run(capsys, *argv, "--group", "gender F", "--explain")
    assert "what the user's groups like more or less" in out
    _, out, _ = run(capsys, "recommend", "--model", path, "--group", "gender F", "--json", "-")
    first = json.loads(out)["recommendations"][0]
    assert first["predicted"] == first["before_any_rating"] > first["mean_of_all_users"]
    told = refused(capsys, *argv, "--group", "F")
    assert "the groups are age 18-24, age 25-34, age 35-44, gender F" in told
    both = [*argv, "--group", "gender F", "--group", "gender M"]
    assert "Nobody is both" in refused(capsys, *both)


def test_model_without_ratings_still_recommends(capsys, tmp_path):
    path, data = tmp_path / "m.npz", write_ratings(tmp_path / "r.csv")
    run(
        capsys, "fit", "--data", data, "--min-user-ratings", 2, "--iterations", 2,
        "--model-out", path, "--without-ratings",
    )  # fmt: skip
    code, out, _ = run(capsys, "recommend", "--model", path, "--rate", "id:3=5", "--top", 2)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1:3]] == ["1", "2"]
    assert "without its training ratings" in refused(
        capsys, "recommend", "--model", path, "--user", "u01"
    )
    assert "without its ratings" in refused(
        capsys, "recommend", "--model", path, "--rate", "id:3=5", "--min-ratings", 2
    )


TITLES = [
    "Matrix, The (1999)",
    "Matrix Reloaded, The (2003)",
    "Heat (1986)",
    "Heat (1995)",
    "Amélie (Fabuleux destin d'Amélie Poulain, Le) (2001)",
    "City of Lost Children, The (Cité des enfants perdus, La) (1995)",
    None,
    "2001: A Space Odyssey (1968)",
    "Léon: The Professional (a.k.a. The Professional) (Léon) (1994)",
    "Avventura, L' (1960)",
]


@pytest.mark.parametrize(
    ("query", "position"),
    [
        ("the matrix", 0),
        ("Matrix", 0),
        ("Matrix, The", 0),
        ("MATRIX RELOADED", 1),
        ("reloaded", 1),
        ("Heat (1995)", 3),
        ("amelie", 4),
        ("Le fabuleux destin d’Amélie Poulain", 4),
        ("la cité des enfants perdus", 5),
        ("city of lost children, the (1995)", 5),
        ("2001: a space odyssey", 7),
        ("Leon", 8),
        ("the professional", 8),
        ("l'avventura", 9),
    ],
)
def test_titles_are_found(query, position):
    assert find_title(query, TITLES, list(range(10))) == position


@pytest.mark.parametrize("query", ["Heat", "the"])
def test_ambiguous_titles(query):
    with pytest.raises(UnknownIdError, match="fit"):
        find_title(query, TITLES, list(range(10)))


@pytest.mark.parametrize("query", ["Heat (1950)", "nothing", "", "(1999)"])
def test_titles_that_are_not_there(query):
    with pytest.raises(UnknownIdError):
        find_title(query, TITLES, list(range(10)))


# reproduce ----------------------------------------------------------------------


def test_table_1_needs_the_person_s_files(capsys):
    assert "your own copy" in refused(capsys, "reproduce", "--table", "1")


def test_other_data_run_and_do_not_compare(capsys, tmp_path):
    path = write_ratings(tmp_path / "r.csv", users=80, items=60)
    code, out, err = run(
        capsys, "reproduce", "--table", "2", "--data", path, "--repetitions", "1",
    )  # fmt: skip
    assert code == 0
    assert "do not compare" in out
    assert "does not compare" in err
    assert "0.3959" in out
    assert "This product" in out
    assert "within" not in out


def test_the_verdict_is_three_standard_errors():
    actual = np.tile([1.0, 2, 3, 4, 5], 200)
    off = np.where(np.arange(1000) % 100 < 63, 1.0, 0.0)
    predicted = np.where(actual < 5, actual + off, actual - off)
    scores = score(predicted, actual, RatingScale(1, 5))
    text = reproduce.comparison(MOVIELENS_1M, 2, scores, scores, [])
    assert "within three standard errors" in text
    perfect = score(actual, actual, RatingScale(1, 5))
    assert "OUTSIDE" in reproduce.comparison(MOVIELENS_1M, 2, perfect, scores, [])


def test_the_tables_systems_are_measured_on_the_same_splits(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("GMC_HOME", str(tmp_path / "home"))
    path = write_ratings(tmp_path / "r.csv", users=80, items=60)
    command = ("reproduce", "--table", "2", "--data", path, "--repetitions", "2", "--threads", "1")
    code, out, err = run(capsys, *command, "--systems", "ipcf")
    assert code == 0
    assert "does not compare" in err and "do not compare" in out
    assert out.count("2 splits") == 2
    for line in ("GM ", "IPCF "):
        of_line = [row.split() for row in out.splitlines() if row.startswith(line)]
        assert [len(row) > 3 for row in of_line] == [True, True]
    assert "within 3" not in out
    assert ["NBMC", "0.3916"] in [row.split() for row in out.splitlines()]
    file = tmp_path / "found.json"
    code, _, err = run(capsys, *command, "--systems", "ipcf", "--json", file)
    assert code == 0 and err.count("computed before") == 2
    found = json.loads(file.read_text())
    assert (found["comparable"], found["seeds"]) == (False, [0, 1])
    ipcf = next(row for row in found["strong"] if row["method"] == "IPCF")
    assert ipcf["printed"] == 0.4113 and ipcf["measured"]["splits"] == 2


def test_systems_that_are_none_are_refused(capsys):
    told = refused(capsys, "reproduce", "--table", "2", "--systems", "urp,svd")
    assert "not 'svd'" in told and "e-mmmf" in told
    told = refused(capsys, "reproduce", "--table", "random", "--systems", "all")
    assert "--systems belongs to tables 1 and 2" in told
