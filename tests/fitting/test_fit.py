"""Fits, experiments, costs, signals and noise."""

from __future__ import annotations

import json
from dataclasses import replace

import dense_reference as reference
import numpy as np
import pytest
from making import random_table, ratings_of

from gmc_core.base.errors import ConfigError, DataError, NumericalError, ResourceError
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.cost import check_memory, estimate
from gmc_core.fitting.experiment import run_experiment
from gmc_core.fitting.fit import Fit, IterationRecord, StateError, run_fit
from gmc_core.fitting.preparing import Prepared, make_split
from gmc_core.gaussian.iterate import EmState
from gmc_core.gaussian.linalg.threads import Cancelled, ThreadPool, available_cores, blas_threads
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.settings import FitSettings
from gmc_core.gaussian.signals import Layout, Signals
from gmc_core.protocol.filters import Filter
from gmc_core.protocol.splits import no_split, strong_split, weak_split
from gmc_core.runs.store.artifacts import Checkpoint, load_checkpoint, save_checkpoint

LOOSE = Filter(min_user_ratings=2, min_item_ratings=1)


@pytest.fixture(scope="module")
def ratings():
    values, known = random_table(40, 15, fill=0.5, seed=3)
    return ratings_of(values, known)


@pytest.mark.parametrize("signals", ["rows", "columns", "blocks"])
def test_weak_predictions_are_the_references_estimates(ratings, signals):
    split = weak_split(ratings, seed=0, n_users=30)
    known = np.zeros((split.train.n_users, 15), bool)
    known[split.train.rows, split.train.indices] = True
    values = split.train.to_csr().toarray()
    arranged = {
        "rows": lambda: (values, known),
        "columns": lambda: reference.columns(values, known),
        "blocks": lambda: reference.blocks(values, known, 4, 5),
    }[signals]()
    expected = reference.map_em(*arranged, epsilon=0.3, iterations=3)[-1].F
    if signals == "columns":
        expected = expected.T
    elif signals == "blocks":
        expected = reference.from_blocks(expected, values.shape, 4, 5)
    running = run_fit(split, FitSettings(iterations=3, signals=signals, block=(4, 5)))
    np.testing.assert_allclose(
        running.predictions, expected[split.test_users, split.test_items], atol=1e-8
    )


def test_strong_predictions_fold_in_the_novel_users(ratings):
    split = strong_split(ratings, seed=1, n_train=25, n_test=10)
    running = run_fit(split, FitSettings(iterations=3))
    model = running.model()
    for k in range(split.n_test):
        known = split.query.of_user(split.test_users[k])
        posterior = model.posterior(*known)
        assert running.predictions[k] == pytest.approx(posterior.mean[split.test_items[k]])


@pytest.mark.parametrize("signals", ["columns", "blocks"])
def test_strong_generalization_needs_rows_and_says_why(ratings, signals):
    split = strong_split(ratings, seed=1, n_train=25, n_test=10)
    with pytest.raises(ConfigError, match="Use rows as signals"):
        Fit(split, FitSettings(signals=signals))


def test_no_iterations_predict_the_initial_value(ratings):
    running = run_fit(
        weak_split(ratings, seed=0, n_users=20), FitSettings(iterations=0, initial=2.5)
    )
    np.testing.assert_array_equal(running.predictions, 2.5)
    assert running.scores().n == 20


@pytest.mark.parametrize("model", ["paper", "exact", "mixture"])
def test_a_stored_state_of_other_ratings_or_settings_is_refused(ratings, model):
    settings = replace(settings_for(model), iterations=3)
    split = weak_split(ratings, seed=0, n_users=20)
    state = run_fit(split, settings).state
    Fit(split, settings, start=state)
    fewer = weak_split(ratings, seed=0, n_users=19)
    narrower = weak_split(ratings.select(items=np.arange(15) > 2), seed=0, n_users=20)
    for other in (fewer, narrower):
        with pytest.raises(StateError, match="iteration 3 .* Begin without it"):
            Fit(other, settings, start=state)
    for changed in (replace(settings, dtype="float32"), FitSettings(model="mixture", components=4)):
        with pytest.raises(StateError):
            Fit(split, changed, start=state)
    with pytest.raises(StateError):
        Fit(split, settings, start=replace(state, weights=state.weights[..., :-1]))
    with pytest.raises(StateError):
        Fit(split, settings, start=replace(state, values=np.zeros(1)))
    with pytest.raises(StateError):
        Fit(split, settings, start=EmState(3, state.gaussian, np.zeros(0)))


