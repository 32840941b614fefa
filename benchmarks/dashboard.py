"""How quick the dashboard is in a browser, as a Markdown table of medians.

    python -m benchmarks.dashboard [--ml1m ml-1m.zip] [--repeats 5]

It starts the dashboard on a home of its own and fits what it looks at, ML-1M if the file
is given and the sample otherwise, in float64: the model is as large as the paper's, only
with fewer iterations. Run it on an idle machine. What is timed:

- first paint: from the navigation, by a browser that has cached nothing, to the first
  level-1 heading, after one visit that warmed the server;
- switching pages: from the click on a page's link to that page's level-1 heading, and to
  the end of its script, while a fit runs in the background;
- a rating: the fold-in and the list alone; the whole script run of the Recommend page in
  this process (app.py, fold-in, list, what to rate next, charts), by Streamlit's AppTest;
  and from the click on the stars to the new list in the browser;
- Covariance: from the navigation to the clickable heatmap of titles, the first time in a
  process, which reads the model from the disk, and later; then the heap that JavaScript uses,
  and what is left of it after a garbage collection.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gmc_core.fitting.config import ExperimentConfig
from gmc_core.gaussian.settings import FitSettings
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.runs.store import Store
from gmc_core.runs.worker import ensure_worker, work
from tests.tools.screenshots import READY_MS, RUNNING, SIZE, TITLE, open_page, settle
from tests.tools.serving import ROOT, launch_options, serve

HEATMAP = '[data-testid="stVegaLiteChart"] svg'
LIST = '[aria-label^="Recommendations: "]'
STARS = "5 out of 5 stars"
SWITCHED = ("Data", "Covariance", "Recommend", "Sensitivity", "Runs", "Results", "Fit")
ITERATIONS = 3
LONG = 100  # iterations of the fit in the background
FIT_SECONDS = 300
TOP = 10
RATED = 4  # ratings before the timed one


@dataclass(frozen=True)
class Figure:
    """Measured values of one thing. target : what they should stay under, or None."""

    name: str
    values: list[float]
    unit: str
    target: float | None = None

    def line(self) -> str:
        """Its row of the table."""
        target = "" if self.target is None else f"< {self.target:g} {self.unit}"
        low, middle, high = min(self.values), statistics.median(self.values), max(self.values)
        return (
            f"| {self.name} | {middle:.3g} {self.unit} | {low:.3g} … {high:.3g} "
            f"| {len(self.values)} | {target} |"
        )


HEADER = "| measured | median | range | times | target |\n|---|---|---|---|---|"


def seconds(action: Callable[[], object]) -> float:
    """Wall-clock time of a call."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**launch_options())
        yield browser
        browser.close()


@contextmanager
def new_page(browser: Any) -> Iterator[Any]:
    """A page of a visitor whose browser has cached nothing."""
    context = browser.new_context(viewport=SIZE)
    context.set_default_timeout(READY_MS)
    yield context.new_page()
    context.close()


# The dashboard as a whole ------------------------------------------------------------


def first_paint(browser: Any, url: str, repeats: int) -> list[float]:
    """Seconds from the navigation to the first level-1 heading."""

    def paint(page: Any) -> None:
        page.goto(url, wait_until="commit")
        page.wait_for_selector(TITLE)

    taken = []
    for _ in range(repeats + 1):
        with new_page(browser) as page:
            taken.append(seconds(partial(paint, page)))
    return taken[1:]


def switching(browser: Any, url: str, repeats: int) -> tuple[list[float], list[float]]:
    """Seconds from a click on a page's link to its heading, and to the end of its script."""
    headings, ends = [], []
    with new_page(browser) as page:
        open_page(page, url)
        for turn in range(repeats + 1):
            for name in SWITCHED:
                began = time.perf_counter()
                page.get_by_role("link", name=name, exact=True).first.click()
                page.get_by_role("heading", level=1, name=name, exact=True).wait_for()
                heading = time.perf_counter() - began
                page.wait_for_selector(RUNNING, state="detached")
                end = time.perf_counter() - began
                settle(page)
                if turn:  # the first turn fills the caches
                    headings.append(heading)
                    ends.append(end)
    return headings, ends


@contextmanager
def fit_running(store: Store, config: ExperimentConfig) -> Iterator[None]:
    """A fit in a worker process, as the dashboard starts it, that is stopped at the end."""
    run = store.submit(config, label="In the background", again=True)
    ensure_worker(store, idle_seconds=0)
    try:
        _wait(lambda: store.run(run.id).iteration > 0, "The fit did not begin.")
        yield
        if store.run(run.id).state != "running":
            print("The fit in the background ended too early: these times flatter.\n")
    finally:
        store.cancel(run.id)
        _wait(lambda: store.run(run.id).ended_for_good, "The fit did not stop.")


def _wait(done: Callable[[], bool], complaint: str) -> None:
    until = time.monotonic() + FIT_SECONDS
    while not done():
        if time.monotonic() > until:
            raise SystemExit(complaint)
        time.sleep(0.2)


# The pages of one model --------------------------------------------------------------


