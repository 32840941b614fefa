"""Results: the paper's two tables, and the literature's under random hold-out, with own figures."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from gmc_core.base.errors import DataError
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.paper.published import TABLES, PublishedTable
from gmc_core.paper.random_holdout import RANDOM_TABLES
from gmc_core.paper.reproduction import (
    REPETITIONS,
    Reproduction,
    has_paper_settings,
    reproduction,
    table_for,
)
from gmc_core.runs.store import Run
from gmc_core.runs.store.naming import distinct_names
from gmc_dashboard.data import own_file
from gmc_dashboard.fit.run_view import STATES
from gmc_dashboard.results import random_table, systems
from gmc_dashboard.results.table import as_csv, as_html, as_json, as_markdown, measured_sentence
from gmc_dashboard.shared import context, sources
from gmc_dashboard.shared.components import download, escape, guard, page_header
from gmc_dashboard.shared.run_actions import start_worker
from gmc_dashboard.shared.watching import fingerprint, redraw_on_progress

PROTOCOLS = ("weak", "strong")


def label(table: PublishedTable, protocol: str) -> str:
    """The name of a reproducing run, by which it is found while it is under way."""
    return f"{table.data_set}, {protocol}: the paper's experiment"


def start(name: str, table: PublishedTable, path: str) -> None:
    """Queue the weak and the strong experiment."""
    reading: dict[str, object] = {}
    if path:
        path, reading = sources.location(sources.register(own_file.clean_path(path)))
    for protocol in PROTOCOLS:
        context.store().submit(
            ExperimentConfig(
                data=path or name, reading=reading, protocol=protocol, repetitions=REPETITIONS
            ),
            label=label(table, protocol),
        )
    start_worker()


def under_way(name: str, table: PublishedTable, found: Reproduction) -> None:
    """Links to the runs that will reproduce the table, and to stopped ones that could."""
    runs = context.store().runs()
    names = distinct_names(runs)
    for run in runs:
        measured = found.weak if run.config.protocol == "weak" else found.strong
        active = run.state in ("queued", "running")
        if will_reproduce(run, name, table) and (active or measured is None):
            st.page_link(
                "pages/fit.py",
                label=escape(f"{names[run.id]}: {STATES[run.state][0]}, {run.progress:.0%} done"),
                icon=":material/monitoring:",
                query_params={"run": run.id},
            )


def will_reproduce(run: Run, name: str, table: PublishedTable) -> bool:
    """Whether an unfinished run has the paper's settings on the table's data.

    Before the worker has read the data, their name decides, or for one's own files the
    label that :func:`start` gave.
    """
    if run.kind != "run" or run.state == "finished":
        return False
    if run.data is not None:
        return table_for(run.data) is table and has_paper_settings(run.config, run.data)
    labels = [label(table, protocol) for protocol in PROTOCOLS]
    scale = {"scale": [table.settings.low, table.settings.high, 1]}
    known = run.config.data == name or run.label in labels
    return known and has_paper_settings(run.config, scale)


def show(name: str, table: PublishedTable) -> None:
    """One table: what was measured, from which run, and the way to measure it."""
    found = reproduction(context.store().runs(), table)
    st.subheader(table.data_set, anchor=False)
    wanted = table.settings
    st.caption(
        f"{wanted.users:,} users and {wanted.items:,} items after the filter, ratings "
        f"{wanted.low}–{wanted.high}, NMAE = MAE ÷ {wanted.divisor:g}; {wanted.weak_users:,} users "
        f"weak, {wanted.strong_users:,} strong, {wanted.repetitions} repetitions. Smallest "
        "published value in bold."
        + (
            " “− measured” is a method’s NMAE minus the measured one: above 0, the measured one is "
            "better."
            if found.weak or found.strong
            else ""
        )
    )
    st.table(
        as_markdown(found),
        hide_index=True,
        alt=f"NMAE of the published methods and of this program on {table.data_set}.",
    )
    for run, protocol in ((found.weak, "weak"), (found.strong, "strong")):
        if run is not None:
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.markdown(measured_sentence(found, protocol), width="content")
                st.page_link(
                    "pages/fit.py",
                    label=escape(run.title),
                    icon=":material/open_in_new:",
                    query_params={"run": run.id},
                )
    under_way(name, table, found)
    path = missing(name, table, found) if found.weak is None or found.strong is None else ""
    downloads(name, found)
    systems.show(name, table, context.store().runs(), _source(name, found, path))


def _source(name: str, found: Reproduction, path: str) -> ExperimentConfig | None:
    """Where the table's data are: on this machine, at a path, or where a run had them."""
    if path:
        with suppress(DataError):  # which is told when it is used
            return ExperimentConfig(data=str(own_file.clean_path(path).resolve()))
        return None
    if name != "eachmovie" and sources.is_ready(name):
        return ExperimentConfig(data=name)
    run = found.weak or found.strong
    return run and ExperimentConfig(data=run.config.data, reading=run.config.reading)


def missing(name: str, table: PublishedTable, found: Reproduction) -> str:
    """How to measure what is not there yet; the path that was given, "" without one."""
    with st.container(border=True):
        path = ""
        if name == "eachmovie":
            st.markdown(
                "EachMovie was withdrawn in 2004 and cannot be downloaded. With **your own copy** "
                "(`vote.txt`, or the folder or zip that holds it) this table can be measured."
            )
            path = st.text_input("Path of your EachMovie files", key="path_eachmovie")
        elif not sources.is_ready(name):
            st.markdown(
                "MovieLens 1M is not on this machine yet: download it on the Data page, or give "
                "the path of your own copy (`ml-1m.zip`, or its folder)."
            )
            st.page_link(
                "pages/data.py",
                label="Download it on the Data page",
                icon=":material/download:",
                query_params={"data": name},
            )
            path = st.text_input("Path of your MovieLens 1M files", key=f"path_{name}")
        else:
            st.markdown("MovieLens 1M is on this machine.")
        ready = bool(path.strip()) or (name != "eachmovie" and sources.is_ready(name))
        clicked = st.button(
            f"Start the reproduction ({REPETITIONS} repetitions, weak and strong)",
            key=f"reproduce_{name}",
            type="primary",
            icon=":material/science:",
            disabled=not ready,
            help="Runs in the background with the paper's settings; it takes minutes to an hour, "
            "depending on the machine.",
        )
        if clicked:
            start(name, table, path.strip())
            st.rerun()
    return path.strip()


def downloads(name: str, found: Reproduction) -> None:
    """The table as files."""
    with st.container(horizontal=True, gap="small"):
        for text, ending, mime, make in (
            ("CSV", "csv", "text/csv", as_csv),
            ("HTML", "html", "text/html", as_html),
            ("JSON", "json", "application/json", as_json),
        ):
            download(text, make(found), f"{name}-results.{ending}", mime, key=f"{name}_{ending}")


page_header(
    "Results",
    "What the paper reports, and what this program measures with the paper’s settings on the "
    "same data. Lower is better; 1 is random guessing.",
)
with guard():
    st.markdown(
        "A measured value carries its standard error over the held-out ratings. Most gaps between "
        "the three best published methods are smaller than two standard errors of one experiment, "
        "so their order is not settled by these tables."
    )
    systems.show_map()
    for key in ("ml-1m", "eachmovie"):
        show(key, TABLES[key])
    runs = context.store().runs()
    systems.show_other_data(runs)
    for published in RANDOM_TABLES.values():
        st.subheader(f"{published.data_set}, random hold-out", anchor=False)
        random_table.show(published, runs)
    if any(run.state in ("queued", "running") for run in runs):
        redraw_on_progress(fingerprint(runs))
