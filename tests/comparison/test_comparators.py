"""The comparators: against dense references, and what every method owes."""

from __future__ import annotations

import os
import stat
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from making import STARS, movielens_folder, random_table, ratings_of

from gmc_core.base.errors import ConfigError, DataError, NumericalError
from gmc_core.comparison.comparators import (
    BASELINES,
    EXTERNAL_LABELS,
    AutoModel,
    ExternalBaseline,
    GaussianMethod,
    ItemKnn,
    MatrixFactorisation,
    TunedMapEm,
    available,
    method_named,
)
from gmc_core.comparison.comparators.external import (
    ExternalBaselineError,
    installed_baselines,
    plain_arrays,
)
from gmc_core.comparison.comparators.measure import run_method
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.data.readers import load
from gmc_core.fitting.auto import choose
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.preparing import make_split, prepare
from gmc_core.gaussian.attributes import UserGroups
from gmc_core.gaussian.linalg.threads import Cancelled, ThreadPool
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.baselines import fit_biases
from gmc_core.protocol.metrics import score
from gmc_core.protocol.splits import Split, pair_split, strong_split, weak_split
from gmc_core.protocol.validation import hold_out

ONE, TWO = ThreadPool(1), ThreadPool(2)
KNN = ItemKnn(neighbours=3, shrinkage=5.0)
MF = MatrixFactorisation(factors=3, regularisation=2.0, sweeps=6)
TUNED = TunedMapEm(factors=(0.1, 1.0, 10.0), iterations=3)
OWN = [
    *BASELINES.values(), KNN, MF, TUNED, GaussianMethod("paper", FitSettings(iterations=2)),
]  # fmt: skip


def table(users=30, items=14, fill=0.5, seed=3) -> Ratings:
    return ratings_of(*random_table(users, items, fill, seed))


def splits() -> list[Split]:
    return [weak_split(table(), 1), strong_split(table(), 1, 20, 8)]


