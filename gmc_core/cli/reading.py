"""Arguments that say how to read a person's own file."""

from __future__ import annotations

import argparse
from typing import Any

from gmc_core.base.errors import ConfigError
from gmc_core.cli.values import number

# Written out, since importing them from where they are used would load NumPy for
# every help text; a test compares them.
FORMATS = (
    "movielens-dat", "movielens-100k", "movielens-csv", "eachmovie", "netflix", "matrix-market",
    "jester-dat", "jester", "delimited",
)  # fmt: skip
POLICIES = ("last", "first", "mean", "error")
SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
ROLES = ("user", "item", "rating", "timestamp", "title")


def scale(text: str) -> tuple[float, float, float | str | None]:
    """LOW,HIGH or LOW,HIGH,STEP; STEP may be "continuous"."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) not in (2, 3):
        raise argparse.ArgumentTypeError(f"{text!r} is no LOW,HIGH[,STEP] such as 0.5,5,0.5")
    step: float | str | None = None
    if len(parts) == 3:
        step = parts[2] if parts[2] == "continuous" else number(parts[2])
    return number(parts[0]), number(parts[1]), step


def columns(text: str) -> dict[str, str | int]:
    """ROLE=COLUMN,…; a column is a name, or a number counted from 1."""
    found: dict[str, str | int] = {}
    for part in text.split(","):
        role, equals, column = (piece.strip() for piece in part.partition("="))
        if role not in ROLES or not equals or not column or column == "0":
            raise argparse.ArgumentTypeError(
                f"{part.strip()!r} is no ROLE=COLUMN; roles are {', '.join(ROLES)}, and a column "
                "is its name or its number from 1"
            )
        found[role] = int(column) - 1 if column.isdecimal() else column
    return found


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """How to read the person's own file; what is not given is found."""
    group = parser.add_argument_group(
        "reading your own files (all of this is found from the file unless given)"
    )
    group.add_argument("--format", choices=FORMATS, metavar="NAME", help=" | ".join(FORMATS))
    group.add_argument(
        "--separator",
        metavar="CHAR",
        help="between columns: a character, '::', tab, comma, semicolon, pipe or whitespace",
    )
    group.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="whether the first line holds the columns' names",
    )
    group.add_argument(
        "--columns",
        type=columns,
        metavar="ROLE=COLUMN,…",
        help=f"which column is what, by name or number from 1; roles: {', '.join(ROLES)}",
    )
    group.add_argument(
        "--decimal", choices=(".", ","), metavar="SIGN", help="decimal sign of the ratings: . or ,"
    )
    group.add_argument("--encoding", metavar="NAME", help="such as utf-8 or cp1252")
    group.add_argument(
        "--scale",
        type=scale,
        metavar="LOW,HIGH[,STEP]",
        help="rating scale, such as 0.5,5,0.5 or 1,5; STEP may be 'continuous'. With a negative "
        "LOW write --scale=-10,10,continuous",
    )
    group.add_argument(
        "--not-rated",
        action="append",
        metavar="VALUE",
        help='a value of the rating column that means "not rated", such as -1 or 99; can be '
        "repeated. Its rows are left out and counted",
    )
    group.add_argument(
        "--duplicates",
        choices=POLICIES,
        help="which of several ratings of one item by one user counts (default: last)",
    )


def reading_from_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """The reading options given, as ``ExperimentConfig.reading`` takes them."""
    reading: dict[str, Any] = {}
    for name in ("format", "duplicates", "header", "decimal", "encoding"):
        value = getattr(args, name, None)
        if value is not None:
            reading[name] = value
    if args.separator is not None:
        reading["separator"] = SEPARATORS.get(args.separator, args.separator)
    if getattr(args, "not_rated", None):
        reading["not_rated"] = list(args.not_rated)
    if args.columns is not None:
        reading.update(args.columns)
    if args.scale is not None:
        reading["low"], reading["high"], step = args.scale
        if step is not None:
            reading["step"] = step
    detailed = set(reading) - {"format", "duplicates"}
    if detailed and reading.get("format") not in (None, "delimited"):
        raise ConfigError(
            f"The format {reading['format']} has a fixed layout; leave out --format, or the "
            "options that describe a file's columns."
        )
    return reading
