"""One sweep on the screen: progress, the verdict in words, the figures, exports.

Like a run's, the figures live in a fragment that repeats while fits are under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.compiling import must_compile
from gmc_core.gaussian.settings import PAPER_EPSILON
from gmc_core.runs.findings import BIAS
from gmc_core.runs.sensitivity import Cell, SensitivityCurve, sensitivity_curve
from gmc_core.runs.store import Run
from gmc_core.runs.store.waiting import is_late, spent_in_iteration
from gmc_core.runs.sweeps import SweepConfig, sweep_results
from gmc_dashboard.fit.fit_form import paper_epsilon
from gmc_dashboard.fit.run_view import STATES, notice_change
from gmc_dashboard.fit.run_words import compiling_text, waiting_text
from gmc_dashboard.sensitivity import figures as figures
from gmc_dashboard.shared import context, found_run
from gmc_dashboard.shared.components import chart, download, guard, told
from gmc_dashboard.shared.control_bar import Action, control_bar
from gmc_dashboard.shared.presenting import presenting
from gmc_dashboard.shared.run_actions import cancel, exports, resume, start_worker
from gmc_dashboard.shared.tables import to_csv
from gmc_dashboard.shared.theme import is_dark
from gmc_dashboard.shared.units import ENDED, LONGER, whole_duration

POLL_SECONDS = 1.5
HEIGHT_ON_PROJECTOR = 350  # px of the curves: what the verdict leaves of a screen


def show(sweep: Run) -> None:
    """Draw a sweep; ``sweep`` is fresh from the store."""
    if sweep.state == "queued":
        start_worker()
    _head(sweep)
    found_run.run_notice(sweep)
    _best_button(sweep)
    active = sweep.state in ("queued", "running")
    st.fragment(_body, run_every=POLL_SECONDS if active else None)(sweep.id, sweep.state)
    with st.expander("All fits, export, and the command", icon=":material/ios_share:"):
        table = sweep_results(context.store(), sweep.id)
        st.dataframe(
            table,
            hide_index=True,
            height=250,
            alt="Table of the sweep's fits with ε, L, seed, state and NMAE.",
        )
        download(
            "Table (CSV)", to_csv(table), f"sweep-{sweep.id}.csv", "text/csv",
            key="sweep_csv",
        )  # fmt: skip
        exports(sweep)
        st.code(context.store().command(sweep.id), language="shell", wrap_lines=True)
    if sweep.resumable:
        notice_change(sweep.id, sweep.state)


def _head(sweep: Run) -> None:
    going = sweep.state in ("queued", "running")
    control_bar(
        sweep.title,
        STATES[sweep.state],
        cancel=Action(
            "Cancel the rest",
            "cancel_sweep",
            "Finished fits stay; the one under way stops within a second or so.",
            cancel,
            (sweep.id,),
        )
        if going
        else None,
        resume=Action(
            "Resume",
            "resume_sweep",
            "Computes the fits that have not finished.",
            resume,
            (sweep.id,),
        )
        if sweep.resumable
        else None,
        new=Action("New sweep", "new_sweep", None, leave),
    )


def leave() -> None:
    """Back to the grid of a new sweep."""
    st.query_params.pop("sweep", None)


@guard()  # a repeated fragment is outside the page's own guard
def _body(identity: str, state: str) -> None:
    """The part that updates itself."""
    sweep = context.store().run(identity)
    if sweep.state != state:
        st.rerun(scope="app")
    children = context.store().runs(parent=identity)
    done, total = sweep.iteration, len(children)
    if sweep.state in ("queued", "running"):
        st.progress(sweep.progress, text=progress_text(sweep, children))
    elif sweep.state != "finished":
        failed = sorted({run.message for run in children if run.state == "failed"})
        reason = f" {told(' '.join(failed))}" if failed else ""
        st.warning(
            f"The sweep {ENDED[sweep.state]}: {done} of {total} fits are done.{reason} "
            "“Resume” computes the rest.",
            icon=STATES[sweep.state][2],
        )
    table = sweep_results(context.store(), identity)
    found = sensitivity_curve(table)
    paper, bias = _paper(children), bias_of(children)
    if found is not None:
        text = verdict(found, paper, complete=done == total, briefly=presenting())
        st.markdown(f"{text} {against_bias(found, bias)}")
        st.caption(OPTIMISTIC)
    _charts(sweep, table, found, paper, bias)


def progress_text(sweep: Run, children: Sequence[Run]) -> str:
    """How far a sweep is, in a sentence or two."""
    finished = [run for run in children if run.state == "finished"]
    text = f"{len(finished)} of {len(children)} fits are done."
    if sweep.state == "queued":
        return f"{text} {waiting_text(context.store().waiting(sweep.id), sweep.id)}"
    fit = sweep.config.fit
    if not finished and must_compile(fit):
        longest = max((spent_in_iteration(run) or 0.0 for run in children), default=0.0)
        text += f" {compiling_text(fit, longest)}"
    late = False
    for run in children:
        spent = spent_in_iteration(run)
        if spent is not None:
            what = f"iteration {run.iteration + 1}" if run.iteration else "its beginning"
            text += f" Now: ε = {run.config.fit.epsilon:g}, {what} for {whole_duration(spent)}"
            text += f" ({run.step_words})" if run.step_words else ""
            slow = is_late(run, [record for _, record in context.store().records(run.id)])
            text += f", {LONGER}." if slow else "."
            late = late or slow
    left = None if late else context.store().remaining_seconds(sweep.id)
    return text if left is None else f"{text} About {whole_duration(left)} left."


def _paper(children: Sequence[Run]) -> float:
    """The paper's ε on the sweep's rating scale."""
    for run in children:
        if run.data is not None:
            return paper_epsilon(RatingScale(*run.data["scale"]))
    return PAPER_EPSILON


OPTIMISTIC = (
    "Chosen on the test ratings themselves: the NMAE of the best cell is optimistic. For an honest "
    "figure, fit with the chosen ε and L on a split with another seed."
)


def bias_of(children: Sequence[Run]) -> float | None:
    """NMAE of the user and item bias on the sweep's held-out ratings, the mean over its seeds.

    None until a fit of every seed has finished.
    """
    by_seed = {run.config.seed: run.baselines[BIAS] for run in children if BIAS in run.baselines}
    if not by_seed or set(by_seed) != {run.config.seed for run in children}:
        return None
    return sum(by_seed.values()) / len(by_seed)


def against_bias(found: SensitivityCurve, bias: float | None) -> str:
    """Whether the best setting beats the bias baseline, "" while that is not known."""
    if bias is None:
        return ""
    share = f"{100 * abs(bias - found.best.nmae) / bias:.2g} %"
    if found.best.nmae < bias:
        return f"The best is {share} below the user and item bias ({bias:.4f})."
    return (
        f"Even the best is {share} above the user and item bias ({bias:.4f}), two averages that "
        "know nothing of tastes: no ε repairs this fit. Exact EM on ordered ratings may."
    )


def _best_button(sweep: Run) -> None:
    """A button that fits the best setting, with a model, on the sweep's first split."""
    if sweep.state != "finished":
        return
    found = sensitivity_curve(sweep_results(context.store(), sweep.id))
    if found is None:
        return
    best = found.best
    clicked = st.button(
        f"Fit ε = {best.epsilon:.3g}, L = {best.iterations}",
        key="fit_best",
        type="primary",
        icon=":material/play_arrow:",
        help="The best setting of the sweep, with a model to look into and recommend from.",
    )
    if clicked:
        with guard():
            fit = replace(sweep.config.fit, epsilon=best.epsilon, iterations=best.iterations)
            seeds = sorted(sweep.seeds)
            row = seeds == list(range(seeds[0], seeds[-1] + 1))
            config = replace(
                sweep.config, fit=fit, seed=seeds[0], repetitions=len(seeds) if row else 1
            )
            found_run.start_fit(config)
            st.switch_page("pages/fit.py", query_params=context.link_params())


