"""Bytes to text, and the small parsers that the formats share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gmc_core.base.errors import DataError
from gmc_core.data.ratings import ItemInfo, Vocabulary, frozen

BOM = b"\xef\xbb\xbf"
_C1 = re.compile(rb"[\x80-\x9f]")
_YEAR = re.compile(r"\((\d{4})(?:\s*[-–]\s*\d{0,4})?\)\s*$")
NO_GENRES = "(no genres listed)"


def decode(data: bytes, path: str, encoding: str | None = None) -> tuple[str, str]:
    """The text of a file, and the name of the encoding that it was read with.

    Without ``encoding``: UTF-8 with a byte order mark, UTF-8, then a one-byte
    Western encoding. Windows-1252 and Latin-1 differ only in the bytes 80–9F, so
    Windows-1252 is named where one of these occurs and Latin-1 otherwise.

    Raises
    ------
    DataError
        If the file is binary or not in the encoding that was asked for.
    """
    if encoding is not None:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError as error:
            raise DataError(
                f"The text is not {encoding}; give another encoding, or none to have it found.",
                path=path,
                line=data.count(b"\n", 0, error.start) + 1,
                value=data[error.start : error.start + 8],
            ) from error
        except (LookupError, ValueError) as error:
            raise DataError(
                f"There is no encoding {encoding[:40]!r} for this text; use utf-8, cp1252 or "
                "latin-1, say.",
                path=path,
            ) from error
        return text.removeprefix("\ufeff"), encoding
    if b"\0" in data:
        utf16 = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        remedy = (
            "this looks like UTF-16: save it as UTF-8, or give the encoding 'utf-16'"
            if utf16
            else "give a text file"
        )
        raise DataError(
            f"The file contains NUL bytes, so it is not plain text; {remedy}.",
            path=path,
            line=data.count(b"\n", 0, data.index(b"\0")) + 1,
        )
    tries = ["utf-8-sig"] if data.startswith(BOM) else ["utf-8"]
    tries += ["cp1252", "latin-1"] if _C1.search(data) else ["latin-1"]
    for name in tries:
        try:
            return data.decode(name), name
        except UnicodeDecodeError:
            continue
    raise AssertionError("latin-1 decodes any bytes")


def to_utf8(data: bytes, path: str, encoding: str | None = None) -> tuple[bytes, str]:
    """The same as UTF-8 bytes without a byte order mark; copies only when needed."""
    if encoding is None and b"\0" not in data and data.isascii():
        return data, "ascii"
    text, used = decode(data, path, encoding)
    try:
        return (data if used == "utf-8" else text.encode()), used
    except UnicodeEncodeError as error:  # halves of characters, which some encodings can give
        raise DataError(
            f"Read as {used}, the text holds what is no character; give another encoding.",
            path=path,
            line=text.count("\n", 0, error.start) + 1,
        ) from error


class Item(NamedTuple):
    """What a title file says of one item."""

    title: str | None
    year: float = float("nan")
    genres: tuple[str, ...] = ()


@dataclass(frozen=True)
class Companions:
    """What the files beside ratings say of items and users.

    items : id text → title, year, genres. users : id text → attributes; user_names : theirs.
    notes : a sentence on each file.
    """

    items: Mapping[str, Item] = field(default_factory=dict)
    users: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    user_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def year_of(title: str) -> float:
    """The year in brackets at the end of a title, NaN if there is none."""
    match = _YEAR.search(title)
    return float(match[1]) if match else float("nan")


def split_genres(text: str) -> tuple[str, ...]:
    """``"Action|Drama"`` as a tuple; "(no genres listed)" as an empty one."""
    return tuple(g for part in text.split("|") if (g := part.strip()) and g != NO_GENRES)


def numbered_lines(text: str) -> Iterable[tuple[int, str]]:
    """(1-based line, text without its line end) of the lines that are not blank."""
    # str.splitlines would also split at form feeds and other control characters.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return ((number, line) for number, line in enumerate(lines, 1) if line.strip())


def item_info(items: Vocabulary, known: Mapping[str, Item]) -> ItemInfo:
    """Titles, genres and years in the order of the item vocabulary.

    ``known`` maps an id's text to what is known of the item.
    """
    nothing = Item(None)
    rows = [known.get(str(value), nothing) for value in items.ids.tolist()]
    return ItemInfo(
        titles=tuple(row.title or None for row in rows),
        genres=tuple(row.genres for row in rows),
        years=frozen(np.array([row.year for row in rows], dtype=float)),
    )


def number_or_nan(text: str) -> float:
    """A user attribute such as an age: NaN where it is not given as a number."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def user_columns(
    users: Vocabulary, known: Mapping[str, tuple[object, ...]], names: tuple[str, ...]
) -> dict[str, np.ndarray]:
    """Attribute name → array of length M in the order of the user vocabulary.

    Numbers become float arrays (NaN where unknown), anything else arrays of
    strings ("" where unknown).
    """
    rows = [known.get(str(value)) for value in users.ids.tolist()]
    columns: dict[str, np.ndarray] = {}
    for position, name in enumerate(names):
        values = [row[position] if row is not None else None for row in rows]
        numeric = any(isinstance(value, float) for value in values)
        if numeric:
            columns[name] = np.array([np.nan if v is None else v for v in values], dtype=float)
        else:
            columns[name] = np.array(["" if v is None else str(v) for v in values], dtype=object)
    return columns
