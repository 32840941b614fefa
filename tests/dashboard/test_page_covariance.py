"""The Covariance page: empty, running, finished and wrong links; every view."""

from __future__ import annotations

import os

import numpy as np
import pytest
from computed_runs import computed, opened, small, texts

from gmc_core.model import item_orders
from gmc_core.runs.store import Store
from gmc_dashboard.covariance import data as covariance_data
from gmc_dashboard.covariance import title_map
from gmc_dashboard.recommend import rating_rows

pytestmark = pytest.mark.usefixtures("fresh")

PAGE = "pages/covariance.py"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    with Store(folder) as store:
        ids = {
            "weak": computed(store, small(), "the weak one").id,
            "columns": computed(store, small(signals="columns"), "the columns").id,
        }
    return folder, ids


@pytest.fixture
def ids(home, monkeypatch):
    monkeypatch.setenv("GMC_HOME", str(home[0]))
    return home[1]


@pytest.fixture
def empty(tmp_path, monkeypatch):
    monkeypatch.setenv("GMC_HOME", str(tmp_path))
    with Store(tmp_path) as store:
        yield store


def test_without_runs_it_leads_to_the_fit(empty):
    at = opened(PAGE)
    assert not at.exception
    assert "There is no fitted model yet" in texts(at)


def test_it_waits_for_a_run(empty):
    run = empty.submit(small())
    at = opened(PAGE, run=run.id)
    assert not at.exception
    assert "0 of 3 iterations are done" in texts(at)
    # The box then says what has become of the run, which is the same one.
    computed(empty, small())
    at.run()
    assert not at.exception
    assert "There is no run" not in texts(at)
    assert at.query_params["run"] in (run.id, [run.id])
    assert "iterations are done" not in texts(at)


def test_a_run_that_does_not_exist_is_a_sentence(ids):
    at = opened(PAGE, run="nothing")
    assert not at.exception
    assert "There is no run" in at.warning[0].value
    assert "Another run is shown below" in at.warning[0].value
    box = next(box for box in at.selectbox if box.label == "Model of the run")
    assert box.value in ids.values()


def test_a_cancelled_run_without_a_model_is_explained(empty):
    run = empty.submit(small(), label="stopped")
    empty.cancel(run.id)
    at = opened(PAGE, run=run.id)
    assert "was cancelled and has no model" in texts(at)
    assert "There is no fitted model yet" in texts(at)


def test_columns_as_signals_are_explained(ids):
    at = opened(PAGE, run=ids["columns"])
    assert not at.exception
    assert "between users" in texts(at)
    at = opened(PAGE, run=ids["columns"], view="titles")
    assert not at.exception
    assert "rows (users) as signals" in texts(at)


@pytest.mark.parametrize(
    ("linked", "view"),
    [
        *((name, name) for name in ("overview", "titles", "map", "neighbours", "variances")),
        ("axes", "axes"),
        ("Taste axes", "axes"),  # as earlier versions wrote it
    ],
)
def test_every_view_opens_from_a_link(ids, linked, view):
    at = opened(PAGE, run=ids["weak"], view=linked)
    assert not at.exception
    assert not at.error
    assert at.segmented_control(key="view").value == view
    assert alone(at.query_params.get("view", "titles")) == view


def test_links_carry_keys_and_those_with_words_open(ids):
    words = {"view": "Overview", "kind": "Covariance", "order": "oldest first"}
    at = opened(PAGE, run=ids["weak"], **words)
    keys = {"view": "overview", "kind": "covariance", "order": "year"}
    assert {name: alone(at.query_params[name]) for name in words} == keys
    at = at.segmented_control(key="view").set_value("titles").run()
    assert not {"kind", "order"} & set(at.query_params)
    words = {"titles_from": "Genre", "titles_kind": "Covariance", "titles_order": "by genre"}
    at = opened(PAGE, run=ids["weak"], **words)
    keys = {"titles_from": "genre", "titles_kind": "covariance", "titles_order": "genre"}
    assert {name: alone(at.query_params[name]) for name in words} == keys


def test_without_a_view_it_opens_on_titles_and_old_links_on_the_overview(ids):
    assert opened(PAGE, run=ids["weak"]).segmented_control(key="view").value == "titles"
    # What only the overview has in its address, which was without a view when it came first.
    for name, value in (("iteration", "2"), ("kind", "covariance"), ("order", "year")):
        at = opened(PAGE, run=ids["weak"], **{name: value})
        assert at.segmented_control(key="view").value == "overview"
    # Columns as signals have no titles to show.
    assert opened(PAGE, run=ids["columns"]).segmented_control(key="view").value == "overview"


