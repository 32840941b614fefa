"""What charts and sentences show: one kind of minus, and words instead of empty axes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
import streamlit as st
from stored_runs import FEW_RATINGS

from gmc_core.base.signs import signed as plain_signed
from gmc_core.base.signs import unsigned_zero
from gmc_core.comparison.comparators import BASELINES
from gmc_core.comparison.compare import compare
from gmc_core.protocol.splits import weak_split
from gmc_dashboard.compare.figures import differences_figure
from gmc_dashboard.fit.figures import nmae_figure, objective_figure
from gmc_dashboard.shared import frames
from gmc_dashboard.shared.theme import count_axis, waiting
from gmc_dashboard.shared.units import minus, signed


def test_signs_of_numbers_are_minus_signs_and_other_hyphens_stay():
    assert signed(-0.01234, 3) == "−0.012"
    assert signed(0.5, 1) == "+0.5"
    assert minus("bias -0.1 [-0.2, -.05], MAP-EM, ml-1m, 2026-11-28") == (
        "bias −0.1 [−0.2, −.05], MAP-EM, ml-1m, 2026-11-28"
    )


def test_what_rounds_to_zero_has_no_sign():
    for value in (0.0, -0.0, 0.0004, -0.0004):
        assert signed(value, 3) == plain_signed(value, 3) == "0.000"
    assert signed(-0.0005001, 3) == "−0.001"
    assert plain_signed(-0.5, 0) == "0" and plain_signed(-1.5, 1) == "-1.5"
    assert [unsigned_zero(text) for text in ("+0", "-0.0", "+0.2", "−0", "nan", "")] == [
        *("0", "0.0", "+0.2", "0", "nan", ""),
    ]


def test_a_column_of_differences_gives_zero_no_sign(monkeypatch):
    drawn = []
    monkeypatch.setattr(st, "dataframe", lambda table, **options: drawn.append((table, options)))
    number = st.column_config.NumberColumn
    table = pd.DataFrame({"gap": [-0.00001, 0.2, -0.3, np.nan], "n": [1, 2, 3, 4]})
    config = {"gap": number("Gap", format="%+.4f", help="told"), "n": number(format="%d")}
    frames.frame(table, column_config=config, placeholder="–")
    shown, options = drawn[0]
    for cell in (">0.0000<", ">+0.2000<", ">−0.3000<", ">–<"):
        assert cell in shown.to_html()
    assert options["column_config"]["gap"]["help"] == "told"
    # The browser would fill in its own.
    assert "format" not in options["column_config"]["gap"]["type_config"]
    assert options["column_config"]["n"] == config["n"]


def test_the_axis_of_differences_gives_zero_no_sign():
    rows = compare([BASELINES["bias"], BASELINES["item"]], [weak_split(FEW_RATINGS, 0)]).rows()
    figure = differences_figure(rows, "Bias")
    assert figure.layout.xaxis.tickformat == ".3f"


def test_a_chart_without_data_says_what_it_waits_for():
    figure = waiting(nmae_figure([], iterations=10), "Waiting for the first iteration")
    assert [note.text for note in figure.layout.annotations] == ["Waiting for the first iteration"]
    assert figure.layout.xaxis.visible is False
    assert figure.layout.yaxis.visible is False


def test_the_titles_of_its_parts_go_while_a_chart_waits():
    figure = waiting(objective_figure([], iterations=10), "Waiting")
    assert [note.text for note in figure.layout.annotations] == ["Waiting"]


@pytest.mark.parametrize(
    ("last", "step"), [(0, 1), (1, 1), (4, 1), (11, 1), (12, 2), (30, 5), (100, 10), (5000, 500)]
)
def test_what_is_counted_has_ticks_at_whole_numbers(last, step):
    figure = go.Figure()
    count_axis(figure, last)
    assert figure.layout.xaxis.dtick == step
    assert figure.layout.xaxis.tick0 == 0
    assert tuple(figure.layout.xaxis.range) == (0, max(last, 1) + 0.5)


def test_a_chart_with_data_stays_as_it_is():
    for data in (go.Bar(x=[1], y=[2]), go.Heatmap(z=[[1.0]])):
        figure = waiting(go.Figure(data), "Waiting")
        assert not figure.layout.annotations
        assert figure.layout.xaxis.visible is None
