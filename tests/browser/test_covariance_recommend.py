"""In a browser: click a cell of Σ, play its history, rate titles, keep the link, guess first."""

from __future__ import annotations

import csv
import re

import pytest
from computed_runs import computed, small
from playwright.sync_api import expect

from browser.steps import (
    HEATMAP,
    MAIN,
    click_a_cell,
    download,
    in_both_themes,
    is_wider_than_the_window,
    wait_until_in_sight,
)
from gmc_core.runs.store import Store
from tests.tools.screenshots import open_page, settle

EXPLANATION = ".st-key-explanation .js-plotly-plot"
FRAME = '[data-testid="stDataFrame"]'


@pytest.fixture(scope="module")
def run(app):
    """A fitted run of 120 titles of the sample in the store of the running dashboard."""
    with Store(app.home) as store:
        return computed(store, small(items=120, iterations=4), "browser run").id


def test_a_click_on_the_heatmap_shows_the_pair(app, page, run):
    open_page(page, f"{app.url}/covariance?run={run}&view=titles")
    click_a_cell(page, 0.8, 0.45)
    click_a_cell(page, 0.6, 0.3)
    assert page.get_by_role("combobox", name="Row").first.is_visible()


def test_titles_are_picked_on_the_map_by_lasso_and_by_keyboard(app, page, run):
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    open_page(page, f"{app.url}/covariance?run={run}&view=map")
    assert not is_wider_than_the_window(page)
    plot = page.locator(".st-key-map_room .js-plotly-plot .nsewdrag").first
    box = plot.bounding_box()
    assert box is not None
    corners = ((0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98), (0.02, 0.05))
    for index, (across, down) in enumerate(corners):
        page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"], steps=3)
        if index == 0:
            page.mouse.down()
    page.mouse.up()
    page.wait_for_url(re.compile("map=([^&]+(,|%2C)){20}"))
    settle(page)
    picked = page.get_by_role("combobox", name="Picked titles")
    page.get_by_role("button", name="Clear all").click()
    page.wait_for_url(lambda url: "map=" not in url)
    settle(page)
    for count, word in enumerate(("Toy Story (1995)", "Fargo"), start=1):
        picked.fill(word)
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(r"map=\w+" + r"(,|%2C)\w+" * (count - 1) + "$"))
    page.keyboard.press("Escape")  # shuts the list, which hides all else from a screen reader
    settle(page)
    way = page.get_by_role("button", name="Show these in the heatmap")
    way.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**titles_from=search*")
    settle(page)
    assert page.get_by_role("combobox", name="Row").first.is_visible()
    expect(page.locator(HEATMAP).first).to_contain_text("Fargo (1996)")
    assert not problems


def click_a_row(page, table):
    """Click a title of a table, which looks at how the pointer came there."""
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    for down in (0.5, 0.6):
        page.mouse.move(box["x"] + 100, box["y"] + down * box["height"])
    page.mouse.down()
    page.mouse.up()


# Keeps every iteration that the page has said it shows, in order.
RECORD_ITERATIONS = """main => {
    window.iterations = []
    const look = () => {
        const found = document.querySelector(main).innerText.match(/at iteration (\\d+)/)
        if (found && window.iterations.at(-1) !== +found[1]) window.iterations.push(+found[1])
    }
    new MutationObserver(look).observe(
        document.querySelector(main), {subtree: true, childList: true, characterData: true})
}"""


def test_the_overview_plays(app, page, run):
    open_page(page, f"{app.url}/covariance?run={run}&view=overview")
    page.get_by_text("at iteration 4").first.wait_for()
    page.evaluate(RECORD_ITERATIONS, MAIN)
    page.get_by_role("button", name="Play").click()
    # Back to the start, and to the end by itself, where it stays.
    page.wait_for_function("() => window.iterations.length > 2 && window.iterations.at(-1) === 4")
    shown = page.evaluate("window.iterations")
    assert shown[shown.index(min(shown)) :] == sorted(shown[shown.index(min(shown)) :])
    assert min(shown) < 3
    page.get_by_role("button", name="Play").wait_for()
    settle(page)
    assert page.evaluate("window.iterations.at(-1)") == 4
    slider = page.get_by_role("slider", name="Iteration")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    page.get_by_text("at iteration 3").first.wait_for()
    page.wait_for_url("**iteration=3*")
    expect(slider).to_have_attribute("aria-valuetext", "3")


