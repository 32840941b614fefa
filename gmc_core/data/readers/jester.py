"""Jester: a dense matrix of jokes' ratings, one row a user, saved as text."""

from __future__ import annotations

import re

import numpy as np

from gmc_core.base.errors import DataError
from gmc_core.data.ratings import RatingScale
from gmc_core.data.readers.assemble import Parts
from gmc_core.data.readers.scales import off_scale_error
from gmc_core.data.readers.source import HEAD_BYTES, Member, Source
from gmc_core.data.readers.table import Column, Text, line_of_row, parse_number, read_table
from gmc_core.data.readers.text import BOM, to_utf8
from gmc_core.data.readers.vocabulary import Encoded

NAME = "jester"
SCALE = RatingScale(-10, 10, None)
MISSING = 99.0
MIN_JOKES = 5
MAX_JOKES = 10_000  # the published sets have 100 to 158


def matches(source: Source) -> bool:
    """Whether there is a file in this layout (see :func:`_looks_dense`)."""
    return any(_looks_dense(member) for member in _candidates(source))


def _candidates(source: Source) -> list[Member]:
    if source.single is not None:
        return [source.single]
    named = [
        m for m in source.members if re.fullmatch(r"jester.*\.(csv|txt|tsv|xlsx)", m.name.lower())
    ]
    return sorted(named, key=lambda member: member.name)


def _layout(data: bytes) -> tuple[str, str]:
    """Separator and decimal sign, from the first line."""
    first = data.lstrip()[:HEAD_BYTES].split(b"\n")[0].decode("latin-1")
    for separator in (";", "\t", ","):
        if separator in first:
            return separator, "," if separator != "," and "," in first else "."
    return ",", "."


def _looks_dense(member: Member) -> bool:
    """Whether the first number of the first rows counts the entries that are not 99."""
    data = member.head().removeprefix(BOM)
    separator, decimal = _layout(data)
    rows = [row for row in data.decode("latin-1").split("\n")[:20] if row.strip()]
    if len(data) >= HEAD_BYTES - len(BOM):
        rows = rows[:-1]  # the last one may be cut off
    for row in rows:
        numbers = [parse_number(field, decimal) for field in row.split(separator)]
        if len(numbers) <= MIN_JOKES or None in numbers:
            return False
        if numbers[0] != sum(number != MISSING for number in numbers[1:]):
            return False
    return bool(rows)


def read(source: Source) -> Parts:
    """Read one matrix, or all ``jester*.csv`` of a folder or zip in order of their names.

    Users are numbered from 1 over all files, jokes from 1; 99 is "not rated".
    """
    members = _candidates(source)
    if not members:
        raise DataError(
            "The format jester needs a text file whose name starts with jester. The published "
            "files are old Excel sheets: open them in a spreadsheet program and save them as CSV.",
            path=source.path,
        )
    users, jokes, values, notes, encodings = [], [], [], [], []
    texts: list[tuple[int, Text]] = []
    blank_lines = offset = 0
    for member in members:
        if member.name.lower().endswith(".xls"):
            raise DataError("Old Excel sheets are not read; save it as CSV.", path=member.label)
        data, encoding = to_utf8(member.read(), member.label)
        separator, decimal = _layout(data)
        text = Text(data, member.label, separator, decimal=decimal)
        matrix, declared, blanks = _read_matrix(text)
        filled = matrix != MISSING
        wrong = int((filled.sum(axis=1) != declared).sum())
        if wrong:
            notes.append(
                f"{wrong:,} users of {member.label} have another number of ratings than "
                "their first column says"
            )
        row, column = np.nonzero(filled)
        users.append(row + offset)
        jokes.append(column)
        values.append(matrix[filled])
        texts.append((offset, text))
        offset += len(matrix)
        blank_lines += blanks
        encodings.append(encoding)
    user_codes = np.concatenate(users)
    joke_codes = np.concatenate(jokes)
    keep = np.ones(len(user_codes), dtype=bool)
    encoded_users = Encoded(np.arange(1, offset + 1), user_codes).take(keep)
    width = int(joke_codes.max(initial=-1)) + 1
    encoded_jokes = Encoded(np.arange(1, width + 1), joke_codes).take(keep)
    silent = offset - len(encoded_users.ids)
    if silent:
        notes.append(f"{silent:,} users without any rating are left out")

    def line_of(row: int) -> int:
        start, text = [entry for entry in texts if entry[0] <= user_codes[row]][-1]
        return line_of_row(text, int(user_codes[row]) - start)

    return Parts(
        source=", ".join(member.label for member in members),
        format=NAME,
        encoding=", ".join(sorted(set(encodings))),
        users=encoded_users,
        items=encoded_jokes,
        values=np.concatenate(values),
        scale=SCALE,
        scale_found="known: Jester",
        line_of=line_of,
        blank_lines=blank_lines,
        notes=tuple(notes),
    )


def _read_matrix(text: Text) -> tuple[np.ndarray, np.ndarray, int]:
    """(users, jokes) matrix with 99 for missing, (users,) declared counts, blank lines."""
    width = text.data.lstrip().split(b"\n", 1)[0].count(text.separator.encode()) + 1
    if width > MAX_JOKES + 1:
        raise DataError(
            f"The rows have {width:,} columns; at most {MAX_JOKES:,} jokes are read. Check whether "
            "this is Jester.",
            path=text.path,
            line=1,
        )
    columns = [Column(0, "number of rated jokes", "number")]
    columns += [Column(index, f"rating of joke {index}", "number") for index in range(1, width)]
    table = read_table(text, columns)
    matrix = np.column_stack([table.numbers(column.role) for column in columns[1:]])
    bad = (matrix != MISSING) & ((matrix < SCALE.low) | (matrix > SCALE.high))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        line = line_of_row(text, int(row))
        raise off_scale_error(float(matrix[row, column]), SCALE, text.path, line)
    return matrix, table.numbers("number of rated jokes"), table.blank_lines
