"""The teacher's story: one person, one page, one run of the sample, from start to export."""

from __future__ import annotations

import csv
import json

import pytest
from playwright.sync_api import expect

from browser.pace import held
from browser.steps import (
    PATIENCE_MS,
    button,
    click_a_pair,
    download,
    follow,
    rate_five_titles,
    run_of,
)
from tests.tools.screenshots import open_page, settle

ITERATIONS = 15


@pytest.mark.timeout(600)
def test_fit_inspect_recommend_and_export(app, page):
    open_page(page, f"{app.url}/fit?max_items=300&iterations={ITERATIONS}")

    # Fit, cancel, resume, reload.
    button(page, "Start the fit").click()
    with held(app.home, run_of(page)) as worker:
        page.get_by_text(f"Iteration {worker.done} of {ITERATIONS}").wait_for(timeout=PATIENCE_MS)
        button(page, "Cancel").click()
        button(page, "Stopping …").wait_for()
    page.get_by_text("partial model").wait_for()
    button(page, "Resume").click()
    page.get_by_text("held-out ratings:").wait_for(timeout=PATIENCE_MS)
    run = page.url
    page.reload()
    page.get_by_text("held-out ratings:").wait_for()
    settle(page)
    expect(page.get_by_text("held-out ratings:").first).to_contain_text("NMAE")

    # Does ε matter? Five values of it on the hundred most rated titles.
    open_page(page, f"{app.url}/sensitivity?max_items=100&seed_count=1")
    button(page, "Start 5 fits").click()
    page.wait_for_url("**sweep=*")
    page.get_by_text("Best:").wait_for(timeout=PATIENCE_MS)

    # What has the first run learned, and what does it recommend?
    open_page(page, run)
    follow(page, "See what it has learned", "Covariance")
    click_a_pair(page)
    follow(page, "Recommend", "Recommend")
    rate_five_titles(page)
    with download(page, "Recommendations (CSV)").open(encoding="utf-8-sig", newline="") as file:
        assert len(list(csv.DictReader(file))) == 10

    # Take the run along.
    follow(page, "Fit", "Fit")
    page.get_by_text("Repeat and export").click()
    settle(page)
    with download(page, "Records (CSV)").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == ITERATIONS
    content = json.loads(download(page, "All figures (JSON)").read_text())
    assert content["run"]["state"] == "finished"
