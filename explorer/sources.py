"""Where ratings come from: the sample, a named set, or a person's own file.

A person's own file gets a token that stands for its place and how to read it. The
token is short enough for a URL, and the worker process finds the file through it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from explorer.places import uploads_folder
from gmc_core import datasets
from gmc_core.downloads import cache_folder
from gmc_core.errors import DataError
from gmc_core.readers import DelimitedOptions, Loaded

OWN = "own-"
UPLOAD_LIMIT_MB = 100

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
    """Save an uploaded file under the hash of its content, and return its path."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "_", Path(name).name).lstrip(".")[-80:] or "ratings.csv"
    folder = uploads_folder() / hashlib.sha256(content).hexdigest()[:16]
    target = folder / safe
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / f"{safe}.part"
        partial.write_bytes(content)
        partial.replace(target)
    return target


def register(path: str | Path, reading: dict[str, Any] | None = None) -> str:
    """A token for a file or folder and how to read it.

    reading : as ``ExperimentConfig.reading``.

    Raises
    ------
    DataError
        If there is nothing at the path.
    """
    place = Path(path).expanduser()
    try:
        place = place.resolve(strict=True)
    except OSError as error:
        raise DataError(
            f"This cannot be opened ({error.strerror or error}); check the path.", path=path
        ) from None
    reading = {key: value for key, value in (reading or {}).items() if value is not None}
    entry = {"path": str(place), "name": place.name, "reading": reading}
    text = json.dumps(entry, sort_keys=True)
    token = OWN + hashlib.sha256(text.encode()).hexdigest()[:12]
    folder = uploads_folder()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{token}.json").write_text(text, encoding="utf-8")
    return token


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
    try:
        files = sorted(place.iterdir()) if place.is_dir() else [place]
        facts = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    except OSError:
        return "absent"
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def load(data: str, progress: Progress | None = None) -> Loaded:
    """Read a source that is on this machine.

    Raises
    ------
    DataError
        If it cannot be read, or is a named set that was not downloaded yet.
    """
    path, reading = location(data)
    if not is_ready(data):
        raise DataError(
            f"{title(data)} is not on this machine yet. Download it on the Data page, or give "
            "the path of your own copy there."
        )
    return datasets.load_named(path, progress=progress, **keywords(reading))


def keywords(reading: dict[str, Any]) -> dict[str, Any]:
    """``reading`` as the keywords of ``gmc_core.readers.load``."""
    plain: dict[str, Any] = {
        key: reading[key] for key in ("format", "duplicates") if key in reading
    }
    options = {key: value for key, value in reading.items() if key not in plain}
    return {**plain, "options": DelimitedOptions(**options)} if options else plain


def _cached(name: str) -> Path:
    return cache_folder() / datasets.info(name).file_name


def _entry(data: str) -> dict[str, Any]:
    file = uploads_folder() / f"{data}.json"
    if not re.fullmatch(r"own-[0-9a-f]{12}", data) or not file.is_file():
        raise DataError(
            "This link names a file that this machine does not know. Choose the data again on "
            "the Data page."
        )
    entry: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return entry
