"""MAP-EM against an independent dense implementation, and its properties."""

from __future__ import annotations

import weakref

import dense_reference as reference
import numpy as np
import pytest
from making import estimates_of, random_table, signals_of

from gmc_core.base.errors import NumericalError
from gmc_core.gaussian.em import initial_state, map_em
from gmc_core.gaussian.linalg import solve
from gmc_core.gaussian.linalg.threads import Cancelled, ThreadPool
from gmc_core.gaussian.mstep import FORMS, choose_form, step_flops
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.signals import Layout

SHAPES = {"more users than items": (40, 15), "fewer users than items": (12, 33)}


def noise_of(kind: str, dimension: int):
    rng = np.random.default_rng(5)
    if kind == "none":
        return 0.0
    if kind == "scalar":
        return 0.4
    if kind == "variances":
        return rng.random(dimension) + 0.1
    root = rng.normal(size=(dimension, dimension))
    return root @ root.T / dimension + 0.1 * np.eye(dimension)


def run(signals, *, iterations=4, epsilon=0.3, noise=0.0, dtype="float64", form=None, **options):
    return list(
        map_em(
            signals,
            options.pop("start", None) or initial_state(signals, 3.0, dtype),
            epsilon=epsilon,
            iterations=iterations,
            noise=Noise.of(noise, signals.dimension),
            team=options.pop("team", None) or ThreadPool(2),
            form=form,
            **options,
        )
    )


def covariance_of(step):
    everything = np.arange(step.state.gaussian.dimension)
    return step.state.gaussian.covariance.submatrix(everything, everything)


def assert_same(steps, expected, signals, tolerance=1e-8):
    assert len(steps) == len(expected)
    for step, state in zip(steps, expected, strict=True):
        np.testing.assert_allclose(step.state.gaussian.mean, state.mu, atol=tolerance)
        np.testing.assert_allclose(covariance_of(step), state.Sigma, atol=tolerance)
        np.testing.assert_allclose(estimates_of(signals, step.state), state.F, atol=tolerance)


