"""Back and Forward of the browser move one visible step each: page to page, and within pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from computed_runs import computed, small
from playwright.sync_api import expect
from stored_runs import stored

from gmc_core.fitting.preparing import describe, prepare
from gmc_core.runs.store import Store
from gmc_dashboard.shared import tour
from tests.tools.screenshots import open_page, settle

# In the order of the menu's links that the walk follows; each is its page's heading too.
PAGES = ("Fit", "Sensitivity", "Compare", "Runs", "Learn")
RATED = "rated=318:5,296:4.5"
Seen = Callable[[Any], None]


@pytest.fixture(scope="module")
def run(app):
    """A fitted run, not the newest, in the store of the running dashboard."""
    with Store(app.home) as store:
        first = computed(store, small(items=60, iterations=2), "first run").id
        computed(store, small(items=60, iterations=1), "other run")
    return first


def heading(name: str) -> Seen:
    def seen(page: Any) -> None:
        expect(page.get_by_role("heading", level=1, name=name, exact=True)).to_be_visible()

    return seen


def of_run(run: str, name: str, label: str = "first run") -> Seen:
    """A page that looks into the run, and says so in its address."""

    def seen(page: Any) -> None:
        heading(name)(page)
        box = page.get_by_role("combobox", name="Model of the run")
        expect(box).to_have_value(re.compile(f"^{label}"))
        page.wait_for_url(f"**run={run}*")

    return seen


def chosen(option: str, then: Seen) -> Seen:
    """A view or tab of a page."""

    def seen(page: Any) -> None:
        then(page)
        radio = page.get_by_role("radio", name=option, exact=True, checked=True)
        tab = page.get_by_role("tab", name=option, exact=True, selected=True)
        expect(radio.or_(tab).first).to_be_visible()

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
    for seen in steps[1:]:
        page.go_forward()
        seen(page)


def test_every_page_of_the_menu_is_one_step(app, page, run):
    open_page(page, f"{app.url}/covariance?run={run}")
    for name in ("Recommend", "Data", *PAGES):
        menu(page, name)
    both_ways(
        page,
        [
            of_run(run, "Covariance"),
            of_run(run, "Recommend"),
            *[heading(name) for name in ("Data", *PAGES)],
        ],
    )
    menu(page, "Covariance")
    of_run(run, "Covariance")(page)


def test_a_view_that_a_visitor_turns_to_is_one_step(app, page, run):
    open_page(page, f"{app.url}/covariance?run={run}")
    pick(page, "Neighbours")
    pick(page, "Taste axes")
    menu(page, "Data")
    pick(page, "Reading report")
    covariance = of_run(run, "Covariance")
    both_ways(
        page,
        [
            chosen("Titles", covariance),
            chosen("Neighbours", covariance),
            chosen("Taste axes", covariance),
            chosen("Charts", heading("Data")),
            chosen("Reading report", heading("Data")),
        ],
    )


def test_ratings_in_the_address_do_not_hold_a_visitor(app, page, run):
    open_page(page, f"{app.url}/recommend?run={run}&{RATED}")
    recommend = of_run(run, "Recommend")
    page.get_by_text("from 2 ratings").first.wait_for()
    for name in ("Covariance", "Sensitivity", "Recommend"):
        menu(page, name)
    page.get_by_text("from 2 ratings").first.wait_for()
    both_ways(page, [recommend, of_run(run, "Covariance"), heading("Sensitivity"), recommend])
    page.get_by_text("from 2 ratings").first.wait_for()


def test_a_link_is_one_step_and_a_reload_keeps_selection_and_way_back(app, page, run):
    elsewhere = f"{app.url}/_stcore/health"
    page.goto(elsewhere)
    open_page(page, f"{app.url}/covariance?run={run}&view=neighbours")  # takes its title in
    menu(page, "Recommend")
    page.reload()
    of_run(run, "Recommend")(page)
    settle(page)
    page.go_back()
    chosen("Neighbours", of_run(run, "Covariance"))(page)
    settle(page)
    page.go_back()
    page.wait_for_url(elsewhere)


def test_back_from_a_started_run_leads_to_its_settings(app, page, run):
    open_page(page, f"{app.url}/fit?max_items=60&iterations=2&noise=0.5&run=new")
    noise = page.get_by_role("spinbutton", name="Noise variance σ²")
    expect(noise).to_have_value("0.50")
    page.get_by_role("button", name="Start the fit").click()
    page.wait_for_url(re.compile("run=(?!new)"))
    settle(page)
    page.go_back()
    expect(noise).to_have_value("0.50")
    settle(page)
    menu(page, "Sensitivity")  # has a control of the same name
    page.go_back()
    heading("Fit")(page)
    expect(noise).to_have_value("0.50")
    page.wait_for_url("**noise=0.5*")


@pytest.fixture
def tour_fits(app):
    """The fits of the tour, finished with made-up records: no step has to wait for one."""
    with Store(app.home) as store:
        configs = tour.configs()
        data = describe(prepare(configs["paper"]))  # all are of the same data
        for config in configs.values():
            stored(store, config=config, data=data)


def step(number: int, page_name: str) -> Seen:
    def seen(page: Any) -> None:
        heading(page_name)(page)
        expect(page.get_by_text(f"{number} of 6", exact=True)).to_be_visible()

    return seen


def test_a_step_of_the_tour_by_key_is_one_step_back(app, page, tour_fits):
    open_page(page, f"{app.url}/fit?tour=3")
    first, here, there = step(3, "Fit"), step(4, "Fit"), step(5, "Covariance")
    first(page)
    settle(page)
    page.keyboard.press("PageDown")
    here(page)
    settle(page)
    page.keyboard.press("PageDown")
    there(page)
    settle(page)
    both_ways(page, [first, here, there])
    settle(page)
    page.keyboard.press("PageUp")
    here(page)
    settle(page)
    page.go_back()
    first(page)  # not onward to the step that was left
