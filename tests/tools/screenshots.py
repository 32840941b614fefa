"""Pictures of every page, light and dark: ``python -m tests.tools.screenshots OUT_DIR``.

The dashboard runs with an empty home of its own; the sample is fitted first, and the
claims are measured on a few of its titles, so that the pages have something to show.
``--readme`` takes the README's pictures only.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from gmc_core.fitting.config import ExperimentConfig
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.filters import Filter
from gmc_core.runs.comparisons import all_comparisons
from gmc_core.runs.store import Store
from gmc_core.runs.sweeps import SweepConfig, submit_or_find_sweep
from gmc_core.runs.worker import work
from gmc_dashboard.shared.components import PAGES as FOLDER
from tests.tools.serving import launch_options, serve

PAGES = ("", *sorted(file.stem for file in FOLDER.glob("*.py") if file.stem != "home"))
EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0)
FEW = 40  # titles for the claims, which take 15 experiments and a comparison
THEMES = ("light", "dark")
SIZE: Any = {"width": 1366, "height": 768}
# Views by name: a page's address, with the ids that :func:`fill` returns.
VIEWS = {
    "home": "",
    "learn": "learn",
    "learn-steps": "learn?chapter=steps&learn_step=4",
    "learn-many": "learn?chapter=many",
    "learn-cost": "learn?chapter=cost",
    "data": "data",
    "data-titles": "data?tab=titles",
    "data-times": "data?tab=times",
    "data-random": "data?protocol=random&held=5-folds&min_user=0&min_item=0",
    "fit": "fit?run={run}",
    "fit-settings": "fit",
    "sensitivity": "sensitivity?sweep={sweep}",
    "sensitivity-settings": "sensitivity",
    "covariance": "covariance?run={run}&view=overview",
    "covariance-titles": "covariance?run={run}&n=36",
    "covariance-map": "covariance?run={run}&view=map&map=260,1196,1210",
    "covariance-neighbours": "covariance?run={run}&view=neighbours&title=260",
    "covariance-axes": "covariance?run={run}&view=axes&axis=2",
    "covariance-variances": "covariance?run={run}&view=variances",
    "recommend": "recommend?run={run}&rated=260:5,2571:5,589:4.5,356:2,597:1.5",
    "recommend-user": "recommend?run={run}&who=user&reveal=true",
    "compare": "compare?comparison={comparison}",
    "compare-settings": "compare",
    "claims": f"claims?max_items={FEW}",
    "claims-unmeasured": "claims",
    "runs": "runs",
    "runs-one": "runs?picked={run}",
    "runs-several": "runs?picked={run},{other}",
    "results": "results",
}
READY_MS = 60_000
QUIET_MS = 500
# A page that updates itself may never be quiet, and is as ready as it will be.
RESTLESS_MS = 10_000
RUNNING = '[data-testid="stApp"][data-test-script-state="running"]'
LOADING = '[data-testid="stSkeleton"]'  # a part whose code has not arrived yet
# Resolves when for so long no script has run, no part was missing and no element changed.
_QUIET = """([unfinished, quiet, restless, ready]) => new Promise((resolve, reject) => {
    const began = performance.now()
    let changed = began
    const observer = new MutationObserver(() => { changed = performance.now() })
    observer.observe(document, {subtree: true, childList: true, characterData: true})
    const look = () => {
        const now = performance.now()
        const busy = document.querySelector(unfinished) !== null
        if (busy) changed = now
        if (now - changed >= quiet || (!busy && now - began >= restless)) {
            observer.disconnect()
            resolve()
        } else if (now - began >= ready) {
            reject(new Error('a script is still running'))
        } else setTimeout(look, 50)
    }
    look()
})"""
TITLE = '[data-testid="stMain"] h1'


class Picture(NamedTuple):
    """A file to make: its name, the view and theme that it shows, and how tall."""

    name: str
    view: str
    theme: str
    height: int = SIZE["height"]


# Tall enough for what they are about.
README = (
    Picture("fit-light", "fit", "light", 800),
    Picture("covariance-light", "covariance-titles", "light", 860),
    Picture("recommend-dark", "recommend", "dark", 1140),
)


def open_page(page: Any, url: str) -> None:
    """Go to a page and wait until its script has run and its charts are drawn."""
    page.goto(url, wait_until="domcontentloaded")
    page.wait_for_selector(TITLE, timeout=READY_MS)
    settle(page)


def settle(page: Any) -> None:
    """Wait until nothing runs any more and nothing moves.

    A click reaches the server a moment later: who has clicked waits for what follows first.
    """
    for unfinished in (RUNNING, LOADING):
        page.wait_for_selector(unfinished, state="detached", timeout=READY_MS)
    page.evaluate(_QUIET, [f"{RUNNING}, {LOADING}", QUIET_MS, RESTLESS_MS, READY_MS])


def fill(home: Path, items: int | None, *, one: bool = False) -> dict[str, str]:
    """Fit the sample (or its ``items`` most rated titles) and a small grid of ε.

    Before that, so that these are the latest runs, the claims are measured. Returns the
    ids of runs and comparison by the names that :data:`VIEWS` uses.

    one : only the first run, which is all that the README shows.
    """
    base = ExperimentConfig(filter=Filter(max_items=items), repetitions=3)
    small = replace(base, filter=Filter(max_items=100), repetitions=1)
    ids = {} if one else {"comparison": measure_claims(home)}
    with Store(home) as store:
        ids["run"] = store.submit(base, label="The paper's settings").id
        if not one:
            large = replace(base, fit=FitSettings(epsilon=3.0))
            grid = SweepConfig(
                replace(small, fit=FitSettings(iterations=8)), EPSILONS, (4, 8), seeds=(0, 1, 2)
            )
            ids["other"] = store.submit(large, label="Ten times the paper's ε").id
            ids["sweep"] = submit_or_find_sweep(store, grid, label="A grid of ε")[0].id
        work(store, idle_seconds=0, polite=False)
    return ids


def measure_claims(home: Path) -> str:
    """Measure the claims on :data:`FEW` titles; returns the id of their comparison."""
    command = [sys.executable, "-m", "gmc_core", "claims", f"--max-items={FEW}"]
    environment = {**os.environ, "GMC_HOME": str(home)}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    with Store(home) as store:
        (run,) = all_comparisons(store)
        return run.id


def take(
    url: str,
    target: Path,
    pictures: Sequence[Picture],
    ids: Mapping[str, str],
    *,
    whole: bool = False,
) -> list[Path]:
    """Save pictures; returns the files.

    whole : of the whole page, as tall as it is.
    """
    from playwright.sync_api import sync_playwright

    target.mkdir(parents=True, exist_ok=True)
    saved = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**launch_options())
        for picture in pictures:
            theme: Any = picture.theme
            size: Any = {**SIZE, "height": picture.height}
            context = browser.new_context(viewport=size, color_scheme=theme)
            page = context.new_page()
            open_page(page, f"{url}/{VIEWS[picture.view].format_map(ids)}")
            if whole:
                _grow(page)
            file = target / f"{picture.name}.png"
            page.screenshot(path=file)
            saved.append(file)
            context.close()
        browser.close()
    return saved


def _grow(page: Any) -> None:
    """Make the window as tall as the page, since the page scrolls inside it."""
    height = page.evaluate("document.querySelector('[data-testid=\"stMain\"]').scrollHeight")
    page.set_viewport_size({**SIZE, "height": max(int(height), SIZE["height"])})
    settle(page)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.screenshots", description=__doc__)
    parser.add_argument("out", type=Path, help="folder for the pictures")
    parser.add_argument("--readme", action="store_true", help="the README's pictures only")
    parser.add_argument("--views", nargs="*", default=VIEWS, choices=VIEWS)
    parser.add_argument("--themes", nargs="*", default=THEMES, choices=THEMES)
    parser.add_argument("--items", type=int, help="titles in the fit; default all of the sample")
    parser.add_argument("--whole", action="store_true", help="the whole page, not one screen")
    parser.add_argument("--no-fit", action="store_true", help="leave the run store empty")
    chosen = parser.parse_args(arguments)
    pictures: Sequence[Picture] = README
    if not chosen.readme:
        pictures = [
            Picture(f"{view}-{theme}", view, theme)
            for theme in chosen.themes
            for view in chosen.views
        ]
    with tempfile.TemporaryDirectory() as folder:
        home, cache = Path(folder) / "home", Path(folder) / "cache"
        ids = dict.fromkeys(("run", "other", "sweep", "comparison"), "")
        if not chosen.no_fit:
            ids |= fill(home, chosen.items, one=chosen.readme)
        with serve(home, cache) as url:
            for file in take(url, chosen.out, pictures, ids, whole=chosen.whole):
                print(file)


if __name__ == "__main__":
    main()
