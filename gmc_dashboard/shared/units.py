"""Numbers with their units, and names, worded the same on every page."""

from __future__ import annotations

import re

from gmc_core.base.signs import signed as signed_plain
from gmc_core.base.times import duration as duration
from gmc_core.base.times import whole_duration as whole_duration

# In the middle of a sentence; `.capitalize()` at its start.
PROTOCOLS = {
    "weak": "weak generalization",
    "strong": "strong generalization",
    "random": "random hold-out",
    "latest": "hold-out by time",
    "none": "no hold-out",
    "pair": "separate training and test files",
}

# Wherever an estimate was exceeded, instead of a countdown.
LONGER = "longer than estimated: this machine is probably busy with other things"

# How a run ended, after its name.
ENDED = {
    "finished": "has finished",
    "failed": "has failed",
    "cancelled": "was cancelled",
    "interrupted": "was interrupted",
}


def minus(text: str) -> str:
    """Words and numbers to be shown, with "−" for every hyphen that is a number's sign.

    Hyphens within names, ids and dates stay.
    """
    return re.sub(r"(?<![\w.)\]-])-(?=\.?\d)", "−", text)


def signed(value: float, digits: int) -> str:
    """A number with its sign: "+0.012", "−0.012"; what rounds to zero has none, "0.000"."""
    return minus(signed_plain(value, digits))


def bytes_text(count: float) -> str:
    """An amount of memory in a readable unit (powers of ten)."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:,.0f} bytes"


def flops_text(flops: float, like: float | None = None) -> str:
    """An amount of arithmetic in a readable unit; like : an amount whose unit is taken instead."""
    for unit, size in (("TFLOP", 1e12), ("GFLOP", 1e9), ("MFLOP", 1e6)):
        if (flops if like is None else like) >= size:
            return f"{flops / size:,.{1 if flops >= size else 2}f} {unit}"
    return f"{flops:,.0f} FLOP"
