"""What the columns of a plain table are: labels or quantities, and which cells are missing.

A number that only names its row (a running number, a patient's id, an account) must not
be completed, and must not predict anything. It is kept aside, and the report says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError
from gmc_core.base.table_files import number_text
from gmc_core.data.readers.doubts import counts_rows, ends, ruined_ids
from gmc_core.data.readers.not_rated import code_numbers, code_of
from gmc_core.data.readers.numbers import NumberForm

# What stands for a missing entry, in any case.
BLANKS = frozenset({"", "na", "n/a", "nan", "null", "none", "."})
# A first column of these names is labels, whatever it holds; the last three are those
# that R and pandas give to row names.
ID_NAMES = frozenset(
    {"id", "name", "key", "label", "index", "", "row.names", "rownames", "unnamed: 0"}
)
# A number in a column whose name ends with one of these words is an identifier, no quantity.
_ID_WORDS = frozenset({"id", "ids", "uid", "uuid", "guid", "identifier"})
# A first column of these names is labels if it holds whole numbers, all of them different.
_ROW_NAMES = frozenset(
    {
        "#", "no.", "nr", "nr.", "number", "row", "obs", "observation", "case", "record", "entry",
        "user", "person", "subject", "patient", "participant", "respondent", "customer", "client",
        "member", "employee", "student", "account", "item", "product", "order", "sample",
        "specimen", "station", "rowname", "row_names", "rowid",
    }
)  # fmt: skip
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_WHOLE = re.compile(r"[+-]?\d+")
_EXACT = 2**53  # up to here a double holds every whole number
_FEWEST_OTHERS = 3
_MOST_TOLD = 5
_LEAST_COUNTED = 10  # in fewer rows a column of 1, 2, 3, … may be a quantity

POINT = NumberForm()

Cells = Sequence[object]


def label_columns(
    names: Sequence[str],
    cells: Callable[[int], Cells],
    is_text: Callable[[int], bool],
    *,
    named: Sequence[str] = (),
    quantities: Sequence[str] = (),
    known: Sequence[int] = (),
) -> list[int]:
    """Positions of the columns that are kept aside.

    Parameters
    ----------
    names : of all columns. cells : the entries of a column, texts or whole numbers, None
        or a text of ``BLANKS`` where there is none. is_text : whether a column holds
        entries and no number.
    named : names given as labels; then only these are, and ``known``.
    quantities : names given as quantities, which nothing else overrules.
    known : positions that the file itself calls an index.

    Raises
    ------
    ConfigError
        If there is no column of a given name.
    """
    wanted = {position_of(names, name) for name in named}
    kept = {position_of(names, name) for name in quantities}
    if wanted & kept:
        both = names[min(wanted & kept)]
        raise ConfigError(
            f"The column {both!r} is given as labels and as a quantity; leave out one."
        )
    if wanted:
        return sorted((wanted | set(known)) - kept)
    found = set(known)
    for index, name in enumerate(names):
        # Row names may stand in the first column, or right after other row names.
        own, first = name.strip().lower(), all(before in found for before in range(index))
        if (
            (first and (own in ID_NAMES or is_text(index)))
            or own.startswith("__index_level_")
            or is_identifier(name, cells(index), first=first)
        ):
            found.add(index)
    return sorted(found - kept)


def is_identifier(name: str, cells: Cells, *, first: bool) -> bool:
    """Whether the numbers of a column only name something.

    They do if all are whole and the name says so (``patient_id``; in the first column
    ``user`` or ``row`` where all differ too), or if they are too long for numbers that
    one computes with, or begin with 0: neither would come back digit for digit. Among
    numbers too long, those that a spreadsheet has shortened (1.23457E+18) were so once.
    """
    texts, ruined = [], 0
    for cell in cells:
        text = "" if cell is None else str(cell).strip()
        if text.lower() in BLANKS:
            continue
        if _WHOLE.fullmatch(text):
            texts.append(text)
        elif ruined_ids([text]):
            ruined += 1
        else:
            return False
    long = sum(map(is_long, texts))
    if ruined or not texts:
        return long > 0 and 2 * (long + ruined) > len(texts) + ruined
    words = _WORDS.findall(name)
    if words and words[-1].lower() in _ID_WORDS:
        return True
    if first and name.strip().lower() in _ROW_NAMES and len(set(texts)) == len(cells):
        return True
    digits = [text.lstrip("+-") for text in texts]
    zeros = any(len(text) > 2 and text[0] == "0" for text in digits)  # 01 may be a month
    return zeros or 2 * long > len(digits)


def is_long(text: str) -> bool:
    """Whether a whole number is one that floating point would not give back digit for digit."""
    return len(text) > 15 and bool(_WHOLE.fullmatch(text)) and abs(int(text)) > _EXACT


def position_of(names: Sequence[str], name: str) -> int:
    """Where a column of this name stands.

    Raises
    ------
    ConfigError
        If there is none; names those that there are.
    """
    if name not in names:
        raise ConfigError(
            f"There is no column named {name!r}; the columns are {', '.join(names[:10])}"
            f"{', …' if len(names) > 10 else ''}."
        )
    return list(names).index(name)


def aside_notes(
    names: Sequence[str], aside: Sequence[int], quantities: Sequence[str], values: np.ndarray
) -> tuple[str, ...]:
    """Which columns were kept aside, and which one counts the rows and was not."""
    notes = []
    if aside:
        told = ", ".join(names[index] or "the first, unnamed" for index in aside)
        notes.append(f"kept aside as labels, not completed: {told}")
    if (
        0 not in aside
        and names[0] not in quantities
        and counts_rows(values[:, :1].ravel().tolist(), _LEAST_COUNTED)
    ):
        notes.append(
            f"the column {names[0]!r} counts the rows; if it is no quantity, name it as labels "
            f"(--id-column {names[0]!r})"
        )
    return tuple(notes)


class Missing:
    """Which cells are missing entries, and how many of each given code there were."""

    def __init__(self, codes: Sequence[str]) -> None:
        self.codes = tuple(code.strip() for code in codes)
        self.counts = Counter(dict.fromkeys(self.codes, 0))

    def is_blank(self, cell: str, form: NumberForm = POINT) -> bool:
        """Whether a cell stands for no entry; counts the codes that were given.

        form : in which the table's numbers are written, as soon as it is known.
        """
        code = code_of(cell, self.codes, form.decimal, form.thousands)
        if code is not None:
            self.counts[code] += 1
            return True
        return cell.strip().lower() in BLANKS

    def without(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """(n,) numbers with NaN for the given codes, which are counted."""
        result = values.copy()
        for number, code in code_numbers(self.codes, ",").items():
            found = values == number
            self.counts[code] += int(found.sum())
            result[found] = np.nan
        return result

    def notes(self) -> tuple[str, ...]:
        """How many cells each code made missing."""
        if not self.codes:
            return ()
        told = ", ".join(f"{code!r} ({self.counts[code]:,})" for code in self.codes)
        return (f"read as missing, besides blanks: {told}",)


def far_off_notes(names: Sequence[str], values: npt.NDArray[np.float64]) -> tuple[str, ...]:
    """A sentence for each repeated value that stands far from all others of its column.

    Such a value, -99 or 999 say, often means "missing". It is the least or the largest
    one of a column, at least as far from the next as that column's other values reach,
    and occurs more than once in the table.
    """
    found: dict[float, list[int]] = {}
    for index in range(values.shape[1]):
        distinct = np.unique(values[~np.isnan(values[:, index]), index])
        if len(distinct) <= _FEWEST_OTHERS:
            continue
        for end in ends(distinct):
            if end.gap >= end.width:
                found.setdefault(end.value, []).append(index)
    notes = []
    for value, columns in found.items():
        count = int((values[:, columns] == value).sum())
        if count > 1:
            where = ", ".join(names[index] for index in columns[:_MOST_TOLD])
            where += ", …" if len(columns) > _MOST_TOLD else ""
            notes.append(
                f"{number_text(value)} occurs {count:,} times and is far from all other values of "
                f"{where}; if it means that a value is missing, say so (--na {number_text(value)})"
            )
    return tuple(notes)
