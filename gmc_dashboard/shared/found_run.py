"""When a start finds an identical run: the page says so and offers to compute it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.runs.store import Run
from gmc_core.runs.store.naming import found_words
from gmc_core.runs.sweeps import SweepConfig, submit_or_find_sweep
from gmc_dashboard.shared import context
from gmc_dashboard.shared.components import guard
from gmc_dashboard.shared.run_actions import start_worker

_FOUND = "gmc_dashboard.found"


def remember(identity: str, new: bool) -> None:
    """Note what a start has led to: something new, or ``identity``, which was there."""
    if new:
        st.session_state.pop(_FOUND, None)
    else:
        st.session_state[_FOUND] = identity


def was_found(identity: str) -> bool:
    """Whether the visitor's last start led to this, which was there already."""
    return st.session_state.get(_FOUND) == identity


def start_fit(
    config: ExperimentConfig,
    cost: dict[str, Any] | None = None,
    *,
    label: str = "",
    again: bool = False,
    keep_model: bool = True,
) -> None:
    """Queue a fit, or find the same one, and make it the current run.

    label, keep_model, and cost as far as it is known : see
        :meth:`gmc_core.runs.store.Store.submit_or_find`.
    """
    run, new = context.store().submit_or_find(
        config, label=label, again=again, keep_model=keep_model, cost=cost
    )
    remember(run.id, new)
    start_worker()
    context.choose(run=run.id)


def start_sweep(
    sweep: SweepConfig,
    cost: dict[str, Any] | None = None,
    *,
    label: str = "",
    again: bool = False,
    keep_models: bool = False,
) -> None:
    """Queue a sweep, or find the same one, and show it; cost : of each of its fits."""
    run, new = submit_or_find_sweep(
        context.store(), sweep, label=label, again=again, keep_models=keep_models, cost=cost
    )
    remember(run.id, new)
    start_worker()
    st.query_params["sweep"] = run.id


def start_comparison(
    config: ExperimentConfig,
    plan: ComparisonPlan,
    *,
    label: str = "",
    again: bool = False,
    cost: dict[str, Any] | None = None,
) -> None:
    """Queue a comparison, or find the same one, and show it; cost : as of a fit."""
    run, new = context.store().submit_comparison(config, plan, label=label, again=again, cost=cost)
    remember(run.id, new)
    start_worker()
    st.query_params["comparison"] = run.id


def run_notice(run: Run) -> None:
    """For a run that the last start has found: since when it is there, and again."""
    if not was_found(run.id):
        return
    what = "fit" if run.kind == "run" else run.kind
    notice(f"This {what} {found_words(run)}; nothing new was started.", _again, run)


@guard()
def _again(run: Run) -> None:
    if run.sweep is not None:
        start_sweep(SweepConfig.of(run), label=run.label, again=True, keep_models=run.keeps_model)
    elif run.comparison is not None:
        start_comparison(run.config, run.comparison, label=run.label, again=True, cost=run.cost)
    else:
        start_fit(run.config, run.cost, label=run.label, again=True, keep_model=run.keeps_model)


def notice(sentence: str, again: Callable[..., None], *args: object) -> None:
    """The sentence, with a button that starts the same once more."""
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", border=True, key="found_notice"
    ):
        st.markdown(f":material/history: {sentence}", width="stretch")
        st.button(
            "Run again",
            key="run_again",
            icon=":material/replay:",
            help="Computes it once more; what is there stays.",
            on_click=again,
            args=args,
        )
