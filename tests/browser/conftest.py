"""Fixtures: the dashboard with its own folders, and a Chromium page.

    def test_something(app, page):
        open_page(page, f"{app.url}/data")

Every request of every page is recorded; one that would leave this machine fails the test.

Chromium keeps what it has fetched and compiled of the dashboard from test to test, which is
half the cost of a page; for that all dashboards answer at one address, one after another.
What a page itself keeps in the browser is forgotten before each test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.tools.serving import free_port, launch_options, serve

playwright_api = pytest.importorskip("playwright.sync_api")

HERE = Path(__file__).parent
LOCAL = {"127.0.0.1", "localhost", ""}
INSIDE = ("data", "blob", "about")
SIZE = {"width": 1366, "height": 768}
# A test must not depend on the network either: no other name is looked up, no proxy asked.
HERE_ONLY = (
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
    "--no-proxy-server",
)
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


@pytest.fixture(scope="session")
def port() -> int:
    """Where every dashboard of these tests answers."""
    return free_port()


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[App]:
    """One dashboard a test module."""
    home, cache = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("cache")
    with serve(home, cache, port) as url:
        yield App(url, home, cache)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """The pages of one profile: of Debian's Chromium if it is there, else of Playwright's own."""
    options = launch_options()
    options["args"] += HERE_ONLY
    with playwright_api.sync_playwright() as playwright:
        try:
            # Without animations, which are drawn by the processor.
            profile = playwright.chromium.launch_persistent_context(
                tmp_path_factory.mktemp("profile"),
                viewport=SIZE,
                reduced_motion="reduce",
                **options,
            )
        except playwright_api.Error as error:
            pytest.skip(f"no Chromium: {str(error).splitlines()[0]}")
        profile.set_default_timeout(PATIENCE_MS)
        yield profile
        profile.close()


@pytest.fixture
def requests(browser) -> Iterator[Requests]:
    """What the test's pages have asked for so far."""
    found = Requests()

    def record(request) -> None:
        found.urls.append(request.url)

    browser.on("request", record)
    yield found
    browser.remove_listener("request", record)


@pytest.fixture
def new_page(browser, port: int, requests: Requests) -> Iterator[object]:
    """Makes a page: ``new_page("dark")``. At the end no request may have left."""
    pages = []

    def make(theme: str = "light") -> object:
        page = browser.new_page()
        page.emulate_media(color_scheme=theme)
        if not pages:
            forget(page, f"http://127.0.0.1:{port}")
        pages.append(page)
        return page

    yield make
    for page in pages:
        page.close()
    assert not requests.leaving


def forget(page, origin: str) -> None:
    """What the dashboard's pages have kept in the browser; not what was fetched for them."""
    session = page.context.new_cdp_session(page)
    kept = {"origin": origin, "storageTypes": "cookies,local_storage,indexeddb"}
    session.send("Storage.clearDataForOrigin", kept)
    session.detach()


@pytest.fixture
def page(new_page) -> object:
    """A page in the light theme."""
    return new_page()
