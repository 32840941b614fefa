"""Figures, tables and helpers of the Recommend page."""

import csv
import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gmc_core.base.errors import UnknownIdError
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.experiment import run_experiment
from gmc_core.fitting.preparing import make_split, prepare
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.filters import Filter
from gmc_core.runs.store import HeldOut
from gmc_dashboard.recommend import figures as figures
from gmc_dashboard.recommend import one_user
from gmc_dashboard.shared import tables

CONFIG = ExperimentConfig(fit=FitSettings(iterations=2), filter=Filter(max_items=80))
STRONG = replace(CONFIG, protocol="strong")


@pytest.fixture(scope="module")
def model():
    return run_experiment(CONFIG)[1].model()


@pytest.fixture(scope="module")
def posterior(model):
    return model.posterior(np.arange(15), np.array([5, 4, 3, 2, 1] * 3, float))


def split_of(config):
    return make_split(config, prepare(config), config.seed)


def test_select_filters_by_genre_and_number(model, posterior):
    genre = figures.genres_of(model)[0]
    found = figures.select(model, posterior, 5, genres=[genre])
    assert found
    assert all(genre in r.genres for r in found)
    predicted = [r.predicted for r in figures.select(model, posterior, 20)]
    assert predicted == sorted(predicted, reverse=True)
    assert not {r.item for r in figures.select(model, posterior, 99)} & set(range(15))


def test_default_keeps_rare_titles_out(model):
    assert figures.default_min_ratings(model) == max(1, round(model.ratings.n_users / 100))
    assert figures.default_min_ratings(replace(model, ratings=None)) == 0


def test_recommendations_table_has_projected_and_raw(model, posterior):
    found = figures.select(model, posterior, 10)
    table = figures.recommendations_table(model, found)
    np.testing.assert_allclose(table["Prediction"], [r.predicted for r in found])
    np.testing.assert_allclose(table["Rating"], model.scale.project(table["Prediction"]))
    clipped = table["Prediction"].clip(model.scale.low, model.scale.high)
    assert (table["From"] <= clipped).all()
    assert (clipped <= table["To"]).all()
    assert len(figures.recommendations_table(model, [])) == 0


@pytest.mark.parametrize("top", [3, 14, 50])
def test_the_explanation_ends_at_the_prediction(model, posterior, top):
    steps = [value for _, _, value in figures.explained_path(model, posterior, 40, top)]
    assert steps[0] == model.gaussian.mean[40]
    assert sum(steps[:-1]) == pytest.approx(posterior.mean[40], abs=1e-10)
    assert steps[-1] == posterior.mean[40]
    assert f"{posterior.mean[40]:.3f}" in figures.describe_contributions(model, posterior, 40, top)


def test_only_shares_are_bars_and_they_begin_at_zero(model, posterior):
    steps = [value for _, _, value in figures.explained_path(model, posterior, 40)]
    figure = figures.contributions_figure(model, posterior, 40)
    bars = figure.data[0]
    assert list(bars.x) == [0.0, *steps[1:-1], 0.0]
    assert bars.base is None
    low, high = figure.layout.xaxis.range
    assert low < 0 < high
    assert f"{steps[0]:.2f}" in bars.text[0]
    assert f"{steps[-1]:.2f}" in bars.text[-1]


def test_the_explanation_without_ratings_is_the_mean(model):
    prior = model.posterior([], [])
    steps = [value for _, _, value in figures.explained_path(model, prior, 3)]
    assert steps == [model.gaussian.mean[3]] * 2
    assert list(figures.contributions_figure(model, prior, 3).data[0].x) == [0.0, 0.0]
    assert "nothing rated" in figures.describe_contributions(model, prior, 3)


def test_completed_row_keeps_given_ratings(model, posterior):
    row = figures.completed_row(model, posterior)
    assert len(row) == len(model.items)
    assert (row["Source"] == "rated").sum() == 15
    np.testing.assert_array_equal(row["Rating"][:15], posterior.values)
    np.testing.assert_array_equal(row["From"][:15], posterior.values)


