"""What is measured of a run besides NMAE: four smaller charts below its error."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gmc_core.fitting.fit import IterationRecord
from gmc_core.runs.store import Run
from gmc_dashboard.fit import figures as figures
from gmc_dashboard.shared.components import chart
from gmc_dashboard.shared.theme import is_dark


def draw(run: Run, curves: list[list[IterationRecord]]) -> None:
    """All figures but that of NMAE."""
    left, right = st.columns(2, gap="small")

    def one(
        place: DeltaGenerator,
        title: str,
        key: str,
        figure: Callable[..., go.Figure],
        parts: dict[str, str],
    ) -> None:
        """parts : the fields of the records that the figure shows, in words."""
        with place:
            st.markdown(f"**{title}**")
            chart(
                figure(curves, iterations=run.iterations, dark=is_dark(), revision=run.id),
                figures.describe(curves, parts),
                key=key,
                waits="Waiting for the first iteration",
            )

    if run.config.protocol != "none":
        parts = {"rmse": "RMSE", "mae": "MAE"}
        one(left, "Errors in ratings", "errors_chart", figures.errors_figure, parts)
    parts = {"log_likelihood": "log-likelihood", "map_objective": "MAP objective"}
    one(right, "What MAP-EM climbs", "objective_chart", figures.objective_figure, parts)
    if run.config.fit.learn_noise and any(curves):
        records = next(curve for curve in curves if curve)
        st.caption(
            f"Learned noise variance σ²: {records[0].noise:.3g} in the beginning, "
            f"{records[-1].noise:.3g} after iteration {records[-1].iteration}."
        )
    parts = {
        "covariance_change": "relative change of Σ",
        "prediction_change": "largest change of a prediction",
    }
    one(left, "Change since the iteration before", "change_chart", figures.change_figure, parts)
    parts = {"e_seconds": "E-step", "m_seconds": "M-step"}
    one(right, "Seconds per iteration", "seconds_chart", figures.seconds_figure, parts)