@pytest.mark.parametrize("kind", ["covariance", "correlation", "partial"])
@pytest.mark.parametrize("order", ["popularity", "genre", "year", "title", "similarity"])
def test_overview_in_all_kinds_and_orders(ids, kind, order):
    at = opened(PAGE, run=ids["weak"], view="overview")
    at.segmented_control(key="kind").set_value(kind)
    at.selectbox(key="order").set_value(order).run()
    assert not at.exception
    assert not at.error
    assert "pooled to 60 by 60 blocks" in texts(at)


def test_the_slider_goes_through_the_iterations(ids):
    at = opened(PAGE, run=ids["weak"], view="overview")
    slider = at.select_slider(key="overview_iteration")
    assert slider.value == 3
    at = slider.set_value(1).run()
    assert "at iteration 1" in texts(at)
    assert at.query_params["iteration"] in ("1", ["1"])
    linked = opened(PAGE, run=ids["weak"], iteration="2")
    assert "at iteration 2" in texts(linked)
    assert "at iteration 3" in texts(opened(PAGE, run=ids["weak"], iteration="99"))


def test_the_iteration_and_the_title_come_back_with_the_page(ids):
    at = opened(PAGE, run=ids["weak"], view="overview")
    at = at.select_slider(key="overview_iteration").set_value(2).run()
    at = at.switch_page("pages/runs.py").run()
    at = at.switch_page(PAGE).run()
    at = at.segmented_control(key="view").set_value("overview").run()
    assert at.select_slider(key="overview_iteration").value == 2
    at = at.segmented_control(key="view").set_value("neighbours").run()
    assert "iteration" not in at.query_params
    next(box for box in at.selectbox if box.label == "Title").set_value(7).run()
    at = at.segmented_control(key="view").set_value("overview").run()
    assert "title" not in at.query_params
    assert at.select_slider(key="overview_iteration").value == 2
    at = at.segmented_control(key="view").set_value("neighbours").run()
    assert next(box for box in at.selectbox if box.label == "Title").value == 7


def test_searched_titles_leave_the_link_with_the_search(ids):
    at = opened(PAGE, run=ids["weak"], view="titles", titles_from="search")
    box = at.multiselect[0]
    at = box.set_value(box.value[:3]).run()
    assert "titles" in at.query_params
    at = at.segmented_control(key="titles_from").set_value("rated").run()
    assert "titles" not in at.query_params
    at = at.segmented_control(key="titles_from").set_value("search").run()
    assert len(at.multiselect[0].value) == 3


def test_the_picture_can_be_downloaded_and_columns_lead_to_the_settings(ids):
    at = opened(PAGE, run=ids["weak"], view="overview")
    assert "This picture as CSV" in [button.label for button in at.get("download_button")]
    at = opened(PAGE, run=ids["columns"], view="titles")
    (link,) = [e.proto for e in at.get("page_link") if e.proto.label == "Fit with rows as signals"]
    assert "run=new" in link.query_string


def test_a_newer_model_of_a_run_is_another_key(ids):
    before = covariance_data.key_of(ids["weak"])
    with Store() as store:
        path = store.model_path(ids["weak"])
    os.utime(path, ns=(1, 1))
    assert covariance_data.key_of(ids["weak"]) != before


def test_play_starts_from_the_first_iteration(ids):
    at = opened(PAGE, run=ids["weak"], view="overview")
    at = at.button(key="overview_play").click().run()
    assert "at iteration 1" in texts(at)
    assert at.button(key="overview_play").label == "Pause"
    at = at.button(key="overview_play").click().run()
    assert at.button(key="overview_play").label == "Play"


def test_choosing_titles_by_genre_and_search(ids):
    at = opened(PAGE, run=ids["weak"], view="titles")
    at = at.segmented_control(key="titles_from").set_value("genre").run()
    assert not at.exception
    genre = at.selectbox(key="genre")
    at = genre.set_value(genre.options[0]).run()
    assert not at.exception
    at = at.segmented_control(key="titles_from").set_value("search").run()
    box = at.multiselect[0]
    assert len(box.value) == 10
    at = box.set_value(box.value[:1]).run()
    assert "at least two titles" in texts(at)


def test_a_pair_can_be_chosen_without_the_mouse(ids):
    at = opened(PAGE, run=ids["weak"], view="titles")
    options = at.selectbox(key="pair_row").options
    at.selectbox(key="pair_row").select(options[2])
    at = at.selectbox(key="pair_column").select(options[2]).run()
    assert "The variance of" in texts(at)
    at = at.selectbox(key="pair_column").select(options[5]).run()
    assert "Nothing else known" in texts(at)
    pair = at.query_params["pair"]
    text = pair if isinstance(pair, str) else pair[0]
    linked = opened(PAGE, run=ids["weak"], view="titles", pair=text)
    assert linked.selectbox(key="pair_column").value == at.selectbox(key="pair_column").value
    fewer = opened(PAGE, run=ids["weak"], view="titles", pair="x,", n="20")
    assert len(fewer.selectbox(key="pair_row").options) == 20
    assert [metric.label for metric in at.metric] == ["Correlation", "Covariance", "Both"]
    at = at.toggle(key="pair_partial").set_value(True).run()
    assert "held fixed, their partial correlation is" in texts(at)


