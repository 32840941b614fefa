"""The sensitivity curve of a sweep, on results constructed so that the answer is known."""

import math

import numpy as np
import pandas as pd
import pytest

from gmc_core.base.errors import DataError
from gmc_core.runs.sensitivity import sensitivity_curve

EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0)


def sweep(curve, seeds=(0,), iterations=(10,), se=0.01, shift=lambda seed: 0.0):
    """One line per fit; ``curve`` gives the NMAE at (ε, L)."""
    return pd.DataFrame(
        [
            {
                "epsilon": e,
                "iterations": t,
                "seed": s,
                "nmae": curve(e, t) + shift(s),
                "nmae_se": se,
            }
            for e in EPSILONS
            for t in iterations
            for s in seeds
        ]
    )


def parabola(epsilon, iterations, depth=0.02):
    return 0.4 + depth * math.log10(epsilon / 0.3) ** 2 + 0.001 * abs(iterations - 10)


def test_one_seed_uses_the_standard_error_of_the_best():
    found = sensitivity_curve(sweep(parabola, se=0.006))
    assert (found.best.epsilon, found.best.iterations) == (0.3, 10)
    assert found.best.method == "pooled"
    assert found.best.gap == 0
    # .02 · log10(.1/.3)² = .0046 and .02 · log10(1/.3)² = .0055 lie within .006.
    assert (found.low, found.high) == (0.1, 1.0)
    assert not found.open_low
    assert not found.open_high
    assert not found.flat
    assert found.decades == pytest.approx(1.0)
    assert found.spread == pytest.approx(0.02)
    assert found.relative_spread == pytest.approx(0.05)


def test_a_steep_curve_is_a_single_value():
    found = sensitivity_curve(sweep(lambda e, t: parabola(e, t, depth=1), se=0.001))
    assert found.low == found.high == found.best.epsilon == 0.3
    assert found.decades == 0


def test_a_flat_curve_is_open_at_both_ends():
    found = sensitivity_curve(sweep(lambda e, t: 0.4, se=0.001))
    assert found.flat
    assert found.open_low
    assert found.open_high
    assert (found.low, found.high) == (0.03, 3.0)
    assert found.spread == 0


def test_pairing_sees_what_the_seeds_hide():
    # Seeds differ by .02, far more than the curve is deep, but alike for every ε.
    found = sensitivity_curve(sweep(parabola, seeds=(0, 1, 2), shift=lambda seed: 0.02 * seed))
    assert found.best.method == "paired"
    assert found.best.se == pytest.approx(0.02 / math.sqrt(3))
    assert found.find(0.1).gap == pytest.approx(0.02 * math.log10(3) ** 2)
    assert found.find(0.1).gap_se == pytest.approx(0, abs=1e-12)
    assert found.low == found.high == 0.3


def test_paired_standard_error_by_hand():
    table = sweep(lambda e, t: 0.4, seeds=(0, 1))
    table.loc[(table.epsilon == 0.1) & (table.seed == 0), "nmae"] = 0.41
    table.loc[(table.epsilon == 0.1) & (table.seed == 1), "nmae"] = 0.43
    cell = sensitivity_curve(table).find(0.1)
    assert cell.gap == pytest.approx(0.02)
    assert cell.gap_se == pytest.approx(np.std([0.01, 0.03], ddof=1) / math.sqrt(2))
    assert not cell.within


def test_the_interval_stops_at_the_first_value_outside():
    ridge = {0.03: 0.4001, 0.1: 0.5, 0.3: 0.4, 1.0: 0.4002, 3.0: 0.5}
    found = sensitivity_curve(sweep(lambda e, t: ridge[e], se=0.001))
    assert (found.low, found.high) == (0.3, 1.0)
    assert found.find(0.03).within, "within, but not connected with the best"


def test_the_best_is_sought_over_iterations_too():
    found = sensitivity_curve(sweep(parabola, iterations=(5, 10, 20)))
    assert found.best.iterations == 10
    assert [cell.iterations for cell in found.cells] == [5] * 5 + [10] * 5 + [20] * 5
    assert [cell.epsilon for cell in found.at(5)] == list(EPSILONS)
    assert found.find(0.3, 20).gap == pytest.approx(0.01)


def test_unfinished_fits_are_left_out_and_do_not_win():
    table = sweep(parabola, seeds=(0, 1))
    table.loc[(table.epsilon == 3.0) & (table.seed == 0), "nmae"] = 0.1
    table.loc[(table.epsilon == 3.0) & (table.seed == 1), "nmae"] = np.nan
    found = sensitivity_curve(table)
    assert found.best.epsilon == 0.3, "ε 3 has one seed of two"
    assert found.find(3.0).seeds == 1
    assert found.find(3.0).method == "pooled"


def test_no_result_yet():
    table = sweep(parabola)
    table["nmae"] = None
    assert sensitivity_curve(table) is None
    assert sensitivity_curve(table.iloc[:0]) is None


def test_missing_standard_error_is_not_a_number():
    table = sweep(parabola)
    table["nmae_se"] = None
    found = sensitivity_curve(table)
    assert math.isnan(found.best.se)
    assert found.best.within
    assert not found.find(0.1).within


def test_ties_go_to_the_smaller_epsilon():
    assert sensitivity_curve(sweep(lambda e, t: 0.4)).best.epsilon == 0.03


def test_find_takes_rounded_values():
    found = sensitivity_curve(sweep(parabola))
    assert found.find(0.2999).epsilon == 0.3
    assert found.find(0.2) is None


def test_errors_say_what_is_wrong():
    table = sweep(parabola)
    with pytest.raises(DataError, match="nmae_se"):
        sensitivity_curve(table.drop(columns="nmae_se"))
    with pytest.raises(DataError, match="above 0"):
        sensitivity_curve(table.assign(epsilon=0.0))
    with pytest.raises(DataError, match="twice"):
        sensitivity_curve(pd.concat([table, table]))
