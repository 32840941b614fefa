"""Where ratings come from: the sample, a named set, or a person's own file.

A person's own file gets a token that stands for its place and how to read it. The
token is short enough for a URL, and the worker process finds the file through it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from gmc_core.base.errors import DataError
from gmc_core.data import datasets
from gmc_core.data.downloads import cache_folder
from gmc_core.data.readers import Loaded
from gmc_core.data.readers.stamps import stamps
from gmc_core.fitting.preparing import split_reading
from gmc_core.runs.store.folders import disk_bytes, write_atomically
from gmc_dashboard.shared.places import uploads_folder

OWN = "own-"
UPLOAD_LIMIT_MB = 100
LONGEST_NAME = 120  # bytes; most file systems take 255, and a suffix is added while writing
# What is kept of uploads: beyond it the ones used longest ago go, and what nobody has used
# for so long goes in any case. Reading a file again counts as use.
KEPT_BYTES = 2 * 1000**3
KEPT_SECONDS = 180 * 24 * 3600
JUST_NOW_SECONDS = 3600

Progress = Callable[[int, int], None]


def is_own(data: str) -> bool:
    """Whether ``data`` is the token of a person's own file."""
    return data.startswith(OWN)


def is_ready(data: str) -> bool:
    """Whether the ratings are on this machine: no download needed."""
    if data == "sample" or is_own(data):
        return True
    return data in datasets.DATASETS and _cached(data).exists()


def title(data: str) -> str:
    """The name to show."""
    if is_own(data):
        return str(_entry(data)["name"])
    return datasets.info(data).title


def keep_upload(name: str, content: bytes) -> Path:
    """Save an uploaded file under the hash of its content, and return its path.

    It keeps the name that the person gave it, by which commands and runs name it.
    """
    safe = _file_name(name)
    folder = uploads_folder() / hashlib.sha256(content).hexdigest()[:16]
    target = folder / safe
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / f"{safe}.{secrets.token_hex(4)}.part"  # two sessions may save at once
        try:
            partial.write_bytes(content)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    _note_use(target)
    remove_old_uploads()
    return target


def _file_name(name: str) -> str:
    """The given name without what no file system, or not every one, has in a name."""
    plain = re.sub(r'[\x00-\x1f\x7f<>:"/\\|?*]+', "_", Path(name).name).strip(". ")
    while len(plain.encode("utf-8", "replace")) > LONGEST_NAME:
        plain = plain[1:]  # the end tells the format
    return plain.encode("utf-8", "replace").decode() or "ratings.csv"


def _note_use(path: Path) -> None:
    """Uploads are kept by when they were last used, which their folder's time tells."""
    if path.parent.parent == uploads_folder():
        with suppress(OSError):
            os.utime(path.parent)


def remove_old_uploads(now: float | None = None) -> int:
    """Remove uploads by the rules above; returns how many.

    A link to one that is gone says so, and its runs keep their models. Tokens of files that
    lie elsewhere on this machine stay: they are a few bytes, and the files are the person's.
    """
    now = time.time() if now is None else now
    with suppress(OSError):
        found = [
            (folder.stat().st_mtime, disk_bytes(folder), folder)
            for folder in uploads_folder().iterdir()
            if re.fullmatch(r"[0-9a-f]{16}", folder.name) and not folder.is_symlink()
        ]
        removed = total = 0
        for used, size, folder in sorted(found, reverse=True):
            total += size
            age = now - used
            if age > KEPT_SECONDS or (total > KEPT_BYTES and age > JUST_NOW_SECONDS):
                shutil.rmtree(folder, ignore_errors=True)
                removed += 1
        return removed
    return 0


def register(path: str | Path, reading: dict[str, Any] | None = None) -> str:
    """A token for a file or folder and how to read it.

    reading : as ``ExperimentConfig.reading``.

    Raises
    ------
    DataError
        If there is nothing at the path.
    """
    token, text = _token(path, reading)
    write_atomically(uploads_folder() / f"{token}.json", lambda file: file.write(text.encode()))
    return token


def token_of(path: str | Path, reading: dict[str, Any] | None = None) -> str:
    """The token that :func:`register` gives, without keeping it."""
    return _token(path, reading)[0]


def _token(path: str | Path, reading: dict[str, Any] | None) -> tuple[str, str]:
    """The token of a file and how to read it, and what it stands for as JSON."""
    try:
        place = Path(path).expanduser().resolve(strict=True)
    except OSError as error:
        raise DataError(
            f"This cannot be opened ({error.strerror or error}); check the path.", path=path
        ) from None
    reading = {key: value for key, value in (reading or {}).items() if value is not None}
    entry = {"path": str(place), "name": place.name, "reading": reading}
    text = json.dumps(entry, sort_keys=True)
    return OWN + hashlib.sha256(text.encode()).hexdigest()[:12], text


def location(data: str) -> tuple[str, dict[str, Any]]:
    """``ExperimentConfig``'s ``data`` and ``reading`` of a source."""
    if is_own(data):
        entry = _entry(data)
        return str(entry["path"]), dict(entry["reading"])
    return datasets.info(data).name, {}


def stamp(data: str) -> str:
    """Changes when the content of a source may have changed; cheap."""
    if data == "sample":
        return "sample"
    place = Path(_entry(data)["path"]) if is_own(data) else _cached(data)
    facts = stamps(place)
    return hashlib.sha256(repr(facts).encode()).hexdigest() if facts else "absent"


def load(data: str, progress: Progress | None = None) -> Loaded:
    """Read a source that is on this machine.

    Raises
    ------
    DataError
        If it cannot be read, or is a named set that was not downloaded yet.
    """
    path, reading = location(data)
    if is_own(data):
        _note_use(Path(path))
    if not is_ready(data):
        raise DataError(
            f"{title(data)} is not on this machine yet. Download it on the Data page, or give "
            "the path of your own copy there."
        )
    return datasets.load_named(path, progress=progress, **split_reading(reading))


def _cached(name: str) -> Path:
    return cache_folder() / datasets.info(name).file_name


def _entry(data: str) -> dict[str, Any]:
    file = uploads_folder() / f"{data}.json"
    if re.fullmatch(r"own-[0-9a-f]{12}", data):
        with suppress(OSError, ValueError):
            entry: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            if {"path", "name", "reading"} <= set(entry):
                return entry
    raise DataError(
        "This link names a file that this machine does not know. Choose the data again on "
        "the Data page."
    )
