"""Tables and sentences about a set of ratings, ready to show."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.data.readers import LoadReport
from gmc_core.data.sessions import Sessions
from gmc_core.fitting.cost import Cost
from gmc_core.protocol.filters import FilterReport
from gmc_core.protocol.splits import Split
from gmc_dashboard.shared.units import duration, flops_text


def titles_table(ratings: Ratings) -> pd.DataFrame:
    """All items, the most rated first: title, year, genres, ratings, mean, spread.

    An item without ratings has a missing mean; "spread" is the standard deviation.
    """
    counts = ratings.item_counts
    sums = np.bincount(ratings.indices, weights=ratings.values, minlength=ratings.n_items)
    squares = np.bincount(ratings.indices, weights=ratings.values**2, minlength=ratings.n_items)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums / counts
        spread = np.sqrt(np.maximum(squares / counts - means**2, 0))
    order = np.argsort(-counts, kind="stable")
    table = pd.DataFrame(
        {
            "Title": [ratings.title(int(item)) for item in order],
            "Year": pd.array(ratings.item_info.years[order], dtype="Float64"),
            "Genres": [", ".join(ratings.item_info.genres[item]) for item in order],
            "Ratings": counts[order],
            "Mean": means[order],
            "Spread": spread[order],
        }
    )
    table.index = pd.RangeIndex(1, len(table) + 1, name="Rank")
    return table


ALMOST_ALL = 0.95  # share of equal ratings from which the page warns


def search_titles(table: pd.DataFrame, text: str) -> pd.DataFrame:
    """The rows whose title, genres or year hold every word of ``text``."""
    if not text.split():
        return table
    found = np.ones(len(table), dtype=bool)
    place = table["Title"] + " " + table["Genres"]
    for word in text.split():
        found &= place.str.contains(word, case=False, regex=False).to_numpy()
    return table[found]


def scale_text(scale: RatingScale) -> str:
    """The scale in a few characters: "0.5 – 5, half steps"."""
    ends = f"{scale.low:g} – {scale.high:g}"
    return f"{ends}, continuous" if scale.step is None else f"{ends} by {scale.step:g}"


def sameness(ratings: Ratings) -> str | None:
    """What is wrong with ratings that are (nearly) all equal, in a sentence; else None."""
    values, counts = ratings.value_counts
    if not len(values) or counts.max() < ALMOST_ALL * len(ratings):
        return None
    value = f"{values[counts.argmax()]:g}"
    if len(values) == 1:
        return (
            f"All ratings equal {value}, so there is nothing to predict, and NMAE has no divisor. "
            "Check that this is the column of the rating."
        )
    share = 100 * counts.max() / len(ratings)
    return (
        f"{min(share, 99.9):.1f} % of the ratings equal {value}: they tell hardly anything of "
        "tastes, and the item mean will be hard to beat. Check that this is the column of the "
        "rating."
    )


def divisor_text(scale: RatingScale) -> str:
    """The NMAE divisor, or a dash where all ratings are equal."""
    return f"{scale.nmae_divisor:.4g}" if scale.high > scale.low else "–"


def filter_table(report: FilterReport) -> pd.DataFrame:
    """Each step of the filter with what it took away, between before and after."""
    rows = [("As read", report.before, "")]
    rows += [(re.sub(r" \(\w+\)$", "", s.reason), s.removed, "−") for s in report.steps]
    rows += [("After the filter", report.after, "")]
    return pd.DataFrame(
        [
            {
                "Step": name,
                "Users": _signed(size.users, sign),
                "Items": _signed(size.items, sign),
                "Ratings": _signed(size.ratings, sign),
            }
            for name, size, sign in rows
        ]
    )


def _signed(count: int, sign: str) -> str:
    return f"{sign if count else ''}{count:,}"


def reading_table(report: LoadReport) -> pd.DataFrame:
    """Where every row of the source went; the rows add up."""
    rows = [("Rows with a rating in the source", report.rows_read, "")]
    if report.duplicates:
        policy = f"one rating of an item by a user counts: {report.duplicate_policy}"
        rows.append(("Repeated ratings, left out", report.duplicates, policy))
    rows += [("Left out", count, reason) for reason, count in report.dropped]
    rows.append(("Ratings kept", report.ratings, ""))
    if report.blank_lines:
        rows.append(("Blank lines skipped (not counted above)", report.blank_lines, ""))
    return pd.DataFrame(rows, columns=["What", "Count", "Why"])


def protocol_text(protocol: str) -> str:
    """What a protocol asks of the model, in plain words."""
    return {
        "weak": (
            "**Weak generalization** asks: *what would known users say of other items?* One "
            "random rating of every chosen user is hidden; the model learns from all their "
            "other ratings and predicts the hidden ones."
        ),
        "strong": (
            "**Strong generalization** asks: *what would new users say?* The model learns from "
            "one group of users. Novel users then show all their ratings but one, and without "
            "any retraining (fold-in) the model predicts the hidden one."
        ),
        "random": (
            "**Random hold-out** asks: *what stands in the holes of this table?* A share of all "
            "ratings is hidden, whoever gave them, and predicted from the others. Most of the "
            "literature since 2012 reports this, as RMSE and without a filter."
        ),
        "latest": (
            "**Hold-out by time** asks: *what will they say next?* Each user’s last ratings are "
            "hidden and predicted from those before, as a service would have to."
        ),
        "none": (
            "**No hold-out**: the model learns from every rating. Best for recommending, but "
            "there is no NMAE to watch, because nothing is left to test on."
        ),
    }[protocol]


def split_numbers(split: Split) -> list[tuple[str, str, str]]:
    """The numbers of a split as cards: (label, value, help)."""
    cards = [
        (
            "Training users",
            f"{split.train.n_users:,}",
            "Users (signals) that the model learns from",
        ),
        ("Training ratings", f"{len(split.train):,}", "Ratings that the model learns from"),
    ]
    if split.query is not None:
        cards += [
            ("Novel users", f"{split.query.n_users:,}", "Users that training never sees"),
            (
                "Query ratings",
                f"{len(split.query):,}",
                "The query set: what is known of the novel users",
            ),
        ]
    cards.append(("Hidden ratings", f"{split.n_test:,}", "The ratings to predict"))
    if split.n_test:
        cards.append(
            (
                "… of unseen items",
                f"{split.n_unseen_items:,}",
                "Hidden ratings of items that have no training rating: they can only be "
                "predicted from the mean, and they count like the others",
            )
        )
    return cards


def session_numbers(found: Sessions) -> list[tuple[str, str, str]]:
    """The numbers of sessions as cards: (label, value, help)."""
    several = found.sizes > 1
    longest = int(np.median(found.seconds[several])) if several.any() else 0
    return [
        (
            "Sessions",
            f"{len(found.sizes):,}",
            f"Ratings of one user, each at most {found.gap} s after the one before",
        ),
        ("Ratings a session", f"{found.sizes.mean():.1f}", "The mean over all sessions"),
        ("Largest session", f"{found.sizes.max():,}", "Ratings"),
        (
            "Typical length",
            duration(longest) if several.any() else "–",
            "The median of sessions with more than one rating, from first to last",
        ),
        (
            "Not alone",
            f"{100 * found.shared:.0f} %",
            "Share of the ratings that have another one in their session",
        ),
    ]


def session_sentence(found: Sessions) -> str:
    """What sessions mean for a model."""
    return (
        f"A session is a run of ratings by one user, each at most {found.gap} seconds after the "
        "one before: a page of titles, rated in one go. Such ratings share a mood, and with it "
        "an error."
    )


def cost_text(cost: Cost) -> str:
    """Where the time of an iteration goes, and what the paper's formula misses."""
    ratio = cost.solve_flops / cost.paper_flops if cost.paper_flops else float("nan")
    solve, rest, paper = (
        flops_text(flops) for flops in (cost.solve_flops, cost.m_flops, cost.paper_flops)
    )
    return (
        "The E-step solves one system per user, of the size of that user's number of ratings "
        rf"$N_i$: $\sum_i N_i^3/3$ = {solve}. The M-step and the predictions add {rest}. The "
        f"paper's formula $M N^3/(3 C^3)$, with $C$ the inverse fill ratio, gives {paper}: it "
        "puts the mean in place of every $N_i$ and so misses the heavy tail, the few users with "
        f"very many ratings. Here the true sum is {ratio:,.1f} times larger."
    )
