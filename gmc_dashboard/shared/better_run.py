"""Which run a page opens where none is chosen, and a word where a better one is there.

    opening(ready)             # the run to open, of those that a page can show
    note(run, ready)           # a sentence and a button, where this run is beaten

Errors are compared on the same held-out ratings only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from gmc_core.base.errors import DataError
from gmc_core.protocol.baselines import BIAS
from gmc_core.runs.overlay import common_seeds
from gmc_core.runs.store import Run
from gmc_core.runs.store.naming import distinct_names
from gmc_dashboard.shared import context, sources
from gmc_dashboard.shared.components import escape
from gmc_dashboard.shared.presenting import presenting

DIGITS = 4  # to which errors are shown, and so the least difference that counts


def opening(ready: Sequence[Run]) -> Run:
    """The run with the lowest error on the split of the newest of the selected data.

    ready : at least one run with a model, newest first. Where none is of the selected data, those
        of all data count.
    """
    try:
        path, _ = sources.location(context.current().data)
    except DataError:  # a person's own file that is gone
        path = ""
    newest = next((run for run in ready if run.config.data == path), ready[0])
    return _lowest(newest, ready) or newest


def note(run: Run, ready: Sequence[Run]) -> None:
    """One sentence where another run or the bias baseline errs less; nothing else.

    None on a projector, which shows what the teacher has chosen.
    """
    words, better = beaten(run, ready)
    if not words or presenting():
        return
    with st.container(key="better_run_note"):
        said, there = st.columns([6, 1.3], vertical_alignment="center")  # a line or two together
        said.caption(words)
        if better is None:
            there.page_link("pages/fit.py", label="What to try", query_params={"run": run.id})
        else:
            there.button(
                "Open the better one",
                key="open_better_run",
                type="tertiary",
                icon=":material/arrow_forward:",
                on_click=context.select_run,
                args=(better.id,),
            )


def beaten(run: Run, ready: Sequence[Run]) -> tuple[str, Run | None]:
    """What errs less than this run in words, "" if nothing does, and the best run that does."""
    own = _error(run)
    if own is None:
        return "", None
    best = _lowest(run, ready)
    better = best if best is not None and best.id != run.id else None
    parts = []
    bias = (run.baselines or {}).get(BIAS)
    # As on the Fit page: less than one standard error does not settle which is better.
    least = max((run.summary or {}).get("nmae_se") or 0.0, 10.0**-DIGITS)
    if bias is not None and np.isfinite(bias) and own - bias >= least:
        parts.append(
            "Two averages that know nothing of tastes (the user and item bias, NMAE "
            f"{bias:.{DIGITS}f}) predict better than this fit ({own:.{DIGITS}f})."
        )
    if better is not None:
        names = distinct_names([run, better])
        parts.append(
            f"On the same held-out ratings “{escape(names[better.id])}” errs less"
            + (
                f" (NMAE {_error(better):.{DIGITS}f})."
                if parts
                else f" (NMAE {_error(better):.{DIGITS}f} against {own:.{DIGITS}f})."
            )
        )
    return " ".join(parts), better


def _error(run: Run) -> float | None:
    """NMAE of a finished run; None where none was measured."""
    nmae = (run.summary or {}).get("nmae") if run.state == "finished" else None
    return None if nmae is None or not np.isfinite(nmae) else round(float(nmae), DIGITS)


def _lowest(run: Run, ready: Sequence[Run]) -> Run | None:
    """The run that errs least on this one's split, this one where it is as good as any.

    Only users as signals: of other models these pages show little. None where nothing was measured.
    """
    of_files = run.config.protocol == "pair"  # the same split whatever the seed
    others = [
        other
        for other in ready
        if other.id != run.id
        and _error(other) is not None
        and other.config.fit.signals == "rows"
        and set(other.seeds) == set(run.seeds)
        and set(common_seeds(run, other)) == set(run.seeds[: 1 if of_files else None])
    ]
    errors = [(error, one) for one in (run, *others) if (error := _error(one)) is not None]
    return min(errors, key=lambda pair: pair[0])[1] if errors else None
