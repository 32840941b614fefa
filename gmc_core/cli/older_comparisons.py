"""Importing older comparisons, which describe themselves by a ``gmc compare`` command."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stderr
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gmc_core.fitting.config import ExperimentConfig
    from gmc_core.runs.store import Store


def take_in_older(store: Store) -> list[str]:
    """Make runs of the folders of comparisons; returns what a person should know.

    See :mod:`gmc_core.runs.older_comparisons`. Cheap where there are none.
    """
    if not (store.path / "comparisons").is_dir():
        return []
    from gmc_core.runs.older_comparisons import take_in_older

    return take_in_older(store, _read)


def _read(command: Sequence[str]) -> tuple[ExperimentConfig, tuple[str, ...]]:
    """The configuration of ``gmc compare …``, and its interpreters with other packages."""
    from gmc_core.cli import build_parser
    from gmc_core.cli.arguments import config_from_arguments

    with redirect_stderr(io.StringIO()):  # the parser would print what it does not understand
        arguments = build_parser().parse_args(list(command))
    return config_from_arguments(arguments), tuple(arguments.peer_python or ())
