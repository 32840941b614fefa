"""Codes: texts or numbers that a person says stand for "not rated" or "missing"."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from gmc_core.data.readers.numbers import parse_number


def is_code(value: str, codes: Sequence[str], decimal: str = ".", thousands: str = "") -> bool:
    """Whether a cell is one of the codes: by its text in any case, or as the same number."""
    return code_of(value, codes, decimal, thousands) is not None


def code_of(
    value: str, codes: Sequence[str], decimal: str = ".", thousands: str = ""
) -> str | None:
    """The one of the codes that a cell is, by its text in any case or as the same number."""
    if not codes:
        return None
    texts, numbers = _known_codes(tuple(codes), decimal, thousands)
    code = texts.get(value.strip().casefold())
    if code is None and numbers:
        number = parse_number(value, decimal, thousands)
        code = None if number is None else numbers.get(number)
    return code


def code_numbers(codes: Sequence[str], decimal: str = ".", thousands: str = "") -> dict[float, str]:
    """The codes that are numbers, with a point or else in this form."""
    return dict(_known_codes(tuple(codes), decimal, thousands)[1])


@lru_cache(maxsize=64)
def _known_codes(
    codes: tuple[str, ...], decimal: str, thousands: str
) -> tuple[dict[str, str], dict[float, str]]:
    texts: dict[str, str] = {}
    numbers: dict[float, str] = {}
    for code in codes:
        texts.setdefault(code.strip().casefold(), code)
        number = parse_number(code)
        if number is None:
            number = parse_number(code, decimal, thousands)
        if number is not None:
            numbers.setdefault(number, code)
    return texts, numbers