def test_five_ratings_change_the_list_at_once(app, page, run):
    open_page(page, f"{app.url}/recommend?run={run}")
    page.get_by_text("Best titles for the average user").wait_for()
    settle(page)
    page.get_by_role("combobox", name="Search a title and rate it").click()
    page.get_by_role("option").nth(1).click()
    page.get_by_role("combobox", name="Rating of").click()
    page.get_by_role("option", name="★★★★★").first.click()
    page.get_by_text("from 1 rating").wait_for()
    for count in range(2, 6):
        settle(page)  # a click on what is being drawn anew is lost
        # A rated title has no stars any more, so that the last of them are another's.
        page.get_by_role("radio", name="5 out of 5 stars").last.click()
        page.get_by_text(f"from {count} rating").wait_for()
    page.wait_for_url(re.compile("rated=([^&]+(,|%2C)){4}[^&]+"))
    link = page.url
    page.set_viewport_size({"width": 1280, "height": 800})
    open_page(page, link)
    page.get_by_text("from 5 ratings").wait_for()
    settle(page)
    # List and explanation begin on one screen, with the first of its bars.
    assert page.locator(EXPLANATION).bounding_box()["y"] < 800 - 60
    # On a telephone the table is one whose words wrap.
    page.set_viewport_size({"width": 390, "height": 844})
    plain = page.locator('[class*="st-key-narrow_"] table')
    expect(plain).to_be_visible()
    assert plain.bounding_box()["width"] <= 390
    page.set_viewport_size({"width": 1280, "height": 720})
    expect(plain).to_be_hidden()
    settle(page)
    with download(page, "Recommendations (CSV)").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 10
    assert float(rows[0]["Prediction"]) >= float(rows[9]["Prediction"])

    # Why one of them: a click on its row or an arrow key, and the reasons are in sight.
    for choose in (
        lambda: click_a_row(page, page.locator(FRAME).first),
        lambda: page.keyboard.press("ArrowDown"),
    ):
        before = page.url
        page.locator(MAIN).evaluate("main => main.scrollTo(0, 0)")
        settle(page)
        choose()
        page.wait_for_function("before => location.href !== before", arg=before)
        wait_until_in_sight(page, EXPLANATION)


def test_a_user_with_a_hidden_rating(app, page, run):
    open_page(page, f"{app.url}/recommend?run={run}&who=user")
    page.get_by_text("Reveal 1 hidden rating").click()
    page.get_by_text("1 rating was hidden from the fit").wait_for()
    page.locator(FRAME).nth(2).wait_for()


def test_three_ratings_and_a_round_of_the_game_by_keyboard(app, page, run):
    open_page(page, f"{app.url}/recommend?run={run}")
    page.get_by_text("Best titles for the average user").wait_for()
    settle(page)
    page.get_by_role("radio", name="1 out of 5 stars").first.focus()
    for count in range(1, 4):
        for key in ("ArrowRight", "ArrowRight", "Space"):
            page.keyboard.press(key)
        page.get_by_text(f"from {count} rating").wait_for()
        page.keyboard.press("Tab")  # on to the next title, though the stars are gone
    expect(page.get_by_role("combobox", name="Rating of")).to_have_count(3)
    choice = page.get_by_role("radio", name="Guess first")
    choice.focus()
    page.keyboard.press("Space")
    slider = page.get_by_role("slider", name="You")
    slider.wait_for()
    assert "The user gave it" not in page.content()
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "3.5")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("The user gave it").wait_for()
    page.get_by_text("Score after 1 round").wait_for()
    page.keyboard.press("n")
    page.get_by_text("Round 2 of 10").wait_for()


@pytest.mark.parametrize(
    "place",
    [
        "covariance?view=overview",
        "covariance?view=titles",
        "covariance?view=neighbours",
        "covariance?view=axes",
        "covariance?view=variances",
        "recommend?who=yourself",
        "recommend?who=user",
        "recommend?who=guess",
    ],
)
def test_views_fit_a_laptop(app, page, run, place):
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    open_page(page, f"{app.url}/{place}&run={run}")
    for _ in in_both_themes(page):
        assert not problems
        assert page.locator('[data-testid="stAlertContentError"]').count() == 0
        assert not is_wider_than_the_window(page)
