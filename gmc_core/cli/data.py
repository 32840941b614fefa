"""``gmc data``: what data sets there are, and whether a file can be read."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from gmc_core.cli.activity import doing
from gmc_core.cli.output import check_output, moving_line, note, size, table, write_json
from gmc_core.cli.parser import add_command
from gmc_core.cli.reading import add_reading_arguments, reading_from_arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from gmc_core.data.ratings import Ratings
    from gmc_core.fitting.config import ExperimentConfig
    from gmc_core.fitting.preparing import Prepared

EXAMPLES = """\
  gmc data list
  gmc data info ml-1m
  gmc data fetch ml-1m
  gmc data check my-ratings.csv --separator semicolon --decimal ,
"""


def add_parser(commands: Any) -> None:
    """Add the commands ``data list``, ``info``, ``fetch`` and ``check``."""
    parser = add_command(
        commands,
        "data",
        help="list, describe, download or check data sets",
        examples=EXAMPLES,
    )
    parser.set_defaults(run=lambda args: parser.print_help())
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    listing = add_command(actions, "list", help="the data sets with a name")
    listing.set_defaults(run=run_list)
    info = add_command(actions, "info", help="size, licence and citation of a data set")
    info.add_argument("name", metavar="NAME")
    info.set_defaults(run=run_info)
    fetch = add_command(actions, "fetch", help="download a data set, checked and kept for later")
    fetch.add_argument("name", metavar="NAME")
    fetch.set_defaults(run=run_fetch)
    check = add_command(
        actions,
        "check",
        help="read a data set and report what was found, dropped and left after the filter",
    )
    check.add_argument("data", metavar="NAME|PATH")
    check.add_argument("--json", metavar="FILE", help="write the report as JSON ('-' for stdout)")
    add_reading_arguments(check)
    check.set_defaults(run=run_check)


def run_list(args: argparse.Namespace) -> int:
    """Print the registry."""
    from gmc_core.data.datasets import DATASETS
    from gmc_core.data.downloads import cache_folder

    rows = []
    for entry in DATASETS.values():
        if entry.format == "sample":
            where = "built in"
        elif not entry.downloadable:
            where = "your own copy"
        elif (cache_folder() / entry.file_name).exists():
            where = "downloaded"
        else:
            where = f"to download, {size(entry.size or 0)}"
        rows.append(
            (
                entry.name,
                where,
                f"{entry.users:,}",
                f"{entry.items:,}",
                f"{entry.ratings:,}",
            )
        )
    print(table(("name", "", "users", "items", "ratings"), rows, left=2))
    print("\ngmc data info NAME shows licence and citation; a path works wherever a name does.")
    return 0


def run_info(args: argparse.Namespace) -> int:
    """Print one entry."""
    from gmc_core.data.datasets import info

    entry = info(args.name)
    lines = [
        (entry.title, entry.description),
        ("size", f"{entry.users:,} users, {entry.items:,} items, {entry.ratings:,} ratings"),
        ("licence", entry.licence),
        ("passing on", "allowed under the same conditions" if entry.redistributable else "no"),
        ("citation", entry.citation),
        ("homepage", entry.homepage),
    ]
    lines += [("download", url) for url in entry.urls]
    if entry.urls:
        lines.append(("checksum", entry.checksum or "none is published"))
    print(f"{lines[0][0]}: {lines[0][1]}")
    for name, text in lines[1:]:
        print(f"{name + ':':<12}{text}")
    return 0


def run_fetch(args: argparse.Namespace) -> int:
    """Download one entry."""
    doing("downloading")
    from gmc_core.data.datasets import fetch, info

    entry = info(args.name)
    if entry.urls:
        note(f"{entry.title}: {entry.licence}")
    print(fetch(args.name, progress=DownloadBar()))
    return 0


class DownloadBar:
    """Progress of a download: a moving line on a terminal, a line per tenth elsewhere."""

    what, after = "", "reading the ratings"

    def __init__(self) -> None:
        self.shown = -1

    def __call__(self, done: int, total: int) -> None:
        """Show ``done`` of ``total`` bytes; 0 for a total that is not known."""
        tenth = 10 * done // total if total else done // 10_000_000
        text = self.what + (f"{size(done)} of {size(total)}" if total else size(done))
        if sys.stderr.isatty():
            moving_line.changed = time.monotonic()
            moving_line.show(text, self)
            if done == total:
                note(text)
                doing(self.after)
        elif tenth != self.shown:
            note(text)
        self.shown = tenth


class ReadingBar(DownloadBar):
    """The same of reading a large file."""

    what, after = "reading: ", "preparing the ratings"


def prepare_telling(
    config: ExperimentConfig, on_ratings: Callable[[Ratings], object] | None = None
) -> Prepared:
    """The data of an experiment; downloading and reading are shown as they go on.

    on_ratings : of :func:`gmc_core.fitting.preparing.prepare`.
    """
    doing("reading the ratings")
    from gmc_core.fitting.preparing import prepare

    return prepare(config, progress=DownloadBar(), on_read=ReadingBar(), on_ratings=on_ratings)


def run_check(args: argparse.Namespace) -> int:
    """Read, filter, report."""
    check_output(args.json, "--json")
    doing("reading the ratings")
    from gmc_core.base.errors import DataError
    from gmc_core.data.datasets import load_named
    from gmc_core.fitting.preparing import Prepared, describe, split_reading
    from gmc_core.protocol.filters import Filter, apply_filter

    reading = split_reading(reading_from_arguments(args))
    loaded = load_named(args.data, progress=DownloadBar(), on_read=ReadingBar(), **reading)
    ratings, report, problem = loaded.ratings, None, None
    try:
        ratings, report = apply_filter(loaded.ratings, Filter())
    except DataError as error:
        # The file can be read; a fit only needs other thresholds.
        problem = str(error)
    if args.json is not None:
        content = describe(Prepared(ratings, loaded.report, report))
        write_json(args.json, {**content, "problem": problem})
    if args.json != "-":
        print(loaded.report)
        for line in (problem or str(report)).splitlines():
            print(f"filter: {line}")
        print(f"licence: {ratings.licence}")
    return 0
