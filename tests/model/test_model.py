"""The fitted model against the dense formulas: predict, fold in, recommend, explain."""

import dense_reference as dense
import numpy as np
import pytest
from making import STARS, random_table, ratings_of

from gmc_core.base.errors import ConfigError, DataError, NumericalError, UnknownIdError
from gmc_core.fitting.fit import run_fit
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.splits import no_split

USERS, ITEMS = 40, 12


def fitted(users=USERS, items=ITEMS, **settings):
    values, known = random_table(users, items, 0.4, seed=5)
    ratings = ratings_of(values, known)
    settings = {"epsilon": 0.3, "iterations": 4, **settings}
    return run_fit(no_split(ratings), FitSettings(**settings)).model(), values, known


def last_state(values, known, noise=0.0, epsilon=0.3):
    return dense.map_em(values, known, epsilon=epsilon, iterations=4, noise=noise)[-1]


def everyone(model):
    users, items = np.divmod(np.arange(USERS * ITEMS), ITEMS)
    return model.predict(users, items).values.reshape(USERS, ITEMS)


@pytest.mark.parametrize("noise", [0.0, 0.25])
def test_predictions_are_the_dense_estimates(noise):
    model, values, known = fitted(noise=noise)
    expected = last_state(values, known, noise).F
    np.testing.assert_allclose(everyone(model), expected, atol=1e-9)


def test_predictions_with_fewer_users_than_items():
    model, values, known = fitted(users=8, items=30)
    expected = last_state(values, known).F
    users, items = np.divmod(np.arange(8 * 30), 30)
    found = model.predict(users, items).values.reshape(8, 30)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_columns_predict():
    model, values, known = fitted(signals="columns")
    expected = last_state(*dense.columns(values, known)).F.T
    np.testing.assert_allclose(everyone(model), expected, atol=1e-9)


def test_blocks_predict():
    model, values, known = fitted(signals="blocks", block=(3, 5))
    state = last_state(*dense.blocks(values, known, 3, 5))
    expected = dense.from_blocks(state.F, (USERS, ITEMS), 3, 5)
    np.testing.assert_allclose(everyone(model), expected, atol=1e-9)


def test_float32_is_close():
    exact, _, _ = fitted()
    single, _, _ = fitted(dtype="float32")
    np.testing.assert_allclose(everyone(single), everyone(exact), atol=2e-4)


def test_unknown_ids_are_flagged_and_never_silently_averaged():
    model, _, _ = fitted()
    found = model.predict([2, 999, 2, 999], [3, 3, 777, 777])
    assert found.known_user.tolist() == [True, False, True, False]
    assert found.known_item.tolist() == [True, True, False, False]
    assert found.values[1] == model.item_means[3]
    assert np.isnan(found.values[2:]).all()


@pytest.mark.parametrize("noise", [0.0, 0.25])
def test_posterior_is_the_conditional_gaussian(noise):
    model, values, known = fitted(noise=noise)
    state = last_state(values, known, noise)
    observed = np.flatnonzero(known[3])
    posterior = model.posterior(observed, values[3, observed])
    variance = dense.posterior_variance(state.mu, state.Sigma, noise, observed)
    np.testing.assert_allclose(posterior.mean, state.F[3], atol=1e-9)
    np.testing.assert_allclose(posterior.variance, variance, atol=1e-9)
    # Rounding can leave the reference a hair below 0 at observed items.
    expected = np.sqrt(np.maximum(variance, 0) + noise)
    np.testing.assert_allclose(posterior.rating_sd, expected, atol=1e-6)


def test_folding_in_a_training_user_gives_the_stored_estimate():
    model, values, known = fitted()
    for user in range(USERS):
        items = np.flatnonzero(known[user])
        order = np.random.default_rng(user).permutation(len(items))
        folded = model.posterior(items[order], values[user, items[order]])
        np.testing.assert_allclose(folded.mean, model.posterior_of(user).mean, atol=1e-10)
        np.testing.assert_allclose(
            folded.mean, model.predict([user] * ITEMS, range(ITEMS)).values, atol=1e-8
        )


def test_nothing_rated_gives_the_prior():
    model, _, _ = fitted()
    prior = model.posterior([], [])
    np.testing.assert_array_equal(prior.mean, model.gaussian.mean)
    np.testing.assert_allclose(prior.variance, model.gaussian.covariance.diagonal())


