"""``gmc fit``: fit the model and measure it."""

from __future__ import annotations

import argparse
from typing import Any

from gmc_core.cli.arguments import (
    add_experiment_arguments,
    add_resource_arguments,
    config_from_arguments,
)
from gmc_core.cli.parser import add_command

EXAMPLES = """\
  gmc fit --data sample
  gmc fit --data ml-1m --protocol strong --repetitions 3 --json strong.json
  gmc fit --data my-ratings.csv --scale 1,10 --max-items 2000 --model-out my.npz
  gmc fit --train train.csv --test test.csv --epsilon 0.1 --iterations 20
"""


def add_parser(commands: Any) -> None:
    """Add the command ``fit``."""
    parser = add_command(
        commands,
        "fit",
        help="fit the model to ratings and measure it on held-out ones",
        examples=EXAMPLES,
    )
    add_experiment_arguments(parser)
    add_resource_arguments(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--json", metavar="FILE", help="write the result as JSON ('-' for stdout)")
    output.add_argument("--model-out", metavar="FILE", help="save the fitted model")
    output.add_argument(
        "--detach", action="store_true", help="run in the background; gmc runs shows it"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the experiment."""
    config = config_from_arguments(args)
    if args.detach:
        from gmc_core.cli import runs  # type: ignore[attr-defined]

        return int(runs.detach(config) or 0)
    raise NotImplementedError
