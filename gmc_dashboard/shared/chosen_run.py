"""The run whose model a page looks into: chosen, explained, or still awaited."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.runs.store import Run, StoreError
from gmc_core.runs.store.naming import distinct_names
from gmc_dashboard.shared import better_run, context
from gmc_dashboard.shared.components import empty_state, escape, guard, told
from gmc_dashboard.shared.linked_choice import linked_choice
from gmc_dashboard.shared.units import ENDED

POLL_SECONDS = 2.0


def usable_runs() -> list[Run]:
    """Runs with a model or with pictures of one in the making, newest first."""
    store = context.store()
    return [
        run
        for run in store.runs()
        if run.kind == "run" and (store.model_path(run.id) is not None or _is_going(run))
    ]


def with_models(runs: Sequence[Run]) -> list[Run]:
    """Those whose model is there."""
    return [run for run in runs if context.store().model_path(run.id) is not None]


def choose_run(purpose: str, notes: DeltaGenerator) -> Run | None:
    """A box to choose a run, and the run; see :func:`better_run.opening`, if none is selected.

    Draws the empty state and returns None if there is nothing to choose from.

    Parameters
    ----------
    purpose : what the page would show, to complete "to see …".
    notes : where to say that the selected run cannot be shown.
    """
    selected = context.current_run()
    runs = usable_runs()
    by_id = {run.id: run for run in runs}
    names = distinct_names(runs)
    if selected and selected not in by_id:
        with notes:
            _explain_missing(selected, "Another run is shown below." if runs else "")
    if not runs:
        empty_state(
            f"There is no fitted model yet. Fit one to see {purpose}; the sample takes less than a "
            "minute.",
            "pages/fit.py",
            "Fit a model",
        )
        return None
    if selected in by_id:
        default = selected
    else:
        ready = with_models(runs)
        default = better_run.opening(ready).id if ready else runs[0].id
    # A box of its own for each selection: it may have changed elsewhere since the last was drawn,
    # and a box that is new on a page would begin with the first run whatever is selected. And one
    # for each state: the browser sends what stood in the box, which says the state of before.
    key = f"chosen_run_{default}_{by_id[default].state}"

    def select() -> None:
        if (picked := st.session_state[key]) in by_id:
            context.select_run(picked)

    chosen = st.selectbox(
        "Model of the run",
        list(by_id),
        index=list(by_id).index(default),
        format_func=lambda id: f"{names[id]}{_facts(by_id[id])}",
        key=key,
        label_visibility="collapsed",
        on_change=select,
    )
    if chosen is None:
        return None
    if chosen not in by_id:
        chosen = default
    if chosen != selected:
        context.choose(run=chosen)
    return by_id[chosen]


def choose_run_and_view(
    purpose: str,
    label: str,
    views: Mapping[str, str],
    key: str,
    opening: Callable[[Run], str] | None = None,
) -> tuple[Run, str] | None:
    """The box of :func:`choose_run` and below it a choice of a view, which is in the URL.

    Parameters
    ----------
    label : of the choice, for those who cannot see it. key : of its widget and in the URL.
    views : key → what people read; a link leaves out the first.
    opening : the view of a run where neither the URL nor the visitor names one; default the first.

    Returns
    -------
    The run and the key of the view; None if there is no run, which has been explained then.
    """
    notes = st.container()  # as wide as the page
    # A row of its own: a run's name is a sentence, which half a row cuts. A column, by which the
    # presentation hides it.
    [place] = st.columns(1)
    with place:
        run = choose_run(purpose, notes)
    if run is None:
        return None
    view = linked_choice(
        label,
        views,
        next(iter(views)),
        key=key,
        opening=opening(run) if opening is not None else "",
        label_visibility="collapsed",
    )
    better_run.note(run, with_models(usable_runs()))
    return run, view


def model_or_wait(run: Run, purpose: str) -> GaussianModel | None:
    """The run's model; while it is being fitted, a notice that goes away by itself."""
    if context.store().model_path(run.id) is None:
        st.fragment(_await, run_every=POLL_SECONDS)(run.id, purpose)
        return None
    return context.model_of(run.id)


def rows_only(model: GaussianModel, purpose: str) -> bool:
    """Whether coordinates are items; explains it if they are not."""
    if model.layout.kind != "rows":
        explain_signals(model.layout.kind, purpose)
    return model.layout.kind == "rows"


def explain_signals(kind: str, purpose: str) -> None:
    """Why a model of columns or blocks says nothing of titles and new users."""
    meaning = {
        "columns": "columns (items) as signals, so its covariance is one between users, and a new "
        "user is no signal of it",
        "blocks": "blocks of the table as signals, so its covariance is one between places in a "
        "block, not between titles",
    }
    empty_state(
        f"This run took {meaning[kind]}. Fit with rows (users) as signals to see {purpose}.",
        "pages/fit.py",
        "Fit with rows as signals",
        query_params={"run": context.NO_RUN, "signals": "rows"},
    )


@guard()  # a repeated fragment is outside the page's own guard
def _await(id: str, purpose: str) -> None:
    run = context.store().run(id)
    if context.store().model_path(id) is not None or run.ended_for_good:
        st.rerun(scope="app")
    empty_state(
        f"This run is {run.state}: {run.iteration} of {run.iterations} iterations are done. Its "
        f"model is saved at the end; this page then shows {purpose} by itself.",
        "pages/fit.py",
        "Watch the fit",
        query_params={"run": id},
    )


def _explain_missing(id: str, instead: str) -> None:
    try:
        run = context.store().run(id)
    except StoreError as error:
        st.warning(f"{escape(str(error))} {instead}")
        return
    if run.kind == "sweep":
        text = "A sweep compares figures and keeps no models."
    elif run.comparison is not None:
        text = "A comparison keeps predictions and no models."
    else:
        ended = ENDED.get(run.state, f"is {run.state}")
        text = f"The run “{escape(context.run_label(run))}” {ended} and has no model."
        text += f" {told(run.message)}" if run.message else ""
    st.info(f"{text} {instead}", icon=":material/info:")


def _is_going(run: Run) -> bool:
    return run.keeps_model and run.state in ("queued", "running")


def _facts(run: Run) -> str:
    """What stands behind a run's name: its result, and its state unless it is finished."""
    nmae = (run.summary or {}).get("nmae")
    facts = [] if nmae is None else [f"NMAE {nmae:.4f}"]
    facts += [run.state] if run.state != "finished" else []
    return f" — {', '.join(facts)}" if facts else ""
