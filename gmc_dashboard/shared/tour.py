"""Show me: the whole story on the sample in a few steps, each an address and a few sentences.

    open_step(1)     # from a button: queues the fits, or finds them, and goes to the page
    banner("Fit")    # in a page's header, while ``tour=…`` is in the address
    begun()          # the step at which this session's tour was left
    forget_run()     # a page that was reached by the menu, without what the tour chose

The fits are queued when the first step is opened, in the order of the story; runs that are
there are found again. A card tells what is awaited until its fit has finished, and then what
came of it (:mod:`gmc_dashboard.shared.tour_words`). A step may lead aside to Learn, where the
card has the way back to it. Whoever goes to another page by the menu has left the tour, and may
go on from Start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from gmc_core.base.errors import GmcError
from gmc_core.fitting.affordable import cost_and_time
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.preparing import make_split, prepare
from gmc_core.fitting.shape import Shape
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.settings import FitSettings
from gmc_core.runs.store import Run
from gmc_core.runs.store.waiting import cost_with_estimate
from gmc_dashboard.shared import context, history, tour_words
from gmc_dashboard.shared.link_state import LISTED

PARAMETER = "tour"
_STOPPED = "gmc_dashboard.tour.stopped"
_AT = "gmc_dashboard.tour.at"
_ACTIVE = "gmc_dashboard.tour.active"
_IDS = "gmc_dashboard.tour.ids"
SECONDS = 1.0  # between two looks at a fit that is awaited
# In a tour only its own button is the one to press.
_QUIET = """<style>
    .stElementContainer:not([class*="st-key-tour"]):not([class*="st-key-leave_to_tour"])
        [data-testid^="stBaseButton-primary"] {
        background: transparent; color: inherit;
        border-color: color-mix(in srgb, currentColor 25%, transparent);
    }
    /* One height for every step with the chart: the longest has three lines at 1,280 px. */
    .st-key-tour_said_above_chart { min-height: 4.3rem }
    [class*="st-key-tour_said"] p { font-size: .95rem; line-height: 1.45 }
