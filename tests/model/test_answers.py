"""The same question gets the same answer, whoever is asked."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from grouped_ratings import RATINGS
from making import ratings_of, skewed_table

from gmc_core.cli import main
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.fit import run_fit
from gmc_core.fitting.preparing import make_split, prepare
from gmc_core.gaussian.models import MODELS, settings_for
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.ordinal import OrdinalScale
from gmc_core.model.answers import answers
from gmc_core.model.completion import completed_blocks
from gmc_core.model.model_file import load_model, save_model
from gmc_core.protocol.metrics import score
from gmc_core.protocol.splits import no_split, strong_split, weak_split
from gmc_dashboard.recommend import figures as figures

STARS = RatingScale(1, 5)
SAME = {"atol": 1e-6, "rtol": 0}
ASKED = 6  # users
SCALE = OrdinalScale(np.arange(1.0, 6.0), np.array([1.5, 2.28, 3.29, 4.5]))


def shown(latent, sd=None, ordinal=SCALE):
    return answers(
        latent,
        sd,
        scale=STARS,
        ordinal=ordinal,
        noise=Noise.of(0.5, 3),
        settings=settings_for("ordinal").resolved(STARS),
    )


def test_a_latent_response_is_read_by_the_cuts():
    found = shown(np.array([[2.4, 2.2], [4.6, np.nan]]))
    np.testing.assert_array_equal(found.rating, [[3, 2], [5, np.nan]])
    assert found.prediction.shape == (2, 2)
    np.testing.assert_array_equal(shown([2.4], ordinal=None).rating, [2])


def test_an_interval_is_in_ratings_and_holds_the_rating():
    latent, sd = np.linspace(0, 6, 61), np.full(61, 0.6)
    found = shown(latent, sd)
    low, high = found.interval(1.0)
    assert set(low) | set(high) <= {1, 2, 3, 4, 5}
    assert (low <= found.rating).all() and (found.rating <= high).all()
    at = 24  # 2.4 ± .6: from 1.8, a 2, to 3.0, a 3
    assert (low[at], high[at]) == (2, 3)
    wide = found.interval(3.0)
    assert (wide[0] <= low).all() and (high <= wide[1]).all()
    low, high = shown([0.9, 3.0], [0.5, 0.5], ordinal=None).interval(2.0)
    np.testing.assert_allclose([low, high], [[1, 2], [1.9, 4]])
    with pytest.raises(ValueError, match="standard deviations"):
        shown([3.0]).interval()


def cases():
    for name in MODELS:
        for protocol in ("weak", "strong"):
            yield pytest.param((name, protocol, False), id=f"{name}-{protocol}")
            if name in ("exact", "ordinal", "two-sided"):
                yield pytest.param((name, protocol, True), id=f"{name}-{protocol}-attributes")
    for protocol in ("weak", "strong"):
        yield pytest.param(("averaged", protocol, True), id=f"averaged-{protocol}-attributes")


@pytest.fixture(params=cases())
def fitted(request, tmp_path):
    """A fit with its saved model, and the users with what is known of them."""
    name, protocol, attributes = request.param
    ratings = RATINGS if attributes else skewed_table()
    split = (weak_split if protocol == "weak" else strong_split)(ratings, 0)
    averaged = name == "averaged"
    name = "two-sided" if averaged else name
    settings = replace(settings_for(name), iterations=5, average_rank=6 if averaged else 0)
    if name == "mixture":
        settings = replace(settings, components=2)
    if name == "two-sided":
        settings = replace(settings, user_start=3)
    done = run_fit(split, settings)
    path = save_model(done.model(), tmp_path / "model.npz")
    return done, load_model(path), path


def held_out(done, model):
    """(user, their ratings, posterior, items, the fit's predictions) of some test users."""
    split = done.split
    people = split.train if split.query is None else split.query
    for user in np.unique(split.test_users)[:ASKED].tolist():
        observed, values = people.of_user(user)
        posterior = model.posterior(observed, values, model.covariates_of(people, user))
        at = split.test_users == user
        yield user, observed, posterior, split.test_items[at], done.predictions[at]


def named(done, model):
    """(user, items, expected) of users that the model knows: with a strong split they have no
    held-out ratings, and what is expected is what their ratings say."""
    if done.split.query is None:
        for user, _, _, items, values in held_out(done, model):
            yield user, items, values
        return
    for user in range(ASKED):
        posterior = model.posterior_of(model.ratings.users.ids[user])
        items = np.setdiff1d(np.arange(len(model.items)), posterior.observed)
        yield user, items, model.answers_of(posterior, items).prediction


def test_all_who_know_a_user_by_their_ratings_agree_with_the_fit(fitted):
    done, model, _ = fitted
    for _, _, posterior, items, expected in held_out(done, model):
        found = model.answers_of(posterior, items)
        np.testing.assert_allclose(found.prediction, expected, **SAME)
        listed = {r.item: r for r in model.recommend(posterior, len(model.items))}
        np.testing.assert_allclose([listed[i].predicted for i in items], expected, **SAME)
        order = [r.predicted for r in listed.values()]
        assert order == sorted(order, reverse=True)
        row = figures.completed_row(model, posterior)
        np.testing.assert_allclose(row["Prediction"][items], expected, **SAME)
        np.testing.assert_array_equal(row["Rating"][items], model.scale.project(expected))
        hidden = figures.held_out_table(model, posterior, items, np.full(len(items), 3.0))
        np.testing.assert_allclose(hidden["Prediction"], expected, **SAME)
        np.testing.assert_array_equal(hidden["Predicted rating"], model.scale.project(expected))
        chosen = [listed[i] for i in items]
        table = figures.recommendations_table(model, chosen)
        np.testing.assert_allclose(table["Prediction"], expected, **SAME)
        assert (table["From"] <= table["Rating"]).all() and (table["Rating"] <= table["To"]).all()
        content = json.loads(figures.recommendations_json(model, posterior, chosen))
        for entry, value in zip(content["recommendations"], expected, strict=True):
            assert entry["prediction"] == pytest.approx(value, abs=1e-6)
            total = entry["before_any_rating"] + sum(s["share"] for s in entry["shares"])
            total += entry.get("similar_users", 0.0)
            assert total == pytest.approx(entry["latent"])
        path = figures.explained_path(model, posterior, int(items[0]))
        assert path[-1][2] == pytest.approx(expected[0], abs=1e-6)
        steps = sum(value for kind, _, value in path if kind != "total")
        assert steps == pytest.approx(expected[0], abs=1e-6)
        words = figures.describe_contributions(model, posterior, int(items[0]))
        assert f"{expected[0]:.3f}" in words
        assert ("latent response" in words) == (model.ordinal is not None)


def test_all_who_know_a_user_by_name_agree(fitted, tmp_path, capsys):
    done, model, path = fitted
    table = np.vstack([block.values for block in completed_blocks(model)])
    rows, expected = [], []
    for user, items, values in named(done, model):
        name = model.ratings.users.ids[user]
        np.testing.assert_allclose(table[user, items], values, **SAME)
        ids = model.items.ids[items]
        np.testing.assert_allclose(model.predict([name] * len(ids), ids).values, values, **SAME)
        rows += [(name, item) for item in ids.tolist()]
        expected += values.tolist()
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("user,item\n" + "".join(f"{u},{i}\n" for u, i in rows))
    out = tmp_path / "out.csv"
    assert main(["predict", "--model", str(path), "--pairs", str(pairs), "--out", str(out)]) == 0
    written = [float(row["prediction"]) for row in csv.DictReader(out.open())]
    np.testing.assert_allclose(written, expected, atol=1e-5)
    command = ["recommend", "--model", str(path), "--user", str(rows[0][0]), "--top", "999"]
    assert main([*command, "--json", "-"]) == 0
    listed = json.loads(capsys.readouterr().out)["recommendations"]
    by_id = {entry["id"]: entry for entry in listed}
    for (user, item), value in zip(rows, expected, strict=True):
        if user == rows[0][0]:
            assert by_id[item]["predicted"] == pytest.approx(value, abs=1e-6)
            assert by_id[item]["rating"] == model.scale.project(value)


def test_somebody_unknown_gets_ratings_too():
    model = run_fit(
        no_split(skewed_table()), replace(settings_for("ordinal"), iterations=5)
    ).model()
    nobody = model.posterior([], [])
    found = model.predict(["nobody"] * len(model.items), model.items.ids).values
    np.testing.assert_array_equal(found, model.answers_of(nobody).prediction)
    assert np.abs(found - nobody.mean).max() > 0.05


@pytest.mark.parametrize("protocol", ["weak", "strong"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_model_that_is_saved_is_the_one_that_was_evaluated(protocol, dtype, tmp_path):
    """Ordered ratings of the sample; one rating of another value would be 3e-4 or more."""
    config = ExperimentConfig(
        protocol=protocol, filter=replace(ExperimentConfig().filter, max_items=400)
    )
    split = make_split(config, prepare(config), 0)
    done = run_fit(split, replace(settings_for("ordinal"), dtype=dtype))
    model = load_model(save_model(done.model(), tmp_path / "model.npz"))
    found = np.full(split.n_test, np.nan)
    if split.query is None:
        users, items = split.train.users.ids, split.train.items.ids
        found[:] = model.predict(users[split.test_users], items[split.test_items]).values
    else:
        for user in np.unique(split.test_users):
            at = split.test_users == user
            known = model.covariates_of(split.query, user)
            posterior = model.posterior(*split.query.of_user(user), known)
            found[at] = model.answers_of(posterior, split.test_items[at]).prediction
    again = score(found, split.test_values, split.train.scale)
    assert again.nmae == pytest.approx(done.scores().nmae, abs=1e-4)
    np.testing.assert_allclose(found, done.predictions, atol=1e-5)


def test_a_user_who_is_known_and_one_who_rates_the_same_get_the_same():
    values = np.clip(np.random.default_rng(0).normal(4.5, 1, (60, 20)).round(), 1, 5)
    ratings = ratings_of(values, np.random.default_rng(1).random(values.shape) < 0.6)
    model = run_fit(no_split(ratings), replace(settings_for("ordinal"), iterations=5)).model()
    for user in (0, 7):
        known = model.posterior_of(user)
        blank = np.setdiff1d(np.arange(20), known.observed)
        found = model.predict([user] * len(blank), blank).values
        np.testing.assert_allclose(model.answers_of(known, blank).prediction, found, **SAME)
