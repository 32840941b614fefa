"""Any delimited text with a user, an item and a rating on each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from gmc_core.base.errors import DataError
from gmc_core.base.table_files import number_text
from gmc_core.data.ratings import RatingScale
from gmc_core.data.readers import column_notes, doubts
from gmc_core.data.readers.assemble import Parts
from gmc_core.data.readers.numbers import NumberForm, find_form, may_be_grouped, possible_forms
from gmc_core.data.readers.scales import (
    HALF_STARS,
    LARGEST,
    STARS,
    find_scale,
    find_step,
    first_off_scale,
)
from gmc_core.data.readers.sniff import NAMES, TextLayout, sniff
from gmc_core.data.readers.source import Member, Source
from gmc_core.data.readers.table import Column, Kind, Table, Text, line_of_row, read_table
from gmc_core.data.readers.text import Item, to_utf8, year_of
from gmc_core.data.readers.time_column import TimeColumn, as_times, first_no_time, no_times_note
from gmc_core.data.readers.vocabulary import plain_name
from gmc_core.data.reading_options import ROLES
from gmc_core.data.reading_options import DelimitedOptions as DelimitedOptions

NAME = "delimited"
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
    """A delimited file after detection: layout, columns of the roles, encoding, notes.

    codes : texts of the rating column that mean "not rated".
    """

    text: Text
    layout: TextLayout
    roles: dict[str, int]
    encoding: str
    codes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


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
    dialect, layout = sniff(data, member.label, options.separator, options.header, options.decimal)
    given = {role: getattr(options, role) for role in ROLES}
    if "rating" in required and any(given[role] is None for role in required):
        doubts.refuse_other_files(layout.names if layout.header else (), member.label)
    roles = layout.roles(given, required, member.label)
    codes = tuple(map(_code_text, options.not_rated))
    return Opened(dialect.text, layout, roles, encoding, codes, dialect.notes)


def _code_text(code: str | float) -> str:
    return code if isinstance(code, str) else number_text(float(code))


def read_roles(opened: Opened, roles: tuple[str, ...]) -> tuple[Table, Opened]:
    """Read the columns of some roles; tries other forms of numbers where the first fails.

    Returns the table and the file as it could be read. Ratings that are a code are NaN.
    """
    columns = [
        Column(
            opened.roles[role],
            role if role not in ("user", "item") else f"{role} id",
            kind,
            opened.codes if role == "rating" else (),
        )
        for role, kind in KINDS.items()
        if role in roles and role in opened.roles
    ]
    rating = opened.roles.get("rating") if "rating" in roles else None
    if rating is not None and any(
        may_be_grouped(row[rating]) for row in opened.layout.rows if len(row) > rating
    ):
        opened = _other_form(opened) or opened  # what the numbers of ids are does not tell
    try:
        return _within_range(read_table(opened.text, columns), opened), opened
    except DataError:
        if rating is not None:
            texts = column_notes.no_numbers(opened.layout, rating, opened.text, opened.codes)
            if texts is not None:
                raise texts from None
        # The sample may have held whole numbers only.
        other = _other_form(opened)
        if other is None or other.text == opened.text:
            raise
        try:
            return _within_range(read_table(other.text, columns), other), other
        except DataError:
            pass
        raise


def _other_form(opened: Opened) -> Opened | None:
    """The file with the form of numbers that its whole column of ratings has.

    With a note if they could be read otherwise too; None if they cannot be read.
    """
    text = opened.text
    if "rating" not in opened.roles:
        return None
    decimal = text.decimal if opened.layout.decimal_given else None
    forms = possible_forms(text.separator, text.quotes, decimal)
    try:
        column = read_table(text, [Column(opened.roles["rating"], "rating", "label")])
    except DataError:
        return None
    form, doubt = find_form(column.encoded("rating").ids.tolist(), forms, text.separator)
    kept = [note for note in opened.notes if note != doubt]
    return replace(
        opened,
        text=replace(text, decimal=form.decimal, thousands=form.thousands),
        notes=(*kept, doubt) if doubt and decimal is None else opened.notes,
    )


def _within_range(table: Table, opened: Opened) -> Table:
    """The same, if no rating is so large that computing with it means nothing."""
    if "rating" in table.columns:
        sizes = np.nan_to_num(np.abs(table.numbers("rating")))
        row = int(np.argmax(sizes))
        if sizes[row] > LARGEST:
            raise DataError(
                f"The rating is larger than {LARGEST:g}. Correct the line; if this is not the "
                "column of the rating, say which one is.",
                path=opened.text.path,
                line=line_of_row(opened.text, row),
                value=number_text(float(table.numbers("rating")[row])),
            )
    return table


def read(source: Source, options: DelimitedOptions | None = None) -> Parts:
    """Read ratings with whatever columns are found or given."""
    options = options or DelimitedOptions()
    opened = open_delimited(pick(source), options, ("user", "item", "rating"))
    table, opened = read_roles(opened, ("user", "item", "rating", "title"))
    text, roles = opened.text, opened.roles
    rated, dropped = _rated(table, options)
    values = table.numbers("rating")
    values = values if rated.all() else values[rated]
    if not len(values):
        raise DataError("Every row is marked as not rated; no rating is left.", path=text.path)
    users, items = table.encoded("user id").take(rated), table.encoded("item id").take(rated)

    def line_of(row: int) -> int:
        return line_of_row(text, int(np.flatnonzero(rated)[row]))

    names = opened.layout.names
    by_position = _by_position(opened, options)
    of_roles = (names[roles["user"]], names[roles["rating"]])
    doubts.refuse_no_ratings(users, values, of_roles, by_position, text)
    scale, scale_found, derived = _scale(values, options, text, line_of)
    notes = [_describe_layout(opened), *opened.notes]
    notes += column_notes.value_notes(opened.layout, roles, users, items, values, line_of)
    notes += column_notes.repeated_names(opened.layout, roles)
    if options.timestamp is None:
        notes += column_notes.left_times(opened.layout, roles, text)
    notes += column_notes.unmatched_codes(text, roles["rating"], opened.codes)
    reading = _reading(opened, scale, options)

    def times(deciding: bool) -> TimeColumn:
        if "timestamp" not in roles:
            return TimeColumn()
        chosen = options.timestamp is not None
        found = _times(text, roles["timestamp"], strict=deciding and chosen, deciding=deciding)
        if found.note:
            reading.pop("timestamp")
        return found.rows(rated)

    return Parts(
        source=text.path,
        format=NAME,
        encoding=opened.encoding,
        users=users,
        items=items,
        values=values,
        scale=scale,
        scale_found=scale_found,
        line_of=line_of,
        times=times,
        dropped=dropped,
        known_items=_titles(table) if "title" in roles else {},
        blank_lines=table.blank_lines,
        notes=notes,
        reading=reading,  # times() may take from it
        scale_derived=derived,
    )


def _times(text: Text, index: int, *, strict: bool, deciding: bool) -> TimeColumn:
    """The column of times of all rows.

    deciding : whether they decide between repeated ratings. strict : whether what is neither a
        number nor a date is an error, and no note.
    """
    try:
        column = read_table(text, [Column(index, "timestamp", "any")]).columns["timestamp"]
    except DataError as error:  # Arrow has taken the first rows for another kind than the others
        if deciding:
            raise
        return TimeColumn(note=f"the times cannot be read and are not kept: {error}")
    found = as_times(column)
    if found.order is not None or found.note:
        return found
    if strict:
        row, value = first_no_time(column)
        raise DataError(
            "The timestamp is neither a number nor a date as the others are; correct it, "
            "choose another column, or none to let the position in the file decide between "
            "repeated ratings.",
            path=text.path,
            line=line_of_row(text, row),
            value=value,
        )
    return TimeColumn(note=no_times_note(column, text, deciding))


def _rated(
    table: Table, options: DelimitedOptions
) -> tuple[np.ndarray, tuple[tuple[str, int], ...]]:
    """(rows,) whether a row is rated, and how many are not, with the reason."""
    rated = ~np.isnan(table.numbers("rating"))
    codes = ", ".join(_code_text(code) or "a blank" for code in options.not_rated)
    left_out = int(len(rated) - rated.sum())
    return rated, ((f"marked as not rated ({codes})", left_out),)


def _by_position(opened: Opened, options: DelimitedOptions) -> set[str]:
    """The roles that neither the person nor a column's name has given."""
    names = opened.layout.names
    return {
        role
        for role in ("user", "item", "rating")
        if getattr(options, role) is None
        and plain_name(names[opened.roles[role]]) not in NAMES[role]
    }


