"""Checks of the machine: cores and BLAS, memory, the dashboard's port, a browser."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from typing import Any

import psutil

from gmc_core.base.ports import DEFAULT_PORT, TRIED, first_free, is_free
from gmc_core.doctor.check import Check

# Bytes. A fit of the sample needs less than LEAST_MEMORY, one of MovieLens 1M less than
# ENOUGH_MEMORY.
LEAST_MEMORY, ENOUGH_MEMORY = 0.3e9, 1e9


def cores_and_blas() -> Check:
    """The linear algebra that NumPy and SciPy call, with its threads."""
    import scipy.linalg  # noqa: F401  (loads the BLAS that is looked for)
    from threadpoolctl import threadpool_info

    from gmc_core.gaussian.linalg.threads import available_cores

    return blas_check(threadpool_info(), available_cores())


def blas_check(pools: Sequence[dict[str, Any]], cores: int) -> Check:
    """The check of what threadpoolctl has found, on so many cores."""
    found = sorted(
        {
            f"{pool['internal_api']} {pool.get('version') or ''} "
            f"({pool.get('architecture') or 'unknown kernels'}, {pool['num_threads']} threads)"
            for pool in pools
            if pool["user_api"] == "blas"
        }
    )
    has = f"{cores} core{'' if cores == 1 else 's'}"
    if not found:
        return Check(
            "blas",
            "warn",
            f"{has}; no BLAS whose threads can be set",
            "Fits may start more threads than there are cores. Install NumPy and SciPy from their "
            "wheels (pip install --force-reinstall numpy scipy), or set OMP_NUM_THREADS=1.",
        )
    return Check("blas", "ok", f"{has}; {'; '.join(found)}")


def memory() -> Check:
    """Free memory, and how much of it a fit may use."""
    from gmc_core.fitting.cost import memory_limit

    available = psutil.virtual_memory().available
    limit = memory_limit()
    found = f"{available / 1e9:.1f} GB free; a fit may use {limit / 1e9:.1f} GB"
    close = "Close other programs, keep fewer items (--max-items) or compute with --dtype float32."
    usable = min(available, limit)
    if usable < LEAST_MEMORY:
        return Check("free memory", "fail", found, close)
    return (
        Check("free memory", "warn", found, close)
        if usable < ENOUGH_MEMORY
        else Check("free memory", "ok", found)
    )


def port() -> Check:
    """Whether the dashboard's usual port is free."""
    if is_free(DEFAULT_PORT):
        return Check("port", "ok", f"{DEFAULT_PORT} is free")
    free = first_free()
    if free is None:
        return Check(
            "port",
            "fail",
            f"{DEFAULT_PORT} to {DEFAULT_PORT + TRIED - 1} are taken",
            "End programs that use them (an older dashboard, perhaps), or give a free one: "
            "gmc app --port N",
        )
    return Check(
        "port",
        "warn",
        f"{DEFAULT_PORT} is taken, perhaps by a dashboard that is open",
        f"None needed: gmc app will take {free}.",
    )


def browser() -> Check:
    """Whether Python finds a browser to open the dashboard in."""
    try:
        found = webbrowser.get()
    except webbrowser.Error:
        return Check(
            "browser",
            "warn",
            "none found",
            "Start with gmc app --no-browser and open the address that it prints.",
        )
    return Check("browser", "ok", str(getattr(found, "name", "") or "the system's"))
