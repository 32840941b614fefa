"""What a fit will cost, in words, before it starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import streamlit as st

from gmc_core.base.errors import ResourceError
from gmc_core.fitting.affordable import TooLongError, Wanted, check_affordable, cost_and_time
from gmc_core.fitting.cost import Cost, memory_limit
from gmc_core.fitting.duration import Estimate
from gmc_core.fitting.shape import Shape
from gmc_core.gaussian.settings import FitSettings
from gmc_core.runs.store.run import LONG_KEY
from gmc_core.runs.store.waiting import cost_with_estimate
from gmc_dashboard.shared import context, sources
from gmc_dashboard.shared.components import told
from gmc_dashboard.shared.units import bytes_text, whole_duration


def cost_and_time_of(settings: FitSettings, repetitions: int = 1) -> tuple[Cost, Estimate]:
    """Estimated cost of one fit to the selected data, and the seconds of all repetitions.

    settings : complete, see :meth:`FitSettings.resolved`.
    """
    return cost_and_time(settings, shape_of(settings), repetitions)


def stored_cost(cost: Cost, estimate: Estimate, however_long: bool) -> dict[str, Any]:
    """What a run keeps of both, and whether it may take longer than an hour."""
    return cost_with_estimate(cost.as_dict(), estimate) | allowing(however_long)


def allowing(however_long: bool) -> dict[str, Any]:
    """What lets a run take longer than an hour, if it may."""
    return {LONG_KEY: True} if however_long else {}


def shape_of(settings: FitSettings) -> Shape:
    """The shape of the selected data as signals of a kind."""
    chosen = context.current()
    key = (
        chosen.data,
        sources.stamp(chosen.data),
        chosen.min_user,
        chosen.min_item,
        chosen.max_items,
        chosen.protocol,
        chosen.held,
        chosen.seed,
    )
    return _shape(key, settings.signals, settings.block)


@st.cache_resource(max_entries=8, show_spinner="Estimating the cost …", show_time=True)
def _shape(key: tuple[Any, ...], kind: Any, block: tuple[int, int]) -> Shape:
    return Shape.of(context.split(), FitSettings(signals=kind, block=block))


class Verdict(NamedTuple):
    """possible : whether what was asked for may start. however_long : whether somebody has said
    that it may take longer than an hour."""

    possible: bool
    however_long: bool


def verdict_on(fits: Sequence[tuple[Wanted, Cost, Estimate]], key: str) -> Verdict:
    """Whether each of these fits can be afforded; says what to do instead if it cannot.

    key : of the box that starts what takes long.
    """
    return verdict_of([partial(check_affordable, *fit) for fit in fits], key)


def verdict_of(checks: Iterable[Callable[[], None]], key: str) -> Verdict:
    """As :func:`verdict_on`, of what raises the errors of :func:`check_affordable`."""
    possible, long = True, False
    for check in checks:
        try:
            check()
        except ResourceError as error:
            st.error(told(str(error)), icon=":material/memory:")
            possible = False
        except TooLongError as error:
            st.warning(told(str(error)), icon=":material/hourglass_top:")
            long = True
    if not long:
        return Verdict(possible, False)
    however_long = bool(st.checkbox("Start it all the same", key=key))
    return Verdict(possible and however_long, however_long)


def cost_sentence(cost: Cost, estimate: Estimate) -> str:
    """Time, memory and work of a fit in a sentence or two."""
    return (
        f"Estimated: {time_words(estimate)} and **{bytes_text(cost.memory_bytes)}** of memory "
        f"({bytes_text(memory_limit())} may be used), for a covariance of "
        f"{cost.dimension:,} × {cost.dimension:,} and {cost.signals:,} signals."
    )


def time_words(estimate: Estimate, fits: int = 1) -> str:
    """About how long ``fits`` like this one take, with the start and what is compiled first."""
    seconds = estimate.starting + fits * (estimate.computing - estimate.starting)
    text = f"about **{whole_duration(seconds)}** of computing"
    if estimate.compiling:
        text += (
            f", before it about {whole_duration(estimate.compiling)} to compile the numerical code "
            "(once on this machine)"
        )
    return text