def dense(ratings: Ratings, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values as a matrix, and where they are."""
    full = np.zeros((ratings.n_users, ratings.n_items))
    known = np.zeros(full.shape, bool)
    full[ratings.rows, ratings.indices] = values
    known[ratings.rows, ratings.indices] = True
    return full, known


def dense_item_knn(split: Split, k: int, shrinkage: float) -> np.ndarray:
    """Item-based kNN as in the docstring, entry by entry."""
    biases = fit_biases(split)
    train, known = biases.residuals(split)
    e, h = dense(split.train, train)
    r, shown = dense(split.known, known)
    n_items = split.train.n_items
    s = np.zeros((n_items, n_items))
    for i in range(n_items):
        for j in range(n_items):
            both = h[:, i] & h[:, j]
            n = both.sum()
            root = np.sqrt((e[both, i] ** 2).sum() * (e[both, j] ** 2).sum())
            if n > 1 and root > 0:
                s[i, j] = (n - 1) / (n - 1 + shrinkage) * (e[both, i] @ e[both, j]) / root
    out = biases.predict(split)
    for place, (user, item) in enumerate(zip(split.test_users, split.test_items, strict=True)):
        rated = [j for j in np.flatnonzero(shown[user]) if j != item and s[item, j] > 0]
        near = sorted(rated, key=lambda j, item=item: -s[item, j])[:k]
        if near:
            out[place] += s[item, near] @ r[user, near] / s[item, near].sum()
    return out


def dense_factorisation(split: Split, method: MatrixFactorisation) -> np.ndarray:
    """The alternating regressions with plain matrices."""
    train = split.train
    mean = train.values.mean()
    y, h = dense(train, train.values - mean)
    generator = np.random.Generator(np.random.PCG64(method.seed))
    items = np.zeros((train.n_items, 1 + method.factors))
    items[:, 1:] = generator.normal(0, 0.1, (train.n_items, method.factors))
    items[~h.any(axis=0)] = 0
    ridge = np.diag([method.bias_regularisation] + [method.regularisation] * method.factors)

    def regress(values, known, others):
        out = np.zeros((len(values), others.shape[1]))
        for row in range(len(values)):
            mine = np.flatnonzero(known[row])
            x = np.column_stack([np.ones(len(mine)), others[mine, 1:]])
            out[row] = np.linalg.solve(x.T @ x + ridge, x.T @ (values[row, mine] - others[mine, 0]))
        return out

    for _ in range(method.sweeps):
        items = regress(y.T, h.T, regress(y, h, items))
    users = regress(*dense(split.known, split.known.values - mean), items)
    scores = mean + users[:, :1] + items[:, 0] + users[:, 1:] @ items[:, 1:].T
    return scores[split.test_users, split.test_items]


@pytest.mark.parametrize("split", splits(), ids=lambda split: split.protocol)
def test_item_knn_agrees_with_a_dense_reference(split):
    expected = dense_item_knn(split, KNN.neighbours, KNN.shrinkage)
    assert np.abs(expected - fit_biases(split).predict(split)).max() > 0.05, "no neighbours found"
    np.testing.assert_allclose(KNN.predict(split, ONE), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("split", splits(), ids=lambda split: split.protocol)
def test_factorisation_agrees_with_a_dense_reference(split):
    expected = dense_factorisation(split, MF)
    assert np.abs(expected - fit_biases(split).predict(split)).max() > 0.05, "no factors found"
    np.testing.assert_allclose(MF.predict(split, ONE), expected, rtol=0, atol=1e-9)


# What every method owes ----------------------------------------------------------------


@pytest.mark.parametrize("method", OWN, ids=lambda method: method.name)
@pytest.mark.parametrize("split", splits(), ids=lambda split: split.protocol)
def test_the_held_out_ratings_have_no_influence(method, split):
    other = replace(split, test_values=STARS.high + STARS.low - split.test_values)
    first, second = method.predict(split, ONE), method.predict(other, ONE)
    assert first.shape == (split.n_test,)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("method", OWN, ids=lambda method: method.name)
def test_threads_do_not_change_a_bit(method):
    split = weak_split(table(60, 30, 0.4), 0)
    np.testing.assert_array_equal(method.predict(split, ONE), method.predict(split, TWO))


@pytest.mark.parametrize("method", [KNN, MF, *BASELINES.values()], ids=lambda method: method.name)
def test_a_request_to_stop_is_heard(method):
    with pytest.raises(Cancelled):
        method.predict(splits()[0], ThreadPool(1, lambda: True))


def relabelled(split: Split, users: np.ndarray, items: np.ndarray) -> Split:
    """The same split with user u at position users[u], and item i at items[i]."""
    values, known = dense(split.train, split.train.values)
    train = ratings_of(values[np.argsort(users)][:, np.argsort(items)],
                       known[np.argsort(users)][:, np.argsort(items)])  # fmt: skip
    return replace(
        split,
        train=train,
        test_users=users[split.test_users],
        test_items=items[split.test_items],
        test_values=split.test_values.copy(),
    )


@pytest.mark.parametrize("method", [*BASELINES.values(), KNN], ids=lambda method: method.name)
def test_the_order_of_ids_has_no_influence(method):
    split = splits()[0]
    rng = np.random.default_rng(5)
    other = relabelled(
        split, rng.permutation(split.train.n_users), rng.permutation(split.train.n_items)
    )
    assert not np.array_equal(other.test_items, split.test_items)
    np.testing.assert_allclose(method.predict(other, ONE), method.predict(split, ONE), atol=1e-9)


def test_the_order_of_users_has_no_influence_on_the_factorisation():
    split = splits()[0]
    users = np.random.default_rng(5).permutation(split.train.n_users)
    other = relabelled(split, users, np.arange(split.train.n_items))
    np.testing.assert_allclose(MF.predict(other, ONE), MF.predict(split, ONE), atol=1e-9)


def test_the_factorisation_follows_its_seed():
    split = splits()[0]
    first = MF.predict(split, ONE)
    np.testing.assert_array_equal(first, MF.predict(split, ONE))
    assert np.abs(first - replace(MF, seed=1).predict(split, ONE)).max() > 1e-6
    assert MF.identity != replace(MF, seed=1).identity


@pytest.mark.parametrize("method", [KNN, MF, BASELINES["bias"]], ids=lambda method: method.name)
def test_unknown_users_and_items_are_predicted_from_the_prior(method):
    """Item 99 and user 77 are only in the test ratings."""
    train = table()
    test = Ratings.from_triplets([3, 77, 77], [99, 5, 99], [4, 3, 5], STARS)
    split = pair_split(train, test)
    biases = fit_biases(split)
    mean = train.values.mean()
    predicted = method.predict(split, ONE)
    order = {(int(u), int(i)): k for k, (u, i) in enumerate(
        zip(split.known.users.ids[split.test_users], split.train.items.ids[split.test_items],
            strict=True))}  # fmt: skip
    assert predicted[order[77, 99]] == pytest.approx(mean, abs=1e-12)
    item = split.train.items.index(5)
    user = split.known.users.index(3)
    if method is MF:
        # Its biases differ from those fitted alone, but nothing else may count.
        assert predicted[order[3, 99]] == pytest.approx(mean, abs=1.5)
    else:
        assert predicted[order[3, 99]] == pytest.approx(mean + biases.known_users[user], abs=1e-12)
        assert predicted[order[77, 5]] == pytest.approx(mean + biases.items[item], abs=1e-12)
    assert np.isfinite(predicted).all()


def test_both_find_structure_that_biases_cannot():
    rng = np.random.default_rng(0)
    tastes = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 60))
    values = np.clip(np.round(3 + tastes + rng.normal(scale=0.4, size=tastes.shape)), 1, 5)
    split = weak_split(ratings_of(values, rng.random(values.shape) < 0.5), 0)

    def rmse(method):
        return score(method.predict(split, TWO), split.test_values, STARS).rmse

    bias = rmse(BASELINES["bias"])
    assert rmse(ItemKnn()) < 0.8 * bias
    assert rmse(MatrixFactorisation(5, 2.0)) < 0.6 * bias


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: ItemKnn(neighbours=0), "at least one neighbour"),
        (lambda: ItemKnn(shrinkage=float("nan")), "at least 0"),
        (lambda: MatrixFactorisation(factors=0), "at least one factor"),
        (lambda: MatrixFactorisation(regularisation=0.0), "above 0"),
        (lambda: ExternalBaseline("nonesuch", sys.executable), "no package method"),
    ],
)
def test_settings_without_meaning_are_refused(make, complaint):
    with pytest.raises(ConfigError, match=complaint):
        make()


def test_nothing_to_learn_from_is_refused():
    split = splits()[0]
    empty = replace(split, train=split.train.keep_ratings(np.zeros(len(split.train), bool)))
    for method in (KNN, MF, *BASELINES.values()):
        with pytest.raises(DataError, match="no training ratings"):
            method.predict(empty, ONE)


# Measuring and naming --------------------------------------------------------------------


class Greedy:
    """Takes memory and time."""

    name = label = identity = "greedy"

    def predict(self, split, team):
        block = np.ones(8_000_000)
        time.sleep(0.1)
        return np.full(split.n_test, block[0])


def test_a_run_is_measured():
    outcome = run_method(Greedy(), splits()[0], ONE)
    assert outcome.seconds >= 0.1
    assert outcome.cpu_seconds < outcome.seconds + 0.1
    assert 50e6 < outcome.peak_bytes < 200e6


@pytest.mark.parametrize("bad", [np.full(30, np.nan), np.zeros(3)])
def test_predictions_that_are_none_are_refused(bad):
    class Bad(Greedy):
        def predict(self, split, team):
            return bad

    with pytest.raises(NumericalError, match="Leave it out"):
        run_method(Bad(), weak_split(table(), 1, 25), ONE)


def test_every_name_on_offer_makes_a_method():
    scale = RatingScale(1, 5)
    assert {"paper", "global", "user", "item", "bias", "knn", "mf"} <= set(available())
    for name, label in available({"myfm-mf": "python"}).items():
        method = method_named(name, scale, {"myfm-mf": "python"})
        assert method.name == name
        assert method.label == label
    best = method_named("best:iterations=4", scale)
    spelled = method_named("two-sided:average_rank=101:dtype=float32:iterations=4", scale)
    assert best.identity == spelled.identity
    with pytest.raises(ConfigError, match="--session-window.*needs --session-noise above 0"):
        method_named("ordinal:session_window=60", scale)
    with pytest.raises(ConfigError, match="no method 'nonesuch'; there are paper"):
        method_named("nonesuch", scale)
    with pytest.raises(ConfigError, match="--peer-python"):
        method_named("myfm-mf", scale)


# Other packages ----------------------------------------------------------------------------

FAKE = """
import time
class Reader:
    def __init__(self, rating_scale): self.scale = rating_scale
class Dataset:
    def __init__(self, reader): self.reader = reader
    def construct_trainset(self, rows): return rows
class Estimate:
    def __init__(self, est): self.est = est
class SVD:
    def __init__(self, **settings): pass
    def fit(self, rows):
        {body}
        self.sums = {{}}
        for user, item, value, _ in rows:
            self.sums.setdefault(user, []).append(value)
    def predict(self, user, item, clip):
        return Estimate(sum(self.sums[user]) / len(self.sums[user]))
"""


@pytest.fixture
def python_with(tmp_path):
    """Makes an interpreter that has a package "surprise" whose SVD is the user's mean."""

    def make(body="pass"):
        (tmp_path / "surprise.py").write_text(FAKE.format(body=body))
        path = tmp_path / f"python-{len(list(tmp_path.iterdir()))}"
        path.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    return make


@pytest.mark.parametrize("split", splits(), ids=lambda split: split.protocol)
def test_a_package_learns_from_what_is_known_of_the_test_users(python_with, split):
    python = python_with()
    assert installed_baselines([python])["surprise-svd"] == python
    outcome = run_method(ExternalBaseline("surprise-svd", python), split, ONE)
    expected = BASELINES["user"].predict(split, ONE)
    np.testing.assert_allclose(outcome.predictions, expected, atol=1e-12)
    assert 0 <= outcome.seconds < 60
    assert outcome.peak_bytes > 0


def test_another_version_of_a_package_is_another_method(tmp_path):
    """So that its results are computed again."""
    from gmc_core.comparison.comparison_files import method_key

    keys = set()
    for version in ("1.1.4", "1.1.5", "1.1.5"):
        folder = tmp_path / version
        information = folder / f"scikit_surprise-{version}.dist-info"
        information.mkdir(parents=True, exist_ok=True)
        (folder / "surprise.py").write_text("")
        (information / "METADATA").write_text(f"Name: scikit-surprise\nVersion: {version}\n")
        python = folder / "python"
        python.write_text(f'#!/bin/sh\nPYTHONPATH={folder} exec {sys.executable} "$@"\n')
        python.chmod(0o755)
        method = ExternalBaseline("surprise-svd", str(python))
        assert version in method.identity
        keys.add(method_key(method))
    assert len(keys) == 2


def test_a_package_never_gets_the_held_out_ratings():
    for split in splits():
        arrays = plain_arrays(split)
        assert len(arrays["train_values"]) == len(split.train) + len(split.query or [])
        pairs = set(zip(arrays["train_users"], arrays["train_items"], strict=True))
        assert not pairs & set(zip(arrays["test_users"], arrays["test_items"], strict=True))


def test_a_package_can_be_given_the_users_groups(tmp_path):
    ratings = load(movielens_folder(tmp_path / "ml-1m")).ratings
    for split in (weak_split(ratings, 0), strong_split(ratings, 0)):
        arrays = plain_arrays(split)
        everyone = [split.train, *([] if split.query is None else [split.query])]
        women = np.concatenate([part.user_info["gender"] == "F" for part in everyone])
        column = UserGroups.of(split.train.user_info).labels.index("gender F")
        assert np.array_equal(arrays["user_groups"][:, column] == 1, women)
        assert set(np.unique(arrays["user_groups"])) == {0.0, 1.0}
        assert len(arrays["user_groups"]) > arrays["test_users"].max()
    assert plain_arrays(splits()[0])["user_groups"].shape[1] == 0


def test_a_package_that_fails_is_told(python_with):
    method = ExternalBaseline("surprise-svd", python_with("raise ValueError('too many cooks')"))
    with pytest.raises(
        ExternalBaselineError, match="Surprise SVD, tuned failed: ValueError: too many cooks"
    ):
        method.predict(splits()[0], ONE)


def test_a_package_is_ended_with_the_comparison(python_with, tmp_path):
    mark = tmp_path / "pid"
    body = f"import os; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    with pytest.raises(Cancelled):
        ExternalBaseline("surprise-svd", python_with(body)).predict(
            splits()[0], ThreadPool(1, lambda: mark.exists() and mark.read_text() != "")
        )
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_interpreters_that_are_none_are_told(tmp_path):
    with pytest.raises(ExternalBaselineError, match="does not run"):
        installed_baselines([str(tmp_path / "nothing")])
    with pytest.raises(ExternalBaselineError, match="does not run"):
        ExternalBaseline("myfm-mf", str(tmp_path / "nothing")).predict(splits()[0], ONE)
    assert installed_baselines([]) == {}


INSTALLED = installed_baselines() if os.environ.get("GMC_PEER_PYTHON") else {}


@pytest.mark.parametrize("name", EXTERNAL_LABELS)
def test_installed_packages_predict(name):
    if name not in INSTALLED:
        pytest.skip("no Python with this package is named in GMC_PEER_PYTHON")
    split = weak_split(table(60, 30, 0.5), 0)
    predicted = ExternalBaseline(name, INSTALLED[name]).predict(split, ONE)
    worst = score(np.full(split.n_test, 3.0), split.test_values, STARS)
    assert score(predicted, split.test_values, STARS).nmae < worst.nmae


# Models with other settings ----------------------------------------------------------------


def test_a_models_name_may_carry_settings():
    scale = RatingScale(1, 5)
    method = method_named("paper:epsilon=1:iterations=5:dtype=float32", scale)
    assert isinstance(method, GaussianMethod)
    wanted = FitSettings(epsilon=1, iterations=5, dtype="float32").resolved(scale)
    assert method.settings == wanted
    assert method.label.endswith("(epsilon=1, iterations=5, dtype=float32)")
    assert method.identity != method_named("paper", scale).identity
    # What a model's default means on this scale is part of what the predictions depend on.
    assert (
        method_named("paper", scale).identity != method_named("paper", RatingScale(0, 100)).identity
    )


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("paper:epsilon", "is no SETTING=VALUE"),
        ("paper:nonesuch=3", "settings are epsilon"),
        ("paper:model=exact", "is no SETTING=VALUE"),
        ("paper:epsilon=-1", "at least 0"),
        ("paper:epsilon=much", "ε must be a number of at least 0, not 'much'"),
        ("paper:iterations=2.5", "whole"),
        ("auto:seconds=0", "means nothing"),
        ("auto:epsilon=3", "means nothing"),
    ],
)
def test_settings_that_are_none_are_refused(name, complaint):
    with pytest.raises(ConfigError, match=complaint):
        method_named(name, RatingScale(1, 5))


