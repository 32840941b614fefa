"""Several runs in one figure, and what their settings differ in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from explorer.figures.fit import Curve, mean_curve
from explorer.theme import palette, style

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def comparison_figure(
    runs: Mapping[str, Sequence[Curve]],
    quantity: str = "nmae",
    label: str = "NMAE",
    *,
    dark: bool = False,
) -> go.Figure:
    """One line per run: the mean over its repetitions.

    Parameters
    ----------
    runs : the curves of each run, by its name; the order decides colour and dash.
    quantity, label : a field of the records, and its name on the axis.
    """
    figure = go.Figure()
    colors = palette(dark).categorical
    for index, (name, curves) in enumerate(runs.items()):
        steps, means = mean_curve(curves, quantity)
        figure.add_scatter(
            x=steps,
            y=means,
            name=name,
            mode="lines+markers",
            line={
                "color": colors[index % len(colors)],
                "dash": DASHES[index % len(DASHES)],
                "width": 2.5,
            },
            hovertemplate="%{y:.5g}",
        )
    style(
        figure,
        x="iteration",
        y=label,
        height=380,
        uirevision=quantity,
        dark=dark,
        legend=len(runs) > 1,
    )
    figure.update_layout(hovermode="x unified", legend={"xanchor": "left", "x": 0})
    figure.update_xaxes(tickformat="d", rangemode="tozero")
    return figure


def describe_comparison(
    runs: Mapping[str, Sequence[Curve]], quantity: str = "nmae", label: str = "NMAE"
) -> str:
    """Text twin of :func:`comparison_figure`."""
    parts = []
    for name, curves in runs.items():
        steps, means = mean_curve(curves, quantity)
        ending = f"{means[-1]:.4g} at iteration {steps[-1]}" if steps else "no value"
        parts.append(f"{name}: {ending}")
    return f"{label} by iteration. " + "; ".join(parts) + "."


def differences(
    settings: Mapping[str, Mapping[str, Any]], *, all_rows: bool = False
) -> pd.DataFrame:
    """A row per setting and a column per run, only where the runs differ.

    Parameters
    ----------
    settings : nested settings of each run, by its name.
    all_rows : also the settings that are the same everywhere.
    """
    flat = {name: flatten(values) for name, values in settings.items()}
    names = dict.fromkeys(key for values in flat.values() for key in values)
    rows = {
        key: [values.get(key, "—") for values in flat.values()]
        for key in names
        if all_rows or len({values.get(key, "—") for values in flat.values()}) > 1
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(flat))


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings as "a.b" → text."""
    flat: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = "default" if value is None else str(value)
    return flat
