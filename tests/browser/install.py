"""Playwright's own Chromium, unless the system has one: ``python -m tests.browser.install``."""

from __future__ import annotations

import subprocess
import sys

from explorer.serving import CHROMIUM


def main() -> None:
    """Install it; a failure is no error here, the browser tests are skipped then."""
    if CHROMIUM.exists():
        print(f"The browser tests use {CHROMIUM}.")
        return
    done = subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)
    if done.returncode:
        print("Playwright's Chromium could not be installed; browser tests will be skipped.")


if __name__ == "__main__":
    main()