def test_map_em_is_tuned_on_what_training_holds_out():
    split = weak_split(table(60, 25, 0.4), 0)
    inner, _ = hold_out(split.train, 0, most=1)
    assert inner.n_test == (split.train.user_counts >= 2).sum()
    assert len(inner.train) + inner.n_test == len(split.train)
    again = np.zeros((split.train.n_users, split.train.n_items))
    again[inner.train.rows, inner.train.indices] = inner.train.values
    again[inner.test_users, inner.test_items] = inner.test_values
    np.testing.assert_array_equal(again, dense(split.train, split.train.values)[0])
    found = TUNED.choose(split.train, ONE)
    nmae = {
        (epsilon, count): score(
            GaussianMethod("x", FitSettings(epsilon=epsilon, iterations=count)).predict(inner, ONE),
            inner.test_values,
            STARS,
        ).nmae
        for epsilon in (0.03, 0.3, 3.0)
        for count in (1, 2, 3)
    }
    best = min(nmae.values())
    (chosen,) = [key for key in nmae if key == (pytest.approx(found.epsilon), found.iterations)]
    assert nmae[chosen] == pytest.approx(best, abs=1e-12)
    expected = GaussianMethod("x", found).predict(split, ONE)
    np.testing.assert_allclose(TUNED.predict(split, ONE), expected, atol=1e-12)


