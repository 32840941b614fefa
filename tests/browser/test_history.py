"""Back and Forward of the browser move one visible step each: page to page, and within pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from computed_runs import computed, small
from playwright.sync_api import expect
from stored_runs import stored

from explorer.screenshots import open_page, settle
from gmc_core.store import Store

HEADING = {
    "Covariance": "Covariance",
    "Recommend": "Recommend",
    "Sensitivity": "Sensitivity",
    "Compare": "Compare",
    "Claims": "Claims",
    "Runs": "Runs",
    "Results": "Results",
    "Learn": "Learn",
    "Data": "Data",
    "Fit": "Fit",
}
Seen = Callable[[Any], None]


@pytest.fixture(scope="module")
def runs(app):
    """Two fitted runs of the same titles in the store of the running dashboard."""
    with Store(app.home) as store:
        one = computed(store, small(items=60, iterations=2), "first run").id
        other = computed(store, small(items=60, iterations=1), "second run").id
        stored(store, "cancelled", small(items=60, iterations=5), done=2, label="stopped run")
    return one, other


def heading(name: str) -> Seen:
    def seen(page: Any) -> None:
        expect(page.get_by_role("heading", level=1, name=name, exact=True)).to_be_visible()

    return seen


def model(run: str, label: str, name: str) -> Seen:
    """A page that looks into the run."""

    def seen(page: Any) -> None:
        heading(name)(page)
        box = page.get_by_role("combobox", name="Model of the run")
        expect(box).to_have_value(pattern(label))
        page.wait_for_url(f"**run={run}*")

    return seen


def pattern(label: str) -> Any:
    return re.compile(f"^{label}")


def chosen(option: str, then: Seen) -> Seen:
    """A view or tab of a page."""

    def seen(page: Any) -> None:
        then(page)
        radio = page.get_by_role("radio", name=option, exact=True)
        tab = page.get_by_role("tab", name=option, exact=True)
        place = radio.or_(tab).first
        expect(place).to_be_visible()
        state = "aria-checked" if radio.count() else "aria-selected"
        expect(place).to_have_attribute(state, "true")

    return seen


def menu(page: Any, name: str) -> None:
    page.get_by_role("link", name=name, exact=True).first.click()
    heading(name)(page)
    settle(page)


def pick(page: Any, option: str) -> None:
    radio = page.get_by_role("radio", name=option, exact=True)
    radio.or_(page.get_by_role("tab", name=option, exact=True)).first.click()
    settle(page)


def both_ways(page: Any, steps: list[Seen]) -> None:
    """Back through all steps, the last of which is shown, and forward again."""
    steps[-1](page)
    for seen in steps[-2::-1]:
        page.go_back()
        seen(page)
        settle(page)
    for seen in steps[1:]:
        page.go_forward()
        seen(page)
        settle(page)


def test_the_menu_and_the_views_are_one_step_each(app, page, runs):
    first, _ = runs
    open_page(page, f"{app.url}/covariance?run={first}")
    covariance = model(first, "first run", "Covariance")
    recommend = model(first, "first run", "Recommend")
    pick(page, "Neighbours")
    pick(page, "Taste axes")
    menu(page, "Recommend")
    pick(page, "A user of the data")
    menu(page, "Data")
    pick(page, "Reading report")
    menu(page, "Fit")
    for name in ("Sensitivity", "Compare", "Claims", "Runs", "Results", "Learn"):
        menu(page, name)
    pick(page, "3 Many movies")
    menu(page, "Covariance")
    steps = [
        chosen("Overview", covariance),
        chosen("Neighbours", covariance),
        chosen("Taste axes", covariance),
        chosen("Yourself", recommend),
        chosen("A user of the data", recommend),
        chosen("Charts", heading("Data")),
        chosen("Reading report", heading("Data")),
        heading("Fit"),
        *[heading(name) for name in ("Sensitivity", "Compare", "Claims", "Runs", "Results")],
        chosen("1 Two movies", heading("Learn")),
        chosen("3 Many movies", heading("Learn")),
        chosen("Taste axes", covariance),  # as it was left
    ]
    both_ways(page, steps)
