"""The literature's figures under random hold-out, with this program's runs among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd
import streamlit as st

from gmc_core.paper.random_holdout import (
    CHOSEN_WORDS,
    RandomTable,
    caution,
    is_random_tenth,
    random_table_for,
)
from gmc_core.runs.store import Run
from gmc_dashboard.shared.components import escape

MOST_RUNS = 5


def own_runs(runs: Iterable[Run], table: RandomTable) -> list[Run]:
    """Finished runs on a random tenth of these data, at most ``MOST_RUNS``, the newest first."""
    found = [
        run
        for run in runs
        if run.kind == "run"
        and run.state == "finished"
        and is_random_tenth(run.config)
        and random_table_for(run.data) is table
        and (run.summary or {}).get("rmse") is not None
    ]
    return sorted(found, key=lambda run: run.created, reverse=True)[:MOST_RUNS]


def as_frame(table: RandomTable, runs: Sequence[Run] = ()) -> pd.DataFrame:
    """All figures, the lowest first, as text; runs of this program in bold."""
    rows: list[tuple[float, dict[str, str]]] = []
    for run in runs:
        rmse = float((run.summary or {})["rmse"])
        seeds = len(run.config.seeds)
        row = {
            "Method": f"**{escape(run.title)}**",
            "Source": "this program",
            "RMSE": f"**{rmse:.4f}**",
            "Test ratings": "one tenth" if seeds == 1 else f"{seeds} tenths",
            "Uses besides": "attributes" if _uses_attributes(run) else "",
            "Settings chosen": "by who started the run",
        }
        rows.append((rmse, row))
    for one in table.results:
        row = {
            "Method": one.method,
            "Source": str(one.reference),
            "RMSE": one.rmse_text,
            "Test ratings": one.split,
            "Uses besides": one.uses,
            "Settings chosen": CHOSEN_WORDS[one.chosen],
        }
        rows.append((one.rmse, row))
    return pd.DataFrame([row for _, row in sorted(rows, key=lambda pair: pair[0])])


def _uses_attributes(run: Run) -> bool:
    fit = run.config.fit
    return fit.is_exact and fit.attributes is not False


def show(table: RandomTable, runs: Iterable[Run] = ()) -> None:
    """The table with what must be known of it, and links to the runs in it."""
    own = own_runs(runs, table)
    st.caption(caution(table))
    st.table(
        as_frame(table, own),
        hide_index=True,
        alt=f"RMSE of published methods and of this program on a tenth of {table.data_set}.",
    )
    for run in own:
        st.page_link(
            "pages/fit.py",
            label=escape(run.title),
            icon=":material/open_in_new:",
            query_params={"run": run.id},
        )
