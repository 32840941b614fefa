"""Sensitivity: fit a grid over ε, L and seeds, and see how much ε matters.

The paper finds its results insensitive to ε; this page answers that for the data at
hand. A sweep is found by its id in the URL, like a run.
"""

from __future__ import annotations

import math

import streamlit as st

from gmc_core.data.ratings import RatingScale
from gmc_core.gaussian.settings import FitSettings
from gmc_core.runs.store import StoreError
from gmc_core.runs.store.naming import distinct_names
from gmc_core.runs.sweeps import SweepConfig, log_epsilons
from gmc_dashboard.fit import cost_view, fit_form
from gmc_dashboard.fit.run_view import STATES
from gmc_dashboard.sensitivity import sweep_view
from gmc_dashboard.shared import context, found_run
from gmc_dashboard.shared.chosen_data import held_out_or_way_on
from gmc_dashboard.shared.components import (
    empty_state,
    escape,
    guard,
    links_to_this_page,
    page_header,
)
from gmc_dashboard.shared.run_pages import place_of
from gmc_dashboard.shared.units import bytes_text


def grid(scale: RatingScale, seed: int) -> tuple[list[float], list[int], list[int]]:
    """The controls of the grid: values of ε, of L, and seeds."""
    left, right = st.columns(2, gap="small")
    with left.container(border=True, height="stretch"):
        st.markdown("**ε on a log scale**")
        st.latex(r"\Sigma\leftarrow\Sigma+\varepsilon I")
        options, paper = fit_form.epsilon_grid(scale), fit_form.paper_epsilon(scale)
        ends = (
            min(options, key=lambda value: abs(math.log(value / (paper / 10)))),
            min(options, key=lambda value: abs(math.log(value / (paper * 10)))),
        )
        # Other data may have another scale, and with it another paper's ε among the options.
        if not set(st.session_state.get("epsilon_range", ends)) <= set(options):
            st.session_state["epsilon_range"] = ends
        low, high = st.select_slider(
            "From … to",
            options,
            ends,
            format_func=lambda value: fit_form.epsilon_text(value, paper),
            key="epsilon_range",
            bind="query-params",
        )
        number = st.slider("Number of values", 2, 15, 5, key="epsilon_count", bind="query-params")
        epsilons = spaced(low, high, number, paper)
        st.caption("ε = " + ", ".join(f"{value:.3g}" for value in epsilons))
    with right.container(border=True, height="stretch"):
        st.markdown("**Iterations and seeds**")
        steps = st.multiselect(
            "Iterations L",
            [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100],
            [5, 10],
            key="sweep_iterations",
            bind="query-params",
            help="Curves against L show every iteration up to the largest.",
        )
        count = st.slider(
            "Seeds",
            1,
            10,
            2,
            key="seed_count",
            bind="query-params",
            help="Each seed is another split. With two or more, values of ε are compared by "
            "paired differences, which is far sharper.",
        )
        fit_form.seed_input()
    return epsilons, sorted(steps), list(range(seed, seed + count))


def spaced(low: float, high: float, number: int, paper: float) -> list[float]:
    """``number`` log-spaced values; one that is nearly the paper's ε becomes it."""
    if low == high:
        return [low]
    values = log_epsilons(low, high, number)
    return [paper if abs(math.log(value / paper)) < 0.01 else value for value in values]


def form() -> None:
    """The grid, what stays constant, the estimate, the start; and earlier sweeps."""
    ratings = held_out_or_way_on("A sweep compares errors on held-out ratings")
    if ratings is None:
        return
    chosen = context.current()
    begin = st.container()
    epsilons, steps, seeds = grid(ratings.scale, chosen.seed)
    with st.expander("What stays constant", icon=":material/lock:"):
        constant = fit_form.constant_controls(ratings, chosen.protocol)
    with begin:
        _start_bar(constant, epsilons, steps, seeds)


def _start_bar(
    constant: FitSettings, epsilons: list[float], steps: list[int], seeds: list[int]
) -> None:
    if not steps:
        st.info("Choose at least one L.")
        return
    sweep = SweepConfig(
        base=context.current_config(fit=constant),
        epsilons=tuple(epsilons),
        iterations=tuple(steps),
        seeds=tuple(seeds),
    )
    fits = sweep.children()
    cost, estimate = cost_view.cost_and_time_of(fits[0].fit)
    verdict = cost_view.verdict_on(
        [(wanted, cost, estimate) for wanted in sweep.fits()], key="sweep_however_long"
    )
    possible = fit_form.fits(context.current().protocol, constant) and verdict.possible
    with st.container(horizontal=True, vertical_alignment="center", gap="small", border=True):
        clicked = st.button(
            f"Start {len(fits)} fits",
            key="start_sweep",
            type="primary",
            icon=":material/play_arrow:",
            disabled=not possible,
        )
        st.markdown(
            f"Estimated: {cost_view.time_words(estimate, len(fits))}, "
            f"**{bytes_text(cost.memory_bytes)}** of memory.",
            width="content",
        )
    if clicked:
        found_run.start_sweep(sweep, cost_view.stored_cost(cost, estimate, verdict.however_long))
        st.rerun()


def earlier() -> None:
    """Links to the sweeps in the store."""
    sweeps = [run for run in context.store().runs() if run.kind == "sweep"]
    if not sweeps:
        return
    with links_to_this_page("Earlier sweeps"):
        names = distinct_names(sweeps[:10])
        for run in sweeps[:10]:
            fits = f"{run.iteration} of {sum(run.children.values())} fits"
            st.page_link(
                "pages/sensitivity.py",
                label=escape(f"{names[run.id]} ({STATES[run.state][0]}, {fits})"),
                icon=":material/tune:",
                query_params={"sweep": run.id},
            )


def show(identity: str) -> None:
    """The sweep with this id, or the way on if there is none."""
    try:
        sweep = context.store().run(identity)
    except StoreError as error:
        st.error(escape(str(error)), icon=":material/error:")
        st.button("New sweep", key="new_sweep", type="primary", on_click=sweep_view.leave)
        st.page_link("pages/runs.py", label="All runs", icon=":material/list_alt:")
        return
    if sweep.kind == "sweep":
        sweep_view.show(sweep)
    else:
        place = place_of(sweep)
        empty_state(
            f"This link leads to a {place.word}, which has a page of its own.",
            place.page,
            f"Open the {place.word}",
            query_params=place.query(sweep),
        )


page_header(
    "Sensitivity",
    "How much do ε and the number of iterations matter? The paper finds its results insensitive "
    "to ε; a sweep answers that for these data.",
)
with guard():
    identity = st.query_params.get("sweep")
    if identity:
        show(identity)
    else:
        form()
        earlier()
