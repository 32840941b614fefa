"""All runs in a table, several in one figure, and what their settings differ in."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from gmc_core.runs.store import Run
from gmc_core.runs.store.naming import data_name, distinct_names, fit_words, seed_words
from gmc_dashboard.fit.figures import Curve, mean_curve
from gmc_dashboard.shared.run_pages import link, place_of
from gmc_dashboard.shared.theme import count_axis, palette, style

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
            name=html.escape(name, quote=False),
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
    count_axis(figure, max((int(trace.x[-1]) for trace in figure.data if len(trace.x)), default=1))
    return figure


def describe_comparison(
    runs: Mapping[str, Sequence[Curve]], quantity: str = "nmae", label: str = "NMAE"
) -> str:
    """Text alternative of :func:`comparison_figure`."""
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


def runs_table(runs: Sequence[Run]) -> pd.DataFrame:
    """One line per run for the overview; equal names get what tells the runs apart."""
    names = distinct_names(runs)
    return pd.DataFrame(
        [
            {
                "run": names[run.id],
                "kind": place_of(run).word,
                "state": run.state,
                "progress": round(run.progress, 2),
                "data": data_name(run),
                "model": _model(run),
                "protocol": run.config.protocol,
                "epsilon": _epsilon(run),
                "L": _iterations(run),
                "seeds": ", ".join(seed_words(run)).removeprefix("seed ").removeprefix("seeds "),
                "fits": _fits(run),
                "nmae": _summary(run, "nmae"),
                "nmae_se": _summary(run, "nmae_se"),
                "rmse": _summary(run, "rmse"),
                "seconds": _summary(run, "seconds"),
                "created": pd.Timestamp(run.created, unit="s"),
                "megabytes": run.disk_bytes / 1e6,
                "note": run.note,
                "open": link(run),
            }
            for run in runs
        ],
        index=[run.id for run in runs],
        columns=TABLE_COLUMNS,
    )


TABLE_COLUMNS = [
    *(
        "run",
        "open",
        "kind",
        "state",
        "progress",
        "nmae",
        "nmae_se",
        "rmse",
        "model",
        "epsilon",
        "L",
    ),
    *("seeds", "data", "protocol", "fits", "seconds", "created", "megabytes", "note"),
]


def _model(run: Run) -> str:
    if run.comparison is None:
        return fit_words(run)
    count = len(run.comparison.methods)
    return f"{count} method{'s' if count > 1 else ''}"


def _iterations(run: Run) -> int | None:
    if run.comparison is not None or run.choosing:
        return None  # each method has its own, or auto has still to choose
    return max(run.sweep["iterations"]) if run.sweep else run.iterations


def _epsilon(run: Run) -> str:
    if run.sweep:
        values = run.sweep["epsilons"]
        return f"{min(values):.3g} … {max(values):.3g}"
    if run.comparison is not None or run.choosing or (run.config.fit.is_exact and not run.epsilon):
        return "–"  # it has no part in the model
    return "default" if run.epsilon is None else f"{run.epsilon:.3g}"


def _fits(run: Run) -> int:
    if run.comparison is not None:
        return run.comparison.total
    return sum(run.children.values()) if run.kind == "sweep" else run.repetitions


def _summary(run: Run, name: str) -> float | None:
    value = (run.summary or {}).get(name)
    return None if value is None else float(value)
