"""Which interval a page shows, and a button that has it calibrated by the worker."""

from __future__ import annotations

import streamlit as st

from gmc_core.model.calibration import note_of
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.runs.store import Run, calibrations
from gmc_dashboard.shared import context
from gmc_dashboard.shared.components import escape, fact, guard
from gmc_dashboard.shared.run_actions import start_worker
from gmc_dashboard.shared.watching import POLL_SECONDS


def note(model: GaussianModel) -> str:
    """Which interval it is, as :func:`note_of` says it, the term explained."""
    return note_of(model.calibration).replace(
        "posterior standard deviations",
        "standard deviations of what the model believes after the ratings (the posterior)",
    )


def draw(run: Run, model: GaussianModel) -> None:
    """The sentence; without a calibration also what is being done about it, or can be."""
    fact(note(model))
    if model.calibration is not None or model.ratings is None:
        return
    trouble = calibrations.trouble(context.store(), run.id)
    if trouble == "":
        st.fragment(_await, run_every=POLL_SECONDS)(run.id, context.model_stamp(run.id))
        return
    if trouble:
        st.warning(f"The intervals could not be calibrated: {escape(trouble)}")
    st.button(
        "Calibrate the intervals",
        icon=":material/straighten:",
        key="calibrate",
        help="One more fit, in the background, to the training ratings less some of every user, "
        "on which the intervals' width is learned. It takes about as long as one repetition of "
        "the run did and is kept with the model; predictions stay what they are.",
        on_click=_ask,
        args=(run.id,),
    )


@guard()
def _ask(id: str) -> None:
    calibrations.ask(context.store(), id)
    start_worker()


@guard()  # a repeated fragment is outside the page's own guard
def _await(id: str, stamp: int) -> None:
    if calibrations.trouble(context.store(), id) != "" or context.model_stamp(id) != stamp:
        # Not by itself: drawing the page anew would shut a box that is just open.
        if st.button("Show the calibrated intervals", key="calibrated", icon=":material/refresh:"):
            st.rerun(scope="app")
        return
    start_worker()  # an idle worker ends after a minute
    fact(
        "The intervals are being calibrated in the background, after the runs that are queued; "
        "a button to show them will stand here."
    )
