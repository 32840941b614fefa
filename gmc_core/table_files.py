"""Writing tables row block by row block, as CSV or parquet, completely or not at all."""

from __future__ import annotations

import csv
import os
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.errors import ConfigError, ResourceError
from gmc_core.files import give_usual_rights

FORMATS = ("csv", "parquet")

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
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def format_of(path: str | os.PathLike[str], format: str | None = None) -> str:
    """ "csv" or "parquet", as asked or by the file's suffix.

    Raises
    ------
    ConfigError
        If it is neither, or parquet is not available.
    """
    found = format or Path(path).suffix.lower().removeprefix(".")
    if found not in FORMATS:
        raise ConfigError(
            f"A table is written as .csv or .parquet, not {str(path)!r}; give a name that ends so."
        )
    if found == "parquet":
        parquet_module()
    return found


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
    path : replaced only when all rows are written (on leaving the ``with`` block).
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
        try:
            handle, self._temporary = tempfile.mkstemp(
                dir=self.path.parent, prefix=f".{self.path.name}.", suffix=".part"
            )
        except OSError as error:
            raise _unwritable(self.path, error) from error
        if self.format == "csv":
            self._file = os.fdopen(handle, "w", encoding="utf-8", newline="")
            self._csv = csv.writer(self._file, lineterminator="\n")
            self._csv.writerow([safe_text(name) for name in (*self.labels, *self.numbers)])
        else:
            os.close(handle)
        return self

    def write(
        self,
        labels: Sequence[Sequence[object]],
        values: npt.NDArray[np.float64],
        exact: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """Append rows.

        labels : one sequence per label column.
        values : (rows, numbers); NaN is an empty cell.
        exact : where a CSV must give back the very number; elsewhere six digits do.
        """
        try:
            if self.format == "csv":
                self._write_csv(labels, values, exact)
            else:
                self._write_parquet(labels, values)
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def _write_csv(
        self,
        labels: Sequence[Sequence[object]],
        values: npt.NDArray[np.float64],
        exact: npt.NDArray[np.bool_] | None,
    ) -> None:
        for index, row in enumerate(values):
            cells = [f"{value:.6g}" if value == value else "" for value in row.tolist()]
            if exact is not None:
                for place in np.flatnonzero(exact[index]).tolist():
                    cells[place] = number_text(float(row[place]))
            self._csv.writerow([*(safe_text(column[index]) for column in labels), *cells])

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
            self._parquet = parquet_module().ParquetWriter(self._temporary, block.schema)
        self._parquet.write_table(block)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self.format == "csv":
                self._file.close()
            elif self._parquet is not None:
                self._parquet.close()
            if kind is None:
                give_usual_rights(self._temporary)
                os.replace(self._temporary, self.path)
        except OSError as failure:
            raise _unwritable(self.path, failure) from failure
        finally:
            with suppress(OSError):
                os.unlink(self._temporary)


def _unwritable(path: Path, error: OSError) -> ResourceError:
    return ResourceError(
        f"{path}: cannot be written ({error.strerror or error}). Choose another folder, or make "
        "room on the disk."
    )
