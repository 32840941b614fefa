"""Runs: all of them in a table; compare, name, resume, export, import and delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gmc_core.runs.overlay import common_seeds
from gmc_core.runs.report_html import settings_of
from gmc_core.runs.store import Run
from gmc_core.runs.store.naming import data_name, distinct_names
from gmc_core.runs.store.seal import NOT_OURS
from gmc_core.runs.store.transfer import import_run
from gmc_dashboard.fit import overlay
from gmc_dashboard.fit.run_view import STATES
from gmc_dashboard.runs import picking, place_view
from gmc_dashboard.runs.figures import (
    comparison_figure,
    describe_comparison,
    differences,
    runs_table,
)
from gmc_dashboard.shared import context, link_state
from gmc_dashboard.shared.components import (
    chart,
    download,
    empty_state,
    escape,
    guard,
    number_row,
    page_header,
    told,
)
from gmc_dashboard.shared.frames import frame
from gmc_dashboard.shared.linked_choice import linked_choice, linked_choices
from gmc_dashboard.shared.presenting import presenting
from gmc_dashboard.shared.run_actions import cancel, exports, resume
from gmc_dashboard.shared.run_pages import place_of
from gmc_dashboard.shared.tables import to_csv
from gmc_dashboard.shared.theme import is_dark
from gmc_dashboard.shared.units import bytes_text
from gmc_dashboard.shared.watching import fingerprint, redraw_on_progress

QUANTITIES = {
    "nmae": "NMAE",
    "rmse": "RMSE, in ratings",
    "mae": "MAE, in ratings",
    "log_likelihood": "log-likelihood",
    "covariance_change": "relative change of Σ",
}


def filters() -> list[Run]:
    """The runs that pass the filter controls."""
    text, states, data = st.columns(3, gap="small", vertical_alignment="bottom")
    wanted = text.text_input(
        "Search",
        key="search",
        bind="query-params",
        placeholder="name, note, data, setting",
        icon=":material/search:",
    )
    with states:
        words = {state: shown[0] for state, shown in STATES.items()}
        chosen = linked_choices("State", words, (), key="states", placeholder="all")
    runs = context.store().runs(text=wanted or "")
    names = sorted({data_name(run) for run in runs})
    only = data.multiselect("Data", names, key="data_names", bind="query-params", placeholder="all")
    return [
        run
        for run in runs
        if (not chosen or run.state in chosen) and (not only or data_name(run) in only)
    ]


def overview(runs: Sequence[Run]) -> None:
    """The table; a click on rows picks them, and rows of runs picked otherwise are ticked."""
    st.session_state["runs_shown"] = [run.id for run in runs]
    picked = st.session_state["picked"]
    picking.tick("runs_table", [row for row, run in enumerate(runs) if run.id in picked])
    frame(
        runs_table(runs),
        projected=("run", "state", "nmae", "nmae_se", "rmse"),
        key="runs_table",
        hide_index=True,
        height=33 * (min(len(runs), 8) + 1) + 2,
        row_height=33,
        placeholder="–",
        on_select=_pick,
        selection_mode="multi-row",
        alt=f"Table of {len(runs)} runs with state, settings, NMAE, time and disk use.",
        column_config={
            "run": st.column_config.TextColumn("Run", pinned=True, width=330),
            "kind": st.column_config.TextColumn("Kind", width=95),
            "state": st.column_config.TextColumn("State", width=85),
            "progress": st.column_config.ProgressColumn(
                "Done", format="percent", min_value=0, max_value=1, width=100
            ),
            "data": "Data",
            "model": "Model",
            "seeds": "Seeds",
            "protocol": "Protocol",
            "epsilon": "ε",
            "L": st.column_config.NumberColumn("L", format="%d"),
            "fits": st.column_config.NumberColumn(
                "Fits", help="Repetitions; fits of a sweep or a comparison"
            ),
            "nmae": st.column_config.NumberColumn(
                "NMAE", format="%.4f", help="Of a comparison that of its best method"
            ),
            "nmae_se": st.column_config.NumberColumn("±", format="%.4f", help="Standard error"),
            "rmse": st.column_config.NumberColumn("RMSE", format="%.4f"),
            "seconds": st.column_config.NumberColumn("Seconds", format="%.0f"),
            "created": st.column_config.DatetimeColumn("Started", format="distance"),
            "megabytes": st.column_config.NumberColumn("MB", format="%.1f", help="On disk"),
            "note": "Note",
            "open": st.column_config.LinkColumn("Open", display_text="open", width=60),
        },
    )


def _pick() -> None:
    shown = st.session_state["runs_shown"]
    ticked = [shown[row] for row in picking.ticked_rows("runs_table") if row < len(shown)]
    before = st.session_state.get("picked", [])
    st.session_state["picked"] = picking.taken_over(before, ticked, shown)


def one(run: Run) -> None:
    """Everything that can be done with one run."""
    store = context.store()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        label, colour, icon = STATES[run.state]
        st.subheader(escape(run.title), anchor=False, width="content")
        st.badge(label, color=colour, icon=icon)
        place = place_of(run)
        st.page_link(
            place.page,
            label="Open",
            icon=":material/open_in_new:",
            query_params=place.query(run),
        )
        if run.state in ("queued", "running"):
            st.button("Cancel", key="cancel", on_click=cancel, args=(run.id,))
        elif run.resumable:
            st.button("Resume", key="resume", type="primary", on_click=resume, args=(run.id,))
        delete([run])
    if run.message:
        st.caption(told(run.message))
    if not run.reusable:
        st.caption(NOT_OURS)
    left, right = st.columns([1, 2], gap="small")
    words(left, "Name", run.id, run.label, store.rename, placeholder=run.title)
    words(right, "Note", run.id, run.note, store.annotate)
    exports(run)
    with st.expander("Settings and the command that repeats this run"):
        st.code(store.command(run.id), language="shell", wrap_lines=True)
        st.dataframe(
            differences({run.id: settings_of(run)}, all_rows=True),
            height=300,
            alt="All settings of this run.",
        )


def words(
    place: DeltaGenerator,
    label: str,
    identity: str,
    kept: str,
    keep: Callable[[str, str], Run],
    placeholder: str | None = None,
) -> None:
    """A text of a run to edit; only an edit writes, or two tabs would overwrite each other."""
    key = f"{label.lower()}_{identity}"
    if key not in st.session_state or st.session_state.get(f"{key}_kept") != kept:
        st.session_state[key] = st.session_state[f"{key}_kept"] = kept  # also changed elsewhere

    @guard()
    def take() -> None:
        keep(identity, st.session_state[key])

    place.text_input(label, key=key, placeholder=placeholder, on_change=take)


def delete(runs: Sequence[Run]) -> None:
    """A button that asks before it deletes."""
    many = "this run" if len(runs) == 1 else f"these {len(runs)} runs"
    with st.popover("Delete", icon=":material/delete:"):
        freed = bytes_text(sum(run.disk_bytes for run in runs))
        st.markdown(f"Delete {many} with models and records? This frees {freed} and is final.")
        if st.button(f"Delete {many}", key="delete_confirmed", type="primary"):
            context.store().delete(*(run.id for run in runs))
            if context.current_run() in [run.id for run in runs]:
                context.choose(run="")
            st.toast(f"Deleted {many}; {freed} are free again.")
            st.rerun()


def beside_each_other(runs: Sequence[Run]) -> None:
    """A link that draws the picked fits into one chart, if all were tested on one split."""
    first, *others = runs
    if others and all(run.kind == "run" and common_seeds(first, run) for run in runs):
        st.page_link(
            "pages/fit.py",
            label="Draw beside each other on Fit",
            icon=":material/stacked_line_chart:",
            query_params={
                "run": first.id,
                overlay.PARAMETER: ",".join(run.id for run in others[: overlay.MOST]),
            },
        )


def several(runs: Sequence[Run]) -> None:
    """Curves and settings of the picked runs side by side."""
    names = distinct_names(runs)
    named = {names[run.id]: run for run in runs}
    fits = {name: context.curves_of(run) for name, run in named.items() if run.kind == "run"}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        quantity = "nmae"
        if fits:  # a sweep or a comparison has no curve
            quantity = linked_choice(
                "Compare", QUANTITIES, "nmae", key="quantity", box=True, width=260
            )
        beside_each_other(runs)
        delete(runs)
    if fits:
        label = QUANTITIES[quantity]
        chart(
            comparison_figure(fits, quantity, label, dark=is_dark()),
            describe_comparison(fits, quantity, label),
            key="comparison",
            waits="Waiting for the first iteration",
        )
    whole = st.toggle(
        "Also the settings that are the same", key="all_settings", bind="query-params"
    )
    table = differences(
        {name: {**settings_of(run), **(run.sweep or {})} for name, run in named.items()},
        all_rows=whole,
    )
    if table.empty:
        st.caption("All settings of these runs are the same.")
    else:
        frame(table, alt="Settings in which the picked runs differ, a column per run.")
        download(
            "Settings (CSV)",
            to_csv(table, index=True),
            "settings.csv",
            "text/csv",
            key="settings_csv",
        )


def take_in() -> None:
    """Import of an exported run."""
    with st.expander("Import a run", icon=":material/upload:"):
        file = st.file_uploader("A run exported as zip or JSON", ["zip", "json"], key="import")
        if file is not None and st.button("Import", key="import_run", type="primary"):
            with TemporaryDirectory(prefix="gmc-import-") as folder:
                path = Path(folder) / f"run{Path(file.name).suffix.lower()}"
                path.write_bytes(file.getbuffer())
                run = import_run(context.store(), path)
            st.toast(f"Imported {escape(run.title)}.")
            st.rerun()


def warnings() -> None:
    """What everybody must know of the store, until somebody has read it."""
    found = [text for _, level, text in context.store().messages() if level != "info"]
    if found:
        st.warning(escape("\n".join(found)), icon=":material/warning:")
        st.button("I have read this", key="acknowledge", on_click=guard()(_acknowledge))


def _acknowledge() -> None:
    context.store().acknowledge()


page_header("Runs", "Every fit, sweep and comparison on this machine, whoever started it.")
with guard():
    everything = context.store().runs()
    warnings()
    if not everything:
        empty_state("There is no run yet.", "pages/fit.py", "Start the first fit")
    else:
        active = sum(run.state in ("queued", "running") for run in everything)
        usage = sum(run.disk_bytes for run in everything)
        number_row(
            [
                ("Runs", f"{len(everything)}"),
                ("Waiting or running", f"{active}"),
                ("On disk", bytes_text(usage), f"All files of the runs, in {context.store().path}"),
            ],
            equal=True,
        )
        known = {run.id: run for run in everything}
        linked = st.query_params.get("picked", "").split(",")
        names = distinct_names(everything)
        before = linked if link_state.unset("picked") else st.session_state["picked"]
        st.session_state["picked"] = [i for i in before if i in known]
        visible = filters()
        if visible:
            overview(visible)
        else:
            st.info("No run passes these filters; clear one of them.")
        picked = st.multiselect(
            "Picked runs" if presenting() else "Picked runs (or click rows of the table)",
            list(known),
            key="picked",
            format_func=names.__getitem__,
            placeholder="pick one to change or export it, several to compare them",
        )
        if picked:
            st.query_params["picked"] = ",".join(picked)
        else:
            st.query_params.pop("picked", None)
        if len(picked) == 1:
            one(known[picked[0]])
        elif picked:
            several([known[identity] for identity in picked])
        if active:
            redraw_on_progress(fingerprint(everything))
    place_view.show()
    take_in()
