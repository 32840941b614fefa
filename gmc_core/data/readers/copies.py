"""Copies of large tables of ratings as they were read, so that the next start need not read them.

A copy is an archive of arrays in the cache folder, under the hash of all that decides what is read:
the source's files (size, times of change and place on the disk), the options, and the code that
reads. It is written whole or not at all, so that starts at the same time do no harm, and is
believed only as far as its own hashes go; where anything is wrong with it, the source is read.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import time
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gmc_core.base import array_archive
from gmc_core.base.errors import GmcError, brief
from gmc_core.base.version import package_version
from gmc_core.data.downloads import cache_folder
from gmc_core.data.ratings import ItemInfo, Ratings, RatingScale
from gmc_core.data.readers.report import Loaded, LoadReport
from gmc_core.data.readers.scales import BLOCK
from gmc_core.data.readers.stamps import files_of
from gmc_core.data.vocabulary import Vocabulary, frozen

FORMAT, VERSION, ENDING = "gmc ratings", 1, ".gmc-ratings"
LEAST_RATINGS = 2_000_000  # fewer are read in a second
LEAST_BYTES = 8_000_000  # of the source; so many ratings take more, even packed
# All copies together; beyond it those go that were used longest ago. MovieLens 32M takes .3 GB.
KEPT_BYTES = 4 * 1000**3
# A file that was changed just now may be changed again without its times telling.
SETTLED_SECONDS = 2

log = logging.getLogger(__name__)


def copies_folder() -> Path:
    """Where the copies are."""
    return cache_folder() / "ratings"


def copies() -> list[tuple[Path, int]]:
    """The copies that there are, with their bytes, the one used last first."""
    found = []
    for path in copies_folder().glob(f"*{ENDING}"):
        with suppress(OSError):
            state = path.stat()
            found.append((state.st_mtime_ns, path, state.st_size))
    return [(path, size) for _, path, size in sorted(found, reverse=True)]


def key_of(path: str | os.PathLike[str], reading: object) -> str | None:
    """All that decides what is read of a path, as a text; None where no copy is to be had.

    reading : the options, whose ``repr`` tells them apart.
    """
    try:
        place = Path(path).expanduser().resolve()
        states = [(name, file.stat()) for name, file in files_of(place).items()]
    except (OSError, GmcError, ValueError, RuntimeError):
        return None
    if sum(state.st_size for _, state in states) < LEAST_BYTES:
        return None
    if max(state.st_mtime_ns for _, state in states) > time.time_ns() - SETTLED_SECONDS * 10**9:
        return None
    stamps = [
        (name, state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)
        for name, state in states
    ]
    # The path as it was given too: reports quote it.
    what = (VERSION, package_version(), _code(), os.fspath(path), str(place), stamps, reading)
    return repr(what)


@cache
def _code() -> str:
    """Changes with the code that reads."""
    folder = Path(__file__).parent.parent
    states = [(file.name, file.stat()) for file in sorted(folder.rglob("*.py"))]
    stamps = [(name, state.st_size, state.st_mtime_ns) for name, state in states]
    return hashlib.sha256(repr(stamps).encode()).hexdigest()


def _place(key: str) -> Path:
    return copies_folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}{ENDING}"


def find(key: str) -> Loaded | None:
    """The ratings of a copy; None if there is none that can be believed."""
    path = _place(key)
    if not path.is_file():
        return None
    try:
        header, arrays = array_archive.read(path, FORMAT, VERSION)
        loaded = _unpacked(header, arrays) if header["key"] == key else None
    except Exception as error:  # whatever it is: the source is still there
        log.info("the copy %s is not used: %s", path, brief(error))
        return None
    with suppress(OSError):
        os.utime(path)  # for what is kept
    return loaded


def keep(key: str, loaded: Loaded) -> None:
    """Write a copy of what was read, if it is worth one; without an error if that fails."""
    ratings = loaded.ratings
    plain = not ratings.user_info and ratings.folds is None
    if len(ratings) < LEAST_RATINGS or not plain:
        return
    header, arrays = _packed(loaded)
    size = sum(array.nbytes for array in arrays.values())
    try:
        copies_folder().mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(copies_folder()).free < 4 * size:
            return
        header |= {"key": key}
        array_archive.write(_place(key), FORMAT, VERSION, header, arrays, durable=False)
    except (GmcError, OSError, ValueError, TypeError) as error:
        log.info("no copy of %s is kept: %s", ratings.name, brief(error))
        return
    remove_old()


def remove_old() -> None:
    """Remove the copies used longest ago, beyond ``KEPT_BYTES`` of all."""
    total = 0
    for path, size in copies():
        total += size
        if total > KEPT_BYTES:
            with suppress(OSError):
                path.unlink()


def _packed(loaded: Loaded) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays; ratings on a scale of few levels and times take less so."""
    ratings, info = loaded.ratings, loaded.ratings.item_info
    arrays: dict[str, np.ndarray] = {
        "indptr": ratings.indptr,
        "indices": ratings.indices,
        "years": np.asarray(info.years, np.float64),
        **_packed_values(ratings),
        **_packed_times(ratings),
    }
    header: dict[str, Any] = {
        "name": ratings.name,
        "titles": info.titles,
        "genres": info.genres,
        "report": loaded.report.as_dict(),
    }
    for kind, own in (("users", ratings.users), ("items", ratings.items)):
        if own.are_integers:
            arrays[kind] = own.ids
        else:
            header[kind] = own.ids.tolist()
    return header, arrays