def test_whole_numbers_as_settings_resolve_to_the_same_ones(ratings):
    for one, other in ((FitSettings(epsilon=0), FitSettings(epsilon=0.0)),
                       (FitSettings(initial=0), FitSettings(initial=0.0))):  # fmt: skip
        resolved = [json.dumps(s.resolved(ratings.scale).as_dict()) for s in (one, other)]
        assert resolved[0] == resolved[1]


def test_callback_sees_every_record_and_can_stop(ratings):
    split = weak_split(ratings, seed=0, n_users=20)
    seen = []
    run_fit(split, FitSettings(iterations=4), on_iteration=seen.append)
    assert [record.iteration for record in seen] == [1, 2, 3, 4]
    stopped = run_fit(split, FitSettings(iterations=9), on_iteration=lambda r: r.iteration == 2)
    assert stopped.state.iteration == 2


def test_records_carry_the_scores_and_survive_json(ratings):
    split = weak_split(ratings, seed=0, n_users=20)
    running = Fit(split, FitSettings(iterations=2, objective=True))
    records = list(running.records())
    assert records[-1].nmae == running.scores().nmae
    assert all(record.map_objective is not None for record in records)
    again = IterationRecord.from_dict(json.loads(json.dumps(records[-1].as_dict())))
    assert again == records[-1]


def test_without_hold_out_the_figures_are_none(ratings):
    running = Fit(no_split(ratings), FitSettings(iterations=1))
    (record,) = running.records()
    assert record.nmae is None
    assert record.prediction_change is None
    assert running.scores() is None


def test_same_seed_same_bits_other_seed_other_split(ratings):
    config = ExperimentConfig(filter=LOOSE, weak_users=30, fit=FitSettings(iterations=2))
    prepared = Prepared(ratings, None, None)
    one, _ = run_experiment(config, prepared=prepared)
    two, _ = run_experiment(config, prepared=prepared)
    assert one["repetitions"][0]["scores"] == two["repetitions"][0]["scores"]
    first, second = (make_split(config, prepared, seed).test_items for seed in (0, 1))
    assert not np.array_equal(first, second)


def test_repetitions_are_pooled(ratings):
    config = ExperimentConfig(
        filter=LOOSE, weak_users=30, repetitions=3, fit=FitSettings(iterations=2)
    )
    result, _ = run_experiment(config, prepared=Prepared(ratings, None, None))
    assert [repetition["seed"] for repetition in result["repetitions"]] == [0, 1, 2]
    assert result["summary"]["n"] == 90
    means = np.mean([r["scores"]["nmae"] for r in result["repetitions"]])
    assert result["summary"]["nmae"] == pytest.approx(means)
    json.dumps(result)


@pytest.mark.parametrize(
    ("model", "before", "same"),
    [
        ("paper", "e216083fd2ef7f7c", True),
        ("exact", "219f57374d2ff45c", True),
        ("mixture", "f8edfa03eecff867", True),
        ("ordinal", "f880fc4ee6005962", False),
    ],
)
def test_only_a_model_whose_figures_moved_is_computed_again(model, before, same):
    """The keys of version 5, by which stored runs are found."""
    key = ExperimentConfig(fit=settings_for(model)).key("abc")
    assert key.startswith(before) == same


def test_configuration_survives_json_and_its_key_ignores_the_path():
    config = ExperimentConfig(fit=FitSettings(epsilon=0.1, block=(3, 4)), filter=Filter(5, 1, 99))
    again = ExperimentConfig.from_dict(json.loads(json.dumps(config.as_dict())))
    assert again == config
    moved = ExperimentConfig.from_dict({**config.as_dict(), "data": "elsewhere.zip"})
    assert moved.key("abc") == config.key("abc")
    assert config.key("abc") != config.key("abd")
    other = ExperimentConfig.from_dict({**config.as_dict(), "seed": 1})
    assert other.key("abc") != config.key("abc")
    with pytest.raises(ConfigError, match="Unknown settings: epsilonn"):
        FitSettings.from_dict({"epsilonn": 1})


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": -1}, {"epsilon": float("nan")}, {"iterations": -1}, {"iterations": 1.5},
        {"noise": -0.1}, {"signals": "diagonals"}, {"dtype": "float16"}, {"initial": float("inf")},
    ],
)  # fmt: skip
def test_settings_without_meaning_are_refused(wrong):
    with pytest.raises(ConfigError):
        FitSettings(**wrong)


def test_defaults_follow_the_scale(ratings):
    stars = FitSettings().resolved(ratings.scale)
    assert (stars.epsilon, stars.initial) == (0.3, 3.0)
    jester = FitSettings().resolved(type(ratings.scale)(-10, 10, None))
    assert (jester.epsilon, jester.initial) == (pytest.approx(0.3 * 25), 0.0)


