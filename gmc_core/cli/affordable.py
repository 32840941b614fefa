"""``--long``, and the refusal of what takes longer than an hour, before the slow part."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gmc_core.data.ratings import Ratings, RatingScale
    from gmc_core.fitting.affordable import Wanted
    from gmc_core.fitting.config import ExperimentConfig
    from gmc_core.runs.store import Store

# The fits that a command is about to do, of ratings on a scale.
Fits = Callable[["RatingScale"], Sequence["Wanted"]]


def add_long_argument(group: Any) -> None:
    """Add ``--long`` to a parser or a group of it."""
    group.add_argument(
        "--long", action="store_true", help="start also what will take longer than an hour"
    )


def refusing(
    args: argparse.Namespace, config: ExperimentConfig, fits: Fits, memory_limit: int | None = None
) -> Callable[[Ratings], None]:
    """What refuses, of ratings as they were read, fits that would cost too much.

    memory_limit : of one fit, in bytes. On a cluster every worker looks at its own memory.
    """

    def check(ratings: Ratings) -> None:
        from gmc_core.fitting.affordable import check_expected
        from gmc_core.fitting.shape import Expected

        check_expected(
            fits(ratings.scale),
            Expected.of_ratings(ratings, config),
            ratings.scale,
            memory_limit=_limit(args, memory_limit),
            however_long=args.long,
        )

    return check


def check_before_queueing(
    store: Store, args: argparse.Namespace, config: ExperimentConfig, fits: Fits
) -> dict[str, Any] | None:
    """Refuse what the worker would refuse: from what the store remembers of the data, else they
    are read here. Data that have still to be downloaded are left to the worker.

    Returns
    -------
    The description of data that were read, see :func:`gmc_core.fitting.preparing.describe`.
    """
    from gmc_core.cli.data import prepare_telling
    from gmc_core.data.datasets import DATASETS
    from gmc_core.data.ratings import RatingScale
    from gmc_core.fitting.affordable import check_expected
    from gmc_core.fitting.preparing import describe
    from gmc_core.fitting.provenance import paths
    from gmc_core.fitting.shape import Expected
    from gmc_core.runs.store.submitting import anywhere, source_of

    known = store.known_data(source_of(anywhere(config)))
    if known is not None:
        scale = RatingScale(*known["scale"])
        check_expected(
            fits(scale),
            Expected.of_description(known, config),
            scale,
            memory_limit=_limit(args, None),
            however_long=args.long,
        )
        return None
    if config.data in DATASETS and not all(path.exists() for path in paths(config).values()):
        return None
    return describe(prepare_telling(config, refusing(args, config, fits)))


def _limit(args: argparse.Namespace, given: int | None) -> int | None:
    return given if getattr(args, "dask", None) is None else sys.maxsize
