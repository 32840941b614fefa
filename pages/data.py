"""The Data page: choose ratings, look at them, filter them, decide how to test.

Sections: constants, loading, cards, layout; each card is one function.
"""

from __future__ import annotations

import streamlit as st

from gmc_core.data.ratings import Ratings
from gmc_core.data.readers import Loaded
from gmc_core.fitting import cost
from gmc_core.fitting.duration import estimate_seconds
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.filters import FilterReport
from gmc_core.protocol.splits import Split, default_counts
from gmc_dashboard.data import data_source, overview, time_figures
from gmc_dashboard.data import figures as figures
from gmc_dashboard.data.held_out import held_out_controls
from gmc_dashboard.fit.run_words import derived_scale
from gmc_dashboard.shared import context, sources
from gmc_dashboard.shared.components import (
    chart,
    download,
    escape,
    fact,
    guard,
    number_row,
    page_header,
    told,
)
from gmc_dashboard.shared.frames import frame
from gmc_dashboard.shared.linked_choice import linked_tabs
from gmc_dashboard.shared.tables import to_csv
from gmc_dashboard.shared.theme import is_dark
from gmc_dashboard.shared.units import PROTOCOLS, bytes_text, duration, flops_text

# Constants ---------------------------------------------------------------------------

CHOICES = ("weak", "strong", "random", "latest", "none")
TABS = {
    "charts": "Charts",
    "titles": "Most rated titles",
    "times": "Times",
    "reading": "Reading report",
    "licence": "Licence and citation",
}
TITLES_SHOWN = 500
CHART_HEIGHT = 290


# Loading -----------------------------------------------------------------------------


def bound(field: str) -> dict[str, object]:
    """Keywords that tie a widget to a field of the selection.

    A number field has ``value=None`` besides, so that emptying it is no choice of 0.
    """
    key = f"data_{field}"
    st.session_state[key] = getattr(context.current(), field)
    return {"key": key, "on_change": take, "args": (field,)}


def take(field: str) -> None:
    """Take a widget's value over into the selection; an emptied one stays as it was."""
    value = st.session_state[f"data_{field}"]
    if value is not None:
        # What one protocol holds out says nothing of another.
        context.choose(**{field: value}, **({"held": ""} if field == "protocol" else {}))


# Cards -------------------------------------------------------------------------------


def size_card(ratings: Ratings) -> None:
    """How much there is."""
    number_row(
        [
            ("Users", f"{ratings.n_users:,}"),
            ("Items", f"{ratings.n_items:,}"),
            ("Ratings", f"{len(ratings):,}"),
            (
                "Fill ratio",
                f"{100 * ratings.fill_ratio:.2f} %",
                "Ratings ÷ (users × items). The rest is what the model has to complete.",
            ),
            ("Scale", overview.scale_text(ratings.scale)),
            (
                "NMAE divisor",
                overview.divisor_text(ratings.scale),
                "The mean absolute error is divided by this: the expected difference of two "
                "random values of the scale. NMAE 1 is random guessing, 0 is perfect.",
            ),
        ]
    )
    fault = overview.sameness(ratings)
    if fault:
        st.warning(fault, icon=":material/warning:")


def charts_card(ratings: Ratings) -> None:
    """Histogram of the ratings, and ratings per user and item."""
    chosen, dark = context.current(), is_dark()
    left, middle, right = st.columns(3, gap="medium")
    with left:
        chart(
            figures.rating_histogram(ratings, dark=dark, height=CHART_HEIGHT),
            figures.rating_histogram_alt(ratings),
            key="data_histogram",
        )
    for column, kind, counts, least in (
        (middle, "user", ratings.user_counts, chosen.min_user),
        (right, "item", ratings.item_counts, chosen.min_item),
    ):
        with column:
            chart(
                figures.activity(counts, kind, least, dark=dark, height=CHART_HEIGHT),
                figures.activity_alt(counts, kind),
                key=f"data_{kind}_counts",
            )


def times_card(ratings: Ratings) -> None:
    """When the ratings were given: by month, and in sessions."""
    if not ratings.has_times:
        st.info(
            "No time of a rating is known, so there are no months and no sessions to show. The "
            "reading report says why, if the source has a column of times."
        )
        return
    found, by_month = context.timing()
    number_row(overview.session_numbers(found))
    left, right = st.columns(2, gap="medium")
    with left:
        chart(
            time_figures.by_month(by_month, dark=is_dark(), height=CHART_HEIGHT),
            time_figures.by_month_alt(by_month),
            key="data_months",
        )
    with right:
        chart(
            time_figures.session_sizes(found, dark=is_dark(), height=CHART_HEIGHT),
            time_figures.session_sizes_alt(found),
            key="data_sessions",
        )
    fact(overview.session_sentence(found))


