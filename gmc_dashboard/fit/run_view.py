"""One run on the screen: state, live curves, result, and what can be done with it.

The curves live in a fragment that repeats while something happens; everything with a
button is outside, so that a click is never lost to an update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from gmc_core.fitting.fit import IterationRecord
from gmc_core.paper.reproduction import table_for
from gmc_core.protocol.metrics import enough_repetitions
from gmc_core.runs.findings import Evidence
from gmc_core.runs.store import Run
from gmc_core.runs.store.seal import NOT_OURS
from gmc_dashboard.fit import advice, more_charts, overlay, playing
from gmc_dashboard.fit import figures as figures
from gmc_dashboard.fit.run_words import (
    fails_again,
    first_iteration,
    name_help,
    remedy,
    result_sentence,
    scale_words,
    status_text,
)
from gmc_dashboard.shared import context, found_run, tour
from gmc_dashboard.shared.components import chart, escape, guard, told
from gmc_dashboard.shared.control_bar import Action, Badge, control_bar
from gmc_dashboard.shared.presenting import LEAST, presenting
from gmc_dashboard.shared.references import PAPER_LABEL, References, references, try_again
from gmc_dashboard.shared.run_actions import cancel, exports, resume, start_worker
from gmc_dashboard.shared.theme import is_dark
from gmc_dashboard.shared.units import bytes_text, duration, minus

POLL_SECONDS = 1.0
QUIET_SECONDS = 3.0  # for a stopped run, which another tab may resume
STATES: dict[str, Badge] = {
    "queued": ("waiting", "gray", ":material/hourglass_empty:"),
    "running": ("running", "blue", ":material/play_arrow:"),
    "finished": ("finished", "green", ":material/check_circle:"),
    "cancelled": ("cancelled", "orange", ":material/stop_circle:"),
    "failed": ("failed", "red", ":material/error:"),
    "interrupted": ("interrupted", "orange", ":material/power_off:"),
}

NEXT_STEPS = (
    ("pages/covariance.py", "See what it has learned", ":material/grid_on:"),
    ("pages/recommend.py", "Get recommendations", ":material/thumb_up:"),
    ("pages/sensitivity.py", "Vary ε", ":material/tune:"),
)
ROOMS = (2, 3)  # what is said beside what is drawn, so that both are seen without scrolling
_COMPACT = """<style>
.st-key-said [data-testid="stMarkdownContainer"] p { font-size: .93rem; line-height: 1.45 }
.st-key-said [data-testid="stAlertContainer"] { padding: .7rem .8rem }
</style>"""
BESIDE_HEIGHT = 280  # pixels of the chart of several runs where it stands below the words
RESUMED = "Nothing that is shown here is lost: resume it to finish."
MOST_BRIEFLY = 2  # next steps that are offered there

Curves = list[list[IterationRecord]]


def show(run: Run) -> None:
    """Draw a run; ``run`` is fresh from the store."""
    if run.state == "queued":
        start_worker()
    curves, known = context.curves_of(run), references(run)
    others = overlay.chosen(run)
    about = _about(run, others)
    seen = Evidence.of(about, context.curves_of(about), known.lines) if known.ready else None
    _head(about, seen, run, others)
    found_run.run_notice(run)
    _next_steps(run)
    if known.problem:
        _no_baselines(run, known)
    length = max(one.iterations for one in (run, *others))
    whole = playing.place(run) is None  # a film does not begin with its end
    briefly, filmed = _briefly(), run.state == "finished" and length > 1
    said, drawn = (st.container(), st.container()) if briefly else st.columns(ROOMS, gap="medium")
    if not briefly:
        st.html(_COMPACT)
        said = said.container(key="said", gap="small")
    with said:
        if run.state == "finished":
            if whole and tour.asked() is None:
                _status(run, curves, seen)
            with st.container(horizontal=True, horizontal_alignment="distribute", gap="small"):
                # In a tour Next is what to press.
                if whole and seen is not None and tour.asked() is None:
                    advice.show(run, seen, others, MOST_BRIEFLY if briefly else advice.SHOWN)
                if briefly and filmed:
                    playing.controls(run, length)
        if whole and not briefly:
            overlay.outcomes(run, others)
    pending = not known.ready or any(one.state in overlay.ACTIVE for one in (run, *others))
    every = playing.SECONDS if playing.is_playing(run) else POLL_SECONDS if pending else None
    states = tuple(_frame(one) for one in (run, *others))
    for place, part in ((said, _progress), (drawn, _nmae), (st.container(), _details)):
        with place:
            st.fragment(part, run_every=every)(states, known.ready, known.problem)
            if part is _nmae and run.state == "finished" and not briefly:
                if filmed:
                    playing.controls(run, length)
                if whole and _figure(run):
                    st.caption(result_sentence(run, known.lines))
            if part is _nmae and briefly and whole and tour.asked() is None:
                overlay.outcomes(run, others)  # on a projector below the curves
    if tour.asked() is None:
        if run.state == "finished":
            overlay.picker(run, others)
        overlay.opened(run)
        if run.ended_for_good:
            _after(run)
    if about.resumable:
        notice_change(about.id, about.state)


def _about(run: Run, others: Sequence[Run]) -> Run:
    """The run that is spoken of: the page's own, or in a tour the one that its step is about."""
    return next((one for one in others if one.id == tour.subject()), run)


