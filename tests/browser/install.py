"""A Chromium for the browser tests, unless there is one: ``python -m tests.browser.install``.

Playwright's own is tried first, since it needs no rights. It may be out of reach, or lack
libraries of the system; then Debian's package, where we may install it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from playwright.sync_api import Error, sync_playwright

from tests.tools.serving import CHROMIUM, launch_options

PACKAGE = (
    ("apt-get", "update", "-qq"),
    ("apt-get", "install", "-qq", "--yes", "--no-install-recommends", "chromium"),
)


def starts() -> bool:
    """Whether the browser tests find a Chromium that runs."""
    with sync_playwright() as playwright:
        try:
            playwright.chromium.launch(**launch_options()).close()
        except Error:
            return False
    return True


def install() -> None:
    """Playwright's Chromium, else the system's package."""
    command = [sys.executable, "-m", "playwright", "install", "chromium"]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == 0 and starts():
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for line in PACKAGE:
            subprocess.run(line, check=False, env=environment, stdout=subprocess.DEVNULL)


def main() -> None:
    """Install one; a failure is no error here, the browser tests are skipped then."""
    if not starts():
        print("Installing a Chromium for the browser tests …", flush=True)
        install()
        if not starts():
            print(
                "Neither Playwright's Chromium nor the package chromium could be installed;\n"
                f"browser tests will be skipped. One of your own is found as {CHROMIUM}."
            )


if __name__ == "__main__":
    main()
