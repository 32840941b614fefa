"""``python -m gmc_dashboard``: the dashboard, with the options of ``streamlit run``.

``gmc app`` starts this. Streamlit reads the ``.streamlit/config.toml`` beside the script that it
runs, whatever the current folder is, so a checkout and an installed package have the same look
and listen to this machine only.
"""

from __future__ import annotations

import sys

from gmc_dashboard import app_folder


def main() -> None:
    """Serve until stopped."""
    try:
        _serve()
    except KeyboardInterrupt:  # Ctrl-C before Streamlit listens for it
        sys.exit(130)


def _serve() -> None:
    from streamlit.web import cli

    folder = app_folder()
    options = sys.argv[1:]
    if folder.name == "_app":
        # Installed files do not change; watching them all would only cost time.
        options += ["--server.fileWatcherType", "none"]
    sys.argv = ["streamlit", "run", str(folder / "app.py"), *options]
    cli.main(prog_name="streamlit")


if __name__ == "__main__":
    main()
