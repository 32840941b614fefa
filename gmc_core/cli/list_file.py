"""``gmc recommend --ratings-file``: one person's list in place of many ``--rate``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.cli.output import note
from gmc_core.cli.values import typed
from gmc_core.data.reading_options import Scale

if TYPE_CHECKING:
    from gmc_core.model.gaussian_model import GaussianModel
    from gmc_core.model.person_ratings import Matched

SHOWN = 20


def add_file_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--ratings-file`` and ``--file-scale``."""
    parser.add_argument(
        "--ratings-file",
        metavar="FILE",
        help="ratings of a new user: an export of IMDb, Letterboxd, MovieLens or Goodreads, or a "
        "table with columns title (or id), rating and perhaps year; --rate adds to it",
    )
    parser.add_argument(
        "--file-scale",
        type=typed(Scale()),
        metavar="LOW,HIGH[,STEP]",
        help="scale of the ratings in that file, such as 1,10, where it is not the model's; known "
        "for the exports",
    )


def matched_file(model: GaussianModel, args: argparse.Namespace) -> Matched | None:
    """The list of ``--ratings-file`` on the model's items, told on stderr; None without one.

    Raises
    ------
    ConfigError
        If the option stands beside ``--user``, or the scale alone.
    DataError
        If the file cannot be read, or none of its titles is the model's.
    """
    if args.ratings_file is None:
        if args.file_scale is not None:
            raise ConfigError("--file-scale is for --ratings-file; give both, or leave it out.")
        return None
    if args.user is not None:
        raise ConfigError("--ratings-file describes a new user; leave out it or --user.")
    from gmc_core.data.ratings import RatingScale
    from gmc_core.data.readers.one_person import read_person
    from gmc_core.model.person_ratings import match

    given = None
    if args.file_scale is not None:
        low, high, step = args.file_scale
        given = RatingScale(low, high, step if isinstance(step, float) else None)
    found = match(read_person(args.ratings_file), model, given)
    note(f"{args.ratings_file}: {found.summary()}; {found.scaling}")
    for entry, reason in found.unmatched[:SHOWN]:
        year = f" ({entry.year})" if entry.year else ""
        note(f"  not matched, line {entry.line}: {entry.title or entry.id}{year}: {reason}")
    if len(found.unmatched) > SHOWN:
        note(f"  … and {len(found.unmatched) - SHOWN:,} more; --json lists all")
    if not found.ratings:
        raise DataError(
            "None of its titles is one of this model's, so there is nothing to go by; check that "
            "the model is of the same kind of items.",
            path=args.ratings_file,
        )
    return found
