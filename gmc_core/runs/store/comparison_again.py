"""Comparisons once more: the command that repeats one elsewhere, and whether one is there."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from gmc_core.data.hashes import option
from gmc_core.fitting.experiment import ExperimentConfig
from gmc_core.runs.store.command import RATINGS_DIGITS, repeating
from gmc_core.runs.store.comparisons import ComparisonFolder, Plan
from gmc_core.runs.store.submitting import absolute, anywhere


def repeating_command(
    config: ExperimentConfig,
    data: Mapping[str, Any],
    seeds: Sequence[int],
    methods: Sequence[str],
    reference: str,
    pythons: Sequence[str] = (),
) -> tuple[str, ...]:
    """The arguments of ``gmc`` that repeat a comparison elsewhere, on the same data only.

    data : :func:`gmc_core.fitting.experiment.describe`.
    """
    return (
        "compare",
        *repeating(anywhere(config), data, sweep=True, fit=False),
        *(() if config.protocol == "pair" else (f"--seeds={','.join(map(str, seeds))}",)),
        f"--methods={','.join(methods)}",
        f"--reference={reference}",
        *(f"--peer-python={absolute(python)}" for python in pythons),
    )


def computed(folder: ComparisonFolder, plan: Plan, ratings_sha256: str) -> bool:
    """Whether all that ``plan`` asks for is there, finished.

    ratings_sha256 : of the ratings as read and filtered now; of others nothing counts.
    """
    found, status = folder.plan(), folder.status()
    return (
        found is not None
        and status.state == "finished"
        and not status.failures
        and set(plan.methods) == set(found.methods)
        and plan.seeds == found.seeds
        and f"{option('ratings')}={ratings_sha256[:RATINGS_DIGITS]}" in found.repeat
    )


def ended(folder: ComparisonFolder) -> str:
    """Date and time of the last change of its state."""
    try:
        moment = (folder.path / "status.json").stat().st_mtime
    except OSError:
        return "an unknown day"
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
