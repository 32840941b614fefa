"""Excel workbooks (.xlsx) as comma-separated text: the first sheet that holds anything."""

from __future__ import annotations

import datetime
import io
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from gmc_core.base.errors import DataError, brief
from gmc_core.data.readers.rows_as_text import RowText

MAX_ROWS = 1_048_576  # of a sheet of Excel
MAX_INFLATED = 1024**3  # bytes; the texts of a workbook are held while it is read
_FORMULA = re.compile(rb"<(?:\w+:)?f[\s/>]")
_ROW = re.compile(rb"<(?:\w+:)?row(\s[^>]*)?>")
_ROW_NUMBER = re.compile(rb"\sr\s*=\s*[\"'](\d{1,30})")
_DECLARED = re.compile(rb"<!(?:DOCTYPE|ENTITY)")

# Called with a part's compressed and inflated size in bytes; raises for a decompression bomb.
Check = Callable[[object, int, int], None]


def to_csv(data: bytes, path: object, check: Check, rows: int | None = None) -> bytes:
    """The first sheet with content; row k stands on line k.

    rows : only so many, from the first; None for all.

    Raises
    ------
    DataError
        If the workbook is damaged, encrypted or a bomb, has no content, or holds formulas
        without their values.
    """
    values, formulas = _opened(data, path, check)
    position = _first_filled(values, path)
    own = formulas and formulas.worksheets[position]
    text: bytes = _guarded(path, _sheet, values.worksheets[position], own, path, rows)
    return text


def first_sheet(data: bytes, path: object, check: Check) -> str:
    """The name of the sheet that :func:`to_csv` reads, and how many there are; "" for one only.

    Raises
    ------
    DataError
        As :func:`to_csv`.
    """
    book = _opened(data, path, check)[0]
    count = len(book.worksheets)
    if count < 2:
        return ""
    return f"sheet {book.worksheets[_first_filled(book, path)].title!r} of {count}"


def _first_filled(book: Any, path: object) -> int:
    """The position of the first sheet with content."""
    for position, sheet in enumerate(book.worksheets):
        if _guarded(path, _is_filled, sheet):
            return position
    raise DataError("No sheet of the workbook holds anything; give one with rows.", path=path)


def _is_filled(sheet: Any) -> bool:
    sheet.reset_dimensions()  # the size that the file declares is not trusted
    return any(
        _cell(value).strip() for cells in sheet.iter_rows(values_only=True) for value in cells
    )


def _guarded(path: object, action: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    """Call the workbook library, which trusts the file; its errors become a DataError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions, which no value needs
            return action(*arguments, **more)
    except DataError:
        raise
    except Exception as error:
        raise DataError(
            f"The Excel workbook is damaged ({brief(error)}); save it again, or as CSV.", path=path
        ) from error


def _opened(data: bytes, path: object, check: Check) -> tuple[Any, Any]:
    """The workbook with its values, and where there are formulas a second time with those."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise DataError(
            "This is an Excel workbook; save it as CSV and give that file, or install the Python "
            "package openpyxl to have workbooks read.",
            path=path,
        ) from None
    # What is measured here is what the library sees: the parts are packed anew, as they are.
    plain, formulas = _guarded(path, _measured, data, path, check)

    def opened(values: bool) -> Any:
        file = io.BytesIO(plain)
        return _guarded(path, load_workbook, file, read_only=True, data_only=values)

    return opened(True), opened(False) if formulas else None


def _measured(data: bytes, path: object, check: Check) -> tuple[bytes, bool]:
    """The same workbook with stored parts, and whether a sheet has formulas."""
    out, total, formulas = io.BytesIO(), 0, False
    with (
        zipfile.ZipFile(io.BytesIO(data)) as archive,
        zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as plain,
    ):
        for info in archive.infolist():
            if info.flag_bits & 1 or info.compress_type not in (0, zipfile.ZIP_DEFLATED):
                raise DataError(
                    "The Excel workbook is packed in an unusual way or protected by a password; "
                    "save it as CSV.",
                    path=path,
                )
            total += info.file_size
            check(path, len(data), total)
            if total > MAX_INFLATED:
                raise DataError(
                    f"The workbook holds more than {MAX_INFLATED / 1024**3:g} GB; save it as CSV.",
                    path=path,
                )
            if not info.filename.endswith((".xml", ".rels")):
                continue  # pictures
            part = archive.read(info)  # never more than the size that was checked
            _check_part(part, path)
            sheet = "worksheets/" in info.filename
            formulas = formulas or (sheet and _FORMULA.search(part) is not None)
            plain.writestr(info.filename, part)
    return out.getvalue(), formulas


def _check_part(part: bytes, path: object) -> None:
    """Refuse what no spreadsheet program writes, or the library would drop or read without end."""
    if _DECLARED.search(part) or b"\0" in part:  # UTF-16 would hide a declaration
        raise DataError(
            "The workbook declares entities or has an unusual encoding, which no spreadsheet "
            "program writes; save it as CSV.",
            path=path,
        )
    number = 0
    for row in _ROW.finditer(part):
        own = _ROW_NUMBER.search(row[1] or b"")
        before, number = number, int(own[1]) if own else number + 1
        if number > MAX_ROWS:
            raise DataError(
                f"The workbook has a row {number:,}, and a sheet has at most {MAX_ROWS:,}; save it "
                "again, or as CSV.",
                path=path,
            )
        if number <= before:
            raise DataError(
                f"The workbook is damaged (row {number:,} comes after row {before:,}); save it "
                "again, or as CSV.",
                path=path,
            )


def _sheet(sheet: Any, formulas: Any, path: object, rows: int | None) -> bytes:
    """The text of a sheet."""
    text = RowText(path)
    blank = 0  # rows without content since the last one that has some
    for number, (cells, own) in enumerate(islice(_pairs(sheet, formulas), rows), 1):
        line = [_cell(cell.value) for cell in cells]
        while line and not line[-1]:
            line.pop()
        if own is not None:
            _check_formulas(cells, own, number, path)
        if not line:
            blank += 1
            continue
        text.extend([[]] * blank)
        text.add(line)
        blank = 0
    return text.text()


def _pairs(sheet: Any, formulas: Any) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...] | None]]:
    """(cells with their values, what the cells hold themselves or None) of each row."""
    sheet.reset_dimensions()
    if formulas is None:
        return ((cells, None) for cells in sheet.iter_rows())
    formulas.reset_dimensions()
    return zip(sheet.iter_rows(), formulas.iter_rows(), strict=True)


def _check_formulas(cells: tuple[Any, ...], own: tuple[Any, ...], line: int, path: object) -> None:
    """A formula whose value the file does not hold would read as a blank."""
    for cell, formula in zip(cells, own, strict=True):
        if cell.value is not None or cell.data_type == "str":  # a text, perhaps an empty one
            continue
        if formula.data_type == "f":
            raise DataError(
                "The workbook holds a formula without its value; open it in a spreadsheet program "
                "and save it again, or save it as CSV.",
                path=path,
                line=line,
                value=getattr(formula.value, "text", formula.value),  # of an array formula
            )


def _cell(value: object) -> str:
    """A value as text that gives it back."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime.datetime):
        whole = (value.hour, value.minute, value.second, value.microsecond) == (0, 0, 0, 0)
        return value.date().isoformat() if whole else value.isoformat(sep=" ")
    return str(value)
