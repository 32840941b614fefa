"""What to compare: methods, splits, the start, and earlier comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from gmc_core.comparison.comparators import available, method_named
from gmc_core.comparison.comparators.external import (
    ENVIRONMENT,
    ExternalBaselineError,
    installed_baselines,
)
from gmc_core.comparison.comparators.method import Method
from gmc_core.comparison.plan import ComparisonPlan, fits_of
from gmc_core.data.ratings import Ratings
from gmc_core.runs.comparisons import all_comparisons
from gmc_core.runs.store.naming import distinct_names
from gmc_dashboard.fit import cost_view
from gmc_dashboard.fit.run_view import STATES
from gmc_dashboard.shared import context, found_run
from gmc_dashboard.shared.chosen_data import held_out_or_way_on
from gmc_dashboard.shared.components import escape, links_to_this_page
from gmc_dashboard.shared.linked_choice import linked_choices

SUGGESTED = ("paper", "exact", "mf", "knn", "bias")
MOST_SPLITS = 20


def form() -> None:
    """Methods, number of splits, and the button that starts."""
    ratings = held_out_or_way_on("Methods are compared on held-out ratings")
    if ratings is None:
        return
    first = context.current().seed
    external = _external()
    labels = available(external)
    suggested = [name for name in SUGGESTED if name in labels]
    methods = linked_choices("Methods", labels, suggested, key="compare_methods")
    left, right = st.columns(2, gap="small")
    reference = left.selectbox(
        "Reference",
        methods,
        format_func=labels.__getitem__,
        key="compare_reference",
        help="The others are compared with it by paired differences; it can be changed later.",
        placeholder="choose methods first",
    )
    count = right.slider(
        "Splits",
        1,
        MOST_SPLITS,
        5,
        key="compare_splits",
        bind="query-params",
        help="Each is another draw of users and held-out ratings. Intervals over splits need two "
        "or more, and five to be of use.",
    )
    st.caption(
        f"Seeds {first} to {first + count - 1}. All methods see the same splits; what was computed "
        "before is used again."
        if count > 1
        else f"Seed {first}."
    )
    if not methods or reference is None:
        st.info("Choose at least one method.")
        return
    made = [method_named(name, ratings.scale, external) for name in methods]
    plan = ComparisonPlan.of(made, range(first, first + count), reference, external)
    verdict = _verdict(made, ratings)
    clicked = st.button(
        f"Start {len(methods) * count} fits",
        key="start_compare",
        type="primary",
        icon=":material/play_arrow:",
        disabled=not verdict.possible,
    )
    if clicked:
        found_run.start_comparison(
            context.current_config(), plan, cost=cost_view.allowing(verdict.however_long) or None
        )
        st.rerun()


def _verdict(methods: Sequence[Method], ratings: Ratings) -> cost_view.Verdict:
    """Whether the fits of these methods can be afforded; says which cannot."""
    fits = []
    for wanted in fits_of(methods):
        settings = wanted.settings.resolved(ratings.scale, ratings.n_items)
        fits.append((wanted, *cost_view.cost_and_time_of(settings)))
    return cost_view.verdict_on(fits, key="compare_however_long")


def _external() -> dict[str, str]:
    """Methods of other packages that can run; a note where a named Python does not."""
    try:
        external = installed_baselines()
    except ExternalBaselineError as error:
        st.warning(escape(str(error)), icon=":material/warning:")
        return {}
    if not external:
        st.caption(
            "Surprise, cornac, myFM and LensKit can be compared too: install them in a Python of "
            f"their own and start the dashboard with its path in {ENVIRONMENT}."
        )
    return external


def earlier() -> None:
    """Links to the comparisons on this machine."""
    runs = all_comparisons(context.store())[:10]
    if not runs:
        return
    names = distinct_names(runs)
    with links_to_this_page("Earlier comparisons"):
        for run in runs:
            assert run.comparison is not None
            fits = f"{run.iteration} of {run.comparison.total} fits"
            st.page_link(
                "pages/compare.py",
                label=escape(f"{names[run.id]} ({STATES[run.state][0]}, {fits})"),
                icon=":material/balance:",
                query_params={"comparison": run.id},
            )
