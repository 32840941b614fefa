"""How the dashboard bears many visitors at once, as a Markdown table.

    python -m benchmarks.load [--ml1m ml-1m.zip] [--sessions 20] [--visits 8] [--pause 10]

It starts the dashboard on a home of its own with a fitted model, and sessions that speak to it
as a browser does, each over a connection of its own. After one visitor who goes through all
pages and so warms the server, all begin at once; each goes through the pages in an order of its
own, and looks at each for a random time around ``--pause`` seconds. With ``--ml1m`` it is done
again with the model of MovieLens 1M and ``--heavy-sessions`` sessions. What is told:

- the answer: from asking for a page until all of it was sent and its script has ended; the
  median over all, and each session's median;
- the server's processor time for a page;
- what failed: sessions that did not get through, pages that showed an error, and what the
  server wrote of exceptions;
- the memory of the server's process: before the first visitor, at its highest, at the end.

Nothing is drawn, as visitors draw on machines of their own; ``--browsers`` takes contexts of one
Chromium instead, which draw on this machine's cores beside the server. Run it on an idle
machine. The exit code is 1 if something failed.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks.dashboard import HEADER, ITERATIONS, Figure
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.gaussian.settings import FitSettings
from gmc_core.runs.store import Store
from gmc_core.runs.worker import work
from tests.tools.screenshots import READY_MS, RUNNING, SIZE, TITLE
from tests.tools.serving import launch_options, serve

PAGES = ("Data", "Fit", "Covariance", "Recommend", "Sensitivity", "Runs", "Results")
ERRORS = '[data-testid="stException"], [data-testid="stAlertContentError"]'
SAMPLE_SECONDS = 0.1
ANSWER_SECONDS = 2.0


@dataclass
class Outcome:
    """What the visitors met.

    medians : of each session's answers, in seconds. answers : of all.
    failures : a sentence for each thing that went wrong. cpu_seconds : of the server, a page.
    """

    answers: list[float] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    cpu_seconds: float = float("nan")

    def spent(self, server: Memory, before: float, sessions: int) -> None:
        """Note the server's processor time for a page, first pages included."""
        if server.alive:
            pages = max(len(self.answers) + sessions, 1)
            self.cpu_seconds = (server.cpu_seconds() - before) / pages


class Memory:
    """The resident memory of the dashboard's process, looked at ten times a second."""

    def __init__(self) -> None:
        self.process = _server()
        self.values = [self._now()]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def cpu_seconds(self) -> float:
        """Processor time of the server so far."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def _now(self) -> float:
        return float(self.process.memory_info().rss) / 1e6

    def _watch(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            try:
                self.values.append(self._now())
            except psutil.NoSuchProcess:
                return

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def alive(self) -> bool:
        """Whether the server is still there."""
        return bool(self.process.is_running() and self.process.status() != psutil.STATUS_ZOMBIE)


def _server() -> psutil.Process:
    """The dashboard, which :func:`tests.tools.serving.serve` has started below this process."""
    for child in psutil.Process().children(recursive=True):
        if "streamlit" in child.cmdline():
            return child
    raise SystemExit("The dashboard's process was not found.")


# A visitor's way to a page: seconds until it was there, and the errors that it showed.
Visit = Callable[[str], Awaitable[tuple[float, list[str]]]]
Visitor = Callable[[], AbstractAsyncContextManager[Visit]]


@asynccontextmanager
async def in_browser(browser: Any, url: str, run: str) -> AsyncIterator[Visit]:
    """A visitor who clicks on links, in a context of one Chromium."""
    context = await browser.new_context(viewport=SIZE)
    context.set_default_timeout(READY_MS)
    try:
        page = await context.new_page()
        await page.goto(f"{url}/?run={run}", wait_until="domcontentloaded")
        await page.wait_for_selector(TITLE)
        await page.wait_for_selector(RUNNING, state="detached")

        async def visit(name: str) -> tuple[float, list[str]]:
            began = time.perf_counter()
            await page.get_by_role("link", name=name, exact=True).first.click()
            await page.get_by_role("heading", level=1, name=name, exact=True).wait_for()
            await page.wait_for_selector(RUNNING, state="detached")
            took = time.perf_counter() - began
            return took, await page.locator(ERRORS).all_inner_texts()

        yield visit
    finally:
        await context.close()


@asynccontextmanager
async def without_browser(url: str, run: str) -> AsyncIterator[Visit]:
    """A visitor who asks for pages as a browser does, and draws nothing."""
    from websockets.asyncio.client import connect

    async with connect(
        f"{url.replace('http', 'ws')}/_stcore/stream",
        subprotocols=["streamlit"],
        origin=url,
        max_size=None,
        proxy=None,  # type: ignore[arg-type,list-item]
    ) as socket:
        await ask(socket, f"run={run}", "")
        yield partial(ask, socket, f"run={run}")


async def ask(socket: Any, query: str, name: str) -> tuple[float, list[str]]:
    """Ask for a page; seconds until its script has ended, and the errors that it shows."""
    message = BackMsg()
    message.rerun_script.page_name = name.lower()
    message.rerun_script.query_string = query
    began = time.perf_counter()
    await socket.send(message.SerializeToString())
    errors, heading = [], ""
    while True:
        answer = ForwardMsg()
        answer.ParseFromString(await asyncio.wait_for(socket.recv(), READY_MS / 1000))
        kind = answer.WhichOneof("type")
        element = answer.delta.new_element
        if kind == "delta" and element.WhichOneof("type") == "exception":
            errors.append(element.exception.message)
        if kind == "delta" and element.heading.tag == "h1":
            heading = element.heading.body
        if kind == "delta" and element.alert.format == element.alert.ERROR:
            errors.append(element.alert.body)
        if kind == "script_finished" and answer.script_finished == answer.FINISHED_SUCCESSFULLY:
            took = time.perf_counter() - began
            if name and heading != name:
                errors.append(f"the page's heading is {heading!r}")
            return took, errors


async def session(
    visitor: Visitor,
    number: int,
    visits: int,
    pause: float,
    outcome: Outcome,
    order: Sequence[str] = (),
) -> None:
    """One visitor; ``order`` of the pages, random without."""
    rng = random.Random(number)
    answers: list[float] = []
    try:
        async with visitor() as visit:
            before = ""
            for step in range(visits):
                await asyncio.sleep(pause * rng.uniform(0.5, 1.5))
                others = [name for name in PAGES if name != before]
                before = order[step] if order else rng.choice(others)
                took, errors = await visit(before)
                answers.append(took)
                outcome.failures += [f"session {number}, {before}: {text[:120]}" for text in errors]
    except Exception as error:  # a visitor who does not get through is a result, not an end
        said = (str(error).splitlines() or [""])[0]
        outcome.failures.append(f"session {number}: {type(error).__name__} {said}")
    outcome.answers += answers
    if answers:
        outcome.medians.append(statistics.median(answers))


async def crowd(
    visitor: Visitor, sessions: int, visits: int, pause: float, server: Memory
) -> Outcome:
    """One visitor who warms the server, then all at once."""
    outcome = Outcome()
    await session(visitor, -1, len(PAGES), 0.0, outcome, PAGES)
    outcome = Outcome(failures=outcome.failures)
    before = server.cpu_seconds()
    await asyncio.gather(*(session(visitor, k, visits, pause, outcome) for k in range(sessions)))
    outcome.spent(server, before, sessions)
    return outcome


async def browser_crowd(
    url: str, run: str, sessions: int, visits: int, pause: float, server: Memory
) -> Outcome:
    """The same, each in a context of one Chromium."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**launch_options())
        visitor = partial(in_browser, browser, url, run)
        outcome = await crowd(visitor, sessions, visits, pause, server)
        await browser.close()
    return outcome


