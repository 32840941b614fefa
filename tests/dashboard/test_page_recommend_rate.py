"""Rating in one go on the Recommend page: batches of titles, one click each, on any scale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import streamlit as st
from computed_runs import computed, opened, small, texts

from gmc_core.data.ratings import RatingScale
from gmc_core.runs.store import Store
from gmc_dashboard.recommend import who
from gmc_dashboard.recommend.one_user import fits_five_stars, offers_all, quick_values
from gmc_dashboard.recommend.picks import BATCH, POOL, well_known
from gmc_dashboard.recommend.views import beyond_scale
from gmc_dashboard.shared import context

PAGE = "pages/recommend.py"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    with Store(folder) as store:
        return folder, computed(store, small()).id


@pytest.fixture
def run(home, monkeypatch):
    monkeypatch.setenv("GMC_HOME", str(home[0]))
    st.cache_resource.clear()
    st.cache_data.clear()
    return home[1]


@pytest.fixture
def model(run):
    with Store() as store:
        return store.model(run)


def on_offer(at):
    """Positions of the titles that can be rated with one click, in order."""
    kinds = (*at.feedback, *at.get("button_group"))
    return [int(one.key.rpartition("_")[2]) for one in kinds if "_quick_" in (one.key or "")]


def shown(at):
    return next(frame.value for frame in at.dataframe if "Interval" in frame.value.columns)


def quick(at, item):
    return next(one for one in at.feedback if one.key.endswith(f"_quick_{item}"))


def button(at, label):
    return next(one for one in at.button if one.label == label)


def test_each_click_folds_in_and_moves_the_title_to_the_own_ratings(run, model):
    at = opened(PAGE, run=run)
    items = on_offer(at)
    assert len(set(items)) == BATCH
    given = {}
    for item, star in zip(items[:3], (4, 2, 0), strict=True):
        at = quick(at, item).set_value(star).run()
        given[item] = star + 1
        assert not at.exception
        assert f"from {len(given)} rating" in texts(at)
    expected = model.recommend(
        model.posterior(list(given), list(given.values())),
        10,
        min_ratings=at.number_input(key="least").value,
    )
    assert list(shown(at)["Title"]) == [r.title for r in expected]
    # The others stay where they are; the rated ones are under "Your ratings", the newest first.
    assert on_offer(at) == items[3:]
    own = [box for box in at.selectbox if box.label.startswith("Rating of ")]
    assert [box.value for box in own] == [1.0, 3.0, 5.0]
    assert own[0].label == f"Rating of {model.title(items[2])}"
    at = next(b for b in at.button if b.key.endswith(f"_rate_{items[1]}_off")).click().run()
    assert "from 2 ratings" in texts(at)
    assert set(on_offer(at)) == {items[1], *items[3:]}
    link = at.query_params["rated"]
    again = opened(PAGE, run=run, rated=link if isinstance(link, str) else link[0])
    assert list(shown(again)["Title"]) == list(shown(at)["Title"])


def test_more_titles_are_others_until_all_have_been_on_offer(run, model):
    at = opened(PAGE, run=run)
    seen = on_offer(at)
    while len(seen) < len(model.items):
        at = button(at, "More titles").click().run()
        seen += on_offer(at)
    assert sorted(seen) == list(range(len(model.items)))
    at = button(at, "More titles").click().run()
    assert len(on_offer(at)) == BATCH


def test_all_titles_of_a_batch_rated_bring_the_next(run):
    at = opened(PAGE, run=run)
    key = at.feedback[0].key.partition("_quick_")[0] + "_batch"
    kind, items = at.session_state[key]
    at.session_state[key] = (kind, items[:1])
    at = quick(at, items[0]).set_value(3).run()
    assert "from 1 rating" in texts(at)
    assert len(on_offer(at)) == BATCH
    assert items[0] not in on_offer(at)


def test_a_link_with_many_ratings_has_few_controls(run, model):
    ids = model.items.ids
    at = opened(PAGE, run=run, rated=",".join(f"{ids[m]}:{1 + m % 5}" for m in range(45)))
    assert "from 45 ratings" in texts(at)
    assert "Your ratings: 45" in texts(at)

    def controls():
        keys = [one.key or "" for one in (*at.feedback, *at.selectbox, *at.button)]
        return [key for key in keys if "_quick_" in key or "_rate_" in key]

    first = set(controls())
    assert BATCH < len(first) <= 24
    page = at.get("pagination")[0]
    at.session_state[page.key] = 9
    at = at.run()
    assert BATCH < len(controls()) <= 24
    assert set(controls()) != first
    at = button(at, "Clear").click().run()
    assert "average user" in texts(at)


def test_telling_titles_say_what_they_tell(run, model):
    at = opened(PAGE, run=run)
    at = at.segmented_control(key="picks").set_value("Telling most").run()
    assert not at.exception
    found = model.most_informative(model.posterior([], []), np.arange(len(model.items)), BATCH)
    assert on_offer(at) == [item for item, _ in found]
    total = float(model.posterior([], []).variance.sum())
    assert f"−{100 * found[0][1] / total:.1f} % variance" in texts(at)


@pytest.mark.parametrize(
    ("scale", "label"),
    [
        (RatingScale(0, 10, 1), "10"),
        (RatingScale(-10, 10, None), "−5"),
        (RatingScale(0, 100, 1), "75"),
        (RatingScale(0, 1, 1), "1"),
    ],
)
def test_any_scale_can_be_rated(run, model, monkeypatch, scale, label):
    other = replace(model, scale=scale)
    monkeypatch.setattr(context, "model_of", lambda _: other)
    at = opened(PAGE, run=run)
    assert not at.exception
    assert not at.error
    item = on_offer(at)[0]
    control = next(one for one in at.get("button_group") if f"_quick_{item}" in (one.key or ""))
    at = control.set_value(float(label.replace("−", "-"))).run()
    assert not at.exception
    assert "from 1 rating." in texts(at)
    assert label in texts(at)


@pytest.mark.parametrize(
    ("scale", "values", "whole"),
    [
        (RatingScale(1, 5, 1), [1, 2, 3, 4, 5], True),
        (RatingScale(0.5, 5, 0.5), [1, 2, 3, 4, 5], False),
        (RatingScale(1, 6, 1), [1, 2, 3, 4, 5, 6], True),
        (RatingScale(0, 10, 1), list(range(11)), True),
        (RatingScale(-10, 10, None), [-10, -5, 0, 5, 10], False),
        (RatingScale(1, 100, 1), [1, 26, 51, 75, 100], False),
    ],
)
def test_what_one_click_can_give(scale, values, whole):
    found = quick_values(scale)
    assert found == values
    assert list(scale.project(found)) == found  # each is a rating of the scale
    assert offers_all(scale) == whole
    assert fits_five_stars(scale) == (values == [1, 2, 3, 4, 5])


def test_well_known_titles_are_of_the_most_rated_and_unlike_each_other(model):
    popular = np.argsort(-model.item_counts, kind="stable").tolist()
    found = well_known(model, popular)
    assert len(found) == len(set(found)) == BATCH
    assert found[0] == popular[0]
    assert set(found) <= set(popular[:POOL])
    assert [popular.index(item) for item in found] == sorted(map(popular.index, found))
    first = well_known(model, popular[:POOL], 2)
    block = model.gaussian.covariance.submatrix(np.array(popular[:POOL]), np.array(popular[:POOL]))
    likeness = np.abs(block[0] / np.sqrt(block[0, 0] * np.diagonal(block)))
    assert first[1] == popular[int(np.argmin(likeness))]
    assert well_known(model, popular[:5]) == popular[:5]
    assert well_known(model, []) == []


def test_a_prediction_beyond_the_scale_is_explained_and_others_are_not():
    scale = RatingScale(1, 5)
    assert beyond_scale([1.0, 4.9, 5.0, 5.004], scale) == ""
    assert "5.18 on a scale of at most 5" in beyond_scale([5.01, 5.18, 3.0], scale)
    assert "0.90 on a scale of at least 1" in beyond_scale([0.9, 3.0], scale)
    assert "−10.20" in beyond_scale([-10.2], RatingScale(-10, 10, None))


def test_ratings_of_the_tour_are_not_the_visitors_own(run, model, monkeypatch):
    with Store() as store:
        names = [who.own_name(store.run(run), model)]
        monkeypatch.setattr(who.tour, "asked", lambda: 6)
        names.append(who.own_name(store.run(run), model))
    assert names[0].startswith("mine_") and names[1] != names[0]
