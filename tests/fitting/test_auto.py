"""Choosing settings inside the training set, and intervals that cover what they promise."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest
from making import ratings_of, skewed_table

from gmc_core.base.errors import ConfigError
from gmc_core.cli import main
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.fitting import auto
from gmc_core.fitting.fit import Fit
from gmc_core.fitting.intervals import calibrate, covered, pair_variances, spread
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.splits import weak_split


def test_choosing_sees_training_ratings_only():
    """There is no parameter through which test ratings could come in."""
    parameters = inspect.signature(auto.choose).parameters
    assert set(parameters) == {
        "train", "seconds", "seed", "dtype", "attributes", "times", "team", "on_trial",
        "however_long", "memory_limit",
    }  # fmt: skip
    assert parameters["train"].annotation in (Ratings, "Ratings")


def test_auto_is_no_worse_than_map_em_and_says_why():
    split = weak_split(skewed_table(), 0)
    seen = []
    choice = auto.choose(split.train, seconds=4, on_trial=seen.append)
    assert seen == list(choice.trials)
    assert choice.trials[0].settings.model == "paper"
    assert choice.settings.is_ordered
    assert choice.lead.mean < 0
    assert "held out inside the training set" in choice.reason
    assert "which chose nothing" in choice.reason
    best = min(choice.trials, key=lambda trial: trial.nmae)
    assert choice.settings.iterations == best.iterations
    json.dumps(choice.as_dict())
    chosen, plain = (Fit(split, settings) for settings in (choice.settings, FitSettings()))
    for fit in (chosen, plain):
        list(fit.records())
    assert chosen.scores().nmae < plain.scores().nmae


def test_the_gain_is_measured_on_ratings_that_chose_nothing():
    """The winner of many tries with no difference between them must not look better."""
    leads = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        known = rng.random((80, 12)) < 0.6
        noise = ratings_of(rng.integers(1, 6, known.shape).astype(float), known)
        choice = auto.choose(noise, seconds=1, seed=seed)
        if choice.report is None or choice.lead.se == 0:
            continue
        trials = [trial.nmae for trial in choice.trials]
        assert choice.report.map_em - choice.report.nmae == pytest.approx(-choice.lead.mean)
        assert choice.report.ratings + choice.held_out < len(noise)
        stored = choice.as_dict()["report"]  # files of all versions have this name
        assert stored["recipe"] == choice.report.map_em and "map_em" not in stored
        assert choice.lead.n <= choice.users
        leads.append((min(trials) - trials[0], choice.lead.mean))
    chosen, told = np.mean(leads, axis=0)
    assert chosen < told


def test_a_two_sided_model_is_tried_and_left_out_where_it_is_too_dear(monkeypatch):
    rng = np.random.default_rng(0)
    known = rng.random((80, 12)) < 0.6
    table = ratings_of(rng.integers(1, 6, known.shape).astype(float), known)
    tried = auto.choose(table, seconds=3)
    two_sided = [trial for trial in tried.trials if trial.settings.model == "two-sided"]
    assert two_sided and two_sided[0].settings.is_ordered
    assert "two-sided" not in " ".join(tried.notes)
    monkeypatch.setattr(auto, "_TWO_SIDED_SHARE", 0.0)
    without = auto.choose(table, seconds=1)
    assert not any(trial.settings.model == "two-sided" for trial in without.trials)
    assert "two-sided model was not tried: one trial would take" in " ".join(without.notes)


def test_numbers_that_are_no_levels_get_exact_em():
    rng = np.random.default_rng(0)
    table = ratings_of(rng.uniform(1, 5, (60, 10)), rng.random((60, 10)) < 0.6)
    choice = auto.choose(table, seconds=1)
    assert {trial.settings.model for trial in choice.trials} <= {
        "paper",
        "factor",
        "exact",
        "two-sided",
    }
    assert not any(trial.settings.is_ordered for trial in choice.trials)


def test_times_are_read_only_when_asked_for():
    """Errors of a day that a user's ratings share: session noise is chosen, and only then."""
    rng = np.random.default_rng(0)
    day = rng.integers(0, 3, (150, 12))
    moods = np.take_along_axis(rng.standard_normal((150, 3)), day, axis=1)
    values = np.clip(np.round(3 + moods + 0.3 * rng.standard_normal(day.shape)), 1, 5)
    known = rng.random(day.shape) < 0.8
    rows, columns = np.nonzero(known)
    table = Ratings.from_triplets(
        rows, columns, values[known], RatingScale(1, 5, 1), times=100_000 * day[known]
    )
    assert not any(trial.settings.reads_times for trial in auto.choose(table, seconds=1).trials)
    choice = auto.choose(table, seconds=1, times=True)
    assert choice.settings.reads_times
    assert "MAP-EM sees ratings alone" in choice.reason
    with pytest.raises(ConfigError, match="when these ratings were given"):
        auto.choose(ratings_of(np.full((9, 9), 3.0), np.eye(9) < 1), times=True)


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
    found = pair_variances(fit.query_signals, fit.state.gaussian, fit.noise, *fit.pairs)
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
        factor = calibrate(split.train, settings, 0.8, seed=seed).factor
        fit = Fit(split, settings)
        list(fit.records())
        hits.append(covered(fit, factor))
    # 2 × 331 ratings: the standard error is .016.
    assert np.concatenate(hits).mean() == pytest.approx(0.8, abs=0.06)


def test_a_level_is_a_share():
    with pytest.raises(ConfigError, match="between 0 and 1"):
        calibrate(skewed_table(), FitSettings(), 90.0)
