"""``gmc worker``: compute the queued runs."""

from __future__ import annotations

import argparse
from typing import Any

from gmc_core.cli.arguments import number
from gmc_core.cli.dask import add_dask_argument
from gmc_core.cli.parser import add_command

EXAMPLES = """\
  gmc worker                      until nothing has been queued for a minute
  gmc worker --once               one run
  gmc worker --idle-seconds 0     until the queue is empty
  gmc worker --dask local:4       in four processes of this machine
"""


def add_parser(commands: Any) -> None:
    """Add the command ``worker``."""
    parser = add_command(
        commands,
        "worker",
        help="compute queued runs, one at a time",
        description="Compute queued runs, one at a time, until there are none. The dashboard and "
        "--detach start one by themselves; a second one leaves at once.",
        examples=EXAMPLES,
    )
    parser.add_argument(
        "--idle-seconds",
        type=number,
        default=60.0,
        metavar="S",
        help="leave when nothing has been queued for so long (default: 60)",
    )
    parser.add_argument("--once", action="store_true", help="leave after one run")
    parser.add_argument(
        "--beside", action="store_true", help="work even if another worker is alive"
    )
    parser.add_argument(
        "--checkpoint-seconds",
        type=number,
        default=60.0,
        metavar="S",
        help="save the full state of a run at most so often (default: 60)",
    )
    add_dask_argument(parser)
    parser.set_defaults(run=run, tells_itself=True)


def run(args: argparse.Namespace) -> int:
    """Work."""
    import logging
    import sys

    from gmc_core.runs.store import Store
    from gmc_core.runs.worker import work
    from gmc_core.runs.worker.place import place_of

    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
    )
    with Store() as store:
        where = args.dask or place_of(store).where

        def leave() -> bool:
            return args.dask is None and place_of(store).where != where

        if where:
            from gmc_core.runs.worker.on_cluster import work_on

            work_on(
                store, where,
                idle_seconds=args.idle_seconds, once=args.once, beside=args.beside, leave=leave,
            )  # fmt: skip
            return 0
        work(
            store,
            idle_seconds=args.idle_seconds,
            once=args.once,
            beside=args.beside,
            checkpoint_seconds=args.checkpoint_seconds,
            leave=leave,
        )
    return 0
