"""The systems of the paper's tables, printed and measured in one table, from what the store has."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from gmc_core.comparison.comparators import method_named
from gmc_core.comparison.compare import Row
from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.paper.measured import (
    MeasuredSystems,
    measured_systems,
    of_table,
    other_data,
    systems_under_way,
)
from gmc_core.paper.published import MOVIELENS_1M, TABLES, PublishedTable
from gmc_core.paper.reproduction import REPETITIONS, TableProtocol
from gmc_core.paper.systems import METHODS, OWN, SystemRow, system_rows
from gmc_core.paper.systems_map import PLACES
from gmc_core.runs.store import Run
from gmc_core.runs.store.naming import distinct_names
from gmc_dashboard.fit.run_view import STATES
from gmc_dashboard.results.systems_figure import describe_map, map_svg
from gmc_dashboard.shared import context
from gmc_dashboard.shared.components import escape
from gmc_dashboard.shared.run_actions import start_worker
from gmc_dashboard.shared.theme import is_dark
from gmc_dashboard.shared.units import bytes_text, signed

PROTOCOLS: dict[TableProtocol, str] = {"weak": "Weak", "strong": "Strong"}
# The precision in which what is missing is measured; it moves no figure that the table shows.
OWN_METHOD = "paper:dtype=float32"
NOT_HERE = "not measured here"


def as_frame(rows: Sequence[SystemRow], printed: bool = True) -> pd.DataFrame:
    """The lines as text for the screen.

    printed : whether the printed figures, and the verdicts on them, are of these data.
    """
    lines = [_line(row) for row in rows]
    if not printed:
        lines = [
            {k: v for k, v in line.items() if k not in ("Printed", "Verdict")}
            for line, row in zip(lines, rows, strict=True)
            if _is_measured(row.measured)
        ]
    return pd.DataFrame(lines)


def _is_measured(row: Row | None) -> bool:
    return row is not None and row.scores is not None


def _line(row: SystemRow) -> dict[str, str]:
    own, method = row.measured, row.published.method
    line = {
        "Method": f"**{method}**" if method == OWN else method,
        "Printed": "n/a" if row.printed is None else f"{row.printed:.4f}",
    }
    if own is None or own.scores is None:
        missing = dict.fromkeys(("Verdict", "− GM", "95 %", "Splits", "CPU s", "Memory"), "")
        return {**line, "Measured": NOT_HERE, **missing}
    gap = None if row.difference is None else row.difference.ratings
    peak, cpu = own.peak_bytes, own.cpu_seconds
    return {
        **line,
        "Measured": f"{own.scores.nmae:.4f} ± {own.scores.nmae_se:.4f}",
        "Verdict": row.verdict,
        "− GM": "" if gap is None else signed(gap.mean, 4),
        "95 %": "" if gap is None else f"{signed(gap.low, 4)} … {signed(gap.high, 4)}",
        "Splits": f"{own.splits}",
        "CPU s": "" if cpu is None else f"{cpu:,.0f}" if cpu >= 10 else f"{cpu:.1f}",
        "Memory": "" if peak is None or peak != peak else bytes_text(peak),
    }


def missing_systems(found: Iterable[MeasuredSystems | None]) -> list[str]:
    """The systems with fewer splits than the paper's number under some protocol, in the tables'
    order."""
    parts = list(found)
    return [
        name
        for name in METHODS.values()
        if any(part is None or part.splits(name) < REPETITIONS for part in parts)
    ]


def show(
    name: str, table: PublishedTable, runs: Sequence[Run], source: ExperimentConfig | None
) -> None:
    """A table's systems: what is printed, what the store has measured, the way to the rest.

    name : of the data set. source : the data that would be read, None where they are nowhere
        yet.
    """
    found = {
        protocol: measured_systems(context.store(), runs, protocol, of_table(table))
        for protocol in PROTOCOLS
    }
    st.markdown(f"**Every system on {table.data_set}, printed and measured**")
    if any(found.values()):
        protocol = _protocol(name, found)
        measured = found[protocol]
        assert measured is not None
        rows = system_rows(table, protocol, measured.comparison, OWN, comparable=True)
        st.table(
            as_frame(rows),
            hide_index=True,
            alt=f"Printed and measured NMAE of the systems on {table.data_set}, {protocol}.",
        )
        st.caption(
            "Verdict: measured within three of its standard errors of the printed figure, better, "
            "or worse. − GM: NMAE less that of the paper’s method on the same held-out ratings, "
            "below 0 the system is better. CPU seconds and memory of a fit with its predictions."
        )
        _links(measured, runs)
    _rest(name, table, runs, list(found.values()), source)


def show_map() -> None:
    """What the nine methods are, on one map and each in a few words; folded away."""
    with st.expander("What the nine methods are, on one map", icon=":material/map:"):
        st.image(map_svg(dark=is_dark()), width="stretch")
        st.caption(
            "Across: what is Gaussian in a method, from nothing to a person’s whole row. Down: "
            "what it takes a rating for. The page “Nine methods on one map” of the docs "
            "(docs/systems.md) tells it at length, with what each costs."
        )
        st.table(
            pd.DataFrame(
                {
                    "Method": f"**{place.method}**",
                    "What is Gaussian": place.gaussian,
                    "What a rating is": place.rating,
                    "What is chosen": place.chosen,
                }
                for place in PLACES
            ),
            hide_index=True,
            alt=describe_map(),
        )


def show_other_data(runs: Sequence[Run]) -> None:
    """Systems that were compared on data of which no table is."""
    for data in other_data(runs):
        found = {
            protocol: measured_systems(context.store(), runs, protocol, _these(data))
            for protocol in PROTOCOLS
        }
        if not any(found.values()):
            continue
        st.subheader(escape(f"{data['name']}: measured only"), anchor=False)
        st.markdown(
            f"The printed figures do not compare: {_why_not(data)}. So there are no verdicts, and "
            "only the differences on these ratings say something."
        )
        protocol = _protocol(str(data["sha256"])[:8], found)
        measured = found[protocol]
        assert measured is not None
        rows = system_rows(MOVIELENS_1M, protocol, measured.comparison, OWN, comparable=False)
        st.table(
            as_frame(rows, printed=False),
            hide_index=True,
            alt=f"Measured NMAE of the systems, {protocol}.",
        )
        _links(measured, runs)


def _these(data: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], bool]:
    return lambda other: bool(other["sha256"] == data["sha256"])


def _why_not(data: Mapping[str, Any]) -> str:
    """Which data the printed figures are of, and which these are."""
    scale = RatingScale(*data["scale"])
    wanted = " and ".join(
        f"{table.data_set} ({table.settings.users:,} users, {table.settings.items:,} items, "
        f"{table.settings.low}–{table.settings.high})"
        for table in TABLES.values()
    )
    return (
        f"they are of {wanted}, and these data have {data['users']:,} users, {data['items']:,} "
        f"items and ratings {escape(str(scale))}"
    )


def _protocol(name: str, found: Mapping[TableProtocol, MeasuredSystems | None]) -> TableProtocol:
    """Which of the protocols that have a result is shown."""
    there = [protocol for protocol in PROTOCOLS if found[protocol] is not None]
    if len(there) == 1:
        st.caption(f"{PROTOCOLS[there[0]]} generalization; the other has no result yet.")
        return there[0]
    chosen = st.segmented_control(
        "Protocol",
        there,
        default=there[0],
        required=True,
        format_func=lambda one: f"{PROTOCOLS[one]} generalization",
        label_visibility="collapsed",
        key=f"systems_{name}",
    )
    return chosen or there[0]


def _links(measured: MeasuredSystems, runs: Sequence[Run]) -> None:
    """The newest comparisons behind a table."""
    by_id, names = {run.id: run for run in runs}, distinct_names(runs)
    with st.container(horizontal=True, gap="small"):
        for identity in measured.runs[:3]:
            if identity in by_id:
                st.page_link(
                    "pages/compare.py",
                    label=escape(names[identity]),
                    icon=":material/balance:",
                    query_params={"comparison": identity},
                )


def _rest(
    name: str,
    table: PublishedTable,
    runs: Sequence[Run],
    found: Sequence[MeasuredSystems | None],
    source: ExperimentConfig | None,
) -> None:
    """What is not measured: the comparison that is on its way, or a button and the command."""
    missing = missing_systems(found)
    if not missing:
        return
    waiting = [
        run
        for run in systems_under_way(runs, of_table(table))
        if run.data is not None or run.label.startswith(table.data_set)
    ]
    names = distinct_names(runs)
    for run in waiting:
        st.page_link(
            "pages/compare.py",
            label=escape(f"{names[run.id]}: {STATES[run.state][0]}, {run.progress:.0%} done"),
            icon=":material/balance:",
            query_params={"comparison": run.id},
        )
    if waiting:
        return
    labels = {own: shown for shown, own in METHODS.items()}
    with st.container(border=True):
        st.markdown(
            f"**Not measured here on {REPETITIONS} splits, weak and strong:** "
            f"{', '.join(labels[own] for own in missing)}. On MovieLens 1M all eight take some "
            "hours of processor time; it goes on in the background, and what is there already is "
            "not computed again."
        )
        clicked = st.button(
            "Measure what is missing",
            key=f"measure_{name}",
            icon=":material/balance:",
            disabled=source is None,
            help="Needs the data: see above." if source is None else None,
        )
        number = 1 if table.data_set == "EachMovie" else 2
        st.caption("The same in a terminal:")
        st.code(
            f"gmc reproduce --table {number} --data {_place(source)} "
            f"--systems {','.join(missing)} --repetitions {REPETITIONS} --dtype float32",
            language="sh",
            wrap_lines=True,
        )
        if clicked and source is not None:
            begin(table, missing, source)
            st.rerun()


def _place(source: ExperimentConfig | None) -> str:
    return "PATH" if source is None else shlex.quote(source.data)


def begin(table: PublishedTable, systems: Sequence[str], source: ExperimentConfig) -> None:
    """Queue a comparison of the systems with the paper's method under either protocol."""
    scale = RatingScale(table.settings.low, table.settings.high, 1)
    made = [method_named(method, scale) for method in (OWN_METHOD, *systems)]
    plan = ComparisonPlan.of(made, range(REPETITIONS))
    for protocol in PROTOCOLS:
        context.store().submit_comparison(
            replace(source, protocol=protocol),
            plan,
            label=f"{table.data_set}, {protocol}: the systems of the table",
        )
    start_worker()
