"""Tables of a bundle: the full numbers as CSV, rounded for people as LaTeX."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

from gmc_core.base.table_files import safe_text
from gmc_core.runs.bundle.latex import tabular

Cell = str | float | int | None


@dataclass(frozen=True)
class Column:
    """A column.

    name : in the CSV. head : in LaTeX. digits : of its numbers in LaTeX, behind the point; None
    for whole numbers and words.
    """

    name: str
    head: str
    digits: int | None = None


@dataclass(frozen=True)
class Table:
    """A table with words in its first columns.

    name : of its files. caption : a sentence. columns : as in ``rows``, of which a cell is None
    where nothing is known. words : how many columns hold words.
    """

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    words: int = 1

    def csv(self) -> str:
        """Numbers in full; no cell can be taken for a formula by a spreadsheet."""
        return csv_text([column.name for column in self.columns], self.rows)

    def latex(self) -> str:
        """A ``tabular``; what is not known is a dash."""
        return tabular(
            [column.head for column in self.columns],
            [
                [
                    _shown(cell, column.digits)
                    for cell, column in zip(row, self.columns, strict=True)
                ]
                for row in self.rows
            ],
            words=self.words,
            comment=self.caption,
        )


def csv_text(head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Lines of CSV; None and NaN are empty cells."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow([safe_text(name) for name in head])
    writer.writerows([_plain(cell) for cell in row] for row in rows)
    return output.getvalue()


def _plain(cell: Cell) -> Cell:
    if isinstance(cell, str):
        return safe_text(cell)
    return None if cell is None or math.isnan(cell) else cell


def _shown(cell: Cell, digits: int | None) -> str:
    if isinstance(cell, str):
        return cell
    if cell is None or math.isnan(cell):
        return "–"
    if digits is None:
        return (f"{cell:d}" if isinstance(cell, int) else f"{cell:.6g}").replace("-", "−")
    # Minus in front of a number is the sign, not the hyphen of words.
    return f"{cell:.{digits}f}".replace("-", "−")
