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

from gmc_core.errors import DataError, brief
from gmc_core.readers.rows import RowText

MAX_ROWS = 1_048_576  # of a sheet of Excel
MAX_INFLATED = 1024**3  # bytes; the texts of a workbook are held while it is read
_FORMULA = re.compile(rb"<(?:\w+:)?f[\s/>]")
_DECLARED = re.compile(rb"<!(?:DOCTYPE|ENTITY)")

# Called with what a part takes packed and inflated; raises for a bomb.
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
    books = _opened(data, path, check)
    for position, sheet in enumerate(books[0].worksheets):
        text = _guarded(path, _sheet, sheet, books[1] and books[1].worksheets[position], path, rows)
        if text is not None:
            return text
    raise _empty(path)


def first_sheet(data: bytes, path: object, check: Check) -> str:
    """The name of the sheet that :func:`to_csv` reads, and how many there are; "" for one only.

    Raises
    ------
    DataError
        As :func:`to_csv`.
    """
    book = _opened(data, path, check)[0]
    if len(book.worksheets) < 2:
        return ""
    for sheet in book.worksheets:
        if _guarded(path, _sheet, sheet, None, path, None) is not None:
            return f"sheet {sheet.title!r} of {len(book.worksheets)}"
    raise _empty(path)


def _empty(path: object) -> DataError:
    return DataError("No sheet of the workbook holds anything; give one with rows.", path=path)


def _guarded(path: object, action: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    """What a library that believes the file returns; its errors as a sentence."""
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
        from openpyxl import load_workbook  # type: ignore[import-untyped, unused-ignore]
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
            if _DECLARED.search(part):
                raise DataError(
                    "The workbook declares entities, which no spreadsheet program writes; save it "
                    "as CSV.",
                    path=path,
                )
            sheet = "worksheets/" in info.filename
            formulas = formulas or (sheet and _FORMULA.search(part) is not None)
            plain.writestr(info.filename, part)
    return out.getvalue(), formulas


def _sheet(sheet: Any, formulas: Any, path: object, rows: int | None) -> bytes | None:
    """The text of a sheet; None if it is empty or holds a chart."""
    text = RowText(path)
    blank = 0  # rows without content since the last one that has some
    for number, (cells, own) in enumerate(islice(_pairs(sheet, formulas), rows), 1):
        if number > MAX_ROWS:
            raise DataError(f"The sheet has more than {MAX_ROWS:,} rows.", path=path)
        line = [_cell(value) for value in cells]
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
    return text.text() if text.rows else None


def _pairs(sheet: Any, formulas: Any) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...] | None]]:
    """(values, what the cells hold themselves or None) of each row."""
    sheet.reset_dimensions()  # the file's own account of its size is not believed
    if formulas is None:
        return ((cells, None) for cells in sheet.iter_rows(values_only=True))
    formulas.reset_dimensions()
    return zip(sheet.iter_rows(values_only=True), formulas.iter_rows(values_only=True), strict=True)


def _check_formulas(values: tuple[Any, ...], own: tuple[Any, ...], line: int, path: object) -> None:
    """A formula whose value the file does not hold would read as a blank."""
    for value, content in zip(values, own, strict=True):
        if value is None and isinstance(content, str) and content.startswith("="):
            raise DataError(
                "The workbook holds a formula without its value; open it in a spreadsheet program "
                "and save it again, or save it as CSV.",
                path=path,
                line=line,
                value=content,
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