def _describe_layout(opened: Opened) -> str:
    names = opened.layout.names
    columns = ", ".join(f"{role} = {names[index]}" for role, index in opened.roles.items())
    header = "a header line" if opened.layout.header else "no header line"
    form = NumberForm(opened.text.decimal, opened.text.thousands)
    return f"separator {opened.text.separator!r}, {header}, {form}; columns: {columns}"


def _reading(opened: Opened, scale: RatingScale, options: DelimitedOptions) -> dict[str, object]:
    """The options that read the file in the way that was found, whatever is found elsewhere."""
    return {
        "separator": opened.text.separator,
        "header": opened.layout.header,
        "decimal": opened.text.decimal,
        "encoding": opened.encoding,
        **opened.roles,
        **({"not_rated": list(options.not_rated)} if options.not_rated else {}),
        "low": scale.low,
        "high": scale.high,
        "step": "continuous" if scale.step is None else scale.step,
    }


def _scale(
    values: np.ndarray, options: DelimitedOptions, text: Text, line_of: Callable[[int], int]
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
    row = first_off_scale(values, scale)
    if row is not None:
        value, count = number_text(float(values[row])), int((values == values[row]).sum())
        raise DataError(
            f"The rating is not on the scale {scale}. Correct the line, give another scale, or, if "
            f'{value} (in {count:,} rows) means "not rated", say so (--not-rated {value}).',
            path=text.path,
            line=line_of(row),
            value=value,
        )
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