# Noise -------------------------------------------------------------------------


def test_variances_from_a_file_follow_the_item_ids(tmp_path, ratings):
    path = tmp_path / "noise.csv"
    lines = [f"{item},{0.1 + item / 100}" for item in reversed(range(15))]
    path.write_text("item,variance\n" + "\n".join(lines), encoding="utf-8")
    running = Fit(no_split(ratings), FitSettings(noise=str(path), iterations=1))
    np.testing.assert_allclose(running.noise.variances(np.arange(15)), 0.1 + np.arange(15) / 100)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("0,0.1\n", "14 items have no variance"),
        ("0.1\n0.2\n", "2 variances for 15 items"),
        ("0,0.1\n1,minus\n", "line 2"),
        ("0,0.1\n1,-3\n", "line 2"),
    ],
)
def test_faulty_noise_files_name_the_fault(tmp_path, ratings, text, complaint):
    path = tmp_path / "noise.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=complaint):
        Fit(no_split(ratings), FitSettings(noise=str(path)))


def test_item_variances_have_no_meaning_for_columns(tmp_path, ratings):
    path = tmp_path / "noise.csv"
    path.write_text("0.1\n" * 15, encoding="utf-8")
    with pytest.raises(ConfigError, match="need rows as signals"):
        Fit(no_split(ratings), FitSettings(noise=str(path), signals="columns"))


def test_a_noise_matrix_from_a_file_equals_its_variances(tmp_path, ratings):
    path = tmp_path / "noise.npy"
    np.save(path, 0.5 * np.eye(15))
    one = run_fit(no_split(ratings), FitSettings(noise=str(path), iterations=2))
    two = run_fit(no_split(ratings), FitSettings(noise=0.5, iterations=2))
    np.testing.assert_allclose(one.state.weights, two.state.weights, atol=1e-12)


@pytest.mark.parametrize(
    "value",
    [[1.0, 2.0], np.ones((3, 2)), -np.eye(3), [[1, 2, 0], [0, 1, 0], [0, 0, 1]], [-1, 1, 1]],
)
def test_a_noise_that_is_no_covariance_is_refused(value):
    with pytest.raises(ConfigError):
        Noise.of(value, 3)


# Signals -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rows", "columns", "blocks"])
def test_every_rating_is_found_where_locate_says(ratings, kind):
    layout = Layout(kind, 40, 15, (7, 4))
    signals = Signals.of(ratings, layout)
    where, coordinate = layout.locate(ratings.rows, ratings.indices)
    table = np.full((layout.count, layout.dimension), np.nan)
    table[np.repeat(np.arange(signals.count), signals.sizes), signals.indices] = signals.values
    np.testing.assert_array_equal(table[where, coordinate], ratings.values)
    assert np.isfinite(table).sum() == len(ratings)


def test_take_keeps_the_order_that_was_asked_for(ratings):
    signals = Signals.of(ratings, Layout("rows", 40, 15))
    part = signals.take(np.array([5, 1, 5]))
    assert part.sizes.tolist() == signals.sizes[[5, 1, 5]].tolist()
    own = slice(signals.indptr[5], signals.indptr[6])
    np.testing.assert_array_equal(part.values[: part.sizes[0]], signals.values[own])


def test_a_breakdown_while_predicting_names_the_iteration(monkeypatch):
    table = ratings_of(*random_table(40, 12, 0.6, seed=1))
    running = Fit(strong_split(table, 0, 20, 10), FitSettings(0.3))

    def broken(*_, **__):
        raise NumericalError("not positive definite")

    monkeypatch.setattr("gmc_core.fitting.fit.predict_pairs", broken)
    with pytest.raises(NumericalError, match="iteration 1") as caught:
        list(running.records())
    assert caught.value.iteration == 1
    assert running.state.iteration == 0


# Cost --------------------------------------------------------------------------


def test_cost_counts_the_true_sum_of_cubes():
    cost = estimate(np.array([10, 20, 300]), 1000, threads=1)
    assert cost.solve_flops == pytest.approx((10**3 + 20**3 + 300**3) / 3)
    assert cost.paper_flops == pytest.approx(3 * 1000**3 * (330 / 3000) ** 3 / 3)
    assert cost.paper_flops < cost.solve_flops / 6


