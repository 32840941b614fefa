"""The Recommend page's right side: the list, why, what was hidden, and files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.model.calibration import level_of
from gmc_core.model.gaussian_model import GaussianModel, Posterior, Recommendation
from gmc_core.runs.store import Run
from gmc_dashboard.covariance.views import min_ratings_box
from gmc_dashboard.recommend import figures as figures
from gmc_dashboard.recommend import interval_note
from gmc_dashboard.recommend.data import completed_table
from gmc_dashboard.recommend.one_user import People
from gmc_dashboard.shared import link_state
from gmc_dashboard.shared.components import chart, download, escape, fact, into_view
from gmc_dashboard.shared.frames import cell_rows_of, frame, rows_of
from gmc_dashboard.shared.link_state import LISTED
from gmc_dashboard.shared.tables import to_csv
from gmc_dashboard.shared.theme import is_dark
from gmc_dashboard.shared.units import minus

EXPLAIN, EXPLANATION = "explained_title", "explanation"
ROW, MOST_ROWS = 28, 12  # pixels of a row, and how many are shown without scrolling
RIM, WIDEST = 18, 900  # pixels beside a title in its cell, and of its widest column
# On a telephone a title needs the whole width.
_ROOM_FOR_TITLE = """<style>
@media (max-width: 640px) { .st-key-explained_title { flex-basis: 100% } }
</style>"""
CHOSEN = "gmc_dashboard.explained"  # the title was chosen just now
# Bytes of a completed table that is made for a download, which is in memory as a whole.
LARGEST_TABLE = 1e9


def filters(model: GaussianModel, sentence: str) -> tuple[int, int, list[str]]:
    """Whose list it is, and beside that, folded: top N, fewest ratings, genres.

    sentence : of :func:`sentence`. Genres that are chosen are said with it.
    """
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        said = st.container(width="stretch")
        folded = st.popover("Filter", icon=":material/filter_alt:", key="recommend_filter")
    with folded:
        top = st.number_input("How many", 1, 100, LISTED, key="top", bind="query-params")
        least = min_ratings_box(st.container(), model, "least")
        genres = figures.genres_of(model)
        chosen: list[str] = []
        if genres:
            chosen = st.multiselect(
                "Genres", genres, placeholder="All genres", key="genres", bind="query-params"
            )
    only = f" Only {escape(', '.join(chosen))}." if chosen else ""
    said.markdown(sentence + only)
    return int(top), least, chosen


def recommendations(
    run: Run,
    model: GaussianModel,
    posterior: Posterior,
    found: Sequence[Recommendation],
    least: int,
) -> None:
    """The list, and the explanation of one of it."""
    if not found:
        st.info(
            f"No unrated title has {least:,} ratings or more in these genres. Lower the "
            "number or choose other genres under “Filter”.",
            icon=":material/filter_alt:",
        )
        return
    table = figures.recommendations_table(model, found)
    table["Interval"] = figures.interval_texts(table)
    scale = model.scale
    number = st.column_config.NumberColumn
    key = f"recommended_{hash(tuple(r.item for r in found))}"
    item = _explained(model, found, st.session_state.get(key))
    frame(
        table,
        marked=[r.item for r in found].index(item),
        projected=["Title", "Rating", "Interval"],
        narrow=["Title", "Rating", "Interval"],
        height="content" if len(table) <= MOST_ROWS else ROW * (MOST_ROWS + 1),
        row_height=ROW,
        hide_index=True,
        column_order=["Title", "Rating", "Interval", "Prediction", "Ratings", "Genres"],
        column_config={
            # As wide as the longest title: what does not fit beside it is scrolled to.
            "Title": st.column_config.TextColumn(width=title_width(table["Title"])),
            "Rating": number(format="%g", help=f"Projected to the scale {scale}", width=56),
            "Prediction": number(
                "Unrounded",
                format="%.2f",
                help="The raw prediction, by which titles are ranked; “Rating” is the nearest "
                "value on the scale.",
                width=84,
            ),
            "Interval": st.column_config.TextColumn(
                f"{100 * level_of(model.calibration):.4g} %",
                help=f"Interval of the rating. {interval_note.note(model)}",
                width=75,
            ),
            "Genres": st.column_config.TextColumn(width=160),
            "Ratings": number(format="%d", help="Training ratings of the title", width=64),
        },
        on_select="rerun",
        selection_mode=("single-row", "single-cell"),
        key=key,
        alt="Recommendations: "
        + "; ".join(f"{r.title}, predicted {r.predicted:.2f}" for r in found[:10]),
    )
    with st.container(key=EXPLANATION):
        _explanation(model, posterior, found)
    if words := beyond_scale(table["Prediction"], scale):
        fact(words)
    interval_note.draw(run, model)


LATENT_HELP = (
    "Latent response: how much somebody likes a title, as a number without ends. Cuts divide it "
    "into the ratings that can be given, so that the prediction is made from it."
)


def _explained(model: GaussianModel, found: Sequence[Recommendation], event: Any) -> int:
    """The item to explain, chosen in the table or the box below it, else the first of the list.

    event : the table's state from before it is drawn, so that it can mark the row: rows chosen by
        their boxes, and by a cell; the newest choice counts.
    """
    items = [r.item for r in found]
    ways = (rows_of(event), cell_rows_of(event))
    clicked = [items[rows[0]] if rows and rows[0] < len(items) else None for rows in ways]
    before = st.session_state.get("explained_click") or [None] * len(clicked)
    for item, earlier in zip(clicked, before, strict=True):
        if item is not None and item != earlier:
            st.session_state[EXPLAIN] = item
            _chosen()
    st.session_state["explained_click"] = clicked
    asked = link_state.recall("why")
    if link_state.unset(EXPLAIN):
        st.session_state[EXPLAIN] = int(model.items.find([asked])[0])
    elif not asked and CHOSEN not in st.session_state:
        st.session_state[EXPLAIN] = items[0]  # of a new list, where nobody has chosen
    if st.session_state[EXPLAIN] not in items:
        st.session_state[EXPLAIN] = items[0]
    return int(st.session_state[EXPLAIN])


def _explanation(
    model: GaussianModel, posterior: Posterior, found: Sequence[Recommendation]
) -> None:
    items = [r.item for r in found]
    st.html(_ROOM_FOR_TITLE)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            "**Why this title?**",
            width="content",
            help="The marked row is explained. Click another row, go to it with the arrow keys, "
            "or choose its title here." + ("" if model.ordinal is None else f" {LATENT_HELP}"),
        )
        item = st.selectbox(
            "Why this prediction?",
            items,
            format_func=model.title,
            key=EXPLAIN,
            on_change=_chosen,
            label_visibility="collapsed",
        )
    if item is None:
        return
    link_state.keep("why", "" if item == items[0] else str(model.items.ids[item]))
    chart(
        figures.contributions_figure(model, posterior, item, dark=is_dark()),
        figures.describe_contributions(model, posterior, item),
        key="contributions_chart",
    )
    known = figures.known_share(model, posterior, item) is not None
    similar = posterior.of_similar_users(item) is not None
    fact(
        f"The {'prediction' if model.ordinal is None else 'latent response'} is the mean over all "
        "users"
        + (", plus what this user's groups like more or less," if known else "")
        + (", plus what similar users do," if similar else "")
        + " plus one share for each rated title, exactly. The bars are the shares alone and begin "
        "at 0; the mean and what all add up to are numbers. Orange raises it, blue lowers it. A "
        "share depends on all ratings together: two titles that say the same divide it between "
        "them."
        + (
            ""
            if model.ordinal is None
            else " Ratings are ordered here: the shares are of the latent response, which the cuts "
            "between the ratings turn into the prediction."
        )
    )
    if st.session_state.pop(CHOSEN, False):
        into_view(EXPLANATION, str(item))


def title_width(titles: Iterable[str]) -> int:
    """Pixels that hold the widest of the titles."""
    widths = (sum(_letter_width(letter) for letter in title) for title in titles)
    return min(max(round(max(widths, default=0.0)) + RIM, 160), WIDEST)


def _letter_width(letter: str) -> float:
    """Pixels of a letter in a table's type, 13 px, for the widest font that systems have."""
    if letter in "ijlI.,:;'!| ":
        return 4.3
    if letter in "ftr()[]-":
        return 5.4
    if letter in "mwMW@%—" or ord(letter) > 0x2E80:  # Chinese, Japanese, Korean
        return 13.0
    return 9.2 if letter.isupper() else 8.2


