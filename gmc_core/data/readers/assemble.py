"""From encoded columns to ratings: duplicates, vocabularies, report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.data.rating_times import taken
from gmc_core.data.ratings import Ratings, RatingScale, Vocabulary
from gmc_core.data.readers.file_kinds import plain_name
from gmc_core.data.readers.report import POLICIES, DuplicatePolicy, Loaded, LoadReport
from gmc_core.data.readers.text import Item, item_info, user_columns
from gmc_core.data.readers.time_column import ReadTimes, TimeColumn, no_times, seconds
from gmc_core.data.readers.vocabulary import Encoded

# Those of data files; a name may have two of them.
_ENDINGS = (
    ".zip", ".csv", ".tsv", ".txt", ".dat", ".data", ".xlsx", ".xlsm", ".json", ".jsonl", ".ndjson",
    ".mtx",
)  # fmt: skip


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
    times : reads the (rows,) times.
    folds : (rows,) published test set of each row from 1 on, 0 for none; None without any.
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
    times: ReadTimes = no_times
    folds: npt.NDArray[np.int8] | None = None
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
    rows, columns, values, column, kept, repeated = _sorted_once(parts, policy)
    times, on_times = seconds(column)
    starts = np.arange(len(users) + 1, dtype=rows.dtype)  # of one type: no copy is made
    ratings = Ratings(
        users=users,
        items=items,
        indptr=np.searchsorted(rows, starts).astype(np.int64),
        indices=columns.astype(np.int32, copy=False),
        values=values,
        scale=parts.scale,
        item_info=item_info(items, parts.known_items),
        user_info=user_columns(users, parts.known_users, parts.user_names)
        if parts.known_users
        else {},
        name=name,
        times=times,
        folds=taken(parts.folds, kept),
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
        notes=(*parts.notes, *filter(None, [on_times]), *_coverage_notes(ratings, parts)),
        reading={"format": parts.format, "duplicates": policy, **parts.reading},
        scale_derived=parts.scale_derived,
    )
    return Loaded(ratings, report)


def _sorted_once(
    parts: Parts, policy: DuplicatePolicy
) -> tuple[
    npt.NDArray[np.integer], npt.NDArray[np.integer], npt.NDArray[np.float64], TimeColumn,
    npt.NDArray[np.int64] | slice, int,
]:  # fmt: skip
    """User positions, item positions, values, times and rows, sorted by user and item, and how
    many ratings were repeated.

    Of repeated ratings the row is that of the one that is kept; of a mean the last one in the
    file, and its time is the latest one.
    """
    users, items, values = parts.users.codes, parts.items.codes, parts.values
    if _are_sorted(users, items):
        return users, items, values, parts.times(False), slice(None), 0
    width = len(parts.items.ids)
    cell = users.astype(np.int64) * width + items
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
    times = parts.times(repeated > 0 and policy != "mean")
    if repeated and times.order is not None and policy != "mean":
        order = np.lexsort((times.order, cell))  # stable: equal times keep their positions
    last = np.concatenate([first[1:], [True]])
    kept = order[first if policy == "first" else last]
    if repeated and policy == "mean":
        starts = np.flatnonzero(first)
        lengths = np.diff(np.append(starts, len(values)))
        values = np.add.reduceat(values[order], starts) / lengths
        times = _latest(times.rows(order), starts)
    else:
        values, times = values[kept], times.rows(kept)
    cell = ordered[first]
    return cell // width, cell % width, values, times, kept, repeated


def _are_sorted(users: npt.NDArray[np.integer], items: npt.NDArray[np.integer]) -> bool:
    """Whether each (user, item) comes after the one before it."""
    later = users[1:] > users[:-1]
    later |= (users[1:] == users[:-1]) & (items[1:] > items[:-1])
    return bool(later.all())


def _latest(times: TimeColumn, starts: npt.NDArray[np.int64]) -> TimeColumn:
    """The last of the times of each run of rows, which begin at ``starts``."""
    if times.order is None:
        return times
    numbers = np.where(np.isnan(times.order), -np.inf, times.order)
    return replace(times, order=np.maximum.reduceat(numbers, starts))


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
