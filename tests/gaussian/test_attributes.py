"""What is known of users besides their ratings: groups, and what models make of them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from grouped_ratings import ITEMS, RATINGS, USERS

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.comparison.comparators import method_named
from gmc_core.comparison.comparison_files import held_out_of
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.fit import Fit, StateError, run_fit
from gmc_core.fitting.intervals import spread
from gmc_core.fitting.preparing import describe, prepare
from gmc_core.gaussian.attributes import LEAST_USERS, MOST_GROUPS, RANGES, UserGroups
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.settings import FitSettings
from gmc_core.model.completion import completed_blocks
from gmc_core.model.model_file import load_model, save_model
from gmc_core.protocol.filters import Filter
from gmc_core.protocol.splits import no_split, strong_split, weak_split
from gmc_core.runs.store.artifacts import Checkpoint, load_checkpoint, save_checkpoint
from gmc_core.runs.store.submitting import key_of

EXACT = replace(settings_for("exact"), iterations=7)
ORDERED = replace(settings_for("ordinal"), iterations=7)


# Groups -------------------------------------------------------------------------------


def test_texts_and_few_numbers_make_groups_and_many_numbers_ranges():
    rng = np.random.default_rng(1)
    groups = UserGroups.of(
        {
            "gender": np.array(["F", "M"] * 200, dtype=object),
            "age": np.repeat([1.0, 18.0, 25.0, 35.0], 100),
            "height": rng.normal(170, 10, 400),
        }
    )
    assert groups.labels[:6] == ("age 1", "age 18", "age 25", "age 35", "gender F", "gender M")
    assert len(groups) == 6 + RANGES
    assert groups.labels[6].startswith("height to ")
    assert groups.labels[7].startswith("height above ") and " to " in groups.labels[7]
    assert groups.labels[-1].startswith("height above ") and " to " not in groups.labels[-1]
    np.testing.assert_allclose(groups.shares[:6], [0.25, 0.25, 0.25, 0.25, 0.5, 0.5])
    np.testing.assert_allclose(groups.shares[6:], 1 / RANGES, atol=0.01)


def test_small_groups_and_names_make_none():
    job = np.array(["writer"] * 60 + ["lawyer"] * (LEAST_USERS - 1) + ["none"] * 60, dtype=object)
    names = np.array([f"n{i}" for i in range(len(job))], dtype=object)
    same = np.full(len(job), 3.0)
    groups = UserGroups.of({"job": job, "name": names, "same": same})
    assert groups.labels == ("job none", "job writer")
    # A lawyer is of no group, which is known: less than a share of each.
    np.testing.assert_allclose(groups.covariates({"job": job[60:61]}, 1)[0], -groups.shares)
    many = np.repeat([f"t{i:02d}" for i in range(MOST_GROUPS + 5)], LEAST_USERS).astype(object)
    assert len(UserGroups.of({"town": many})) == MOST_GROUPS


def test_no_attributes_make_no_groups():
    assert len(UserGroups.of({})) == 0
    assert len(UserGroups.of({"gender": np.array([None, ""], dtype=object)})) == 0
    assert UserGroups.of({}).covariates({}, 3).shape == (3, 0)


def test_covariates_add_up_to_nothing_and_the_unknown_is_nothing():
    gender = np.array(["F", "M", "M", None] * 50, dtype=object)
    age = np.tile([20.0, np.nan, 30.0, 20.0], 50)
    groups = UserGroups.of({"gender": gender, "age": age})
    x = groups.covariates({"gender": gender, "age": age}, 200)
    np.testing.assert_allclose(x.sum(axis=0), 0, atol=1e-9)
    assert not x[3, 2:].any() and not x[1, :2].any()
    assert not groups.covariates({}, 5).any()
    assert groups.of_user({"gender": gender, "age": age}, 3) == ["age 20"]


def test_labels_give_the_same_covariates_as_attributes():
    info = {"gender": np.array(["F", "M"] * 50, dtype=object), "age": np.repeat([20.0, 30.0], 50)}
    groups = UserGroups.of(info)
    x = groups.covariates(info, 100)
    for user in (0, 1, 99):
        np.testing.assert_allclose(groups.covariates_of(groups.of_user(info, user)), x[user])
    assert not groups.covariates_of([]).any()
    with pytest.raises(ConfigError, match="There is no group 'gender X'; the groups are age 20"):
        groups.covariates_of(["gender X"])
    with pytest.raises(ConfigError, match="both gender F and gender M"):
        groups.covariates_of(["gender M", "gender F"])


def test_a_number_can_be_looked_up_as_text_and_nonsense_is_unknown():
    heights = np.random.default_rng(0).normal(170, 10, 400)
    groups = UserGroups.of({"height": heights})
    x = groups.covariates({"height": heights[:1]}, 1)
    text = np.array([str(heights[0]), "tall", None], dtype=object)
    found = groups.covariates({"height": text}, 3)
    np.testing.assert_allclose(found[0], x[0])
    assert not found[1:].any()


def test_descriptions_go_round():
    groups = UserGroups.of(RATINGS.user_info)
    again = UserGroups.from_description(groups.describe(), groups.shares)
    assert again.labels == groups.labels and again.choices == groups.choices
    x = groups.covariates(RATINGS.user_info, USERS)
    assert np.array_equal(again.covariates(RATINGS.user_info, USERS), x)
    with pytest.raises(ConfigError, match="do not fit together"):
        UserGroups.from_description(groups.describe(), groups.shares[1:])
    likes = groups.describe()[-1:]
    two = groups.shares[-2:]
    for hostile, shares in (
        (likes * 2, np.tile(two, 2)),  # twice
        ([{**likes[0], "texts": []}], two),
        ([{**likes[0], "edges": [1.0]}], two),
        ([{**likes[0], "texts": [], "edges": [2.0, 1.0]}], np.full(3, 0.3)),
        ([{**likes[0], "texts": [], "edges": [np.nan]}], two),
        ([{"name": "likes"}], two),
        ([None], two),
        ([], np.zeros(0)),
        ([{**likes[0], "texts": [str(k) for k in range(501)]}], np.full(501, 0.001)),
    ):
        with pytest.raises(ConfigError):
            UserGroups.from_description(hostile, shares)


def test_whatever_makes_groups_can_be_read_again():
    rng = np.random.default_rng(3)
    size = 400
    missing = np.array(["F", "M", float("nan"), None] * 100, dtype=object)
    missing[4::40] = pd.NA
    columns = {
        "top-coded": np.minimum(rng.integers(18, 100, size), 70).astype(float),
        "income": 1e7 + rng.integers(0, 60, size),
        "tied": np.where(rng.random(size) < 0.9, 5.0, rng.random(size) * 100),
        "fine": np.repeat([0.1234567, 0.1234568], size // 2),
        "codes": np.tile([1000001, 1000002, 1000003, 1000004], size // 4),
        "ages": np.array([int(v) for v in rng.integers(18, 80, size)], dtype=object),
        "some ages": np.array([20, 30, None, 40] * 100, dtype=object),
        "missing": missing,
        "a": np.array(["b c", "d"] * (size // 2), dtype=object),
        "a b": np.array(["c", "e"] * (size // 2), dtype=object),  # the label of one before
        "zeros": np.array([0.0, -0.0, 1.0, 1.0] * (size // 4)),
        "long": np.array(["x" * 81, "y" * 81] * (size // 2), dtype=object),
        "truth": rng.random(size) < 0.5,
        "zip": np.array([f"{v:05d}" for v in rng.integers(0, 99999, size)], dtype=object),
    }
    groups = UserGroups.of(columns)
    again = UserGroups.from_description(
        json.loads(json.dumps(groups.describe())), groups.shares.copy()
    )
    assert again.labels == groups.labels
    x = groups.covariates(columns, size)
    assert np.array_equal(again.covariates(columns, size), x)
    np.testing.assert_allclose(x.sum(axis=0), 0, atol=1e-9)
    made = groups.choices
    assert made["fine"] == ["fine 0.1234567", "fine 0.1234568"]
    assert len(made["codes"]) == 4 and len(made["ages"]) == RANGES
    assert made["missing"] == ["missing F", "missing M"]
    assert made["some ages"] == ["some ages 20", "some ages 30", "some ages 40"]
    assert made["truth"] == ["truth False", "truth True"]
    assert "zip" not in made and "a b" not in made
    for name in ("top-coded", "income", "ages"):
        counts = groups.members(columns, size)[:, [groups.labels.index(own) for own in made[name]]]
        assert counts.sum(axis=0).min() >= LEAST_USERS and len(made[name]) > 3
    assert made["zeros"] == ["zeros 0", "zeros 1"]
    assert "long" not in made
    late = groups.covariates({"some ages": np.array(["20.0", "20"], dtype=object)}, 2)
    assert np.array_equal(late[0], late[1]) and late.any()


def test_ranges_have_enough_users():
    ages = np.concatenate([np.arange(35.0), np.full(50, 50.0), np.full(60, 60.0), [70.0] * 15])
    zeros = np.concatenate([np.zeros(136), np.repeat(np.arange(1.0, 33), 2)])
    for numbers in (ages, zeros, np.arange(160.0), np.arange(40.0)):
        groups = UserGroups.of({"n": numbers})
        members = groups.members({"n": numbers}, len(numbers))
        assert len(groups) != 1
        assert members.sum(axis=0).min(initial=LEAST_USERS) >= LEAST_USERS
        np.testing.assert_allclose(members.sum(axis=1), 1 if len(groups) else 0)


def test_one_input_has_one_hash_whatever_its_type():
    ages = [20, 30, 40] * (USERS // 3)
    names = ["a", "b", None] * (USERS // 3)
    forms = [
        {"age": np.array(ages), "name": np.array(names, dtype=object)},
        {"name": np.array(names, dtype=object), "age": np.array(ages, dtype=np.float32)},
        {"age": np.array(ages, dtype=object), "name": np.array([v or "" for v in names])},
        {"age": np.array([np.int64(v) for v in ages], dtype=object),
         "name": np.array([np.nan if v is None else np.str_(v) for v in names], dtype=object)},
    ]  # fmt: skip
    made = [replace(RATINGS, user_info=info) for info in forms]
    assert len({own.side_sha256 for own in made}) == 1
    assert len({UserGroups.of(own.user_info).labels for own in made}) == 1
    with pytest.raises(DataError, match="same name"):
        replace(RATINGS, user_info={1: np.array(ages), "1": np.array(ages)})


@pytest.mark.parametrize(
    "column",
    [
        [1, "a", None, 2.5, b"x", pd.NA, pd.NaT, 10**400, True],
        [10**400, 1, 2],
        [float("inf"), -1.0, np.nan],
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
        np.array([1.5, 2.5], dtype=np.float16),
        np.array([True, False]),
        [],
    ],
)
def test_any_column_is_saved_and_read_again(column, tmp_path):
    values = np.resize(np.array(column, dtype=object), USERS) if len(column) else [None] * USERS
    ratings = replace(RATINGS, user_info={"odd": values})
    model = run_fit(no_split(ratings), replace(EXACT, iterations=5)).model()
    again = load_model(save_model(model, tmp_path / "m.npz"))
    expected, found = ratings.user_info["odd"], again.ratings.user_info["odd"]
    assert found.dtype == expected.dtype
    assert [repr(v) for v in found.tolist()] == [repr(v) for v in expected.tolist()]
    assert again.ratings.side_sha256 == ratings.side_sha256


# Models -------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [EXACT, ORDERED], ids=["exact", "ordinal"])
@pytest.mark.parametrize("protocol", [weak_split, strong_split])
def test_planted_groups_help(settings, protocol):
    gains = []
    for seed in range(4):
        split = protocol(RATINGS, seed)
        without = run_fit(split, replace(settings, attributes=False)).scores()
        gains.append(without.rmse - run_fit(split, settings).scores().rmse)
    assert np.mean(gains) > 0.01


def test_coefficients_are_what_was_planted():
    found = run_fit(no_split(RATINGS), replace(EXACT, iterations=30))
    B, labels = found.state.gaussian.coefficients, found.groups.labels
    assert labels[-2:] == ("likes first", "likes second")
    assert not any(label.startswith("name") for label in labels)
    difference = B[:, -2] - B[:, -1]
    half = ITEMS // 2
    # 1.6 in the middle of the scale, less its ends' and the prior's share.
    assert 0.5 < difference[:half].mean() < 1.6 and -1.6 < difference[half:].mean() < -0.5
    assert np.abs(B[:, :-2]).mean() < 0.2


def test_without_attributes_nothing_changes():
    bare = replace(RATINGS, user_info={})
    for settings in (EXACT, ORDERED):
        plain = run_fit(weak_split(bare, 0), settings)
        off = run_fit(weak_split(RATINGS, 0), replace(settings, attributes=False))
        assert plain.state.gaussian.coefficients is None
        assert np.array_equal(plain.predictions, off.predictions)
        assert plain.model().groups is None and off.model().groups is None


def test_only_exact_em_with_users_as_signals_knows_of_attributes():
    columns = run_fit(weak_split(RATINGS, 0), replace(EXACT, signals="columns", iterations=5))
    assert columns.state.gaussian.coefficients is None
    paper = run_fit(weak_split(RATINGS, 0), FitSettings(iterations=3))
    assert paper.state.gaussian.coefficients is None
    with pytest.raises(
        ConfigError, match="attributes belongs to the models exact, ordinal, factor and two-sided"
    ):
        FitSettings(attributes=False)
    with pytest.raises(ConfigError, match="true or false"):
        replace(EXACT, attributes="no")


def test_the_weight_of_attributes_holds_back_what_groups_like():
    split, usual = weak_split(RATINGS, 0), run_fit(weak_split(RATINGS, 0), EXACT)
    sizes = {
        weight: np.abs(
            run_fit(split, replace(EXACT, attributes_strength=weight)).state.gaussian.coefficients
        ).mean()
        for weight in (10, 100, 1000)
    }
    assert sizes[10] > sizes[100] > sizes[1000] > 0
    assert sizes[100] == np.abs(usual.state.gaussian.coefficients).mean()


def test_the_usual_weight_of_attributes_is_in_no_key():
    scale, plain = RATINGS.scale, ExperimentConfig(fit=EXACT)
    for weight, same in ((None, True), (100, True), (100.0, True), (99.0, False)):
        given = replace(EXACT, attributes_strength=weight)
        assert (given.as_dict() == EXACT.as_dict()) == same
        key = replace(plain, fit=given.resolved(scale, ITEMS)).key("d" * 64)
        assert (key == replace(plain, fit=EXACT.resolved(scale, ITEMS)).key("d" * 64)) == same
    whole, real = (
        replace(EXACT, attributes_strength=weight).resolved(scale).as_dict()
        for weight in (50, 50.0)
    )
    assert json.dumps(whole) == json.dumps(real)


def tables(model) -> np.ndarray:
    return np.vstack([block.values for block in completed_blocks(model)])


@pytest.mark.parametrize("settings", [EXACT, ORDERED], ids=["exact", "ordinal"])
def test_all_ways_to_predict_agree(settings, tmp_path):
    split = weak_split(RATINGS, 0)
    done = run_fit(split, settings)
    model = done.model()
    users, items = split.test_users, split.test_items
    ids = (split.train.users.ids[users], split.train.items.ids[items])
    np.testing.assert_allclose(model.predict(*ids).values, done.predictions, atol=1e-6)
    table = tables(model)
    expected = model.predict(*ids).values
    np.testing.assert_allclose(table[users, items], expected, atol=1e-8)
    user = int(users[0])
    posterior = model.posterior_of(ids[0][0])
    assert np.abs(posterior.prior_mean - model.gaussian.mean).max() > 0.1
    unknown = np.setdiff1d(np.arange(ITEMS), posterior.observed)
    shown = model.answers_of(posterior).prediction
    np.testing.assert_allclose(shown[unknown], table[user, unknown], atol=1e-6)
    centres = model.answers(spread(done).centre).prediction
    np.testing.assert_allclose(centres, done.predictions, atol=1e-6)
    item = int(items[0])
    shares = sum(part.share for part in model.explain(posterior, item))
    assert posterior.prior_mean[item] + shares == pytest.approx(posterior.mean[item])
    again = load_model(save_model(model, tmp_path / "m.npz"))
    assert again.groups.labels == model.groups.labels
    assert np.array_equal(again.predict(*ids).values, expected)
    alone = load_model(save_model(model, tmp_path / "n.npz", with_ratings=False))
    labels = model.groups.of_user(split.train.user_info, user)
    folded = alone.posterior(
        posterior.observed, posterior.values, alone.groups.covariates_of(labels)
    )
    np.testing.assert_allclose(folded.mean, posterior.mean, atol=1e-10)


def test_a_new_user_of_whom_nothing_is_known_starts_from_the_mean():
    model = run_fit(no_split(RATINGS), EXACT).model()
    nobody = model.posterior([], [])
    assert np.array_equal(nobody.mean, model.gaussian.mean)
    first, second = (
        model.posterior([], [], model.groups.covariates_of([f"likes {which}"])).mean
        for which in ("first", "second")
    )
    half = ITEMS // 2
    assert (first - second)[:half].mean() > 0.4 > -0.4 > (first - second)[half:].mean()


def test_covariates_that_are_not_the_models_are_refused():
    model = run_fit(no_split(RATINGS), EXACT).model()
    for wrong in (np.zeros(3), np.full(len(model.groups), np.nan), np.zeros((2, 2))):
        with pytest.raises(DataError, match="finite covariates"):
            model.posterior([0], [3.0], wrong)
    plain = run_fit(no_split(RATINGS), FitSettings(iterations=2)).model()
    with pytest.raises(ConfigError, match="knows of no groups"):
        plain.posterior([0], [3.0], np.zeros(2))


def test_a_comparison_can_leave_attributes_out():
    split = weak_split(RATINGS, 0)
    method = method_named("ordinal:attributes=false", RATINGS.scale)
    without = method.predict(split, ThreadPool(1))
    expected = run_fit(split, replace(settings_for("ordinal"), attributes=False)).predictions
    assert np.array_equal(without, expected)
    used = method_named("ordinal", RATINGS.scale)
    assert used.identity != method.identity
    assert np.abs(used.predict(split, ThreadPool(1)) - without).max() > 0.01


def test_new_users_of_a_strong_split_bring_their_attributes():
    split = strong_split(RATINGS, 0)
    done = run_fit(split, EXACT)
    model, query = done.model(), split.query
    user, item = int(split.test_users[0]), int(split.test_items[0])
    known = model.covariates_of(query, user)
    posterior = model.posterior(*query.of_user(user), known)
    assert posterior.mean[item] == pytest.approx(done.predictions[0])
    assert np.abs(known).max() > 0


@pytest.mark.parametrize("stop", [3, 5])
def test_an_interrupted_fit_goes_on_to_the_same_digits(stop, tmp_path):
    split = weak_split(RATINGS, 0)
    whole = run_fit(split, ORDERED)
    half = run_fit(split, ORDERED, on_iteration=lambda record: record.iteration == stop)
    save_checkpoint(tmp_path, Checkpoint("key", 0, (), half.state))
    loaded = load_checkpoint(tmp_path, "key")
    more = Fit(split, ORDERED, start=loaded.state)
    for _ in more.records():
        pass
    assert np.array_equal(more.predictions, whole.predictions)


def test_a_state_with_other_groups_is_refused():
    split = weak_split(RATINGS, 0)
    state = run_fit(split, EXACT).state
    with pytest.raises(StateError):
        Fit(split, replace(EXACT, attributes=False), start=state)
    fewer = replace(state.gaussian, coefficients=state.gaussian.coefficients[:, :-1])
    with pytest.raises(StateError):
        Fit(split, EXACT, start=replace(state, gaussian=fewer))


def test_runs_and_splits_differ_where_models_read_other_attributes_or_genres():
    bare = replace(RATINGS, user_info={})
    drama = replace(RATINGS, item_info=replace(RATINGS.item_info, genres=(("Drama",),) * ITEMS))
    turned = replace(RATINGS, user_info=dict(reversed(RATINGS.user_info.items())))
    assert bare.side_sha256 == "" and turned.side_sha256 == RATINGS.side_sha256
    assert len({own.side_sha256 for own in (bare, drama, RATINGS)}) == 3
    assert len({own.sha256 for own in (bare, drama, RATINGS)}) == 1  # the same ratings
    assert len({held_out_of(weak_split(own, 0)).key for own in (bare, drama, RATINGS)}) == 3
    for model, count in (("paper", 1), ("exact", 3), ("ordinal", 3), ("mixture", 3)):
        config = ExperimentConfig(fit=settings_for(model), filter=Filter(0, 0))
        keys = {key_of(config, describe(prepare(config, own))) for own in (bare, drama, RATINGS)}
        assert len(keys) == count, model
    older = {"sha256": RATINGS.sha256, "scale": [1, 5, 1], "items": ITEMS}  # of an earlier version
    assert key_of(ExperimentConfig(), older) == key_of(
        ExperimentConfig(), {**older, "side_sha256": RATINGS.side_sha256}
    )