def titles_card(ratings: Ratings) -> None:
    """The most rated titles, searchable."""
    table = context.titles()
    wanted = st.text_input(
        "Search titles, genres and years",
        placeholder="for example: star wars, or comedy 1994",
        key="find",
        type="search",
        bind="query-params",
    )
    found = overview.search_titles(table, wanted or "")
    if found.empty:
        st.info(f"No title holds “{escape(wanted)}”. Try fewer or shorter words.")
        return
    frame(
        found.head(TITLES_SHOWN),
        height=300,
        column_config={
            "Title": st.column_config.TextColumn(width="large"),
            "Year": st.column_config.NumberColumn(format="%d"),
            "Ratings": st.column_config.ProgressColumn(
                format="%d", min_value=0, max_value=int(table["Ratings"].max())
            ),
            "Mean": st.column_config.NumberColumn(format="%.2f"),
            "Spread": st.column_config.NumberColumn(
                format="%.2f", help="Standard deviation of the title's ratings"
            ),
        },
        alt="Titles with year, genres, number of ratings, mean and spread",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        fact(f"{min(len(found), TITLES_SHOWN):,} of {len(found):,} matching titles shown.")
        download(
            "All as CSV", lambda: to_csv(found, index=True), f"{ratings.name}-items.csv", "text/csv"
        )


def reading_card(loaded: Loaded) -> None:
    """How the source was read and what was dropped and why."""
    report = loaded.report
    st.markdown(
        f"**Source** {escape(report.source)}  \n"
        f"**Format** {report.format}, encoding {report.encoding}  \n"
        f"**Scale** {report.scale} ({escape(report.scale_found)})"
    )
    frame(
        overview.reading_table(report),
        hide_index=True,
        column_config={"Count": st.column_config.NumberColumn(format="localized")},
        alt="Rows of the source: kept, repeated, left out, with the reason",
    )
    if not report.dropped and not report.duplicates:
        fact("Nothing was dropped: every rating of the source is used.")
    for note in report.notes:
        fact(told(note))


def conditions_card(ratings: Ratings) -> None:
    """Licence and citation of the selected data."""
    st.markdown(f"**Licence** {escape(ratings.licence)}")
    if ratings.citation:
        st.markdown(f"**Please cite** {escape(ratings.citation)}")


def filter_card(loaded: Loaded) -> None:
    """The paper's filter, with its effect."""
    st.subheader("Filter", anchor=False)
    first, second, third = st.columns(3)
    first.number_input(
        "Ratings per user, at least",
        value=None,
        min_value=0,
        max_value=context.LARGEST_COUNT,
        step=1,
        help="Users with fewer ratings go out first. The paper: 20.",
        **bound("min_user"),
    )
    second.number_input(
        "Ratings per item, at least",
        value=None,
        min_value=0,
        max_value=context.LARGEST_COUNT,
        step=1,
        help="Then items with fewer ratings by the users that are left. The paper: 2.",
        **bound("min_item"),
    )
    third.number_input(
        "Items, at most (0: all)",
        value=None,
        min_value=0,
        max_value=context.LARGEST_COUNT,
        step=100,
        help="Keeps the most rated items. It bounds the N × N covariance, and with it time "
        "and memory. No part of the paper.",
        **bound("max_items"),
    )
    _, report = context.filtered()
    filter_effect(report, loaded.ratings)


def filter_effect(report: FilterReport, before: Ratings) -> None:
    """Before and after, and the steps between."""
    frame(
        overview.filter_table(report),
        hide_index=True,
        column_config={
            name: st.column_config.TextColumn(alignment="right")
            for name in ("Users", "Items", "Ratings")
        },
        alt="Users, items and ratings before the filter, removed by each step, and after",
    )
    kept = 100 * report.after.ratings / report.before.ratings
    after = report.after.ratings / (report.after.users * report.after.items)
    fact(
        f"{kept:.1f} % of the ratings stay; the fill ratio goes from "
        f"{100 * before.fill_ratio:.2f} % to {100 * after:.2f} %. Each step is taken once, in "
        "this order."
    )


def protocol_card() -> None:
    """What is hidden to test the model on."""
    st.subheader("Protocol", anchor=False)
    ratings, _ = context.filtered()
    chosen = context.current()
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    left.segmented_control(
        "How to test the model",
        CHOICES,
        format_func=lambda name: PROTOCOLS[name].capitalize(),
        required=True,
        **bound("protocol"),
    )
    right.number_input(
        "Seed of the split",
        value=None,
        min_value=0,
        max_value=context.LARGEST_COUNT,
        step=1,
        disabled=chosen.protocol == "none",
        help="Which users and ratings are drawn. The same seed gives the same split anywhere. "
        "With folds, it counts them: seed 0 is the first.",
        **bound("seed"),
    )
    held_out_controls(ratings)
    st.markdown(overview.protocol_text(chosen.protocol))
    split = context.split()
    number_row(overview.split_numbers(split))
    protocol_notes(split)


def protocol_notes(split: Split) -> None:
    """What a reader of the results must know of the numbers."""
    ratings, _ = context.filtered()
    for note in split.notes:
        fact(note)
    if split.protocol in ("weak", "strong") and not split.notes:
        weak, strong = default_counts(ratings.n_users)
        fact(f"The paper's numbers: {weak:,} users to train on and {strong:,} novel users.")


def cost_card() -> None:
    """What one iteration will cost on this machine."""
    st.subheader("Cost of one iteration", anchor=False)
    train = context.split().train
    needed = cost.estimate(train.user_counts, train.n_items)
    settings = FitSettings(iterations=2).resolved(train.scale)
    seconds = estimate_seconds(settings, train.user_counts, train.n_items).iterations[-1]
    left, right = st.columns([3, 2], gap="medium")
    with left:
        number_row(
            [
                ("Time, about", duration(seconds), "On this machine, in float64"),
                ("Arithmetic", flops_text(needed.flops)),
                ("Memory, about", bytes_text(needed.memory_bytes)),
            ]
        )
        st.markdown(overview.cost_text(needed))
        limit = cost.memory_limit()
        if needed.memory_bytes > limit:
            st.warning(
                f"This needs more than the {bytes_text(limit)} that may be used here. "
                "Keep fewer items with the filter above, or take the low-rank model or float32 on "
                "the Fit page."
            )
    with right:
        chart(
            figures.work_by_user(train.user_counts, dark=is_dark()),
            figures.work_by_user_alt(train.user_counts),
            key="data_work",
        )


# Layout ------------------------------------------------------------------------------


def overview_section(pending: str) -> None:
    """Everything about the selected data; an error here leaves the choice above usable.

    pending : other data that are only half chosen above, see ``data_source.choose_source``.
    """
    chosen = context.current()
    with guard():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.subheader(escape(sources.title(chosen.data)), anchor=False)
            continue_button("top", pending)
        loaded = context.loaded()
        size_card(loaded.ratings)
        if loaded.report.scale_derived:
            note = derived_scale(loaded.ratings.scale, loaded.report.scale_derived)
            st.info(note, icon=":material/straighten:")
        charts, titles, times, reading, conditions = linked_tabs(TABS, key="tab")
        with charts:
            charts_card(loaded.ratings)
        with titles:
            titles_card(loaded.ratings)
        with times:
            times_card(loaded.ratings)
        with reading:
            reading_card(loaded)
        with conditions:
            conditions_card(loaded.ratings)
        cards = [lambda: filter_card(loaded), protocol_card, cost_card]
        for card in cards if context.leaves_ratings() else cards[:1]:  # the filter's says why not
            with st.container(border=True), guard():
                card()
        continue_button("bottom", pending)


def continue_button(place: str, pending: str) -> None:
    """On to the fit, with the selection in the URL.

    While other data are half chosen above, it names the data that it goes on with.
    """
    name = sources.title(context.current().data)
    if st.button(
        f"Continue with {escape(name)}" if pending else "Continue: fit this",
        type="secondary" if pending else "primary",
        help=f"Fits {escape(name)} instead of {escape(pending)}, which is not selected yet."
        if pending
        else None,
        icon=":material/arrow_forward:",
        key=f"leave_to_fit_{place}",
    ):
        context.choose(run="")  # the settings, not the run that was looked at last
        st.switch_page("pages/fit.py", query_params=context.link_params())


page_header(
    "Data",
    "Choose the ratings, see what they look like, and decide what the model may learn from and "
    "what it is tested on.",
)
with st.container(border=True):
    half_chosen = data_source.choose_source()
overview_section(half_chosen)
