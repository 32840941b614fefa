"""Every page opens, in light and dark, without errors and without the network."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from browser.steps import BACKGROUND, MAIN, in_both_themes, is_wider_than_the_window
from tests.tools.screenshots import PAGES, READY_MS, open_page, settle
from tests.tools.serving import serve

BROKEN = '[data-testid="stException"]'


@pytest.mark.parametrize("name", PAGES)
def test_page_opens_and_fits_a_laptop(app, page, name):
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    open_page(page, f"{app.url}/{name}")
    for theme in in_both_themes(page):
        expect(page.locator(f"{MAIN} h1")).to_have_count(1)
        assert page.locator(BROKEN).count() == 0
        assert not problems
        red = int(page.evaluate(BACKGROUND).split("(")[1].split(",")[0])
        assert (red < 60) == (theme == "dark")
        assert not is_wider_than_the_window(page)


def test_the_way_from_the_start_page_to_data_and_fit(app, page):
    open_page(page, app.url)
    page.get_by_role("link", name="Data", exact=True).first.click()
    page.get_by_text("NMAE divisor").first.wait_for()
    settle(page)
    page.get_by_text("Strong generalization", exact=True).click()
    page.get_by_text("Novel users").first.wait_for()
    settle(page)
    page.wait_for_url("**protocol=strong*")
    page.get_by_role("button", name="Continue: fit this").first.click()
    page.wait_for_url("**/fit?*protocol=strong*")


def test_a_link_reproduces_the_data_view(app, page):
    open_page(page, f"{app.url}/data?protocol=strong&min_user=50&max_items=300")
    for name, value in (("Ratings per user, at least", "50"), ("Items, at most", "300")):
        field = page.get_by_role("spinbutton", name=name)
        expect(field).to_have_value(value, timeout=READY_MS)
    page.get_by_text("Novel users").first.wait_for()


def test_first_visitor_of_a_process_may_open_a_page_by_its_url(tmp_path, page):
    with serve(tmp_path / "home", tmp_path / "cache") as url:
        page.goto(f"{url}/data?protocol=strong")
        page.get_by_text("Novel users").first.wait_for()
        settle(page)
        page.get_by_role("link", name="Sensitivity", exact=True).first.wait_for()
        assert page.get_by_text("Page not found").count() == 0
        assert page.url == f"{url}/data?protocol=strong"


def test_pages_follow_the_keyboard(app, page):
    open_page(page, f"{app.url}/data")
    names = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        names.add(
            page.evaluate(
                "(e => e.innerText || e.getAttribute('aria-label') || '')(document.activeElement)"
            ).strip()
        )
    assert any("Named data set" in name for name in names)
    assert any("Continue: fit this" in name for name in names)
