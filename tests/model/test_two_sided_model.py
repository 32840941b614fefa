"""A two-sided model in use: saved, resumed, explained, completed, and with new users."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from grouped_ratings import RATINGS

from gmc_core.base import array_archive
from gmc_core.base.errors import ConfigError, ModelFileError
from gmc_core.fitting.fit import Fit, StateError, run_fit
from gmc_core.fitting.intervals import pair_intervals, spread
from gmc_core.gaussian.iterate import EmState
from gmc_core.gaussian.linalg.threads import Cancelled, ThreadPool
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.settings import FitSettings
from gmc_core.model.completion import completed_blocks
from gmc_core.model.model_file import FORMAT, FORMAT_VERSION, load_model, save_model
from gmc_core.model.two_sided_model import TwoSidedModel
from gmc_core.protocol.splits import weak_split
from gmc_core.runs.store.artifacts import Checkpoint, load_checkpoint, save_checkpoint

SETTINGS = replace(settings_for("two-sided"), iterations=5, user_rank=4, user_start=3)
SPLIT = weak_split(RATINGS, 0)
TRAIN = SPLIT.train


@pytest.fixture(scope="module", params=[0, 6], ids=["", "averaged"])
def done(request) -> Fit:
    return run_fit(SPLIT, replace(SETTINGS, average_rank=request.param))


@pytest.fixture(scope="module")
def model(done) -> TwoSidedModel:
    found = done.model()
    assert isinstance(found, TwoSidedModel)
    return found


def test_the_file_holds_all_of_it(model, done, tmp_path):
    path = save_model(model, tmp_path / "m.npz")
    again = load_model(path)
    assert isinstance(again, TwoSidedModel)
    np.testing.assert_array_equal(again.loadings, model.loadings)
    np.testing.assert_array_equal(again.folding.spreads, model.folding.spreads)
    pairs = TRAIN.users.ids[SPLIT.test_users], TRAIN.items.ids[SPLIT.test_items]
    np.testing.assert_allclose(again.predict(*pairs).values, done.predictions, atol=1e-6)
    with pytest.raises(ModelFileError, match="newer version"):
        array_archive.read(path, FORMAT, FORMAT_VERSION - 1)
    one_sided = run_fit(SPLIT, replace(settings_for("ordinal"), iterations=2)).model()
    older = save_model(one_sided, tmp_path / "one.npz")
    assert array_archive.read(older, FORMAT, FORMAT_VERSION - 1)  # as before there were two sides


@pytest.mark.parametrize("part", ["user_pulls", "user_spreads", "user_loadings", "user_counts"])
def test_a_file_whose_parts_do_not_fit_is_refused(model, tmp_path, part):
    path = save_model(model, tmp_path / "m.npz")
    header, arrays = array_archive.read(path, FORMAT, FORMAT_VERSION)
    arrays[part] = arrays[part][:-1]
    array_archive.write(path, header.pop("format"), header.pop("format_version"), header, arrays)
    with pytest.raises(ModelFileError, match=part):
        load_model(path)


def test_without_ratings_it_folds_in_alone(model, tmp_path):
    again = load_model(save_model(model, tmp_path / "m.npz", with_ratings=False))
    assert again.loadings is None
    items, values = TRAIN.of_user(7)
    known, found = model.posterior(items, values), again.posterior(items, values)
    np.testing.assert_allclose(found.mean, known.mean, atol=1e-9)


def test_an_explanation_names_similar_users_and_adds_up(model):
    posterior = model.posterior_of(TRAIN.users.ids[3])
    item = int(np.argmax(np.abs(posterior.similar)))
    found = model.explain(posterior, item)
    assert found.similar == posterior.similar[item] != 0
    assert found.total == pytest.approx(posterior.mean[item], abs=1e-9)
    assert "similar users" in found._repr_html_()
    nobody = model.posterior([], [])
    np.testing.assert_array_equal(nobody.similar, 0)
    np.testing.assert_array_equal(nobody.prior_mean, model.gaussian.mean)


def test_a_new_user_is_much_like_one_of_the_training(model):
    """The same ratings, once known in training and once of somebody who was not there."""
    differences, spreads = [], []
    for user in range(20):
        known = model.posterior_of(TRAIN.users.ids[user])
        items, values = TRAIN.of_user(user)
        attributes = model.covariates_of(TRAIN, user)[: -model.folding.rank]
        new = model.posterior(items, values, attributes)
        differences.append(new.similar - known.similar)
        spreads.append(known.similar)
    assert np.std(differences) < 0.3 * np.std(spreads)


def test_variances_are_those_of_both_sides(model, done):
    posterior = model.posterior_of(TRAIN.users.ids[5])
    share = 0.5 if model.settings.average_rank else 1.0
    rank, own = model.folding.rank, share * (model.loadings[5] + model.folding.nobody)
    each, item = np.sqrt(model.noise.array[0, 0]), 11
    raters = (model.loadings + model.folding.nobody)[
        model.ratings.to_csr().getcol(item).nonzero()[0]
    ] / each
    C = np.linalg.inv(np.eye(rank) + raters.T @ raters)
    assert posterior.similar_variance[item] == pytest.approx(own @ C @ own, rel=1e-8)
    both = np.array([item, 12])
    np.testing.assert_allclose(
        np.diag(posterior.covariance(both, both)), posterior.variance[both], rtol=1e-9
    )
    found = spread(done)  # of a fit and of its model alike
    at = SPLIT.test_users == 5
    np.testing.assert_allclose(found.sd[at], posterior.rating_sd[SPLIT.test_items[at]], rtol=1e-6)
    (block,) = completed_blocks(model, sd=True, interval=True)
    unseen = np.setdiff1d(np.arange(TRAIN.n_items), posterior.observed)
    np.testing.assert_allclose(block.sd[5, unseen], posterior.rating_sd[unseen], rtol=1e-6)
    low, _ = pair_intervals(model, [TRAIN.users.ids[5]] * len(unseen), TRAIN.items.ids[unseen])
    np.testing.assert_array_equal(low, block.low[5, unseen])


@pytest.mark.parametrize("average_rank", [0, 6])
def test_an_interrupted_run_goes_on_from_its_file(tmp_path, average_rank):
    settings = replace(SETTINGS, average_rank=average_rank)
    whole = [record.log_likelihood for record in Fit(SPLIT, settings).records()]
    for stop in (2, 4, 5):
        first = Fit(SPLIT, settings)
        records = first.records()
        kept = tuple(next(records) for _ in range(stop))
        save_checkpoint(tmp_path, Checkpoint("k", 0, kept, first.state))
        found = load_checkpoint(tmp_path, "k")
        rest = Fit(SPLIT, settings, start=found.state)
        assert [record.log_likelihood for record in rest.records()] == whole[stop:]
        np.testing.assert_array_equal(
            Fit(SPLIT, settings, start=found.state).predictions, first.predictions
        )
    with pytest.raises(StateError):
        Fit(SPLIT, replace(settings_for("ordinal"), iterations=5), start=found.state)
    users = replace(found.state.users, factors=found.state.users.factors[:-1])
    with pytest.raises(StateError):
        Fit(SPLIT, SETTINGS, start=replace(found.state, users=users))
    assert isinstance(found.state, EmState)


def test_stopped_in_the_middle_it_keeps_the_last_iteration():
    stop: list[bool] = []
    running = Fit(SPLIT, SETTINGS, team=ThreadPool(1, lambda: bool(stop)))
    records = running.records()
    for _ in range(4):
        next(records)
    before = running.predictions
    stop.append(True)
    with pytest.raises(Cancelled):
        next(records)
    assert running.iteration == 4
    assert running.predictions is before


def test_numbers_instead_of_ordered_values():
    found = run_fit(SPLIT, replace(SETTINGS, ordered=False))
    assert found.ordinal is None
    assert found.model().ordinal is None
    assert replace(SETTINGS, ordered=True).is_ordered
    fine = replace(TRAIN.scale, step=None)
    assert SETTINGS.resolved(fine).ordered is False
    assert SETTINGS.resolved(TRAIN.scale).ordered is True


def test_what_has_no_meaning_is_refused():
    for wrong in ({"noise": 0.0}, {"signals": "columns"}, {"learn_noise": True}):
        with pytest.raises(ConfigError):
            FitSettings(**{"model": "two-sided", "noise": 0.5, **wrong})
    with pytest.raises(ConfigError, match="rank of the users' side"):
        replace(settings_for("ordinal"), user_rank=3)
