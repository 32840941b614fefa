"""Tables as files that a spreadsheet opens without running anything in them."""

from __future__ import annotations

import pandas as pd

from gmc_core.base.table_files import safe_text

# Text that begins so gets an apostrophe here even where it reads as a number.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def inert(value: object) -> object:
    """Text that would be a formula, with an apostrophe before it."""
    if not isinstance(value, str):
        return value
    text = safe_text(value)
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def to_csv(table: pd.DataFrame, *, index: bool = False) -> bytes:
    """The table as UTF-8 CSV; text cells and headers are made inert, numbers are exact."""
    safe = table.copy()
    for name in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[name]):
            safe[name] = safe[name].map(inert)
    safe.columns = [inert(str(name)) for name in safe.columns]
    if index:
        safe.index = safe.index.map(inert)
    # The byte order mark tells Excel that titles are UTF-8.
    return b"\xef\xbb\xbf" + safe.to_csv(index=index).encode("utf-8")