def test_explanation_sums_exactly():
    model, _, _ = fitted(noise=0.1)
    posterior = model.posterior_of(4)
    for item in range(ITEMS):
        shares = model.explain(posterior, item)
        total = model.gaussian.mean[item] + sum(part.share for part in shares)
        assert total == pytest.approx(posterior.mean[item], abs=1e-10)
        sizes = [abs(part.share) for part in shares]
        assert sizes == sorted(sizes, reverse=True)


def test_recommendations_are_unseen_and_best_first():
    model, _, known = fitted()
    posterior = model.posterior_of(5)
    found = model.recommend(posterior, top=100)
    assert {item.item for item in found} == set(np.flatnonzero(~known[5]))
    predicted = [item.predicted for item in found]
    assert predicted == sorted(predicted, reverse=True)
    assert all(item.sd > 0 for item in found)
    popular = model.recommend(posterior, top=100, min_ratings=10)
    assert all(item.n_ratings >= 10 for item in popular)
    # Only user 1 has rated item 0.
    assert 0 not in {item.item for item in popular}
    assert model.recommend(posterior, top=0) == []


def test_recommending_does_not_change_the_model():
    model, _, _ = fitted()
    before = model.item_counts.copy()
    model.recommend(model.posterior_of(5), top=3)
    np.testing.assert_array_equal(model.item_counts, before)


def test_user_who_rated_everything_gets_no_recommendation():
    model, _, _ = fitted()
    assert model.recommend(model.posterior_of(1)) == []


def test_most_informative_equals_brute_force():
    model, values, known = fitted(noise=0.2)
    posterior = model.posterior_of(6)
    candidates = np.flatnonzero(~known[6])
    found = model.most_informative(posterior, candidates, top=len(candidates))
    before = posterior.variance.sum()
    gains = {}
    for item in candidates:
        observed = np.append(posterior.observed, item)
        after = model.posterior(observed, np.append(posterior.values, 3.0))
        gains[int(item)] = before - after.variance.sum()
    assert [item for item, _ in found] == sorted(gains, key=gains.__getitem__, reverse=True)
    for item, gain in found:
        assert gain == pytest.approx(gains[item], abs=1e-9)


def test_posterior_covariance_is_the_dense_one():
    model, values, known = fitted()
    state = last_state(values, known)
    observed = np.flatnonzero(known[3])
    U = dense.masking_operator(known[3])
    expected = dense.posterior_covariance(U, state.Sigma, np.zeros((ITEMS, ITEMS)))
    posterior = model.posterior(observed, values[3, observed])
    some, others = np.array([0, 3, 7]), np.array([1, 2])
    np.testing.assert_allclose(
        posterior.covariance(some, others), expected[np.ix_(some, others)], atol=1e-9
    )


@pytest.mark.parametrize(
    ("items", "values", "problem"),
    [
        ([1, 1], [3, 4], "twice"),
        ([99], [3], "positions"),
        ([1], [9], "scale"),
        ([1], [float("nan")], "not a number"),
        ([1, 2], [3], "one rating per item"),
    ],
)
def test_wrong_ratings_are_refused(items, values, problem):
    model, _, _ = fitted()
    with pytest.raises(DataError, match=problem):
        model.posterior(items, values)


def test_only_rows_fold_in():
    model, _, _ = fitted(signals="columns")
    assert not model.folds_in
    with pytest.raises(ConfigError, match="rows"):
        model.posterior([1], [3])


def test_unknown_user_is_an_error():
    model, _, _ = fitted()
    with pytest.raises(UnknownIdError, match="999"):
        model.posterior_of(999)


def test_no_iterations_predict_the_initial_value():
    model, _, known = fitted(iterations=0)
    found = everyone(model)
    assert np.all(found[~known] == 3.0)


def test_singular_covariance_has_a_remedy():
    values, known = random_table(6, 10, 0.9, seed=1)
    values[:] = STARS.midpoint + 1
    model = run_fit(
        no_split(ratings_of(values, known)), FitSettings(epsilon=0.3, iterations=1)
    ).model()
    broken = type(model.gaussian.covariance)
    matrix = np.ones((10, 10))
    if hasattr(model.gaussian.covariance, "factor"):
        covariance = broken(np.ones((10, 1)), 0.0)
    else:
        covariance = broken(matrix)
    from dataclasses import replace

    model = replace(model, gaussian=replace(model.gaussian, covariance=covariance))
    with pytest.raises(NumericalError, match="larger ε"):
        model.posterior([1, 2], [3, 4])
