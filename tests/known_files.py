"""Files whose content is known before they are read: the oracle of the fuzz tests.

A generator writes ratings or a table of quantities in the ways that people and their
programs write them, and keeps what it wrote. What a reader makes of the file is compared
with that: it may refuse the file, but never give other rows or other values.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

Cells = list[str]


@dataclass(frozen=True)
class Sheet:
    """A table as text cells, with how they are joined; changed by habits.

    plain : whether cells may still get quotes, other numbers, more columns.
    """

    header: Cells | None
    rows: list[Cells]
    separator: str = ","
    end: str = "\n"
    before: str = ""
    after: str = ""
    encoding: str = "utf-8"
    quote: bool = False
    final: bool = True
    tags: tuple[str, ...] = ()

    def bytes(self) -> bytes:
        """The file."""
        lines = [self._line(cells) for cells in ([self.header] if self.header else [])]
        lines += [self._line(cells) for cells in self.rows]
        text = self.end.join(lines) + (self.end if self.final else "")
        return (self.before + text + self.after).encode(self.encoding)

    def _line(self, cells: Cells) -> str:
        if self.quote:
            cells = ['"' + cell.replace('"', '""') + '"' for cell in cells]
        return self.separator.join(cells)


@dataclass(frozen=True)
class Habit:
    """A way in which people's files differ from the plainest one.

    change : the sheet so written; None where it does not apply. refusable : whether
    refusing the file is right too, since nobody could tell what is meant.
    """

    name: str
    change: Callable[[Sheet, random.Random], Sheet | None]
    refusable: bool = False
    kinds: tuple[str, ...] = field(default=("ratings", "table"))


def _everywhere(sheet: Sheet, edit: Callable[[str], str]) -> Sheet:
    return replace(sheet, rows=[[edit(cell) for cell in row] for row in sheet.rows])


def _decimal_comma(sheet: Sheet, rng: random.Random) -> Sheet | None:
    if "." not in "".join(map("".join, sheet.rows)):
        return None
    comma = _everywhere(sheet, lambda cell: cell.replace(".", ","))
    if sheet.separator == ",":
        return replace(comma, quote=True)
    return comma


def _stray_quote(sheet: Sheet, rng: random.Random) -> Sheet:
    rows = [list(row) for row in sheet.rows]
    rows[rng.randrange(len(rows))][0] += '"x'
    return replace(sheet, rows=rows)


def _open_quote(sheet: Sheet, rng: random.Random) -> Sheet:
    rows = [list(row) for row in sheet.rows]
    place = rng.randrange(len(rows))
    rows[place][0] = '"' + rows[place][0]
    return replace(sheet, rows=rows)


def _with_column(sheet: Sheet, name: str, cells: Cells, first: bool) -> Sheet:
    def put(row: Cells, cell: str) -> Cells:
        if not any(row):  # an empty line stays one
            return [*row, ""] if row else row
        return [cell, *row] if first else [*row, cell]

    header = None if sheet.header is None else put(sheet.header, name)
    rows = [put(row, cell) for row, cell in zip(sheet.rows, cells, strict=True)]
    return replace(sheet, header=header, rows=rows)


def _counted(sheet: Sheet, start: int) -> Cells:
    return [str(start + k) for k in range(len(sheet.rows))]


def _row_names(sheet: Sheet, rng: random.Random) -> Sheet | None:
    if sheet.header is None:
        return None
    named = _with_column(sheet, "", _counted(sheet, 1), True)
    return replace(sheet, rows=named.rows, quote=False)


def _thousands(sheet: Sheet, rng: random.Random) -> Sheet | None:
    sign = rng.choice("'\u00a0 ")
    changed = False

    def edit(cell: str) -> str:
        nonlocal changed
        if cell.isdecimal() and len(cell) > 3:
            changed = True
            return f"{int(cell):,}".replace(",", sign)
        return cell

    found = _everywhere(sheet, edit)
    return found if changed and sheet.separator not in (" ", "\t") else None


def _footer(sheet: Sheet, rng: random.Random) -> Sheet:
    total = ["Total", *[""] * (len(sheet.rows[0]) - 2), "12.5"]
    return replace(sheet, rows=[*sheet.rows, total])


def _repeated_header(sheet: Sheet, rng: random.Random) -> Sheet | None:
    if sheet.header is None:
        return None
    place = rng.randrange(1, len(sheet.rows) + 1)
    return replace(sheet, rows=[*sheet.rows[:place], sheet.header, *sheet.rows[place:]])


def _blank_rows(sheet: Sheet, rng: random.Random, cells: int) -> Sheet:
    rows = [list(row) for row in sheet.rows]
    rows.insert(rng.randrange(len(rows) + 1), [""] * cells)
    return replace(sheet, rows=rows)


HABITS: tuple[Habit, ...] = (
    Habit("quotes around all", lambda s, r: replace(s, quote=True)),
    Habit("Windows line ends", lambda s, r: replace(s, end="\r\n")),
    Habit("old Macintosh line ends", lambda s, r: replace(s, end="\r")),
    Habit("no last line end", lambda s, r: replace(s, final=False)),
    Habit("byte order mark", lambda s, r: replace(s, encoding="utf-8-sig")),
    Habit("UTF-16", lambda s, r: replace(s, encoding="utf-16"), refusable=True),
    Habit("tabs", lambda s, r: replace(s, separator="\t")),
    Habit("semicolons", lambda s, r: replace(s, separator=";")),
    Habit("bars", lambda s, r: replace(s, separator="|")),
    Habit("sep= line", lambda s, r: replace(s, before=f"sep={s.separator}{s.end}" + s.before)),
    Habit("comment line", lambda s, r: replace(s, before=f"# made by hand{s.end}"), True),
    Habit("decimal commas", _decimal_comma),
    Habit("blanks around cells", lambda s, r: _everywhere(s, lambda cell: f" {cell} ")),
    Habit("empty line", lambda s, r: _blank_rows(s, r, 0)),
    Habit("row of separators", lambda s, r: _blank_rows(s, r, len(s.rows[0])), True),
    Habit("empty lines at the end", lambda s, r: replace(s, after=s.end * 3)),
    Habit("end-of-file mark", lambda s, r: replace(s, after="\x1a"), True),
    Habit("separator at line ends", lambda s, r: _with_column(s, "", [""] * len(s.rows), False)),
    Habit("unnamed running number", lambda s, r: _with_column(s, "", _counted(s, 1), True)),
    Habit("row names without a name", _row_names),
    Habit("thousands separators", _thousands, True, ("table",)),
    Habit("total below", _footer, True),
    Habit("header repeated", _repeated_header, True),
    Habit("quote within a cell", _stray_quote, True),
    Habit("quote that never closes", _open_quote, True),
)
BY_NAME = {habit.name: habit for habit in HABITS}


@dataclass(frozen=True)
class Ratings:
    """Ratings as written, and every (user, item, rating) that the file holds."""

    data: bytes
    habits: tuple[str, ...]
    records: dict[tuple[str, str], float]

    @property
    def refusable(self) -> bool:
        return any(BY_NAME[name].refusable for name in self.habits)


@dataclass(frozen=True)
class Quantities:
    """A table as written, and its values (rows, columns) with NaN where blank."""

    data: bytes
    habits: tuple[str, ...]
    values: npt.NDArray[np.float64]

    @property
    def refusable(self) -> bool:
        return any(BY_NAME[name].refusable for name in self.habits)


def apply(
    sheet: Sheet, kind: str, rng: random.Random, names: tuple[str, ...] | None
) -> tuple[Sheet, tuple[str, ...]]:
    """The sheet with one to three habits, or with those named."""
    allowed = [habit for habit in HABITS if kind in habit.kinds]
    wanted = [BY_NAME[name] for name in names or ()]
    if names is None:
        wanted = rng.sample(allowed, rng.choice((0, 1, 1, 2)))
        # Separators first: the signs of what follows depend on them.
        wanted.sort(key=lambda habit: HABITS.index(habit))
    used = []
    for habit in wanted:
        changed = habit.change(sheet, rng)
        if changed is not None:
            sheet = changed
            used.append(habit.name)
    return sheet, tuple(used)


def ratings(rng: random.Random, names: tuple[str, ...] | None = None) -> Ratings:
    """12 to 30 ratings of few users and items, in stars or halves."""
    halves = rng.random() < 0.5
    text_ids = rng.random() < 0.4
    users = [f"u{k}" if text_ids else str(1000 + k) for k in range(1, 7)]
    items = [str(3 * k + 1) for k in range(9)]
    pairs = rng.sample([(u, i) for u in users for i in items], rng.randrange(12, 31))
    records = {
        pair: rng.choice((0.5, 1.5, 2.5, 3.5, 4.5)) if halves else float(rng.randrange(1, 6))
        for pair in pairs
    }
    rows = [[u, i, f"{value:g}"] for (u, i), value in records.items()]
    sheet = Sheet(["userId", "movieId", "rating"], rows, separator=rng.choice(",;\t"))
    sheet, used = apply(sheet, "ratings", rng, names)
    return Ratings(sheet.bytes(), used, records)


def quantities(rng: random.Random, names: tuple[str, ...] | None = None) -> Quantities:
    """6 to 15 rows of two to four quantities with blanks, after a column of labels."""
    count, width = rng.randrange(6, 16), rng.randrange(2, 5)
    values = np.array(
        [[round(rng.uniform(-50, 5000), rng.choice((0, 1, 2))) for _ in range(width)]
         for _ in range(count)]
    )  # fmt: skip
    values[np.array([[rng.random() < 0.2 for _ in range(width)] for _ in range(count)])] = np.nan
    rows = [
        [f"s{k}", *("" if np.isnan(v) else f"{v:g}" if abs(v) < 1e5 else str(v) for v in row)]
        for k, row in enumerate(values.tolist())
    ]
    # What was written, digit for digit, is what counts.
    values = np.array([[float(cell or "nan") for cell in row[1:]] for row in rows])
    header = ["station", *(f"q{k}" for k in range(width))]
    sheet = Sheet(header, rows, separator=rng.choice(",;\t"))
    sheet, used = apply(sheet, "table", rng, names)
    return Quantities(sheet.bytes(), used, values)
