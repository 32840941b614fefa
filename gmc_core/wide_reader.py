"""Reading a plain table with blanks: CSV, TSV or parquet, with a header line."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.errors import ConfigError, DataError, brief
from gmc_core.ratings import frozen
from gmc_core.readers.companions import refuse_ratings
from gmc_core.readers.source import open_source
from gmc_core.readers.text import decode
from gmc_core.table_columns import (
    Missing,
    aside_notes,
    far_off_notes,
    label_columns,
)
from gmc_core.table_files import parquet_module

MAX_CELLS = 200_000_000
# Arrow's own errors derive from these.
_PARQUET_ERRORS = (
    ValueError, OSError, LookupError, TypeError, NotImplementedError, RuntimeError, OverflowError,
)  # fmt: skip

_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class TableOptions:
    """How to read a table; what is None is found from the file.

    id_columns : columns of labels. Empty: those that
        :func:`gmc_core.table_columns.label_columns` finds.
    quantities : columns that are quantities although they look like labels.
    missing : texts or numbers that stand for a missing entry, besides blanks, NA, ….
    separator : one character. decimal : "." or ",". encoding : of a text file.
    """

    id_columns: tuple[str, ...] = ()
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    quantities: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\r\n'):
            raise ConfigError(f"The separator must be one character, not {self.separator!r}.")
        if self.decimal not in (None, ".", ","):
            raise ConfigError(f"The decimal sign is '.' or ',', not {self.decimal!r}.")
        if self.decimal == "," == self.separator:
            raise ConfigError("The comma cannot be both the separator and the decimal sign.")


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
    text, encoding = decode(member.read(), member.label, options.encoding)
    separator = options.separator or _separator(text, member.label)
    header, rows, lines = _rows(text, separator, member.label)
    _check_names(header, member.label)
    aside = _label_columns(header, rows, options)
    quantities = [index for index in range(len(header)) if index not in aside]
    decimal = options.decimal or _decimal(rows, quantities, separator)
    missing = Missing(options.missing)
    values = np.empty((len(rows), len(quantities)))
    for place, column in enumerate(quantities):
        for row, cells in enumerate(rows):
            values[row, place] = _number(
                cells[column], decimal, missing, member.label, lines[row], header[column]
            )
    note = f"{len(rows):,} rows, {len(quantities):,} columns; separator {separator!r}, {encoding}"
    return _checked(
        WideTable(
            path=member.label,
            names=tuple(header[index] for index in quantities),
            values=frozen(values),
            label_names=tuple(header[index] for index in aside),
            labels=tuple([cells[index] for cells in rows] for index in aside),
            lines=np.array(lines, dtype=np.int64),
            notes=(note, *_found_notes(header, aside, options, missing, values)),
        )
    )


def _rows(text: str, separator: str, path: str) -> tuple[list[str], list[list[str]], list[int]]:
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    rows, lines = [], []
    header: list[str] | None = None
    try:
        for cells in reader:
            if not cells:
                continue  # an empty line; a row without entries still has its separators
            stripped = [cell.strip() for cell in cells]
            if header is None:
                header = stripped
                continue
            if len(stripped) != len(header):
                raise DataError(
                    f"This row has {len(stripped):,} cells, the header {len(header):,}; correct "
                    "the row, or give the separator.",
                    path=path,
                    line=reader.line_num,
                )
            rows.append(stripped)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise DataError(
            f"The row cannot be read ({error}).", path=path, line=reader.line_num
        ) from (error)
    if header is None or not rows:
        raise DataError(
            "There are no rows below the header; give a table with a header line and rows.",
            path=path,
        )
    return header, rows, lines


def _separator(text: str, path: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "")
    counts = {sign: line.count(sign) for sign in "\t;,|"}
    best = max(counts, key=lambda sign: counts[sign])
    if not counts[best]:
        raise DataError(
            "The header line has one column only; a table needs at least two, divided by tab, "
            "semicolon, comma or |. Give the separator if it is another.",
            path=path,
            line=1,
            value=line,
        )
    return best


def _check_names(header: list[str], path: str) -> None:
    seen: set[str] = set()
    for index, name in enumerate(header):
        if name in seen or (not name and index > 0):
            what = f"two columns named {name!r}" if name else f"no name for column {index + 1}"
            raise DataError(f"There is {what}; give every column its own name.", path=path, line=1)
        seen.add(name)
    if all(_is_number(name, ".") or _is_number(name, ",") for name in header):
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
        return bool(given) and not any(_is_number(cell, sign) for cell in given for sign in ".,")

    return label_columns(
        header, cells, is_text, named=options.id_columns, quantities=options.quantities
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


def _decimal(rows: list[list[str]], columns: list[int], separator: str) -> str:
    """A comma if some cell is a number only with it, and none is one with a point."""
    if separator == ",":
        return "."
    commas = points = False
    for row in rows:
        for column in columns:
            cell = row[column]
            commas = commas or ("," in cell and _COMMA_NUMBER.fullmatch(cell) is not None)
            points = points or ("." in cell and _is_number(cell, "."))
    return "," if commas and not points else "."


def _is_number(cell: str, decimal: str) -> bool:
    try:
        float(_plain(cell, decimal))
    except ValueError:
        return False
    return cell.lower().lstrip("+-") not in ("nan", "inf", "infinity")


def _plain(cell: str, decimal: str) -> str:
    """For ``float``, which would also take underscores."""
    if "_" in cell or (decimal == "," and "." in cell):
        return "?"
    return cell.replace(",", ".") if decimal == "," else cell


def _number(cell: str, decimal: str, missing: Missing, path: str, line: int, column: str) -> float:
    if missing.is_blank(cell):
        return np.nan
    try:
        value = float(_plain(cell, decimal))
    except ValueError:
        value = np.inf
    if not np.isfinite(value):
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
        stored = []  # of another program, or damaged; the names are left
    index = [header.index(name) for name in stored]
    if len(index) == 1 and header[index[0]] == "__index_level_0__" and "index" not in header:
        header[index[0]] = "index"
    return header, index


_NUMERIC = re.compile(r"u?int\d|float|double|halffloat|decimal")


def _checked(table: WideTable) -> WideTable:
    if len(table.names) < 2:
        aside = ", ".join(name or "the unnamed one" for name in table.label_names)
        remedy = (
            f" Kept aside as labels: {aside}; give a quantity among them its place (--quantity)."
            if aside
            else ""
        )
        raise DataError(
            f"There are {len(table.names)} columns of quantities; completing needs at least two, "
            f"since one is filled from the others.{remedy}",
            path=table.path,
        )
    return table
