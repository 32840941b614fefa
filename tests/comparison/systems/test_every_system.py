"""What every system of the paper's tables owes, on tiny planted data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from making import STARS, random_table, ratings_of

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.comparison.comparators import BASELINES, available, method_named
from gmc_core.comparison.systems import SYSTEMS
from gmc_core.comparison.systems.attitude import Attitude
from gmc_core.comparison.systems.ensemble import EnsembleMmmf
from gmc_core.comparison.systems.gplvm import Gplvm
from gmc_core.comparison.systems.ipcf import Ipcf
from gmc_core.comparison.systems.m3f import MixedMembership
from gmc_core.comparison.systems.mmmf import Mmmf
from gmc_core.comparison.systems.nbmc import Nbmc
from gmc_core.comparison.systems.urp import Urp
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.gaussian.linalg.threads import Cancelled, ThreadPool
from gmc_core.protocol.metrics import score
from gmc_core.protocol.splits import Split, pair_split, strong_split, weak_split

ONE, TWO = ThreadPool(1), ThreadPool(2)
SMALL = [
    Ipcf(settings=((5, 5.0), (20, 10.0))),
    Nbmc(atoms=6, sweeps=60, burn_in=30),
    Urp(settings=((2, 1.0), (6, 1.0)), iterations=20),
    Attitude(settings=((2, 1.0),), iterations=25),
    Mmmf(rank=4, penalties=(1.0, 3.0), iterations=20),
    EnsembleMmmf(rank=4, members=2, penalties=(1.0,), iterations=15),
    Gplvm(settings=((2, 0.1),), iterations=12),
    MixedMembership(settings=((2, 2, 2),), sweeps=60, burn_in=30),
]
BY_LEVELS = (Urp, Attitude, Mmmf, EnsembleMmmf)
every = pytest.mark.parametrize("system", SMALL, ids=lambda system: system.name)


def planted(users=150, items=24, scale=STARS, seed=0) -> Ratings:
    """Two tastes, on any scale of levels."""
    rng = np.random.default_rng(seed)
    tastes = rng.normal(size=(users, 2)) @ rng.normal(size=(2, items)) / np.sqrt(2)
    values = scale.midpoint + (tastes + rng.normal(scale=0.2, size=tastes.shape)) * (
        scale.high - scale.low
    ) / 4  # fmt: skip
    return ratings_of(scale.project(values), rng.random(values.shape) < 0.6, scale)


def splits(ratings: Ratings | None = None) -> list[Split]:
    ratings = ratings or planted()
    return [weak_split(ratings, 1), strong_split(ratings, 1, ratings.n_users * 3 // 5)]


def test_all_are_small_here():
    assert {type(system) for system in SMALL} == {type(system) for system in SYSTEMS}


@every
@pytest.mark.parametrize("split", splits(), ids=lambda split: split.protocol)
def test_what_is_planted_is_found_and_the_held_out_ratings_have_no_influence(system, split):
    found = system.predict(split, ONE)
    items = BASELINES["item"].predict(split, ONE)
    own, means = (score(one, split.test_values, STARS).rmse for one in (found, items))
    assert own < 0.85 * means
    other = replace(split, test_values=STARS.high + STARS.low - split.test_values)
    np.testing.assert_array_equal(system.predict(other, ONE), found)


@every
def test_threads_do_not_change_a_bit_and_the_seed_counts(system, monkeypatch):
    monkeypatch.setattr("gmc_core.comparison.systems.system._LEAST", 20)  # so there are pieces
    split = weak_split(ratings_of(*random_table(40, 20, 0.4, 3)), 0)
    first = system.predict(split, ONE)
    np.testing.assert_array_equal(first, system.predict(split, TWO))
    assert system.identity != replace(system, seed=1).identity
    if not isinstance(system, Ipcf):  # in which nothing is random
        raw = system.attempt(split, system.candidates[0], ONE)
        other = replace(system, seed=1).attempt(split, system.candidates[0], ONE)
        assert np.abs(raw - other).max() > 1e-9


@every
def test_one_novel_user_has_no_influence_on_another(system):
    """So the items' side, which all share, was learned without either."""
    split = splits()[1]
    query = split.query
    assert query is not None
    values = query.values.copy()
    values[: query.indptr[1]] = 6 - values[: query.indptr[1]]
    other = replace(split, query=replace(query, values=values))
    setting = system.candidates[0]
    first, second = (system.attempt(one, setting, ONE) for one in (split, other))
    np.testing.assert_allclose(first[1:], second[1:], atol=1e-9)


