"""Figures of the Covariance page: limits, labels, clicks, words."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.experiment import run_experiment
from gmc_core.gaussian.settings import FitSettings
from gmc_core.model import analysis, item_orders, taste
from gmc_core.model.title_map import title_map
from gmc_core.protocol.filters import Filter
from gmc_dashboard.covariance import figures as figures
from gmc_dashboard.covariance import map_figures
from gmc_dashboard.covariance import taste_figures as taste_figures


@pytest.fixture(scope="module")
def model():
    config = ExperimentConfig(fit=FitSettings(iterations=2), filter=Filter(max_items=80))
    return run_experiment(config)[1].model()


@pytest.fixture(scope="module")
def some(model):
    items = item_orders.ordered(model, "popularity")[:12]
    matrix = analysis.submatrix(model, items, "correlation")
    return items, matrix, figures.axis_labels(model, items)


def test_color_limit_ignores_the_diagonal_and_undefined_entries():
    matrix = np.array([[9.0, 0.2, np.nan], [0.2, 9.0, -0.4], [np.nan, -0.4, 9.0]])
    assert 0.2 <= figures.color_limit(matrix) <= 0.4
    assert figures.color_limit(np.eye(3)) > 0
    assert figures.color_limit(np.ones((1, 1))) == 1


def test_short_keeps_the_year():
    title = "Dr. Strangelove or: How I Learned to Stop Worrying and Love the Bomb (1963)"
    assert figures.short(title, 30).endswith("…(1963)") or figures.short(title, 30).endswith(
        "… (1963)"
    )
    assert len(figures.short(title, 30)) <= 30
    assert figures.short("Alien (1979)") == "Alien (1979)"


def test_a_title_is_not_cut_to_a_letter_or_two_of_a_word():
    assert figures.short("Silence of the Lambs, The (1991)", 20) == "Silence of… (1991)"
    assert figures.short("Lion King, The (1994)", 20) == "Lion King… (1994)"
    assert figures.short("Independence Day (1996)", 20) == "Independence… (1996)"
    assert figures.short("Incomprehensibilities (1996)", 20) == "Incomprehens… (1996)"


def test_labels_that_would_begin_alike_keep_what_differs():
    episodes = [
        "Star Wars: Episode IV - A New Hope (1977)",
        "Star Wars: Episode V - The Empire Strikes Back (1980)",
        "Star Wars: Episode VI - Return of the Jedi (1983)",
    ]
    other = "Dr. Strangelove or: How I Learned to Stop Worrying (1963)"
    labels = figures.distinct_short([*episodes, other, "Alien (1979)"], 24)
    assert labels[0].startswith("Star Wars… IV - A New")
    assert labels[1].startswith("Star Wars… V - The")
    assert labels[2].startswith("Star Wars… VI - Return")
    # Whole words as far as they fit.
    assert figures.distinct_short(episodes, 20) == [
        "Star Wars… IV - A", "Star Wars… V - The", "Star Wars… VI",
    ]  # fmt: skip
    # What is cut alone is cut as before, and what is short is not cut.
    assert labels[3:] == [figures.short(other, 24), "Alien (1979)"]
    assert max(map(len, labels)) <= 24
    # Where nothing but the year differs, the year is what is kept.
    twice = [f"The Very Long Title of a Film ({year})" for year in (1950, 1998)]
    assert figures.distinct_short(twice, 24) == [figures.short(title, 24) for title in twice]


def test_axis_labels_are_unique(model):
    items = [0, 0, 1]
    labels = figures.axis_labels(model, items)
    assert labels[0].endswith(str(model.items.ids[0]))
    assert labels[2] == figures.short(model.title(1), 20)
    assert figures.axis_labels(model, []) == []


def test_run_labels_cover_all_items_once():
    labels = figures.run_labels([f"t{k}" for k in range(10)], 3)
    assert labels == ["1–3: t0 … t2", "4–6: t3 … t5", "7–10: t6 … t9"]
    assert figures.run_labels(["<b>", "b"], 2) == ["1: &lt;b&gt;", "2: b"]


@pytest.mark.parametrize("dark", [False, True])
def test_overview_is_symmetric_about_zero(model, dark):
    order = item_orders.ordered(model, "popularity")
    picture = item_orders.pooled(model, order, 20, "correlation")
    labels = figures.run_labels([model.title(int(m)) for m in order], 20)
    figure = figures.overview_figure(
        picture, labels, kind="correlation", axis="most rated first", dark=dark
    )
    trace = figure.data[0]
    assert trace.zmin == -trace.zmax
    assert trace.zmid == 0
    np.testing.assert_allclose(trace.z, picture, rtol=1e-5)
    assert figure.layout.yaxis.autorange == "reversed"
    text = figures.describe_overview(picture, "correlation", "most rated first", 2)
    assert "iteration 2" in text
    assert "20 by 20" in text


def test_heatmap_has_one_cell_a_pair(model, some):
    items, matrix, labels = some
    table = figures.heatmap_table(matrix, labels, model.item_counts[items])
    assert len(table) == 144
    cell = table[(table.i == 3) & (table.j == 7)].iloc[0]
    assert cell.value == matrix[3, 7]
    assert (cell.row, cell.column) == (labels[3], labels[7])
    assert cell["row ratings"] == model.item_counts[items[3]]


@pytest.mark.parametrize("dark", [False, True])
def test_heatmap_can_be_clicked(model, some, dark):
    items, matrix, labels = some
    counts = model.item_counts[items]
    spec = json.loads(
        figures.heatmap_chart(matrix, labels, counts, kind="correlation", dark=dark).to_json()
    )
    assert "layer" not in spec  # Streamlit would report no selection
    (selection,) = spec["params"]
    assert selection["name"] == figures.PAIR
    assert selection["select"]["type"] == "point"
    assert selection["select"]["fields"] == ["i", "j"]
    color = spec["encoding"]["color"]["scale"]
    assert color["domain"][0] == -color["domain"][-1]
    assert len(color["domain"]) == len(color["range"])
    assert spec["encoding"]["x"]["sort"] == labels


def test_names_below_a_heatmap_slant_unless_they_stand_too_close():
    def angle(n, **options):
        chart = figures.heatmap_chart(
            np.eye(n), [f"Title {k}" for k in range(n)], [1] * n, kind="correlation", **options
        )
        return json.loads(chart.to_json())["encoding"]["x"]["axis"].get("labelAngle")

    assert angle(30) == -45
    assert angle(33) is None  # upright, as Vega stands names that need it
    assert angle(12, least=18) is None


def test_clicked_pair_survives_anything(some):
    def event(points):
        return SimpleNamespace(selection={figures.PAIR: points})

    assert figures.clicked_pair(event([{"i": 1, "j": 3}]), 5) == (1, 3)
    for wrong in ([], [{"i": 1}], [{"i": 9, "j": 1}], [{"i": "x", "j": 1}], None):
        assert figures.clicked_pair(event(wrong), 5) is None
    assert figures.clicked_pair(None, 5) is None


def test_describe_heatmap_names_the_extremes(some):
    _, matrix, labels = some
    text = figures.describe_heatmap(matrix, labels, "correlation")
    off = matrix[np.triu_indices(12, 1)]
    assert f"{off.max():.3f}" in text
    assert f"{off.min():.3f}" in text
    assert "at least two" in figures.describe_heatmap(matrix[:1, :1], labels[:1], "correlation")
    undefined = np.full((2, 2), np.nan)
    assert "no value" in figures.describe_heatmap(undefined, labels[:2], "partial")


def test_pair_sentences_state_the_regression(model):
    block = model.gaussian.covariance.submatrix(np.array([2, 5]), np.array([2, 5]))
    sentence = taste_figures.pair_sentence(model, 2, 5)
    assert f"{abs(block[0, 1] / block[0, 0]):.2f}" in sentence
    assert model.title(2) in sentence
    assert "variance" in taste_figures.pair_sentence(model, 2, 2)
    assert "hardly any" in taste_figures.partial_sentence(0.01)
    assert "of their own" in taste_figures.partial_sentence(-0.3)


def test_neighbours_figure_and_its_words(model):
    found = analysis.neighbours(model, 3, 5)
    figure = taste_figures.neighbours_figure(found)
    assert list(figure.data[0].x) == [n.correlation for n in found]
    assert found[0].title in taste_figures.describe_neighbours("X", found)
    assert "No title" in taste_figures.describe_neighbours("X", [])
    taste_figures.neighbours_figure([])


def test_spectrum_and_axes(model):
    leading = taste.spectrum(model, 6)
    figure = taste_figures.spectrum_figure(leading)
    np.testing.assert_allclose(figure.data[1].y[-1], leading.shares.sum())
    assert f"{leading.shares[0]:.1%}" in taste_figures.describe_spectrum(leading)
    for axis in taste.taste_axes(model, leading, ends=3):
        drawn = taste_figures.axis_figure(axis).data[0]
        assert len(drawn.x) == len(axis.low) + len(axis.high)
        assert f"Axis {axis.number}" in taste_figures.describe_axis(axis)
    one = taste.TasteAxis(1, 1.0, 0.5, (), taste.taste_axes(model, leading)[0].high)
    assert "one end only" in taste_figures.describe_axis(one)
    assert "lower" in taste_figures.describe_axis(taste.TasteAxis(1, 1.0, 0.5, one.high, ()))


def test_variances_are_drawn_by_webgl_on_a_log_axis(model):
    profile = taste.variance_profile(model)
    titles = [model.title(m) for m in range(len(model.items))]
    figure = taste_figures.variance_figure(profile, titles)
    assert {trace.type for trace in figure.data} == {"scattergl"}
    assert figure.layout.xaxis.type == "log"
    assert "median variance" in taste_figures.describe_variance(profile)
    none = taste.VarianceProfile(profile.counts * 0, profile.mean, profile.variance)
    assert len(taste_figures.variance_figure(none, titles).data[0].x) == 0
    assert "not drawn" in taste_figures.describe_variance(none)


# The map of the titles -----------------------------------------------------------------


def no_two_overlap(points, widths, placed):
    boxes = [map_figures._box(points[index], widths[index], 12, side) for index, side in placed]
    return not any(
        map_figures._overlap(one, other)
        for place, one in enumerate(boxes)
        for other in boxes[:place]
    )


def test_labels_on_the_map_leave_each_other_room():
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 400, (80, 2))
    widths = rng.uniform(60, 160, 80).tolist()
    placed = map_figures.place_labels(points, widths, 12, (400, 400))
    assert 10 < len(placed) < 80
    assert placed[0][0] == 0  # the first has the choice
    assert no_two_overlap(points, widths, placed)
    # Two titles in one place: on different sides of it.
    placed = map_figures.place_labels(np.full((2, 2), 200.0), [80.0] * 2, 12, (400, 400))
    assert len({side for _, side in placed}) == 2


def test_the_map_names_colours_and_rings(model):
    found = title_map(model, np.arange(30))
    figure = map_figures.map_figure(model, found, {3, 5})
    points = [trace for trace in figure.data if trace.mode == "markers"]
    *groups, rings = points
    assert sorted(item for trace in groups for item in trace.customdata) == list(range(30))
    assert list(rings.customdata) == [3, 5]
    colours = [trace.marker.color for trace in groups]
    assert len(set(colours)) == len(groups) > 2
    narrow, wide = (trace for trace in figure.data if trace.mode == "text")
    assert {3, 5} <= set(wide.customdata)  # what is picked comes first
    assert 0 < len(narrow.customdata) <= len(wide.customdata)
    assert figure.layout.yaxis.scaleanchor == "x"
    assert "Far left" in map_figures.describe_map(model, found)
    sentence = map_figures.held_sentence(found)
    assert f"dimensions hold {100 * found.held:.0f} %" in sentence
    assert f"share {100 * found.common:.0f} %" in sentence


def test_genres_beyond_the_commonest_are_other(model):
    groups = map_figures.by_genre(model, list(range(60)), 2)
    assert set(groups) - {map_figures.OTHER} <= {
        genre for genres in model.item_info.genres for genre in genres[:1]
    }
    assert len(groups) == 3
    assert sorted(place for places in groups.values() for place in places) == list(range(60))
    bare = replace(model, item_info=replace(model.item_info, genres=((),) * len(model.items)))
    assert map_figures.by_genre(bare, [4, 7]) == {"": [0, 1]}
    found = title_map(bare, np.arange(30))
    assert map_figures.map_figure(bare, found).layout.showlegend is False
