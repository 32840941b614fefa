"""Any delimited text with a user, an item and a rating on each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from gmc_core.errors import ConfigError, DataError
from gmc_core.ratings import RatingScale
from gmc_core.readers.assemble import Parts
from gmc_core.readers.common import as_times, check_scale
from gmc_core.readers.scales import HALF_STARS, LARGEST, STARS, find_scale, find_step
from gmc_core.readers.sniff import Layout, sniff
from gmc_core.readers.source import Member, Source
from gmc_core.readers.table import Column, Kind, Table, Text, line_of_row, read_table
from gmc_core.readers.text import Item, to_utf8, year_of

NAME = "delimited"
ROLES = ("user", "item", "rating", "timestamp", "title")
KINDS: dict[str, Kind] = {
    "user": "id",
    "item": "id",
    "rating": "number",
    "timestamp": "any",
    "title": "label",
}
SUFFIXES = (
    ".csv", ".tsv", ".txt", ".dat", ".data", ".tab", ".xlsx", ".xlsm", ".json", ".jsonl", ".ndjson",
)  # fmt: skip


@dataclass(frozen=True)
class DelimitedOptions:
    """How to read a delimited text; what is None is found from the first rows.

    Attributes
    ----------
    separator : one character, ``"::"``, or ``"whitespace"`` for runs of blanks.
    header : whether the first line holds column names.
    decimal : ``"."`` or ``","``.
    encoding : a Python encoding name, such as ``"utf-8"`` or ``"cp1252"``.
    user, item, rating, timestamp, title : each a column name or 0-based index.
    low, high : the ends of the rating scale; both or neither.
    step : the step of the scale, or ``"continuous"``.
    """

    separator: str | None = None
    header: bool | None = None
    decimal: str | None = None
    encoding: str | None = None
    user: str | int | None = None
    item: str | int | None = None
    rating: str | int | None = None
    timestamp: str | int | None = None
    title: str | int | None = None
    low: float | None = None
    high: float | None = None
    step: float | Literal["continuous"] | None = None

    def __post_init__(self) -> None:
        separator = self.separator
        if (
            separator is not None
            and separator not in ("::", "whitespace")
            and (len(separator) != 1 or not separator.isascii() or separator in '"\r\n')
        ):
            raise ConfigError(
                f"The separator {separator!r} is not supported; use one character, '::' or "
                "'whitespace'."
            )
        if self.decimal not in (None, ".", ","):
            raise ConfigError(f"The decimal sign is '.' or ',', not {self.decimal!r}.")
        if self.decimal == "," and separator == ",":
            raise ConfigError("The comma cannot be both the separator and the decimal sign.")
        if (self.low is None) != (self.high is None):
            raise ConfigError("Give both ends of the rating scale, or neither.")
        if self.low is not None and self.high is not None and self.step != "continuous":
            RatingScale(self.low, self.high, self.step or None)  # checks the ends and the step
        chosen = [column for role in ROLES if (column := getattr(self, role)) is not None]
        for column in chosen:
            if chosen.count(column) > 1:
                raise ConfigError(f"The column {column!r} is given for two purposes.")


@dataclass(frozen=True)
class Preview:
    """The first rows of a file and what was found, for a person to confirm.

    Attributes
    ----------
    columns : names from the header, or "column 1", "column 2", …
    rows : the first rows as they are written, without the header.
    roles : role ("user", "item", …) → 0-based column.
    options : complete options that read the file in this way.
    problem : why it cannot be read in this way, if that shows in the first rows.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    roles: Mapping[str, int]
    options: DelimitedOptions
    problem: str | None = None


@dataclass(frozen=True)
class Opened:
    """A delimited file after detection: layout, columns of the roles, encoding."""

    text: Text
    layout: Layout
    roles: dict[str, int]
    encoding: str


def matches(source: Source) -> bool:
    """Whether there is exactly one text file that could be meant."""
    return source.single is not None or len(candidates(source)) == 1


def candidates(source: Source) -> list[Member]:
    """The text files that may hold ratings; only the one named so, if there is one."""
    texts = [
        member
        for member in source.members
        if member.name.lower().endswith(SUFFIXES) and not member.name.lower().startswith("readme")
    ]
    named = [member for member in texts if member.name.lower().startswith("ratings.")]
    return named if len(named) == 1 else texts


def pick(source: Source) -> Member:
    """The file to read: the one named, or the only text file there is.

    Raises
    ------
    DataError
        If there is none, or more than one.
    """
    if source.single is not None:
        return source.single
    found = candidates(source)
    if len(found) != 1:
        there = ", ".join(source.names()[:10]) or "nothing"
        what = "more than one text file" if found else "no text file"
        raise DataError(
            f"There is {what} here ({there}); give the path of the ratings file itself.",
            path=source.path,
        )
    return found[0]


def open_delimited(
    member: Member, options: DelimitedOptions, required: tuple[str, ...], *, head: bool = False
) -> Opened:
    """Detect the layout and the columns of a file.

    ``required`` are the roles that must be found; ``head`` reads only the start.

    Raises
    ------
    DataError
        If a required column is missing, or a chosen one does not exist.
    """
    raw = member.head() if head else member.read()
    if not raw:
        raise DataError("The file is empty; give a file with ratings.", path=member.label)
    if head and b"\n" in raw and options.encoding is None:
        raw = raw[: raw.rindex(b"\n") + 1] if len(raw) >= 1 << 16 else raw
    data, encoding = to_utf8(raw, member.label, options.encoding)
    layout = sniff(data, member.label, options.separator, options.header, options.decimal)
    text = Text(
        data,
        member.label,
        layout.separator,
        header=layout.header,
        decimal=layout.decimal,
        quotes=layout.separator not in ("::", "whitespace") and b'"' in data,
    )
    roles = layout.roles({role: getattr(options, role) for role in ROLES}, required, member.label)
    return Opened(text, layout, roles, encoding)


