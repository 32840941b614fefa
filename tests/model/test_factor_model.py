"""A model of low rank: posteriors by R equations are those by N_i, and a file keeps them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from grouped_ratings import RATINGS
from making import ratings_of, skewed_table

from gmc_core.fitting.fit import run_fit
from gmc_core.fitting.intervals import pair_variances
from gmc_core.gaussian.models import settings_for
from gmc_core.model.completion import completed_blocks
from gmc_core.model.factor_model import FactorModel
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.model.model_file import load_model, save_model
from gmc_core.protocol.baselines import item_mean
from gmc_core.protocol.splits import no_split, weak_split

FEW = replace(settings_for("factor"), iterations=3, rank=5)


@pytest.fixture(scope="module", params=["ordered", "numbers", "attributes"])
def model(request) -> FactorModel:
    ratings = RATINGS if request.param == "attributes" else skewed_table()
    settings = replace(FEW, ordered=request.param != "numbers")
    found = run_fit(no_split(ratings), settings).model()
    assert isinstance(found, FactorModel)
    return found


@pytest.mark.parametrize("rated", [0, 1, 6])
def test_a_posterior_is_that_of_the_dense_formulas(model, rated):
    items = np.arange(len(model.items))[::-2][:rated]
    values = np.resize([5.0, 2.0, 4.0], rated)
    known = None
    if model.groups is not None:
        known = model.covariates_of(model.ratings, 1)
    found = model.posterior(items, values, known)
    order = np.argsort(items)
    reference = GaussianModel._posterior(model, items[order], values[order], known, None)
    for name in ("weights", "prior_mean", "mean", "variance", "noise_variance"):
        near = np.testing.assert_allclose
        near(getattr(found, name), getattr(reference, name), atol=1e-9, err_msg=name)
    every = np.arange(len(model.items))
    np.testing.assert_allclose(
        found.covariance(every[:4], every), reference.covariance(every[:4], every), atol=1e-9
    )
    target = int(every[-1])
    shares = found.contributions(target)
    assert shares.sum() + found.prior_mean[target] == pytest.approx(found.mean[target], abs=1e-9)


def test_intervals_and_completed_tables_have_the_variances_of_the_posterior(model):
    signals, users = model.signals_of(model.ratings), np.array([0, 0, 1, 3])
    items = np.array([0, 2, 1, 4])
    found = pair_variances(signals, model.gaussian, model.noise, users, items)
    expected = []
    for user, item in zip(users, items, strict=True):
        known = model.covariates_of(model.ratings, user)
        posterior = model.posterior(*model.ratings.of_user(user), known)
        expected.append(posterior.rating_sd[item] ** 2)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    block = next(iter(completed_blocks(model, sd=True)))
    sd = block.more["sd"] if "sd" in block.more else next(iter(block.more.values()))
    posterior = model.posterior(*model.ratings.of_user(0), model.covariates_of(model.ratings, 0))
    missing = ~block.observed[0]
    np.testing.assert_allclose(sd[0][missing], posterior.rating_sd[missing], atol=1e-6)


def test_a_file_keeps_it(model, tmp_path):
    again = load_model(save_model(model, tmp_path / "m.npz"))
    assert isinstance(again, FactorModel)
    one, other = (each.posterior([0, 2], [4.0, 1.0]) for each in (model, again))
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.variance, other.variance)


def test_with_the_initial_value_alone_nothing_was_learned():
    found = run_fit(no_split(skewed_table()), replace(FEW, iterations=0)).model()
    assert not isinstance(found, FactorModel)
    assert np.ptp(found.gaussian.mean) == 0


def test_it_predicts_better_than_the_means_of_titles():
    rng = np.random.default_rng(3)
    taste = rng.normal(size=(150, 2)) @ rng.normal(size=(2, 30))
    table = np.clip(np.round(3 + taste + rng.normal(size=taste.shape) * 0.4), 1, 5)
    split = weak_split(ratings_of(table, rng.random(table.shape) < 0.4), 0, 100)
    fit = run_fit(split, replace(settings_for("factor"), rank=4, iterations=15))
    off = np.abs(item_mean(split) - split.test_values).mean()
    assert fit.history[-1].mae < 0.75 * off
