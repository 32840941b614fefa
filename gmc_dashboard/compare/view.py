"""One comparison on the screen: progress, the table, the figures, exports.

As with a run, what updates itself is in a fragment, and every button outside it.
"""

from __future__ import annotations

import json
import shlex
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import streamlit as st

from gmc_core.base.files import without_nan
from gmc_core.cli.compare import markdown
from gmc_core.comparison.compare import Comparison
from gmc_core.runs.store import comparisons
from gmc_core.runs.store.command import PROGRAM
from gmc_core.runs.store.comparison_again import ended
from gmc_core.runs.store.comparisons import ComparisonFolder, Plan, Status
from gmc_dashboard.compare import figures as figures
from gmc_dashboard.compare.table import as_frame, shown, verdict
from gmc_dashboard.fit.run_view import STATES
from gmc_dashboard.shared import found_run
from gmc_dashboard.shared.components import chart, download, escape, guard
from gmc_dashboard.shared.control_bar import Action, control_bar
from gmc_dashboard.shared.tables import to_csv
from gmc_dashboard.shared.theme import is_dark
from gmc_dashboard.shared.units import whole_duration

POLL_SECONDS = 1.5
QUIET_SECONDS = 5.0  # for a stopped one, which may be started again elsewhere


def show(folder: ComparisonFolder) -> None:
    """Draw a comparison."""
    plan, status = folder.plan(), folder.status()
    if plan is None:
        st.error("This comparison has no readable description. Start it again.")
        st.button("New comparison", key="new_compare", on_click=leave)
        return
    _head(folder, plan, status)
    _found(folder, plan, status)
    left, middle, right = st.columns([3, 2, 2], gap="small", vertical_alignment="bottom")
    labels = {name: label for name, label, _ in plan.methods}
    reference = left.selectbox(
        "Compared with",
        list(labels),
        list(labels).index(plan.reference),
        format_func=labels.__getitem__,
        key=f"reference_{folder.id}",
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
    every = POLL_SECONDS if status.active else QUIET_SECONDS
    wait = every if status.state != "finished" else None
    st.fragment(_body, run_every=wait)(
        folder, status.state, reference, metric or "nmae", time_kind == "CPU"
    )
    _exports(folder, plan, reference)


def _head(folder: ComparisonFolder, plan: Plan, status: Status) -> None:
    stopped = not status.active and (status.state != "finished" or bool(status.failures))
    control_bar(
        plan.title,
        STATES["queued" if status.state == "starting" else status.state],
        cancel=Action(
            "Cancel",
            "cancel_compare",
            "Finished fits stay; the one under way stops within a second or so.",
            _cancel,
            (folder,),
        )
        if status.active
        else None,
        resume=Action(
            "Resume", "resume_compare", "Computes what is missing.", _resume, (folder, plan)
        )
        if stopped
        else None,
        new=Action("New comparison", "new_compare", None, leave),
    )


def _found(folder: ComparisonFolder, plan: Plan, status: Status) -> None:
    """That the last start has led to this comparison, which was there, and again."""
    if found_run.was_found(folder.id) and status.state == "finished":
        found_run.notice(
            f"This comparison was computed on {ended(folder)}; nothing new was started.",
            _again,
            folder,
            plan,
            help="Computes it once more, in place of these results.",
        )


@guard()
def _again(folder: ComparisonFolder, plan: Plan) -> None:
    """Compute it once more; its results are replaced."""
    folder.forget_results()
    comparisons.start(folder, plan)
    found_run.remember(folder.id, True)


def leave() -> None:
    """Back to the choice of methods."""
    st.query_params.pop("comparison", None)


@guard()
def _cancel(folder: ComparisonFolder) -> None:
    folder.cancel()
    st.toast("Stopping …")


@guard()
def _resume(folder: ComparisonFolder, plan: Plan) -> None:
    comparisons.start(folder, plan)


@guard()
def _delete(folder: ComparisonFolder) -> None:
    folder.delete()
    _loaded.cache_clear()
    leave()


@guard()  # a repeated fragment is outside the page's own guard
def _body(
    folder: ComparisonFolder, state: str, reference: str, metric: figures.Metric, cpu: bool
) -> None:
    """The part that updates itself."""
    status = folder.status()
    if status.state != state:
        st.rerun(scope="app")
    if status.active:
        st.progress(min(status.done / max(status.total, 1), 1.0), text=progress_text(status))
    elif status.state != "finished":
        _ended(folder, status)
    comparison = loaded(folder)
    if comparison is None or not comparison.outcomes:
        if status.active:
            st.markdown("The table appears with the first result.")
        return
    comparison = comparison.against(reference)
    rows = comparison.rows()
    label = comparison.labels[reference]
    st.markdown(verdict(rows, reference, complete=status.state == "finished"))
    options: dict[str, Any] = {"dark": is_dark(), "revision": folder.id}
    left, right = st.columns(2, gap="small")
    with left:
        st.markdown("**Paired differences**, with 95 % intervals: left of 0 is better")
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
    for row in rows:
        if row.failure:
            st.warning(f"{escape(row.label)}: {escape(row.failure)}", icon=":material/error:")


def progress_text(status: Status) -> str:
    """How far it is, in a sentence."""
    if status.state == "starting":
        return "Starting …"
    text = f"{status.done} of {status.total} fits are done."
    if status.now:
        spent = max(time.time() - status.began, 0.0)
        text += f" Now: {escape(status.now)}"
        text += f", for {whole_duration(spent)}." if spent >= 2 else "."
    return text


def _ended(folder: ComparisonFolder, status: Status) -> None:
    """Why it ended early, and what to do."""
    said = status.message
    last = folder.last_words()
    if status.state == "interrupted" and last:
        said += f" Its last words: {last}"
    text = f"{status.done} of {status.total} fits are done. {escape(said)}".strip()
    show_as = st.error if status.state == "failed" else st.warning
    show_as(f"{text} “Resume” computes the rest.", icon=STATES[status.state][2])


def _table(rows: Any, metric: figures.Metric) -> None:
    frame = shown(rows, metric)
    name = figures.METRIC_LABELS[metric]

    def number(label: str, format: str, help: str | None = None) -> Any:
        return st.column_config.NumberColumn(label, format=format, help=help)

    st.dataframe(
        frame,
        hide_index=True,
        placeholder="–",
        alt=f"Table of {len(frame)} methods with {name}, differences, time and memory.",
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


@lru_cache(maxsize=4)
def _loaded(path: str, stamp: object) -> Comparison | None:
    return ComparisonFolder(Path(path)).comparison()


def loaded(folder: ComparisonFolder) -> Comparison | None:
    """What has been reached, read again only when something was added."""
    status, plan = folder.status(), folder.plan()
    stamp = (status.done, status.state, status.failures, plan and (plan.methods, plan.splits))
    return _loaded(str(folder.path), stamp)


def _exports(folder: ComparisonFolder, plan: Plan, reference: str) -> None:
    with st.expander("Export, and the command", icon=":material/ios_share:"):
        comparison = loaded(folder)
        if comparison is not None and comparison.outcomes:
            found, name = comparison.against(reference), f"comparison-{folder.id}"
            with st.container(horizontal=True, gap="small"):
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
        st.caption(f"Every prediction is in `{folder.path}`.")
        st.code(
            f"{PROGRAM} {shlex.join(plan.repeat or plan.command)}",
            language="shell",
            wrap_lines=True,
        )
        with st.popover("Delete", icon=":material/delete:"):
            st.markdown("Removes this comparison with all its predictions.")
            st.button("Delete it", key="delete_compare", on_click=_delete, args=(folder,))
