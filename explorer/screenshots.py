"""Pictures of every page, light and dark: ``python -m explorer.screenshots OUT_DIR``.

The dashboard runs with an empty home of its own; the sample is fitted first, so that
the pages have something to show.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from explorer.serving import CHROMIUM, CHROMIUM_ARGUMENTS, serve

PAGES = ("", "data", "fit", "sensitivity", "covariance", "recommend", "runs", "results")
THEMES = ("light", "dark")
SIZE = {"width": 1366, "height": 768}
READY_MS = 40_000
SETTLE_MS = 700
RUNNING = '[data-testid="stApp"][data-test-script-state="running"]'
TITLE = '[data-testid="stMain"] h1'


def open_page(page: Any, url: str) -> None:
    """Go to a page and wait until its script has run and its charts are drawn."""
    page.goto(url, wait_until="domcontentloaded")
    page.wait_for_selector(TITLE, timeout=READY_MS)
    settle(page)


def settle(page: Any) -> None:
    """Wait until nothing runs any more."""
    page.wait_for_timeout(SETTLE_MS)
    page.wait_for_selector(RUNNING, state="detached", timeout=READY_MS)
    page.wait_for_timeout(SETTLE_MS)


def fit_sample(home: Path, cache: Path, iterations: int) -> str | None:
    """Fit the sample into the store at ``home``; the run's id, None if that failed."""
    import os
    import subprocess

    environment = {**os.environ, "GMC_HOME": str(home), "GMC_CACHE": str(cache)}
    command = [sys.executable, "-m", "gmc_core", "fit", "sample", "--iterations", str(iterations)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"The sample could not be fitted: {done.stderr[-500:]}", file=sys.stderr)
    return None


def take(
    url: str, target: Path, pages: Sequence[str], themes: Sequence[str], query: str, whole: bool
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
                open_page(page, f"{url}/{name}{query}")
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
    parser.add_argument("--query", default="", help="added to each address, such as '?data=ml-1m'")
    parser.add_argument("--whole", action="store_true", help="the whole page, not one screen")
    parser.add_argument("--no-fit", action="store_true", help="leave the run store empty")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        home, cache = Path(folder) / "home", Path(folder) / "cache"
        with serve(home, cache) as url:
            if not chosen.no_fit:
                fit_sample(home, cache, 4)
            pages = ["" if name == "home" else name for name in chosen.pages]
            for file in take(url, chosen.out, pages, chosen.themes, chosen.query, chosen.whole):
                print(file)


if __name__ == "__main__":
    main()
