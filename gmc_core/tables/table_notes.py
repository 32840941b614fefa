"""Sentences on a plain table: what its labels look like, and what it lacks."""

from __future__ import annotations

from collections.abc import Sequence

from gmc_core.data.readers.column_notes import is_summary, summary_note
from gmc_core.data.readers.doubts import ruined_ids, ruined_note
from gmc_core.data.readers.numbers import parse_number, possible_forms


def is_number(cell: str) -> bool:
    """Whether a cell is a number in one of the forms in which people write them."""
    return any(
        parse_number(cell, form.decimal, form.thousands) is not None
        for form in possible_forms("", True)
    )


def ruined_notes(
    names: Sequence[str], labels: Sequence[Sequence[str]], lines: Sequence[int]
) -> list[str]:
    """A sentence for each column of labels whose long numbers were shortened.

    names, labels : of the columns kept aside. lines : of the rows.
    """
    notes = []
    for name, column in zip(names, labels, strict=True):
        ruined = ruined_ids(column)
        if ruined:
            notes.append(ruined_note(name or "first", ruined, lines[list(column).index(ruined[0])]))
    return notes


def last_row_notes(labels: Sequence[Sequence[object]], lines: Sequence[int]) -> list[str]:
    """A sentence if the last row may sum up the others, by its first label."""
    label = labels[0][-1] if labels and len(labels[0]) else None
    if not isinstance(label, str) or not is_summary(label):
        return []
    return [summary_note(label, int(lines[-1]))]


def texts_aside(
    names: Sequence[str], labels: Sequence[Sequence[object]], lines: Sequence[int]
) -> list[str]:
    """Why each column of texts was kept aside: "x ('10%' in line 2 is no number)"."""
    told = []
    for name, column in zip(names, labels, strict=True):
        what = name or "the unnamed one"
        for cell, line in zip(column, lines, strict=True):
            if isinstance(cell, str) and cell.strip():
                if not is_number(cell):
                    what += f" ({cell.strip()[:40]!r} in line {line} is no number)"
                break
        told.append(what)
    return told


def spoiled_notes(
    header: Sequence[str],
    labels: Sequence[Sequence[str]],
    aside: Sequence[int],
    lines: Sequence[int],
) -> list[str]:
    """A sentence for each column after the first that its texts with digits, 10% say, keep aside.

    header : of all columns. aside : those of the labels. lines : of the rows.
    """
    notes = []
    for index, column in zip(aside, labels, strict=True):
        row = next((row for row, cell in enumerate(column) if cell), None)
        if index == 0 or row is None or is_number(column[row]):
            continue
        if any(map(str.isdigit, column[row])):
            notes.append(
                f"the column {header[index]!r} is taken as labels, because {column[row][:40]!r} "
                f"(line {lines[row]}) is no number"
            )
    return notes


def too_few_columns(count: int, aside: Sequence[str]) -> str:
    """That a table has too few columns of quantities; aside : as :func:`texts_aside` has it."""
    there = "There is 1 column" if count == 1 else f"There are {count} columns"
    remedy = f" Kept aside as labels: {', '.join(aside)}." if aside else ""
    if aside:
        remedy += (
            " Correct what is no number, and name the quantities among them (--quantity NAME)."
        )
    return (
        f"{there} of quantities; completing needs at least two, since one is filled from the "
        f"others.{remedy}"
    )
