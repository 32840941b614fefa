"""Σ_w from a file: variances per item (CSV) or a covariance matrix (npy)."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gmc_core.base.array_archive import npy_header
from gmc_core.base.errors import ConfigError, DataError, brief
from gmc_core.data.ratings import Ratings
from gmc_core.data.readers.source import open_source
from gmc_core.data.readers.text import decode
from gmc_core.gaussian.signals import Layout


def load_noise(
    noise: float | str, ratings: Ratings, layout: Layout
) -> float | npt.NDArray[np.float64]:
    """The value of a ``noise`` setting for :meth:`gmc_core.gaussian.noise.Noise.of`.

    Parameters
    ----------
    noise : a variance; or the path of a ``.csv`` with ``item,variance`` lines (or
        one variance a line, in the order of the items kept); or of an ``.npy``
        with an N × N matrix in the order of the items kept.
    ratings : the training ratings; their items are the matrix's order.
    layout : item variances need rows as signals.

    Raises
    ------
    ConfigError, DataError
        If the file cannot be read, misses an item, or does not fit the signals.
    """
    if not isinstance(noise, str):
        return noise
    path = Path(noise)
    if path.suffix not in (".csv", ".npy"):
        raise ConfigError(
            f"The noise is a variance, a .csv of variances or an .npy matrix, not {noise!r}."
        )
    if not path.is_file():
        raise DataError("There is no such noise file; check the path.", path=path)
    if path.suffix == ".npy":
        return _matrix(path)
    if layout.kind != "rows":
        raise ConfigError(
            "Variances per item need rows as signals; with "
            f"{layout.kind} as signals an item is no coordinate of Σ_w."
        )
    return _item_variances(path, ratings)


def _matrix(path: Path) -> npt.NDArray[np.float64]:
    """The array of an .npy file; memory is taken only for what the file holds."""
    try:
        with path.open("rb") as file:
            shape, fortran, dtype = npy_header(file)
            if dtype.kind not in "fiu":
                raise ValueError(f"it holds {dtype}")
            if math.prod(shape) * dtype.itemsize != path.stat().st_size - file.tell():
                raise ValueError("it is shorter or longer than it says")
            values = np.fromfile(file, dtype)
    except (ValueError, OSError, OverflowError) as error:
        raise DataError(
            f"This is not a numeric .npy matrix ({brief(error)}); save it with numpy.save.",
            path=path,
        ) from error
    return np.asarray(values.reshape(shape, order="F" if fortran else "C"), dtype=np.float64)


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """(line, cells) of all rows."""
    member = open_source(path).single
    if member is None:
        raise DataError("This is an archive, no .csv; unpack it.", path=path)
    reader = csv.reader(io.StringIO(decode(member.read(), str(path))[0], newline=""))
    try:
        return [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise DataError(
            f"The row cannot be divided into cells ({error}); a quotation mark may not be closed.",
            path=path,
            line=reader.line_num,
        ) from error


def _item_variances(path: Path, ratings: Ratings) -> npt.NDArray[np.float64]:
    variances: list[float] = []
    ids: list[str] = []
    for line, row in _rows(path):
        if not any(cell.strip() for cell in row):
            continue
        try:
            # float() also takes 1_0 and digits of other scripts, which no file means.
            value = float(row[-1] if row[-1].isascii() and "_" not in row[-1] else "?")
        except ValueError:
            if line == 1:
                continue  # a header
            raise DataError(
                "A variance must be a number; correct the line.",
                path=path, line=line, value=row[-1],
            ) from None  # fmt: skip
        if not (np.isfinite(value) and value >= 0):
            raise DataError(
                "A variance must be a finite number of at least 0.",
                path=path, line=line, value=row[-1],
            )  # fmt: skip
        variances.append(value)
        if len(row) > 1:
            ids.append(row[0].strip())
    if ids and len(ids) != len(variances):
        raise DataError("Give every line an item id, or none.", path=path)
    array = np.array(variances)
    if not ids:
        if len(array) != ratings.n_items:
            raise DataError(
                f"There are {len(array):,} variances for {ratings.n_items:,} items; give one per "
                "item, or lines of item,variance.",
                path=path,
            )
        return array
    item, times = Counter(ids).most_common(1)[0]
    if times > 1:
        raise DataError(f"An item has {times:,} variances; leave one.", path=path, value=item)
    positions = ratings.items.find(ids)
    result = np.full(ratings.n_items, np.nan)
    result[positions[positions >= 0]] = array[positions >= 0]
    missing = np.flatnonzero(np.isnan(result))
    if len(missing):
        raise DataError(
            f"{len(missing):,} items have no variance, the first {ratings.items.ids[missing[0]]}; "
            "add a line for each.",
            path=path,
        )
    return result
