"""``gmc complete``: the completed table of a model, or of a plain table with blanks."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from gmc_core.base.errors import ConfigError
from gmc_core.cli.activity import doing
from gmc_core.cli.options import add_option
from gmc_core.cli.output import check_output, note, table
from gmc_core.cli.parser import add_command
from gmc_core.cli.values import number, number_or_auto, whole
from gmc_core.data.reading_options import DECIMAL, ENCODING, SEPARATOR

EXAMPLES = """\
  gmc complete --model ml-1m.npz --out completed.csv
  gmc complete --model ml-1m.npz --out completed.parquet --sd
  gmc complete --table measurements.csv --out filled.csv --sd --id-column station
  gmc complete --table measurements.csv --out filled.csv --method exact --epsilon auto
  gmc complete --table survey.csv --out filled.csv --na "?" -99 --min-value 0
"""

_MODEL_ONLY = ("long", "interval", "projected", "titles")
_FIT = ("method", "epsilon", "iterations", "noise")
_TABLE_ONLY = (
    *_FIT,
    "id_column",
    "quantity",
    "na",
    "min_value",
    "max_value",
    "separator",
    "decimal",
    "encoding",
)


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
        "text, and numbers that only name the row, such as a user, a patient_id, a long account)",
    )
    plain.add_argument(
        "--quantity",
        action="append",
        metavar="NAME",
        help="a column that is completed although it looks like labels; can be repeated",
    )
    plain.add_argument(
        "--na",
        action="extend",
        nargs="+",
        metavar="VALUE",
        help="what stands for a missing value besides blanks, NA, N/A, NaN, null, none and a "
        "point: --na '?' -99; can be repeated",
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
    for end, sign in (("min", "least"), ("max", "largest")):
        plain.add_argument(
            f"--{end}-value",
            action="append",
            type=limit,
            metavar="VALUE|COLUMN=VALUE",
            help=f"the {sign} value that is filled in, in all columns or in one; a fill beyond it "
            "is moved to it (default: no limit); can be repeated",
        )
    for option in (SEPARATOR, DECIMAL, ENCODING):
        add_option(plain, option)
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
    from gmc_core.base.table_files import format_of, path_beside

    format_of(args.out)
    beside = {"sd": args.sd, "low": args.interval, "high": args.interval}
    for name, wanted in beside.items():
        if wanted and not args.long:
            flag = "--sd" if name == "sd" else "--interval"
            check_output(str(path_beside(Path(args.out), name)), flag)
    return _complete_model(args) if args.model is not None else _complete_table(args)


def _complete_model(args: argparse.Namespace) -> int:
    from gmc_core.cli.calibrate import remedy
    from gmc_core.model.calibration import note_of
    from gmc_core.model.completion import complete
    from gmc_core.model.model_file import load_model

    doing("reading the model")
    model = load_model(args.model)
    doing("predicting")
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
    from gmc_core.base.table_files import rounded_text
    from gmc_core.tables.wide_table import TableOptions, complete_table, read_table, write_completed

    options = TableOptions(
        id_columns=tuple(args.id_column or ()),
        separator=args.separator,
        decimal=args.decimal,
        encoding=args.encoding,
        quantities=tuple(args.quantity or ()),
        missing=tuple(args.na or ()),
    )
    _check_limits(args)
    given = {name: value for name in _FIT if (value := getattr(args, name)) is not None}
    doing("reading the table")
    wide = read_table(args.table, options)
    doing("completing the table")
    for text in wide.notes:
        note(text)
    result = complete_table(wide, sd=args.sd, bounds=_bounds(args, wide.names), **given)
    for text in result.notes:
        note(text)
    for file in write_completed(result, args.out):
        print(file)
    note()
    note(
        table(
            ("column", "given", "filled", "mean", "sd"),
            [
                (
                    name,
                    f"{given_:,}",
                    f"{len(wide.values) - given_:,}",
                    rounded_text(mean, sd),
                    f"{sd:.6g}",
                )
                for name, given_, mean, sd in zip(
                    wide.names, wide.counts.tolist(), result.means, result.scales, strict=True
                )
            ][:40],
        )
    )
    return 0


def limit(text: str) -> tuple[str | None, float]:
    """VALUE, or COLUMN=VALUE; a column's name may hold an equals sign."""
    name, equals, value = text.rpartition("=")
    return (name if equals else None), number(value)


def _check_limits(args: argparse.Namespace) -> None:
    """Refuse, before the table is read, a least value that is above the largest one.

    Raises
    ------
    ConfigError
        If there is one, of all columns or of one that is named.
    """
    low, high = dict(args.min_value or ()), dict(args.max_value or ())
    for name in dict.fromkeys([*low, *high]):
        least, largest = low.get(name, low.get(None)), high.get(name, high.get(None))
        if least is not None and largest is not None and least > largest:
            where = "" if name is None else f" (column {name!r})"
            raise ConfigError(
                f"The least value{where}, --min-value {least:g}, is above the largest, --max-value "
                f"{largest:g}; exchange them."
            )


def _bounds(args: argparse.Namespace, names: tuple[str, ...]) -> Any:
    """The limits of all columns; one that is named wins over that of all."""
    import numpy as np

    from gmc_core.tables.bounds import Bounds
    from gmc_core.tables.table_columns import position_of

    ends = []
    for given, nothing in ((args.min_value, -np.inf), (args.max_value, np.inf)):
        end = np.full(len(names), nothing)
        for name, value in sorted(given or (), key=lambda pair: pair[0] is not None):
            end[slice(None) if name is None else position_of(names, name)] = value
        ends.append(end)
    return Bounds(*ends)
