"""The one rule for what is refused because it costs too much: most of the memory, or over an hour.

Commands, pages and the worker ask it with the earliest shape that they know
(:mod:`gmc_core.fitting.shape`); a refusal says which fit it is about and what to do instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gmc_core.base.errors import ConfigError
from gmc_core.base.times import duration
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.checks import check_range
from gmc_core.fitting.cost import Cost, check_memory, estimate_fit
from gmc_core.fitting.duration import Estimate, estimate_seconds
from gmc_core.fitting.shape import Expected, Shape
from gmc_core.gaussian.settings import FitSettings

LONGEST_UNASKED = 3600.0  # seconds
ON_THE_COMMAND_LINE = "--long starts it all the same."


class TooLongError(ConfigError):
    """A fit that takes longer than anybody waits who was not asked."""


@dataclass(frozen=True)
class Wanted:
    """A fit that is about to be done.

    settings : complete or not. what : it is called, at the beginning of a sentence.
    repetitions : one after the other. fixed : whether nothing of it can be chosen otherwise.
    """

    settings: FitSettings
    what: str = "This fit"
    repetitions: int = 1
    fixed: bool = False


def cost_and_time(
    settings: FitSettings, shape: Shape, repetitions: int = 1
) -> tuple[Cost, Estimate]:
    """What a fit costs, and how long it takes. settings : complete."""
    cost = estimate_fit(settings, shape.sizes, shape.dimension, groups=shape.groups)
    time = estimate_seconds(
        settings,
        shape.sizes,
        shape.dimension,
        query_sizes=shape.query_sizes,
        repetitions=repetitions,
        groups=shape.groups,
    )
    return cost, time


def check_affordable(
    wanted: Wanted,
    cost: Cost,
    estimate: Estimate,
    *,
    memory_limit: int | None = None,
    however_long: bool = False,
    anyway: str = "",
) -> None:
    """Refuse a fit that would take most of the memory or longer than an hour on this machine.

    Parameters
    ----------
    memory_limit : bytes; default :func:`gmc_core.fitting.cost.memory_limit`.
    however_long : whether somebody has said that it may take longer.
    anyway : how to say so, a sentence for the end of the refusal.

    Raises
    ------
    ResourceError
        If the memory does not suffice.
    TooLongError
        If it takes too long; both with the remedies.
    """
    low_rank = wanted.settings.model != "factor" and not wanted.fixed
    check_memory(cost, memory_limit, low_rank=low_rank, what=wanted.what)
    seconds = estimate.computing - estimate.starting
    if however_long or seconds <= LONGEST_UNASKED:
        return
    instead = "keep the most rated items only (--max-items)"
    if not wanted.fixed:
        instead += ", or take fewer iterations or repetitions"
    if low_rank:  # could take the place of a full Σ, whose N² numbers take long
        instead = f"take the low-rank model (--model factor), {instead}"
    text = (
        f"{wanted.what} would take about {duration(seconds)} on this machine, for a covariance of "
        f"{cost.dimension:,} × {cost.dimension:,}: {instead}. {anyway}"
    )
    raise TooLongError(text.rstrip())


def check_expected(
    fits: Iterable[Wanted],
    expected: Expected,
    scale: RatingScale,
    *,
    memory_limit: int | None = None,
    however_long: bool = False,
    anyway: str = ON_THE_COMMAND_LINE,
) -> None:
    """:func:`check_affordable` for each of several fits, before filter and split.

    scale : of the ratings. The others: as there.
    """
    for wanted in fits:
        check_range(wanted.settings, scale)
        settings = wanted.settings.resolved(scale, len(expected.item_counts))
        shape = expected.shape(settings)
        if shape is None or not len(shape.sizes) or not shape.dimension:
            continue  # whoever makes the split says what is missing
        cost, estimate = cost_and_time(settings, shape, wanted.repetitions)
        check_affordable(
            wanted, cost, estimate,
            memory_limit=memory_limit, however_long=however_long, anyway=anyway,
        )  # fmt: skip
