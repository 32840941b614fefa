"""Folders of the dashboard, all below one that can be moved."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def home_folder() -> Path:
    """``GMC_HOME`` if it is set, else this user's folder for the program's data."""
    chosen = os.environ.get("GMC_HOME")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_data_path("gmc"))


def uploads_folder() -> Path:
    """Where uploaded files are kept."""
    return home_folder() / "uploads"
