"""Differences with their sign, the same on the command line, on the pages and in reports."""

from __future__ import annotations


def signed(value: float, digits: int) -> str:
    """A number with its sign and so many decimals: "+0.012", "-0.012".

    What rounds to zero has no sign, "0.000": there is no direction left that one could tell.
    """
    return unsigned_zero(f"{value:+.{digits}f}")


def unsigned_zero(text: str) -> str:
    """The text of a number in digits and a point, without its sign where all digits are 0."""
    digits = text.lstrip("+-−")
    return digits if digits and not digits.strip("0.") else text
