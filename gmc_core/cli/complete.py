"""``gmc complete``: the completed table of a model, or of a plain table with blanks."""

from __future__ import annotations

import argparse
from typing import Any

from gmc_core.cli.output import check_output, note, table
from gmc_core.cli.parser import add_command
from gmc_core.cli.reading import SEPARATORS
from gmc_core.cli.values import number, number_or_auto, whole
from gmc_core.errors import ConfigError

EXAMPLES = """\
  gmc complete --model ml-1m.npz --out completed.csv
  gmc complete --model ml-1m.npz --out completed.parquet --sd
  gmc complete --table measurements.csv --out filled.csv --sd --id-column station
  gmc complete --table measurements.csv --out filled.csv --method exact --epsilon auto
"""

_MODEL_ONLY = ("long", "interval", "projected", "titles")
_FIT = ("method", "epsilon", "iterations", "noise")
_TABLE_ONLY = (*_FIT, "id_column", "separator", "decimal", "encoding")


def add_parser(commands: Any) -> None:
    """Add the command ``complete``."""
    parser = add_command(
        commands,
        "complete",
        help="fill every blank of a table",
        description="Fill every entry of the ratings of a saved model, or of a plain table whose\n"
        "rows are cases and whose columns are named quantities. What was given is kept.",
        examples=EXAMPLES,
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--model", metavar="FILE", help="a model saved by gmc fit --model-out")
    source.add_argument(
        "--table", metavar="FILE", help="CSV, TSV or parquet with a header line and blanks"
    )
    parser.add_argument("--out", metavar="FILE", required=True, help=".csv or .parquet")
    parser.add_argument(
        "--sd",
        action="store_true",
        help="also write the standard deviation of every filled entry, as NAME.sd.csv beside "
        "NAME.csv (a column with --long)",
    )
    model = parser.add_argument_group("with --model")
    model.add_argument(
        "--long", action="store_true", help="a row per entry: user, item, rating, observed"
    )
    model.add_argument(
        "--interval",
        action="store_true",
        help="also write the ends of the interval of every filled entry, as NAME.low.csv and "
        "NAME.high.csv beside NAME.csv (columns with --long)",
    )
    model.add_argument(
        "--projected", action="store_true", help="predictions to the nearest value of the scale"
    )
    model.add_argument("--titles", action="store_true", help="name items by title and id")
    plain = parser.add_argument_group("with --table")
    plain.add_argument(
        "--id-column",
        action="append",
        metavar="NAME",
        help="a column of labels, not of quantities; can be repeated (default: a first column of "
        "text, or one named id or name)",
    )
    plain.add_argument(
        "--epsilon",
        type=number_or_auto,
        metavar="E|auto",
        help="added to the covariance's diagonal, as a share of a column's variance; auto: the one "
        "that predicts hidden entries best (default: 0.2)",
    )
    plain.add_argument(
        "--method",
        choices=("paper", "exact"),
        help="paper: MAP-EM (default); exact: EM with the posterior covariance in the M-step",
    )
    plain.add_argument("--iterations", type=whole, metavar="L", help="of MAP-EM (default: 20)")
    plain.add_argument(
        "--noise",
        type=number,
        metavar="VARIANCE",
        help="noise of an entry, as a share of its column's variance (default: 0)",
    )
    plain.add_argument("--separator", metavar="CHAR", help="default: found from the header line")
    plain.add_argument("--decimal", choices=(".", ","), metavar="SIGN", help="default: found")
    plain.add_argument("--encoding", metavar="NAME", help="default: found")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Complete a table."""
    odd = _TABLE_ONLY if args.model is not None else _MODEL_ONLY
    for name in odd:
        if getattr(args, name) not in (None, False):
            flag = "--" + name.replace("_", "-")
            other = "--table" if args.model is not None else "--model"
            raise ConfigError(f"{flag} belongs to {other}; leave it out.")
    check_output(args.out, "--out")
    from gmc_core.table_files import format_of

    format_of(args.out)
    return _complete_model(args) if args.model is not None else _complete_table(args)


def _complete_model(args: argparse.Namespace) -> int:
    from gmc_core.calibration import note_of
    from gmc_core.cli.calibrate import remedy
    from gmc_core.completion import complete
    from gmc_core.model_file import load_model

    model = load_model(args.model)
    done = complete(
        model,
        args.out,
        sd=args.sd,
        interval=args.interval,
        layout="long" if args.long else "wide",
        projected=args.projected,
        titles=args.titles,
        on_progress=lambda users, total: note(f"{users:,} of {total:,} users"),
    )
    for file in done.files:
        print(file)
    if args.sd or args.interval:
        if args.sd:
            note("The standard deviations are the model's own.")
        note(note_of(model.calibration) + remedy(model, args.model))
    filled = done.users * done.items - done.observed
    note(
        f"{done.users:,} users, {done.items:,} items: {done.observed:,} ratings kept, {filled:,} "
        f"predicted; the ratings are under the licence of the data ({model.licence})"
    )
    return 0


def _complete_table(args: argparse.Namespace) -> int:
    from gmc_core.wide_table import TableOptions, complete_table, read_table, write_completed

    options = TableOptions(
        id_columns=tuple(args.id_column or ()),
        separator=SEPARATORS.get(args.separator, args.separator),
        decimal=args.decimal,
        encoding=args.encoding,
    )
    given = {name: value for name in _FIT if (value := getattr(args, name)) is not None}
    wide = read_table(args.table, options)
    for text in wide.notes:
        note(text)
    result = complete_table(wide, sd=args.sd, **given)
    for text in result.notes:
        note(text)
    for file in write_completed(result, args.out):
        print(file)
    note()
    note(
        table(
            ("column", "given", "filled", "mean", "sd"),
            [
                (name, f"{given_:,}", f"{len(wide.values) - given_:,}", f"{mean:.6g}", f"{sd:.6g}")
                for name, given_, mean, sd in zip(
                    wide.names, wide.counts.tolist(), result.means, result.scales, strict=True
                )
            ][:40],
        )
    )
    return 0