@contextmanager
def dashboard(data: str, folder: Path) -> Iterator[tuple[str, str]]:
    """A dashboard on a home of its own with a fitted model: its address, and the run."""
    home, cache = folder / "home", folder / "cache"
    with Store(home) as store:
        run = store.submit(ExperimentConfig(data=data, fit=FitSettings(iterations=ITERATIONS)))
        work(store, idle_seconds=0, polite=False)
        if store.run(run.id).state != "finished":
            raise SystemExit(store.run(run.id).message)
    with serve(home, cache) as url:
        yield url, run.id


def measure(
    name: str, data: str, sessions: int, visits: int, pause: float, browsers: bool
) -> tuple[list[Figure], list[str]]:
    """Figures of one crowd, and what failed."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with dashboard(data, place) as (url, run), Memory() as memory:
            how = (sessions, visits, pause, memory)
            came = (
                browser_crowd(url, run, *how)
                if browsers
                else crowd(partial(without_browser, url, run), *how)
            )
            outcome = asyncio.run(came)
            if not memory.alive:
                outcome.failures.append("the server has ended")
        log = (place / "home" / "server.log").read_text(errors="replace")
    if "Traceback" in log:
        outcome.failures.append(f"the server wrote: {log[log.index('Traceback') :][:400]}")
    if len(outcome.medians) < sessions:
        outcome.failures.append(f"{sessions - len(outcome.medians)} sessions got no answer")
    crowded = f"{sessions} sessions, model of {name}"
    figures = [
        Figure(f"{crowded}: answer", outcome.answers or [float("nan")], "s", ANSWER_SECONDS),
        Figure(f"{crowded}: a session's median", outcome.medians or [float("nan")], "s"),
        Figure(f"{crowded}: the server's processor time, a page", [outcome.cpu_seconds], "s"),
        Figure(f"{crowded}: server before", memory.values[:1], "MB"),
        Figure(f"{crowded}: server at most", [max(memory.values)], "MB"),
        Figure(f"{crowded}: server at the end", memory.values[-1:], "MB"),
    ]
    return figures, outcome.failures


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ml1m", type=Path, help="the file ml-1m.zip; default: the sample alone")
    parser.add_argument("--sessions", type=int, default=20, help="on the sample")
    parser.add_argument("--heavy-sessions", type=int, default=5, help="on MovieLens 1M")
    parser.add_argument("--visits", type=int, default=8, help="pages a session opens")
    parser.add_argument("--pause", type=float, default=10.0, help="seconds between clicks, about")
    parser.add_argument("--browsers", action="store_true", help="contexts of one Chromium")
    arguments = parser.parse_args()
    if arguments.ml1m is not None and not arguments.ml1m.exists():
        parser.error(f"there is no {arguments.ml1m}")
    crowds = [("the sample", "sample", arguments.sessions)]
    if arguments.ml1m is not None:
        crowds.append(("ML-1M", str(arguments.ml1m.resolve()), arguments.heavy_sessions))
    failures = []
    print(HEADER, flush=True)
    for name, data, sessions in crowds:
        figures, failed = measure(
            name, data, sessions, arguments.visits, arguments.pause, arguments.browsers
        )
        for figure in figures:
            print(figure.line(), flush=True)
        failures += failed
    print("\nFailures: " + ("; ".join(failures) if failures else "none"))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
