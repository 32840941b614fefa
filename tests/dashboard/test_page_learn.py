"""The Learn page: every chapter, its controls, and that its numbers are the core's."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from stored_runs import charts, opened, texts, use_folders

import gmc_dashboard
from gmc_core import lesson
from gmc_dashboard.shared.components import PAGES

CHAPTERS = ("1 Two movies", "2 EM step by step", "3 Many movies", "4 What it costs")


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
    assert len(charts(at)) >= 2
    assert all(re.search(r"\d", words) for words in charts(at))
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
    assert at.button(key="learn_back").disabled
    assert number(at, "Smallest variance") == "none yet"
    headings = []
    for _ in range(4):
        at.button(key="learn_forward").click().run()
        headings.append(at.subheader[0].value)
    assert [text.split(":")[0] for text in headings] == [
        "M-step 1", "E-step 1", "M-step 2", "E-step 2",
    ]  # fmt: skip
    at.button(key="learn_back").click().run()
    assert at.subheader[0].value == headings[2]
    planted = lesson.two_movies(80, 0.15, 0.8)
    frame = lesson.tell(planted, "paper", 0.0).frames[3]
    assert number(at, "Smallest variance") == f"{lesson.eigenvalues(frame.gaussian)[0]:.3f}"
    assert number(at, "Error of the fills") == f"{planted.error(frame.estimates):.2f}"
    at.button(key="learn_reset").click().run()
    assert at.slider(key="learn_step").value == 0
    sound(at)


def test_chapter_2_compares_the_m_steps_at_the_end():
    at = sound(opened("learn", chapter=CHAPTERS[1], learn_step="20"))
    assert at.button(key="learn_forward").disabled
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


def test_nonsense_in_the_link_is_ignored():
    link = {"learn_step": "999", "learn_epsilon": "-4", "learn_both": "x"}
    sound(opened("learn", chapter=CHAPTERS[1], **link))
    sound(opened("learn", chapter="9 Nothing"))


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
