"""Values on the command line: text to numbers, with errors that say what is wrong."""

from __future__ import annotations

import argparse


def whole(text: str) -> int:
    """A whole number; 5_000 and 5e3 are none."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None


def number(text: str) -> float:
    """A number; the decimal sign is a point."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None


def number_or_auto(text: str) -> float | str:
    """A number, or the word auto."""
    return text if text == "auto" else number(text)


def noise(text: str) -> float | str:
    """A variance, or the path of a .csv of variances or an .npy matrix."""
    try:
        return float(text)
    except ValueError:
        if text.endswith((".csv", ".npy")):
            return text
    raise argparse.ArgumentTypeError(f"{text!r} is no variance, .csv of variances or .npy matrix")


def block(text: str) -> tuple[int, int]:
    """Height and width of a block, written HxW."""
    height, _, width = text.lower().partition("x")
    if not (height.isdecimal() and width.isdecimal() and int(height) and int(width)):
        raise argparse.ArgumentTypeError(f"{text!r} is no HEIGHTxWIDTH such as 16x16")
    return int(height), int(width)


def four_numbers(text: str) -> tuple[float, float, float, float]:
    """Four numbers with commas between them."""
    parts = text.split(",")
    if len(parts) != 4:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no list of four numbers such as 0.15,0,0.2,0.15"
        )
    first, second, third, fourth = (number(part) for part in parts)
    return first, second, third, fourth
