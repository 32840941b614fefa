"""What Σ is shrunk towards: shared variance, genres, and who rated the same items."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from making import random_table, ratings_of

from gmc_core.fitting.fit import Fit
from gmc_core.gaussian import priors
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.priors import IMPLICIT_DIRECTIONS, implicit_directions, prior_of
from gmc_core.gaussian.settings import FitSettings, usual_strength
from gmc_core.gaussian.signals import Layout
from gmc_core.protocol.splits import weak_split


def crowds(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """60 users, of whom each half rates its own half of 20 items, and few of the others."""
    rng = np.random.default_rng(seed)
    half = (np.arange(60)[:, None] < 30) == (np.arange(20)[None, :] < 10)
    known = rng.random((60, 20)) < np.where(half, 0.8, 0.05)
    return rng.integers(1, 6, known.shape).astype(float), known


def alike(directions: np.ndarray) -> np.ndarray:
    return directions @ directions.T


def test_items_rated_by_the_same_people_are_near_each_other():
    found = alike(implicit_directions(ratings_of(*crowds())))
    np.testing.assert_allclose(np.diagonal(found), 1)
    inside = found[:10, :10][~np.eye(10, dtype=bool)]
    assert inside.mean() > 0.3
    assert found[:10, 10:].mean() < -0.3


def test_directions_are_singular_vectors_without_the_numbers_of_ratings():
    """Against NumPy's decomposition, where users are few and where items are."""
    for known in (crowds()[1], crowds()[1].T):
        counts = known.sum(axis=1, keepdims=True) * known.sum(axis=0, keepdims=True)
        table = known / np.sqrt(np.maximum(counts, 1))
        _, sizes, vectors = np.linalg.svd(table)
        assert sizes[0] == pytest.approx(1) and sizes[1] < 0.999
        wanted = (vectors[1 : len(sizes)] * sizes[1:, None]).T
        wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
        found = implicit_directions(ratings_of(np.full(known.shape, 3.0), known))
        np.testing.assert_allclose(alike(found), alike(wanted), atol=1e-9)


def test_what_was_rated_counts_and_not_how():
    values, known = crowds()
    other = 6 - values
    first, second = (implicit_directions(ratings_of(table, known)) for table in (values, other))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("apart", [False, True], ids=["connected", "in three parts"])
@pytest.mark.parametrize("small", [300, 0], ids=["all at once", "leading ones"])
def test_the_order_of_users_and_items_does_not_matter(monkeypatch, apart, small):
    values, known = crowds(3)
    if apart:  # two crowds and a user with an item that nobody else rated
        known &= (np.arange(60)[:, None] < 30) == (np.arange(20)[None, :] < 10)
        known[0], known[:, 0], known[0, 0] = False, False, True
    monkeypatch.setattr(priors, "_SMALL", small)
    monkeypatch.setattr(priors, "IMPLICIT_DIRECTIONS", 12)
    rng = np.random.default_rng(1)
    users, items = rng.permutation(60), rng.permutation(20)
    found = alike(implicit_directions(ratings_of(values, known)))
    moved = alike(implicit_directions(ratings_of(values[users][:, items], known[users][:, items])))
    np.testing.assert_allclose(moved, found[np.ix_(items, items)], atol=1e-9)


def test_large_tables_get_the_same_directions_as_small_ones(monkeypatch):
    values, known = random_table(140, 90, 0.2, 4)
    ratings = ratings_of(values, known)
    whole = alike(implicit_directions(ratings))
    monkeypatch.setattr(priors, "_SMALL", 0)
    np.testing.assert_allclose(alike(implicit_directions(ratings)), whole, atol=1e-8)
    assert implicit_directions(ratings).shape == (90, IMPLICIT_DIRECTIONS)


def test_an_item_that_nobody_rated_and_a_full_table_have_no_directions():
    values, known = crowds()
    known[:, 4] = False
    assert not implicit_directions(ratings_of(values, known))[4].any()
    everyone = implicit_directions(ratings_of(values, np.ones(known.shape, bool)))
    assert everyone.shape == (20, 0)
    assert implicit_directions(ratings_of(values, np.zeros(known.shape, bool))).shape == (20, 0)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (6, 1), (2, 3)])
def test_tables_of_a_few_entries_have_finite_directions(shape):
    found = implicit_directions(ratings_of(np.full(shape, 3.0), np.ones(shape, bool)))
    assert found.shape[0] == shape[1] and np.isfinite(found).all()


def test_the_target_is_the_sum_of_its_parts():
    ratings = ratings_of(*crowds())
    layout = Layout("rows", 60, 20)
    settings = FitSettings(model="exact", prior_strength=7.0, prior_target=(0.1, 0.0, 0.3, 0.2))
    prior = prior_of(settings, ratings, layout)
    assert prior is not None and prior.strength == 7
    target = prior.factor @ prior.factor.T + np.diag(prior.diagonal)
    expected = 0.1 + 0.3 * alike(implicit_directions(ratings)) + 0.2 * np.eye(20)
    np.testing.assert_allclose(target, expected, atol=1e-12)
    columns = prior_of(settings, ratings, replace(layout, kind="columns"))
    assert columns is not None and columns.factor.shape == (60, 1)
    assert prior_of(replace(settings, prior_strength=0.0), ratings, layout) is None


def test_settings_of_before_there_was_implicit_feedback_are_read():
    new = settings_for("exact").as_dict()
    old = {**new, "prior_target": [0.15, 0.1, 0.2]}
    assert FitSettings.from_dict(old).prior_target == (0.15, 0.1, 0.0, 0.2)
    assert FitSettings.from_dict(new) == settings_for("exact")


def test_the_usual_strength_is_that_of_the_items():
    assert [usual_strength(items) for items in (30, 600, 5000)] == [15, 300, 300]
    ratings = ratings_of(*crowds())
    settings = Fit(weak_split(ratings, 0), settings_for("exact")).settings
    assert settings.prior_strength == 10
    assert settings == settings_for("exact").resolved(ratings.scale, 20)
    assert settings_for("exact").resolved(ratings.scale).prior_strength is None
    given = replace(settings_for("exact"), prior_strength=4.0)
    assert given.resolved(ratings.scale, 20).prior_strength == 4
