"""The scikit-learn imputer, and the model of a plain table beneath it."""

import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import dense_reference as dense
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from gmc_core.base.errors import GmcError, NumericalError, ResourceError
from gmc_core.tables.imputer import GaussianImputer, ParameterError
from gmc_core.tables.table_model import choose_epsilon, fit_table
from gmc_core.tables.wide_table import WideTable, complete_table

ROOT = Path(__file__).resolve().parents[2]
MIXING = np.array([[1.0, 0.8, -0.6, 0.3], [0.0, 0.6, 0.5, -0.9]])
UNITS, SHIFTS = np.array([1.0, 1000.0, 1e-6, 20.0]), np.array([0.0, 5e4, 1e-5, 300.0])
COVARIANCE = (MIXING.T @ MIXING + 0.04 * np.eye(4)) * np.outer(UNITS, UNITS)


def measurements(rows=120, blanks=0.25, seed=0):
    """A whole table of two causes in four units, and which entries are hidden."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(rows, 2)) @ MIXING + 0.2 * rng.normal(size=(rows, 4))
    hidden = rng.random(table.shape) < blanks
    hidden[:2] = False
    return table * UNITS + SHIFTS, hidden


def with_blanks(**options):
    table, hidden = measurements(**options)
    return np.where(hidden, np.nan, table)


@parametrize_with_checks(
    [
        GaussianImputer(),
        GaussianImputer(method="paper", epsilon=0.2, keep_empty_features=False),
    ]
)
@pytest.mark.filterwarnings("ignore:Columns without any entry:UserWarning")
def test_what_scikit_learn_expects_of_an_imputer(estimator, check):
    check(estimator)


# Exact EM's first iteration, from no Gaussian, is the paper's without noise.
@pytest.mark.parametrize(("method", "noise"), [("paper", 0.0), ("paper", 0.2), ("exact", 0.0)])
def test_it_is_em_on_standardised_columns(method, noise):
    values = with_blanks(rows=30)
    known, means, sds = ~np.isnan(values), np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    em = dense.map_em if method == "paper" else dense.exact_em
    state = em((values - means) / sds, known, epsilon=0.1, iterations=6, noise=noise, initial=0.0)
    imputer = GaussianImputer(method=method, epsilon=0.1, iterations=6, tol=0, noise=noise)
    found = imputer.fit_transform(values)
    expected = state[-1].F * sds + means
    np.testing.assert_allclose(found[~known], expected[~known], rtol=1e-8)
    np.testing.assert_array_equal(found[known], values[known])
    np.testing.assert_allclose(imputer.mean_, state[-1].mu * sds + means, rtol=1e-8)
    np.testing.assert_allclose(
        imputer.covariance_ / np.outer(sds, sds), state[-1].Sigma, rtol=1e-8, atol=1e-9
    )
    np.testing.assert_allclose(
        imputer.log_likelihoods_, [step.log_likelihood for step in state], rtol=1e-8
    )
    score = (state[-1].log_likelihood - (known * np.log(sds)).sum()) / len(values)
    assert imputer.score(values) == pytest.approx(score, rel=1e-8)


def test_it_fills_as_the_command_line_does():
    values = with_blanks()
    names = tuple("abcd")
    table = WideTable("t.csv", names, values, (), (), np.arange(2, 2 + len(values)))
    expected = complete_table(table, epsilon=0.2, iterations=20, sd=True)
    imputer = GaussianImputer(method="paper", epsilon=0.2, tol=0).fit(values)
    np.testing.assert_array_equal(imputer.transform(values), expected.values)
    np.testing.assert_array_equal(imputer.transform_sd(values), expected.sd)


def test_exact_em_recovers_a_planted_covariance():
    values = with_blanks(rows=4000, blanks=0.3)
    spread = np.sqrt(np.diag(COVARIANCE))
    exact = GaussianImputer(epsilon=0, iterations=60, tol=0).fit(values)
    paper = GaussianImputer(method="paper", epsilon=1e-3, iterations=60, tol=0).fit(values)
    errors = [
        np.abs((found.covariance_ - COVARIANCE) / np.outer(spread, spread)).max()
        for found in (exact, paper)
    ]
    assert errors[0] < 0.06  # three standard errors of a correlation
    assert errors[1] > errors[0]
    assert np.all(np.abs(exact.mean_ - SHIFTS) < 0.06 * spread)
    assert np.all(np.diff(exact.log_likelihoods_)[1:] > -1e-6)


def test_standard_deviations_cover_the_errors():
    table, hidden = measurements(rows=1500)
    values = np.where(hidden, np.nan, table)
    imputer = GaussianImputer(epsilon=0.01).fit(values)
    sd = imputer.transform_sd(values)
    assert np.all(sd[~hidden] == 0)
    apart = ((imputer.transform(values) - table)[hidden] / sd[hidden]) ** 2
    assert 0.9 < np.sqrt(apart.mean()) < 1.1


def test_auto_takes_the_epsilon_with_the_least_error_of_hidden_entries():
    # Pure noise wants the largest ε, a table of few causes a small one.
    rng = np.random.default_rng(0)
    noise = GaussianImputer().fit(rng.normal(size=(60, 12)))
    assert noise.epsilon_ == noise.epsilons_.max()
    causes = GaussianImputer().fit(with_blanks(rows=400))
    assert causes.epsilon_ < 0.1
    best = np.argmin(causes.epsilon_errors_)
    assert causes.epsilon_ == causes.epsilons_[best]
    assert 0 < causes.epsilon_errors_[best] < 0.8  # 1 for the columns' means
    again = clone(causes).fit(with_blanks(rows=400))
    np.testing.assert_array_equal(again.epsilon_errors_, causes.epsilon_errors_)


def test_auto_never_looks_at_what_the_table_does_not_hold():
    values = with_blanks(rows=60)
    rng = np.random.default_rng(3)
    choice = choose_epsilon(values, rng, default=0.1)
    moved = choose_epsilon(values * 7 + 3, np.random.default_rng(3), default=0.1)
    assert choice.epsilon == moved.epsilon
    np.testing.assert_allclose(choice.errors, moved.errors, rtol=1e-9)
    few = choose_epsilon(values[:5], rng, default=0.1)
    assert (few.epsilon, few.tried, few.hidden) == (0.1, (), 0)


def test_a_frame_keeps_its_names_and_its_index():
    frame = pd.DataFrame(with_blanks(), columns=list("abcd")).rename(index=lambda k: f"row {k}")
    imputer = GaussianImputer(epsilon=0.1).set_output(transform="pandas")
    found = imputer.fit_transform(frame)
    assert list(found.columns) == list("abcd") and list(found.index) == list(frame.index)
    assert not found.isna().to_numpy().any()
    with pytest.raises(ValueError, match="feature names"):
        imputer.transform(frame.rename(columns={"a": "z"}))


def test_columns_without_entries():
    values = with_blanks()
    values[:, 1] = np.nan
    kept = GaussianImputer(epsilon=0.1)
    with pytest.warns(UserWarning, match="filled with 0: 1"):
        found = kept.fit_transform(values)
    assert found.shape == values.shape and np.all(found[:, 1] == 0)
    assert np.isnan(kept.transform_sd(values)[:, 1]).all()
    assert np.isnan(kept.mean_[1]) and np.isnan(kept.covariance_[:, 1]).all()
    assert np.all(kept.sample(3)[:, 1] == 0)
    assert np.isfinite(kept.score(values))
    frame = pd.DataFrame(values, columns=list("abcd"))
    without = GaussianImputer(epsilon=0.1, keep_empty_features=False)
    with pytest.warns(UserWarning, match="left out: b"):
        rest = without.fit_transform(frame)
    assert without.get_feature_names_out().tolist() == ["a", "c", "d"]
    np.testing.assert_allclose(rest, found[:, [0, 2, 3]], rtol=1e-9)
    assert without.transform_sd(frame).shape == without.sample(len(values)).shape == rest.shape
    values[0, 1] = 5.0  # an entry that comes later stays
    assert kept.transform(values)[0, 1] == 5.0


def test_constant_columns_say_nothing_of_the_others():
    values = with_blanks()
    wider = np.insert(values, 2, np.where(np.isnan(values[:, 0]), np.nan, 4.5), axis=1)
    imputer = GaussianImputer(epsilon=0.1).fit(wider)
    found = imputer.transform(wider)
    assert np.all(found[:, 2] == 4.5) and np.all(imputer.transform_sd(wider)[:, 2] == 0)
    narrow = GaussianImputer(epsilon=0.1).fit(values)
    np.testing.assert_array_equal(np.delete(found, 2, axis=1), narrow.transform(values))
    assert imputer.score(wider) == narrow.score(values)
    # A value that training never saw is kept, and moves no other.
    other = wider.copy()
    other[:, 2] = 1e6
    np.testing.assert_array_equal(
        np.delete(imputer.transform(other), 2, axis=1), narrow.transform(values)
    )


@pytest.mark.filterwarnings("ignore:Columns without any entry:UserWarning")
@pytest.mark.parametrize("method", ["paper", "exact"])
def test_tables_with_hardly_anything_in_them(method):
    one = GaussianImputer(method=method).fit([[1.0, np.nan, 3.0]])
    np.testing.assert_array_equal(one.transform([[np.nan, np.nan, 7.0]]), [[1.0, 0.0, 7.0]])
    assert one.n_iter_ == 0 and one.score([[1.0, np.nan, 3.0]]) == 0
    assert one.sample(2).tolist() == [[1.0, 0.0, 3.0]] * 2
    two = GaussianImputer(method=method).fit([[1.0, 2.0], [3.0, np.nan], [np.nan, np.nan]])
    assert np.isfinite(two.transform([[np.nan, np.nan]])).all()
    np.testing.assert_array_equal(two.transform([[np.nan, np.nan]]), [[2.0, 2.0]])
    nothing = GaussianImputer(method=method, keep_empty_features=False)
    assert nothing.fit_transform(np.full((3, 2), np.nan)).shape == (3, 0)


def test_no_iterations_fill_with_the_means():
    values = with_blanks()
    found = GaussianImputer(epsilon=0.1, iterations=0).fit_transform(values)
    means = np.broadcast_to(np.nanmean(values, axis=0), values.shape)
    blank = np.isnan(values)
    np.testing.assert_allclose(found[blank], means[blank])


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(15, 2)) @ rng.normal(size=(2, 40))
    hidden = rng.random(table.shape) < 0.2
    values = np.where(hidden, np.nan, table)
    for method in ("paper", "exact"):
        imputer = GaussianImputer(method=method, epsilon=0.05).fit(values)
        error = (imputer.transform(values) - table)[hidden] / table.std()
        assert np.sqrt(np.mean(error**2)) < 0.5
        assert imputer.sample(3).shape == (3, 40)
        assert imputer.sample_blanks(values).shape == values.shape


def test_huge_entries_and_spread_below_the_precision():
    values = with_blanks()
    found = GaussianImputer(epsilon=0.1).fit_transform(values * 1e200)
    expected = GaussianImputer(epsilon=0.1).fit_transform(values)
    np.testing.assert_allclose(found, expected * 1e200, rtol=1e-9)
    values[:, 0] = 1e300
    values[0, 0] = np.nextafter(1e300, 2e300)
    assert np.isfinite(GaussianImputer(epsilon=0.1).fit_transform(values)).all()


def test_samples_have_the_model_s_mean_and_covariance():
    for method in ("paper", "exact"):
        imputer = GaussianImputer(method=method, epsilon=0.05, noise=0.1).fit(with_blanks())
        drawn = imputer.sample(20000)
        spread = np.sqrt(np.diag(imputer.covariance_))
        units = np.nanstd(with_blanks(), axis=0)
        expected = imputer.covariance_ + np.diag(0.1 * units**2)
        assert np.all(np.abs(drawn.mean(axis=0) - imputer.mean_) < 0.05 * spread)
        apart = (np.cov(drawn.T) - expected) / np.outer(spread, spread)
        assert np.abs(apart).max() < 0.05


def test_drawn_blanks_have_the_posterior_s_mean_and_deviation():
    values, times = with_blanks(rows=40), 600
    imputer = GaussianImputer(epsilon=0.05).fit(values)
    many = imputer.sample_blanks(np.tile(values, (times, 1))).reshape(times, *values.shape)
    blank = np.isnan(values)
    np.testing.assert_array_equal(many[0][~blank], values[~blank])
    mean, sd = imputer.transform(values), imputer.transform_sd(values)
    assert np.abs((many.mean(axis=0) - mean)[blank] / sd[blank]).max() < 5 / np.sqrt(times)
    assert np.abs(many.std(axis=0)[blank] / sd[blank] - 1).max() < 0.2
    # Blanks of one row are drawn together, not each by itself.
    row = [[0.0, np.nan, np.nan, np.nan]]
    pairs = imputer.sample_blanks(np.repeat(row, times, axis=0))
    sigma = imputer.covariance_
    rest = sigma[1:, 1:] - np.outer(sigma[0, 1:], sigma[0, 1:]) / sigma[0, 0]
    expected = rest / np.sqrt(np.outer(np.diag(rest), np.diag(rest)))
    assert np.abs(expected[0, 1]) > 0.2
    assert np.abs(np.corrcoef(pairs[:, 1:].T) - expected).max() < 0.12
    drawn = GaussianImputer(epsilon=0.05, random_state=np.random.RandomState(0)).fit(values)
    assert not np.array_equal(drawn.sample_blanks(values), drawn.sample_blanks(values))


def test_precision_of_table_and_of_work():
    values = with_blanks()
    single = GaussianImputer(epsilon=0.1, dtype="float32").fit(values)
    double = GaussianImputer(epsilon=0.1).fit(values)
    assert single.transform(values).dtype == np.float64
    assert double.transform(values.astype(np.float32)).dtype == np.float32
    scales = np.nanstd(values, axis=0)
    assert np.abs((single.transform(values) - double.transform(values)) / scales).max() < 1e-4


def test_tolerance_ends_early():
    values = with_blanks()
    short = GaussianImputer(epsilon=0.1, tol=0.05, iterations=50).fit(values)
    whole = GaussianImputer(epsilon=0.1, tol=0, iterations=50).fit(values)
    assert short.n_iter_ < 10 and whole.n_iter_ == len(whole.log_likelihoods_) == 50


@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": -1}, {"epsilon": "best"}, {"epsilon": None}, {"iterations": 1.5},
        {"iterations": -1}, {"noise": -0.1}, {"method": "fast"}, {"dtype": "float16"},
        {"tol": -1}, {"tol": float("nan")}, {"noise": "a"},
    ],
)  # fmt: skip
def test_parameters_without_a_meaning(parameters):
    with pytest.raises(ParameterError) as caught:
        GaussianImputer(**parameters).fit(with_blanks(rows=20))
    assert isinstance(caught.value, GmcError) and isinstance(caught.value, ValueError)


def test_a_singular_model_says_so():
    with pytest.raises(NumericalError, match="ε"):
        GaussianImputer(method="paper", epsilon=0).fit(with_blanks(rows=4, blanks=0.1))
    with pytest.raises(ParameterError):
        GaussianImputer(epsilon=0.1).fit(with_blanks()).sample(0)


def test_a_table_too_wide_for_the_memory_is_refused(monkeypatch):
    monkeypatch.setenv("GMC_MEMORY_LIMIT", "1e-6")
    for epsilon in (0.1, "auto"):
        with pytest.raises(ResourceError, match="GMC_MEMORY_LIMIT"):
            GaussianImputer(epsilon=epsilon).fit(with_blanks())


def test_in_a_pipeline_and_a_search():
    values = with_blanks(rows=80)
    target = np.nan_to_num((values[:, 0]), nan=0.0)
    pipe = make_pipeline(GaussianImputer(epsilon=0.1), Ridge())
    assert cross_val_score(pipe, values[:, 1:], target, cv=4).shape == (4,)
    search = GridSearchCV(GaussianImputer(), {"epsilon": [0.01, 100.0]}, cv=3).fit(values)
    assert search.best_params_ == {"epsilon": 0.01}  # by its own score
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.transform(values), search.transform(values))


def test_without_scikit_learn_the_core_works_and_the_imputer_names_the_remedy():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import gmc_core.tables.wide_table, gmc_core.tables.table_model\n"
        "from gmc_core.base.errors import GmcError\n"
        "try:\n    import gmc_core.tables.imputer\n"
        "except GmcError as error:\n"
        "    assert isinstance(error, ImportError) and 'completion[sklearn]' in str(error)\n"
        "else:\n    raise SystemExit('imported')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_a_fit_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GaussianImputer().fit(with_blanks()).transform(with_blanks())


def test_rows_without_entries_do_not_change_the_fit():
    values = with_blanks()
    more = np.vstack([values, np.full((5, 4), np.nan)])
    first, second = (fit_table(v, epsilon=0.1, iterations=5) for v in (values, more))
    np.testing.assert_array_equal(first.gaussian.mean, second.gaussian.mean)
