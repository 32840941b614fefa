"""How long somebody sees nothing new: a command on a terminal, or every page of the dashboard.

    python -m benchmarks.silence command gmc fit --data FOLDER --preset fast
    python -m benchmarks.silence pages FOLDER

``command`` runs it on a pseudo terminal and prints the longest times without output. ``pages``
reads the ratings on the Data page of a dashboard with a home of its own, fits them from the Fit
page (the preset "Fast") and looks at every page and view; a time counts as silent while the page
works, nothing of it changes, and no words say what is awaited. Not for Windows, which has no
pseudo terminals.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.dashboard import chromium, new_page
from tests.tools.screenshots import RUNNING, TITLE, settle
from tests.tools.serving import serve

WINDOW = struct.pack("HHHH", 40, 120, 0, 0)  # rows and columns of the terminal
LONGEST = 3
FIT_SECONDS = 3600.0
VIEWS = (
    *(f"covariance?run={{run}}&view={view}" for view in
      ("overview", "titles", "map", "neighbours", "axes", "variances")),
    "recommend?run={run}", "recommend?run={run}&who=user", "recommend?run={run}&who=guess",
    "fit?run={run}", "sensitivity?data={data}", "compare?data={data}", "claims?data={data}",
    "results", "runs", "runs?picked={run}", "learn", "",
)  # fmt: skip
PROTOCOLS = ("random", "latest", "strong", "weak")
# Keeps the longest time in which the page works and nothing of it changes, without words that
# say what is awaited.
WATCH = """
const seen = window.silence = {since: performance.now(), longest: 0}
const awaited = '[data-testid="stSpinner"], [data-testid="stProgress"]'
const look = () => {
    const now = performance.now()
    const told = [...document.querySelectorAll(awaited)]
        .some(each => each.checkVisibility() && each.innerText.trim())
    const works = document.querySelector('RUNNING') || !document.querySelector('TITLE')
    if (told || !works) seen.since = now
    else seen.longest = Math.max(seen.longest, now - seen.since)
}
const changed = () => { look(); seen.since = performance.now() }
new MutationObserver(changed).observe(
    document, {subtree: true, childList: true, characterData: true})
setInterval(look, 100)
""".replace("RUNNING", RUNNING).replace("TITLE", TITLE)
FORGET = "Object.assign(window.silence, {since: performance.now(), longest: 0})"


class Wait(NamedTuple):
    """Seconds without output, from when on, and the last line before."""

    seconds: float
    at: float
    after: str


def waits(command: list[str]) -> tuple[int, float, list[Wait]]:
    """Exit code and seconds of a command on a terminal, and its times without output, longest
    first."""
    began = last = time.monotonic()
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, WINDOW)
    found, line = [], ""
    while True:
        try:
            output = os.read(terminal, 1 << 16)
        except OSError:  # the other end is closed
            output = b""
        now = time.monotonic()
        found.append(Wait(now - last, last - began, line))
        if not output:
            break
        last = now
        lines = re.split(r"[\r\n]+", output.decode(errors="replace").strip())
        line = lines[-1] or line
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, time.monotonic() - began, sorted(found, reverse=True)


class Visitor:
    """Somebody who does one thing after another, and what each took."""

    def __init__(self, page: Any) -> None:
        self.page = page
        page.add_init_script(WATCH)

    def does(self, name: str, action: Callable[[], object]) -> None:
        """Do it, wait until the page is done, and print how long that took and was silent."""
        if self.page.url.startswith("http"):
            self.page.evaluate(FORGET)
        began = time.monotonic()
        action()
        settle(self.page)
        took = time.monotonic() - began
        silent = self.page.evaluate("window.silence.longest") / 1000
        print(f"| {name} | {took:.1f} | {silent:.1f} |", flush=True)


def pages(folder: str) -> None:
    """Read, fit and look at everything, as a Markdown table."""
    with tempfile.TemporaryDirectory() as own, chromium() as browser, new_page(browser) as page:
        home = Path(own) / "home"
        os.environ["GMC_HOME"] = str(home)
        with serve(home, Path(own) / "cache") as url:
            visitor = Visitor(page)
            print("| what | took s | longest silence s |\n|---|---|---|")
            run, data = _fit(visitor, url, folder)
            for view in VIEWS:
                address = view.format(run=run, data=data)
                name = re.sub(r"[?&](run|data|picked)=[^&]*", "", address) or "start"
                visitor.does(name, lambda address=address: _go(page, f"{url}/{address}"))


def _go(page: Any, url: str) -> None:
    page.goto(url, wait_until="commit")
    page.wait_for_selector(TITLE)


def _fit(visitor: Visitor, url: str, folder: str) -> tuple[str, str]:
    """The run of a low-rank fit of the ratings in a folder, and the name of its data."""
    page = visitor.page
    visitor.does("data, the first visit", lambda: _go(page, f"{url}/data"))
    page.get_by_role("radio", name="My own file").click()
    path = page.get_by_role("textbox", name="… or the path of a file or folder")
    path.fill(folder)
    visitor.does("data: the path", lambda: path.press("Enter"))

    def use() -> None:
        page.get_by_role("button", name="Use these ratings", exact=True).click()
        page.wait_for_url("**data=*", timeout=1000 * FIT_SECONDS)

    visitor.does("data: reading", use)
    data = _of_address(page, "data")
    for protocol in PROTOCOLS:
        address = f"{url}/data?data={data}&protocol={protocol}"
        visitor.does(f"data: {protocol}", lambda address=address: _go(page, address))
    visitor.does("fit", lambda: _go(page, f"{url}/fit?data={data}"))
    fast = page.get_by_role("button", name="Fast", exact=True)
    visitor.does("fit: the preset", fast.click)

    def start() -> None:
        page.get_by_role("button", name="Start the fit", exact=True).click()
        page.get_by_text("held-out ratings:").first.wait_for(timeout=1000 * FIT_SECONDS)

    visitor.does("fit: until it has ended", start)
    return _of_address(page, "run"), data


def _of_address(page: Any, name: str) -> str:
    found = re.search(rf"[?&]{name}=([^&]+)", page.url)
    assert found is not None, f"the address has no {name}: {page.url}"
    return found[1]


def main() -> int:
    """Watch one command, or all pages."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    kinds.add_parser("pages").add_argument("folder")
    kinds.add_parser("command").add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    if args.kind == "pages":
        pages(args.folder)
        return 0
    code, seconds, found = waits(args.command)
    print(f"exit {code} after {seconds:.1f} s; longest without output:", file=sys.stderr)
    for wait in found[:LONGEST]:
        print(
            f"  {wait.seconds:.1f} s from {wait.at:.1f} s on, after {wait.after!r}", file=sys.stderr
        )
    return code


if __name__ == "__main__":
    raise SystemExit(main())
