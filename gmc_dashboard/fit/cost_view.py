"""What a fit will cost, in words, before it starts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from gmc_core.base.errors import ResourceError
from gmc_core.fitting.checks import TooLongError, check_length
from gmc_core.fitting.cost import Cost, check_memory, estimate_fit, memory_limit
from gmc_core.fitting.duration import Estimate, estimate_seconds
from gmc_core.gaussian.attributes import UserGroups
from gmc_core.gaussian.settings import FitSettings
from gmc_core.gaussian.signals import Layout, Signals
from gmc_core.runs.store.waiting import cost_with_estimate
from gmc_dashboard.shared import context, sources
from gmc_dashboard.shared.units import bytes_text, whole_duration


class Shape(NamedTuple):
    """What the cost depends on: the N_i, N, novel users' N_i or None, groups of users."""

    sizes: np.ndarray
    dimension: int
    query_sizes: np.ndarray | None
    groups: int


def cost_of(settings: FitSettings) -> Cost:
    """Estimated cost of one fit to the selected data."""
    shape = shape_of(settings)
    return estimate_fit(settings, shape.sizes, shape.dimension, groups=shape.groups)


def time_of(settings: FitSettings, repetitions: int = 1) -> Estimate:
    """Estimated seconds of a fit to the selected data.

    settings : complete, see :meth:`FitSettings.resolved`.
    """
    shape = shape_of(settings)
    return estimate_seconds(
        settings,
        shape.sizes,
        shape.dimension,
        query_sizes=shape.query_sizes,
        repetitions=repetitions,
        groups=shape.groups,
    )


def stored_cost(cost: Cost, estimate: Estimate) -> dict[str, Any]:
    """Both, as a run keeps them."""
    return cost_with_estimate(cost.as_dict(), estimate)


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
    split = context.split()
    train = split.train
    layout = Layout(kind, train.n_users, train.n_items, block)
    groups = len(UserGroups.of(train.user_info))
    query = None if split.query is None else split.query.user_counts
    return Shape(Signals.of(train, layout).sizes, layout.dimension, query, groups)


def allowed(cost: Cost, settings: FitSettings) -> bool:
    """Whether the memory suffices; says what to do if it does not."""
    try:
        check_memory(cost, low_rank=settings.model != "factor")
    except ResourceError as error:
        st.error(str(error), icon=":material/memory:")
        return False
    return True


def wanted(estimate: Estimate, settings: FitSettings, cost: Cost) -> bool:
    """Whether the fit takes less than an hour, or is wanted all the same."""
    try:
        check_length(estimate.computing, settings, cost.dimension)
    except TooLongError as error:
        st.warning(str(error), icon=":material/hourglass_top:")
        return bool(st.checkbox("Start it all the same", key="fit_however_long"))
    return True


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
