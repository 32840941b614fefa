"""Ctrl-C and SIGTERM, heard in good order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def heard(interrupt: Callable[[], object], terminate: Callable[[], object]) -> Iterator[None]:
    """Inside the ``with`` Ctrl-C calls ``interrupt`` and SIGTERM ``terminate``, in place of what
    they did before. In another than the main thread, to which signals belong, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    old = {
        number: signal.signal(number, lambda *_, act=act: act())
        for number, act in ((signal.SIGINT, interrupt), (signal.SIGTERM, terminate))
    }
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
