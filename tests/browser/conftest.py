"""Fixtures: the dashboard on a free port with its own folders, and a Chromium page.

    def test_something(app, page):
        open_page(page, f"{app.url}/data")

Every request of every page is recorded; one that would leave this machine fails the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.tools.serving import launch_options, serve

playwright_api = pytest.importorskip("playwright.sync_api")

HERE = Path(__file__).parent
LOCAL = {"127.0.0.1", "localhost", ""}
INSIDE = ("data", "blob", "about")
SIZE = {"width": 1366, "height": 768}
# Far more than an idle machine needs: what a test waits for shall come, not come soon.
PATIENCE_MS = 60_000
playwright_api.expect.set_options(timeout=PATIENCE_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in Path(item.fspath).parents:
            item.add_marker(pytest.mark.browser)


@dataclass
class App:
    """A running dashboard. home, cache : its GMC_HOME and GMC_CACHE."""

    url: str
    home: Path
    cache: Path


@dataclass
class Requests:
    """Addresses that pages asked for."""

    urls: list[str] = field(default_factory=list)

    @property
    def leaving(self) -> list[str]:
        """Those that would leave this machine."""
        return [
            url
            for url in self.urls
            if (parts := urlsplit(url)).scheme not in INSIDE and (parts.hostname or "") not in LOCAL
        ]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """One dashboard a test module."""
    home, cache = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("cache")
    with serve(home, cache) as url:
        yield App(url, home, cache)


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """Debian's Chromium if it is there, else Playwright's own."""
    with playwright_api.sync_playwright() as playwright:
        try:
            found = playwright.chromium.launch(**launch_options())
        except playwright_api.Error as error:
            pytest.skip(f"no Chromium: {str(error).splitlines()[0]}")
        yield found
        found.close()


@pytest.fixture
def requests() -> Requests:
    """What the test's pages have asked for so far."""
    return Requests()


@pytest.fixture
def new_page(browser, requests: Requests) -> Iterator[object]:
    """Makes a page: ``new_page("dark")``. At the end no request may have left."""
    contexts = []

    def make(theme: str = "light") -> object:
        # Without animations, which are drawn by the processor.
        context = browser.new_context(viewport=SIZE, color_scheme=theme, reduced_motion="reduce")
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        # Recorded and stopped: a test must not depend on the network either.
        context.route("**/*", lambda route: _local_only(route, requests))
        return context.new_page()

    yield make
    for context in contexts:
        context.close()
    assert not requests.leaving


@pytest.fixture
def page(new_page) -> object:
    """A page in the light theme."""
    return new_page()


def _local_only(route, requests: Requests) -> None:
    url = route.request.url
    requests.urls.append(url)
    parts = urlsplit(url)
    if parts.scheme in INSIDE or (parts.hostname or "") in LOCAL:
        route.continue_()
    else:
        route.abort()