def read_roles(opened: Opened, roles: tuple[str, ...]) -> tuple[Table, Opened]:
    """Read the columns of some roles; tries the decimal comma where it was not set.

    Returns the table and the file as it could be read.
    """
    columns = [
        Column(opened.roles[role], role if role not in ("user", "item") else f"{role} id", kind)
        for role, kind in KINDS.items()
        if role in roles and role in opened.roles
    ]
    try:
        return _within_range(read_table(opened.text, columns), opened), opened
    except DataError:
        # The sample may have held whole numbers only.
        if opened.layout.decimal_given or opened.text.separator == ",":
            raise
        comma = replace(opened, text=replace(opened.text, decimal=","))
        try:
            return _within_range(read_table(comma.text, columns), comma), comma
        except DataError:
            pass
        raise


def _within_range(table: Table, opened: Opened) -> Table:
    """The same, if no rating is so large that computing with it means nothing."""
    if "rating" in table.columns:
        sizes = np.abs(table.numbers("rating"))
        row = int(np.argmax(sizes))
        if sizes[row] > LARGEST:
            raise DataError(
                f"The rating is larger than {LARGEST:g}. Correct the line; if this is not the "
                "column of the rating, say which one is.",
                path=opened.text.path,
                line=line_of_row(opened.text, row),
                value=f"{table.numbers('rating')[row]:g}",
            )
    return table


def read(source: Source, options: DelimitedOptions | None = None) -> Parts:
    """Read ratings with whatever columns are found or given."""
    options = options or DelimitedOptions()
    opened = open_delimited(pick(source), options, ("user", "item", "rating"))
    table, opened = read_roles(opened, ("user", "item", "rating", "title"))
    text, roles = opened.text, opened.roles
    values = table.numbers("rating")
    scale, scale_found, derived = _scale(values, options, text)
    notes = [_describe_layout(opened)]
    reading = _reading(opened, scale)

    def times() -> np.ndarray | None:
        if "timestamp" not in roles:
            return None
        column = read_table(text, [Column(roles["timestamp"], "timestamp", "any")])
        found = as_times(column.columns["timestamp"])
        if found is None and options.timestamp is not None:
            raise DataError(
                "The timestamp column holds neither numbers nor dates; choose another column, or "
                "none to let the position in the file decide between repeated ratings.",
                path=text.path,
            )
        if found is None:
            notes.append(
                "the timestamp column holds neither numbers nor dates, so the position in the "
                "file decided between repeated ratings"
            )
            reading.pop("timestamp")
        return found

    return Parts(
        source=text.path,
        format=NAME,
        encoding=opened.encoding,
        users=table.encoded("user id"),
        items=table.encoded("item id"),
        values=values,
        scale=scale,
        scale_found=scale_found,
        line_of=lambda row: line_of_row(text, row),
        times=times,
        known_items=_titles(table) if "title" in roles else {},
        blank_lines=table.blank_lines,
        notes=notes,  # times() may add to it
        reading=reading,
        scale_derived=derived,
    )


def _describe_layout(opened: Opened) -> str:
    names = opened.layout.names
    columns = ", ".join(f"{role} = {names[index]}" for role, index in opened.roles.items())
    header = "a header line" if opened.layout.header else "no header line"
    return (
        f"separator {opened.text.separator!r}, {header}, decimal sign {opened.text.decimal!r}; "
        f"columns: {columns}"
    )


def _reading(opened: Opened, scale: RatingScale) -> dict[str, object]:
    """The options that read the file in the way that was found, whatever is found elsewhere."""
    return {
        "separator": opened.text.separator,
        "header": opened.layout.header,
        "decimal": opened.text.decimal,
        "encoding": opened.encoding,
        **opened.roles,
        "low": scale.low,
        "high": scale.high,
        "step": "continuous" if scale.step is None else scale.step,
    }


def _scale(
    values: np.ndarray, options: DelimitedOptions, text: Text
) -> tuple[RatingScale, str, str]:
    """The scale, how it was found, and what of it is only that of the values that occur."""
    if options.low is None or options.high is None:
        if options.step is None:
            scale, how = find_scale(values)
            return scale, how, "" if scale in (STARS, HALF_STARS) else "ends and step"
        step = None if options.step == "continuous" else options.step
        scale = RatingScale(float(values.min()), float(values.max()), step)
        how, derived = "lowest and highest rating; step as given", "ends"
    else:
        if options.step is None:
            ends = np.append(np.unique(values), [options.low, options.high])
            step = find_step(np.unique(ends))
            how, derived = "ends as given; step found", "step"
        else:
            step = None if options.step == "continuous" else options.step
            how, derived = "as given", ""
        scale = RatingScale(options.low, options.high, step)
    check_scale(values, scale, text)
    return scale, how, derived


def _titles(table: Table) -> dict[str, Item]:
    """Item id → the title on the item's first row."""
    items, titles = table.encoded("item id"), table.encoded("title")
    _, first = np.unique(items.codes, return_index=True)
    names = titles.ids[titles.codes[first]]
    known = {}
    for item, name in zip(items.ids.tolist(), names.tolist(), strict=True):
        known[str(item)] = Item(name.strip() or None, year_of(name))
    return known
