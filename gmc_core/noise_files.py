"""Σ_w from a file: variances per item (CSV) or a covariance matrix (npy)."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gmc_core.errors import ConfigError, DataError
from gmc_core.ratings import Ratings
from gmc_core.signals import Layout


def load_noise(
    noise: float | str, ratings: Ratings, layout: Layout
) -> float | npt.NDArray[np.float64]:
    """The value of a ``noise`` setting for :meth:`gmc_core.noise.Noise.of`.

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
        try:
            return np.asarray(np.load(path, allow_pickle=False), dtype=np.float64)
        except (ValueError, TypeError, EOFError, OSError) as error:
            raise DataError(f"This is not a numeric .npy array: {error}.", path=path) from error
    if layout.kind != "rows":
        raise ConfigError(
            "Variances per item need rows as signals; with "
            f"{layout.kind} as signals an item is no coordinate of Σ_w."
        )
    return _item_variances(path, ratings)


def _item_variances(path: Path, ratings: Ratings) -> npt.NDArray[np.float64]:
    variances: list[float] = []
    ids: list[str] = []
    with path.open(newline="", encoding="utf-8-sig") as file:
        for line, row in enumerate(csv.reader(file), start=1):
            if not row or not any(cell.strip() for cell in row):
                continue
            try:
                value = float(row[-1])
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
                ids.append(row[0])
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
