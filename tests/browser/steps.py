"""What a person does on a page, for the stories that go over several pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from explorer.screenshots import settle

MAIN = '[data-testid="stMain"]'
HEATMAP = '[data-testid="stVegaLiteChart"] svg'
# The recommendations' text twin: titles and predictions.
LIST = '[aria-label^="Recommendations: "]'
# A cold machine compiles the numerical code first.
PATIENCE_MS = 180_000


def button(page: Any, name: str) -> Any:
    """The button with exactly this name."""
    return page.get_by_role("button", name=name, exact=True)


def follow(page: Any, link: str, heading: str) -> None:
    """Click a link and wait for the page that it leads to."""
    page.get_by_role("link", name=link, exact=True).first.click()
    page.get_by_role("heading", level=1, name=heading, exact=True).wait_for()
    settle(page)


def download(page: Any, name: str) -> Path:
    """Click a download button; returns the file."""
    with page.expect_download() as waiting:
        button(page, name).click()
    return Path(waiting.value.path())


def click_a_pair(page: Any) -> None:
    """Show chosen titles on the Covariance page, click a cell, and see the pair change."""
    page.get_by_role("radio", name="Titles", exact=True).first.click()
    heatmap = page.locator(HEATMAP).first
    heatmap.wait_for()
    page.get_by_text("Click a cell").wait_for()
    settle(page)
    before = _pair(page)
    box = heatmap.bounding_box()
    page.mouse.click(box["x"] + 0.8 * box["width"], box["y"] + 0.45 * box["height"])
    page.wait_for_url("**pair=*")
    settle(page)
    assert _pair(page) != before


def rate_five_titles(page: Any) -> None:
    """Rate a title found by its name, then four suggested ones; the list follows each."""
    page.get_by_text("Best titles for the average user").wait_for()
    page.get_by_role("combobox", name="Search a title and rate it").click()
    page.get_by_role("option").nth(1).click()
    settle(page)
    for rated in range(5):
        before = page.locator(LIST).first.get_attribute("aria-label")
        # Rated titles come first, then the one to be rated, listed or suggested.
        _give_five_stars(page, rated)
        page.get_by_text(f"from {rated + 1} rating").wait_for()
        page.wait_for_function(
            "([list, before]) => {"
            " const shown = document.querySelector(list);"
            " return shown && shown.getAttribute('aria-label') !== before }",
            arg=[LIST, before],
        )
    settle(page)


def _give_five_stars(page: Any, place: int) -> None:
    """Five whole stars are buttons, half stars a box."""
    stars = page.get_by_role("radio", name="5 out of 5 stars")
    if stars.count():
        stars.nth(place).click()
        return
    page.get_by_role("combobox", name="Rating of").nth(place).click()
    page.get_by_role("option", name="★★★★★").first.click()


def _pair(page: Any) -> str:
    return page.locator(MAIN).inner_text().split("Click a cell")[-1]
