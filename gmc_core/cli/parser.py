"""An argument parser whose errors are ours: one line, exit code 2."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from gmc_core.base.errors import ConfigError


class Parser(argparse.ArgumentParser):
    """Raises :class:`ConfigError` instead of printing its usage and leaving."""

    def error(self, message: str) -> NoReturn:
        """Turn argparse's complaint into an error of this package."""
        raise ConfigError(f"{message} ({self.prog} --help explains)")


def add_command(
    commands: Any, name: str, *, help: str, description: str = "", examples: str = ""
) -> argparse.ArgumentParser:
    """Add a command with a description and examples that keep their line breaks.

    Parameters
    ----------
    commands : what ``add_subparsers`` returned. help : one line for the list.
    description : below the usage, ``help`` by default. examples : at the end.
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=description or help,
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    return parser