def _charts(
    sweep: Run,
    table: pd.DataFrame,
    found: SensitivityCurve | None,
    paper: float,
    bias: float | None,
) -> None:
    config = SweepConfig.of(sweep)
    epsilons, steps = sorted(config.epsilons), sorted(config.iterations)
    options: dict[str, Any] = {"dark": is_dark(), "revision": sweep.id}
    height = HEIGHT_ON_PROJECTOR if presenting() else figures.HEIGHT
    left, right = st.columns(2, gap="small")
    with left:
        st.markdown("**NMAE against ε**, with the range over seeds")
        chart(
            figures.epsilon_figure(
                table, epsilons, found, paper=paper, bias=bias, height=height, **options
            ),
            figures.describe_epsilon(table),
            key="epsilon_chart",
            waits="Waiting for the first fit",
        )
    with right:
        st.markdown("**NMAE by iteration**, a line per ε")
        every = range(1, max(steps) + 1)
        lines = sweep_results(context.store(), sweep.id, iterations=every)
        lines = lines.rename(columns={"iterations": "iteration"})
        chart(
            figures.iterations_figure(
                lines, iterations=max(steps), paper=paper, height=height, **options
            ),
            figures.describe_iterations(lines),
            key="iterations_chart",
            waits="Waiting for the first fit",
        )
    st.markdown("**Mean NMAE over ε and L**, the best framed")
    chart(
        figures.heat_figure(table, epsilons, steps, found, **options),
        figures.describe_epsilon(table),
        key="heat_chart",
        waits="Waiting for the first fit",
    )


