"""What a person does on a page, for the stories that go over several pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import TimeoutError, expect

from tests.tools.screenshots import settle

MAIN = '[data-testid="stMain"]'
HEATMAP = '[data-testid="stVegaLiteChart"] svg'
# The recommendations' text alternative: titles and predictions.
BACKGROUND = "getComputedStyle(document.querySelector('[data-testid=\"stApp\"]')).backgroundColor"
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


def turn_dark(page: Any) -> None:
    """The system's theme becomes dark, and the page is drawn anew (Streamlit's key R)."""
    page.emulate_media(color_scheme="dark")
    page.keyboard.press("r")
    page.wait_for_function(f"{BACKGROUND} !== 'rgb(255, 255, 255)'")
    settle(page)


def in_both_themes(page: Any) -> Iterator[str]:
    """The page as it is, in the light theme, then the same in the dark one."""
    yield "light"
    turn_dark(page)
    yield "dark"


def is_wider_than_the_window(page: Any) -> bool:
    """Whether one would have to scroll sideways."""
    wide, visible = page.evaluate(
        f"(e => [e.scrollWidth, e.clientWidth])(document.querySelector('{MAIN}'))"
    )
    return bool(wide > visible)


def wait_until_in_sight(page: Any, selector: str) -> None:
    """Wait until an element stands in the window as a whole."""
    page.wait_for_function(
        """selector => {
            const box = document.querySelector(selector)?.getBoundingClientRect()
            return box && box.height > 0 && box.top >= 0 && box.bottom <= innerHeight
        }""",
        arg=selector,
    )


def run_of(page: Any) -> str:
    """The run that the page shows; its address tells."""
    page.wait_for_url("**run=*")
    return str(parse_qs(urlsplit(page.url).query)["run"][0])


def download(page: Any, name: str) -> Path:
    """Click a download button; returns the file."""
    with page.expect_download() as waiting:
        button(page, name).click()
    return Path(waiting.value.path())


def click_inside(page: Any, chart: Any, across: float, down: float) -> None:
    """Click into a chart once it has stopped moving; shares of its width and height."""
    chart.wait_for()
    settle(page)
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None, "the chart has gone after the page had settled"
    page.mouse.click(box["x"] + across * box["width"], box["y"] + down * box["height"])


def click_a_pair(page: Any) -> None:
    """Show chosen titles on the Covariance page, click cells, and read what follows each."""
    page.get_by_role("radio", name="Titles", exact=True).first.click()
    click_a_cell(page, 0.8, 0.45)
    page.wait_for_url("**pair=*")
    click_a_cell(page, 0.6, 0.3)


def click_a_cell(page: Any, across: float, down: float) -> None:
    """Click a cell of the chosen titles' heatmap, and wait for another sentence of its pair."""
    sentence = page.get_by_text("Nothing else known").first
    before = sentence.inner_text()
    click_inside(page, page.locator(HEATMAP).first, across, down)
    expect(sentence).not_to_have_text(before)


def rate_five_titles(page: Any) -> None:
    """Rate a title found by its name, then four suggested ones; the list follows each."""
    page.get_by_text("Best titles for the average user").wait_for()
    settle(page)  # the sentence stands before the page does; a box opened meanwhile shuts
    page.get_by_role("combobox", name="Search a title and rate it").click()
    page.get_by_role("option").nth(1).click()
    expect(page.locator(LIST).first).to_be_attached()
    for rated in range(5):
        settle(page)  # the suggestions come last; a click on one that is being replaced is lost
        recommended = page.locator(LIST).first
        before = str(recommended.get_attribute("aria-label"))
        # Rated titles come first, then the one to be rated, listed or suggested.
        _give_five_stars(page, rated)
        page.get_by_text(f"from {rated + 1} rating").wait_for()
        expect(recommended).not_to_have_attribute("aria-label", before)
    settle(page)


def _give_five_stars(page: Any, place: int) -> None:
    """Five whole stars are buttons, half stars a box."""
    stars = page.get_by_role("radio", name="5 out of 5 stars").nth(place)
    box = page.get_by_role("combobox", name="Rating of").nth(place)
    stars.or_(box).first.wait_for()
    if stars.count():
        stars.click()
        return
    option = page.get_by_role("option", name="★★★★★").first
    for _ in range(4):  # a box that is drawn anew in this moment shuts again
        box.click()
        try:
            option.click(timeout=5000)
            return
        except TimeoutError:
            page.keyboard.press("Escape")
            settle(page)
    option.click()
