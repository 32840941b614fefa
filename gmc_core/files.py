"""What all writers of files share: rights, and JSON without NaN."""

from __future__ import annotations

import math
import os
from typing import Any


def give_usual_rights(path: str | os.PathLike[str]) -> None:
    """Let a file that was made as a private temporary one be read like any other."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(path, 0o666 & ~mask)


def without_nan(value: Any) -> Any:
    """The same with None for NaN and infinity, for which JSON has no word."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
