"""The Learn page: every chapter, its controls, and that its numbers are the core's."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from learn_plane import plane_of, told
from stored_runs import charts, opened, texts, use_folders

import gmc_dashboard
from gmc_core import lesson
from gmc_dashboard.learn import figures as figures
from gmc_dashboard.learn import plane
from gmc_dashboard.learn.steps import WHY_TITLE
from gmc_dashboard.shared import playing, units
from gmc_dashboard.shared.components import PAGES

CHAPTERS = ("two", "steps", "many", "cost")


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    use_folders(tmp_path, monkeypatch)


def number(at, label):
    return next(card.value for card in at.metric if card.label == label)


def scrolled(at):
    return any("scrollTo(0, 0)" in part.proto.body for part in at.get("html"))


def sound(at):
    assert not at.exception
    assert not at.error
    return at


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_picture_has_words_and_a_formula(chapter):
    at = sound(opened("learn", chapter=chapter))
    assert at.segmented_control(key="chapter").value == chapter
    said = charts(at) + [shown["alt"] for shown in plane_of(at)]
    assert len(said) >= 2
    assert all(re.search(r"\d", words) for words in said)
    headings = len(at.subheader)
    assert len(at.get("latex")) + texts(at).count("$$") >= headings >= 2


def test_chapter_1_shows_the_conditional_gaussian():
    at = sound(opened("learn", learn_rating="4.5"))
    # Correlation .8 and standard deviations of 1: 3 + .8 (4.5 - 3.2), √(1 - .64).
    assert number(at, "Fill f̃") == "4.04"
    assert number(at, "± standard deviation") == "0.60"
    at.slider(key="learn_rating").set_value(2.0).run()
    assert number(at, "Fill f̃") == f"{3 + 0.8 * (2 - 3.2):.2f}"
    assert number(at, "± standard deviation") == "0.60"
    at.slider(key="learn_noise").set_value(0.6).run()
    assert number(at, "Fill f̃") == f"{3 + 0.8 / 1.6 * (2 - 3.2):.2f}"
    assert number(at, "± standard deviation") == f"{(1 - 0.64 / 1.6) ** 0.5:.2f}"
    at.segmented_control(key="learn_rated").set_value(lesson.PAIR[1]).run()
    assert number(sound(at), "Fill f̃") == f"{3.2 + 0.8 / 1.6 * (2 - 3):.2f}"
    assert "0.80 + " not in texts(at)


def test_chapter_2_goes_forward_and_back():
    at = sound(opened("learn", chapter=CHAPTERS[1]))
    assert at.button(key="learn_play_back").disabled
    assert number(at, "Smallest variance") == "none yet"
    headings = []
    for _ in range(4):
        at.button(key="learn_play_step").click().run()
        headings.append(at.subheader[0].value)
    assert [text.split(":")[0] for text in headings] == [
        "M-step 1", "E-step 1", "M-step 2", "E-step 2",
    ]  # fmt: skip
    at.button(key="learn_play_back").click().run()
    assert at.subheader[0].value == headings[2]
    planted = lesson.two_movies(80, 0.15, 0.8)
    frame = lesson.tell(planted, "paper", 0.0).frames[3]
    assert number(at, "Smallest variance") == f"{lesson.eigenvalues(frame.gaussian)[0]:.3f}"
    assert number(at, "Error of the fills") == f"{planted.error(frame.estimates):.2f}"
    at.button(key="learn_play_reset").click().run()
    assert at.slider(key="learn_step").value == 0
    sound(at)


def test_chapter_2_compares_the_m_steps_at_the_end():
    at = sound(opened("learn", chapter=CHAPTERS[1], learn_step="20"))
    assert at.button(key="learn_play_step").disabled
    thin = float(number(at, "Smallest variance"))
    at.select_slider(key="learn_epsilon").set_value(0.3).run()
    assert float(number(at, "Smallest variance")) >= 0.3
    at.select_slider(key="learn_epsilon").set_value(0.0)
    at.segmented_control(key="learn_method").set_value("Exact EM").run()
    assert float(number(at, "Smallest variance")) > 5 * thin
    assert "plus *Cᵢ*" in texts(at) or at.subheader[0].value.startswith("E-step")
    said = texts(sound(at))
    for point in (
        "nothing puts back the variance",
        "ever thinner than ε",
        "full rank",
        "too large",
    ):
        assert point in re.sub(r"\s+", " ", said)


@pytest.mark.parametrize("both", ["0", "100"])
def test_chapter_2_at_the_ends_of_its_data(both):
    at = sound(opened("learn", chapter=CHAPTERS[1], learn_both=both, learn_step="20"))
    assert ("made up" in " ".join(box.value for box in at.info)) == (both == "0")
    assert (number(at, "Error of the fills") == "nothing to fill") == (both == "100")


# What is moved in the picture ------------------------------------------------------------


def test_chapter_1_follows_the_line_and_the_ellipse():
    at = sound(opened("learn", learn_noise="0.5"))
    at = sound(told(at, what="rating", rating=2.3))
    assert at.slider(key="learn_rating").value == 2.3
    assert at.query_params["learn_rating"] in ("2.3", ["2.3"])
    at = sound(told(at, what="ellipse", mean=[3.0, 3.5], cov=[[1.44, 0.54], [0.54, 0.81]]))
    keys = ("mean_a", "mean_b", "sd_a", "sd_b", "correlation")
    values = [at.slider(key=f"learn_{key}").value for key in keys]
    assert values == pytest.approx([3.0, 3.5, 1.2, 0.9, 0.5])
    assert number(at, "Fill f̃") == f"{3.5 + 0.54 / 1.94 * (2.3 - 3.0):.2f}"
    assert number(at, "± standard deviation") == f"{(0.81 - 0.54**2 / 1.94) ** 0.5:.2f}"
    (shown,) = plane_of(at)
    assert shown["seen"] == 2
    np.testing.assert_allclose(shown["ellipse"]["cov"], [[1.44, 0.54], [0.54, 0.81]])


def test_chapter_1_the_ellipse_is_that_of_its_dots_whoever_is_moved():
    at = sound(opened("learn"))
    (before,) = plane_of(at)
    assert len(before["users"]) == 40
    user = before["users"][3]["id"]
    for message in (
        {"what": "user", "id": user, "at": [5.5, 0.5]},
        {"what": "user", "id": before["next"], "at": [1.0, 5.0]},
        {"what": "taken", "id": before["users"][7]["id"]},
    ):
        at = sound(told(at, **message))
        (shown,) = plane_of(at)
        points = np.array([one["at"] for one in shown["users"]])
        found = lesson.gaussian_of(points)
        np.testing.assert_allclose(found.mean, shown["ellipse"]["mean"], atol=1e-9)
        np.testing.assert_allclose(lesson.matrix(found), shown["ellipse"]["cov"], atol=1e-9)
        # The sliders have steps of .01: what was not moved stays within a pixel.
        if "at" in message:
            at_now = {one["id"]: one["at"] for one in shown["users"]}
            np.testing.assert_allclose(at_now[message["id"]], message["at"], atol=0.05)
    assert len(shown["users"]) == 40
    assert at.slider(key="learn_correlation").value < 0.8
    # The link holds it all, and the first data come back.
    link = {name: one_value(at, name) for name in at.query_params}
    assert plane_of(opened("learn", **link))[0]["users"] == shown["users"]
    at = sound(at.button(key="learn_cloud_first").click().run())
    assert plane_of(at)[0]["users"] == before["users"]
    assert at.slider(key="learn_correlation").value == 0.8


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_picture_stands_before_what_moves_it(chapter):
    # A phone shows the columns below each other.
    at = opened("learn", chapter=chapter)
    first, *others = (
        column for column in at.columns if column.get("bidi_component") or column.slider
        or column.get("plotly_chart")
    )  # fmt: skip
    assert first.get("bidi_component") or first.get("plotly_chart")
    assert not first.slider
    assert any(column.slider for column in others)


def test_chapter_1_a_slider_that_tells_its_former_value_moves_nobody():
    # A browser that is quick tells the next place of a dot before its sliders have followed.
    at = opened("learn")
    first = plane_of(at)[0]
    user = first["users"][5]["id"]
    at = told(at, what="user", id=user, at=[1.0, 5.0])
    drawn = plane_of(at)[0]["ellipse"]
    before = {one["id"]: one["at"] for one in plane_of(at)[0]["users"]}
    former = {"mean_a": 3.2, "mean_b": 3.0, "sd_a": 1.0, "sd_b": 1.0, "correlation": 0.8}
    for name, value in former.items():
        at.slider(key=f"learn_{name}").set_value(value)
    at = sound(told(at, what="user", id=user, at=[0.5, 6.0], drawn=drawn))
    shown = {one["id"]: one["at"] for one in plane_of(at)[0]["users"]}
    expected = before | {user: [0.5, 6.0]}
    np.testing.assert_allclose(list(shown.values()), list(expected.values()), atol=0.03)


def test_chapter_1_keeps_enough_users_for_an_ellipse():
    at = opened("learn")
    ids = [one["id"] for one in plane_of(at)[0]["users"]]
    crowd = ";".join(f"{one}:" for one in ids[:35])
    at = sound(opened("learn", learn_cloud_users=crowd))
    assert len(plane_of(at)[0]["users"]) == 5
    at = sound(told(at, what="taken", id=ids[-1]))
    assert len(plane_of(at)[0]["users"]) == 5
    assert "have to stay" in at.toast[0].value
    at = sound(opened("learn", learn_cloud_users=";".join(f"{one}:" for one in ids[:38])))
    assert len(plane_of(at)[0]["users"]) == 40


def test_chapter_2_is_computed_anew_for_moved_users():
    at = sound(opened("learn", chapter=CHAPTERS[1], learn_step="20"))
    (shown,) = plane_of(at)
    alone = next(one["id"] for one in shown["users"] if one["kind"] == "a")
    at = told(at, what="user", id=0, at=[1.0, 5.0])
    at = told(at, what="user", id=alone, at=[5.0, 0.0])
    at = told(at, what="user", id=80, at=[2.0, 4.5])
    at = sound(told(at, what="taken", id=1))
    changes = {0: (1.0, 5.0), alone: (5.0, np.nan), 80: (2.0, 4.5), 1: None}
    planted, ids = lesson.changed(lesson.two_movies(80, 0.15, 0.8), changes)
    last = lesson.tell(planted, "paper", 0.0).last
    (shown,) = plane_of(at)
    assert [one["id"] for one in shown["users"]] == list(ids)
    np.testing.assert_allclose([one["at"] for one in shown["users"]], last.estimates)
    assert number(at, "Smallest variance") == f"{lesson.eigenvalues(last.gaussian)[0]:.3f}"
    assert number(at, "Error of the fills") == f"{planted.error(last.estimates):.2f}"
    at = told(at, what="taken", id=80)  # who was added goes for good
    assert one_value(at, "learn_steps_users") == f"0:1.00,5.00;1:;{alone}:5.00,"


def one_value(at, name):
    value = at.query_params[name]
    return value[0] if isinstance(value, list) else value


def test_a_message_that_makes_no_sense_moves_nothing():
    for message in (
        {"what": "rating", "rating": None},
        {"what": "rating", "rating": 1e9},
        {"what": "user", "id": 3, "at": [float("nan"), 2]},
        {"what": "user", "id": "x", "at": [1, 2]},
        {"what": "ellipse", "mean": [1], "cov": []},
        {"what": "ellipse", "mean": [3, 3], "cov": [[1, 1], [1, 1]]},
        {"what": "taken", "id": 3, "drawn": {"mean": [3, 3], "cov": [[0, 0], [0, 1]]}},
        {"what": "nothing"},
        {},
    ):
        assert plane.read(message) is None
    at = opened("learn")
    (before,) = plane_of(at)
    at = told(at, what="user", id=99_999, at=[1, 2])
    at = sound(told(at, what="taken", id=-4))
    assert plane_of(at)[0] == {**before, "seen": 2}


def test_other_data_and_the_first_again():
    at = sound(opened("learn", chapter=CHAPTERS[1], learn_step="20", learn_steps_users="0:1,5"))
    at = sound(at.button(key="learn_steps_other").click().run())
    planted = lesson.two_movies(80, 0.15, 0.8, seed=1)
    last = lesson.tell(planted, "paper", 0.0).last
    assert number(at, "Smallest variance") == f"{lesson.eigenvalues(last.gaussian)[0]:.3f}"
    assert one_value(at, "learn_seed") == "1"
    assert "learn_steps_users" not in at.query_params
    at = sound(opened("learn", chapter=CHAPTERS[2], learn_seed="1"))
    planted = lesson.twenty_movies(200, 0.3, 1)
    story = lesson.tell(planted, "paper", 0.3)
    assert number(at, "Error of the fills") == f"{planted.error(story.last.estimates):.2f}"
    at = sound(at.button(key="learn_many_first").click().run())
    assert "learn_seed" not in at.query_params


# Played ------------------------------------------------------------------------------------


def test_chapter_2_is_played_and_stays_at_its_end(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(playing.time, "monotonic", lambda: now[0])
    at = sound(opened("learn", chapter=CHAPTERS[1], learn_step="17"))
    at = at.button(key="learn_play_run").click().run()
    assert at.button(key="learn_play_run").label == "Pause"
    seen = []
    for _ in range(5):
        now[0] += 1.0
        at = sound(at.run())
        seen.append(at.slider(key="learn_step").value)
    assert seen == [18, 19, 20, 20, 20]
    assert at.button(key="learn_play_run").label == "Play"
    at = at.button(key="learn_play_run").click().run()
    assert at.slider(key="learn_step").value == 0


def test_a_browser_that_lags_behind_does_not_turn_the_film_back(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(playing.time, "monotonic", lambda: now[0])
    at = sound(opened("learn", chapter=CHAPTERS[1], learn_step="17"))
    at = at.button(key="learn_play_run").click().run()
    seen = []
    # The slider's value as the browser still has it, at the first second and at the last.
    for late in (None, 17, None, 18, None, 19, None, None):
        now[0] += 1.0
        if late is not None:
            at.slider(key="learn_step").set_value(late)
        at = sound(at.run())
        seen.append(at.slider(key="learn_step").value)
    assert seen == [18, 18, 19, 19, 20, 20, 20, 20]
    assert at.button(key="learn_play_run").label == "Play"


def test_chapter_3_is_played_from_its_first_iteration():
    at = sound(opened("learn", chapter=CHAPTERS[2]))
    planted = lesson.twenty_movies(200, 0.3)
    story = lesson.tell(planted, "paper", 0.3)
    for key, iteration in (("step", 1), ("step", 2), ("reset", 10)):
        at = sound(at.button(key=f"learn_many_play_{key}").click().run())
        frame = story.frames[2 * iteration]
        assert at.slider(key="learn_iteration").value == iteration
        assert number(at, "Error of the fills") == f"{planted.error(frame.estimates):.2f}"
        off = lesson.relative_error(frame.gaussian, planted.truth)
        assert number(at, "Σ is off by") == f"{100 * off:.0f} %"


def test_chapter_3_breaks_without_epsilon_and_says_why():
    at = sound(opened("learn", chapter=CHAPTERS[2], learn_users="10", learn_many_epsilon="0"))
    assert "broke down" in at.warning[0].value
    assert "Raise ε" in at.warning[0].value
    assert "at most 9 of the 20" in texts(at)
    assert "broke down" in charts(at)[-1]
    assert "no point where the algorithm broke down" in texts(at)
    at.select_slider(key="learn_many_epsilon").set_value(0.3).run()
    assert not sound(at).warning
    assert "broke down" not in texts(at)
    assert "floor ε = 0.3" in charts(at)[2]


def test_chapter_3_shows_the_fit_of_the_core():
    at = sound(opened("learn", chapter=CHAPTERS[2], learn_users="100", learn_fill="20"))
    planted = lesson.twenty_movies(100, 0.2)
    told = lesson.tell(planted, "paper", 0.3)
    assert number(at, "Error of the fills") == f"{planted.error(told.last.estimates):.2f}"
    off = lesson.relative_error(told.last.gaussian, planted.truth)
    assert number(at, "Σ is off by") == f"{100 * off:.0f} %"


def test_chapter_4_counts_the_work_of_the_selected_data():
    at = sound(opened("learn", chapter=CHAPTERS[3]))
    assert number(at, "Users M × items N") == "671 × 6,003"
    assert number(at, "Σ Nᵢ³/3") == "14.3 GFLOP"
    assert "86 GFLOP" in texts(at)
    at.slider(key="learn_rated_count").set_value(6).run()
    assert "**72 flops**" in texts(sound(at))


def test_chapter_4_without_readable_data_still_teaches():
    at = sound(opened("learn", chapter=CHAPTERS[3], data="ml-25m"))
    assert "MovieLens 1M only" in at.info[0].value
    assert "86 GFLOP" in texts(at)


def test_chapters_lead_on_and_back_and_keep_their_settings():
    at = opened("learn")
    at.slider(key="learn_rating").set_value(1.5).run()
    assert not scrolled(at)
    at.button(key="learn_next_chapter").click().run()
    assert scrolled(at)  # the button was at the end of a chapter, and the next one begins above
    at.slider(key="learn_step").set_value(3).run()
    assert not scrolled(at)
    assert at.segmented_control(key="chapter").value == CHAPTERS[1]
    at.button(key="learn_previous_chapter").click().run()
    assert sound(at).slider(key="learn_rating").value == 1.5


# What is drawn, and how --------------------------------------------------------------------


def test_a_level_is_named_in_the_legend_where_no_curve_crosses_its_name():
    thick = figures.thickness_figure({"the paper's": [0.4, 0.2, 0.1]}, 0.2, 1)
    spectrum = figures.spectrum_figure(np.ones(20), np.ones(20), 0.3)
    for figure, words in ((thick, "planted: 0.20"), (spectrum, "the floor ε = 0.3")):
        assert figure.data[-1].name == words
        assert figure.data[-1].y[0] == figure.data[-1].y[1]
        assert not [note for note in figure.layout.annotations if note.text]
    assert spectrum.layout.xaxis.tickvals[0] == 1  # the first axis of Σ; there is none before it


def test_the_entries_of_a_matrix_are_squares():
    names = lesson.taste_names()
    figure = figures.matrix_figure(np.eye(20), names, 1.0, title="Σ", labels=lesson.taste_middles())
    assert figure.layout.yaxis.scaleanchor == "x"
    assert figure.layout.xaxis.constrain == figure.layout.yaxis.constrain == "domain"
    assert list(figure.layout.yaxis.ticktext) == ["space", "love", "crime"]
    assert [names.index(name) for name in figure.layout.yaxis.tickvals] == [3, 10, 17]


def test_on_a_projector_signs_are_named_and_pictures_have_the_width():
    at = sound(opened("learn", chapter="steps", present="1"))
    (shown,) = plane_of(at)
    assert [words for _, words in shown["side"]["legend"]][3:] == [
        "planted truth",
        "learned (95\u00a0%)",
    ]
    assert shown["side"]["help"] == []
    # Beside a title alone, two fifths of the screen would be empty.
    in_columns = [chart for column in at.columns for chart in column.get("plotly_chart")]
    assert len(at.get("plotly_chart")) == 1 and not in_columns
    assert [part.label for part in at.expander] == [WHY_TITLE]
    at = sound(opened("learn", chapter="steps"))
    assert plane_of(at)[0]["side"]["help"] and not at.expander
    assert f"#### {WHY_TITLE}" in texts(at)


def test_what_is_compared_has_one_unit():
    at = sound(opened("learn", chapter="cost"))
    assert number(at, "The paper's formula") == "0.67 GFLOP"
    assert units.flops_text(674.5e6) == "674.5 MFLOP"
    assert units.flops_text(3e12, like=2e9) == "3,000.0 GFLOP"


def test_nonsense_in_the_link_is_ignored():
    link = {"learn_step": "999", "learn_epsilon": "-4", "learn_both": "x", "learn_seed": "-1"}
    link["learn_steps_users"] = "x;3:;4:1;900:1,;5:nan,2;;7:1,2,3"
    sound(opened("learn", chapter=CHAPTERS[1], **link))
    sound(opened("learn", chapter="9 Nothing"))


def test_a_link_with_the_words_of_a_chapter_opens_it():
    at = sound(opened("learn", chapter="2 EM step by step"))
    assert at.segmented_control(key="chapter").value == "steps"
    assert at.query_params["chapter"] in ("steps", ["steps"])


def test_what_learn_sets_is_no_other_pages_setting():
    """A value in the URL goes from page to page under its key, whatever its type there."""
    shared = []
    for file in (*Path(gmc_dashboard.__file__).parent.rglob("*.py"), *PAGES.glob("*.py")):
        if "learn" in (file.stem, file.parent.name):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "key":
                key = node.value
                if isinstance(key, ast.Constant) and str(key.value).startswith("learn"):
                    shared.append(f"{file.name}:{node.lineno}")
    assert not shared


def test_from_learn_to_a_fit_of_exact_em():
    at = opened("learn", learn_noise="0.6", max_items="60")
    at.switch_page("pages/fit.py").run()
    at.segmented_control(key="model").set_value("exact").run()
    assert not at.exception
    assert at.toggle(key="noise_learned").value is False
