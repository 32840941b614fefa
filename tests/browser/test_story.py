"""A fit and a sweep from the first click to the exported file, in a real browser."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from explorer.screenshots import open_page, settle

# A cold machine compiles the numerical code first.
PATIENCE_MS = 180_000
ITERATIONS = 100
CHARTS = ".js-plotly-plot"


@pytest.fixture(scope="module")
def story() -> dict[str, str]:
    """What one chapter leaves to the next: addresses."""
    return {}


def button(page, name: str):
    return page.get_by_role("button", name=name, exact=True)


def download(page, name: str) -> Path:
    with page.expect_download() as waiting:
        button(page, name).click()
    return Path(waiting.value.path())


@pytest.mark.timeout(600)
def test_fit_watch_cancel_and_resume(app, new_page, story):
    page = new_page()
    open_page(page, f"{app.url}/fit?max_items=400&iterations={ITERATIONS}")
    button(page, "Start the fit").click()
    page.wait_for_url("**run=*")
    story["run"] = page.url
    page.get_by_text(re.compile(r"Iteration \d+ of 100")).wait_for(timeout=PATIENCE_MS)

    # Nothing moves while it updates.
    page.get_by_text("item mean").first.wait_for()
    page.locator(CHARTS).first.wait_for()
    place = page.locator(CHARTS).first.bounding_box()
    assert place is not None
    page.wait_for_timeout(1500)
    assert page.locator(CHARTS).first.bounding_box() == place

    # The same run in a second tab, by its address.
    second = new_page("dark")
    open_page(second, page.url)
    button(second, "Cancel").wait_for()

    button(page, "Cancel").click()
    page.get_by_text("partial model").wait_for()
    second.get_by_text("partial model").wait_for()
    done = int(re.search(r"(\d+) of 100 iterations", page.inner_text("body"))[1])
    assert 0 < done < ITERATIONS

    page.reload()
    page.get_by_text("partial model").wait_for()
    button(page, "Resume").click()
    page.get_by_text("held-out ratings:").wait_for(timeout=PATIENCE_MS)
    second.reload()
    second.get_by_text("held-out ratings:").wait_for()


@pytest.mark.timeout(120)
def test_a_finished_run_is_there_after_a_restart_of_the_browser(story, page):
    open_page(page, story["run"])
    page.get_by_text("held-out ratings:").wait_for()
    assert page.get_by_role("link", name="Get recommendations").count() == 1
    assert page.locator(CHARTS).count() == 5


@pytest.mark.timeout(120)
def test_export(story, page):
    open_page(page, story["run"])
    page.get_by_text("Repeat and export").click()
    settle(page)
    assert page.get_by_text("python -m gmc_core fit").count() == 1
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
    page.get_by_text(re.compile("Best( so far)?:")).wait_for(timeout=PATIENCE_MS)
    page.get_by_text("Best:").wait_for(timeout=PATIENCE_MS)
    button(page, "Cancel the rest").wait_for(state="detached")
    text = page.inner_text("[data-testid=stMain]")
    assert "one standard error" in text
    assert "optimistic" in text
    assert page.locator(CHARTS).count() == 3


@pytest.mark.timeout(120)
def test_everything_is_on_the_runs_page(app, page, story):
    open_page(page, f"{app.url}/runs")
    page.get_by_label("Picked runs").click()
    options = page.get_by_role("option")
    options.filter(has_text="Sweep of 5").wait_for()
    assert options.filter(has_text="L = 100").count() == 1
    options.filter(has_text="Sweep of 5").click()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Open").click()
    page.get_by_text("Best:").wait_for()
    assert story["sweep"].partition("sweep=")[2] in page.url
