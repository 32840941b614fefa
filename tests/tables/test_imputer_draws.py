"""The imputer's draws, limits and codes for missing entries, and Rubin's rules."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone

from gmc_core import cli
from gmc_core.base.errors import ConfigError
from gmc_core.tables import bounds as limits
from gmc_core.tables.bounds import Bounds, truncated_normal
from gmc_core.tables.imputer import GaussianImputer, ParameterError
from gmc_core.tables.pooling import pool
from gmc_core.tables.wide_table import complete_table, read_table


def amounts(rows=200, blanks=0.3, seed=0):
    """Three columns of one cause; many values of the first are little above 0."""
    rng = np.random.default_rng(seed)
    cause = rng.normal(size=(rows, 1))
    table = cause * [1.0, 2.0, -1.0] + 0.3 * rng.normal(size=(rows, 3))
    table[:, 0] = np.abs(table[:, 0])
    hidden = rng.random(table.shape) < blanks
    hidden[:2] = False
    return np.where(hidden, np.nan, table)


def fitted(values, **options):
    return GaussianImputer(epsilon=0.05, **options).fit(values)


# Draws --------------------------------------------------------------------------------


def test_five_draws_are_five_different_ones_and_come_again():
    values = amounts()
    first, second = fitted(values), fitted(values)
    draws = [first.sample_blanks(values) for _ in range(5)]
    assert all(not np.array_equal(draws[a], draws[b]) for a in range(5) for b in range(a))
    for draw in draws:
        np.testing.assert_array_equal(draw, second.sample_blanks(values))
    assert not np.array_equal(first.sample(3), first.sample(3))
    first.fit(values)  # begins the stream anew
    np.testing.assert_array_equal(first.sample_blanks(values), draws[0])


def test_a_seed_for_a_call_draws_the_same_each_time():
    values = amounts()
    imputer = fitted(values)
    seeded = imputer.sample_blanks(values, random_state=4)
    imputer.sample_blanks(values)
    np.testing.assert_array_equal(seeded, imputer.sample_blanks(values, random_state=4))
    assert not np.array_equal(seeded, imputer.sample_blanks(values, random_state=5))
    np.testing.assert_array_equal(
        imputer.sample(4, random_state=1),
        pickle.loads(pickle.dumps(imputer)).sample(4, random_state=1),
    )


def test_without_a_seed_two_imputers_differ():
    values = amounts()
    one, other = (fitted(values, random_state=None).sample_blanks(values) for _ in range(2))
    assert not np.array_equal(one, other)


# Limits -------------------------------------------------------------------------------


def test_filled_means_keep_to_the_limits():
    values = amounts()
    free = fitted(values).transform(values)
    assert free[np.isnan(values[:, 0]), 0].min() < 0.7  # else the limit would do nothing
    kept = fitted(values, min_value=[0.7, -np.inf, -0.5], max_value=0.9)
    found = kept.transform(values)
    expected = np.where(np.isnan(values), np.clip(free, [0.7, -np.inf, -0.5], 0.9), values)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(kept.transform_sd(values), fitted(values).transform_sd(values))


def test_draws_are_from_the_gaussian_cut_off_at_the_limits():
    values = amounts()
    imputer = fitted(values, min_value=[0, -np.inf, -np.inf])
    row = np.array([[np.nan, 0.1, np.nan]])
    drawn = imputer.sample_blanks(np.repeat(row, 20000, axis=0), random_state=1)
    assert drawn[:, 0].min() >= 0 and (drawn[:, 1] == 0.1).all()
    free = fitted(values)
    mean, sd = free.transform(row)[0], free.transform_sd(row)[0]
    cut = stats.truncnorm(-mean[0] / sd[0], np.inf, mean[0], sd[0])
    assert drawn[:, 0].mean() == pytest.approx(cut.mean(), abs=5 * cut.std() / math.sqrt(20000))
    assert drawn[:, 0].std() == pytest.approx(cut.std(), rel=0.05)
    # The other blank moves with it, as the regression on it says.
    plain = free.sample_blanks(np.repeat(row, 20000, axis=0), random_state=1)
    slope = np.cov(plain[:, 0], plain[:, 2])[0, 1] / plain[:, 0].var()
    shifted = mean[2] + slope * (cut.mean() - mean[0])
    assert drawn[:, 2].mean() == pytest.approx(shifted, abs=5 * sd[2] / math.sqrt(20000))
    assert imputer.sample(500)[:, 0].min() >= 0


def test_sweeps_and_whole_draws_have_one_law(monkeypatch):
    values = amounts()
    imputer = fitted(values, min_value=0.0)
    row = np.repeat([[np.nan, 0.5, np.nan]], 400, axis=0)
    whole = imputer.sample_blanks(row, random_state=1)
    monkeypatch.setattr(limits, "DRAWS", 0)
    swept = imputer.sample_blanks(row, random_state=2)
    assert swept[:, [0, 2]].min() >= 0
    for column in (0, 2):
        assert stats.ks_2samp(whole[:, column], swept[:, column]).pvalue > 1e-3
    correlations = [np.corrcoef(draws[:, 0], draws[:, 2])[0, 1] for draws in (whole, swept)]
    assert abs(correlations[0] - correlations[1]) < 0.2


def test_limits_far_out_in_the_tail():
    values = amounts()
    imputer = fitted(values, min_value=[50, -np.inf, -np.inf], max_value=[51, np.inf, np.inf])
    drawn = imputer.sample_blanks(values)
    blank = np.isnan(values[:, 0])
    assert ((drawn[blank, 0] >= 50) & (drawn[blank, 0] <= 51)).all()
    np.testing.assert_array_equal(drawn[~np.isnan(values)], values[~np.isnan(values)])


@pytest.mark.parametrize(
    ("low", "high"), [(-1, 2), (0.5, np.inf), (-np.inf, -3), (8, 9), (-40, -39), (-np.inf, np.inf)]
)
def test_truncated_normal(low, high):
    rng = np.random.default_rng(0)
    drawn = np.array([truncated_normal(1.0, 2.0, low, high, rng) for _ in range(3000)])
    assert drawn.min() >= low and drawn.max() <= high
    cut = stats.truncnorm((low - 1) / 2, (high - 1) / 2, 1, 2)
    assert stats.kstest(drawn, cut.cdf).pvalue > 1e-3


def test_constant_and_empty_columns_keep_to_the_limits():
    values = np.column_stack([amounts(), np.full(200, np.nan), np.full(200, 7.0)])
    values[3, 4] = np.nan
    with pytest.warns(UserWarning, match="without any entry"):
        imputer = fitted(values, min_value=1.0, max_value=6.0)
    for found in (imputer.transform(values), imputer.sample_blanks(values), imputer.sample(200)):
        assert (found[:, 3] == 1.0).all()
        assert found[3, 4] == 6.0


@pytest.mark.parametrize(
    "options",
    [
        {"min_value": 1, "max_value": 0}, {"min_value": [0, 1]}, {"max_value": "a"},
        {"min_value": float("nan")}, {"max_value": None},
    ],
)  # fmt: skip
def test_limits_without_a_meaning(options):
    with pytest.raises(ParameterError):
        GaussianImputer(**options).fit(amounts())


def test_limits_on_the_command_line(tmp_path, capsys):
    path, out = tmp_path / "t.csv", tmp_path / "o.csv"
    path.write_text("k,rain,a=b\n" + "".join(f"r{k},{max(k, 0)},{k}\n" for k in range(-3, 9))
                    + "low,,-30\nhigh,,40\n,5,\n")  # fmt: skip
    free = complete_table(read_table(path))
    assert free.values[12, 0] < 0 < 8 < free.values[13, 0]
    arguments = ["complete", "--table", str(path), "--out", str(out)]
    limited = ["--min-value", "0", "--max-value", "rain=8", "--max-value", "a=b=3"]
    assert cli.main([*arguments, *limited]) == 0
    assert "moved to it: 3" in capsys.readouterr().err
    rows = [row.split(",") for row in out.read_text().splitlines()[1:]]
    assert (rows[12], rows[13]) == (["low", "0", "-30"], ["high", "8", "40"])
    assert rows[14] == ["", "5", "3"]
    for wrong in (["--min-value", "rain=a"], ["--min-value", "x=1"], ["--min-value", "99"]):
        assert cli.main([*arguments, *limited, *wrong]) == 2


def test_limits_must_be_in_order():
    with pytest.raises(ConfigError, match="column 2"):
        Bounds(np.array([0.0, 2.0]), np.array([1.0, 1.0]))


# Codes for missing entries --------------------------------------------------------------


@pytest.mark.parametrize("codes", [-99, [-99], [-99, 12345.0], (-99, "?"), np.nan, None])
def test_codes_in_an_array(codes):
    values = amounts()
    marked = values.copy()
    if codes is not None and codes == codes:
        marked[::2] = np.where(np.isnan(values[::2]), -99, values[::2])
    imputer = GaussianImputer(epsilon=0.05, missing_values=codes)
    expected = fitted(values).transform(values)
    np.testing.assert_array_equal(clone(imputer).fit_transform(marked), expected)
    single = clone(imputer).fit(marked.astype(np.float32)).transform(marked.astype(np.float32))
    assert single.dtype == np.float32


def test_codes_in_a_frame_and_in_text():
    values = amounts()
    frame = pd.DataFrame(values, columns=list("abc")).astype(object).where(~np.isnan(values), "?")
    frame.loc[frame["b"] == "?", "b"] = -99
    imputer = GaussianImputer(epsilon=0.05, missing_values=["?", -99])
    expected = fitted(values).transform(values)
    np.testing.assert_array_equal(imputer.fit_transform(frame), expected)
    assert imputer.feature_names_in_.tolist() == list("abc")
    np.testing.assert_array_equal(imputer.fit_transform(frame.to_numpy()), expected)
    whole = np.array([[1, 2], [2, -1], [-1, 5], [4, 8]])
    found = GaussianImputer(epsilon=0.05, missing_values=-1).fit_transform(whole)
    assert found.min() > 0


# Rubin's rules --------------------------------------------------------------------------


def test_rubin_s_rules_by_hand():
    found = pool([10.0, 12.0, 14.0], [1.0, 2.0, 3.0])
    assert (found.estimate, found.within, found.between) == (12.0, 2.0, 4.0)
    assert found.sd == pytest.approx(math.sqrt(2 + 4 / 3 * 4))
    missing = (16 / 3) / (22 / 3)
    assert found.missing == pytest.approx(missing)
    assert found.degrees == pytest.approx(2 / missing**2)
    reach = stats.t.ppf(0.975, found.degrees) * found.sd
    assert found.interval() == pytest.approx((12 - reach, 12 + reach))
    # Barnard and Rubin: never more than without missing entries.
    small = pool([10.0, 12.0, 14.0], [1.0, 2.0, 3.0], degrees=9)
    own = 10 / 12 * 9 * (1 - missing)
    assert small.degrees == pytest.approx(1 / (1 / found.degrees + 1 / own))
    assert small.degrees < 9


def test_equal_estimates_have_no_error_of_missing_entries():
    same = pool([1.0] * 5, [4.0] * 5)
    assert (same.sd, same.missing, same.degrees) == (2.0, 0.0, math.inf)
    assert same.interval() == pytest.approx(
        (1 - 2 * stats.norm.ppf(0.975), 1 + 2 * stats.norm.ppf(0.975))
    )
    without = pool([1.0, 3.0], [0.0, 0.0], degrees=5)
    assert without.degrees == 1 and without.missing == 1


@pytest.mark.parametrize(
    ("estimates", "variances", "degrees"),
    [([1], [1], 5), ([1, 2], [1], 5), ([1, np.nan], [1, 1], 5), ([1, 2], [1, -1], 5),
     ([1, 2], [1, 1], 0)],
)  # fmt: skip
def test_what_cannot_be_pooled(estimates, variances, degrees):
    with pytest.raises(ConfigError):
        pool(estimates, variances, degrees=degrees)


def test_pooled_errors_cover_the_mean_of_the_whole_table():
    """As the docs say: each table from an imputer of rows drawn with replacement."""
    rng, inside, alone, times = np.random.default_rng(5), 0, 0, 25
    for _ in range(times):
        cause = rng.normal(size=(40, 1))
        values = cause + 0.5 * rng.normal(size=(40, 3))
        values[rng.random(values.shape) < 0.4] = np.nan
        means, squares = [], []
        for table in range(4):
            rows = rng.integers(40, size=40)
            imputer = GaussianImputer(epsilon=0.05, iterations=5).fit(values[rows])
            drawn = imputer.sample_blanks(values, random_state=table)[:, 0]
            means.append(drawn.mean())
            squares.append(drawn.var(ddof=1) / 40)
        found = pool(means, squares, degrees=39)
        low, high = found.interval()
        inside += low < 0 < high
        alone += abs(means[0]) < stats.t.ppf(0.975, 39) * math.sqrt(squares[0])
        assert found.between > 0
    assert inside / times > 0.8
    assert inside > alone
