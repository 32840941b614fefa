"""One comparison on the screen: progress, the table, the figures, exports.

As with a run, what updates itself is in a fragment, and every button outside it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import streamlit as st

from gmc_core.base.files import without_nan
from gmc_core.cli.comparison_tables import markdown
from gmc_core.comparison.compare import Comparison
from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.paper.random_holdout import is_random_tenth, random_table_for
from gmc_core.runs.comparisons import comparison_of, now_computed
from gmc_core.runs.store import Run
from gmc_core.runs.store.cells import Cell
from gmc_core.runs.store.seal import NOT_OURS
from gmc_core.runs.store.waiting import spent_in_iteration
from gmc_dashboard.compare import figures as figures
from gmc_dashboard.compare.table import as_frame, shown, verdict
from gmc_dashboard.fit.run_view import STATES
from gmc_dashboard.fit.run_words import waiting_text
from gmc_dashboard.results import random_table
from gmc_dashboard.shared import context, found_run
from gmc_dashboard.shared.components import chart, download, escape, guard, told
from gmc_dashboard.shared.control_bar import Action, control_bar
from gmc_dashboard.shared.frames import frame
from gmc_dashboard.shared.presenting import presenting
from gmc_dashboard.shared.run_actions import BUNDLE, cancel, exports, resume, start_worker
from gmc_dashboard.shared.tables import to_csv
from gmc_dashboard.shared.theme import is_dark
from gmc_dashboard.shared.units import LONGER, whole_duration

POLL_SECONDS = 1.5
QUIET_SECONDS = 5.0  # for a stopped one, which another tab may resume


def show(run: Run, plan: ComparisonPlan) -> None:
    """Draw a comparison; ``run`` is fresh from the store."""
    if run.state == "queued":
        start_worker()
    _head(run)
    found_run.run_notice(run)
    if not run.reusable:
        st.caption(NOT_OURS)
    left, middle, right = st.columns([3, 2, 2], gap="small", vertical_alignment="bottom")
    labels = dict(zip(plan.methods, plan.labels, strict=True))
    reference = left.selectbox(
        "Compared with",
        list(labels),
        list(labels).index(plan.reference),
        format_func=labels.__getitem__,
        key=f"reference_{run.id}",
    )
    metric = middle.segmented_control(
        "Metric",
        list(figures.METRIC_LABELS),
        default="nmae",
        required=True,
        format_func=figures.METRIC_LABELS.__getitem__,
        key="compare_metric",
    )
    time_kind = right.segmented_control(
        "Time",
        ["wall", "CPU"],
        default="wall",
        required=True,
        key="compare_time",
        help="Wall time depends on the number of cores; CPU time adds up all of them.",
    )
    every = QUIET_SECONDS if run.ended_for_good else POLL_SECONDS
    wait = every if run.state != "finished" else None
    st.fragment(_body, run_every=wait)(
        run.id, run.state, reference, metric or "nmae", time_kind == "CPU"
    )
    _exports(run, reference)


def _head(run: Run) -> None:
    control_bar(
        run.title,
        STATES[run.state],
        cancel=Action(
            "Stopping …" if run.cancelling else "Cancel",
            "cancel_compare",
            "Finished fits stay; the one under way stops within a second or so.",
            cancel,
            (run.id,),
            disabled=run.cancelling,
        )
        if not run.ended_for_good
        else None,
        resume=Action("Resume", "resume_compare", "Computes what is missing.", resume, (run.id,))
        if run.resumable
        else None,
        # On a projector a long title needs its place.
        new=None if presenting() else Action("New comparison", "new_compare", None, leave),
    )


def leave() -> None:
    """Back to the choice of methods."""
    st.query_params.pop("comparison", None)


@guard()
def _delete(identity: str) -> None:
    context.store().delete(identity)
    leave()


@guard()  # a repeated fragment is outside the page's own guard
def _body(identity: str, state: str, reference: str, metric: figures.Metric, cpu: bool) -> None:
    """The part that updates itself."""
    run = context.store().run(identity)
    if run.state != state:
        st.rerun(scope="app")
    cells = context.store().cells(identity)
    if not run.ended_for_good:
        st.progress(run.progress, text=progress_text(run, cells))
    elif run.state != "finished":
        _ended(run)
    comparison = loaded(run, cells)
    if comparison is None or not comparison.outcomes:
        _nothing_yet(run)
        return
    comparison = comparison.against(reference)
    rows = comparison.rows()
    label = comparison.labels[reference]
    large = presenting()
    st.markdown(verdict(rows, reference, complete=run.state == "finished", short=large))
    # Before the figures, in which a method that failed is missing.
    for row in rows:
        if row.failure:
            st.warning(f"{escape(row.label)}: {told(row.failure)}", icon=":material/error:")
    options: dict[str, Any] = {"dark": is_dark(), "revision": run.id, "large": large}
    left, right = st.columns(2, gap="small")
    with left:
        intervals = "" if large else ", with 95 % intervals"
        st.markdown(f"**Paired differences**{intervals}: left of 0 is better")
        if any(figures.difference_of(row, metric) for row in rows):
            chart(
                figures.differences_figure(rows, label, metric, **options),
                figures.describe_differences(rows, label, metric),
                key="differences_chart",
                waits="Waiting for the first result",
            )
        else:
            st.markdown("A difference needs two methods on one split, the reference among them.")
    with right:
        st.markdown("**Accuracy and time**")
        chart(
            figures.cost_figure(rows, metric, cpu=cpu, **options),
            figures.describe_cost(rows, metric, cpu=cpu),
            key="cost_chart",
            waits="Waiting for the first result",
        )
    _table(rows, metric)
    published = random_table_for(run.data) if is_random_tenth(run.config) else None
    if published is not None:
        with st.expander(f"What others report on a random tenth of {published.data_set}"):
            random_table.show(published)


def progress_text(run: Run, cells: Sequence[Cell]) -> str:
    """How far it is, in a sentence."""
    if run.state == "queued":
        text = waiting_text(context.store().waiting(run.id), run.id)
        return f"{text} {_fits(run)}" if run.iteration else text
    now = now_computed(run, cells)
    if now is None and not run.iteration:
        waited = spent_in_iteration(run)
        so_far = "" if waited is None else f", for {whole_duration(waited)}"
        return f"Reading the data and preparing{so_far}."
    text, spent = _fits(run), 0.0
    if now is not None:
        words, began = now
        spent = max(time.time() - began, 0.0)
        text += f" Now: {escape(words)}"
        if spent >= 2:
            text += f", for {whole_duration(spent)}"
            text += f" ({run.step_words})" if run.step_words else ""
        text += "."
    left = context.store().remaining_seconds(run.id)
    if left and spent > left:
        return f"{text} That is {LONGER}."
    return text if not left else f"{text} About {whole_duration(left - spent)} left."


def _fits(run: Run) -> str:
    total = run.comparison.total if run.comparison else 0
    return f"{run.iteration} of {total} fits are done."


def _ended(run: Run) -> None:
    """Why it ended early, and what to do."""
    text = f"{_fits(run)} {told(run.message)}".strip()
    show_as = st.error if run.state == "failed" else st.warning
    if run.state != "interrupted":  # of which the message says so
        text += " Resume computes the rest."
    show_as(text, icon=STATES[run.state][2])


def _nothing_yet(run: Run) -> None:
    """Why there is no table."""
    if not run.ended_for_good:
        st.markdown("The table appears with the first result.")
    elif run.iteration:
        st.info(
            "The predictions of this comparison are not in the store; it was imported without "
            "them, or its files are gone.",
            icon=":material/info:",
        )


def _table(rows: Any, metric: figures.Metric) -> None:
    table = shown(rows, metric)
    name = figures.METRIC_LABELS[metric]

    def number(label: str, format: str, help: str | None = None) -> Any:
        return st.column_config.NumberColumn(label, format=format, help=help)

    frame(
        table,
        projected=[
            *("method", "nmae", "nmae_se", "rmse"),
            *(f"{metric}_difference", "over_ratings", "over_splits"),
        ],
        hide_index=True,
        placeholder="–",
        alt=f"Table of {len(table)} methods with {name}, differences, time and memory.",
        column_config={
            "method": "Method",
            "nmae": number("NMAE", "%.4f"),
            "rmse": number("RMSE", "%.4f", "Clipped to the scale, not rounded"),
            "nmae_se": number("±", "%.4f", "Standard error over the held-out ratings"),
            f"{metric}_difference": number("− reference", "%+.4f", "Below 0: better"),
            "over_ratings": st.column_config.TextColumn(
                "95 % over ratings",
                help=f"Interval of the difference of {name}, over held-out ratings",
            ),
            "over_splits": st.column_config.TextColumn(
                "95 % over splits", help=f"Interval of the difference of {name}, over splits"
            ),
            "seconds": number("Time, s", "%.2f", "Fit and predictions, mean over the splits"),
            "cpu_seconds": number("CPU, s", "%.2f", "Of all cores"),
            "megabytes": number("Memory, MB", "%.0f", "Largest, beyond the ratings"),
            "splits": number("Splits", "%d"),
            "test_ratings": number("Held out", "%d"),
        },
    )


class _Kept:
    """A run and its store, as part of a cache's key by what has been reached."""

    def __init__(self, run: Run, stamp: object) -> None:
        self.run, self._stamp = run, (str(context.store().path), run.id, stamp)

    def __hash__(self) -> int:
        return hash(self._stamp)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kept) and self._stamp == other._stamp


