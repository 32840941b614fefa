"""Settings and data at the ends of what numbers can hold: finite, or a clear error with the part
that was reached."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from making import random_table

from gmc_core.base.errors import ConfigError, GmcError, NumericalError
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.data.readers import load
from gmc_core.fitting.fit import Fit
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.metrics import score
from gmc_core.protocol.splits import no_split, weak_split

TABLE, KNOWN = random_table(24, 10, 0.6, seed=4)


def of(rows) -> Ratings:
    """Ratings from (user, item, rating); the scale runs from the lowest to the highest."""
    users, items, values = (np.array(column) for column in zip(*rows, strict=True))
    scale = RatingScale(float(values.min()), float(values.max()), None)
    return Ratings.from_triplets(users, items, values.astype(float), scale)


FULL = [(u, i, TABLE[u, i]) for u, i in zip(*np.nonzero(KNOWN), strict=True)]
DATA = {
    "one user": [(1, i, 1 + i % 5) for i in range(12)],
    "one item": [(u, 1, 1 + u % 5) for u in range(12)],
    "one rating": [(1, 1, 3)],
    "constant": [(u, i, 3) for u, i, _ in FULL],
    "almost constant": [(u, i, 4 if k == 5 else 3) for k, (u, i, _) in enumerate(FULL)],
    "items rated once": [(i % 3, i, 1 + i % 5) for i in range(15)],
    "users with one rating": [(u, u % 5, 1 + u % 4) for u in range(15)],
    "identical users": [(u, i, 1 + i % 5) for u in range(15) for i in range(8)],
    "ids of 10^18": [(10**18 + u, 10**18 - i, r) for u, i, r in FULL],
    "ratings of 10^15": [(u, i, r * 2e14) for u, i, r in FULL],
    "ratings of 10^-18": [(u, i, r * 2e-19) for u, i, r in FULL],
    "ratings of 10^-300": [(u, i, r * 2e-301) for u, i, r in FULL],
    "ordinary": FULL,
}
EPSILONS = (0.0, 1e-300, 1e-40, 1e-9, 1e30, 1e39, 1e300)


def finite_or_clear(ratings: Ratings, settings: FitSettings) -> None:
    """All that a fit shows is finite, before a breakdown as well."""
    try:
        running = Fit(no_split(ratings), settings)
    except ConfigError:
        return
    records = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # what comes out is looked at instead
        try:
            records += running.records()
            broken = None
        except NumericalError as error:
            broken = error
        model = running.model()
        if broken is not None:
            assert broken.iteration == len(records) + 1
            assert "ε" in str(broken)
        assert np.isfinite(model.gaussian.mean).all()
        assert np.isfinite(model.gaussian.covariance.diagonal()).all()
        assert [record.iteration for record in records] == list(range(1, len(records) + 1))
        predicted = model.predict(
            ratings.users.ids[ratings.rows], ratings.items.ids[ratings.indices]
        )
        assert np.isfinite(predicted.values).all()


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_any_epsilon_on_any_data(name, dtype):
    ratings = of(DATA[name])
    for epsilon in EPSILONS:
        finite_or_clear(ratings, FitSettings(epsilon=epsilon, iterations=3, dtype=dtype))
    for iterations in (0, 30):
        finite_or_clear(ratings, FitSettings(iterations=iterations, dtype=dtype))


@pytest.mark.parametrize("model", ["paper", "exact", "mixture"])
@pytest.mark.parametrize("epsilon", [1e-300, 1e300])
def test_the_change_of_a_covariance_beyond_squares_is_finite(model, epsilon):
    settings = replace(settings_for(model), epsilon=epsilon, iterations=7)
    for rows in DATA.values():
        ratings = of(rows)
        try:
            running = Fit(no_split(ratings), settings)
        except ConfigError:
            continue
        changes = []
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            with suppress(NumericalError):
                changes += [record.covariance_change for record in running.records()]
        assert np.isfinite(changes[1:]).all()


@pytest.mark.parametrize("epsilon", [1e-300, 1e-200, 1.0, 1e200, 1e300])
@pytest.mark.parametrize("users", [4, 30])  # Σ as a factor, and dense
def test_the_change_of_a_covariance_is_the_same_in_every_unit(users, epsilon):
    """Of constant ratings Σ = ε Id, which no iteration changes."""
    ratings = of([(u, i, 3) for u in range(users) for i in range(8)])
    running = Fit(no_split(ratings), FitSettings(epsilon=epsilon, iterations=3))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert [record.covariance_change for record in running.records()][1:] == [0.0, 0.0]


def test_an_epsilon_beyond_float32_breaks_down_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        running = Fit(no_split(of(DATA["one user"])), FitSettings(epsilon=1e300, dtype="float32"))
        with pytest.raises(NumericalError, match="not positive definite"):
            list(running.records())


@pytest.mark.parametrize("name", ["ordinary", "constant", "one user", "users with one rating"])
@pytest.mark.parametrize("model", ["exact", "ordinal", "mixture"])
def test_the_other_models_on_odd_data(name, model):
    ratings = of(DATA[name])
    if model == "ordinal" and ratings.scale.high > ratings.scale.low:
        ratings = Ratings.from_triplets(
            *(np.array(column) for column in zip(*DATA[name], strict=True)), RatingScale(1, 5)
        )
    settings = settings_for(model)
    for epsilon, iterations in product((None, 1e-300, 1e300), (0, 4)):
        changed = replace(settings, epsilon=epsilon, iterations=iterations)
        finite_or_clear(ratings, changed)


@pytest.mark.parametrize("signals", ["columns", "blocks"])
def test_columns_and_blocks_of_odd_data(signals):
    for rows in DATA.values():
        finite_or_clear(of(rows), FitSettings(signals=signals, block=(4, 3), iterations=3))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_two_hundred_iterations_stay_finite(dtype):
    ratings = of(FULL)
    running = Fit(no_split(ratings), FitSettings(iterations=200, dtype=dtype))
    assert len(list(running.records())) == 200
    assert np.isfinite(
        running.model()
        .predict(ratings.users.ids, ratings.items.ids[:1].repeat(ratings.n_users))
        .values
    ).all()


def test_a_breakdown_keeps_the_iterations_before_it():
    ratings = of(DATA["ratings of 10^15"])
    running = Fit(no_split(ratings), FitSettings(epsilon=0.3, iterations=60, dtype="float32"))
    records = []
    with pytest.raises(NumericalError, match="Raise ε") as caught:
        records += running.records()
    assert caught.value.iteration is not None
    assert caught.value.iteration > 1
    assert running.state.iteration == caught.value.iteration - 1
    model = running.model()
    assert model.iteration == running.state.iteration
    assert np.isfinite(model.gaussian.mean).all()


@pytest.mark.parametrize("epsilon", [-1, float("nan"), float("inf")])
def test_epsilons_that_are_none(epsilon):
    with pytest.raises(ConfigError):
        FitSettings(epsilon=epsilon)


@pytest.mark.parametrize("factor", [1e-300, 1e-18, 1e14])
def test_scales_of_any_unit_have_a_divisor(tmp_path, factor):
    path = tmp_path / "r.csv"
    path.write_text("".join(f"{u},{i},{float(r) * factor!r}\n" for u, i, r in FULL))
    scale = load(path).ratings.scale
    assert scale.nmae_divisor > 0
    assert scale.nmae_divisor < np.inf
    low, high = scale.low, scale.high
    found = score(np.full(4, low), np.array([low, high, low, high]), scale)
    assert np.isfinite(found.nmae)


def test_a_scale_narrower_than_its_step_is_refused():
    with pytest.raises(ConfigError, match="whole number of steps"):
        RatingScale(0, 1e-9, 1)


def test_a_split_of_odd_data_is_a_split_or_a_sentence():
    for rows in DATA.values():
        try:
            split = weak_split(of(rows), seed=0)
        except GmcError as error:
            assert "Use" in str(error)
            continue
        assert len(split.test_values) > 0
