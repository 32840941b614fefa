"""The claims on the screen: start, progress, table, intervals, each claim, reports.

What updates itself is in a fragment, and every button outside it.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Literal

import streamlit as st

from gmc_core.paper.claims import CLAIMS, Claim, Subject, Verdict, check, judge
from gmc_core.paper.claims.check import Progress
from gmc_core.paper.claims.report import (
    RULES,
    as_html,
    as_json,
    as_markdown,
    nmae_lines,
    summary_sentence,
)
from gmc_core.paper.claims.results import Results
from gmc_core.paper.claims.verdict import Line, interval_text, number
from gmc_core.runs.comparisons import now_computed
from gmc_core.runs.store.waiting import TOLD_SECONDS, spent_in_iteration
from gmc_dashboard.claims import figures as figures
from gmc_dashboard.fit import cost_view
from gmc_dashboard.shared import context
from gmc_dashboard.shared.components import chart, download, escape, guard, told
from gmc_dashboard.shared.frames import frame
from gmc_dashboard.shared.run_actions import start_worker
from gmc_dashboard.shared.theme import is_dark
from gmc_dashboard.shared.units import minus, whole_duration

POLL_SECONDS = 2.0
_FOUND = "claims.found"
BADGES: dict[str, tuple[Literal["green", "orange", "yellow", "gray"], str]] = {
    "holds": ("green", ":material/check:"),
    "does not hold": ("orange", ":material/close:"),
    "not resolved": ("yellow", ":material/question_mark:"),
    "not measured": ("gray", ":material/remove:"),
}


def show(subject: Subject, title: str) -> None:
    """Draw the claims on some data, called ``title``."""
    progress = check.progress(context.store(), subject)
    if any(run.state == "queued" for run in (*progress.runs.values(), progress.comparison) if run):
        start_worker()
    data = subject.data
    st.markdown(
        f"**{escape(title)}**: {data['users']:,} users, {data['items']:,} items, "
        f"{data['ratings']:,} ratings; settings are compared on {subject.splits} weak splits."
    )
    _start_bar(subject, title, progress)
    if progress.runs:
        _reports(subject, progress)
    st.fragment(_body, run_every=POLL_SECONDS if is_active(progress) else None)(
        subject, fingerprint(progress)
    )


def is_active(progress: Progress) -> bool:
    """Whether something is being computed."""
    return bool(progress.active) or progress.comparing


def fingerprint(progress: Progress) -> tuple[Any, ...]:
    """Changes when a verdict may have changed, or a button must."""
    runs = tuple((name, run.id, run.state) for name, run in sorted(progress.runs.items()))
    run = progress.comparison
    return (*runs, run and (run.id, run.state, run.iteration))


# Start and stop ------------------------------------------------------------------------


def _start_bar(subject: Subject, title: str, progress: Progress) -> None:
    verdict = cost_view.Verdict(True, False)
    if progress.missing and not is_active(progress):
        check_missing = partial(subject.check_affordable, False, only=progress.missing)
        # Each data set has a box of its own: what was said of one holds for no other.
        key = f"claims_however_long_{subject.data['sha256']}"
        verdict = cost_view.verdict_of([check_missing], key)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", border=True):
        if is_active(progress):
            st.button(
                "Cancel",
                key="cancel_claims",
                icon=":material/stop:",
                help="Finished fits stay; “Go on” computes the rest.",
                on_click=_cancel,
                args=(subject,),
            )
            st.markdown("Verdicts appear below as soon as what they need is there.")
            return
        left = len(progress.missing)
        if not left and not progress.comparison_missing:
            st.markdown("Everything is computed. Each experiment is a run on the Runs page.")
            return
        begun = bool(progress.runs)
        st.button(
            "Go on" if begun else f"Check the claims on {escape(title)}",
            key="check_claims",
            type="primary",
            icon=":material/play_arrow:",
            on_click=_begin,
            args=(subject, verdict.however_long),
            disabled=not verdict.possible,
        )
        st.markdown(_left_sentence(subject, progress), width="content")


def _left_sentence(subject: Subject, progress: Progress) -> str:
    left, total = len(progress.missing), len(subject.experiments())
    parts = []
    if left == total:
        parts.append(f"{total} experiments (at least {whole_duration(subject.seconds())})")
    elif left:
        parts.append(f"{left} of {total} experiments")
    if progress.comparison_missing:
        parts.append("a comparison with other methods")
    return f"{'' if left == total else 'Missing: '}{' and '.join(parts)}."


@guard()
def _begin(subject: Subject, however_long: bool) -> None:
    if however_long:  # a later experiment may take more memory than there is
        missing = check.progress(context.store(), subject).missing
        subject.check_affordable(True, only=missing)
    check.submit(context.store(), subject, however_long)
    # Behind the runs in the queue.
    check.submit_comparison(context.store(), subject, however_long)
    start_worker()


@guard()
def _cancel(subject: Subject) -> None:
    check.cancel(context.store(), subject)


# What updates itself ---------------------------------------------------------------------


@guard()  # a repeated fragment is outside the page's own guard
def _body(subject: Subject, drawn: tuple[Any, ...]) -> None:
    progress = check.progress(context.store(), subject)
    now = fingerprint(progress)
    if now != drawn and not is_active(progress):
        st.rerun(scope="app")  # the buttons change
    if is_active(progress):
        st.progress(progress.share, text=progress_text(progress))
    _stopped(progress)
    verdicts = judge(results(subject, now))
    st.markdown(f"**{summary_sentence(verdicts)}**")
    if not progress.runs:
        st.caption("What can be counted on the ratings alone needs no experiment.")
    _table(verdicts)
    if nmae_lines(verdicts):
        st.markdown("**Differences of NMAE**, with 95 % intervals; the band is the margin")
        chart(
            figures.intervals_figure(verdicts, dark=is_dark(), revision=subject.data["sha256"]),
            figures.describe_intervals(verdicts),
            key="claims_chart",
            waits="Waiting for the first verdict",
        )
    st.subheader("One by one", anchor=False)
    st.caption(RULES)
    for claim in CLAIMS:
        _claim(claim, verdicts[claim.name])


def progress_text(progress: Progress) -> str:
    """How far it is, in a sentence."""
    compared = progress.comparison
    if not progress.active and compared is not None and compared.comparison is not None:
        found = now_computed(compared, context.store().cells(compared.id))
        now = ""
        if found:
            now = _now(found[0], max(time.time() - found[1], 0.0), compared.step_words)
        total = compared.comparison.total
        return f"The comparison: {compared.iteration} of {total} fits are done.{now}"
    ended = len(progress.runs) - len(progress.active)
    running = next((run for run in progress.runs.values() if run.state == "running"), None)
    now = ""
    if running:
        now = _now(running.title, spent_in_iteration(running) or 0.0, running.step_words)
    return f"{ended} of {len(progress.runs)} experiments are done.{now}"


def _now(what: str, spent: float, step: str) -> str:
    """What is being computed, and for how long if nothing new has come since.

    step : how much of its iteration is done, in words; "" where that is not known.
    """
    so_far = f", for {whole_duration(spent)}" if spent >= TOLD_SECONDS else ""
    so_far += f" ({step})" if so_far and step else ""
    return f" Now: {escape(what)}{so_far}."


def _stopped(progress: Progress) -> None:
    """What ended early, with the reason; a breakdown without ε is a result."""
    for name in progress.missing:
        run = progress.runs.get(name)
        if run is not None and run.state == "failed":
            st.warning(f"{escape(run.title)}: {told(run.message)}", icon=":material/error:")
    compared = progress.comparison
    if compared is not None and compared.state == "failed":
        st.warning(f"The comparison failed: {told(compared.message)}", icon=":material/error:")


def results(subject: Subject, key: tuple[Any, ...]) -> Results:
    """What is there, read again only when ``key`` has changed."""
    known = st.session_state.get(_FOUND)
    whole = (subject.data["sha256"], subject.splits, key)
    if known is None or known[0] != whole:
        known = (whole, check.look(context.store(), subject))
        st.session_state[_FOUND] = known
    found: Results = known[1]
    return found


def _table(verdicts: dict[str, Verdict]) -> None:
    text = st.column_config.TextColumn
    frame(
        figures.overview(verdicts),
        projected=["claim", "verdict", "figure", "interval"],
        hide_index=True,
        height="content",
        placeholder="–",
        alt="Table of the claims with verdict, figure, 95 % interval and run.",
        column_config={
            "claim": text("Claim"),
            "verdict": text("Verdict"),
            "figure": text("Figure"),
            "interval": text("95 % interval", help="Of fewer than three values their range"),
            "section": text("Section", help="Of the paper"),
            "run": st.column_config.LinkColumn("Run", display_text=r"=(?:claims-)?(\w+)$"),
        },
    )


def _claim(claim: Claim, verdict: Verdict) -> None:
    colour, icon = BADGES[verdict.verdict]
    figure = f" {escape(minus(verdict.figure))}" if verdict.figure else ""
    interval = f" {escape(minus(verdict.interval))}" if verdict.interval else ""
    label = f"{escape(claim.title)} :{colour}-badge[{verdict.verdict}]{figure}{interval}"
    with st.expander(label, icon=icon, key=f"claim_{claim.name}"):
        st.markdown(
            f"**The paper** ({escape(claim.place)}): {escape(claim.statement)}  \n"
            f"**Measured**: {escape(claim.measure)}  \n"
            f"**Found**: {escape(minus(verdict.sentence))}"
        )
        if verdict.lines:
            st.table(
                [_cells(line) for line in verdict.lines],
                hide_index=True,
                alt=f"The figures behind “{claim.title}”.",
            )
        with st.container(horizontal=True, gap="small"):
            for run in verdict.runs:
                st.page_link(
                    "pages/fit.py",
                    label=f"run {run}",
                    icon=":material/open_in_new:",
                    query_params={"run": run},
                )
            if verdict.comparison:
                st.page_link(
                    "pages/compare.py",
                    label="the comparison",
                    icon=":material/balance:",
                    query_params={"comparison": verdict.comparison},
                )


def _cells(line: Line) -> dict[str, str]:
    return {
        "Figure": escape(line.label),
        "Value": escape(f"{number(line.value, line.unit)} {line.unit}"),
        "95 % interval": escape(interval_text(line.low, line.high, line.unit, line.range_of)),
    }


# Reports ---------------------------------------------------------------------------------


def _reports(subject: Subject, progress: Progress) -> None:
    key = fingerprint(progress)

    def made(write: Any) -> Any:
        return lambda: write(results(subject, key))

    with st.container(horizontal=True, gap="small"):
        download("Report (HTML)", made(as_html), "claims.html", "text/html", key="claims_html")
        download(
            "Report (Markdown)", made(as_markdown), "claims.md", "text/markdown",
            key="claims_markdown",
        )  # fmt: skip
        download(
            "All figures (JSON)", made(as_json), "claims.json", "application/json",
            key="claims_json",
        )  # fmt: skip
