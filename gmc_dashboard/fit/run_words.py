"""Where a run is and what it has found, in sentences."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import streamlit as st

from gmc_core.base.errors import ConfigError
from gmc_core.data.ratings import RatingScale
from gmc_core.data.readers.report import DERIVED
from gmc_core.fitting.compiling import compile_seconds, must_compile
from gmc_core.fitting.config import EVERYONE
from gmc_core.fitting.fit import IterationRecord
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.baselines import BIAS
from gmc_core.protocol.metrics import few_held_out, few_held_out_words
from gmc_core.runs.store import Run
from gmc_core.runs.store.selection import Selection
from gmc_core.runs.store.waiting import (
    LONG_SECONDS,
    Waiting,
    is_late,
    left_now,
    remaining,
    spent_in_iteration,
)
from gmc_dashboard.shared import context
from gmc_dashboard.shared.components import escape
from gmc_dashboard.shared.units import LONGER, whole_duration

WORKER_SECONDS = 10.0  # in which a worker has begun, where the machine is not busy


def status_text(run: Run, curves: Sequence[Sequence[IterationRecord]]) -> str:
    """Where a run is, in a sentence."""
    if run.state == "queued":
        return waiting_text(context.store().waiting(run.id), run.id)
    if run.selection is not None and run.choosing:
        running = run.state == "running"
        return choosing_text(run.selection, run) if running else "Its settings were not chosen yet."
    done = sum(len(curve) for curve in curves)
    total = run.repetitions * run.iterations
    if run.state != "running":
        return f"{done} of {total} iterations are done."
    records = [record for curve in curves for record in curve]
    if not done:
        return preparing_text(run, remaining(run, records))
    place = f"Iteration {run.iteration} of {run.iterations}"
    if run.repetitions > 1:
        place = (
            f"Repetition {run.repetition + 1} of {run.repetitions}, {place[0].lower()}{place[1:]}"
        )
    elapsed = f" · {whole_duration(time.time() - run.started)} so far" if run.started else ""
    spent = spent_in_iteration(run)
    if spent is not None and done < total:
        place += f", in the next for {whole_duration(spent)}"
        place += f" ({run.step_words})" if run.step_words else ""
    elif spent is not None and run.step_words:  # of the last one all that is left
        place += f", {run.step_words} for {whole_duration(spent)}"
    if is_late(run, records):
        return f"{place}{elapsed} · {LONGER}"
    left = left_now(run, records)
    return f"{place}{elapsed}" + ("" if left is None else f" · about {whole_duration(left)} left")


def choosing_text(selection: Selection, run: Run) -> str:
    """How far auto is."""
    spent, late = spent_in_iteration(run), is_late(run, ())
    if selection.best is None:
        so_far = "" if spent is None else f", for {whole_duration(spent)} so far"
        if late:
            return f"Choosing the settings{so_far}, {LONGER}."
        return f"Choosing the settings, in about {whole_duration(selection.seconds)}{so_far} …"
    at = "" if spent is None else f", at the next for {whole_duration(spent)}"
    left = max(selection.seconds - selection.spent - (spent or 0.0), 0.0)
    return (
        f"Choosing the settings: {selection.tried} tried, the lowest NMAE inside the "
        f"training set {selection.best:.4f}{at} · "
        f"{LONGER if late else f'at most about {whole_duration(left)} left'}"
    )


def waiting_text(waiting: Waiting, identity: str = "") -> str:
    """What a queued run waits behind, and for how long. identity : of the run."""
    if not waiting.ahead:
        return _worker_text(identity)
    st.session_state.pop(_since(identity), None)
    first, more = waiting.ahead[0], len(waiting.ahead) - 1
    text = f"Waiting behind “{escape(first.title)}”"
    if more:
        text += f" and {more} more run{'s' if more > 1 else ''}"
    if waiting.late:
        return f"{text}. “{escape(first.title)}” takes {LONGER}."
    if waiting.seconds is None:
        return f"{text}."
    return f"{text}: it begins in about {whole_duration(waiting.seconds)}."


def _worker_text(identity: str) -> str:
    """That only the worker is awaited, since this visitor saw that first."""
    now = time.monotonic()
    spent = now - st.session_state.setdefault(_since(identity), now) if identity else 0.0
    if spent <= WORKER_SECONDS:
        return "Waiting for the worker, which starts within seconds."
    return f"Waiting for the worker to start, for {whole_duration(spent)}, {LONGER}."


def _since(identity: str) -> str:
    return f"waits.since.{identity}"


def preparing_text(run: Run, left: float | None) -> str:
    """What happens before the first iteration has ended.

    left : seconds of all of it, by the estimate.
    """
    spent, fit = spent_in_iteration(run), run.config.fit
    so_far = "" if spent is None else f", for {whole_duration(spent)}"
    if run.step_words and run.iterations:  # what comes before it is done
        text = f"The first iteration{so_far} ({run.step_words})"
        if is_late(run, ()):
            return f"{text}, {LONGER}."
        return f"{text}.{_in_all(left, spent)}"
    compiles = bool(run.iterations) and must_compile(fit)
    if is_late(run, ()):
        what = "Compiling the numerical code, once on this machine" if compiles else "Preparing"
        return f"{what}, and then the first iteration{so_far}, {LONGER}."
    text = f"Reading the data and preparing{so_far}."
    if compiles:
        text += f" {compiling_text(fit, spent or 0.0)}"
    return text + _in_all(left, spent)


def _in_all(left: float | None, spent: float | None) -> str:
    """What a fit takes, with a blank before, where that can still be so."""
    if left is None or (spent or 0.0) >= left:
        return ""
    return f" The fit takes about {whole_duration(left)}{'' if spent is None else ' in all'}."


def compiling_text(fit: FitSettings, spent: float) -> str:
    """That the numerical code is compiled; ``spent``: seconds since something new was seen."""
    seconds = compile_seconds(fit)
    about = LONGER if spent > max(seconds, LONG_SECONDS) else f"about {whole_duration(seconds)}"
    return f"The numerical code is compiled first, once on this machine: {about}."


def name_help(run: Run) -> str:
    """What the short words of a run's name mean, for a tooltip."""
    fit = run.config.fit
    words = [f"L = {run.iterations}: {run.iterations} iterations."]
    if not fit.is_exact:
        words.append("ε: what every iteration adds to all variances.")
    if fit.is_ordered:
        words.append("Ordered ratings: stars are grades in an order, not numbers.")
    if fit.model == "factor":
        words.append(
            "Low rank: Σ is made of a few directions of taste and a variance for each title, "
            "instead of a free number for each pair."
        )
    return " ".join(words)