@lru_cache(maxsize=4)
def _loaded(kept: _Kept) -> Comparison | None:
    return comparison_of(context.store(), kept.run)


def loaded(run: Run, cells: Sequence[Cell]) -> Comparison | None:
    """What has been reached, read again only when something was added."""
    return _loaded(_Kept(run, tuple(cell for cell in cells if cell.state != "running")))


def _exports(run: Run, reference: str) -> None:
    with st.expander("Export, and the command", icon=":material/ios_share:"):
        comparison = loaded(run, context.store().cells(run.id))
        with st.container(horizontal=True, gap="small"):
            if comparison is not None and comparison.outcomes:
                found, name = comparison.against(reference), f"comparison-{run.id}"
                download(
                    "Table (CSV)", lambda: to_csv(as_frame(found.rows())), f"{name}.csv",
                    "text/csv", key="compare_csv",
                )  # fmt: skip
                download(
                    "Table (Markdown)", lambda: markdown(found), f"{name}.md", "text/markdown",
                    key="compare_markdown",
                )  # fmt: skip
                download(
                    "All figures (JSON)",
                    lambda: json.dumps(without_nan(found.as_dict()), indent=1), f"{name}.json",
                    "application/json", key="compare_json",
                )  # fmt: skip
            exports(run, ("html", "zip", BUNDLE))
        st.caption(f"Every prediction is in `{context.store().folder(run.id)}`.")
        st.code(context.store().command(run.id), language="shell", wrap_lines=True)
        with st.popover("Delete", icon=":material/delete:", disabled=run.state == "running"):
            st.markdown("Removes this comparison with all its predictions.")
            st.button("Delete it", key="delete_compare", on_click=_delete, args=(run.id,))
