"""MovieLens 1M from a file on the disk to one's own recommendations, in a real browser.

A request that would leave the machine fails the test, as in every test of this folder.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from reader_files import real_data

from browser.steps import PATIENCE_MS, button, click_a_pair, follow, rate_five_titles
from tests.tools.screenshots import open_page, settle


@pytest.mark.realdata
@pytest.mark.timeout(600)
def test_from_the_file_to_recommendations(app, page):
    file = real_data("ml-1m.zip")
    open_page(page, f"{app.url}/data")
    page.get_by_role("radio", name="My own file").click()
    path = page.get_by_role("textbox", name="… or the path of a file or folder")
    path.fill(str(file))
    path.press("Enter")
    page.get_by_text("MovieLens with ratings.dat").wait_for()
    button(page, "Use these ratings").click()
    page.get_by_text("Selected: ml-1m.zip").wait_for(timeout=PATIENCE_MS)
    settle(page)
    button(page, "Continue: fit this").first.click()
    page.get_by_role("heading", level=1, name="Fit", exact=True).wait_for()
    settle(page)

    button(page, "Fast").click()
    page.wait_for_url("**model=factor*")
    settle(page)
    button(page, "Start the fit").click()
    page.get_by_text("held-out ratings:").wait_for(timeout=PATIENCE_MS)
    expect(page.get_by_text("held-out ratings:").first).to_contain_text("NMAE")

    follow(page, "See what it has learned", "Covariance")
    click_a_pair(page)
    follow(page, "Recommend", "Recommend")
    rate_five_titles(page)