def test_memory_counts_both_covariances_of_an_iteration():
    few = np.full(400, 600)  # the solves need 600² numbers beside the two, F less
    cost = estimate(few, 700, "float32", form="product", threads=1)
    assert cost.memory_bytes >= (2 * 700**2 + 600**2) * 4
    more = estimate(few, 700, "float32", form="product", threads=1, objective=True)
    assert more.memory_bytes >= 2 * 700**2 * 4 + 700**2 * 8
    assert estimate(few, 2000, form="congruence", threads=1).memory_bytes >= 3 * 2000**2 * 8
    exact = estimate(few, 700, exact=True, threads=1)
    ordered = estimate(few, 700, exact=True, threads=1, ordinal=True, covariates=5)
    # Latent responses, new ones, their bounds; B x and what it leaves; X, B, ΔB and its root form.
    extra = 6 * few.sum() * 8 + (len(few) + 3 * 700) * 5 * 8
    assert ordered.memory_bytes - exact.memory_bytes == extra


def test_a_test_file_needs_the_pair_protocol():
    for files in ({"test_file": "b.csv"}, {"protocol": "pair", "train_file": "a.csv"}):
        with pytest.raises(ConfigError, match="belong together"):
            ExperimentConfig(**files)


def test_too_large_a_fit_is_refused_with_the_remedy():
    cost = estimate(np.full(1000, 50), 200_000, threads=2)
    with pytest.raises(ResourceError, match=r"Keep fewer items .* float32"):
        check_memory(cost, limit=10**9)
    check_memory(estimate(np.full(100, 5), 50), limit=10**9)


def test_a_memory_limit_that_is_no_number_is_refused(monkeypatch):
    monkeypatch.setenv("GMC_MEMORY_LIMIT", "plenty")
    with pytest.raises(ConfigError, match="gigabytes"):
        check_memory(estimate(np.full(100, 5), 50))


def test_thread_settings_are_read_and_restored(monkeypatch):
    monkeypatch.setenv("GMC_THREADS", "3")
    assert available_cores() == 3
    monkeypatch.setenv("GMC_THREADS", "many")
    with pytest.raises(ConfigError, match="GMC_THREADS"):
        available_cores()
    from threadpoolctl import threadpool_info

    before = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    with blas_threads(1):
        inside = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    after = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert set(inside) == {1}
    assert after == before
    ThreadPool(1).check()


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("stop", [1, 2, 4])
def test_a_fit_stopped_in_an_e_step_has_its_last_state(monkeypatch, noise, stop):
    """Where the weights are as large as Σ they were let go, and come back the same."""
    split = weak_split(ratings_of(*random_table(60, 12, 0.5, 5)), 0)
    settings = FitSettings(iterations=6, noise=noise)
    states = []
    whole = Fit(split, settings, team=ThreadPool(1))
    states.append(whole.state)
    for _ in whole.records():
        states.append(whole.state)
    stopped = []

    def dropping(self, original=Fit._drop_weights):
        original(self)
        if self.iteration == stop - 1:
            stopped.append(bool(self._state.weights.size))

    monkeypatch.setattr(Fit, "_drop_weights", dropping)
    running = Fit(split, settings, team=ThreadPool(1, lambda: bool(stopped)))
    with pytest.raises(Cancelled):
        list(running.records())
    assert stopped == [False]  # so the test tests something
    assert running.iteration == running.state.iteration == stop - 1
    np.testing.assert_array_equal(running.state.weights, states[stop - 1].weights)
    rest = Fit(split, settings, start=running.state, team=ThreadPool(1))
    for _ in rest.records():
        pass
    np.testing.assert_array_equal(rest.predictions, whole.predictions)


def test_a_fit_keeps_small_weights():
    running = Fit(weak_split(ratings_of(*random_table(30, 60, 0.1, 5)), 0))
    running._drop_weights()
    assert len(running._state.weights) == len(running.split.train)


@pytest.mark.parametrize("stop", [2, 4, 5])
def test_a_saved_state_keeps_latent_responses_and_learned_noise(tmp_path, stop):
    split = weak_split(ratings_of(*random_table(60, 12, 0.5, 5)), 0)
    settings = replace(settings_for("ordinal"), iterations=7, learn_noise=True)
    whole, half = Fit(split, settings), Fit(split, settings)
    records = list(whole.records())
    for record in half.records():
        if record.iteration == stop:
            break
    save_checkpoint(tmp_path, Checkpoint("key", 0, tuple(records[:stop]), half.state))
    found = load_checkpoint(tmp_path, "key")
    assert found is not None and found.state.noise == half.state.noise
    resumed = Fit(split, settings, start=found.state)
    again = list(resumed.records())
    assert [r.noise for r in again] == [r.noise for r in records[stop:]]
    assert len({r.noise for r in records}) == 5  # three iterations of MAP-EM, four of exact EM
    np.testing.assert_array_equal(resumed.predictions, whole.predictions)
