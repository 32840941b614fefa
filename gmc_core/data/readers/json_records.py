"""JSON as comma-separated text: records one a line or in an array, rows, or pandas's layouts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from gmc_core.base.errors import DataError
from gmc_core.data.readers.rows_as_text import RowText
from gmc_core.data.readers.text import decode

_REMEDY = (
    'give records such as {"user": 1, "item": 2, "rating": 3}, one a line or in an array, or '
    "save it as CSV"
)


def to_csv(data: bytes, path: object, *, cut: bool = False) -> bytes:
    """A header line with the names, then a line for each record.

    Numbers stay as they are written; null and what a record does not have are blank.

    cut : whether the data may end within a record, which is left out then.

    Raises
    ------
    DataError
        If the text is no JSON, or no table; names the line in the file.
    """
    if cut and b"\n" not in data[-4:]:
        data = data[: max(data.rfind(b"\n"), data.rfind(b"}") + 1)] or data
    text, _ = decode(data, str(path))
    text = text.lstrip()
    values = _values(text, path, cut)
    first = next(values, None)
    if isinstance(first, list):  # an array that holds the whole table
        rest = next(values, None)
        if rest is None:
            return _rows(first, path)
        return _rows([first, rest, *values], path)
    second = next(values, None)
    if isinstance(first, dict) and second is None:
        return _object(first, path)
    return _records((value for value in _chained(first, second, values)), path)


def _chained(first: Any, second: Any, others: Iterator[Any]) -> Iterator[Any]:
    yield first
    if second is not None:
        yield second
    yield from others


def _values(text: str, path: object, cut: bool) -> Iterator[Any]:
    """The values that follow each other; those of an outer array of records one by one."""
    decoder = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
    place, end = 0, len(text)
    inside = text.startswith("[") and text[1:].lstrip()[:1] == "{"
    if inside:
        place = 1
    while True:
        while place < end and (text[place].isspace() or (inside and text[place] == ",")):
            place += 1
        if place >= end or (inside and text[place] == "]"):
            return
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            if cut:
                return
            where = getattr(error, "pos", place)
            raise DataError(
                f"The JSON is damaged ({getattr(error, 'msg', 'too deep')}); correct the line, or "
                "save it as CSV.",
                path=path,
                line=text.count("\n", 0, where) + 1,
                value=text[where : where + 40],
            ) from None
        yield value


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else json.dumps(value)


def _records(records: Iterator[Any], path: object) -> bytes:
    """Objects of the same names, each a row; the names are those of all objects."""
    places: dict[str, int] = {}
    body = RowText(path)
    for number, record in enumerate(records, 1):
        if not isinstance(record, dict):
            raise DataError(
                f"Record {number:,} of the JSON is no object with names; {_REMEDY}.",
                path=path,
                value=json.dumps(record)[:80],
            )
        for name in record:
            places.setdefault(name, len(places))
        cells = [""] * len(places)
        for name, value in record.items():
            cells[places[name]] = _cell(value)
        body.add(cells or [""])
    if not places:
        raise DataError(f"The JSON holds no records; {_REMEDY}.", path=path)
    return _under(list(places), body, path)


def _rows(rows: Sequence[Any], path: object) -> bytes:
    """Arrays, each a row, the first perhaps of names."""
    body = RowText(path)
    for number, row in enumerate(rows, 1):
        if not isinstance(row, list) or any(isinstance(cell, list | dict) for cell in row):
            raise DataError(
                f"Row {number:,} of the JSON is no array of numbers and texts; {_REMEDY}.",
                path=path,
                value=json.dumps(row)[:80],
            )
        body.add([_cell(cell) for cell in row])
    if not body.rows:
        raise DataError(f"The JSON array is empty; {_REMEDY}.", path=path)
    return body.text()


def _object(whole: dict[str, Any], path: object) -> bytes:
    """One object: pandas's "split" or "columns", an array under one name, or a single record."""
    names, rows = whole.get("columns"), whole.get("data")
    if isinstance(names, list) and isinstance(rows, list):
        return _rows([names], path) + _rows(rows, path)
    tables = [value for value in whole.values() if isinstance(value, list)]
    if len(tables) == 1 and tables[0] and all(isinstance(one, dict) for one in tables[0]):
        return _records(iter(tables[0]), path)
    columns = list(whole.values())
    if columns and all(isinstance(column, dict) for column in columns):
        keys = {key: None for column in columns for key in column}
        lines = ([_cell(column.get(key)) for column in columns] for key in keys)
    elif columns and all(isinstance(column, list) for column in columns):
        if len({len(column) for column in columns}) > 1:
            raise DataError(
                f"The arrays of the JSON object are not equally long; {_REMEDY}.", path=path
            )
        lines = ([_cell(cell) for cell in row] for row in zip(*columns, strict=True))
    else:
        return _records(iter([whole]), path)
    body = RowText(path)
    body.extend(lines)
    return _under(list(whole), body, path)


def _under(names: list[str], body: RowText, path: object) -> bytes:
    """The rows under their header line."""
    head = RowText(path)
    head.add([str(name) or "(no name)" for name in names])
    return head.text() + body.text()
