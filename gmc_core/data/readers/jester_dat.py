"""Jester 2 and 3: ``jester_ratings.dat``, user, joke and rating with two tabs between them."""

from __future__ import annotations

import re

import numpy as np

from gmc_core.data.readers.assemble import Parts
from gmc_core.data.readers.common import check_scale, needed
from gmc_core.data.readers.jester import MISSING, SCALE
from gmc_core.data.readers.source import Member, Source
from gmc_core.data.readers.table import Column, Text, line_of_row, read_table
from gmc_core.data.readers.text import BOM, to_utf8

NAME = "jester-dat"
FILE = "jester_ratings.dat"
# Between two tabs stands an empty column.
COLUMNS = (
    Column(0, "user id", "integer id"),
    Column(2, "item id", "integer id"),
    Column(4, "rating", "number"),
)
NOT_RATED = "jokes that were not rated (99)"
# Digits are limited: a long run could be split at each place, and a failed match take minutes.
_ROW = re.compile(
    rb"\s*\d{1,18}\t\t\d{1,18}\t\t-?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})[ \t]*(\r?\n|\r|$)"
)


def matches(source: Source) -> bool:
    """Whether a file named so, or the one that is given, has two tabs between numbers."""
    member = _member(source)
    return member is not None and _ROW.match(member.head().removeprefix(BOM)) is not None


def _member(source: Source) -> Member | None:
    return source.single if source.single is not None else source.find(FILE)


def read(source: Source) -> Parts:
    """Read the ratings, -10..10; the jokes' texts are in another file and not read."""
    member = source.single or needed(source, FILE, NAME)
    data, encoding = to_utf8(member.read(), member.label)
    text = Text(data, member.label, "\t")
    table = read_table(text, COLUMNS)
    values = table.numbers("rating")
    rated = values != MISSING
    check_scale(np.where(rated, values, 0.0), SCALE, text)
    kept = np.flatnonzero(rated)
    return Parts(
        source=member.label,
        format=NAME,
        encoding=encoding,
        users=table.encoded("user id").take(rated),
        items=table.encoded("item id").take(rated),
        values=values[rated],
        scale=SCALE,
        scale_found="known: Jester",
        line_of=lambda row: line_of_row(text, int(kept[row])),
        dropped=((NOT_RATED, len(values) - len(kept)),),
        blank_lines=table.blank_lines,
    )
