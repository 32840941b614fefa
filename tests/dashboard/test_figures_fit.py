"""Figures of a fit: the right data, steady axes, legible labels, text alternatives."""

from itertools import pairwise

import pytest
from made_records import record

from gmc_dashboard.fit.figures import (
    AROUND,
    FAINT,
    change_figure,
    describe,
    describe_nmae,
    errors_figure,
    mark,
    mean_curve,
    nmae_figure,
    objective_figure,
    seconds_figure,
    spread,
)
from gmc_dashboard.shared.theme import palette

ONE = [record(1, 0.46), record(2, 0.42), record(3, 0.43)]
TWO = [record(1, 0.48), record(2, 0.44), record(3, 0.45)]
BEGUN = [record(1, 0.90)]
REFERENCES = {"item mean": 0.470, "bias": 0.4370, "user mean": 0.4372, "paper": 0.3959}

FIGURES = (nmae_figure, errors_figure, objective_figure, change_figure, seconds_figure)


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("curves", [[], [[]], [ONE], [ONE, TWO, BEGUN, []]])
@pytest.mark.parametrize("dark", [False, True])
def test_axes_stand_still_while_a_run_grows(figure, curves, dark):
    drawn = figure(curves, iterations=10, dark=dark)
    assert drawn.layout.height == figure([ONE], iterations=10).layout.height
    assert tuple(drawn.layout.xaxis.range) == (0, 10.5)
    assert drawn.layout.uirevision == "fit"
    assert drawn.layout.font.color == palette(dark).text


def test_a_single_repetition_is_one_line():
    figure = nmae_figure([ONE], iterations=3)
    assert len(figure.data) == 1
    assert list(figure.data[0].x) == [1, 2, 3]
    assert list(figure.data[0].y) == [0.46, 0.42, 0.43]


def test_repetitions_are_thin_and_their_mean_is_not():
    figure = nmae_figure([ONE, TWO], iterations=3)
    first, second, mean = figure.data
    assert first.line.width < mean.line.width
    assert second.name == "NMAE, repetition 2"
    assert list(mean.y) == pytest.approx([0.47, 0.43, 0.44])


def test_the_mean_leaves_out_a_repetition_on_its_way():
    steps, means = mean_curve([ONE, TWO, BEGUN, []], "nmae")
    assert steps == [1, 2, 3]
    assert means == pytest.approx([0.47, 0.43, 0.44])
    assert mean_curve([], "nmae") == ([], [])


def test_references_are_lines_with_labels_apart():
    figure = nmae_figure([ONE], REFERENCES, iterations=3)
    lines = figure.data[1:]
    assert {line.name for line in lines} == set(REFERENCES)
    assert len({line.line.dash for line in lines}) == len(lines), "told apart without colour"
    places = [note.y for note in figure.layout.annotations]
    low, high = figure.layout.yaxis.range
    assert all(b - a > 0.05 * (high - low) for a, b in zip(places, places[1:], strict=False))
    assert all(low <= place <= high for place in places)
    assert figure.layout.annotations[0].text == "paper 0.3959"


def test_spread_moves_labels_no_further_than_needed():
    assert spread([], 1) == []
    assert spread([0.0, 5.0], 1) == [0.0, 5.0]
    assert spread([0.0, 0.0], 1) == [-0.5, 0.5]
    assert spread([0.0, 0.2, 1.0], 1) == pytest.approx([-0.6, 0.4, 1.4])


def test_objectives_have_panels_of_their_own():
    assert len(objective_figure([ONE], iterations=3).data) == 1
    full = [record(t, map_objective=-5.0, penalised_objective=-6.0) for t in (1, 2)]
    figure = objective_figure([full], iterations=3)
    assert len(figure.data) == 3
    assert len({trace.yaxis for trace in figure.data}) == 3


def test_missing_values_are_gaps_not_zeros():
    change = change_figure([ONE], iterations=3).data[0]
    assert list(change.x) == [2, 3]
    without = [record(1, None, mae=None, rmse=None)]
    assert list(nmae_figure([without], iterations=3).data[0].y) == []