def _head(run: Run, seen: Evidence | None, first: Run, others: Sequence[Run]) -> None:
    """The bar above a run. In a tour it has the name and the mark of the run's curve.

    first : the page's own run, whose curve is drawn first. others : those beside it.
    """
    touring, title, about, mark = tour.asked() is not None, run.title, name_help(run), None
    if touring:
        drawn = [first.id, *(other.id for other in others)]
        mark = figures.mark(drawn.index(run.id), dark=is_dark())
        about = "  \n".join((title, about))
        title = tour.labels().get(run.id, title)
        if run.state == "finished":
            title = ": ".join(filter(None, (title, "".join(_nmae_parts(run)))))
    going = run.state in overlay.ACTIVE
    badge = STATES[run.state]
    if run.state == "finished" and not advice.is_good(seen):
        badge = ("finished", "gray", ":material/flag:")
    control_bar(
        title,
        badge,
        mark=mark,
        help=about,
        cancel=Action(
            "Stopping …" if run.cancelling else "Cancel",
            "cancel_run",
            "Stops within a second or so and keeps what has been reached.",
            cancel,
            (run.id,),
            disabled=run.cancelling,
        )
        if going
        else None,
        resume=Action(
            "Resume",
            "resume_run",
            "Goes on from the last saved state and ends as if it had not been stopped.",
            resume,
            (run.id,),
        )
        if run.resumable
        else None,
        new=Action(
            "New fit",
            "new_fit",
            "Back to the settings; this run goes on and stays on the Runs page.",
            context.select_run,
        )
        if not touring  # Stop leads out of it
        else None,
        lead="new" if fails_again(run) else "resume",
    )


def _frame(run: Run) -> tuple[str, str, bool]:
    """What a run has outside the part that repeats: id, state, whether it has a name."""
    return run.id, run.state, run.choosing


