"""``gmc app``: the dashboard in the browser."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from gmc_core.base.errors import ConfigError, MissingPackageError
from gmc_core.base.extras import is_there, remedy, require
from gmc_core.base.files import try_target
from gmc_core.base.ports import ADDRESS, DEFAULT_PORT, TRIED, first_free, is_free
from gmc_core.cli.output import note
from gmc_core.cli.parser import add_command

EXAMPLES = """\
  gmc app                               opens a browser; Ctrl-C ends the dashboard
  gmc app --port 9000 --no-browser      at http://127.0.0.1:9000, for a browser of your own
  gmc app --home ./study                with the runs, models and uploads of that folder
"""


def add_parser(commands: Any) -> None:
    """Add the command ``app``."""
    parser = add_command(
        commands,
        "app",
        help="open the dashboard in the browser",
        description="Open the dashboard in the browser, on this machine only, until Ctrl-C. Fits "
        "that it has started go on without it.",
        examples=EXAMPLES,
    )
    parser.add_argument(
        "--port",
        type=_port,
        metavar="N",
        help=f"of 127.0.0.1 (default: {DEFAULT_PORT}, or the next one that is free)",
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="serve only; open the address yourself"
    )
    parser.add_argument(
        "--home",
        metavar="DIR",
        help="folder of runs, models and uploads (default: GMC_HOME, or your data folder)",
    )
    parser.set_defaults(run=run, tells_itself=True)


def run(args: argparse.Namespace) -> int:
    """Become the dashboard's server.

    Raises
    ------
    MissingPackageError
        If the packages of the extra ``app`` are not installed.
    ConfigError
        If the port is taken, or the folder cannot be used.
    """
    require("app", "The dashboard")
    if not is_there("gmc_dashboard"):
        raise MissingPackageError(f"The dashboard's own package is missing. {remedy('app')}")
    environment = dict(os.environ)
    if args.home is not None:
        environment["GMC_HOME"] = str(_usable(args.home))
    port = _chosen(args.port)
    # Without the current folder, whose files could have the names of packages; the folder of this
    # package instead, so that a source folder works without an installation.
    package = str(Path(__file__).resolve().parents[2])
    search = [package, environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(part for part in search if part)
    command = [sys.executable, "-P", "-m", "gmc_dashboard", "--server.port", str(port)]
    # Streamlit's welcome would name the address before ours and advertise.
    command += ["--logger.hideWelcomeMessage", "true"]
    if args.no_browser:
        command += ["--server.headless", "true"]
    note(f"The dashboard is at http://{ADDRESS}:{port} (Ctrl-C ends it)")
    return _become(command, environment)


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text) <= 65535:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no port; ports are 1 to 65535")


def _chosen(wanted: int | None) -> int:
    """The port asked for, which must be free; else the default or the next one that is."""
    if wanted is not None:
        if not is_free(wanted):
            raise ConfigError(
                f"--port: {wanted} is taken by another program, or is not yours to use. Give "
                "another one, or leave --port out to get one that is free."
            )
        return wanted
    port = first_free()
    if port is None:
        raise ConfigError(
            f"The ports {DEFAULT_PORT} to {DEFAULT_PORT + TRIED - 1} are all taken; give a free "
            "one with --port."
        )
    if port != DEFAULT_PORT:
        note(f"Port {DEFAULT_PORT} is taken, so this is {port}.")
    return port


def _usable(text: str) -> Path:
    """The folder of runs, made if it is not there, which must be writable."""
    folder = Path(text).expanduser().absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try_target(folder / "runs.db")
    except OSError as error:
        raise ConfigError(
            f"--home: {folder} cannot be used ({error.strerror or error}). Choose a folder that "
            "you can write to."
        ) from error
    return folder


def _become(command: list[str], environment: dict[str, str]) -> int:
    """Run the server in place of this process, so that it alone gets Ctrl-C and signals."""
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        os.execve(command[0], command, environment)
    return subprocess.call(command, env=environment)  # Windows has no such replacement