def _chosen() -> None:
    st.session_state[CHOSEN] = True


def beyond_scale(predictions: Iterable[float], scale: RatingScale) -> str:
    """Why predictions lie outside the scale, of the one furthest out; "" if none does."""
    shown = [float(f"{value:.2f}") for value in predictions]
    outside = [value for value in shown if not scale.low <= value <= scale.high]
    if not outside:
        return ""
    furthest = max(outside, key=lambda value: abs(value - scale.midpoint))
    end = f"at most {scale.high:g}" if furthest > scale.high else f"at least {scale.low:g}"
    return minus(
        f"An unrounded (raw) prediction such as {furthest:.2f} on a scale of {end} is no "
        "mistake: a Gaussian has no ends, so the unrounded value ranks the titles, and the rating "
        "is the nearest one on the scale."
    )


def hidden_ratings(
    model: GaussianModel, posterior: Posterior, people: People, user: int, changed: bool
) -> None:
    """The user's ratings that the fit did not see, on demand."""
    items, values = people.hidden(user)
    if not people.hidden_known:
        fact(
            "Which ratings of this user were hidden from the fit is not known: the run stopped "
            "before it wrote them down. Resume it to compare them with their predictions."
        )
        return
    if not len(items):
        fact("No rating of this user was hidden from the fit.")
        return
    noun = "rating" if len(items) == 1 else "ratings"
    if not st.toggle(f"Reveal {len(items)} hidden {noun}", key="reveal", bind="query-params"):
        return
    table = figures.held_out_table(model, posterior, items, values)
    words = figures.held_out_sentence(table)
    st.markdown(words + (" Your changes are part of the prediction." if changed else ""))
    if model.noise.session is not None:
        st.caption(
            "Predicted here as if rated today. The run's own figures also use what else the user "
            "rated at the time of each hidden rating."
        )
    if not len(table):
        return
    chart(figures.held_out_figure(model, table, dark=is_dark()), words, key="hidden_chart")
    frame(
        table,
        hide_index=True,
        column_config={
            name: st.column_config.NumberColumn(format="%.2f")
            for name in ("Prediction", "From", "To", "Error")
        },
        alt=words,
    )
    if outside := beyond_scale(table["Prediction"], model.scale):
        fact(outside)