def _packed_values(ratings: Ratings) -> dict[str, np.ndarray]:
    """The place of each rating on the scale, where it is exactly that; else the rating."""
    levels, scale = ratings.scale.levels, ratings.scale
    if levels is None or scale.step is None or len(levels) > 256:
        return {"values": ratings.values}
    levels = levels.astype(np.float64)
    places = np.empty(len(ratings), np.uint8)
    for start in range(0, len(ratings), BLOCK):
        some = ratings.values[start : start + BLOCK]
        own = np.clip(np.rint((some - scale.low) / scale.step), 0, len(levels) - 1).astype(np.uint8)
        # By their bits: -0 is another rating than 0 to a hash.
        if not np.array_equal(levels[own].view(np.int64), some.view(np.int64)):
            return {"values": ratings.values}
        places[start : start + BLOCK] = own
    return {"places": places, "levels": levels}


def _packed_times(ratings: Ratings) -> dict[str, np.ndarray]:
    """Seconds since the first of all, if they fit into four bytes; else the times; or nothing."""
    if ratings.times is None:
        return {}
    first, last = int(ratings.times.min()), int(ratings.times.max())
    if last - first >= 2**31:  # so it is where a time is unknown
        return {"times": ratings.times}
    since = np.empty(len(ratings), np.int32)
    np.subtract(ratings.times, first, out=since, casting="unsafe")
    return {"since": since, "first": np.array([first])}


def _unpacked(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Loaded:
    """What :func:`_packed` took; raises whatever does not fit."""
    report = dict(header["report"])
    report["dropped"] = tuple((entry["reason"], entry["count"]) for entry in report["dropped"])
    report["notes"], report["scale"] = tuple(report["notes"]), RatingScale(**report["scale"])
    if set(report) != {field.name for field in fields(LoadReport)}:
        raise ValueError("its report has other parts")
    times = arrays.get("times")
    if "since" in arrays:
        times = arrays["since"] + arrays["first"]
    ratings = Ratings(
        users=Vocabulary(arrays["users"] if "users" in arrays else header["users"], "user"),
        items=Vocabulary(arrays["items"] if "items" in arrays else header["items"], "item"),
        indptr=arrays["indptr"],
        indices=arrays["indices"],
        values=arrays["levels"][arrays["places"]] if "places" in arrays else arrays["values"],
        scale=report["scale"],
        item_info=ItemInfo(
            tuple(header["titles"]), tuple(map(tuple, header["genres"])), frozen(arrays["years"])
        ),
        name=header["name"],
        times=times,
    )
    if len(ratings) != report["ratings"]:
        raise ValueError("its report is about other ratings")
    return Loaded(ratings, LoadReport(**report))
