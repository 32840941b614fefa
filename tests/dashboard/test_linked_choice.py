"""Links carry the keys of choices; those with the words that people read open as well."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest


def page(**query):
    """A page with each kind of control, opened by its URL."""

    def script():
        from gmc_dashboard.shared.linked_choice import linked_choice, linked_choices

        names = {"a": "The first", "b": "The second", "c": "The third"}
        linked_choice("Button", names, "a", key="button")
        linked_choice("Box", names, "b", key="box", box=True)
        linked_choices("Several", names, ["a", "b"], key="several")

    at = AppTest.from_function(script)
    for name, value in query.items():
        at.query_params[name] = value
    at.run()
    assert not at.exception
    return at


def values(at):
    return (
        at.segmented_control(key="button").value,
        at.selectbox(key="box").value,
        at.multiselect(key="several").value,
    )


def link(at):
    """The address, each value as a list."""
    return {n: v if isinstance(v, list) else [v] for n, v in at.query_params.items()}


def test_defaults_are_not_in_the_address():
    at = page()
    assert values(at) == ("a", "b", ["a", "b"])
    assert link(at) == {}


def test_what_is_chosen_is_in_the_address_by_its_key():
    at = page()
    at.segmented_control(key="button").set_value("b")
    at.selectbox(key="box").set_value("c")
    at.multiselect(key="several").set_value(["c", "a"]).run()
    assert link(at) == {"button": ["b"], "box": ["c"], "several": ["c", "a"]}
    at.segmented_control(key="button").set_value("a")
    at.multiselect(key="several").set_value([]).run()
    assert link(at) == {"box": ["c"], "several": [""]}
    assert values(at) == ("a", "c", [])


@pytest.mark.parametrize(
    "query",
    [
        {"button": "c", "box": "a", "several": ["c"]},
        {"button": "The third", "box": "The first", "several": ["The third", "no such", "d"]},
    ],
)
def test_a_link_opens_by_keys_and_by_words(query):
    at = page(**query)
    assert values(at) == ("c", "a", ["c"])
    assert link(at) == {"button": ["c"], "box": ["a"], "several": ["c"]}


def test_a_link_without_a_meaning_is_as_none():
    at = page(button="<b>", box="9" * 400, several="")
    assert values(at) == ("a", "b", [])
    assert link(at) == {"several": [""]}