def test_tuning_needs_ratings_to_hold_out():
    one_each = ratings_of(np.full((5, 5), 3.0), np.eye(5, dtype=bool))
    with pytest.raises(DataError, match="Give the settings yourself"):
        TUNED.choose(one_each, ONE)


def test_auto_learns_from_training_alone():
    split = weak_split(table(60, 25, 0.4), 0)
    method = method_named("auto:seconds=0.001", STARS)
    assert isinstance(method, AutoModel)
    assert method.identity != AutoModel().identity
    settings = choose(split.train, seconds=0.001, team=ONE).settings
    expected = GaussianMethod("x", settings).predict(split, ONE)
    other = replace(split, test_values=STARS.high + STARS.low - split.test_values)
    np.testing.assert_array_equal(method.predict(other, ONE), expected)


ML1M = Path(os.environ.get("GMC_ML1M", Path(__file__).parents[3] / "shared" / "data" / "ml-1m.zip"))


@pytest.mark.realdata
@pytest.mark.skipif(not ML1M.exists(), reason="MovieLens 1M is not here")
def test_on_movielens_both_are_as_good_as_in_the_literature():
    """About .05 RMSE below the biases, as the same methods of other packages."""
    split = make_split(config := ExperimentConfig(data=str(ML1M)), prepare(config), 0)
    rmse = {
        method.name: score(method.predict(split, TWO), split.test_values, STARS).rmse
        for method in (BASELINES["bias"], ItemKnn(), MatrixFactorisation())
    }
    assert 0.04 < rmse["bias"] - rmse["knn"] < 0.07
    assert 0.05 < rmse["bias"] - rmse["mf"] < 0.08
