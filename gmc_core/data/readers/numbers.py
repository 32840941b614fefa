"""Numbers as people write them: decimal sign, and signs between groups of three digits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

BLANK_GROUPS = " \u00a0\u2009\u202f"  # a blank, and the blanks that do not break a line
MOST_CELLS = 100_000  # with signs, that are looked at to find the form
_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}(?:\1\d{3})*", re.A)
_WHOLE = re.compile(r"[+-]?(\d+)(?:\.\d*)?", re.A)


@dataclass(frozen=True)
class NumberForm:
    """Decimal sign and the sign between groups of three digits ("": none; " ": any blank)."""

    decimal: str = "."
    thousands: str = ""

    def __str__(self) -> str:
        if not self.thousands:
            return f"decimal sign {self.decimal!r}"
        sign = "a blank" if self.thousands == " " else repr(self.thousands)
        return f"decimal sign {self.decimal!r}, thousands divided by {sign}"


# In the order in which they are believed: where two read the same cells, the first.
FORMS = (
    NumberForm("."), NumberForm(","), NumberForm(".", ","), NumberForm(",", "."),
    NumberForm(".", " "), NumberForm(",", " "), NumberForm(".", "'"), NumberForm(",", "'"),
)  # fmt: skip


def possible_forms(separator: str, quoted: bool, decimal: str | None = None) -> list[NumberForm]:
    """The forms that a file with this separator can have; a cell in quotes can hold it."""
    return [
        form
        for form in FORMS
        if decimal in (None, form.decimal)
        and (quoted or separator not in (form.decimal, form.thousands))
        and not (separator == "whitespace" and form.thousands == " " and not quoted)
    ]


def parse_number(value: str, decimal: str = ".", thousands: str = "") -> float | None:
    """A finite number, or None if the text is not one."""
    text = value.strip()
    if thousands:
        if _grouped(decimal, thousands).fullmatch(text):
            text = re.sub(f"[{_signs(thousands)}]", "", text)
        elif thousands != " " and thousands in text:
            return None
    if decimal != ".":
        if "." in text:
            return None
        text = text.replace(decimal, ".")
    # float() also takes "1_0", which no data file means as ten.
    if "_" in text or not text.isascii():
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _signs(thousands: str) -> str:
    return BLANK_GROUPS if thousands == " " else "'\u2019" if thousands == "'" else thousands


@cache
def _grouped(decimal: str, thousands: str) -> re.Pattern[str]:
    return re.compile(rf"[+-]?\d{{1,3}}(?:[{_signs(thousands)}]\d{{3}})+(?:[{decimal}]\d*)?", re.A)


def may_be_grouped(cell: str) -> bool:
    """Whether a comma or point in it may stand between groups of three digits: 1,234."""
    return _GROUPS.fullmatch(cell.strip()) is not None


def find_form(
    cells: Iterable[str], forms: list[NumberForm], separator: str = ""
) -> tuple[NumberForm, str | None]:
    """The form that reads most of the cells, and a sentence if another reads them differently.

    forms : at least one, in the order in which they are believed. separator : of the text.
        Who divides cells by commas writes 1,234 for more than a thousand, if all numbers
        agree with that; who divides them by semicolons may well write 1.234 for it.
    """
    signed: list[str] = []
    short = long = False  # whether a number without a sign has up to three digits, or more
    for cell in cells:
        if _has_sign(cell):
            signed.append(cell.strip())
            if len(signed) == MOST_CELLS:
                break
        if (whole := _WHOLE.fullmatch(cell.strip())) is not None:
            short, long = short or len(whole[1]) < 4, long or len(whole[1]) > 3
    if not signed or not forms:
        return (forms or [FORMS[0]])[0], None
    counts = {
        form: sum(parse_number(cell, form.decimal, form.thousands) is not None for cell in signed)
        for form in forms
    }
    best = max(forms, key=lambda form: counts[form])
    groups = NumberForm(".", ",")
    if best == NumberForm(",") and separator == "," and short and not long and groups in forms:
        own = [cell for cell in signed if "," in cell]
        if all(map(may_be_grouped, own)):
            return groups, (
                f"{own[0]} was read as {parse_number(own[0], '.', ','):g}; if its comma is the "
                "decimal sign, say so (--decimal ,)"
            )
    if best.decimal == "." and (separator != ";" or long):
        return best, None
    return best, _ambiguity(signed, best, forms)


def _has_sign(cell: str) -> bool:
    return any(sign in cell for sign in ",.'\u2019" + BLANK_GROUPS) and any(map(str.isdigit, cell))


def _ambiguity(cells: list[str], best: NumberForm, forms: list[NumberForm]) -> str | None:
    """Of 1,234 nobody can say alone whether it is more than a thousand or than one."""
    other = next((form for form in forms if form.thousands == best.decimal), None)
    if best.thousands or other is None:
        return None
    own = [
        cell
        for cell in cells
        if best.decimal in cell and parse_number(cell, best.decimal) is not None
    ]
    if not own or any(
        parse_number(cell, other.decimal, other.thousands) is None or cell.lstrip("+-")[0] == "0"
        for cell in own
    ):
        return None
    return (
        f"{own[0]} was read as {parse_number(own[0], best.decimal):g}; if its "
        f"{'comma' if best.decimal == ',' else 'point'} divides thousands, give the decimal sign "
        f"{other.decimal!r}"
    )
