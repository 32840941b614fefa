"""Whether data may have changed since they were read, without reading them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from gmc_core.base.errors import DataError
from gmc_core.data.readers.file_kinds import plain_name
from gmc_core.data.readers.source import folder_files

# What readers take besides the file of ratings that a person named.
BESIDE = (
    *("movies.csv", "movies.dat", "users.dat", "tags.dat", "u.item", "u.user", "u.genre"),
    *(f"u{fold}.test" for fold in range(1, 6)),
    *("movie.txt", "person.txt", "movie_titles.txt", "movie_titles.csv"),
)

Stamp = tuple[str, int, int]  # name, bytes, time of the last change in nanoseconds


def stamps(path: Path) -> list[Stamp]:
    """Size and time of change of every file that reading ``path`` may look at.

    Of a folder, those in it at any depth that is read; of a file, it and those beside it that
    tell titles, genres or users. Empty where there is nothing, such as a named data set.
    """
    try:
        return [(name, *_size_and_time(file)) for name, file in files_of(path).items()]
    except (OSError, DataError):
        return []


def files_of(path: Path) -> dict[str, Path]:
    """Name → place of those files.

    Raises
    ------
    OSError, DataError
        If a folder cannot be looked into, or holds too many files.
    """
    if path.is_dir():
        return {str(file.relative_to(path)): file for file, _ in folder_files(path)}
    others: list[Path] = []
    with suppress(OSError):  # a folder that may be entered, but not listed
        others = sorted(path.parent.iterdir())
    beside = [other for other in others if plain_name(other.name).lower() in BESIDE]
    # Hashes of this are kept in stores: what has one of these very names comes first, as ever.
    beside.sort(key=lambda file: (*BESIDE, file.name).index(file.name))
    return {file.name: file for file in (path, *beside) if file == path or file.is_file()}


def _size_and_time(file: Path) -> tuple[int, int]:
    # What a link leads to counts; one that leads nowhere counts itself.
    found = file.stat() if file.exists() else file.lstat()
    return found.st_size, found.st_mtime_ns
