"""What is measured of a run besides NMAE: four smaller charts below its error."""

from __future__ import annotations

from typing import Any

import streamlit as st

from gmc_core.fitting.fit import IterationRecord
from gmc_core.runs.store import Run
from gmc_dashboard.fit import figures as figures
from gmc_dashboard.shared.components import chart
from gmc_dashboard.shared.theme import is_dark


def draw(run: Run, curves: list[list[IterationRecord]]) -> None:
    """All figures but that of NMAE."""
    options: dict[str, Any] = {"iterations": run.iterations, "dark": is_dark(), "revision": run.id}
    left, right = st.columns(2, gap="small")
    if run.config.protocol != "none":
        with left:
            st.markdown("**Errors in ratings**")
            chart(
                figures.errors_figure(curves, **options),
                figures.describe(curves, {"rmse": "RMSE", "mae": "MAE"}),
                key="errors_chart",
                waits="Waiting for the first iteration",
            )
    with right:
        st.markdown("**What MAP-EM climbs**")
        chart(
            figures.objective_figure(curves, **options),
            figures.describe(
                curves,
                {"log_likelihood": "log-likelihood", "map_objective": "MAP objective"},
            ),
            key="objective_chart",
            waits="Waiting for the first iteration",
        )
    if run.config.fit.learn_noise and any(curves):
        records = next(curve for curve in curves if curve)
        st.caption(
            f"Learned noise variance σ²: {records[0].noise:.3g} in the beginning, "
            f"{records[-1].noise:.3g} after iteration {records[-1].iteration}."
        )
    with left:
        st.markdown("**Change since the iteration before**")
        chart(
            figures.change_figure(curves, **options),
            figures.describe(
                curves,
                {
                    "covariance_change": "relative change of Σ",
                    "prediction_change": "largest change of a prediction",
                },
            ),
            key="change_chart",
            waits="Waiting for the first iteration",
        )
    with right:
        st.markdown("**Seconds per iteration**")
        chart(
            figures.seconds_figure(curves, **options),
            figures.describe(curves, {"e_seconds": "E-step", "m_seconds": "M-step"}),
            key="seconds_chart",
            waits="Waiting for the first iteration",
        )
