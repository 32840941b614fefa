"""Choosing settings inside the training set, and intervals that cover what they promise."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest
from making import random_table, ratings_of
from test_ordinal import skewed_table

from gmc_core import auto
from gmc_core.cli import main
from gmc_core.errors import ConfigError, DataError
from gmc_core.fit import Fit
from gmc_core.intervals import calibrate, covered, pair_variances, spread
from gmc_core.models import settings_for
from gmc_core.ratings import Ratings
from gmc_core.settings import FitSettings
from gmc_core.splits import weak_split


def test_choosing_sees_training_ratings_only():
    """There is no parameter through which test ratings could come in."""
    parameters = inspect.signature(auto.choose).parameters
    assert set(parameters) == {
        "train", "seconds", "seed", "dtype", "attributes", "team", "on_trial",
    }  # fmt: skip
    assert parameters["train"].annotation in (Ratings, "Ratings")


def test_holding_out_leaves_every_user_a_rating():
    train = ratings_of(*random_table(50, 12, 0.2, 0))
    split = auto.hold_out(train, 0, share=0.5)
    assert split.n_test == round(0.5 * len(train))
    assert len(split.train) + split.n_test == len(train)
    assert np.all(split.train.user_counts[train.user_counts > 0] >= 1)
    again = auto.hold_out(train, 0, share=0.5)
    assert np.array_equal(split.test_items, again.test_items)
    other = auto.hold_out(train, 1, share=0.5)
    assert not np.array_equal(split.test_items, other.test_items)
    held = set(zip(split.test_users.tolist(), split.test_items.tolist(), strict=True))
    kept = set(zip(split.train.rows.tolist(), split.train.indices.tolist(), strict=True))
    assert not held & kept


def test_nothing_to_hold_out_is_an_error():
    lonely = ratings_of(np.full((4, 4), 3.0), np.eye(4, dtype=bool))
    with pytest.raises(DataError, match="too few ratings"):
        auto.hold_out(lonely, 0)


def test_auto_is_no_worse_than_the_recipe_and_says_why():
    split = weak_split(skewed_table(), 0)
    seen = []
    choice = auto.choose(split.train, seconds=4, on_trial=seen.append)
    assert seen == list(choice.trials)
    assert choice.trials[0].settings.model == "paper"
    assert choice.settings.model == "ordinal"
    assert choice.lead.mean < 0
    assert "held out inside the training set" in choice.reason
    best = min(choice.trials, key=lambda trial: trial.nmae)
    assert choice.settings.iterations == best.iterations
    json.dumps(choice.as_dict())
    chosen, plain = (Fit(split, settings) for settings in (choice.settings, FitSettings()))
    for fit in (chosen, plain):
        list(fit.records())
    assert chosen.scores().nmae < plain.scores().nmae


def test_numbers_that_are_no_levels_get_exact_em():
    rng = np.random.default_rng(0)
    table = ratings_of(rng.uniform(1, 5, (60, 10)), rng.random((60, 10)) < 0.6)
    choice = auto.choose(table, seconds=1)
    assert {trial.settings.model for trial in choice.trials} <= {"paper", "exact"}


def test_the_time_must_be_above_zero():
    with pytest.raises(ConfigError, match="above 0 seconds"):
        auto.choose(skewed_table(), seconds=0)


def test_auto_on_the_command_line(tmp_path, capsys):
    out = tmp_path / "auto.json"
    arguments = [
        "auto",
        "--data",
        "sample",
        "--max-items",
        "60",
        "--seconds",
        "1",
        "--dtype",
        "float32",
    ]
    assert main([*arguments, "--json", str(out)]) == 0
    assert "NMAE" in capsys.readouterr().out
    content = json.loads(out.read_text())
    assert content["choices"][0]["reason"]
    assert content["config"]["fit"]["model"] == content["choices"][0]["settings"]["model"]


def test_variances_are_those_of_the_posterior():
    split = weak_split(skewed_table(), 0)
    fit = Fit(split, FitSettings(model="exact", iterations=5, noise=0.4))
    list(fit.records())
    model = fit.model()
    found = pair_variances(fit.shown_signals, fit.state.gaussian, fit.noise, *fit.pairs)
    for k in range(5):
        user, item = int(split.test_users[k]), int(split.test_items[k])
        posterior = model.posterior(*split.train.of_user(user))
        assert found[k] == pytest.approx(posterior.rating_sd[item] ** 2)
    np.testing.assert_allclose(spread(fit).sd ** 2, found)


@pytest.mark.parametrize("name", ["paper", "exact", "ordinal"])
def test_calibrated_intervals_cover_what_they_promise(name):
    settings = FitSettings.from_dict({**settings_for(name).as_dict(), "iterations": 6})
    hits = []
    for seed in range(2):
        split = weak_split(skewed_table(seed), seed)
        factor = calibrate(split.train, settings, 0.8, seed=seed)
        fit = Fit(split, settings)
        list(fit.records())
        hits.append(covered(fit, factor))
    # 2 × 331 ratings: the standard error is .016.
    assert np.concatenate(hits).mean() == pytest.approx(0.8, abs=0.06)


def test_a_level_is_a_share():
    with pytest.raises(ConfigError, match="between 0 and 1"):
        calibrate(skewed_table(), FitSettings(), 90.0)
