"""The wheel, installed outside the checkout: ``gmc app`` opens every page as the checkout does."""

from __future__ import annotations

import http.client
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
from building import ROOT, build, environment_with, without_checkout
from playwright.sync_api import expect

from browser.steps import BACKGROUND, turn_dark
from tests.tools.screenshots import PAGES, RUNNING, TITLE
from tests.tools.serving import free_port, wait_for

BROKEN = '[data-testid="stException"]'
# Of .streamlit/config.toml; Streamlit's own is 16px.
FONT_SIZE = "getComputedStyle(document.documentElement).fontSize"
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    (wheel,) = build(ROOT, folder / "dist", "wheel")
    return environment_with(wheel, folder / "venv")


def test_every_page_opens_from_an_empty_folder_and_ctrl_c_ends_it(programs, tmp_path, new_page):
    empty, home, log = tmp_path / "empty", tmp_path / "home", tmp_path / "log"
    empty.mkdir()
    port = free_port()
    command = [str(programs / "gmc"), "app", "--port", str(port), "--no-browser", "--home", home]
    settings = {"GMC_SPARE_TIME": "0", "GMC_CACHE": str(tmp_path / "cache")}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=empty, env=without_checkout() | settings, stdout=output, stderr=output
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(url, process, log)
        only_this_machine(process.pid, port)
        page = new_page()
        # By its address first: a process without a visitor yet must know all pages all the same.
        page.goto(f"{url}/{PAGES[-1]}", wait_until="domcontentloaded")
        shown: list[str] = []
        for name in ("", *PAGES[1:-1]):
            shown.append(heading(page, shown))
            page.locator(f'a[href$="/{name}"]').first.click()
        shown.append(heading(page, shown))
        assert len(set(shown)) == len(PAGES)
        assert page.evaluate(FONT_SIZE) == "15px"
        turn_dark(page)
        assert page.evaluate(BACKGROUND) == "rgb(17, 23, 30)"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in log.read_text(encoding="utf-8")
    assert (home / "runs.db").exists()
    assert not list(empty.iterdir())


def heading(page, before: list[str]) -> str:
    """The heading of the page that follows those of ``before``, run to its end without an error.

    That all is drawn and stands still is tested of the checkout, with the same files.
    """
    title = page.locator(TITLE)
    if before:
        expect(title).not_to_have_text(before[-1])
    expect(title).to_have_count(1)
    page.wait_for_selector(RUNNING, state="detached")
    assert page.locator(BROKEN).count() == 0, title.inner_text()
    return str(title.inner_text())


def only_this_machine(pid: int, port: int) -> None:
    """It listens at 127.0.0.1, and opens a session under no other name."""
    places = {c.laddr.ip for c in psutil.Process(pid).net_connections() if c.status == "LISTEN"}
    assert places == {"127.0.0.1"}
    answers = {}
    for name in ("localhost", "elsewhere.example"):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/_stcore/stream", headers={**UPGRADE, "Host": name})
        answers[name] = connection.getresponse().status
        connection.close()
    assert answers == {"localhost": 101, "elsewhere.example": 403}
