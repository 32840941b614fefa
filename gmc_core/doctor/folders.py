"""Checks of the folders: runs, downloads, compiled code; may they be written, and is there room?"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from gmc_core.base.files import try_target
from gmc_core.data.downloads import cache_folder
from gmc_core.data.readers.copies import KEPT_BYTES, copies, copies_folder
from gmc_core.doctor.check import Check
from gmc_core.runs.store import home

# Bytes. A run of MovieLens 1M takes a tenth of ENOUGH_ROOM; with less than LEAST_ROOM even saving
# one model may fail.
ENOUGH_ROOM, LEAST_ROOM = 1e9, 1e8


def runs_folder() -> Check:
    """The folder of runs, models and uploads."""
    remedy = "Set GMC_HOME to a folder that you can write to, or give gmc app --home."
    return folder_check("runs folder", home(), remedy)


def downloads_folder() -> Check:
    """The folder of downloaded data sets."""
    remedy = "Set GMC_CACHE to a folder that you can write to."
    return folder_check("downloads folder", cache_folder(), remedy)


def ratings_copies() -> Check:
    """What the copies of large tables of ratings take."""
    sizes = [size for _, size in copies()]
    held = f"{len(sizes)} of {sum(sizes) / 1e9:.1f} GB" if sizes else "none"
    about = f"at most {KEPT_BYTES / 1e9:g} GB are kept; the folder may be deleted"
    return Check("copies of ratings", "ok", f"{held} in {copies_folder()}{os.sep}: {about}")


def compiled_folder() -> Check:
    """The folder in which numba keeps compiled functions, and whether it holds any."""
    remedy = (
        "Set NUMBA_CACHE_DIR to a folder that you can write to; else every process compiles for "
        "up to a minute, or does not start."
    )
    try:
        from gmc_core.gaussian.linalg import solve
    except RuntimeError as error:  # numba found no folder at all
        return Check("compiled code", "fail", str(error), remedy)
    function: object = solve.solve_lanes
    place = getattr(getattr(function, "stats", None), "cache_path", None)
    if place is None:
        return Check("compiled code", "warn", "is not kept", remedy)
    folder = Path(place)
    check = folder_check("compiled code", folder, remedy)
    if check.status == "ok" and not any(folder.glob("*.nbc")):
        note = f"{check.found}; nothing compiled yet, the first fit takes up to a minute longer"
        return Check(check.name, "ok", note)
    return check


def folder_check(name: str, folder: Path, remedy: str) -> Check:
    """Whether a folder, or the nearest one above it that is there, can be written and has room.

    Parameters
    ----------
    name : of the check. folder : need not be there; it is not made.
    remedy : what to do if it cannot be written.
    """
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        if not place.is_dir():
            raise NotADirectoryError(20, f"{place} is no folder")
        try_target(place / "trial")
        free = shutil.disk_usage(place).free
    except OSError as error:
        if error.errno == 28:
            return _room(name, folder, 0)
        return Check(
            name, "fail", f"{folder}: cannot be written ({error.strerror or error})", remedy
        )
    return _room(name, folder, free)


def _room(name: str, folder: Path, free: float) -> Check:
    found = f"{folder}{os.sep}: {free / 1e9:.1f} GB free"
    remedy = "Make room on this disk, or use another folder (GMC_HOME, GMC_CACHE, NUMBA_CACHE_DIR)."
    if free < LEAST_ROOM:
        return Check(name, "fail", found, remedy)
    if free < ENOUGH_ROOM:
        return Check(name, "warn", found, remedy)
    return Check(name, "ok", found)
