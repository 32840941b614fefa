"""What charts and sentences show: one kind of minus, and words instead of empty axes."""

from __future__ import annotations

import plotly.graph_objects as go
import pytest

from gmc_dashboard.fit.figures import nmae_figure, objective_figure
from gmc_dashboard.shared.theme import count_axis, waiting
from gmc_dashboard.shared.units import minus, signed


def test_signs_of_numbers_are_minus_signs_and_other_hyphens_stay():
    assert signed(-0.01234, 3) == "−0.012"
    assert signed(0.5, 1) == "+0.5"
    assert minus("bias -0.1 [-0.2, -.05], MAP-EM, ml-1m, 2026-11-28") == (
        "bias −0.1 [−0.2, −.05], MAP-EM, ml-1m, 2026-11-28"
    )


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
