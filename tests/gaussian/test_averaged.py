"""The mean of a dense fit and one of low rank: definition, resuming, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from grouped_ratings import RATINGS

from gmc_core.base.errors import ConfigError
from gmc_core.fitting.cost import estimate_fit
from gmc_core.fitting.duration import estimate_seconds
from gmc_core.fitting.fit import Fit, run_fit
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.models import PRESETS, settings_for
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.splits import weak_split

SPLIT = weak_split(RATINGS, 0)
L, RANK = 4, 5
MODELS = ("exact", "ordinal", "two-sided")


def settings(name, **others):
    chosen = replace(settings_for(name), iterations=L, average_rank=RANK)
    if name == "two-sided":
        chosen = replace(chosen, user_rank=4, user_start=3)
    return replace(chosen, **others)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_it_ends_with_the_mean_of_what_both_end_with(name, dtype):
    together = settings(name, dtype=dtype)
    done, alone = run_fit(SPLIT, together), run_fit(SPLIT, replace(together, average_rank=0))
    train = SPLIT.train
    beside = run_fit(
        SPLIT,
        together.resolved(train.scale, train.n_items).low_rank_beside(train.scale, train.n_items),
    )
    near = {"float64": 1e-10, "float32": 1e-4}[dtype]
    found, one, other = (fit.state.gaussian for fit in (done, alone, beside))
    every = np.arange(train.n_items)
    for part in (
        lambda gaussian: gaussian.mean,
        lambda gaussian: gaussian.covariance.submatrix(every, every),
        lambda gaussian: gaussian.coefficients,
    ):
        if part(one) is not None:
            np.testing.assert_allclose(part(found), (part(one) + part(other)) / 2, atol=near)
    sigma = found.covariance.submatrix(every, every)
    np.testing.assert_array_equal(sigma, sigma.T)
    if name == "two-sided":
        pairs = SPLIT.test_users, SPLIT.test_items, ThreadPool(1)
        half = done.state.users.at(*pairs)
        np.testing.assert_allclose(half, alone.state.users.at(*pairs) / 2, atol=near)
    # Before that iteration it is the dense fit alone.
    assert [r.log_likelihood for r in done.history[:-1]] == [
        r.log_likelihood for r in alone.history[:-1]
    ]
    assert done.history[-1].covariance_change == alone.history[-1].covariance_change


@pytest.mark.parametrize("name", MODELS)
def test_to_predict_with_it_is_nearly_the_mean_of_both_predictions(name):
    """Numbers, so that the latent response is the prediction."""
    together = settings(name, iterations=6)
    together = replace(together, ordered=False) if name == "two-sided" else together
    alone = run_fit(SPLIT, replace(together, average_rank=0)).predictions
    train = SPLIT.train
    resolved = together.resolved(train.scale, train.n_items)
    beside = run_fit(SPLIT, resolved.low_rank_beside(train.scale, train.n_items)).predictions
    mean, found = (alone + beside) / 2, run_fit(SPLIT, together).predictions
    assert np.abs(found - mean).mean() < 0.25 * np.abs(alone - beside).mean()


@pytest.mark.parametrize("name", MODELS)
def test_a_resumed_run_goes_on_to_the_same_digits(name):
    whole = [record.log_likelihood for record in Fit(SPLIT, settings(name)).records()]
    for stop in (1, 3):
        first = Fit(SPLIT, settings(name))
        records = first.records()
        for _ in range(stop):
            next(records)
        rest = Fit(SPLIT, settings(name), start=first.state)
        assert [record.log_likelihood for record in rest.records()] == whole[stop:]


def test_one_may_go_on_from_a_mean():
    """All of what users have in common is learned again, and lessened again at the end."""
    ended = run_fit(SPLIT, settings("two-sided"))
    longer = Fit(SPLIT, settings("two-sided", iterations=L + 2), start=ended.state)
    assert ended.state.users.share == 0.5
    shares = [longer.state.users.share for _ in longer.records()]
    assert shares == [1, 0.5]
    assert np.isfinite(longer.predictions).all()


def test_session_noise_is_left_to_the_dense_fit():
    resolved = replace(settings("ordinal"), session_noise=0.15).resolved(RATINGS.scale, 30)
    beside = resolved.low_rank_beside(RATINGS.scale, 30)
    assert (beside.session_noise, beside.rank, beside.model) == (0, RANK, "factor")
    assert beside.noise == resolved.noise
    assert beside.prior_target == resolved.prior_target


def test_it_costs_what_both_cost():
    sizes, items = SPLIT.train.user_counts, SPLIT.train.n_items
    together = settings("ordinal").resolved(RATINGS.scale, items)
    parts = replace(together, average_rank=0), together.low_rank_beside(RATINGS.scale, items)
    costs = [estimate_fit(one, sizes, items) for one in (together, *parts)]
    assert costs[0].memory_bytes == costs[1].memory_bytes + costs[2].memory_bytes
    assert costs[0].flops == pytest.approx(costs[1].flops + costs[2].flops)
    seconds = [estimate_seconds(one, sizes, items).iterations for one in (together, parts[0])]
    assert all(more > less for more, less in zip(*seconds, strict=True))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"model": "paper"}, "exact, ordinal and two-sided"),
        ({"model": "exact", "noise": 0.5, "signals": "columns"}, "rows"),
        ({"model": "exact", "noise": 0.5, "learn_noise": True}, "as given"),
        ({"model": "exact", "noise": "noise.csv"}, "as given"),
    ],
)
def test_what_has_no_meaning_is_refused(wrong, why):
    with pytest.raises(ConfigError, match=why):
        FitSettings(**wrong, average_rank=5)


def test_runs_from_before_keep_their_keys():
    assert "average_rank" not in replace(settings("ordinal"), average_rank=0).as_dict()
    assert FitSettings.from_dict(settings("ordinal").as_dict()) == settings("ordinal")
    best = PRESETS["best"]
    assert best.average_rank > 0
