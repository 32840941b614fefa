"""A fit and a sweep from the first click to the exported file, in a real browser."""

from __future__ import annotations

import csv
import json
import re

import pytest
from playwright.sync_api import expect

from browser.pace import held
from browser.steps import PATIENCE_MS, button, download, run_of, wait_until_in_sight
from tests.tools.screenshots import open_page, settle

ITERATIONS = 20
LOOKS = 2
LOOK_MS = 1500  # longer than the page takes to draw an iteration
CHARTS = ".js-plotly-plot"
MAIN = "[data-testid=stMain]"

# Keeps where the charts' elements are in every frame that the browser paints. While a chart
# is drawn anew its predecessor stays in the document without a size.
PLACES = "[class*='_chart'][data-testid=stElementContainer]"
RECORD_PLACES = """selector => {
    window.places = new Set()
    window.frames_seen = 0
    const look = () => {
        const boxes = [...document.querySelectorAll(selector)]
            .map(e => e.getBoundingClientRect())
            .filter(b => b.width > 0)
            .map(b => [b.x, b.y, b.width, b.height])
        window.places.add(JSON.stringify(boxes))
        window.frames_seen += 1
        requestAnimationFrame(look)
    }
    look()
}"""


@pytest.fixture(scope="module")
def story() -> dict[str, str]:
    """What one chapter leaves to the next: addresses."""
    return {}


@pytest.mark.timeout(600)
def test_fit_watch_cancel_and_resume(app, new_page, story):
    page = new_page()
    open_page(page, f"{app.url}/fit?max_items=400&iterations={ITERATIONS}")
    button(page, "Start the fit").click()
    identity = run_of(page)
    story["run"] = page.url

    with held(app.home, identity) as worker:
        page.get_by_text(f"Iteration {worker.done} of {ITERATIONS}").wait_for(timeout=PATIENCE_MS)
        page.get_by_text("item mean").first.wait_for()
        expect(page.locator(CHARTS)).to_have_count(5)
        page.wait_for_timeout(LOOK_MS)  # a page that updates itself is never quiet

        # Nothing moves while it updates.
        page.evaluate(RECORD_PLACES, PLACES)
        for _ in range(LOOKS):
            worker.advance()
            page.get_by_text(f"Iteration {worker.done} of {ITERATIONS}").wait_for()
            page.wait_for_timeout(LOOK_MS)
        places = page.evaluate("[...window.places]")
        assert page.evaluate("window.frames_seen") > LOOKS
        assert [len(json.loads(boxes)) for boxes in places] == [5], places

        # The same run in a second tab, by its address.
        second = new_page("dark")
        second.goto(page.url)
        button(second, "Cancel").wait_for()
        button(page, "Cancel").click()
        button(page, "Stopping …").wait_for()

    page.get_by_text("partial model").wait_for()
    second.get_by_text("partial model").wait_for()
    done = int(re.search(rf"(\d+) of {ITERATIONS} iterations", page.inner_text("body"))[1])
    assert LOOKS < done < ITERATIONS

    page.reload()
    page.get_by_text("partial model").wait_for()
    settle(page)
    button(page, "Resume").click()
    page.get_by_text("held-out ratings:").wait_for(timeout=PATIENCE_MS)
    second.get_by_text("held-out ratings:").wait_for()


@pytest.mark.timeout(120)
def test_a_finished_run_is_there_after_a_restart_of_the_browser(story, page):
    open_page(page, story["run"])
    page.get_by_text("held-out ratings:").wait_for()
    expect(page.get_by_role("link", name="Get recommendations")).to_have_count(1)
    expect(page.locator(CHARTS)).to_have_count(5)


@pytest.mark.timeout(240)
def test_what_is_proposed_is_drawn_beside_by_one_click(story, page):
    page.set_viewport_size({"width": 1280, "height": 800})
    open_page(page, story["run"])
    button(page, "Try ordered ratings").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**with=*")
    page.get_by_text("than this run").wait_for(timeout=PATIENCE_MS)
    settle(page)
    names = page.locator(f"{CHARTS} .annotation-text")
    expect(names.filter(has_text="ordered ratings")).to_have_count(1)
    expect(button(page, "Open run")).to_have_count(1)
    # What it shows, what was tried, what came of it, and the whole chart: without scrolling.
    for part in ('[data-testid="stAlert"]', ".st-key-said", ".st-key-nmae_chart"):
        wait_until_in_sight(page, part)
    story["beside"] = page.url
    open_page(page, story["beside"])  # the link shows the same
    page.get_by_text("than this run").wait_for()


@pytest.mark.timeout(120)
def test_export(story, page):
    open_page(page, story["run"])
    page.get_by_text("Repeat and export").click()
    settle(page)
    expect(page.get_by_text("gmc fit")).to_have_count(1)
    with download(page, "Records (CSV)").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == ITERATIONS
    content = json.loads(download(page, "All figures (JSON)").read_text())
    assert content["run"]["state"] == "finished"
    assert "<html" in download(page, "Report (HTML)").read_text()[:500]


@pytest.mark.timeout(600)
def test_sweep_of_five_values(app, page, story):
    open_page(page, f"{app.url}/sensitivity?max_items=100&seed_count=2")
    button(page, "Start 10 fits").click()
    page.wait_for_url("**sweep=*")
    story["sweep"] = page.url
    page.get_by_text("Best:").wait_for(timeout=PATIENCE_MS)
    button(page, "Cancel the rest").wait_for(state="detached")
    expect(page.locator(MAIN)).to_contain_text("one standard error")
    expect(page.locator(MAIN)).to_contain_text("optimistic")
    expect(page.locator(CHARTS)).to_have_count(3)


@pytest.mark.timeout(120)
def test_everything_is_on_the_runs_page(app, page, story):
    open_page(page, f"{app.url}/runs")
    page.get_by_label("Picked runs").click()
    options = page.get_by_role("option")
    options.filter(has_text="Sweep of 5").wait_for()
    expect(options.filter(has_text=f"L = {ITERATIONS}")).to_have_count(1)
    options.filter(has_text="Sweep of 5").click()
    page.keyboard.press("Escape")
    ticked = page.locator('[data-testid="stDataFrame"] canvas [role="row"][aria-selected="true"]')
    expect(ticked).to_have_count(1)
    page.get_by_role("link", name="Open").click()
    page.get_by_text("Best:").wait_for()
    page.wait_for_url(f"**{story['sweep'].partition('sweep=')[2]}*")
