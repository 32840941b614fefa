"""Rows of any origin as comma-separated text, one line a row, for the readers of text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from gmc_core.base.errors import DataError

# More cells than any table of the kind that comes as a workbook or as JSON.
MAX_CELLS = 50_000_000


class RowText:
    """Takes rows and gives CSV in UTF-8: row k stands on line k, all rows are equally long.

    Tabs and line ends inside a cell become blanks; a row without cells is a blank line.
    """

    def __init__(self, path: object) -> None:
        self._path = path
        self._file = io.StringIO()
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._cells = 0
        self._widths: list[tuple[int, int]] = []  # (line from which on, cells of a row)
        self.rows = 0

    def add(self, cells: Sequence[str]) -> None:
        """Append a row.

        Raises
        ------
        DataError
            If there are more than ``MAX_CELLS`` cells.
        """
        self._cells += max(1, len(cells))
        if self._cells > MAX_CELLS:
            raise DataError(
                f"The table has more than {MAX_CELLS:,} cells; save it as CSV, or give a part.",
                path=self._path,
            )
        if not self._widths or self._widths[-1][1] != len(cells):
            self._widths.append((self.rows, len(cells)))
        if cells:
            self._writer.writerow([" ".join(cell.split()) for cell in cells])
        else:
            self._file.write("\n")
        self.rows += 1

    def extend(self, rows: Iterable[Sequence[str]]) -> None:
        """Append rows."""
        for cells in rows:
            self.add(cells)

    def text(self) -> bytes:
        """All rows; the shorter ones have blanks at their end."""
        content = self._file.getvalue()
        width = max((width for _, width in self._widths), default=0)
        if len(self._widths) > 1:
            lines = content.split("\n")[:-1]
            ends = [start for start, _ in self._widths[1:]] + [self.rows]
            for (start, own), end in zip(self._widths, ends, strict=True):
                if own < width:
                    more = "," * (width - own)
                    lines[start:end] = [line and line + more for line in lines[start:end]]
            content = "\n".join(lines) + "\n"
        return content.encode(errors="replace")
