"""What the dashboard's pages share: look, components, and what is selected.

Pages read state from here, call ``gmc_core``, and draw; they compute nothing.
"""

from __future__ import annotations

from pathlib import Path


def app_folder() -> Path:
    """The folder of ``app.py``, ``pages`` and ``.streamlit``.

    The top of the checkout; in an installed package, where a checkout has nothing, ``_app``.
    """
    package = Path(__file__).resolve().parent
    installed = package / "_app"
    return installed if installed.is_dir() else package.parent
