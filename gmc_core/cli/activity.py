"""A sign of life while a command prints nothing else, as within a long iteration.

One indicator for every command (:func:`gmc_core.cli.main` has it); a command says with
:func:`doing` what goes on.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

from gmc_core.cli.output import duration, moving_line, note

SILENCE = 2.0  # seconds without anything new on a terminal, whatever goes on meanwhile
IN_A_LOG = 60.0  # where lines stay
_TICK = 0.5


class ActivityIndicator:
    """Tells on stderr what is going on, and for how long: on a terminal in one line that moves, in
    a log once a minute, and only while nothing else is told.

    with ActivityIndicator("preparing"):
        …
        doing("iteration 2 of 10", team.progress.now)
    """

    current: ActivityIndicator | None = None

    def __init__(self, what: str) -> None:
        self._what, self._since = what, time.monotonic()
        self._share: Callable[[], object] | None = None
        self._terminal = sys.stderr.isatty()
        self._told = self._began = self._since
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="activity", daemon=True)

    def __enter__(self) -> ActivityIndicator:
        ActivityIndicator.current = self
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ActivityIndicator.current = None
        self._ended.set()
        self._thread.join()
        moving_line.clear()

    def now(self, what: str, share: Callable[[], object] | None = None) -> None:
        """What goes on from here."""
        with self._lock:
            self._what, self._since, self._share = what, time.monotonic(), share

    def _run(self) -> None:
        while not self._ended.wait(_TICK):
            with self._lock:
                self._tell(time.monotonic())

    def _tell(self, now: float) -> None:
        spent = now - self._since
        share = self._share() if self._share is not None else None
        parts = [] if share is None else [str(share)]
        if spent >= 1:
            parts.append(f"{duration(spent)} so far")
        text = f"{self._what}: {', '.join(parts)}" if parts else self._what
        # Since the last thing told: of several short steps none may be told, and all take long.
        silent = now - max(self._began, moving_line.changed) >= SILENCE
        if self._terminal and (silent or moving_line.owner is self):
            moving_line.show(text, self)
        elif not self._terminal and now - max(self._told, moving_line.changed) >= IN_A_LOG:
            note(text)
            self._told = now


def doing(what: str, share: Callable[[], object] | None = None) -> None:
    """What the command does from here, such as "reading the ratings"; the time begins anew.

    share : asked from another thread, again and again: how much of it is done, in words; None where
        that is not known.
    """
    if ActivityIndicator.current is not None:
        ActivityIndicator.current.now(what, share)
