"""Folders of the dashboard, beside the runs in the home folder."""

from __future__ import annotations

from pathlib import Path

from gmc_core.runs.store import home


def home_folder() -> Path:
    """``GMC_HOME`` if it is set, else this user's folder for the program's data."""
    return home()


def uploads_folder() -> Path:
    """Where uploaded files are kept."""
    return home() / "uploads"
