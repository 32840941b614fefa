"""A person's own file, before it becomes the selected data: what is in it, how to read it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from gmc_core.base.errors import DataError
from gmc_core.data.readers import DelimitedOptions, Preview, detect, preview
from gmc_core.data.readers.source import open_source

DELIMITED = "delimited"
ROLES = {
    "user": "User",
    "item": "Item",
    "rating": "Rating",
    "timestamp": "Time (optional)",
    "title": "Title (optional)",
}
REQUIRED = ("user", "item", "rating")
SEPARATORS = {
    ",": "comma",
    ";": "semicolon",
    "\t": "tab",
    "|": "bar |",
    "::": "two colons ::",
    "whitespace": "spaces",
}
FORMAT_NAMES = {
    "movielens-dat": "MovieLens with ratings.dat (as ML-1M and ML-10M)",
    "movielens-100k": "MovieLens 100K (u.data)",
    "movielens-csv": "MovieLens with ratings.csv",
    "eachmovie": "EachMovie",
    "netflix": "the Netflix Prize (a movie's line, its ratings below)",
    "matrix-market": "a Matrix Market file: rows are users, columns items",
    "jester-dat": "Jester 2 or 3 (jester_ratings.dat)",
    "jester": "Jester",
    "delimited": "a text table",
}
POLICIES = {
    "last": "the last one",
    "first": "the first one",
    "mean": "their mean",
    "error": "refuse the file",
}


@dataclass(frozen=True)
class Inspection:
    """What a file or folder seems to hold.

    format : of ``gmc_core.data.readers.FORMATS``.
    preview : of a delimited text; None for the known formats.
    """

    path: Path
    format: str
    preview: Preview | None


def clean_path(text: str) -> Path:
    """A path as people paste it: quotes, blanks, ``~`` and ``file://`` are understood.

    Raises
    ------
    DataError
        If there is nothing at the path, or the text is no path.
    """
    plain = text.strip().strip("\"'").removeprefix("file://").strip()
    if not plain or "\0" in plain:
        raise DataError("This is no path. Give the path of a file or folder with ratings.")
    try:
        path = Path(plain).expanduser()
        path.stat()
    except FileNotFoundError:
        raise DataError(_nothing_there(path), path=path) from None
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(
            f"This cannot be opened ({reason}). Check the path and that you may read it.",
            path=plain,
        ) from None
    return path


def _nothing_there(path: Path) -> str:
    for parent in path.parents:
        if parent.exists():
            return f"There is no such file or folder; {parent} exists. Check what follows it."
    return "There is no such file or folder. Check the path."


def inspect(path: Path, options: DelimitedOptions | None = None) -> Inspection:
    """Find the format, and for a text table the columns, without reading it all.

    Raises
    ------
    DataError
        If nothing there looks like ratings.
    """
    found = DELIMITED if options is not None else detect(open_source(path))
    shown = preview(path, options) if found == DELIMITED else None
    return Inspection(path, found, shown)


def preview_frame(found: Preview) -> pd.DataFrame:
    """The first rows under headings that say which column plays which role."""
    roles = {column: role for role, column in found.roles.items()}
    headings = [
        f"{name}  →  {ROLES[roles[index]].split(' ')[0].lower()}" if index in roles else name
        for index, name in enumerate(found.columns)
    ]
    width = len(headings)
    rows = [tuple(row[:width]) + ("",) * (width - len(row)) for row in found.rows]
    return pd.DataFrame(rows, columns=_distinct(headings))


def _distinct(names: list[str]) -> list[str]:
    """The same, with the column's number where another is called so."""
    counts, taken = Counter(names), set()
    distinct = []
    for index, name in enumerate(names):
        while name in taken or counts[name] > 1:
            name = f"{name} ({index + 1})"
        taken.add(name)
        distinct.append(name)
    return distinct


def reading(
    options: DelimitedOptions, duplicates: str, *, format: str = DELIMITED
) -> dict[str, Any]:
    """The choices as ``ExperimentConfig.reading``, without those that are left open."""
    plain: dict[str, Any] = {"duplicates": duplicates}
    if format != DELIMITED:
        return {**plain, "format": format}
    chosen = {name: value for name, value in asdict(options).items() if value not in (None, ())}
    return {**plain, **chosen}
