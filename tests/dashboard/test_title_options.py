"""Boxes of titles in a large catalogue: the most rated, or what a search finds."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

PAGE = """
import streamlit as st
from gmc_dashboard.shared import title_options
from gmc_dashboard.shared.title_options import offered

title_options.MOST = 3
titles = ["Heat", "Star Wars", "Toy Story", "Star Trek", "Alien"]
st.session_state.setdefault("box", 4)
count = st.number_input("count", 1, 5, 5, key="count")
options = offered([2, 0, 1, 3, 4][:count], titles, "box", [st.session_state["box"]])
st.selectbox("Title", options, format_func=titles.__getitem__, key="box")
"""


def test_a_large_catalogue_offers_the_most_rated_and_what_is_chosen():
    at = AppTest.from_string(PAGE).run()
    assert at.selectbox(key="box").options == ["Alien", "Toy Story", "Heat", "Star Wars"]
    assert at.selectbox(key="box").value == 4
    at.text_input(key="box_words").set_value("star TR").run()
    assert at.selectbox(key="box").options == ["Alien", "Star Trek"]
    at.selectbox(key="box").set_value(3).run()
    at.text_input(key="box_words").set_value("nothing").run()
    assert at.selectbox(key="box").options == ["Star Trek"]
    assert "No title" in at.info[0].value and not at.exception


def test_a_small_one_offers_all():
    at = AppTest.from_string(PAGE)
    at.session_state["count"], at.session_state["box"] = 3, 1
    at.run()
    assert at.selectbox(key="box").options == ["Toy Story", "Heat", "Star Wars"]
    assert not at.text_input and not at.exception
