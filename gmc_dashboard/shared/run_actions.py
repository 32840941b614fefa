"""What can be done with a run from any page: start the worker, take it out as a file."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import streamlit as st

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


def exports(run: Run, kinds: Collection[str] = ("html", "csv", "json", "zip", "model")) -> None:
    """A row of download buttons; each file is made when its button is clicked.

    kinds : formats of :func:`gmc_core.runs.store.transfer.export`.
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


def exported(identity: str, kind: str, ending: str) -> bytes:
    """The content of an exported file."""
    with TemporaryDirectory(prefix="gmc-export-") as folder:
        path = Path(folder) / f"run-{identity}.{ending}"
        return export(context.store(), identity, path, kind).read_bytes()
