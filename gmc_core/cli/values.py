"""Values on the command line: text to numbers, with errors that say what is wrong."""

from __future__ import annotations

import argparse
from typing import Any

from gmc_core.base.kinds import Kind, Number, Whole


def typed(kind: Kind) -> Any:
    """What argparse calls with a text, for a kind of value."""

    def parse(text: str) -> Any:
        try:
            return kind.parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


whole = typed(Whole())
number = typed(Number())


def number_or_auto(text: str) -> float | str:
    """A number, or the word auto."""
    return text if text == "auto" else number(text)
