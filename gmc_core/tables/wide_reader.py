"""Reading a plain table with blanks: CSV, TSV or parquet, with a header line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import DataError, brief
from gmc_core.base.setting import check, setting
from gmc_core.base.table_files import parquet_module
from gmc_core.data.ratings import frozen
from gmc_core.data.readers.companions import refuse_ratings
from gmc_core.data.readers.dialect import column_names, find_dialect, is_unnamed
from gmc_core.data.readers.numbers import NumberForm, find_form, parse_number, possible_forms
from gmc_core.data.readers.source import open_source
from gmc_core.data.readers.table import Text, numbered_rows
from gmc_core.data.readers.text import to_utf8
from gmc_core.data.reading_options import DECIMAL, ENCODING, SEPARATOR, Separator
from gmc_core.tables.table_columns import (
    Missing,
    aside_notes,
    far_off_notes,
    is_long,
    label_columns,
)
from gmc_core.tables.table_notes import (
    is_number,
    last_row_notes,
    ruined_notes,
    spoiled_notes,
    texts_aside,
    too_few_columns,
)

MAX_CELLS = 200_000_000
# Arrow's own errors derive from these.
_PARQUET_ERRORS = (
    ValueError, OSError, LookupError, TypeError, NotImplementedError, RuntimeError, OverflowError,
)  # fmt: skip


@dataclass(frozen=True)
class TableOptions:
    """How to read a table; what is None is found from the file.

    id_columns : columns of labels. Empty: those that
        :func:`gmc_core.tables.table_columns.label_columns` finds.
    quantities : columns that are quantities although they look like labels.
    missing : texts or numbers that stand for a missing entry, besides blanks, NA, ….
    separator : one character, "::" or "whitespace" (runs of blanks).
    decimal : "." or ",". encoding : of a text file.
    """

    id_columns: tuple[str, ...] = ()
    separator: str | None = setting(None, replace(SEPARATOR, kind=Separator(ascii=False)))
    decimal: str | None = setting(None, DECIMAL)
    encoding: str | None = setting(None, ENCODING)
    quantities: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, eq=False)
class WideTable:
    """A table of quantities with blanks.

    names : of the quantities. values : (rows, columns), NaN where blank.
    label_names, labels : columns kept aside, one sequence each.
    lines : (rows,) line of each row in the file (row number in a parquet file).
    notes : how the file was read, a sentence each.
    """

    path: str
    names: tuple[str, ...]
    values: npt.NDArray[np.float64]
    label_names: tuple[str, ...]
    labels: tuple[Sequence[object], ...]
    lines: npt.NDArray[np.int64]
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """(columns,) given entries of each column."""
        return np.asarray((~np.isnan(self.values)).sum(axis=0))


def read_table(path: str | os.PathLike[str], options: TableOptions | None = None) -> WideTable:
    """Read a table.

    Raises
    ------
    DataError
        If the file cannot be read or a column of quantities holds something that
        is no number; names file, line, column and value.
    ConfigError
        If a column of labels does not exist.
    """
    options = options or TableOptions()
    if Path(path).suffix.lower() == ".parquet":
        return _read_parquet(Path(path), options)
    source = open_source(path)
    member = source.single or (source.members[0] if len(source.members) == 1 else None)
    if member is None:
        raise DataError("Give the path of the table's own file.", path=path)
    refuse_ratings(member)
    data, encoding = to_utf8(member.read(), member.label, options.encoding)
    dialect = find_dialect(
        data,
        member.label,
        separator=options.separator,
        header=True,
        decimal=options.decimal,
        table=True,
    )
    text = dialect.text
    header, rows, lines = _rows(text)
    header, rows = _without_empty_columns(header, rows)
    _check_names(header, member.label)
    aside = _label_columns(header, rows, options)
    rows, lines, empty = _without_empty_ends(rows, lines, aside)
    quantities = [index for index in range(len(header)) if index not in aside]
    missing = Missing(options.missing)
    cells_of = (
        row[index] for row in rows for index in quantities if not missing.is_blank(row[index])
    )
    forms = possible_forms(text.separator, text.quotes, options.decimal)
    form, doubt = find_form(cells_of, forms, text.separator)
    missing = Missing(options.missing)  # a new one: finding the form has counted, too
    values = np.empty((len(rows), len(quantities)))
    for place, column in enumerate(quantities):
        for row, cells in enumerate(rows):
            values[row, place] = _number(
                cells[column], form, missing, member.label, lines[row], header[column]
            )
    found = (
        f"{len(rows):,} rows, {len(quantities):,} columns; separator {text.separator!r}, {form}, "
        f"{'utf-8' if encoding == 'ascii' else encoding}"
    )
    notes = [found, *dialect.notes]
    if empty:
        notes.append(f"{empty:,} rows of separators only left out")
    label_names = tuple(header[index] for index in aside)
    labels = tuple([cells[index] for cells in rows] for index in aside)
    notes += ruined_notes(label_names, labels, lines)
    if not options.id_columns:
        notes += spoiled_notes(header, labels, aside, lines)
    notes += _rounded_notes(header, rows, lines, quantities)
    notes += [doubt] if doubt and options.decimal is None else []
    return _checked(
        WideTable(
            path=member.label,
            names=tuple(header[index] for index in quantities),
            values=frozen(values),
            label_names=label_names,
            labels=labels,
            lines=np.array(lines, dtype=np.int64),
            notes=(*notes, *_found_notes(header, aside, options, missing, values)),
        )
    )


def _rows(text: Text) -> tuple[list[str], list[list[str]], list[int]]:
    """Names, rows of stripped cells, and the line of each row."""
    rows, lines = [], []
    head: list[str] | None = None
    for line, cells in numbered_rows(text, blank=True):
        if head is None:
            head = cells
            continue
        rows.append([cell.strip() for cell in cells])
        lines.append(line)
    if head is None or not rows:
        raise DataError(
            "There are no rows below the header; give a table with a header line and rows.",
            path=text.path,
        )
    header = column_names(head, rows) if {len(row) for row in rows} == {len(rows[0])} else head
    header = [name.strip() for name in header]
    if len(header) > len(head) + 1 or (len(header) > len(head) and header[0] and header[-1]):
        # The names of the rows would be one cell more than the header has.
        header = [name.strip() for name in head]
    if len(header) < 2 and all(len(row) < 2 for row in rows):
        raise DataError(
            "The header line has one column only; a table needs at least two. Give the separator "
            "if it is another.",
            path=text.path,
            line=1,
        )
    for line, row in zip(lines, rows, strict=True):
        if len(row) != len(header):
            raise DataError(
                f"This row has {len(row):,} cells, the header {len(header):,}; correct "
                "the row, or give the separator.",
                path=text.path,
                line=line,
            )
    return header, rows, lines


def _without_empty_columns(
    header: list[str], rows: list[list[str]]
) -> tuple[list[str], list[list[str]]]:
    """The same without columns that have neither a name nor a cell, as spreadsheets leave them."""
    kept = [
        index for index, name in enumerate(header) if name or any(cells[index] for cells in rows)
    ]
    if len(kept) == len(header):
        return header, rows
    return [header[index] for index in kept], [[cells[index] for index in kept] for cells in rows]


def _without_empty_ends(
    rows: list[list[str]], lines: list[int], aside: list[int]
) -> tuple[list[list[str]], list[int], int]:
    """The same without rows of separators only: those at the end, and all that lack a label."""
    empty = [not any(cells) for cells in rows]
    last = max((index for index, none in enumerate(empty) if not none), default=-1)
    kept = [index for index, none in enumerate(empty) if not none or (not aside and index < last)]
    return [rows[i] for i in kept], [lines[i] for i in kept], len(rows) - len(kept)


def _rounded_notes(
    header: list[str], rows: list[list[str]], lines: list[int], quantities: list[int]
) -> list[str]:
    """A sentence for each column of quantities with a number that does not come back as written."""
    notes = []
    for index in quantities:
        first = next((n for n, cells in enumerate(rows) if is_long(cells[index])), None)
        if first is not None:
            notes.append(
                f"column {header[index]!r}: {rows[first][index]} (line {lines[first]}) has more "
                "digits than are computed with, and is rounded; if the column only names rows, "
                f"say so (--id-column {header[index]!r})"
            )
    return notes


def _check_names(header: list[str], path: str) -> None:
    seen: set[str] = set()
    for index, name in enumerate(header):
        if name in seen or (not name and index > 0):
            what = (
                f"are two columns named {name!r}" if name else f"is no name for column {index + 1}"
            )
            raise DataError(f"There {what}; give every column its own name.", path=path, line=1)
        seen.add(name)
    if all(is_number(name) for name in header):
        raise DataError(
            "The first line holds only numbers, but a header line with the columns' names is "
            "needed; add one.",
            path=path,
            line=1,
        )


def _label_columns(header: list[str], rows: list[list[str]], options: TableOptions) -> list[int]:
    def cells(column: int) -> list[str]:
        return [row[column] for row in rows]

    def is_text(column: int) -> bool:
        missing = Missing(options.missing)
        given = [cell for cell in cells(column) if not missing.is_blank(cell)]
        return bool(given) and not any(is_number(cell) for cell in given)

    known = [0] if is_unnamed(header[0]) and not options.id_columns else []
    return label_columns(
        header,
        cells,
        is_text,
        named=options.id_columns,
        quantities=options.quantities,
        known=known,
    )


def _found_notes(
    header: Sequence[str],
    aside: list[int],
    options: TableOptions,
    missing: Missing,
    values: npt.NDArray[np.float64],
) -> tuple[str, ...]:
    names = [header[index] for index in range(len(header)) if index not in aside]
    return (
        *aside_notes(header, aside, options.quantities, values),
        *missing.notes(),
        *far_off_notes(names, values),
    )


def _number(
    cell: str, form: NumberForm, missing: Missing, path: str, line: int, column: str
) -> float:
    if missing.is_blank(cell, form):
        return np.nan
    value = parse_number(cell, form.decimal, form.thousands)
    if value is None:
        raise DataError(
            f"column {column!r}: this is no number; correct it, leave the cell blank, say that it "
            f"stands for a missing one (--na {cell[:20]!r}), or name the column as one of labels "
            f"(--id-column {column!r}).",
            path=path,
            line=line,
            value=cell,
        )
    return value


def _read_parquet(path: Path, options: TableOptions) -> WideTable:
    parquet = parquet_module()
    if not path.is_file():
        raise DataError("There is no such file; check the path.", path=path)
    try:
        with parquet.ParquetFile(path) as file:
            rows, columns = file.metadata.num_rows, file.metadata.num_columns
            # A few kilobytes can stand for billions of equal entries.
            if rows * columns > MAX_CELLS:
                raise DataError(
                    f"The table has {rows:,} rows and {columns:,} columns, more than the "
                    f"{MAX_CELLS:,} entries that are read; give a part of it.",
                    path=path,
                )
            content = file.read()
    except _PARQUET_ERRORS as error:
        raise DataError(f"This is no readable parquet file ({brief(error)}).", path=path) from error
    header, stored = _parquet_names(content)
    frame = [content.column(column) for column in range(len(header))]
    if not header or not len(content):
        raise DataError("The table has no rows; give one with rows.", path=path)
    _check_names(header, str(path))
    numeric = [_NUMERIC.match(str(column.type)) is not None for column in frame]
    aside = label_columns(
        header,
        # Only whole numbers can be ids among numbers; others need not be looked at.
        lambda column: frame[column].to_pylist() if "int" in str(frame[column].type) else [],
        lambda column: not numeric[column],
        named=options.id_columns,
        quantities=options.quantities,
        known=stored,
    )
    quantities = [index for index in range(len(header)) if index not in aside]
    for index in quantities:
        if not numeric[index]:
            raise DataError(
                f"column {header[index]!r} holds {frame[index].type}, no numbers; name it as one "
                f"of labels (--id-column {header[index]!r}), or leave it out.",
                path=path,
            )
    columns = [
        np.array([np.nan if v is None else float(v) for v in frame[index].to_pylist()])
        for index in quantities
    ]
    missing = Missing(options.missing)
    values = missing.without(np.stack(columns, axis=1) if columns else np.empty((len(content), 0)))
    for place, index in enumerate(quantities):
        infinite = np.flatnonzero(np.isinf(values[:, place]))
        if len(infinite):
            raise DataError(
                f"column {header[index]!r}: an infinite value is no number; leave it blank.",
                path=path,
                line=int(infinite[0]) + 1,
            )
    return _checked(
        WideTable(
            path=str(path),
            names=tuple(header[index] for index in quantities),
            values=frozen(values),
            label_names=tuple(header[index] for index in aside),
            labels=tuple(frame[index].to_pylist() for index in aside),
            lines=np.arange(1, len(content) + 1),
            notes=(
                f"{len(content):,} rows, {len(quantities):,} columns",
                *_found_notes(header, aside, options, missing, values),
            ),
        )
    )


def _parquet_names(content: Any) -> tuple[list[str], list[int]]:
    """Column names, and the positions of those that pandas stored as the row index."""
    header = [str(name) for name in content.column_names]
    try:
        told = json.loads((content.schema.metadata or {})[b"pandas"])["index_columns"]
        stored = [name for name in told if isinstance(name, str) and name in header]
    except (LookupError, TypeError, ValueError):
        stored = []  # written by another program, or damaged: only the names tell
    index = [header.index(name) for name in stored]
    if len(index) == 1 and header[index[0]] == "__index_level_0__" and "index" not in header:
        header[index[0]] = "index"
    return header, index


_NUMERIC = re.compile(r"u?int\d|float|double|halffloat|decimal")


def _checked(table: WideTable) -> WideTable:
    if len(table.names) < 2:
        aside = texts_aside(table.label_names, table.labels, table.lines.tolist())
        raise DataError(too_few_columns(len(table.names), aside), path=table.path)
    last = last_row_notes(table.labels, table.lines.tolist())
    return replace(table, notes=(*table.notes, *last)) if last else table