def fold_in(model: GaussianModel, repeats: int) -> list[float]:
    """Milliseconds of the fold-in of a few ratings and of the list that follows."""
    popular = model.item_counts.argsort()[::-1]
    items = [int(item) for item in popular[: RATED + 1]]
    values = [model.scale.high] * len(items)
    model.recommend(model.posterior(items, values), TOP)
    return [
        1000 * seconds(lambda: model.recommend(model.posterior(items, values), TOP))
        for _ in range(repeats)
    ]


def rerun(home: Path, run: str, repeats: int) -> list[float]:
    """Milliseconds of the Recommend page's script after each of several ratings."""
    from streamlit.testing.v1 import AppTest

    os.environ["GMC_HOME"] = str(home)
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=FIT_SECONDS)
    at.session_state["gmc_dashboard.entered"] = True
    at.query_params["run"] = run
    at = at.switch_page("pages/recommend.py").run()
    taken = []
    for _ in range(repeats + RATED):
        next(stars for stars in at.feedback if stars.value is None).set_value(4)
        taken.append(1000 * seconds(at.run))
        if at.exception:
            raise SystemExit(f"The page failed: {at.exception[0].message}")
    return taken[RATED:]


def rating_in_browser(browser: Any, url: str, run: str, repeats: int) -> list[float]:
    """Milliseconds from the click on the stars of a suggested title to the new list."""
    taken = []
    with new_page(browser) as page:
        open_page(page, f"{url}/recommend?run={run}")
        for count in range(repeats + RATED):
            before = page.locator(LIST).first.get_attribute("aria-label")
            # The titles to rate next follow those that are rated.
            stars = page.get_by_role("radio", name=STARS, checked=False).first
            began = time.perf_counter()
            stars.click()
            page.wait_for_function(
                "([list, before]) => {"
                " const shown = document.querySelector(list);"
                " return shown && shown.getAttribute('aria-label') !== before }",
                arg=[LIST, before],
            )
            if count >= RATED:
                taken.append(1000 * (time.perf_counter() - began))
            settle(page)
    return taken


def covariance(browser: Any, url: str, run: str, repeats: int) -> tuple[list[float], ...]:
    """Seconds to the clickable heatmap, and heap in MB as it is and after a collection."""
    taken, used, live = [], [], []
    for _ in range(repeats + 1):
        with new_page(browser) as page:

            def show(page: Any = page) -> None:
                page.goto(f"{url}/covariance?run={run}&view=Titles", wait_until="commit")
                page.wait_for_selector(HEATMAP)

            taken.append(seconds(show))
            settle(page)
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable")
            used.append(_heap(session))
            session.send("HeapProfiler.collectGarbage")
            live.append(_heap(session))
    return taken[:1], taken[1:], used[1:], live[1:]


def _heap(session: Any) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    used = next(each["value"] for each in metrics if each["name"] == "JSHeapUsedSize")
    return float(used) / 1e6


# The command -------------------------------------------------------------------------


def measure(home: Path, cache: Path, ml1m: Path | None, repeats: int) -> Iterator[Figure]:
    """All figures, in the order of the table."""
    data = "sample" if ml1m is None else str(ml1m.resolve())
    name = "the sample" if ml1m is None else "ML-1M"
    with Store(home) as store:
        run = store.submit(ExperimentConfig(data=data, fit=FitSettings(iterations=ITERATIONS)))
        work(store, idle_seconds=0, polite=False)
        with serve(home, cache) as url, chromium() as browser:
            yield Figure("First paint, warm", first_paint(browser, url, repeats), "s", 2)
            first, later, used, live = covariance(browser, url, run.id, repeats)
            covered = f"Covariance, model of {name}"
            yield Figure(f"{covered}: heatmap, first time in the process", first, "s", 3)
            yield Figure(f"{covered}: heatmap, later", later, "s", 3)
            yield Figure(f"{covered}: JavaScript heap", used, "MB", 300)
            yield Figure(f"{covered}: JavaScript heap after a collection", live, "MB")
            if ml1m is not None:  # the sample's ratings are given in a box, not in stars
                clicked = rating_in_browser(browser, url, run.id, repeats)
                yield Figure(f"A rating, model of {name}: click to new list", clicked, "ms")
            with fit_running(store, ExperimentConfig(data=data, fit=FitSettings(iterations=LONG))):
                headings, ends = switching(browser, url, repeats)
            yield Figure(f"Switching pages, {name} being fitted: heading", headings, "s", 1)
            yield Figure(f"Switching pages, {name} being fitted: script done", ends, "s")
        # Nothing else of the benchmark runs any more.
        model = store.model(run.id)
        yield Figure(f"A rating, model of {name}: fold-in, list", fold_in(model, repeats), "ms")
        if ml1m is not None:
            took = rerun(home, run.id, repeats)
            yield Figure(f"A rating, model of {name}: whole page, server", took, "ms", 300)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ml1m", type=Path, help="the file ml-1m.zip; default: the sample")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.ml1m is not None and not arguments.ml1m.exists():
        parser.error(f"there is no {arguments.ml1m}")
    with tempfile.TemporaryDirectory() as folder:
        places = Path(folder) / "home", Path(folder) / "cache"
        print(HEADER, flush=True)
        for figure in measure(*places, arguments.ml1m, max(arguments.repeats, 1)):
            print(figure.line(), flush=True)


if __name__ == "__main__":
    main()
