"""Starts the worker again if it was killed, so that the next queued run begins.

Run as a script, on the standard library alone: it must be small enough to outlive a
worker that took all the memory. The run that was killed is not repeated: it has
become interrupted, and waits for a person to resume it.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time

SHORT_LIFE_SECONDS = 10.0
MAX_SHORT_LIVES = 3


def watch(command: list[str]) -> int:
    """Run ``command`` until it ends by itself; returns its exit code."""
    short_lives = 0
    while True:
        began = time.monotonic()
        code = subprocess.call(command)
        if code >= 0 or -code in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            return code
        # One that dies at once, again and again, would never get anything done.
        short = time.monotonic() - began < SHORT_LIFE_SECONDS
        short_lives = short_lives + 1 if short else 0
        if short_lives >= MAX_SHORT_LIVES:
            return code
        print(f"The worker was killed (signal {-code}); starting another.", flush=True)


if __name__ == "__main__":
    sys.exit(abs(watch(sys.argv[1:])))
