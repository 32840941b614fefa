"""What people report as broken in neighbouring tools, each from the file to the prediction.

Finer tests of the same kinds stand with the modules; these hold the whole way together.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from commands import refused, run, write_ratings
from stored_runs import opened, texts, use_folders

from gmc_core.base.errors import DataError, FetchError, GmcError, NumericalError, ResourceError
from gmc_core.data.downloads import download
from gmc_core.data.readers import load
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.experiment import run_experiment
from gmc_core.fitting.fit import Fit
from gmc_core.fitting.preparing import prepare
from gmc_core.gaussian.settings import FitSettings
from gmc_core.model.model_file import load_model
from gmc_core.protocol.filters import Filter
from gmc_core.protocol.splits import no_split, strong_split, weak_split
from gmc_dashboard.shared import sources

ALL = Filter(min_user_ratings=0, min_item_ratings=0)
RNG = np.random.default_rng(0)
CELLS = [(u, i, int(RNG.integers(1, 6))) for u in range(30) for i in range(12) if (u * i) % 3]


def write(path: Path, rows, header="user,item,rating", separator=",") -> Path:
    lines = [header] if header else []
    path.write_text("\n".join([*lines, *(separator.join(map(str, row)) for row in rows)]) + "\n")
    return path


def fitted(path: Path, **settings):
    """A model of everything in a file."""
    config = ExperimentConfig(
        data=str(path), protocol="none", filter=ALL, fit=FitSettings(iterations=3, **settings)
    )
    return run_experiment(config)[1].model()


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "cp1252", "utf-8-sig"])
def test_titles_with_accents_reach_the_recommendations(tmp_path, encoding):
    folder = tmp_path / "ml"
    folder.mkdir()
    write(folder / "ratings.dat", [(u + 1, i + 1, r, 9) for u, i, r in CELLS], "", "::")
    titles = "".join(f"{i + 1}::Amélie à Noël {i} (2001)::Drama\n" for i in range(12))
    (folder / "movies.dat").write_bytes(titles.encode(encoding))
    loaded = load(folder)
    assert any("encoding" in note for note in loaded.report.notes)
    model = fitted(folder)
    found = model.recommend(model.posterior([0], [5.0]), top=1)
    assert "Amélie à Noël" in str(found[0].title)


def test_two_colons_are_read_without_a_warning(tmp_path):
    path = write(tmp_path / "ratings.dat", [(*row, 9) for row in CELLS], "", "::")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(load(path).ratings) == len(CELLS)


def test_headers_and_columns_in_any_order(tmp_path):
    expected = load(write(tmp_path / "a.csv", CELLS)).ratings.sha256
    turned = [(r, "", f"note {u}", i, u) for u, i, r in CELLS]
    path = write(tmp_path / "b.tsv", turned, "Rating\t\tComment\tMovie ID\tUser ID", "\t")
    assert load(path).ratings.sha256 == expected


def test_a_bad_value_is_named_with_file_line_and_column(capsys, tmp_path):
    path = write(tmp_path / "r.csv", [*CELLS[:40], (1, 2, "good"), *CELLS[40:]])
    line = refused(capsys, "fit", "--data", path)
    assert "r.csv, line 42" in line
    assert "column 3 (rating)" in line
    assert "'good'" in line


def test_ids_of_text_with_leading_zeros_stay_what_they_are(tmp_path):
    rows = [(f"u{u:03d}", f"{i:04d}", r) for u, i, r in CELLS]
    model = fitted(write(tmp_path / "r.csv", rows, "user;item;rating", ";"))
    assert model.predict(["u001"], ["0002"]).known_item.all()
    assert not model.predict(["u001"], ["2"]).known_item.any()


def test_an_id_of_another_type_is_visible_and_never_the_global_mean(capsys, tmp_path):
    path = write(tmp_path / "r.csv", CELLS)
    model = fitted(path)
    same = model.predict(["1", "2"], ["2", "4"]).values
    np.testing.assert_array_equal(same, model.predict([1, 2], [2, 4]).values)
    strange = model.predict([1, "nobody"], ["nothing", 2])
    assert strange.known_item.tolist() == [False, True]
    assert strange.known_user.tolist() == [True, False]
    assert np.isnan(strange.values[0])
    with pytest.raises(GmcError, match="no user 'nobody'"):
        model.posterior_of("nobody")


def test_almost_constant_ratings_give_a_finite_answer(tmp_path, monkeypatch):
    rows = [(u, i, 4 if k == 7 else 3) for k, (u, i, _) in enumerate(CELLS)]
    path = write(tmp_path / "r.csv", rows)
    result, _ = run_experiment(ExperimentConfig(data=str(path), filter=ALL))
    assert np.isfinite(result["summary"]["nmae"])
    use_folders(tmp_path, monkeypatch)
    at = opened("data", data=sources.register(path), min_user="0", min_item="0")
    assert "99.4 % of the ratings equal 3" in texts(at)


def test_constant_ratings_are_explained(capsys, tmp_path, monkeypatch):
    path = write(tmp_path / "r.csv", [(u, i, 3) for u, i, _ in CELLS])
    options = ("--min-user-ratings", "2", "--data", path)
    assert "nothing to predict" in refused(capsys, "fit", *options)
    for model in ("paper", "exact", "ordinal", "mixture"):
        said = refused(capsys, "fit", *options, "--protocol", "none", "--model", model)
        assert "All ratings equal 3" in said and "give ε" in said
    # The page says it before anybody fits.
    use_folders(tmp_path, monkeypatch)
    token = sources.register(path)
    at = opened("data", data=token, min_user="0", min_item="0")
    assert not at.exception
    assert "nothing to predict" in texts(at)


def test_a_rating_given_twice_follows_a_policy_that_is_counted(tmp_path):
    others = [cell for cell in CELLS if cell[:2] != (1, 1)]
    for policy, value in (("last", 5), ("first", 1), ("mean", 3)):
        path = write(tmp_path / "r.csv", [(1, 1, 1), *others, (1, 1, 5)])
        loaded = load(path, duplicates=policy)
        assert loaded.ratings.values[0] == value
        assert loaded.report.duplicates == 1
        assert "repeated" in str(loaded.report)


def test_nobody_is_lost_silently_for_having_too_few_ratings(capsys, tmp_path):
    rows = [*CELLS, *((100 + k, k % 12, 3) for k in range(9))]
    path = write(tmp_path / "r.csv", rows)
    prepared = prepare(ExperimentConfig(data=str(path), filter=Filter(2, 0)))
    assert "9" in str(prepared.filter_report)
    kept = load(path).ratings
    weak = weak_split(kept, seed=0)
    assert any("9" in note for note in weak.notes), weak.notes


def test_decimal_commas_are_numbers(tmp_path):
    rows = [(u, i, f"{r},5") for u, i, r in CELLS]
    assert load(write(tmp_path / "r.csv", rows, "user;item;rating", ";")).ratings.scale.low == 1.5


def test_a_movie_that_training_has_not_seen_is_counted(capsys, tmp_path):
    train = write(tmp_path / "train.csv", [cell for cell in CELLS if cell[:2] != (1, 2)])
    test = write(tmp_path / "test.csv", [(1, 99, 4), (1, 2, 2), (77, 1, 3)])
    code, out, _ = run(
        capsys, "fit", "--train", train, "--test", test, "--json", tmp_path / "r.json"
    )
    assert code == 0
    assert "2 of 3 test ratings" in out
    summary = json.loads((tmp_path / "r.json").read_text())["summary"]
    assert np.isfinite(summary["nmae"])


def test_an_error_over_nothing_is_no_number(capsys, tmp_path):
    train = write(tmp_path / "train.csv", CELLS)
    empty = write(tmp_path / "test.csv", [])
    assert "no ratings" in refused(capsys, "fit", "--train", train, "--test", empty)
    code, out, _ = run(
        capsys, "fit", "--data", train, "--protocol", "none", "--min-user-ratings", "2",
        "--json", tmp_path / "r.json",
    )  # fmt: skip
    assert json.loads((tmp_path / "r.json").read_text())["summary"]["nmae"] is None


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_hundred_iterations_with_fewer_users_than_movies(tmp_path, dtype):
    rows = [(u, i, 1 + (u * i + i // 7) % 5) for u in range(6) for i in range(60) if (u + i) % 4]
    ratings = load(write(tmp_path / "r.csv", rows)).ratings
    running = Fit(no_split(ratings), FitSettings(iterations=100, dtype=dtype))
    try:
        assert len(list(running.records())) == 100
    except NumericalError as error:
        assert error.iteration == running.state.iteration + 1
    model = running.model()
    assert all(np.isfinite(item.predicted) for item in model.recommend(model.posterior_of(0), 5))


def test_size_follows_the_number_of_ids(tmp_path):
    rows = [(10**18 + u, 10**9 * i + 7, r) for u, i, r in CELLS]
    model = fitted(write(tmp_path / "r.csv", rows))
    assert model.gaussian.dimension == len({i for _, i, _ in CELLS})
    assert np.isfinite(model.predict([10**18 + 1], [10**9 + 7]).values).all()


def test_a_movie_without_ratings_keeps_its_place_and_is_flagged(tmp_path):
    ratings = load(write(tmp_path / "r.csv", [*CELLS, (29, 50, 4)])).ratings
    split = strong_split(ratings, 0, 12, 5)  # movie 50 can have lost its only rater
    running = Fit(split, FitSettings(iterations=2))
    list(running.records())
    model = running.model()
    assert len(model.items) == ratings.n_items
    unrated = np.flatnonzero(model.item_counts == 0)
    posterior = model.posterior([0], [5.0])
    assert np.isfinite(posterior.mean).all()
    for item in model.recommend(posterior, top=ratings.n_items):
        assert (item.n_ratings == 0) == (item.item in unrated)


def test_a_singular_covariance_names_the_remedy(capsys, tmp_path):
    rows = [(u, i, 1 + (u * i) % 5) for u in range(6) for i in range(40)]
    path = write(tmp_path / "r.csv", rows)
    line = refused(capsys, "fit", "--data", path, "--epsilon", "0", "--min-user-ratings", "2")
    assert "Raise ε" in line


def test_memory_is_estimated_and_refused_before_the_start(capsys, tmp_path):
    path = write_ratings(tmp_path / "r.csv")
    line = refused(capsys, "fit", "--data", path, "--memory-limit", "0.000001", "--min-user", "2")
    assert line
    ratings = load(path).ratings
    with pytest.raises(ResourceError, match="--max-items|fewer items|Keep fewer|float32"):
        Fit(no_split(ratings), FitSettings(), memory_limit=1000)


def test_a_host_that_is_down_leaves_a_way_to_go_on(tmp_path):
    with pytest.raises(FetchError) as caught:
        download(["https://127.0.0.1:1/ml-1m.zip"], tmp_path, "ml-1m.zip", "md5:0")
    text = str(caught.value)
    assert "https://127.0.0.1:1/ml-1m.zip" in text
    assert "by hand" in text
    assert str(tmp_path / "ml-1m.zip") in text
    assert not (tmp_path / "ml-1m.zip").exists()


def test_zero_is_a_rating(tmp_path):
    rows = [(u, i, r - 1) for u, i, r in CELLS]
    path = write(tmp_path / "r.csv", rows)
    ratings = load(path).ratings
    assert ratings.scale.low == 0
    assert len(ratings) == len(rows)
    model = fitted(path)
    assert model.ratings is not None
    assert (model.ratings.values == 0).sum() == sum(r == 0 for _, _, r in rows)


@pytest.mark.parametrize("bad", ["nan", "inf", "-inf", "NaN"])
def test_nan_and_infinity_are_no_ratings(tmp_path, bad):
    with pytest.raises(DataError, match="line 3.*finite"):
        load(write(tmp_path / "r.csv", [CELLS[0], (1, 2, bad), *CELLS[2:]]))


def test_a_saved_model_answers_as_the_fitted_one(capsys, tmp_path):
    path = write(tmp_path / "r.csv", CELLS)
    options = ("--protocol", "none", "--min-user-ratings", "2", "--model-out", tmp_path / "m.npz")
    assert run(capsys, "fit", "--data", path, *options)[0] == 0
    model = load_model(tmp_path / "m.npz")
    write(tmp_path / "pairs.csv", [(1, 2), (1, 999)], "user,item")
    before = "old"
    (tmp_path / "out.csv").write_text(before)
    code, _, err = run(
        capsys, "predict", "--model", tmp_path / "m.npz", "--pairs", tmp_path / "pairs.csv",
        "--out", tmp_path / "out.csv",
    )  # fmt: skip
    assert code == 0
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[2] == "1,999,,unknown item"
    assert float(lines[1].split(",")[2]) == pytest.approx(model.predict([1], [2]).values[0], 1e-5)


# Settings that would be ignored, and results that would be half a file ---------------


def test_repetitions_of_nothing_drawn_are_refused(capsys, tmp_path):
    path = write(tmp_path / "r.csv", CELLS)
    options = ("--data", path, "--protocol", "none", "--repetitions", "3")
    assert "nothing is drawn" in refused(capsys, "fit", *options)


def test_another_epsilon_does_not_compare_with_the_paper(capsys, tmp_path):
    path = write_ratings(tmp_path / "r.csv", users=80, items=60)
    code, out, err = run(
        capsys, "reproduce", "--table", "2", "--data", path, "--repetitions", "1",
        "--epsilon", "0.7",
    )  # fmt: skip
    assert code == 0
    assert "the paper's ε is 0.3, that of these runs 0.7" in out
    assert "within three standard errors" not in out


def test_predictions_that_fail_leave_the_old_file(capsys, tmp_path, monkeypatch):
    path = write(tmp_path / "r.csv", CELLS)
    options = ("--protocol", "none", "--min-user-ratings", "2", "--model-out", tmp_path / "m.npz")
    assert run(capsys, "fit", "--data", path, *options)[0] == 0
    write(tmp_path / "pairs.csv", [(1, 2), (1, 4)], "user,item")
    out = tmp_path / "out.csv"
    out.write_text("old")

    def full(value: float) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gmc_core.base.table_files.number_text", full)
    line = refused(
        capsys, "predict", "--model", tmp_path / "m.npz", "--pairs", tmp_path / "pairs.csv",
        "--out", out,
    )  # fmt: skip
    assert "No space left" in line
    assert out.read_text() == "old"
    assert not list(tmp_path.glob(".out.csv*"))