def _no_baselines(run: Run, known: References) -> None:
    """Why there are no baselines, and another try; outside the part that repeats."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", border=True):
        st.markdown(known.problem, width="stretch")
        st.button(
            "Try again",
            key="baselines_again",
            icon=":material/refresh:",
            on_click=try_again,
            args=(run,),
        )


# The parts that update themselves: a repeated fragment is outside the page's own guard, and the
# whole page is drawn anew when its frame has changed. states : :func:`_frame` of the run and of
# those beside it, as the page was drawn. ready, problem : of the baselines, likewise.
Frames = tuple[tuple[str, str, bool], ...]


def _fresh(states: Frames, ready: bool, problem: str) -> tuple[Run, list[Run], References]:
    """The run, those beside it and the baselines, as they are now."""
    run, *others = [context.store().run(identity) for identity, *_ in states]
    known = references(run)
    changed = tuple(_frame(one) for one in (run, *others)) != states
    # Chart and words must not differ in whether the baselines are there.
    if changed or known.problem != problem or (known.ready and not ready):
        st.rerun(scope="app")
    return run, others, known


@guard()
def _progress(states: Frames, ready: bool, problem: str) -> None:
    """How far the run is, its film, and the runs beside it."""
    run, others, _ = _fresh(states, ready, problem)
    about = _about(run, others)
    curves = context.curves_of(about)
    if about.state != "finished":
        _status(about, curves)
    at = playing.shown(run, max(one.iterations for one in (run, *others)))
    if at is not None:
        _where(about, curves, at)
    else:
        overlay.progress(run, [other for other in others if other.id != about.id])


@guard()
def _nmae(states: Frames, ready: bool, problem: str) -> None:
    """The error by iteration, with the baselines and the runs beside it."""
    run, others, known = _fresh(states, ready, problem)
    if run.config.protocol == "none":
        st.caption("Nothing is held out under this protocol, so there is no NMAE, RMSE or MAE.")
        return
    if _has_nothing(run, others):
        return
    at = playing.place(run)
    curves = playing.cut(context.curves_of(run), at)
    labels = overlay.labels(run, others, short=True)
    beside = {labels[other.id]: playing.cut(context.curves_of(other), at) for other in others}
    # More stands above it. In a tour it has one height, with which nothing moves from step to step.
    low = tour.asked() is not None or (beside and presenting())
    figure = figures.nmae_figure(
        curves,
        known.lines,
        others=beside,
        own=labels.get(run.id, ""),
        iterations=max(one.iterations for one in (run, *others)),
        # One axis for all steps of the tour, whose curve stands out.
        within=tour.errors(),
        focus=labels.get(tour.subject(), ""),
        height=BESIDE_HEIGHT if low else figures.HEIGHT,
        text=LEAST if presenting() else figures.TEXT,
        dark=is_dark(),
        revision=run.id,
    )
    chart(
        figure,
        figures.describe_nmae(curves, known.lines, beside),
        key="nmae_chart",
        waits=first_iteration(run),
    )


def _has_nothing(run: Run, others: Sequence[Run]) -> bool:
    """Whether nothing will ever be there to draw, beside lines of averages."""
    return run.ended_for_good and not others and not any(context.curves_of(run))


@guard()
def _details(states: Frames, ready: bool, problem: str) -> None:
    """What the lines are, and all that is measured besides; in a tour only the former."""
    run, others, known = _fresh(states, ready, problem)
    if run.config.protocol != "none" and not _has_nothing(run, others):
        st.caption(_comparison_note(run, known))
    if tour.asked() is not None:
        return
    curves = context.curves_of(run)
    if any(curves) or not run.ended_for_good:  # else nothing will ever be there to draw
        more_charts.draw(run, playing.cut(curves, playing.place(run)))


@st.fragment(run_every=QUIET_SECONDS)
@guard()
def notice_change(identity: str, state: str) -> None:
    """Draws nothing; redraws the page when a stopped run was resumed elsewhere."""
    if context.store().run(identity).state != state:
        st.rerun(scope="app")


def _next_steps(run: Run) -> None:
    """Links to what the model can be used for; idle, but in place, until there is one.

    With a finished run also the button for more repetitions, where its ratings are few.
    """
    waiting = context.store().model_path(run.id) is None or not run.ended_for_good
    links = not (waiting and (run.ended_for_good or not run.keeps_model))
    if _briefly() or (not links and run.state != "finished"):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        for page, text, icon in _ways_on(run) if links else ():
            st.page_link(
                page,
                label=text,
                icon=icon,
                disabled=waiting,
                query_params=context.link_params(run=run.id),
            )
        if run.state == "finished":
            _more_repetitions(run)


def _ways_on(run: Run) -> tuple[tuple[str, str, str], ...]:
    """Page, text and icon of each; to vary ε only where the run has one."""
    fit = run.config.fit
    return NEXT_STEPS if not fit.is_exact or fit.epsilon else NEXT_STEPS[:2]


def _more_repetitions(run: Run) -> None:
    """Where the held-out ratings are few: the same with more repetitions, queued by a button."""
    summary = run.summary or {}
    if not run.config.redraws or run.selection is not None or not isinstance(summary.get("n"), int):
        return
    more = enough_repetitions(run.repetitions, summary["n"], summary.get("nmae_se"))
    if more:
        st.button(
            f"Run {more} repetitions",
            key="more_repetitions",
            icon=":material/repeat:",
            help="The held-out ratings are few. This computes the same settings on the same data, "
            "averaged over so many draws of them; only more data tell more of other users.",
            on_click=_repeat_more,
            args=(run, more),
        )


@guard()
def _repeat_more(run: Run, repetitions: int) -> None:
    found_run.start_fit(replace(run.config, repetitions=repetitions))


def _status(run: Run, curves: Curves, seen: Evidence | None = None) -> None:
    text = status_text(run, curves)
    if run.state == "failed":
        st.error(f"{told(run.message)}  \n{remedy(run)}", icon=":material/error:")
    elif run.state == "interrupted":
        st.warning(
            f"{told(run.message) or 'The worker ended before the run did.'} {text} "
            + (RESUMED if any(curves) else "Resume it to begin again."),
            icon=":material/power_off:",
        )
    elif run.state == "cancelled":
        st.info(
            f"{text} What it reached can be used as a partial model, or resumed."
            if any(curves)
            else "It was stopped before its first iteration had ended, so nothing can be shown. "
            "Resume it, or set up a new fit.",
            icon=":material/stop_circle:",
        )
    elif run.state == "finished" and _briefly():
        st.markdown(_in_short(run, seen))
    elif run.state == "finished":
        text = f"{_figure(run) or result_sentence(run, {})}{advice.sentences(seen)}"
        if run.selection is not None:
            text += f"\n\n**Auto:** {escape(minus(run.selection.reason))}"
        if advice.is_good(seen):
            st.success(text, icon=":material/check_circle:")
        else:  # green with a tick is for what beats the baselines
            st.info(text, icon=":material/flag:")
    if not run.ended_for_good:
        st.progress(run.progress, text=text)
        st.caption(advice.what_to_look_for(run))


def _briefly() -> bool:
    """Whether the picture shall not be pushed off the screen: on a projector, in a tour."""
    return presenting() or tour.asked() is not None


def _in_short(run: Run, seen: Evidence | None) -> str:
    """The figure, and the first of what it shows, for a projector."""
    first = advice.sentences(seen).split(". ")[0].rstrip(".") if seen is not None else ""
    return _figure(run) + (f"{first}." if first else "")


def _figure(run: Run) -> str:
    """NMAE of a finished run and its standard error as a sentence; "" without one."""
    nmae, se = _nmae_parts(run)
    return f"**{nmae}**{se}. " if nmae else ""


def _nmae_parts(run: Run) -> tuple[str, str]:
    """NMAE of a finished run, and its standard error; "" for what there is not."""
    summary = run.summary or {}
    nmae, se = summary.get("nmae"), summary.get("nmae_se")
    if nmae is None:
        return "", ""
    return f"NMAE {nmae:.4f}", f" ± {se:.4f}" if se else ""


def _where(run: Run, curves: Curves, at: int) -> None:
    """Where the film of a finished run stands, and its error there."""
    step = min(at, run.iterations)
    nmae = dict(zip(*figures.mean_curve(playing.cut(curves, at), "nmae"), strict=True)).get(step)
    error = "" if nmae is None else f": NMAE **{nmae:.4f}**"
    st.progress(step / run.iterations, text=f"Iteration {step} of {run.iterations}{error}")


def _comparison_note(run: Run, known: References) -> str:
    if not known.ready:
        return "The baselines (global, user and item mean, biases) are being computed …"
    note = "Lower is better; 1 is random guessing. "
    if run.repetitions > 1:
        note += "Thin lines: repetitions; thick line: their mean. "
    if known.problem:
        return f"{note}The baselines are missing."
    note += (
        "Dashed lines: baselines on the same held-out ratings (user and item bias: the mean of "
        "all ratings, and how far this user and this title usually lie above or below it)"
    )
    if PAPER_LABEL in known.lines:
        return f"{note}, and the paper’s figure for this data set and protocol."
    if run.data is not None and table_for(run.data) is None:
        return (
            f"{note}. The paper reports MovieLens 1M and EachMovie; its figures cannot be compared "
            "with those on other data, so they are not drawn."
        )
    return f"{note}."


def _after(run: Run) -> None:
    store = context.store()
    note = scale_words(run)
    if note:
        st.info(note, icon=":material/straighten:")
    with st.expander("Repeat and export", icon=":material/ios_share:"):
        st.markdown("The command that repeats this run:")
        st.code(store.command(run.id), language="shell", wrap_lines=True)
        exports(run)
        seconds = sum(r.seconds for curve in context.curves_of(run) for r in curve)
        st.caption(
            f"Computed in {duration(seconds)} of iterations; {bytes_text(run.disk_bytes)} on disk; "
            f"version {run.version}. {told(run.message)}"
        )
        if not run.reusable:
            st.caption(NOT_OURS)
