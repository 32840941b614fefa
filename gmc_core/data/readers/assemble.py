"""From encoded columns to ratings: duplicates, vocabularies, report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.data.ratings import Ratings, RatingScale, Vocabulary
from gmc_core.data.readers.file_kinds import plain_name
from gmc_core.data.readers.report import POLICIES, DuplicatePolicy, Loaded, LoadReport
from gmc_core.data.readers.text import Item, item_info, user_columns
from gmc_core.data.readers.vocabulary import Encoded

# Those of data files; a name may have two of them.
_ENDINGS = (
    ".zip", ".csv", ".tsv", ".txt", ".dat", ".data", ".xlsx", ".xlsm", ".json", ".jsonl", ".ndjson",
    ".mtx",
)  # fmt: skip
Times = Callable[[], "npt.NDArray[np.float64] | None"]


@dataclass(frozen=True)
class Parts:
    """What a format module has read; :func:`assemble` does the rest.

    Attributes
    ----------
    source, format, encoding, blank_lines, notes : for the report.
    users, items : (rows,) encoded ids.
    values : (rows,) ratings.
    scale, scale_found : the scale and how it was found.
    line_of : row → 1-based line, for errors.
    times : gives the (rows,) times, or None; called only if there are duplicates.
    known_items : id text → title, year, genres.
    known_users, user_names : id text → attributes, and the attributes' names.
    dropped : (reason, count) of rows that the format left out.
    reading, scale_derived : for the report.
    """

    source: str
    format: str
    encoding: str
    users: Encoded
    items: Encoded
    values: npt.NDArray[np.float64]
    scale: RatingScale
    scale_found: str
    line_of: Callable[[int], int]
    times: Times = lambda: None
    known_items: Mapping[str, Item] = field(default_factory=dict)
    known_users: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    user_names: tuple[str, ...] = ()
    dropped: tuple[tuple[str, int], ...] = ()
    blank_lines: int = 0
    notes: Sequence[str] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)
    scale_derived: str = ""


def check_policy(policy: str) -> DuplicatePolicy:
    """The duplicate policy, if it is one.

    Raises
    ------
    ConfigError
        If there is no such policy.
    """
    for known in POLICIES:
        if policy == known:
            return known
    raise ConfigError(f"There is no duplicate policy {policy!r}; use one of {', '.join(POLICIES)}.")


def assemble(parts: Parts, duplicates: str, name: str) -> Loaded:
    """Ratings and report from what a format module has read.

    Raises
    ------
    DataError
        If no rating is left, or one is repeated under the policy "error".
    """
    policy = check_policy(duplicates)
    if not len(parts.values):
        raise DataError("No rating is left; give a file with ratings.", path=parts.source)
    users, items = Vocabulary(parts.users.ids, "user"), Vocabulary(parts.items.ids, "item")
    rows, columns, values, repeated = _sorted_once(parts, policy)
    counts = np.bincount(rows, minlength=len(users))
    ratings = Ratings(
        users=users,
        items=items,
        indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        indices=columns.astype(np.int32, copy=False),
        values=values,
        scale=parts.scale,
        item_info=item_info(items, parts.known_items),
        user_info=user_columns(users, parts.known_users, parts.user_names)
        if parts.known_users
        else {},
        name=name,
    )
    report = LoadReport(
        source=parts.source,
        format=parts.format,
        encoding=parts.encoding,
        rows_read=len(parts.values) + sum(count for _, count in parts.dropped),
        ratings=len(ratings),
        dropped=tuple(entry for entry in parts.dropped if entry[1]),
        duplicates=repeated,
        duplicate_policy=policy,
        blank_lines=parts.blank_lines,
        scale=parts.scale,
        scale_found=parts.scale_found,
        users=len(users),
        items=len(items),
        notes=(*parts.notes, *_coverage_notes(ratings, parts)),
        reading={"format": parts.format, "duplicates": policy, **parts.reading},
        scale_derived=parts.scale_derived,
    )
    return Loaded(ratings, report)


def _sorted_once(
    parts: Parts, policy: DuplicatePolicy
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64], int]:
    """User positions, item positions and values sorted by both, one per pair."""
    width = len(parts.items.ids)
    cell = parts.users.codes.astype(np.int64) * width + parts.items.codes
    values = parts.values
    if np.all(cell[1:] > cell[:-1]):
        return cell // width, cell % width, values, 0
    order = np.argsort(cell, kind="stable")
    ordered = cell[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    repeated = int(len(first) - first.sum())
    if repeated and policy == "error":
        row = int(order[~first].min())
        raise DataError(
            f"User {parts.users.ids[parts.users.codes[row]]} has rated item "
            f"{parts.items.ids[parts.items.codes[row]]} before. Delete one of the lines, or choose "
            "which rating counts: duplicates 'last', 'first' or 'mean'.",
            path=parts.source,
            line=parts.line_of(row),
        )
    if repeated and policy in ("last", "first"):
        times = parts.times()
        if times is not None:
            order = np.lexsort((times, cell))  # stable: equal times keep their positions
    values = values[order]
    if repeated and policy == "mean":
        starts = np.flatnonzero(first)
        lengths = np.diff(np.append(starts, len(values)))
        values = np.add.reduceat(values, starts) / lengths
    elif repeated:
        last = np.concatenate([first[1:], [True]])
        values = values[first if policy == "first" else last]
    cell = ordered[first]
    return cell // width, cell % width, values, repeated


def _coverage_notes(ratings: Ratings, parts: Parts) -> tuple[str, ...]:
    notes = []
    untitled = sum(title is None for title in ratings.item_info.titles)
    if parts.known_items:
        if untitled:
            notes.append(f"{untitled:,} rated items have no title")
        rated = {str(value) for value in ratings.items.ids.tolist()}
        idle = sum(key not in rated for key in parts.known_items)
        if idle:
            notes.append(f"{idle:,} items of the title file have no rating and are left out")
    if parts.known_users:
        rating_users = {str(value) for value in ratings.users.ids.tolist()}
        idle = sum(key not in rating_users for key in parts.known_users)
        if idle:
            notes.append(f"{idle:,} users of the user file have no rating and are left out")
    return tuple(notes)


def default_name(path: Path) -> str:
    """A name for the data: the file name without its endings."""
    name = plain_name(path.name)
    for ending in _ENDINGS:
        if name.lower().endswith(ending):
            name = name[: -len(ending)]
    return name or path.resolve().name or "ratings"