def test_seconds_are_means_stacked_by_step():
    slow = [record(1, e_seconds=4.0)]
    figure = seconds_figure([ONE, slow], iterations=3)
    by_name = {bar.name: list(bar.y) for bar in figure.data}
    assert by_name["E-step"] == [3.0, 2.0, 2.0]
    assert figure.layout.barmode == "stack"


def test_text_twins_have_the_numbers():
    text = describe_nmae([ONE], REFERENCES)
    assert "0.4600 at iteration 1" in text
    assert "smallest 0.4200 at iteration 2" in text
    assert "item mean 0.4700" in text
    assert "no iteration" in describe_nmae([[]])
    assert describe([ONE], {"rmse": "RMSE"}) == ("RMSE from 1 at iteration 1 to 1 at iteration 3.")
    assert "No iteration" in describe([], {"rmse": "RMSE"})


def test_other_runs_have_lines_of_their_own_with_their_names_at_the_end():
    others = {"ε = 1": [TWO], "<b>mine</b>": [BEGUN]}
    figure = nmae_figure([ONE], REFERENCES, iterations=10, others=others, own="ε = 0.3")
    lines = [line for line in figure.data if line.mode == "lines+markers"]
    assert len({(line.line.color, line.marker.symbol) for line in lines}) == 3
    notes = {note.text: note for note in figure.layout.annotations}
    assert notes["ε = 0.3 0.4300"].font.color == lines[0].line.color
    assert notes["ε = 1 0.4500"].font.color == lines[1].line.color
    assert "&lt;b&gt;mine&lt;/b&gt; 0.9000" in notes, "a name is no markup"
    places = sorted(note.y for note in notes.values())
    low, high = figure.layout.yaxis.range
    gaps = [b - a for a, b in zip(places, places[1:], strict=False)]
    assert min(gaps) > 0.04 * (high - low), "names do not touch"
    words = describe_nmae([ONE], REFERENCES, others)
    assert "ε = 1: 0.4500 at iteration 3." in words


def test_a_run_that_has_not_begun_draws_no_name():
    figure = nmae_figure([ONE], iterations=10, others={"waiting": [[]]}, own="this")
    assert [note.text for note in figure.layout.annotations] == ["this 0.4300"]


def test_labels_of_large_type_do_not_touch_in_a_low_figure():
    curves = [[record(1, 0.44), record(2, 0.43)]]
    levels = {"item mean": 0.464, "user mean": 0.457, "bias": 0.413}
    for height, text in ((380, 12), (280, 18)):
        figure = nmae_figure(curves, levels, iterations=2, own="one", height=height, text=text)
        low, high = figure.layout.yaxis.range
        places = sorted(note.y for note in figure.layout.annotations)
        field = height - AROUND
        apart = min(b - a for a, b in pairwise(places)) / (high - low) * field
        assert apart >= 0.95 * text
        assert figure.layout.height == height


def test_one_line_in_focus_leaves_the_others_faint():
    drawn = {"one": [[record(1, 0.45)]], "two": [[record(1, 0.40)]]}
    own = [[record(1, 0.5)]]
    plain = nmae_figure(own, others=drawn, own="own", iterations=1)
    assert not any(trace.opacity not in (None, 1) for trace in plain.data)
    focused = nmae_figure(own, others=drawn, own="own", iterations=1, focus="two")
    assert [trace.opacity for trace in focused.data] == [FAINT, FAINT, 1]
    assert "<b>two 0.4000</b>" in [note.text for note in focused.layout.annotations]


def test_an_axis_reaches_what_it_is_told_to():
    figure = nmae_figure([[record(1, 0.5)]], {"a": 0.5}, iterations=1, within=(0.3, 0.6))
    low, high = figure.layout.yaxis.range
    assert low < 0.3 and high > 0.6


def test_marks_are_those_of_the_lines():
    assert [mark(index)[0] for index in range(3)] == ["●", "■", "◆"]
    figure = nmae_figure([[record(1, 0.5)]], others={"a": [[record(1, 0.4)]]}, iterations=1)
    assert mark(1)[1] == figure.data[1].line.color
    assert mark(0)[1] == figure.data[0].line.color