@pytest.mark.parametrize("kind", ["none", "scalar", "variances", "full"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("form", FORMS)
def test_equals_the_dense_reference_for_every_form_and_noise(form, shape, kind):
    values, known = random_table(*shape, fill=0.3, seed=1)
    noise = noise_of(kind, shape[1])
    expected = reference.map_em(values, known, epsilon=0.3, iterations=4, noise=noise)
    signals = signals_of(values, known)
    steps = run(signals, noise=noise, form=form, objective=True)
    assert_same(steps, expected, signals)
    for step, state in zip(steps, expected, strict=True):
        assert step.log_likelihood == pytest.approx(state.log_likelihood, rel=1e-9)
        assert step.map_objective == pytest.approx(state.map_objective, rel=1e-9)
        assert step.penalised_objective == pytest.approx(state.penalised_objective, rel=1e-9)


@pytest.mark.parametrize("kind", ["none", "scalar", "variances", "full"])
def test_equals_the_dense_reference_for_columns(kind):
    values, known = random_table(20, 13, fill=0.4, seed=2)
    layout = Layout("columns", 20, 13)
    noise = noise_of(kind, layout.dimension)
    expected = reference.map_em(
        *reference.columns(values, known), epsilon=0.3, iterations=3, noise=noise
    )
    signals = signals_of(values, known, layout)
    assert_same(run(signals, noise=noise, iterations=3), expected, signals)


@pytest.mark.parametrize("block", [(3, 4), (5, 5), (1, 7), (25, 15)])
@pytest.mark.parametrize("kind", ["none", "scalar", "variances", "full"])
def test_equals_the_dense_reference_for_blocks_with_ragged_edges(block, kind):
    values, known = random_table(20, 13, fill=0.4, seed=3)
    layout = Layout("blocks", 20, 13, block)
    noise = noise_of(kind, layout.dimension)
    expected = reference.map_em(
        *reference.blocks(values, known, *block), epsilon=0.3, iterations=3, noise=noise
    )
    signals = signals_of(values, known, layout)
    assert_same(run(signals, noise=noise, iterations=3), expected, signals)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_small_and_large_systems_agree_with_the_reference(dtype, monkeypatch):
    """Sizes on both sides of the limit for lanes, odd and even, and of LAPACK's panels."""
    rng = np.random.default_rng(0)
    values, known = random_table(40, 230, fill=0.0, seed=4)
    for user in range(2, 40):
        known[user, rng.permutation(230)[: 1 + 6 * (user - 2)]] = True
    signals = signals_of(values, known)
    expected = reference.map_em(values, known, epsilon=0.3, iterations=2)
    tolerance = 1e-8 if dtype == "float64" else 2e-3
    for limit in (0, 20, 77, 256):
        monkeypatch.setattr(solve, "LANE_LIMIT", limit)
        steps = run(signals, iterations=2, dtype=dtype)
        assert_same(steps, expected, signals, tolerance)
        assert steps[-1].log_likelihood == pytest.approx(
            expected[-1].log_likelihood, rel=1e-9 if dtype == "float64" else 1e-4
        )


def test_penalised_objective_never_falls():
    values, known = random_table(60, 20, fill=0.3, seed=6)
    for noise in (0.0, 0.5):
        steps = run(signals_of(values, known), iterations=25, noise=noise, objective=True)
        objective = np.array([step.penalised_objective for step in steps])
        assert np.all(np.diff(objective) > -1e-7 * np.abs(objective[:-1]))


def test_order_of_users_has_no_effect_and_order_of_items_only_permutes():
    values, known = random_table(30, 12, fill=0.4, seed=7)
    rng = np.random.default_rng(1)
    users, items = rng.permutation(30), rng.permutation(12)
    plain = run(signals_of(values, known))[-1]
    shuffled = run(signals_of(values[users][:, items], known[users][:, items]))[-1]
    np.testing.assert_allclose(
        covariance_of(shuffled), covariance_of(plain)[np.ix_(items, items)], atol=1e-10
    )


def test_shifting_all_ratings_and_the_initial_value_shifts_only_the_mean():
    values, known = random_table(30, 12, fill=0.4, seed=8)
    signals = signals_of(values, known)
    shifted = type(signals)(signals.layout, signals.indptr, signals.indices, signals.values + 2)
    plain = run(signals)[-1]
    moved = run(shifted, start=initial_state(shifted, 5.0, "float64"))[-1]
    np.testing.assert_allclose(moved.state.gaussian.mean, plain.state.gaussian.mean + 2)
    np.testing.assert_allclose(covariance_of(moved), covariance_of(plain), atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_same_result_on_one_and_two_threads(form):
    values, known = random_table(50, 60, fill=0.4, seed=9)
    signals = signals_of(values, known)
    one = run(signals, form=form, team=ThreadPool(1))[-1]
    two = run(signals, form=form, team=ThreadPool(2))[-1]
    np.testing.assert_allclose(covariance_of(two), covariance_of(one), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_continuing_from_a_state_gives_the_same_bits(form):
    values, known = random_table(50, 20, fill=0.4, seed=10)
    signals = signals_of(values, known)
    whole = run(signals, iterations=6, form=form)
    half = run(signals, iterations=3, form=form)
    rest = run(signals, iterations=6, form=form, start=half[-1].state)
    assert [step.state.iteration for step in rest] == [4, 5, 6]
    np.testing.assert_array_equal(covariance_of(rest[-1]), covariance_of(whole[-1]))
    np.testing.assert_array_equal(rest[-1].state.weights, whole[-1].state.weights)


def test_the_state_to_continue_from_is_let_go():
    signals = signals_of(*random_table(60, 12, 0.6, seed=1))
    options = {"epsilon": 0.3, "noise": Noise.of(0.0, 12), "team": ThreadPool(1), "form": "product"}
    first = initial_state(signals, 3.0, np.float64)
    state = next(map_em(signals, first, iterations=1, **options)).state
    steps = map_em(signals, state, iterations=3, **options)
    covariance = weakref.ref(state.gaussian.covariance)
    del state
    next(steps)
    assert covariance() is None


def test_no_iterations_leave_the_initial_value():
    values, known = random_table(10, 6, fill=0.4, seed=11)
    signals = signals_of(values, known)
    assert run(signals, iterations=0) == []
    estimates = estimates_of(signals, initial_state(signals, 3.0, "float64"))
    np.testing.assert_allclose(estimates, np.where(known, values, 3.0))


def test_singular_covariance_is_an_error_that_names_iteration_and_remedy():
    values, known = random_table(6, 20, fill=0.9, seed=12)
    with pytest.raises(NumericalError, match=r"Iteration 1: .*Raise ε") as failure:
        run(signals_of(values, known), epsilon=0.0)
    assert failure.value.iteration == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_more_precision_is_a_remedy_in_float32_only(dtype):
    values, known = random_table(6, 20, fill=0.9, seed=12)
    with pytest.raises(NumericalError, match=f"not positive definite in {dtype}") as failure:
        run(signals_of(values, known), epsilon=0.0, dtype=dtype)
    assert ("compute in float64" in str(failure.value)) == (dtype == "float32")


@pytest.mark.parametrize("epsilon", [1e-6, 1e6])
def test_extreme_regularisation_stays_finite(epsilon):
    values, known = random_table(30, 12, fill=0.4, seed=13)
    steps = run(signals_of(values, known), iterations=30, epsilon=epsilon)
    assert all(np.isfinite(step.log_likelihood) for step in steps)
    assert np.all(np.isfinite(covariance_of(steps[-1])))


def test_hundred_iterations_with_fewer_users_than_items_stay_finite():
    values, known = random_table(8, 40, fill=0.5, seed=14)
    steps = run(signals_of(values, known), iterations=100)
    assert np.all(np.isfinite(covariance_of(steps[-1])))


def test_cancelling_ends_the_run_between_pieces_of_work():
    values, known = random_table(30, 12, fill=0.4, seed=15)
    asked = []

    def stop():
        asked.append(1)
        return len(asked) > 5

    with pytest.raises(Cancelled):
        run(signals_of(values, known), iterations=1000, team=ThreadPool(2, should_stop=stop))


def test_a_failure_in_one_thread_reaches_the_caller():
    def task(item, _):
        if item == 3:
            raise ValueError("broken piece")

    with pytest.raises(ValueError, match="broken piece"):
        ThreadPool(2).run(task, range(10), lambda: None)


def test_relative_change_is_that_of_the_matrices():
    values, known = random_table(30, 45, fill=0.4, seed=16)
    for form in FORMS:
        steps = run(signals_of(values, known), form=form)
        before, after = covariance_of(steps[-2]), covariance_of(steps[-1])
        expected = np.linalg.norm(after - before) / np.linalg.norm(before)
        assert steps[0].covariance_change is None
        assert steps[-1].covariance_change == pytest.approx(expected, rel=1e-6)


def test_the_form_with_the_fewest_flops_is_chosen():
    movielens = np.full(6040, 166)
    each_movie = np.full(36656, 68)
    few_users = np.full(60, 50)
    assert choose_form(movielens, 3592) == "product"
    assert choose_form(each_movie, 1621) == "congruence"
    assert choose_form(few_users, 9000) == "factor"
    assert "factor" not in step_flops(np.full(50, 5), 20)


@pytest.mark.parametrize("kind", ["none", "scalar", "variances", "full"])
def test_users_with_more_ratings_than_there_are_users_are_solved_in_the_factors_space(kind):
    values, known = random_table(5, 60, fill=0.7, seed=17)
    noise = noise_of(kind, 60)
    signals = signals_of(values, known)
    assert signals.sizes.max() > signals.count
    expected = reference.map_em(values, known, epsilon=0.3, iterations=3, noise=noise)
    steps = run(signals, noise=noise, iterations=3, form="factor", objective=True)
    assert_same(steps, expected, signals)
    assert steps[-1].log_likelihood == pytest.approx(expected[-1].log_likelihood, rel=1e-9)


def test_a_step_that_is_kept_is_not_overwritten_by_later_iterations():
    values, known = random_table(40, 15, fill=0.4, seed=18)
    signals = signals_of(values, known)
    noise, team = Noise.of(0.0, 15), ThreadPool(1)
    begin = initial_state(signals, 3.0, "float64")
    kept, copies = [], []
    for step in map_em(signals, begin, epsilon=0.3, iterations=7, noise=noise, team=team):
        if step.state.iteration % 2:
            kept.append(step)
            copies.append(step.state.gaussian.covariance.matrix.copy())
    for step, copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(step.state.gaussian.covariance.matrix, copy)