def test_neighbours_of_a_linked_title(ids):
    with Store() as store:
        model = store.model(ids["weak"])
    item = model.items.ids[7]
    at = opened(PAGE, run=ids["weak"], view="neighbours", title=str(item))
    box = next(box for box in at.selectbox if box.label == "Title")
    assert box.value == 7
    frame = at.dataframe[0].value
    assert len(frame) == 15
    assert (np.diff(frame["Correlation"]) <= 0).all()
    at = opened(PAGE, run=ids["weak"], view="neighbours", title="nothing")
    assert "no title with the id nothing" in at.warning[0].value


def test_neighbours_on_a_projector_are_a_plain_table(ids):
    at = opened(PAGE, run=ids["weak"], view="neighbours", present="1")
    assert not at.exception
    assert not at.dataframe
    (table,) = at.table
    assert list(table.value.columns) == ["Title", "Correlation", "Both"]
    assert len(table.value) == 10
    assert "… and 5 more" in texts(at)


def test_a_large_minimum_leaves_a_hint(ids):
    at = opened(PAGE, run=ids["weak"], view="neighbours")
    least = at.number_input(key="neighbours_least")
    at = least.set_value(least.max).run()
    assert not at.exception


def test_every_axis_has_words(ids):
    at = opened(PAGE, run=ids["weak"], view="axes")
    for axis in (1, 2, 8):
        at = at.segmented_control(key="axis").set_value(axis).run()
        assert not at.exception
        assert f"Axis {axis} carries" in texts(at)


def alone(value):
    """A parameter of the address, however AppTest gives it."""
    return value if isinstance(value, str) else value[0]


def picked(at):
    return next(box for box in at.multiselect if box.label == "Picked titles")


def test_titles_picked_on_the_map_go_to_the_heatmap(ids):
    at = opened(PAGE, run=ids["weak"], view="map")
    assert at.button(key="map_to_heatmap").disabled
    with Store() as store:
        thirty = item_orders.ordered(store.model(ids["weak"]), "popularity")[:30].tolist()
    assert "have a variance of 60 together" in texts(at)
    at = picked(at).set_value([4, 7, 9]).run()
    linked = alone(at.query_params["map"])
    twice = f"{linked},{linked},no-such-id"
    again = opened(PAGE, run=ids["weak"], view="map", map=twice, map_n="30")
    assert picked(again).value == [item for item in (4, 7, 9) if item in thirty]
    assert "have a variance of 30 together" in texts(again)
    at = at.button(key="map_to_heatmap").click().run()
    assert not at.exception
    assert at.segmented_control(key="view").value == "titles"
    assert at.segmented_control(key="titles_from").value == "search"
    assert at.multiselect[0].value == [4, 7, 9]
    assert alone(at.query_params["titles"]) == linked
    assert "map" not in at.query_params
    # The address alone shows the same.
    query = {name: alone(value) for name, value in at.query_params.items()}
    assert opened(PAGE, **query).multiselect[0].value == [4, 7, 9]
    at = at.segmented_control(key="view").set_value("map").run()
    assert picked(at).value == [4, 7, 9]


def test_titles_picked_on_the_map_are_offered_on_recommend(ids):
    at = picked(opened(PAGE, run=ids["weak"], view="map")).set_value([4, 7, 9]).run()
    with Store() as store:
        model = store.model(ids["weak"])
    at = at.button(key="leave_to_recommend").click().run()
    assert not at.exception
    assert at.title[0].value == "Recommend"
    offered = [text.value for text in at.markdown]
    place = offered.index("**Rate next**") + 1
    named = [model.title(item) for item in sorted((4, 7, 9), key=lambda m: -model.item_counts[m])]
    assert [text.replace("\\", "") for text in offered[place : place + 3]] == named


def test_what_is_drawn_around_is_picked(monkeypatch):
    points = [{"customdata": [8]}, {"customdata": 3}, {"customdata": [8]}, {"x": 1.0}]
    state = {"chart": {"selection": {"points": points}}}
    monkeypatch.setattr(title_map.st, "session_state", state)
    title_map._take("chart", "box", [1, 3, 8, 9])
    assert state["box"] == [3, 8]


def test_a_map_of_two_titles_says_why_there_is_none(empty):
    run = computed(empty, small(items=2, iterations=1))
    at = opened(PAGE, run=run.id, view="map")
    assert not at.exception
    assert "A map needs 3 titles or more, and there are 2" in texts(at)


def test_star_texts():
    assert rating_rows.stars(3.5) == "★★★½ 3.5"
    assert rating_rows.stars(4.0) == "★★★★ 4"
