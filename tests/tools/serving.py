"""Start the dashboard on a free port, for browser tests and screenshots."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = Path("/usr/bin/chromium")
CHROMIUM_ARGUMENTS = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
START_SECONDS = 120
START_ATTEMPTS = 3
TAKEN = "not available"  # what Streamlit says of a port in use


def launch_options() -> dict[str, Any]:
    """For Playwright's ``chromium.launch``: the system's Chromium if there is one, else its own."""
    return {
        "executable_path": str(CHROMIUM) if CHROMIUM.exists() else None,
        "args": list(CHROMIUM_ARGUMENTS),
    }


@contextmanager
def serve(home: Path, cache: Path, port: int | None = None) -> Iterator[str]:
    """Run the dashboard with its own folders; yields its address.

    port : where, unless another program has it; None for any that is free.

    Raises
    ------
    RuntimeError
        If it does not answer in time; the message holds what it printed.
    """
    home.mkdir(parents=True, exist_ok=True)
    log = home / "server.log"
    for attempt in range(START_ATTEMPTS):
        url, process = _start(home, cache, log, port or free_port())
        try:
            wait_for(url, process, log)
            break
        except RuntimeError:
            _stop(process)
            # Between looking for a free port and using it another program may take it.
            port = None
            if attempt == START_ATTEMPTS - 1 or TAKEN not in log.read_text(errors="replace"):
                raise
    try:
        yield url
    finally:
        _stop(process)


def _start(home: Path, cache: Path, log: Path, port: int) -> tuple[str, subprocess.Popen[bytes]]:
    # No work beside what a test asks for.
    spare = {"GMC_SPARE_TIME": os.environ.get("GMC_SPARE_TIME", "0")}
    environment = {**os.environ, "GMC_HOME": str(home), "GMC_CACHE": str(cache), **spare}
    command = [sys.executable, "-m", "streamlit", "run", "app.py"]
    options = ["--server.port", str(port), "--server.headless", "true"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *options, "--server.fileWatcherType", "none"],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    return f"http://127.0.0.1:{port}", process


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server of ``process``, which prints into ``log``, answers at ``url``."""
    # The environment's proxy, if there is one, has no business with this machine itself.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            with opener.open(f"{url}/_stcore/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"The dashboard did not start: {log.read_text(errors='replace')[-2000:]}")