</style>"""

# The fits of the story, in the order in which they are shown: all on the same held-out ratings.
FITS: dict[str, FitSettings] = {
    "paper": FitSettings(),
    "epsilon": FitSettings(epsilon=1.0),
    "grades": replace(settings_for("factor"), dtype="float32"),
    # Drawn nowhere: its figure says what taking stars as grades is worth.
    "numbers": replace(settings_for("factor"), dtype="float32", ordered=False),
}


@dataclass(frozen=True)
class Step:
    """One stop of the tour.

    page : file of the page. query : its address; ``{paper}`` and so on stand for ids of runs.
    sentence : what is going to be there. of : the fit that it is about. found : instead of the
    sentence, once that fit has finished; of it, of the first fit, and of the one named ``beside``.
    why : the address on Learn of what explains it, offered once that fit is better than the first.
    """

    page: str
    query: Mapping[str, str]
    sentence: str
    of: str
    found: Callable[[Run, Run, Run], str]
    beside: str = "paper"
    why: Mapping[str, str] = field(default_factory=dict)


STEPS = (
    Step(
        "pages/fit.py",
        {"run": "{paper}"},
        "MAP-EM with the paper’s settings learns one Gaussian from the ratings of all users. Its "
        "error on ratings that were hidden from it appears below, a point for each iteration.",
        "paper",
        tour_words.what_is_drawn,
    ),
    Step(
        "pages/fit.py",
        {"run": "{paper}"},
        "Is a fit of the paper’s settings better than plain averages? Its whole curve tells.",
        "paper",
        tour_words.what_went_wrong,
    ),
    Step(
        "pages/fit.py",
        {"run": "{paper}", "with": "{epsilon}"},
        "A larger ε adds more to every variance, so agreements of few ratings are trusted less. "
        "The same fit with ε = 1 will be a second curve.",
        "epsilon",
        tour_words.what_epsilon_did,
    ),
    Step(
        "pages/fit.py",
        {"run": "{paper}", "with": "{epsilon},{grades}"},
        "A third curve will be that of another model, called ordered ratings: it keeps in mind how "
        "uncertain each guess is, and takes stars as grades in an order. Its Σ is of low rank, "
        "which makes it quick.",
        "grades",
        tour_words.what_repaired_it,
        beside="numbers",
        why={"chapter": "steps", "learn_step": "20"},
    ),
    Step(
        "pages/covariance.py",
        {"run": "{grades}", "view": "titles", "n": "20"},  # as many as fit below the card
        "Here it will be seen what the third fit has learned: Σ, which titles are liked by the "
        "same people.",
        "grades",
        lambda run, first, _: (
            "This is what was learned: Σ says which titles are liked by the same "
            "people, and similar ones stand side by side."
        ),
    ),
    Step(
        "pages/recommend.py",
        # Five titles, so that the explanation stands below them on the same screen.
        {"run": "{grades}", "rated": "260:5,1196:5,1:2", "why": "1198", "top": "5"},
        "With what the third fit has learned, titles will be recommended here to somebody who has "
        "rated three.",
        "grades",
        lambda run, first, _: (
            "Two Star Wars films rated high and Toy Story low: every "
            "recommendation says which of these ratings it comes from."
        ),
    ),
)
ASIDE = "Learn"  # the page that explains a step
AT_LEARN = (
    "This is the end of ten iterations: the ellipse that the paper’s M-step has learned, here "
    "without ε, is thin, because it takes its own fills for ratings. Press **Exact EM**, on which "
    "ordered ratings are built: it adds what the fills lack."
)
# NMAE on the sample lies between, so that the axis stands while the fits are computed.
ERRORS = (0.38, 0.53)
# What the fits are called beside each other, from the first step to the last.
LABELS = {"paper": "ε = 0.3 (paper)", "epsilon": "ε = 1", "grades": "ordered ratings"}


def configs() -> dict[str, ExperimentConfig]:
    """The experiments by the names that the steps use."""
    return {name: ExperimentConfig(fit=fit) for name, fit in FITS.items()}


@st.cache_resource(show_spinner="Estimating the time …")
def _costs() -> dict[str, dict[str, Any]]:
    """About how long each fit takes, so that a card can say it."""
    every, found = configs(), {}
    first = every["paper"]
    split = make_split(first, prepare(first), first.seed)  # all are of the same ratings
    for name, config in every.items():
        fit = config.fit.resolved(split.train.scale, split.train.n_items)
        cost, estimate = cost_and_time(fit, Shape.of(split, fit))
        found[name] = cost_with_estimate(cost.as_dict(), estimate)
    return found


def queue() -> dict[str, str]:
    """Queue the fits, or find them; their ids by name, which the session keeps."""
    from gmc_core.runs.worker import ensure_worker

    store, costs = context.store(), _costs()
    ids = {
        name: store.submit_or_find(config, cost=costs[name])[0].id
        for name, config in configs().items()
    }
    if any(not store.run(identity).ended_for_good for identity in ids.values()):
        ensure_worker(store)
    st.session_state[_IDS] = ids
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


def banner(title: str) -> None:
    """The step's sentence, how far one is, and the ways on; nothing without a tour.

    A link that names a step without its run leads to the whole address. title : of the page.
    """
    number = asked()
    if number is None:
        return
    if title == ASIDE:
        _aside(number)
        return
    if history.returned() and st.session_state.get(_STOPPED):
        _leave(STEPS[number - 1])  # the browser's Back does not begin it again
        return
    st.session_state.pop(_STOPPED, None)  # a link begins it again
    if "run" not in st.query_params:
        open_step(number)
    st.session_state.update({_AT: number, _ACTIVE: True})
    step = STEPS[number - 1]
    st.html(_QUIET)
    with st.container(border=True, key="tour_banner", gap="xsmall"):
        try:
            runs = _runs(step, queue())
        except GmcError:
            runs = None
        # Above the words, so that Next stays where it is however long they are.
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"**{number} of {len(STEPS)}**", width="content")
            _way("Back", number - 1, step, ":material/arrow_back:", "PageUp")
            last = number == len(STEPS)
            # Idle at the end, so that one press too many of it does not leave the tour.
            _way("Next", number + 1, step, ":material/arrow_forward:", "PageDown")
            st.button(
                "Done" if last else "Stop",
                key="tour_stop",
                icon=":material/check:" if last else ":material/close:",
                type="primary" if last else "secondary",
                shortcut="Escape",
                on_click=_stop,
                args=(step, last),
            )
            if step.why and runs is not None and _helps(*runs[:2]):
                _why(number)
            if last and runs is not None and runs[0].state == "finished":
                st.caption("That was the whole story. Now rate titles of your own.")
        above_chart = step.page == STEPS[0].page
        with st.container(key="tour_said_above_chart" if above_chart else "tour_said"):
            if runs is None:
                st.markdown(step.sentence)
                return
            done = all(run.ended_for_good for run in runs)
            states = tuple(run.state for run in runs)
            st.fragment(_said, run_every=None if done else SECONDS)(number, states)


def _aside(number: int) -> None:
    """On the page that explains a step: what to look at there, and the way back to it."""
    st.session_state.update({_AT: number, _ACTIVE: True})
    step = STEPS[number - 1]
    st.html(_QUIET)
    with st.container(border=True, key="tour_banner", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"**Aside from {number} of {len(STEPS)}**", width="content")
            # No key of the keyboard: here Page Up scrolls a long page. Nor is it the tour's
            # own Back, after which the browser's Back would not lead here again.
            if st.button(
                f"Back to step {number}",
                key="leave_to_tour_return",
                icon=":material/arrow_back:",
                type="primary",
            ):
                open_step(number)
            st.button(
                "Stop",
                key="tour_stop",
                icon=":material/close:",
                on_click=_stop,
                args=(step, False),
            )
        chapter = st.session_state.get("chapter") or st.query_params.get("chapter")
        if step.why and chapter == step.why["chapter"]:
            st.container(key="tour_said").markdown(AT_LEARN)


def _why(number: int) -> None:
    """The way aside to what explains a step."""
    if st.button("Why does this help?", key="leave_to_tour_why", icon=":material/school:"):
        query = {**STEPS[number - 1].why, PARAMETER: str(number)}
        st.switch_page("pages/learn.py", query_params=query)


def _helps(run: Run, first: Run) -> bool:
    """Whether a finished fit has a lower error than the first one."""
    own, other = ((each.summary or {}).get("nmae") for each in (run, first))
    return own is not None and other is not None and own < other


def _runs(step: Step, ids: Mapping[str, str]) -> tuple[Run, Run, Run]:
    """The fit that a step is about, the first fit, and the one beside; ids : by their names."""
    store = context.store()
    return store.run(ids[step.of]), store.run(ids["paper"]), store.run(ids[step.beside])


def _said(number: int, states: tuple[str, ...]) -> None:
    """The words of the card; the page is drawn anew when a fit's state has changed."""
    step = STEPS[number - 1]
    try:
        runs = _runs(step, st.session_state[_IDS])
        if tuple(run.state for run in runs) != states:
            st.rerun(scope="app")
        run = runs[0]
        if run.state == "finished":
            text = step.found(*runs)
        else:
            text = f"{step.sentence} {tour_words.awaited(run, number < len(STEPS))}"
    except GmcError:  # deleted meanwhile
        text = step.sentence
    st.markdown(text)


