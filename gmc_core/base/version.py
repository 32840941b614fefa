"""The version of this package: here and nowhere else."""

from __future__ import annotations

# Of the program, by semantic versioning; the head of CHANGELOG.md says what raises which number,
# and how it differs from the versions of models (gmc_core.fitting.config.MODEL_VERSIONS).
VERSION = "0.2.0"


def package_version() -> str:
    """The version, for files and ``--version``."""
    return VERSION
