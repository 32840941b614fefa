"""Hashes that a repeated experiment expects, by the role of what they are of.

Roles: "data", or "train" and "test"; "noise", the file of noise variances; "ratings", what was
read from the data and left by the filter; "times", when these were given, of a fit that reads it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from gmc_core.base.errors import ConfigError

DATA_FILES = ("data", "train", "test")
FILES = (*DATA_FILES, "noise")
READ = ("ratings", "times")
ROLES = (*FILES, *READ)
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
