"""What can be done with a run from any page: start the worker, take it out as a file."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import streamlit as st

from gmc_core.base.extras import missing, remedy
from gmc_core.runs.store import Run
from gmc_core.runs.store.transfer import export
from gmc_dashboard.shared import context
from gmc_dashboard.shared.components import download, guard

# label, format of Store.export, ending, MIME type
FORMATS = (
    ("Report (HTML)", "html", "html", "text/html"),
    ("Records (CSV)", "csv", "csv", "text/csv"),
    ("All figures (JSON)", "json", "json", "application/json"),
    ("Whole run (zip)", "zip", "zip", "application/zip"),
)
BUNDLE = "bundle"
MODEL = ("Model (.npz)", "model", "npz", "application/octet-stream")


def start_worker() -> None:
    """See to it that a worker computes what waits."""
    from gmc_core.runs.worker import ensure_worker

    ensure_worker(context.store())


@guard()
def cancel(identity: str) -> None:
    """Stop a run or the rest of a sweep; for a button."""
    context.store().cancel(identity)


@guard()
def resume(identity: str) -> None:
    """Go on with a stopped run or sweep; for a button."""
    context.store().resume(identity)
    start_worker()


def exports(
    run: Run, kinds: Collection[str] = ("html", "csv", "json", "zip", "model", BUNDLE)
) -> None:
    """A row of download buttons; each file is made when its button is clicked.

    kinds : formats of :func:`gmc_core.runs.store.transfer.export`, and ``BUNDLE``.
    """
    has_model = run.kind == "run" and context.store().model_path(run.id) is not None
    formats = (*FORMATS, MODEL) if has_model else FORMATS
    with st.container(horizontal=True, gap="small", width="content"):
        for label, kind, ending, mime in formats:
            if kind not in kinds:
                continue
            download(
                "Table (CSV)" if kind == "csv" and run.comparison is not None else label,
                partial(exported, run.id, kind, ending),
                f"run-{run.id}.{ending}",
                mime,
                key=f"export_{kind}_{run.id}",
            )
        if BUNDLE in kinds:
            _paper_bundle(run)


def _paper_bundle(run: Run) -> None:
    """Figures and tables for a paper; idle, with the reason, where they cannot be drawn."""
    problem = ""
    if missing("figures"):
        problem = f"The figures need Matplotlib. {remedy('figures')}"
    elif not (run.iteration or run.repetition or run.summary):
        problem = "Nothing has been computed yet."
    download(
        "For a paper (zip)",
        partial(bundled, run.id),
        f"gmc-run-{run.id}.zip",
        "application/zip",
        key=f"export_bundle_{run.id}",
        disabled=bool(problem),
        help=problem
        or "Figures as PDF, SVG and PNG, tables as CSV and LaTeX, settings, the hash of the data "
        "and the command that repeats the run.",
    )


def bundled(identity: str) -> bytes:
    """The content of a paper bundle."""
    from gmc_core.runs.bundle.archive import export_bundle

    with TemporaryDirectory(prefix="gmc-bundle-") as folder:
        return export_bundle(context.store(), identity, Path(folder) / "bundle.zip").read_bytes()


def exported(identity: str, kind: str, ending: str) -> bytes:
    """The content of an exported file."""
    with TemporaryDirectory(prefix="gmc-export-") as folder:
        path = Path(folder) / f"run-{identity}.{ending}"
        return export(context.store(), identity, path, kind).read_bytes()
