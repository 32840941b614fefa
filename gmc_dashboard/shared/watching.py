"""Pages that list runs redraw themselves when one of these has moved on."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from gmc_core.runs.store import Run
from gmc_dashboard.shared import context
from gmc_dashboard.shared.components import guard

POLL_SECONDS = 2.0

Fingerprint = tuple[tuple[str, str, float], ...]


@st.fragment(run_every=POLL_SECONDS)
@guard()
def redraw_on_progress(before: Fingerprint) -> None:
    """Draws nothing; redraws the page when the runs differ from ``before``."""
    if fingerprint(context.store().runs()) != before:
        st.rerun(scope="app")


def fingerprint(runs: Sequence[Run]) -> Fingerprint:
    """What a list of runs shows of their progress."""
    return tuple((run.id, run.state, run.progress) for run in runs)
