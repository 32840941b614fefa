"""In a browser: click a cell of Σ, play its history, rate five titles, keep the link."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from computed_runs import computed, small

from explorer.screenshots import open_page, settle
from gmc_core.store import Store

MAIN = '[data-testid="stMain"]'
FRAME = '[data-testid="stDataFrame"]'


@pytest.fixture(scope="module")
def run(app):
    """A fitted run of 120 titles of the sample in the store of the running dashboard."""
    with Store(app.home) as store:
        return computed(store, small(items=120, iterations=4), "browser run").id


def test_a_click_on_the_heatmap_shows_the_pair(app, page, run):
    open_page(page, f"{app.url}/covariance?run={run}&view=Titles")
    heatmap = page.locator('[data-testid="stVegaLiteChart"] svg').first
    heatmap.wait_for()
    page.get_by_text("Nothing else known").wait_for()
    row = page.get_by_role("combobox", name="Row").first
    before = _pair(page)
    box = heatmap.bounding_box()
    page.mouse.click(box["x"] + 0.8 * box["width"], box["y"] + 0.45 * box["height"])
    page.wait_for_function(
        "before => document.querySelector('[data-testid=\"stMain\"]').innerText"
        ".split('Nothing else known')[1] !== before",
        arg=before,
    )
    settle(page)
    assert _pair(page) != before
    assert row.is_visible()
    after = _pair(page)
    page.mouse.click(box["x"] + 0.6 * box["width"], box["y"] + 0.3 * box["height"])
    settle(page)
    assert _pair(page) != after


def _pair(page) -> str:
    return page.locator(MAIN).inner_text().split("Nothing else known")[-1]


def test_the_overview_plays(app, page, run):
    open_page(page, f"{app.url}/covariance?run={run}")
    page.get_by_text("at iteration 4").first.wait_for()
    page.get_by_role("button", name="Play").click()
    page.get_by_text("at iteration 1").first.wait_for()
    page.get_by_text("at iteration 3").first.wait_for()
    page.get_by_text("at iteration 4").first.wait_for()
    page.get_by_role("button", name="Play").wait_for()
    settle(page)
    slider = page.get_by_role("slider", name="Iteration")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    page.get_by_text("at iteration 3").first.wait_for()
    page.wait_for_url("**iteration=3*")
    assert slider.get_attribute("aria-valuetext") == "3"


def test_five_ratings_change_the_list_at_once(app, page, run):
    open_page(page, f"{app.url}/recommend?run={run}")
    page.get_by_text("Best titles for the average user").wait_for()
    for count in range(1, 6):
        page.get_by_role("combobox", name="Search a title and rate it").click()
        page.get_by_role("option").nth(count).click()
        settle(page)
        control = page.get_by_role("combobox", name="Rating of").nth(count - 1)
        control.click()
        page.get_by_role("option", name="★★★★★").first.click()
        page.get_by_text(f"from {count} rating").wait_for()
        settle(page)
    assert "rated=" in page.url
    link = page.url
    open_page(page, link)
    page.get_by_text("from 5 ratings").wait_for()
    with page.expect_download() as caught:
        page.get_by_role("button", name="Recommendations (CSV)").click()
    text = Path(caught.value.path()).read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 10
    assert float(rows[0]["Prediction"]) >= float(rows[9]["Prediction"])


def test_a_user_with_a_hidden_rating(app, page, run):
    open_page(page, f"{app.url}/recommend?run={run}&who=A+user+of+the+data")
    page.get_by_text("Reveal 1 hidden rating").click()
    page.get_by_text("1 rating was hidden from the fit").wait_for()
    settle(page)
    assert page.locator(FRAME).count() >= 3


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    "place",
    [
        "covariance?view=Overview",
        "covariance?view=Titles",
        "covariance?view=Neighbours",
        "covariance?view=Taste+axes",
        "covariance?view=Variances",
        "recommend?who=Yourself",
        "recommend?who=A+user+of+the+data",
    ],
)
def test_views_fit_a_laptop(app, new_page, run, place, theme):
    page = new_page(theme)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    open_page(page, f"{app.url}/{place}&run={run}")
    assert not problems
    assert page.locator('[data-testid="stAlertContentError"]').count() == 0
    wide, visible = page.evaluate(
        f"(e => [e.scrollWidth, e.clientWidth])(document.querySelector('{MAIN}'))"
    )
    assert wide <= visible
