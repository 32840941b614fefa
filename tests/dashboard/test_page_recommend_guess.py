"""Guess first on the Recommend page: nothing is told before the guess, then all of it is."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import streamlit as st
from computed_runs import computed, opened, small, texts

from gmc_core.data.ratings import RatingScale
from gmc_core.model.model_file import load_model, save_model
from gmc_core.runs.game import BIAS, MODEL, TITLE_MEAN, Answer, Deck
from gmc_core.runs.store import Store
from gmc_dashboard.recommend.guess_figures import describe_reveal, reveal_figure, said

PAGE = "pages/recommend.py"
GUESS = "guess"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    with Store(folder) as store:
        ids = {
            "weak": computed(store, small()).id,
            "strong": computed(store, small("strong")).id,
            "none": computed(store, small("none")).id,
            "bare": computed(store, small(iterations=2)).id,
        }
        path = store.model_path(ids["bare"])
        save_model(load_model(path), path, with_ratings=False)
    return folder, ids


@pytest.fixture
def ids(home, monkeypatch):
    monkeypatch.setenv("GMC_HOME", str(home[0]))
    st.cache_resource.clear()
    st.cache_data.clear()
    return home[1]


def rounds_of(run, seed):
    with Store() as store:
        model = store.model(run)
        deck = Deck.of(store.held_out(run), model.ratings)
    return model, deck.draw(seed)


def button(at, label):
    return next(one for one in at.button if one.label == label)


def sent(at):
    """All that the page has sent, but for identities that the browser is given."""
    parts = [str(element.proto) for element in at.main]
    return re.sub(r"[0-9a-f]{32,}", "", "\n".join(parts))


def test_a_round_is_asked_then_revealed(ids):
    model, rounds = rounds_of(ids["weak"], 7)
    at = opened(PAGE, run=ids["weak"], who=GUESS, game="7")
    assert not at.exception
    assert not at.error
    question, answer = rounds[0].question, rounds[0].answer
    assert at.subheader[0].value.replace("\\", "") == model.title(question.item)
    assert "Round 1 of 10" in texts(at)
    known = at.dataframe[0].value
    assert sorted(known["Rating"]) == sorted(question.known_values)
    assert "The user gave it" not in texts(at)
    at = at.text_input(key="game_players").set_value("Ann, Ben").run()
    assert [slider.label for slider in at.slider] == ["Ann", "Ben"]
    at.slider[0].set_value(4.5)
    at = button(at, "Reveal").click().run()
    assert "The slider of Ben has not been moved" in texts(at)
    assert "The user gave it" not in texts(at)
    at = button(at, "Reveal").click().run()
    assert not at.exception
    assert not at.error
    assert f"{answer.actual:g}**" in texts(at)
    words = at.get("plotly_chart")[0].proto.alt
    assert "Ann 4.5" in words and "Ben 3" in words
    for name in (TITLE_MEAN, BIAS, MODEL):
        assert f"{name} {answer.predictions[name]:.3g}" in words
    score = at.dataframe[1].value.set_index("Who")
    expected = abs(4.5 - answer.actual) / model.scale.nmae_divisor
    assert score.loc["Ann", "NMAE"] == pytest.approx(expected)
    assert "Score after 1 round" in texts(at)


def test_before_the_guess_the_page_depends_on_nothing_that_is_hidden(ids, monkeypatch):
    asked = opened(PAGE, run=ids["weak"], who=GUESS, game="3")
    before = sent(asked)
    assert asked.subheader[0].value in before
    real = Store.held_out

    def other(self, run, repetition=0):
        held = real(self, run, repetition)
        return replace(held, actual=5.5 - held.actual, predictions=held.predictions - 1)

    monkeypatch.setattr(Store, "held_out", other)
    st.cache_resource.clear()
    again = opened(PAGE, run=ids["weak"], who=GUESS, game="3")
    assert "Round 1 of 10" in texts(again)
    assert sent(again) == before
    asked = button(again, "Reveal").click().run()
    assert "has not been moved" in texts(asked)
    several = opened(PAGE, run=ids["weak"], who=GUESS, game="3")
    several = several.text_input(key="game_players").set_value("Ann, Ben").run()
    several = button(several, "Reveal").click().run()
    assert "The sliders of Ann, Ben have not been moved. Move them" in texts(several)
    assert "The user gave it" not in texts(asked)
    asked.slider[0].set_value(4.0)
    assert "The user gave it" in texts(button(asked, "Reveal").click().run())


def test_ten_rounds_and_the_score_of_all(ids):
    _, rounds = rounds_of(ids["weak"], 2)
    at = opened(PAGE, run=ids["weak"], who=GUESS, game="2")
    for one in rounds:
        at.slider[0].set_value(one.answer.actual)
        at = button(at, "Reveal").click().run()
        if one.answer.actual == 3:  # where the slider stood
            at = button(at, "Reveal").click().run()
        if one is not rounds[-1]:
            at = button(at, "Next round").click().run()
    assert not at.exception
    assert "Score after all rounds" in texts(at)
    score = at.dataframe[1].value
    assert score.iloc[0].tolist() == ["You", 0.0, 0.0, 10]
    assert "Next round" not in [one.label for one in at.button]
    at = button(at, "Play these rounds again").click().run()
    assert "Round 1 of 10" in texts(at)
    assert "Score after" not in texts(at)


def test_the_game_survives_another_page_and_other_rounds_are_another_game(ids):
    at = opened(PAGE, run=ids["weak"], who=GUESS, game="5")
    at = at.text_input(key="game_players").set_value("Ann").run()
    at.slider[0].set_value(2.0)
    at = button(at, "Reveal").click().run()
    at = button(at, "Next round").click().run()
    assert "Round 2 of 10" in texts(at)
    at = at.switch_page("pages/learn.py").run()
    at = at.switch_page(PAGE)
    at.query_params.update(run=ids["weak"], who=GUESS)
    at = at.run()
    assert at.text_input(key="game_players").value == "Ann"
    assert "Round 2 of 10" in texts(at)
    assert "Score after 1 round" in texts(at)
    at = button(at, "Other rounds").click().run()
    assert at.query_params["game"] not in ("5", ["5"])
    assert "Round 1 of 10" in texts(at)
    at = at.segmented_control(key="who").set_value("yourself").run()
    assert "game" not in at.query_params


def test_new_users_of_a_strong_run_are_guessed(ids):
    at = opened(PAGE, run=ids["strong"], who=GUESS)
    at.slider[0].set_value(2.0)
    at = button(at, "Reveal").click().run()
    assert not at.exception
    assert not at.error
    assert "The user gave it" in texts(at)


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("none", "held none out, so there is nothing to guess"),
        ("bare", "saved without its training ratings"),
    ],
)
def test_a_run_that_cannot_be_played_says_what_to_do(ids, run, words):
    at = opened(PAGE, run=ids[run], who=GUESS)
    assert not at.exception
    assert words in texts(at)
    assert at.get("page_link")
    assert not at.slider


def test_a_run_that_stopped_before_its_end_says_to_resume(ids, monkeypatch):
    monkeypatch.setattr(Store, "held_out", lambda *_: None)
    at = opened(PAGE, run=ids["weak"], who=GUESS)
    assert "Resume it to play" in texts(at)


def test_a_seed_that_is_none_and_too_many_names(ids):
    at = opened(PAGE, run=ids["weak"], who=GUESS, game="x")
    assert at.query_params["game"] in ("0", ["0"])
    at = at.text_input(key="game_players").set_value("a,b,c,d,e,f,g,h").run()
    assert len(at.slider) == 6
    assert "8 names are given and 6 can play" in texts(at)


def test_the_figure_and_its_words():
    scale = RatingScale(1, 5)
    answer = Answer(4.0, {TITLE_MEAN: 3.4, BIAS: 3.6, MODEL: 5.2})
    answers = said(answer, {"<b>Ann</b>": 3.0})
    figure = reveal_figure(answers, 4.0, scale, dark=True)
    np.testing.assert_allclose(figure.data[0].x, [3.0, 3.4, 3.6, 5.2])
    assert figure.layout.xaxis.range[1] > 5.2
    assert "<b>Ann" not in figure.layout.yaxis.ticktext[0]
    assert "Model 5.2, off by 1" in describe_reveal(answers, 4.0, scale)