def files(
    model: GaussianModel, posterior: Posterior, found: Sequence[Recommendation], who: str
) -> None:
    """Downloads, each made on click."""
    with st.container(horizontal=True):
        download(
            "Recommendations (CSV)",
            lambda: to_csv(figures.recommendations_table(model, found), index=True),
            f"recommendations-{who}.csv",
            "text/csv",
        )
        download(
            "With explanations (JSON)",
            lambda: figures.recommendations_json(model, posterior, found),
            f"recommendations-{who}.json",
            "application/json",
            help="The list, the ratings it follows from, and every rated title's share in each "
            "prediction.",
        )
        download(
            "Completed row (CSV)",
            lambda: to_csv(_row(model, posterior)),
            f"completed-row-{who}.csv",
            "text/csv",
            help="Every title of this user: the given rating, or the predicted one.",
        )
        if model.ratings is not None and not too_large(model.ratings):
            download(
                "Completed table (Parquet)",
                lambda: completed_table(model),
                "completed-table.parquet",
                "application/vnd.apache.parquet",
                help=f"It holds {_extent(model.ratings)}; it is computed after the click.",
            )
    if model.ratings is not None and too_large(model.ratings):
        fact(
            f"The completed table is too large for a download: {_extent(model.ratings)}. Export "
            "the model on the Runs page; `gmc complete --model FILE --out table.parquet` writes "
            "the table a part at a time."
        )
    if model.licence != "unknown":
        fact(f"{escape(model.data_name)}: {escape(model.licence)}")


def too_large(ratings: Ratings) -> bool:
    """Whether the completed table is more than a server and a browser should hold as a whole."""
    return 8 * ratings.n_users * ratings.n_items > LARGEST_TABLE


def _extent(ratings: Ratings) -> str:
    size = max(1, round(8 * ratings.n_users * ratings.n_items / 1e6))
    return f"all {ratings.n_users:,} training users by {ratings.n_items:,} items, about {size:,} MB"


def _row(model: GaussianModel, posterior: Posterior) -> pd.DataFrame:
    return figures.completed_row(model, posterior)


def sentence(name: str, count: int, known: bool = False) -> str:
    """Whose list it is; known : whether anything is known besides the ratings."""
    if count == 0:
        who = "the average user"
        if name != "you":
            who = "such a user on average" if known else who
            return f"Best titles for {who}: none of this user's ratings is used."
        who = "the average user of your groups" if known else who
        return f"Best titles for {who}; rate a few and the list becomes yours."
    ratings = "rating" if count == 1 else "ratings"
    return f"Best unrated titles for {escape(name)}, from {count:,} {ratings}."
