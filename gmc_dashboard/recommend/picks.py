"""Titles to rate with one click or key each; a batch stays until the visitor asks for more.

A title that is rated leaves its place to a note, so that no row moves under the pointer, and
goes to the visitor's own ratings, where it can be changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from gmc_core.model.analysis import submatrix
from gmc_core.model.gaussian_model import GaussianModel, Posterior
from gmc_core.runs.store import Run
from gmc_dashboard.covariance import data as covariance_data
from gmc_dashboard.recommend.one_user import fits_five_stars, offers_all, quick_values
from gmc_dashboard.recommend.rating_rows import listed, rated, rating_text
from gmc_dashboard.shared.components import escape, fact
from gmc_dashboard.shared.units import minus

BATCH = 12
POOL = 3 * BATCH  # of the most rated titles, from which those that differ most are taken
CANDIDATES = 200  # the most rated titles, which a person is likely to know
WIDE = 6  # more values than this stand below their title, not beside it
STARS_WIDTH = 124  # pixels of five stars: a title wraps the same once it is rated
WELL_KNOWN, TELLING = "Well known", "Telling most"


def well_known(model: GaussianModel, candidates: Sequence[int], count: int = BATCH) -> list[int]:
    """Some of the most rated titles that are unlike each other.

    The first, then always the one whose largest |correlation| in Σ with those taken is the
    smallest.

    Parameters
    ----------
    candidates : item positions, most rated first; only the first :data:`POOL` are looked at.
    count : how many, if there are as many.

    Returns
    -------
    Item positions in the order of ``candidates``.
    """
    pool = list(candidates[: max(POOL, count)])
    if len(pool) <= count:
        return pool
    likeness = np.nan_to_num(np.abs(submatrix(model, pool, "correlation")), nan=0.0)
    taken = [0]
    nearest = likeness[0].copy()
    while len(taken) < count:
        nearest[taken] = np.inf
        taken.append(int(np.argmin(nearest)))
        nearest = np.maximum(nearest, likeness[taken[-1]])
    return [pool[place] for place in sorted(taken)]


def draw(run: Run, name: str, model: GaussianModel, posterior: Posterior) -> None:
    """The batch, and the way to another.

    name : under which the visitor's ratings are kept.
    posterior : the belief that follows from them.
    """
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**Rate next**", width="stretch")
        kind = st.segmented_control(
            "Which titles",
            (WELL_KNOWN, TELLING),
            default=WELL_KNOWN,
            required=True,
            key="picks",
            label_visibility="collapsed",
        )
    items = _batch(run, name, model, posterior, kind or WELL_KNOWN)
    if not items:
        fact("You have rated all titles of this model.")
        return
    notes = _notes(model, posterior, items) if kind == TELLING else {}
    if notes:
        fact(
            "The answers that would tell the model most: the share of its remaining variance, over "
            "all titles, that each would take away."
        )
    own = rated(name)
    with st.container(gap="xsmall", key="picks_rows"):
        for item in items:
            _row(name, model, item, own.get(item), notes.get(item, ""))
    if not offers_all(model.scale):
        fact("Any other value of the scale can be given under “Your ratings”.")
    st.button(
        "More titles",
        icon=":material/refresh:",
        key="picks_more",
        help="Others in place of these",
        on_click=_more,
        args=(name,),
    )


def _batch(run: Run, name: str, model: GaussianModel, posterior: Posterior, kind: str) -> list[int]:
    """The titles on offer; others once all of them are rated."""
    own = listed(name)
    state = f"{name}_batch"
    of, items = st.session_state.get(state, ("", []))
    if of == kind and any(own.get(item) is None for item in items):
        return list(items)
    offered: set[int] = st.session_state.setdefault(f"{name}_offered_{kind}", set())
    popular = covariance_data.by_popularity(covariance_data.key_of(run.id), model)
    left = [item for item in popular if item not in own]
    fresh = [item for item in left if item not in offered]
    if not fresh:  # all have been on offer: those that were passed over come again
        offered.clear()
        fresh = left
    if kind == WELL_KNOWN:
        items = well_known(model, fresh)
    else:
        found = model.most_informative(posterior, np.array(fresh[:CANDIDATES], np.int64), BATCH)
        items = [item for item, _ in found]
    offered.update(items)
    st.session_state[state] = (kind, items)
    return list(items)


def offer(name: str, items: Sequence[int]) -> None:
    """Put these titles on offer next, at most a batch of them, in place of those that are.

    name : under which the visitor's ratings are kept.
    """
    st.session_state["picks"] = WELL_KNOWN
    st.session_state[f"{name}_batch"] = (WELL_KNOWN, list(items[:BATCH]))


def _more(name: str) -> None:
    st.session_state.pop(f"{name}_batch", None)


def _notes(model: GaussianModel, posterior: Posterior, items: Sequence[int]) -> dict[int, str]:
    """What each unrated title would tell."""
    total = float(posterior.variance.sum())
    found = model.most_informative(posterior, np.array(items, np.int64), len(items))
    return {
        item: f"−{100 * (gain / total if total > 0 else 0.0):.1f} % variance"
        for item, gain in found
    }


def _row(name: str, model: GaussianModel, item: int, value: float | None, note: str) -> None:
    """A title with its control, or with the rating that it has been given."""
    stars = fits_five_stars(model.scale)
    wide = not stars and len(quick_values(model.scale)) > WIDE
    title = escape(model.title(item))
    done = value is not None
    with st.container(
        horizontal=done or not wide, vertical_alignment="center", gap="small" if done else "xsmall"
    ):
        with st.container(width="stretch"):  # so that a long title wraps beside its control
            words = f":gray[{title}]" if done else title
            st.markdown(words + (f"  \n:small[:gray[{note}]]" if note else ""))
        if value is None:
            _control(name, model, item)
            return
        st.markdown(
            f":gray[{rating_text(model.scale, value)}]",
            width=STARS_WIDTH if stars else "content",
            text_alignment="right",
        )


def _control(name: str, model: GaussianModel, item: int) -> None:
    """Stars where five whole ones are on the scale, else a button for each value."""
    key = f"{name}_quick_{item}"
    stars = fits_five_stars(model.scale)

    def keep() -> None:
        value = st.session_state.pop(key, None)
        if value is not None:
            listed(name).pop(item, None)  # the newest comes last, a listed one as well
            listed(name)[item] = float(value) + 1 if stars else float(value)
            st.session_state.pop(f"{name}_rate_{item}", None)

    if stars:
        st.feedback("stars", key=key, on_change=keep)
        return
    st.segmented_control(
        f"Rating of {model.title(item)}",
        quick_values(model.scale),
        format_func=lambda value: minus(f"{value:g}"),
        key=key,
        on_change=keep,
        label_visibility="collapsed",
    )
