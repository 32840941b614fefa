"""Checks of the parts of an imported run: refused is what would break the code that shows them.

Every function returns what it was given, or raises ValueError, TypeError or another of the errors
that :func:`gmc_core.runs.store.transfer.import_run` turns into a sentence.
"""

from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from gmc_core.base.array_archive import npy_header
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.fit import IterationRecord
from gmc_core.fitting.preparing import split_reading
from gmc_core.runs.store import artifacts
from gmc_core.runs.store.run import LONG_KEY
from gmc_core.runs.store.waiting import COST_KEY

# Arrays that were compressed: as for archives of ratings.
MAX_RATIO, RATIO_APPLIES_FROM_BYTES = 200, 100_000_000
LATEST = 250e9  # seconds since 1970 of the year 9892; later ones cannot be shown


def _number(value: Any) -> float | None:
    """A number, NaN included, or None."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise TypeError(f"{str(value)[:40]!r} where a number is expected")
    return None if value is None else float(value)


def checked_moment(value: Any) -> float | None:
    """Seconds since 1970 that a calendar has."""
    moment = _number(value)
    if moment is not None and not 0 <= moment <= LATEST:
        raise ValueError(f"{moment} is no time")
    return moment


def checked_count(value: Any) -> int:
    """A whole number of at least 0, as the database keeps it."""
    count = int(value)
    if count != value or not 0 <= count < 2**31:
        raise ValueError(f"{str(value)[:40]} is no count")
    return count


def count_or_none(value: Any) -> int | None:
    """The same, where there need not be one."""
    return None if value is None else checked_count(value)


def text_or_none(value: Any) -> str | None:
    """Anything as text."""
    return None if value is None else str(value)


def checked_dictionary(value: Any) -> dict[str, Any] | None:
    """A dictionary, None for an empty one."""
    if value is not None and not isinstance(value, dict):
        raise TypeError(f"{str(value)[:40]!r} where a description is expected")
    return value or None


def checked_numbers(value: Any, *needed: str) -> dict[str, Any] | None:
    """A dictionary, or None, whose ``needed`` entries are there, and are numbers or None."""
    found = checked_dictionary(value)
    for name in needed if found else ():
        assert found is not None
        _number(found[name])
    return found


def checked_cost(value: Any) -> dict[str, Any] | None:
    """The work; without estimate and permission to take long, which are another machine's."""
    found = checked_dictionary(value)
    if not found or set(found) == {LONG_KEY}:
        return found and {}
    checked_numbers(found, "seconds")
    return {name: part for name, part in found.items() if name not in (COST_KEY, LONG_KEY)}


def json_or_none(value: Any) -> str | None:
    """What the database keeps of it."""
    return None if value is None else json.dumps(value)


def checked_data(value: Any) -> dict[str, Any] | None:
    """What is said of the data: name, counts, scale."""
    found = checked_dictionary(value)
    if found is not None:
        for name in ("users", "items", "ratings"):
            checked_count(found[name])
        RatingScale(*map(_number, found["scale"]))  # type: ignore[arg-type]
        _number(found["divisor"])
        if not isinstance(found["name"], str) or not isinstance(found["sha256"], str):
            raise TypeError("the data have no name")
    return found


def checked_record(values: dict[str, Any]) -> IterationRecord:
    """One iteration, with its times."""
    record = IterationRecord.from_dict(values)
    checked_count(record.iteration)
    for value in values.values():
        _number(value)
    if None in (record.e_seconds, record.m_seconds, record.evaluation_seconds, record.noise):
        raise TypeError("a record without its times")
    return record


def checked_result(result: dict[str, Any]) -> dict[str, Any]:
    """A finished repetition."""
    checked_count(result["seed"])
    checked_count(result["n_test"])
    checked_numbers(result["scores"], "n", "nmae", "nmae_se", "mae", "rmse")
    return result


def checked_config(values: dict[str, Any]) -> ExperimentConfig:
    """The settings, which check themselves; of the reading options as far as they are given."""
    config = ExperimentConfig.from_dict(values)
    split_reading(config.reading)
    for name in ("format", "duplicates"):
        if not isinstance(config.reading.get(name, ""), str):
            raise TypeError(f"the setting {name} is no text")
    if not isinstance(config.reading.get("beside", False), bool):
        raise TypeError("the setting beside is neither true nor false")
    return config


def checked_sweep(value: Any, config: ExperimentConfig) -> dict[str, Any] | None:
    """The ε, L and seeds of a sweep."""
    if value is None:
        return None
    from gmc_core.runs.sweeps import SweepConfig

    return SweepConfig(config, **{name: tuple(values) for name, values in value.items()}).as_dict()


def check_arrays(path: Path) -> None:
    """Refuse arrays that would take more memory than the file explains, or hold objects."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        if total > RATIO_APPLIES_FROM_BYTES and total > MAX_RATIO * path.stat().st_size:
            raise ValueError(f"{path.name} would inflate to more than {MAX_RATIO} times its size")
        for member in members:
            with archive.open(member) as file:
                shape, _, dtype = npy_header(file)
                size = math.prod(shape) * dtype.itemsize
                if dtype.hasobject or size != member.file_size - file.tell():
                    raise ValueError(f"{path.name} holds what is no array of numbers")
    if path.name.startswith("picture-"):
        _check_picture(path)
    if path.name.startswith("held-out-"):
        held_out = artifacts.load_held_out(path.parent, int(path.stem.rsplit("-", 1)[1]))
        parts = vars(held_out).values() if held_out else ()
        if len({part.shape for part in parts}) != 1 or next(iter(parts)).ndim != 1:
            raise ValueError(f"{path.name} holds no predictions")


def _check_picture(path: Path) -> None:
    from gmc_core.model.pictures import MAX_BINS, Picture

    with np.load(path, allow_pickle=False) as file:
        if len(file["bin_starts"]) > MAX_BINS:  # reading makes a matrix of this number squared
            raise ValueError(f"{path.name} is larger than any picture")
    Picture.load(path)