def test_held_out_ratings_are_compared(model, posterior):
    items, actual = np.array([3, 40, 41]), np.array([2.0, 4.0, 1.0])
    table = figures.held_out_table(model, posterior, items, actual)
    assert list(table["Title"]) == [model.title(40), model.title(41)]  # 3 is rated now
    np.testing.assert_allclose(table["Prediction"], posterior.mean[[40, 41]])
    assert "2 ratings were hidden" in figures.held_out_sentence(table)
    assert "1 rating was hidden" in figures.held_out_sentence(table.head(1))
    assert "None" in figures.held_out_sentence(table.head(0))
    assert len(figures.held_out_figure(model, table).data) == 2


def test_held_out_predictions_are_those_of_the_fit():
    _, fit = run_experiment(CONFIG)
    model, split = fit.model(), split_of(CONFIG)
    people = one_user.People.trained(model, HeldOut.of(split, fit.predictions))
    user = int(split.test_users[0])
    items, values = people.hidden(user)
    table = figures.held_out_table(
        model, model.posterior(*model.ratings.of_user(user)), items, values
    )
    np.testing.assert_allclose(table["Prediction"], fit.predictions[split.test_users == user])


def held_out_of(split):
    return HeldOut.of(split, np.zeros(split.n_test))


def test_people_of_training(model):
    people = one_user.People.trained(model, held_out_of(split_of(CONFIG)))
    assert people.hidden_counts.sum() == len(people.test_values) > 0
    users = people.matching(20, 40)
    counts = people.ratings.user_counts[users]
    assert ((counts >= 20) & (counts <= 40)).all()
    assert (np.diff(counts) <= 0).all()
    first = people.ratings.users.ids[users[0]]
    assert people.find(f" {first} ") == users[0]
    assert len(people.of(int(users[0]))) == counts[0]
    with pytest.raises(UnknownIdError, match="no user"):
        people.find("nobody")
    assert (people.hidden_counts[people.matching(0, 10**6, with_hidden=True)] > 0).all()


def test_people_without_hidden_ratings(model):
    assert len(one_user.People.trained(model).test_values) == 0
    assert one_user.People.trained(replace(model, ratings=None)) is None


def test_novel_people_of_a_strong_split():
    model = run_experiment(STRONG)[1].model()
    split = split_of(STRONG)
    people = one_user.People.unseen(model, split)
    assert people.novel
    assert len(people.ratings.users) == split.query.n_users
    assert len(one_user.People.trained(model, held_out_of(split)).test_values) == 0
    assert one_user.People.unseen(model, None) is None
    assert one_user.People.unseen(model, split_of(replace(STRONG, seed=5))) is None


def test_ratings_survive_the_url(model):
    ratings = {3: 4.0, 7: 1.0}
    text = one_user.to_text(model, ratings)
    assert one_user.from_text(model, text) == (ratings, 0)
    assert one_user.from_text(model, text + ",nonsense,99999999:3,1:9,2:nan,:") == (ratings, 5)
    assert one_user.from_text(model, "") == ({}, 0)
    many = dict.fromkeys(range(one_user.MAX_IN_URL + 1), 3.0)
    assert one_user.to_text(model, many) == ""


def test_rating_controls_follow_the_scale():
    assert one_user.has_stars(RatingScale(1, 5))
    assert not one_user.has_stars(RatingScale(0.5, 5, 0.5))
    assert one_user.rating_options(RatingScale(0.5, 5, 0.5))[:2] == [0.5, 1.0]
    assert one_user.rating_options(RatingScale(-10, 10, None)) is None


def test_csv_runs_nothing_and_keeps_numbers():
    table = pd.DataFrame(
        {"=A": ["=1+1", "@x", "-2", "plain", "Amélie"], "n": [-1.5, 2.0, 1 / 3, 0.0, 1.0]}
    )
    data = tables.to_csv(table)
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))
    assert rows[0] == ["'=A", "n"]
    assert [row[0] for row in rows[1:]] == ["'=1+1", "'@x", "'-2", "plain", "Amélie"]
    assert [float(row[1]) for row in rows[1:]] == list(table["n"])
    named = tables.to_csv(pd.DataFrame({"a": [1]}, index=["=x"]), index=True)
    assert b"'=x" in named
