"""``gmc predict``: predictions of given pairs."""

from __future__ import annotations

import argparse
import csv
import sys
from contextlib import nullcontext
from typing import Any

from gmc_core.base.errors import ConfigError
from gmc_core.cli.activity import doing
from gmc_core.cli.output import check_output, note, replaced
from gmc_core.cli.parser import add_command
from gmc_core.cli.reading import add_reading_arguments, reading_from_arguments

EXAMPLES = """\
  gmc predict --model ml-1m.npz --pairs pairs.csv > predictions.csv
  gmc predict --model ml-1m.npz --pairs pairs.csv --interval > with-intervals.csv
"""


def add_parser(commands: Any) -> None:
    """Add the command ``predict``."""
    parser = add_command(
        commands,
        "predict",
        help="predict the ratings of given (user, item) pairs",
        description="Predict the ratings of pairs: CSV user,item in, CSV\n"
        "user,item,prediction,known out. An unknown user gets the item's mean and an unknown\n"
        "item nothing; the column known says so. --interval adds low and high.",
        examples=EXAMPLES,
    )
    parser.add_argument("--model", metavar="FILE", required=True, help="saved by gmc fit")
    parser.add_argument(
        "--pairs", metavar="FILE", required=True, help="delimited text with users and items"
    )
    parser.add_argument("--out", metavar="FILE", help="CSV file (default: stdout)")
    parser.add_argument(
        "--projected", action="store_true", help="to the nearest value of the rating scale"
    )
    parser.add_argument(
        "--interval",
        action="store_true",
        help="two more columns, low and high: the interval of each prediction in ratings",
    )
    add_reading_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Predict."""
    check_output(args.out, "--out")
    reading = reading_from_arguments(args)
    of_ratings = {"duplicates", "beside"} & set(reading)
    if reading.pop("format", "delimited") != "delimited" or of_ratings:
        raise ConfigError(
            "Pairs are read from delimited text; leave out --format, --duplicates and --beside."
        )
    import numpy as np

    from gmc_core.base.table_files import number_text, safe_text
    from gmc_core.cli.calibrate import remedy
    from gmc_core.data.readers import DelimitedOptions, read_pairs
    from gmc_core.fitting.intervals import pair_intervals
    from gmc_core.model.calibration import note_of
    from gmc_core.model.model_file import load_model

    doing("reading the model")
    model = load_model(args.model)
    doing("predicting")
    pairs = read_pairs(args.pairs, DelimitedOptions(**reading))
    found = model.predict(pairs.users, pairs.items)
    values = model.scale.project(found.values) if args.projected else found.values
    known = np.select(
        [found.known_user & found.known_item, found.known_item, found.known_user],
        ["yes", "unknown user", "unknown item"],
        "unknown user and item",
    )
    numbers = [values]
    if args.interval:
        numbers += pair_intervals(model, pairs.users, pairs.items)
    rows = zip(
        pairs.users.tolist(), pairs.items.tolist(), np.stack(numbers, axis=1).tolist(), known,
        strict=True,
    )  # fmt: skip
    with replaced(args.out) if args.out else nullcontext(sys.stdout) as file:
        writer = csv.writer(file, lineterminator="\n")
        ends = ("low", "high") if args.interval else ()
        writer.writerow(("user", "item", "prediction", "known", *ends))
        for user, item, numbers_of, state in rows:
            texts = [number_text(value) for value in numbers_of]
            writer.writerow((safe_text(user), safe_text(item), texts[0], state, *texts[1:]))
    states, counts = np.unique(known, return_counts=True)
    for state, count in zip(states.tolist(), counts.tolist(), strict=True):
        note(f"{'predicted' if state == 'yes' else state}: {count:,}")
    if args.interval:
        note(note_of(model.calibration) + remedy(model, args.model))
    return 0