def result_sentence(run: Run, lines: Mapping[str, float]) -> str:
    """What a finished run has found."""
    summary = run.summary or {}
    nmae, error = summary.get("nmae"), summary.get("nmae_se")
    if nmae is None:
        return (
            f"Finished after {run.iterations} iterations. Nothing was held out, so there is no "
            "error to report; the model has learned from every rating."
        )
    text = f"**NMAE {nmae:.4f}**"
    if error is not None and error == error:
        text += f" ± {error:.4f} (one standard error)"
    rmse = summary.get("rmse")
    if run.config.protocol in EVERYONE and rmse is not None:  # what the literature reports there
        text += f", **RMSE {rmse:.4f}**"
    if summary.get("n"):
        text += f" on {summary['n']:,} held-out ratings"
    parts = [
        f"{compared(nmae, lines[name])} than the {name}’s {lines[name]:.4f}"
        for name in ("item mean", BIAS)
        if name in lines
    ]
    text += f": {' and '.join(parts)}." if parts else "."
    return text + few_words(run)


def few_words(run: Run) -> str:
    """That the held-out ratings of a finished run are few, with a blank before; "" if not."""
    summary, data = run.summary or {}, run.data or {}
    count = summary.get("n")
    if not isinstance(count, int) or not few_held_out(count, summary.get("nmae_se")):
        return ""
    return f" {few_held_out_words(count, data.get('ratings', 0), emphasis='**')}."


def scale_words(run: Run) -> str:
    """That the scale of a run's data was taken from the values that occur; "" if not."""
    data = run.data or {}
    report = data.get("load_report")
    derived = report.get("scale_derived") if isinstance(report, dict) else ""
    return derived_scale(RatingScale(*data["scale"]), derived) if derived in DERIVED else ""


def derived_scale(scale: RatingScale, derived: str) -> str:
    """What follows from a scale of which ``derived`` is that of the values that occur."""
    divisor = f", {scale.nmae_divisor:.4g}," if scale.high > scale.low else ""
    return (
        f"**The scale {scale} has its {derived} from the values that occur**, and the NMAE "
        f"divisor{divisor} follows from it. If ratings can take other values, give the scale: on "
        "the Data page without “Find the rating scale from the ratings”, on the command line with "
        "`--scale LOW,HIGH,STEP`."
    )


def compared(value: float, other: float) -> str:
    """ "5 % lower", "3 % higher"."""
    share = (value - other) / other
    return f"{abs(share) * 100:.2g} % {'lower' if share < 0 else 'higher'}"


def first_iteration(run: Run) -> str:
    """What stands in the place of a picture that has no iteration to draw."""
    return "No iteration was computed" if run.ended_for_good else "Waiting for the first iteration"


def fails_again(run: Run) -> bool:
    """Whether a run that failed would fail in the same way if it were resumed."""
    return run.state == "failed" and (run.broke_down or run.error_kind == ConfigError.kind)


def remedy(run: Run) -> str:
    """What to do about a run that failed."""
    if run.broke_down:
        return "Resumed, it would break down again: change ε or the noise with “New fit”."
    if fails_again(run):
        return "Change the settings with “New fit”."
    return "Change the settings with “New fit”, or resume if the cause is gone."
