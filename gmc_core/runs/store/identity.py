"""Which machine and process computes: identified without relying on clocks."""

from __future__ import annotations

import os
import platform
import socket
from functools import lru_cache
from pathlib import Path
from typing import Any

import psutil


@lru_cache
def machine() -> dict[str, Any]:
    """What a reader of timings must know of this computer."""
    import numba
    import numpy
    import scipy

    return {
        "platform": platform.platform(),
        "cpu": _cpu_name(),
        "cores": os.cpu_count() or 1,
        "memory_bytes": psutil.virtual_memory().total,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
    }


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


@lru_cache
def host() -> str:
    """This computer since its last start, and where there are several, its set of pids.

    Two containers can share a folder and a host name but not their process numbers.
    """
    parts = [socket.gethostname()]
    for read in (
        lambda: Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        lambda: os.readlink("/proc/self/ns/pid"),
    ):
        try:
            parts.append(read())
        except OSError:
            continue
    return " ".join(parts)


def process_mark(pid: int) -> str | None:
    """What tells a process from a later one with the same number; None if it is dead.

    On Linux the start in ticks since the computer's start, which setting the clock
    does not change.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
        return _mark_elsewhere(pid)
    except OSError:
        return _mark_elsewhere(pid)
    # The command's name, in parentheses, may itself hold spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    state, start = fields[0], fields[19]
    return None if state in "ZXx" else start


def _mark_elsewhere(pid: int) -> str | None:
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return f"{process.create_time():.2f}"
    except psutil.Error:
        return None
