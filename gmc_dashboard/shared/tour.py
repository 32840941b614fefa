"""Show me: the whole story on the sample in a few steps, each an address and a sentence.

    open_step(1)     # from a button: queues the fits, or finds them, and goes to the page
    banner()         # in a page's header, while ``tour=…`` is in the address

The fits are queued when the first step is opened, in the order of the story; runs that are
there are found again. Whoever goes to another page by the menu has left the tour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import streamlit as st

from gmc_core.base.errors import GmcError
from gmc_core.fitting.experiment import ExperimentConfig
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.settings import FitSettings
from gmc_core.runs.findings import Evidence, findings
from gmc_core.runs.overlay import difference
from gmc_core.runs.store import Run
from gmc_dashboard.shared import context, history

PARAMETER = "tour"
_STOPPED = "gmc_dashboard.tour.stopped"
# In a tour only its own button is the one to press.
_QUIET = """<style>
    .stElementContainer:not([class*="st-key-tour"]):not([class*="st-key-leave_to_tour"])
        [data-testid^="stBaseButton-primary"] {
        background: transparent; color: inherit;
        border-color: color-mix(in srgb, currentColor 25%, transparent);
    }
</style>"""

# The fits of the story, in the order in which they are shown: all on the same held-out ratings.
FITS: dict[str, FitSettings] = {
    "paper": FitSettings(),
    "epsilon": FitSettings(epsilon=1.0),
    "grades": replace(settings_for("factor"), dtype="float32"),
}


@dataclass(frozen=True)
class Step:
    """One stop of the tour.

    page : file of the page. query : its address; ``{paper}`` and so on stand for ids of runs.
    sentence : what to say. of : the fit that it is about. found : instead of the sentence, once
    that fit has finished.
    """

    page: str
    query: Mapping[str, str]
    sentence: str
    of: str
    found: Callable[[Run], str] | None = None


def what_went_wrong(run: Run) -> str:
    """The first finding against the run, from its records, in a sentence; "" if there is none."""
    seen = Evidence.of(run, context.curves_of(run), {})
    against = [finding for finding in findings(seen) if finding.good is False] if seen else []
    return f"{against[0].sentence.split('. ')[0].rstrip('.')}." if against else ""


def who_won(run: Run) -> str:
    """How the run's error compares with the first fit's, once both have finished; else ""."""
    first = context.store().run(queue()["paper"])
    own, other = ((each.summary or {}).get("nmae") for each in (run, first))
    if first.state != "finished" or own is None or other is None:
        return ""
    won = "Ordered grades win" if own < other else "Ordered grades do not win here"
    found = difference(context.store(), run, first)
    clearly = "clearly " if found is not None and found.resolved else ""
    unsure = "" if found is None or found.resolved else ", which these ratings do not settle"
    way = "lower" if own < other else "higher"
    return (
        f"{won}: NMAE **{own:.4f}** against {other:.4f} of the first curve, {clearly}{way} by "
        f"{abs(own - other):.4f}{unsure}. The third curve takes stars as ordered grades and keeps "
        "in mind how uncertain each estimate is."
    )


STEPS = (
    Step(
        "pages/fit.py",
        {"run": "{paper}"},
        "MAP-EM with the paper’s settings learns one Gaussian from the ratings of all users; the "
        "curve is its error on ratings that were hidden from it.",
        "paper",
    ),
    Step(
        "pages/fit.py",
        {"run": "{paper}"},
        "Look at where the curve is lowest: iterations after that can make it worse.",
        "paper",
        what_went_wrong,
    ),
    Step(
        "pages/fit.py",
        {"run": "{paper}", "with": "{epsilon}"},
        "A larger ε adds more to every variance, so agreements of few ratings are trusted less: "
        "compare the two curves.",
        "epsilon",
    ),
    Step(
        "pages/fit.py",
        {"run": "{paper}", "with": "{epsilon},{grades}"},
        "The third curve takes stars as ordered grades and keeps in mind how uncertain each "
        "estimate is.",
        "grades",
        who_won,
    ),
    Step(
        "pages/covariance.py",
        {"run": "{grades}", "view": "titles"},
        "This is what was learned: Σ says which titles are liked by the same people, and similar "
        "ones stand side by side.",
        "grades",
    ),
    Step(
        "pages/recommend.py",
        {"run": "{grades}", "rated": "260:5,1196:5,1:2", "why": "1210"},
        "Two Star Wars films rated high and Toy Story low: every recommendation says which of "
        "these ratings it comes from.",
        "grades",
    ),
)


def configs() -> dict[str, ExperimentConfig]:
    """The experiments by the names that the steps use."""
    return {name: ExperimentConfig(fit=fit) for name, fit in FITS.items()}


def queue() -> dict[str, str]:
    """Queue the fits, or find them; their ids by name."""
    from gmc_core.runs.worker import ensure_worker

    store = context.store()
    ids = {name: store.submit_or_find(config)[0].id for name, config in configs().items()}
    if any(not store.run(identity).ended_for_good for identity in ids.values()):
        ensure_worker(store)
    return ids


def asked() -> int | None:
    """The step in the address, from 1 on; None without a tour."""
    text = st.query_params.get(PARAMETER, "")
    return int(text) if text.isdecimal() and 1 <= int(text) <= len(STEPS) else None


def open_step(number: int) -> None:
    """Go to a step, counted from 1, with the ids of its runs in the address."""
    step, ids = STEPS[number - 1], queue()
    query = {name: value.format_map(ids) for name, value in step.query.items()}
    st.switch_page(step.page, query_params={**query, PARAMETER: str(number)})


def banner() -> None:
    """The step's sentence, how far one is, and the ways on; nothing without a tour.

    A link that names a step without its run leads to the whole address.
    """
    number = asked()
    if number is None:
        return
    if history.returned() and st.session_state.get(_STOPPED):
        _leave(STEPS[number - 1])  # the browser's Back does not begin it again
        return
    st.session_state.pop(_STOPPED, None)  # a link begins it again
    if "run" not in st.query_params:
        open_step(number)
    step = STEPS[number - 1]
    st.html(_QUIET)
    with st.container(border=True, key="tour_banner", gap="xsmall"):
        st.markdown(f"**{number} of {len(STEPS)}** · {_sentence(step)}")
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            _way("Back", number - 1, step, ":material/arrow_back:", "PageUp")
            last = number == len(STEPS)
            if not last:
                _way("Next", number + 1, step, ":material/arrow_forward:", "PageDown")
            st.button(
                "Done" if last else "Stop",
                key="tour_stop",
                icon=":material/check:" if last else ":material/close:",
                type="primary" if last else "secondary",
                shortcut="Escape",
                on_click=_stop,
                args=(step,),
            )
            if last:
                st.caption("That was the whole story. Now rate titles of your own.")


def _sentence(step: Step) -> str:
    """What to say now: of the fit's result if there is one, else that it is awaited."""
    try:
        run = context.store().run(queue()[step.of])
    except GmcError:
        return step.sentence
    if run.state == "finished":
        return (step.found(run) if step.found else "") or step.sentence
    if run.state in ("queued", "running"):
        return f"{step.sentence} (Being computed: iteration {run.iteration} of {run.iterations}.)"
    return f"{step.sentence} (This fit was {run.state}; resume it on the Runs page.)"


def _way(label: str, number: int, step: Step, icon: str, key: str) -> None:
    """A button to another step; idle at either end."""
    there = 1 <= number <= len(STEPS)
    # The browser's history asks a button that leads to another page to say so by its key.
    leaves = there and STEPS[number - 1].page != step.page
    if st.button(
        label,
        key=f"{'leave_to_tour' if leaves else 'tour'}_{label.lower()}",
        icon=icon,
        type="primary" if label == "Next" else "secondary",
        shortcut=key,
        disabled=not there,
    ):
        open_step(number)


def _stop(step: Step) -> None:
    st.session_state[_STOPPED] = True
    _leave(step)


def _leave(step: Step) -> None:
    """Take the tour out of the address, and what the step chose besides its run and view."""
    for name in (PARAMETER, "rated", "why"):
        if name == PARAMETER or name in step.query:
            st.query_params.pop(name, None)
