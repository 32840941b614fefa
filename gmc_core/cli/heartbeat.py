"""A sign of life while nothing else is printed, as within a long iteration."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

from gmc_core.cli.output import duration, note

SILENCE = 3.0  # seconds without a line on a terminal
IN_A_LOG = 60.0  # where lines stay
_TICK = 0.5


class Heartbeat:
    """Tells on stderr what is going on, and for how long: on a terminal in one line that moves.

    with Heartbeat("preparing") as alive:
        …
        alive.now("iteration 2 of 10")   # after every line that is printed
    """

    def __init__(self, what: str) -> None:
        self._what, self._since = what, time.monotonic()
        self._terminal = sys.stderr.isatty()
        self._told = self._since
        self._shown = 0  # width of the moving line
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()
        self.clear()

    def now(self, what: str) -> None:
        """What goes on from here."""
        with self._lock:
            self._what, self._since = what, time.monotonic()
            self._told = self._since

    def clear(self) -> None:
        """Take the moving line away, before a line that stays."""
        with self._lock:
            if self._shown:
                print("\r" + " " * self._shown + "\r", end="", file=sys.stderr, flush=True)
                self._shown = 0

    def _run(self) -> None:
        while not self._ended.wait(_TICK):
            with self._lock:
                self._tell(time.monotonic())

    def _tell(self, now: float) -> None:
        text = f"{self._what}: {duration(now - self._since)} so far"
        if self._terminal and now - self._since >= SILENCE:
            print("\r" + text.ljust(self._shown), end="", file=sys.stderr, flush=True)
            self._shown = max(self._shown, len(text))
        elif not self._terminal and now - self._told >= IN_A_LOG:
            note(text)
            self._told = now
