"""Figures of a sweep and of several runs: right data, marks, steady axes, text alternatives."""

import math

import numpy as np
import pandas as pd
import pytest

from gmc_core.runs.sensitivity import sensitivity_curve
from gmc_dashboard.runs.figures import comparison_figure, describe_comparison, differences
from gmc_dashboard.sensitivity.figures import (
    describe_epsilon,
    describe_iterations,
    epsilon_figure,
    heat_figure,
    iterations_figure,
)

GRID = (0.03, 0.1, 0.3, 1.0, 3.0)
STEPS = (5, 10)


def table(seeds=(0, 1)):
    return pd.DataFrame(
        [
            {
                "epsilon": e,
                "iterations": t,
                "seed": s,
                "nmae": 0.4 + 0.02 * math.log10(e / 0.3) ** 2 + 0.002 * s + 0.001 * (10 - t),
                "nmae_se": 0.006,
            }
            for e in GRID
            for t in STEPS
            for s in seeds
        ]
    )


def curves():
    return pd.DataFrame(
        [
            {"epsilon": e, "seed": s, "iteration": t, "nmae": 0.4 + 0.1 / t + 0.01 * s}
            for e in GRID
            for s in (0, 1)
            for t in range(1, 4 if (e, s) == (3.0, 1) else 6)
        ]
    )


def test_epsilon_has_a_line_and_a_band_per_number_of_iterations():
    figure = epsilon_figure(table(), GRID, sensitivity_curve(table()))
    lines = [trace for trace in figure.data if not trace.fill]
    bands = [trace for trace in figure.data if trace.fill]
    assert [line.name for line in lines] == ["L = 5", "L = 10"]
    assert list(lines[1].x) == list(GRID)
    assert lines[1].y[2] == pytest.approx(0.401)
    assert max(bands[1].y[:5]) == pytest.approx(lines[1].y[0] + 0.001)
    assert figure.layout.xaxis.type == "log"


def test_epsilon_marks_the_paper_and_the_interval():
    found = sensitivity_curve(table(seeds=(0,)))
    figure = epsilon_figure(table(seeds=(0,)), GRID, found)
    line, area = figure.layout.shapes
    assert figure.layout.annotations[0].x == pytest.approx(math.log10(0.3))
    assert line.x0 == line.x1 == 0.3
    assert (area.x0, area.x1) == (found.low, found.high)
    assert "paper" in figure.layout.annotations[0].text
    far = epsilon_figure(table().iloc[:0], (3.0, 10.0))
    assert not far.layout.shapes


@pytest.mark.parametrize("dark", [False, True])
def test_an_unfinished_sweep_keeps_the_axes(dark):
    whole, part = table(), table()
    part.loc[3:, "nmae"] = np.nan
    for figure in (epsilon_figure, lambda t, g, dark: heat_figure(t, g, STEPS, dark=dark)):
        first, last = figure(part, GRID, dark=dark), figure(whole, GRID, dark=dark)
        assert first.layout.xaxis.range == last.layout.xaxis.range
        assert first.layout.height == last.layout.height


def test_heat_map_has_gaps_for_what_is_missing_and_frames_the_best():
    part = table()
    part.loc[part.epsilon == 3.0, "nmae"] = np.nan
    figure = heat_figure(part, GRID, STEPS, sensitivity_curve(part))
    assert np.isnan(figure.data[0].z[:, 4]).all()
    assert figure.data[0].z[1, 2] == pytest.approx(0.401)
    frame = figure.layout.shapes[0]
    assert frame.x0 < 2 < frame.x1
    assert frame.y0 < 1 < frame.y1


def test_iterations_have_a_line_per_epsilon_and_end_where_all_seeds_are():
    figure = iterations_figure(curves(), iterations=10)
    assert [line.name for line in figure.data][2] == "ε = 0.3 (paper)"
    assert len(figure.data[0].x) == 5
    assert len(figure.data[4].x) == 3
    assert len({line.line.color for line in figure.data}) == 5
    assert tuple(figure.layout.xaxis.range) == (0, 10.5)


def test_text_twins():
    assert "0.4010 at ε = 0.3" in describe_epsilon(table())
    assert "no fit" in describe_epsilon(table().iloc[:0])
    assert "ε = 0.3: smallest" in describe_iterations(curves())
    assert "no iteration" in describe_iterations(curves().iloc[:0])


def test_compared_runs_differ_in_colour_and_dash():
    from test_figures_fit import ONE, TWO

    figure = comparison_figure({"a": [ONE], "b": [ONE, TWO]})
    assert figure.data[0].line.dash != figure.data[1].line.dash
    assert list(figure.data[1].y) == pytest.approx([0.47, 0.43, 0.44])
    assert "b: 0.44 at iteration 3" in describe_comparison({"a": [ONE], "b": [ONE, TWO]})
    assert "no value" in describe_comparison({"a": [[]]})


def test_differences_only():
    first = {"seed": 0, "fit": {"epsilon": 0.3, "dtype": "float64"}}
    second = {"seed": 0, "fit": {"epsilon": 1.0, "dtype": "float64", "noise": None}}
    shown = differences({"a": first, "b": second})
    assert list(shown.index) == ["fit.epsilon", "fit.noise"]
    assert list(shown.loc["fit.epsilon"]) == ["0.3", "1.0"]
    assert list(shown.loc["fit.noise"]) == ["—", "default"]
    assert "seed" in differences({"a": first, "b": second}, all_rows=True).index
    assert differences({"a": first, "b": first}).empty
