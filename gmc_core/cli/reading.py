"""Arguments that say how to read a person's own file."""

from __future__ import annotations

import argparse
from typing import Any

from gmc_core.base.errors import ConfigError
from gmc_core.cli.options import add_option
from gmc_core.data.reading_options import OPTIONS, reading_of


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """How to read the person's own file; what is not given is found."""
    group = parser.add_argument_group(
        "reading your own files (all of this is found from the file unless given)"
    )
    for option in OPTIONS.values():
        add_option(group, option)


def reading_from_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """The reading options given, as ``ExperimentConfig.reading`` takes them."""
    reading = reading_of(vars(args))
    detailed = set(reading) - {"format", "duplicates"}
    if detailed and reading.get("format") not in (None, "delimited"):
        raise ConfigError(
            f"The format {reading['format']} has a fixed layout; leave out --format, or the "
            "options that describe a file's columns."
        )
    return reading
