"""What a fit will cost, in words, before it starts."""

from __future__ import annotations

from typing import Any

import streamlit as st

from explorer import context, sources
from explorer.units import bytes_text, whole_duration
from gmc_core.attributes import UserGroups
from gmc_core.cost import Cost, check_memory, estimate_fit, gemm_rate, memory_limit
from gmc_core.errors import ResourceError
from gmc_core.settings import FitSettings
from gmc_core.signals import Layout, Signals

# Seconds for evaluating, recording and saving an iteration, and for preparing a fit.
ITERATION_OVERHEAD = 0.1
FIT_OVERHEAD = 0.5


def cost_of(settings: FitSettings) -> Cost:
    """Estimated cost of one fit to the selected data."""
    chosen = context.current()
    key = (
        chosen.data,
        sources.stamp(chosen.data),
        chosen.min_user,
        chosen.min_item,
        chosen.max_items,
        chosen.protocol,
        chosen.seed,
    )
    sizes, dimension, groups = _sizes(key, settings.signals, settings.block)
    return estimate_fit(settings, sizes, dimension, groups=groups)


@st.cache_resource(max_entries=8, show_spinner=False)
def _sizes(key: tuple[Any, ...], kind: Any, block: tuple[int, int]) -> tuple[Any, int, int]:
    """The N_i, N, and the number of groups of users."""
    train = context.split().train
    layout = Layout(kind, train.n_users, train.n_items, block)
    groups = len(UserGroups.of(train.user_info))
    return Signals.of(train, layout).sizes, layout.dimension, groups


def fit_seconds(cost: Cost, settings: FitSettings) -> float:
    """Estimated seconds of one fit of L iterations, with what is not arithmetic."""
    iteration = cost.seconds(gemm_rate(settings.dtype)) + ITERATION_OVERHEAD
    return iteration * settings.iterations + FIT_OVERHEAD


def allowed(cost: Cost) -> bool:
    """Whether the memory suffices; says what to do if it does not."""
    try:
        check_memory(cost)
    except ResourceError as error:
        st.error(str(error), icon=":material/memory:")
        return False
    return True


def cost_sentence(cost: Cost, seconds: float) -> str:
    """Time, memory and work of a fit in a sentence."""
    return (
        f"Estimated: about **{whole_duration(seconds)}** of computing and "
        f"**{bytes_text(cost.memory_bytes)}** of memory "
        f"({bytes_text(memory_limit())} may be used), for a covariance of "
        f"{cost.dimension:,} × {cost.dimension:,} and {cost.signals:,} signals."
    )
