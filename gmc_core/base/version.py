"""The version of this package, for files and ``--version``."""

from __future__ import annotations


def package_version() -> str:
    """Of the installed package; "unknown" where it runs from its source folder."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("gaussian-matrix-completion")
    except PackageNotFoundError:
        return "unknown"