def labels() -> dict[str, str]:
    """By id, the names under which the tour's fits are drawn; {} without a tour."""
    ids: dict[str, str] = st.session_state.get(_IDS, {})
    drawn = {ids[name]: label for name, label in LABELS.items() if name in ids}
    return {} if asked() is None else drawn


def subject() -> str:
    """The id of the fit that the present step is about; "" without a tour."""
    number, ids = asked(), st.session_state.get(_IDS, {})
    return "" if number is None else str(ids.get(STEPS[number - 1].of, ""))


def errors() -> list[float]:
    """NMAE that the chart of every step reaches, of all the fits that are drawn; [] without a tour.

    With it one axis serves all steps, and no curve moves when another is added.
    """
    drawn = labels()
    found = [*ERRORS] if drawn else []
    for identity in drawn:
        with suppress(GmcError):  # deleted meanwhile
            curves = context.curves_of(context.store().run(identity))
            found += [one.nmae for curve in curves for one in curve if one.nmae is not None]
    return found


def begun() -> int | None:
    """The step at which a tour of this session was left; None without one, and after its end."""
    found = st.session_state.get(_AT)
    return found if isinstance(found, int) else None


def forget_run() -> None:
    """Where the menu led out of the tour, choose no run, as if the tour had not been.

    A run in the address, and one with which the tour was stopped, stays.
    """
    if asked() is not None or not st.session_state.pop(_ACTIVE, False):
        return
    linked = "run" in st.query_params or history.returned()
    if not linked and context.current().run in st.session_state.get(_IDS, {}).values():
        context.choose(run="")


def _way(label: str, number: int, step: Step, icon: str, key: str) -> None:
    """A button to another step; idle at either end."""
    there = 1 <= number <= len(STEPS)
    # The browser's history asks a button that leads to another page to say so by its key.
    leaves = there and STEPS[number - 1].page != step.page
    if st.button(
        label,
        key=f"{'leave_to_tour' if leaves else 'tour'}_{label.lower()}",
        icon=icon,
        type="primary" if label == "Next" and there else "secondary",
        shortcut=key,
        disabled=not there,
    ):
        open_step(number)


def _stop(step: Step, last: bool) -> None:
    st.session_state[_STOPPED] = True
    st.session_state[_ACTIVE] = False
    if last:
        st.session_state.pop(_AT, None)
    _leave(step)


def _leave(step: Step) -> None:
    """Take the tour out of the address, and what the step chose besides its run and view."""
    for name in (PARAMETER, "rated", "why", "n"):
        if name == PARAMETER or name in step.query:
            st.query_params.pop(name, None)
    if "top" in step.query:
        # Streamlit takes it out itself when its box shows what it shows without an address.
        st.session_state["top"] = LISTED
