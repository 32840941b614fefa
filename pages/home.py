"""The start page: what this is, the way through it, and the runs that exist.

Sections: constants, loading, cards, layout; each card is one function.
"""

from __future__ import annotations

import streamlit as st

from gmc_core.runs.store import Run
from gmc_core.runs.store.naming import distinct_names
from gmc_dashboard.shared import context, tour
from gmc_dashboard.shared.components import empty_state, escape, guard, page_header
from gmc_dashboard.shared.run_pages import place_of

# Constants ---------------------------------------------------------------------------

LEAD = (
    "Predict the ratings that users have not given yet. From the few ratings that exist the model "
    "learns how well each title is liked and which titles are liked by the same people; so every "
    "rating that is known shifts the belief about all others. Each user's ratings are taken as a "
    "draw from one Gaussian distribution with that mean and covariance."
)
FORMULA = (
    r"\mathbf{y}_i=\mathbf{U}_i\mathbf{f}_i+\mathbf{w}_i,\qquad "
    r"\mathbf{f}_i\sim\mathcal{N}(\mu,\Sigma),\qquad "
    r"\tilde{\mathbf{f}}_i=\mu+\Sigma\mathbf{U}_i^{T}"
    r"\left(\mathbf{U}_i\Sigma\mathbf{U}_i^{T}+\Sigma_{\mathbf{w}}\right)^{-1}"
    r"\left(\mathbf{y}_i-\mathbf{U}_i\mu\right)"
)
STEPS = (
    ("pages/data.py", "1 · Data", "Choose ratings, filter them, and hide some to test on."),
    ("pages/fit.py", "2 · Fit", "Set ε and the iterations; watch the error fall, live."),
    ("pages/covariance.py", "3 · Covariance", "See which titles go together, and the taste axes."),
    (
        "pages/recommend.py",
        "4 · Recommend",
        "Rate a few titles; every recommendation explains itself.",
    ),
    (
        "pages/sensitivity.py",
        "5 · Sensitivity",
        "Does ε matter? A grid of fits answers for your data.",
    ),
)
NEW_HERE = (
    "**New here?** Press **Show me**, and go on with **Next**: the whole story in six steps, a "
    "few sentences each; the fits are computed while you watch. To see why it works, without "
    "any fit, read **Learn**."
)
WORDS = (
    "- **NMAE**: how far predictions of hidden ratings are off on average, as a share of what "
    "guessing makes; 0 is perfect, 1 is guessing.\n"
    "- **Weak and strong generalization**: weak hides a rating of people whom the model has "
    "learned from, strong one of people whom it has never seen, and who have only just given "
    "their others.\n"
    "- **ε**: what is added to every variance that is learned; the larger, the less the model "
    "believes what only few ratings show."
)
# What lies beside that way.
ASIDE = (
    (
        "pages/learn.py",
        "See why it works",
        ":material/school:",
        "Four chapters; no fit needed.",
    ),
    (
        "pages/compare.py",
        "Compare methods",
        ":material/balance:",
        "On the same ratings, with time and memory.",
    ),
    (
        "pages/claims.py",
        "Check the paper's claims",
        ":material/gavel:",
        "Each measured on your data, with a verdict.",
    ),
)
LATEST = 4
SYMBOLS = (
    r"$\mathbf{f}_i$: all ratings of user $i$, given or not · $\mathbf{y}_i$: those that are known "
    r"· $\mathbf{U}_i$: picks them · $\mathbf{w}_i$: noise · $\mu, \Sigma$: what the model learns. "
    r"The last formula is the E-step; the M-step takes the mean and covariance of the completed "
    r"rows and adds $\varepsilon$ to the diagonal."
)


# Loading -----------------------------------------------------------------------------


def latest_runs() -> list[Run]:
    """The newest runs, newest first."""
    return context.store().runs()[:LATEST]


# Cards -------------------------------------------------------------------------------


def start_card() -> None:
    """The quickest way to a fitted model, and for who is new the story."""
    new = not context.store().runs()
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button(
            "Fit the sample now",
            key="leave_to_fit",
            type="secondary" if new else "primary",
            icon=":material/play_arrow:",
            help="The paper's settings (ε = 0.3, 10 iterations) on the ratings that come with "
            "this program. Takes about a minute, the very first one longer.",
        ):
            context.choose(**context.SAMPLE)
            st.session_state["fit_autostart"] = True
            st.switch_page("pages/fit.py")
        if st.button(
            "Show me",
            key="leave_to_tour_start",
            type="primary" if new else "secondary",
            icon=":material/slideshow:",
        ):
            tour.open_step(1)
        left = tour.begun()
        if left is not None and st.button(
            "Go on with the tour",
            key="leave_to_tour_again",
            icon=":material/resume:",
        ):
            tour.open_step(left)
        st.page_link("pages/data.py", label="or choose other ratings", icon=":material/folder:")
    st.markdown(NEW_HERE)


def steps_card() -> None:
    """The way through the pages."""
    for column, (page, label, text) in zip(st.columns(len(STEPS), border=True), STEPS, strict=True):
        with column:
            st.page_link(page, label=f"**{label}**")
            st.caption(text)


def aside_card() -> None:
    """The pages that need no fit of one's own."""
    columns = st.columns(len(ASIDE), gap="small")
    for column, (page, label, icon, text) in zip(columns, ASIDE, strict=True):
        with column.container(gap="xxsmall"):
            st.page_link(page, label=f"**{label}**", icon=icon)
            st.caption(text)


def words_card() -> None:
    """What the words mean that every page uses."""
    with st.expander("In plain words: NMAE, weak and strong generalization, ε"):
        st.markdown(WORDS)


def formula_card() -> None:
    """The model in formulas."""
    with st.expander("In formulas: the model and its prediction"):
        st.latex(FORMULA)
        st.caption(SYMBOLS)


def runs_card() -> None:
    """The latest runs, each with its link."""
    st.subheader("Latest runs", anchor=False)
    runs = latest_runs()
    if not runs:
        empty_state(
            "No runs yet. A run is one fit with its settings, its curve and its model; it is kept "
            "when you close the browser.",
            "pages/fit.py",
            "Set up the first fit",
        )
        return
    with st.container(border=True, gap="xsmall"):
        names = distinct_names(runs)
        for run in runs:
            with st.container(horizontal=True, vertical_alignment="center"):
                place = place_of(run)
                st.page_link(
                    place.page,
                    label=escape(names[run.id]),
                    icon=place.icon,
                    query_params=place.query(run),
                )
                st.caption(context.run_summary(run))
    st.page_link("pages/runs.py", label="All runs", icon=":material/list_alt:")


# Layout ------------------------------------------------------------------------------

page_header("Gaussian Matrix Completion", LEAD)
start_card()
steps_card()
aside_card()
words_card()
formula_card()
with guard():
    runs_card()
