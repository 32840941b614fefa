"""Checks of what is installed: Python and the packages, against the versions that are tested."""

from __future__ import annotations

import platform
import re
import sys
from importlib import metadata

from gmc_core.base.extras import DISTRIBUTION, EXTRAS, remedy
from gmc_core.base.version import package_version
from gmc_core.doctor.check import Check

# In the order in which they are listed; what an extra brings is optional.
CORE = (
    "numpy", "scipy", "numba", "pandas", "pyarrow", "threadpoolctl", "psutil", "openpyxl",
    "filelock",
    "platformdirs",
)  # fmt: skip
OLDEST_PYTHON = (3, 11)


def python() -> Check:
    """The interpreter's version, at least 3.11."""
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info[:2] < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        return Check("python", "fail", found, f"Install Python {wanted} or newer.")
    return Check("python", "ok", found)


def program() -> Check:
    """The version of this program, and whether it is installed or runs from its source folder."""
    try:
        installed = metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return Check("gmc", "ok", f"{package_version()}, from its source folder")
    if installed != package_version():
        return Check(
            "gmc",
            "warn",
            f"{package_version()}, while version {installed} is installed",
            "Install it again: this source folder, or another copy, comes before the installed one "
            "in Python's search path.",
        )
    return Check("gmc", "ok", package_version())


def packages() -> list[Check]:
    """Every package of the core, and of each extra, with its version."""
    ranges = tested_ranges()
    checks = [_package(name, None, ranges) for name in CORE]
    return checks + [_package(name, extra, ranges) for extra in EXTRAS for name in EXTRAS[extra]]


def tested_ranges() -> dict[str, str]:
    """Package → the versions that this program asks for, such as ">=2.2,<3".

    Empty where it runs from its source folder and has never been installed.
    """
    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return {}
    found = (re.match(r"([\w.-]+)\s*(?:\[[^]]*\])?\s*\(?([^;)]*)", line) for line in lines)
    return {match[1].lower(): match[2].strip() for match in found if match}


def _package(name: str, extra: str | None, ranges: dict[str, str]) -> Check:
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        if extra is not None:
            return Check(name, "ok", f"not installed (optional, [{extra}])", remedy(extra))
        return Check(name, "fail", "not installed", f"Install it: pip install {name}")
    wanted = ranges.get(name, "")
    if not is_within(version, wanted):
        change = f"Install a tested version: pip install '{name}{wanted}'"
        return Check(name, "warn", f"{version}; tested are {wanted}", change)
    return Check(name, "ok", version)


def is_within(version: str, wanted: str) -> bool:
    """Whether a version such as "2.4.6" is in a range of the forms ">=" and "<"."""
    for clause in filter(None, (part.strip() for part in wanted.split(","))):
        match = re.match(r"(>=|<)\s*([\d.]+)$", clause)
        if match is None:
            continue  # not one of ours: nothing is said of it
        older = _numbers(version) < _numbers(match[2])
        if older == (match[1] == ">="):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    """The release number, its trailing zeros taken off: "2.10.0rc1" is (2, 10)."""
    match = re.match(r"\d+(\.\d+)*", version)
    parts = [int(part) for part in match[0].split(".")] if match else []
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)