@every
def test_a_novel_user_is_predicted_from_the_query_and_not_from_a_training_user(system):
    """Everyone's taste turned round in the query turns the predictions round."""
    split = splits()[1]
    query = split.query
    assert query is not None
    item = BASELINES["item"].predict(split, ONE)
    setting = system.candidates[0]
    turned = replace(split, query=replace(query, values=6 - query.values))
    first, second = (system.attempt(one, setting, ONE) - item for one in (split, turned))
    assert np.corrcoef(first, second)[0, 1] < -0.5


@every
@pytest.mark.parametrize("later", [0, 2])
def test_a_request_to_stop_is_heard(system, later):
    asked = iter(range(later + 1))
    with pytest.raises(Cancelled):
        system.predict(splits()[0], ThreadPool(1, lambda: next(asked, later) >= later))
    assert next(asked, None) is None


@every
@pytest.mark.parametrize(
    "scale", [RatingScale(0.5, 5, 0.5), RatingScale(0, 1)], ids=lambda scale: str(scale)
)
def test_any_scale_of_levels(system, scale):
    split = weak_split(planted(60, 15, scale), 0)
    found = system.attempt(split, system.candidates[0], ONE)
    width = scale.high - scale.low
    assert found.min() > scale.low - width and found.max() < scale.high + width
    assert score(found, split.test_values, scale).nmae < 0.8


@every
def test_a_continuous_scale_is_refused_where_levels_are_needed(system):
    split = weak_split(planted(40, 12, RatingScale(-10, 10, None)), 0)
    if isinstance(system, BY_LEVELS):
        with pytest.raises(DataError, match="coarser step"):
            system.predict(split, ONE)
    else:
        assert np.isfinite(system.attempt(split, system.candidates[0], ONE)).all()


@every
def test_unknown_users_and_items_have_predictions(system):
    """Item 99 and user 77 are only in the test ratings."""
    train = planted(40, 12)
    test = Ratings.from_triplets([3, 77, 77], [99, 5, 99], [4, 3, 5], STARS)
    split = pair_split(train, test)
    found = system.attempt(split, system.candidates[0], ONE)
    assert np.all((found > 0) & (found < 6))


@every
def test_nothing_to_learn_from_is_refused(system):
    split = splits()[0]
    empty = replace(split, train=split.train.keep_ratings(np.zeros(len(split.train), bool)))
    with pytest.raises(DataError, match="no training ratings"):
        system.predict(empty, ONE)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Ipcf(settings=()),
        lambda: Nbmc(sweeps=10, burn_in=10),
        lambda: Urp(settings=((0, 1.0),)),
        lambda: Urp(settings=((2, 0.0),)),
        lambda: Attitude(settings=((2, 0.0),)),
        lambda: Mmmf(penalties=(0.0,)),
        lambda: Mmmf(rank=0),
        lambda: EnsembleMmmf(members=0),
        lambda: EnsembleMmmf(penalties=()),
        lambda: Gplvm(settings=((0, 0.1),)),
        lambda: MixedMembership(settings=((2, 0, 1),)),
    ],
)
def test_settings_without_meaning_are_refused(make):
    with pytest.raises(ConfigError):
        make()


def test_they_are_methods_by_name():
    for system in SYSTEMS:
        assert method_named(system.name, STARS) is system
        assert available()[system.name] == system.label
    assert len({system.identity for system in SYSTEMS}) == len(SYSTEMS)