def verdict(
    found: SensitivityCurve,
    paper: float = PAPER_EPSILON,
    *,
    complete: bool = True,
    briefly: bool = False,
) -> str:
    """Where the best is and how flat the curve around it is; briefly : without what it rests on."""
    best, line = found.best, found.at(found.best.iterations)
    parts = [
        f"{'Best' if complete else 'Best so far'}: **ε = {best.epsilon:.3g}, L = "
        f"{best.iterations}** with NMAE **{best.nmae:.4f}**{_error(best)}."
    ]
    own = found.find(paper)
    if own is best:
        parts.append("That is the paper’s ε.")
    inside = sum(found.low <= cell.epsilon <= found.high for cell in line)
    if len(line) > 1:
        if found.low == found.high:
            parts.append("No other ε next to it is within one standard error.")
        else:
            parts.append(
                f"Within one standard error for ε from **{found.low:.3g} to {found.high:.3g}** "
                f"({inside} of {len(line)} values, {found.decades:.1f} decades{_open(found)})."
            )
    if len(line) > 1 and not briefly:
        parts.append(
            f"Over all ε with this L, NMAE varies by {found.spread:.4f}, "
            f"{100 * found.relative_spread:.1f} % of the best; the worst is ε = "
            f"{found.worst.epsilon:.3g}."
        )
    if own is not None and own is not best:
        relation = "within" if own.within else "more than"
        parts.append(
            f"The paper’s ε = {paper:g} is {own.gap:.4f} above the best, {relation} one standard "
            "error."
        )
    if briefly:
        return " ".join(parts)
    several = any(cell.method == "paired" for cell in line if cell is not best)
    parts.append(
        "Standard errors are those of paired differences over the seeds."
        if several
        else "The standard error is that of one split’s held-out ratings; two or more seeds would "
        "compare the values of ε more sharply."
    )
    if best.seeds == FEW_SEEDS:
        parts.append(
            "Two seeds tell little of how far seeds differ: take five or more before relying on it."
        )
    return " ".join(parts)


FEW_SEEDS = 2  # whose spread is one difference, and no error of a mean


def _error(cell: Cell) -> str:
    if cell.seeds == FEW_SEEDS == len(cell.each):
        return f" ({FEW_SEEDS} seeds: {cell.each[0]:.4f} and {cell.each[1]:.4f})"
    if cell.se != cell.se:
        return ""
    source = f"over {cell.seeds} seeds" if cell.seeds > 1 else "over the held-out ratings"
    return f" ± {cell.se:.4f} ({source})"


def _open(found: SensitivityCurve) -> str:
    ends = [
        text for is_open, text in ((found.open_low, "lower"), (found.open_high, "upper")) if is_open
    ]
    return f"; it reaches the {' and the '.join(ends)} end of the grid" if ends else ""
