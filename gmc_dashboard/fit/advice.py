"""What a finished run shows, in two or three sentences, and what to try next, as buttons.

The rules are :mod:`gmc_core.runs.findings`; a click queues the proposed fit on the same split
and draws its curve beside this one's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from gmc_core.runs.findings import Evidence, NextStep, findings, next_steps
from gmc_core.runs.store import Run
from gmc_core.runs.sweeps import SweepConfig
from gmc_dashboard.fit import overlay
from gmc_dashboard.shared import context, found_run
from gmc_dashboard.shared.components import guard
from gmc_dashboard.shared.run_actions import start_worker

ICONS = {
    "ordinal": ":material/format_list_numbered:",
    "epsilon": ":material/trending_up:",
    "stop": ":material/flag:",
    "more": ":material/fast_forward:",
    "best": ":material/trophy:",
    "auto": ":material/auto_awesome:",
    "sweep": ":material/tune:",
}
SHOWN = 5


def is_good(seen: Evidence | None) -> bool:
    """Whether the run beats the baselines, beyond what chance would give."""
    return seen is not None and any(finding.kind == "beats" for finding in findings(seen))


def sentences(seen: Evidence | None) -> str:
    """What the run shows, as one paragraph; "" where nothing is known."""
    return "" if seen is None else " ".join(finding.sentence for finding in findings(seen))


def show(run: Run, seen: Evidence, others: Sequence[Run] = (), most: int = SHOWN) -> None:
    """A button for each next step, at most ``most``; nothing where there is none.

    others : the runs beside it. What one of them has done is not proposed again; the button of
    what one of them is about to do says so.
    """
    proposed = [(step, _tried(step, seen, others)) for step in next_steps(seen)[:most]]
    fresh = not any(other for _, other in proposed)
    proposed = [(s, other) for s, other in proposed if other is None or other.state != "finished"]
    if not proposed:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", width="content"):
        st.markdown("**Try next**", width="content")
        for index, (step, other) in enumerate(proposed):
            _button(run, step, other, first=fresh and index == 0)


def _tried(step: NextStep, seen: Evidence, others: Sequence[Run]) -> Run | None:
    """The run beside this one that a step has led to, if it waits, is computed or finished."""
    for other in others:
        if other.state not in (*overlay.ACTIVE, "finished"):
            continue
        if step.selection is not None and other.selection is not None:
            return other
        if step.fit is None or other.selection is not None:
            continue
        if other.config.fit.resolved(seen.scale, seen.items or None) == step.fit.resolved(
            seen.scale, seen.items or None
        ):
            return other
    return None


def what_to_look_for(run: Run) -> str:
    """A sentence or two for the time in which a run is computed."""
    if run.choosing:
        return (
            "Some ratings of every user are held out inside the training set, and many settings "
            "are tried on them. The test ratings play no part; the fit comes afterwards."
        )
    if run.config.protocol == "none":
        return "Nothing is held out; the likelihood of the ratings should rise."
    return (
        "NMAE on the held-out ratings should fall with the iterations. Dashed lines are what "
        "averages reach, without knowing who likes what; a curve that turns up again has begun to "
        "learn chance."
    )


def _button(run: Run, step: NextStep, other: Run | None, *, first: bool) -> None:
    fits = step.fit is not None or step.selection is not None
    going = {"queued": " is waiting …", "running": " is running …"}
    clicked = st.button(
        f"“{step.label}”{going[other.state]}" if other else step.label,
        key=f"try_{step.kind}",
        icon=ICONS[step.kind],
        help=step.reason,
        type="primary" if first else "secondary",
        disabled=other is not None,
        on_click=_try if fits else None,
        args=(run, step) if fits else (),
    )
    if clicked and not fits:
        with guard():
            st.switch_page("pages/sensitivity.py", query_params={"sweep": sweep_of(run, step)})


@guard()
def _try(run: Run, step: NextStep) -> None:
    """Queue the proposed fit on the same split, or find it, and draw it beside this one.

    Auto chooses inside the training set of the first split, and is tested on that one only: what
    trains one split, another holds out.
    """
    if step.fit is not None:
        config = replace(run.config, fit=step.fit)
    else:
        config = replace(run.config, fit=replace(run.config.fit, dtype="float32"), repetitions=1)
    other, _ = context.store().submit_or_find(config, selection=step.selection)
    start_worker()
    overlay.add(run, other.id)


def sweep_of(run: Run, step: NextStep) -> str:
    """Queue the proposed sweep on the run's splits, or find it; its id."""
    sweep = SweepConfig(
        run.config, epsilons=step.epsilons, iterations=(run.iterations,), seeds=run.seeds
    )
    found_run.start_sweep(sweep)
    return str(st.query_params["sweep"])
