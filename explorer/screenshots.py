"""Pictures of every page, light and dark: ``python -m explorer.screenshots OUT_DIR``.

The dashboard runs with an empty home of its own; the sample is fitted first, so that
the pages have something to show.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from explorer.serving import CHROMIUM, CHROMIUM_ARGUMENTS, serve
from gmc_core.experiment import ExperimentConfig
from gmc_core.filters import Filter
from gmc_core.settings import FitSettings
from gmc_core.store import Store
from gmc_core.sweeps import SweepConfig, submit_sweep
from gmc_core.worker import work

PAGES = ("", "data", "fit", "sensitivity", "covariance", "recommend", "runs", "results")
EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0)
THEMES = ("light", "dark")
SIZE = {"width": 1366, "height": 768}
READY_MS = 40_000
SETTLE_MS = 700
RUNNING = '[data-testid="stApp"][data-test-script-state="running"]'
LOADING = '[data-testid="stSkeleton"]'  # a part whose code has not arrived yet
TITLE = '[data-testid="stMain"] h1'


def open_page(page: Any, url: str) -> None:
    """Go to a page and wait until its script has run and its charts are drawn."""
    page.goto(url, wait_until="domcontentloaded")
    page.wait_for_selector(TITLE, timeout=READY_MS)
    settle(page)


def settle(page: Any) -> None:
    """Wait until nothing runs any more."""
    page.wait_for_timeout(SETTLE_MS)
    for unfinished in (RUNNING, LOADING):
        page.wait_for_selector(unfinished, state="detached", timeout=READY_MS)
    page.wait_for_timeout(SETTLE_MS)


def fill(home: Path, items: int) -> dict[str, str]:
    """Fit the sample's ``items`` most rated titles, and a small grid of ε, into a store.

    Returns the URL parameters of each page that shows a run.
    """
    base = ExperimentConfig(filter=Filter(max_items=items), repetitions=3)
    small = replace(base, filter=Filter(max_items=items // 4), repetitions=1)
    with Store(home) as store:
        run = store.submit(base, label="The paper's settings")
        grid = SweepConfig(
            replace(small, fit=FitSettings(iterations=8)), EPSILONS, (4, 8), seeds=(0, 1, 2)
        )
        sweep = submit_sweep(store, grid, label="A grid of ε")
        work(store, idle_seconds=0, polite=False)
    shown = {name: f"?run={run.id}" for name in ("fit", "covariance", "recommend")}
    return {**shown, "sensitivity": f"?sweep={sweep.id}"}


def take(
    url: str,
    target: Path,
    pages: Sequence[str],
    themes: Sequence[str],
    query: Mapping[str, str],
    whole: bool,
) -> list[Path]:
    """Save one picture a page and theme; returns the files."""
    from playwright.sync_api import sync_playwright

    target.mkdir(parents=True, exist_ok=True)
    saved = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM) if CHROMIUM.exists() else None,
            args=list(CHROMIUM_ARGUMENTS),
        )
        for theme in themes:
            context = browser.new_context(viewport=SIZE, color_scheme=theme)
            page = context.new_page()
            for name in pages:
                open_page(page, f"{url}/{name}{query.get(name, '')}")
                if whole:
                    _grow(page)
                file = target / f"{name or 'home'}-{theme}.png"
                page.screenshot(path=file)
                saved.append(file)
                page.set_viewport_size(SIZE)
            context.close()
        browser.close()
    return saved


def _grow(page: Any) -> None:
    """Make the window as tall as the page, since the page scrolls inside it."""
    height = page.evaluate("document.querySelector('[data-testid=\"stMain\"]').scrollHeight")
    page.set_viewport_size({**SIZE, "height": max(int(height), SIZE["height"])})
    page.wait_for_timeout(SETTLE_MS)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m explorer.screenshots", description=__doc__)
    parser.add_argument("out", type=Path, help="folder for the pictures")
    parser.add_argument("--pages", nargs="*", default=PAGES, help="names; home is ''")
    parser.add_argument("--themes", nargs="*", default=THEMES, choices=THEMES)
    parser.add_argument("--items", type=int, default=400, help="titles in the fit")
    parser.add_argument("--whole", action="store_true", help="the whole page, not one screen")
    parser.add_argument("--no-fit", action="store_true", help="leave the run store empty")
    chosen = parser.parse_args(arguments)
    pages = ["" if name == "home" else name for name in chosen.pages]
    with tempfile.TemporaryDirectory() as folder:
        home, cache = Path(folder) / "home", Path(folder) / "cache"
        query = {} if chosen.no_fit else fill(home, chosen.items)
        with serve(home, cache) as url:
            for file in take(url, chosen.out, pages, chosen.themes, query, chosen.whole):
                print(file)


if __name__ == "__main__":
    main()
