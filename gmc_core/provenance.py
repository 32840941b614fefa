"""Which files an experiment reads, by their hashes, so that a repetition notices another file.

Roles: "data", or "train" and "test"; "noise", the file of noise variances; "ratings", what was
read from the data and left by the filter.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gmc_core.datasets import DATASETS
from gmc_core.downloads import cache_folder
from gmc_core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from gmc_core.experiment import ExperimentConfig

FILES = ("data", "train", "test", "noise")
ROLES = (*FILES, "ratings")
LEAST_DIGITS = 12
_CHUNK = 1 << 20
# Where the dashboard keeps uploads: <home>/uploads/<start of the content's hash>/<name given>.
_UPLOAD = re.compile(r"[\\/]uploads[\\/][0-9a-f]{16}[\\/]([^\\/]+)$")


def option(role: str) -> str:
    """The option of the command line that names the hash of a role."""
    return f"--{role}-sha256"


def check_expected(expected: Mapping[str, str]) -> None:
    """Refuse what is no hash.

    Raises
    ------
    ConfigError
        If a role is unknown, or a hash has other characters than 12 to 64 hexadecimal digits.
    """
    for role, value in expected.items():
        if role not in ROLES:
            raise ConfigError(f"There is no hash of {role!r}; there are {', '.join(ROLES)}.")
        if not isinstance(value, str) or not is_hash(value):
            raise ConfigError(
                f"{option(role)} takes a SHA-256, of which the first {LEAST_DIGITS} of 64 "
                f"hexadecimal digits are enough, not {str(value)[:80]!r}."
            )


def is_hash(value: object) -> bool:
    """Whether this is a SHA-256 in hexadecimal digits, or a beginning of one."""
    return isinstance(value, str) and bool(
        re.fullmatch(rf"[0-9a-fA-F]{{{LEAST_DIGITS},64}}", value)
    )


def given_name(path: str) -> str:
    """An uploaded file by the name that the person gave it; any other path as it is."""
    found = _UPLOAD.search(path)
    return found[1] if found else path


def paths(config: ExperimentConfig) -> dict[str, Path]:
    """Role → path of every file (or folder) that the experiment reads; none for the sample."""
    found: dict[str, Path] = {}
    if config.protocol == "pair":
        found["train"], found["test"] = Path(config.train_file or ""), Path(config.test_file or "")
    elif config.data in DATASETS:
        if config.data != "sample":
            found["data"] = cache_folder() / DATASETS[config.data].file_name
    else:
        found["data"] = Path(config.data)
    if isinstance(config.fit.noise, str):
        found["noise"] = Path(config.fit.noise)
    return found


def file_hashes(config: ExperimentConfig) -> dict[str, str]:
    """Role → SHA-256 of the bytes of each file; folders and what cannot be read are left out."""
    found = {}
    for role, path in paths(config).items():
        try:
            place = path.expanduser()
            if place.is_file():
                found[role] = file_sha256(place)
        except (OSError, ValueError, RuntimeError):
            continue  # whoever reads it says why it cannot be read
    return found


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, 64 hexadecimal digits.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def check_files(config: ExperimentConfig, found: Mapping[str, str]) -> None:
    """Compare the files with those that the configuration expects.

    found : of :func:`file_hashes`. A file that is not there is left to its reader.

    Raises
    ------
    DataError
        If a file is another, with both hashes and the remedy.
    """
    named = paths(config)
    for role, wanted in config.expected.items():
        if role == "ratings":
            continue
        if role not in named:
            raise ConfigError(f"{option(role)} is about a file, and this experiment reads none.")
        if role in found and not _same(found[role], wanted):
            raise DataError(
                f"This is another file than the one that is to be used again: its SHA-256 is "
                f"{found[role]}, that of the original begins with {wanted}. Give the path of "
                f"the original, or leave out {option(role)} (and {option('ratings')}) to take "
                "this one.",
                path=named[role],
            )
        if role not in found and named[role].is_dir():
            raise DataError(
                f"{option(role)} is the hash of one file, and this is a folder. Give the path of "
                "the file.",
                path=named[role],
            )


def check_ratings(config: ExperimentConfig, sha256: str) -> None:
    """Compare the ratings, as read and filtered, with those expected.

    Raises
    ------
    DataError
        If they are others, with both hashes and the remedy.
    """
    wanted = config.expected.get("ratings")
    if wanted is None or _same(sha256, wanted):
        return
    known = [role for role in FILES[:3] if role in config.expected]
    why = (
        "The file is the original one, so it is read or filtered in another way: give the "
        "original's reading and filter options, or use the version of this program that made it"
        if known
        else "Give the path of the original data"
    )
    raise DataError(
        f"These are other ratings than those that are to be used again: their SHA-256 is {sha256}, "
        f"that of the original ones begins with {wanted}. {why}; or leave out "
        f"{option('ratings')} to take these.",
        path=given_name(config.data or config.train_file or ""),
    )


def _same(found: str, wanted: str) -> bool:
    return found.startswith(wanted.lower())
