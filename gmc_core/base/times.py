"""Times in words, the same on the command line, on the pages and in reports."""

from __future__ import annotations

import time


def duration(seconds: float) -> str:
    """Seconds for people: "0.4 s", "40 s", "3 min", "1 h 20 min"."""
    if seconds < 0.05:
        return "under 0.1 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s".replace(".0 ", " ")
    if seconds < 89.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def whole_duration(seconds: float) -> str:
    """The same in whole seconds and at least one, for a countdown."""
    return duration(max(round(seconds), 1))


def moment(seconds: float, *, utc: bool = False) -> str:
    """Date and time of seconds since 1970: "2026-11-28 22:05" here, or with "UTC"."""
    if utc:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
