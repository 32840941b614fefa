"""Writing tables row block by row block, as CSV or parquet, completely or not at all."""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError, ResourceError
from gmc_core.base.files import replacing, written_in_place

FORMATS = ("csv", "parquet")
# Other numbers of a table, each in a file of its own beside it.
BESIDE = {
    "sd": "the standard deviations",
    "low": "the lower ends of the intervals",
    "high": "the upper ends of the intervals",
}

# The wide forms are formulas too where spreadsheets are set to East Asian languages.
_FORMULA_SIGNS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def safe_text(value: object) -> str:
    """A text cell that a spreadsheet shows instead of executing.

    Text that starts with a tab or a line end or, after blanks, with = + - @ gets a leading
    apostrophe (ids and titles come from files of others); numbers stay as they are. A
    carriage return becomes a line feed: only that is put in quotation marks by the csv
    module, and what follows it would be taken for another row.
    """
    text = str(value).replace("\r\n", "\n").replace("\r", "\n")
    odd = text.startswith(("\t", "\n")) or text.lstrip().startswith(_FORMULA_SIGNS)
    return "'" + text if odd and not _NUMBER.fullmatch(text) else text


def number_text(value: float) -> str:
    """The shortest text that reads back as the same number; "" for NaN."""
    if value != value:
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def rounded_text(value: float, sd: float) -> str:
    """A number for people: six digits, or as many as show a thousandth of its deviation.

    "" for NaN. A deviation that is 0 or not known asks for no more than six.
    """
    if value != value:
        return ""
    digits = 6
    if value and math.isfinite(value) and math.isfinite(sd) and sd > 0:
        digits = 4 + math.floor(math.log10(abs(value))) - math.floor(math.log10(sd))
    return f"{value:.{min(max(digits, 6), 15)}g}"


def format_of(path: str | os.PathLike[str], format: str | None = None) -> str:
    """ "csv" or "parquet", as asked or by the file's suffix.

    A device, a pipe or a descriptor without a suffix gets CSV.

    Raises
    ------
    ConfigError
        If it is neither, or parquet is not available.
    """
    found = format or Path(path).suffix.lower().removeprefix(".")
    if not found and written_in_place(Path(path)):
        found = "csv"
    if found not in FORMATS:
        raise ConfigError(
            f"A table is written as .csv or .parquet, not {str(path)!r}; give a name that ends so."
        )
    if found == "parquet":
        parquet_module()
    return found


def path_beside(path: Path, name: str) -> Path:
    """The file of other numbers beside that of a table: ``table.sd.csv`` for the name "sd".

    Raises
    ------
    ConfigError
        If the table goes into a device or a pipe, which has nothing beside it.
    """
    if written_in_place(path):
        raise ConfigError(
            f"{path} takes one table, and {BESIDE[name]} are a second one; give the name of a "
            "file, or leave them out (for the ratings of a model, --long writes one table)."
        )
    return path.with_suffix(f".{name}{path.suffix}")


def parquet_module() -> Any:
    """pyarrow.parquet.

    Raises
    ------
    ConfigError
        If pyarrow is not installed.
    """
    try:
        import pyarrow.parquet
    except ImportError:
        raise ConfigError(
            "Parquet needs the package pyarrow; install it (pip install pyarrow), or use .csv."
        ) from None
    return pyarrow.parquet


class TableWriter:
    """A table of label columns and number columns, written in blocks of rows.

    Parameters
    ----------
    path : replaced only when all rows are written (on leaving the ``with`` block); see
        :func:`gmc_core.base.files.replacing` for links, devices and pipes.
    labels, numbers : column names; labels come first.
    format : "csv" or "parquet"; by the suffix if None.

    Raises
    ------
    ConfigError, ResourceError
        If the format is unknown, or the file cannot be written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        labels: Sequence[str],
        numbers: Sequence[str],
        format: str | None = None,
    ) -> None:
        self.path = Path(path)
        self.labels, self.numbers = list(labels), list(numbers)
        self.format = format_of(path, format)
        self._parquet: Any = None

    def __enter__(self) -> TableWriter:
        self._target = replacing(self.path)
        try:
            file = self._target.__enter__()
        except OSError as error:
            raise _unwritable(self.path, error) from error
        if self.format == "csv":
            self._text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            self._csv = csv.writer(self._text, lineterminator="\n")
            self._csv.writerow([safe_text(name) for name in (*self.labels, *self.numbers)])
        else:
            self._binary = file
        return self

    def write(self, labels: Sequence[Sequence[object]], values: npt.NDArray[np.float64]) -> None:
        """Append rows.

        labels : one sequence per label column.
        values : (rows, numbers); NaN is an empty cell. Both formats hold the very
            numbers, a CSV in the shortest text that reads back.
        """
        try:
            if self.format == "csv":
                self._write_csv(labels, values)
            else:
                self._write_parquet(labels, values)
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def _write_csv(
        self, labels: Sequence[Sequence[object]], values: npt.NDArray[np.float64]
    ) -> None:
        for index, row in enumerate(values):
            cells = map(number_text, row.tolist())
            self._csv.writerow([*(label_text(column[index]) for column in labels), *cells])

    def _write_parquet(
        self, labels: Sequence[Sequence[object]], values: npt.NDArray[np.float64]
    ) -> None:
        import pyarrow

        columns = [pyarrow.array(list(column)) for column in labels]
        columns += [
            pyarrow.array(np.ascontiguousarray(column), from_pandas=True) for column in values.T
        ]
        block = pyarrow.Table.from_arrays(columns, names=[*self.labels, *self.numbers])
        if self._parquet is None:
            self._parquet = parquet_module().ParquetWriter(self._binary, block.schema)
        self._parquet.write_table(block)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None and self.format == "csv":
                self._text.detach()  # written out, and left to be closed by its owner
            elif self._parquet is not None:
                self._parquet.close()
            self._target.__exit__(kind, error, trace)
        except OSError as failure:
            if failure is error:
                raise
            raise _unwritable(self.path, failure) from failure


def label_text(value: object) -> str:
    """A label's cell; nothing where there is none."""
    return "" if value is None else safe_text(value)


def _unwritable(path: Path, error: OSError) -> ResourceError:
    if isinstance(error, BrokenPipeError):
        raise error  # the program that reads the pipe has ended
    return ResourceError(
        f"{path}: cannot be written ({error.strerror or error}). Choose another folder, or make "
        "room on the disk."
    )
