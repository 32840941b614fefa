"""Whose ratings: the visitor's own, or a user's of the data with what-if changes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.runs.store import Run
from gmc_dashboard.covariance import data as covariance_data
from gmc_dashboard.recommend.data import novel_people, trained_people
from gmc_dashboard.recommend.one_user import (
    Floats,
    People,
    RatingsByItem,
    changed_by_text,
    changes_to_text,
    from_text,
    rating_options,
    to_text,
)
from gmc_dashboard.recommend.rating_rows import clear, listed, rated, rating_row, search_row
from gmc_dashboard.shared import history, link_state, tour
from gmc_dashboard.shared.components import escape, fact
from gmc_dashboard.shared.linked_choice import linked_choice

YOURSELF = "yourself"  # the way that the visitor's own ratings belong to
NOT_GIVEN = "(not given)"
ROWS = 5  # of the visitor's own ratings at once
MAX_PICKED = 5_000  # users in the box; the filter narrows down to any


def own_name(run: Run, model: GaussianModel) -> str:
    """The name under which the visitor's own ratings are kept.

    A run that goes on, and another run on the same items, have the same ratings; those of the
    tour are no visitor's own.
    """
    whose = "tour" if tour.asked() else "mine"
    return f"{whose}_{covariance_data.vocabulary(covariance_data.key_of(run.id), model)}"


def own_ratings(run: Run, model: GaussianModel) -> str:
    """Search and rate titles; returns the name under which the ratings are kept."""
    key, name = covariance_data.key_of(run.id), own_name(run, model)
    linked = st.query_params.get("rated", "")
    # Back to where nothing was rated yet does not throw away what was rated since.
    back = history.returned() and linked not in ("", to_text(model, rated(name)))
    if name not in st.session_state or back:
        ratings, lost = from_text(model, linked)
        clear(name)
        listed(name).update(ratings)
        if lost:
            st.warning(
                f"{lost} of the ratings in the address are of titles or values that this model "
                "does not know; they were left out."
            )
    titles = covariance_data.titles(key, model)
    popular = [m for m in covariance_data.by_popularity(key, model) if m not in listed(name)]
    search_row(name, model, popular, titles, "Search a title and rate it")
    text = to_text(model, rated(name))
    if text:
        st.query_params["rated"] = text
    else:
        st.query_params.pop("rated", None)
    return name


def newest_row(name: str, model: GaussianModel) -> int | None:
    """The title that was searched last and is not rated yet, to be rated at once."""
    waiting = [item for item, value in listed(name).items() if value is None]
    if not waiting:
        return None
    rating_row(name, model, waiting[-1])
    return waiting[-1]


def own_rows(name: str, model: GaussianModel, known: bool, above: int | None) -> None:
    """The titles on the visitor's list, the newest first, a few at a time.

    known : whether they said what groups they are of.
    above : the title that :func:`newest_row` has drawn, if any.
    """
    items = [item for item in reversed(listed(name)) if item != above]
    if not rated(name):
        who = "average user of these groups" if known else "average user"
        fact(f"Nothing rated yet: what you see is the prediction for the {who}.")
    if not items:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**Your ratings: {len(rated(name)):,}**", width="stretch")
        st.button(
            "Clear",
            key=f"{name}_clear",
            icon=":material/delete:",
            help="Clear my ratings",
            on_click=clear,
            args=(name,),
        )
    pages = -(-len(items) // ROWS)
    first = 0
    if pages > 1:
        key = f"{name}_page_{pages}"  # fewer pages are another control, which begins anew
        first = ROWS * (int(st.session_state.get(key, 1)) - 1)
    for item in items[first : first + ROWS]:
        rating_row(name, model, item)
    if pages > 1:
        st.pagination(pages, key=key, max_visible_pages=5)


def about_you(model: GaussianModel) -> Floats | None:
    """What the visitor says of themselves, where the model's mean depends on it."""
    if model.groups is None:
        return None
    # Opened by a link with answers, and kept open: removing the last answer must not close it.
    if any(f"about_{name}" in st.query_params for name in model.groups.choices):
        st.session_state["about-you-open"] = True
    opened = bool(st.session_state.get("about-you-open"))
    with st.expander("About you, if you like", icon=":material/badge:", expanded=opened):
        chosen = [_group_box(name, own) for name, own in model.groups.choices.items()]
    given = [label for label in chosen if label != NOT_GIVEN]
    return model.groups.covariates_of(given) if given else None


def _group_box(attribute: str, labels: list[str]) -> str:
    """One attribute's group."""
    name = attribute.replace("_", " ")
    return st.selectbox(
        escape(name[:1].upper() + name[1:]),
        [NOT_GIVEN, *labels],
        format_func=lambda label: label.removeprefix(f"{attribute} "),
        key=f"about_{attribute}",
        bind="query-params",
    )


def about_user(model: GaussianModel, people: People, user: int) -> Floats | None:
    """What is known of a user of the data besides ratings, shown and as covariates; None
    where that is nothing."""
    known = model.covariates_of(people.ratings, user)
    if model.groups is None:
        return known
    besides = model.besides_ratings(known)
    labels = model.groups.of_user(people.ratings.user_info, user)
    if labels:
        fact(f"Also known: {escape(', '.join(labels))}.")
    elif besides is not None and besides.any():
        fact("What else is known puts this user into none of the groups that the model knows.")
    return known if known is not None and known.any() else None


def pick_user(run: Run, model: GaussianModel) -> tuple[People, int] | None:
    """A user of the data, by id, at random, or by number of ratings."""
    trained = trained_people(run, model)
    groups = {"training": "used for training"}
    if run.config.protocol == "strong":
        groups["novel"] = "new to the model"
    group = "training"
    if len(groups) > 1:
        group = linked_choice("Users", groups, "novel", key="group")
    people = novel_people(run, model) if group == "novel" else trained
    if people is None and group == "novel":
        st.info(
            "The new users of this run cannot be drawn again: the data are not those that it was "
            "fitted to. Choose the users used for training, or fit the data as they are now.",
            icon=":material/person_off:",
        )
        return None
    if people is None:
        st.info(
            "This model was saved without its training ratings, so it knows no users. Choose "
            "“Yourself” and rate a few titles: that needs none.",
            icon=":material/person_off:",
        )
        return None
    user = _user_box(people, f"user_{run.id}_{group}")
    return None if user is None else (people, user)


def _user_box(people: People, key: str) -> int | None:
    counts = people.ratings.user_counts
    ids = people.ratings.users.ids
    low, high = int(counts.min()), int(counts.max())
    if link_state.unset(key):
        seen = None if "user" in st.query_params else st.session_state.get(f"{key}_seen")
        st.session_state[key] = _user_of_link(people) if seen is None else seen
    with st.container(horizontal=True, vertical_alignment="bottom"):
        box = st.container(width="stretch")
        random = st.button(
            "Random", icon=":material/casino:", key=f"{key}_random", help="Another user at random"
        )
    wanted, hidden = _user_filter(people, key, low, high)
    options = people.matching(*wanted, with_hidden=hidden).tolist()
    current = st.session_state[key]
    if random and options:
        draw = np.random.default_rng()
        current = st.session_state[key] = int(options[draw.integers(len(options))])
    if not options:
        st.info("No user has that many ratings; widen the filter.", icon=":material/filter_alt:")
        return None
    shown = options[:MAX_PICKED]
    if current not in options:
        current = st.session_state[key] = shown[len(shown) // 2]
    elif current not in shown:
        shown = [current, *shown]
    user = box.selectbox(
        "User",
        shown,
        format_func=lambda position: f"{ids[position]} · {counts[position]:,} ratings",
        key=key,
        help="Type an id. The box holds the users that the filter leaves, most ratings first"
        + (f" (the first {MAX_PICKED:,})." if len(options) > MAX_PICKED else "."),
    )
    if user is not None:
        st.query_params["user"] = str(ids[user])
        st.session_state[f"{key}_seen"] = user  # survives a look at another page
    return user


def _user_filter(people: People, key: str, low: int, high: int) -> tuple[tuple[int, int], bool]:
    """The numbers of ratings, and whether only users with hidden ratings count; in the URL."""
    wanted = _range_of(link_state.recall("user_ratings"), low, high)
    hidden = link_state.recall("user_hidden") == "1" and len(people.test_values) > 0
    filtered = hidden or wanted != (low, high)
    if history.returned():
        st.session_state[f"{key}_range"], st.session_state[f"{key}_hidden"] = wanted, hidden
    with st.expander("Filter users", icon=":material/filter_alt:", expanded=filtered):
        if high > low:
            wanted = st.slider("Number of ratings", low, high, wanted, key=f"{key}_range")
        if len(people.test_values):
            hidden = st.toggle("Only users with hidden ratings", hidden, key=f"{key}_hidden")
    link_state.keep("user_ratings", "" if wanted == (low, high) else f"{wanted[0]}-{wanted[1]}")
    link_state.keep("user_hidden", "1" if hidden else "")
    return wanted, hidden


def _range_of(text: str, low: int, high: int) -> tuple[int, int]:
    """ "20-300" within the bounds; the bounds for anything else."""
    first, _, last = text.partition("-")
    if not (first.isdecimal() and last.isdecimal()):
        return low, high
    start = min(max(int(first), low), high)
    return start, min(max(int(last), start), high)


def _user_of_link(people: People) -> int:
    """The user that the URL names; otherwise one with a middling number of ratings."""
    asked = st.query_params.get("user")
    if asked:
        found = int(people.ratings.users.find([asked])[0])
        if found >= 0:
            return found
        example = people.ratings.users.ids[0] if people.ratings.n_users else "none"
        st.warning(
            f"There is no user {escape(asked)} among the {people.ratings.n_users:,} users of this "
            f"model; ids look like {escape(str(example))}. Another user is shown."
        )
    with_hidden = people.matching(0, 2**62, with_hidden=len(people.test_values) > 0)
    return int(with_hidden[len(with_hidden) // 2]) if len(with_hidden) else 0


def edited_ratings(
    run: Run, model: GaussianModel, people: People, user: int
) -> tuple[RatingsByItem, bool]:
    """The user's ratings with the visitor's what-if changes, and whether there are any."""
    base = people.of(user)
    id = people.ratings.users.ids[user]
    name = f"whatif_{run.id}_{people.novel}_{id}"
    version = st.session_state.setdefault(f"{name}_version", 0)
    editor, start, last, added = (
        f"{name}_{part}" for part in (f"editor_{version}", "start", "last", "added")
    )
    asked = st.query_params.get("edits", "")
    drawn = last in st.session_state
    if not drawn or (history.returned() and asked):
        linked = changed_by_text(model, id, base, asked)
        if drawn and linked != st.session_state[last]:  # the editor begins anew, from these
            clear(added)
            version = st.session_state[f"{name}_version"] = version + 1
            editor = f"{name}_editor_{version}"
        st.session_state[last] = linked
        listed(added).update({m: value for m, value in linked.items() if m not in base})
    if editor not in st.session_state:
        # The editor forgets its changes while it is not drawn; it goes on from these. Then
        # they stay the same, since its own changes count from where it began.
        st.session_state[start] = st.session_state[last]
    begin: RatingsByItem = st.session_state[start]
    items = sorted(base, key=lambda m: (-base[m], -model.item_counts[m]))
    table = pd.DataFrame(
        {
            "Use": [m in begin for m in items],
            "Title": [model.title(m) for m in items],
            "Rating": [begin.get(m, base[m]) for m in items],
        }
    )
    options = rating_options(model.scale)
    rating = (
        st.column_config.NumberColumn(
            min_value=model.scale.low, max_value=model.scale.high, width=60
        )
        if options is None
        else st.column_config.SelectboxColumn(options=options, required=True, width=60)
    )
    st.markdown(f"**{len(items):,} ratings of user {escape(str(id))}**")
    edited = st.data_editor(
        table,
        hide_index=True,
        height=min(320, 35 * len(items) + 38),
        column_config={
            "Use": st.column_config.CheckboxColumn(width=45, help="Clear to hide a rating"),
            "Title": st.column_config.TextColumn(width=230),
            "Rating": rating,
        },
        disabled=["Title"],
        key=editor,
        alt=f"The {len(items)} ratings of user {id}; ratings can be changed or left out.",
    )
    ratings = {
        item: float(value)
        for item, used, value in zip(items, edited["Use"], edited["Rating"], strict=True)
        if used and pd.notna(value)
    }
    key = covariance_data.key_of(run.id)
    popular = covariance_data.by_popularity(key, model)
    more = [m for m in popular if m not in base and m not in listed(added)]
    search_row(added, model, more, covariance_data.titles(key, model), "What if … also rated")
    for item in list(listed(added)):
        rating_row(added, model, item)
    ratings.update(rated(added))
    changed = ratings != base
    st.session_state[last] = ratings
    text = changes_to_text(model, id, base, ratings)
    if text:
        st.query_params["edits"] = text
    else:
        st.query_params.pop("edits", None)
    if changed:

        def undo() -> None:
            clear(added)
            st.session_state[last] = base
            st.session_state[f"{name}_version"] = version + 1

        st.button("Undo all changes", icon=":material/undo:", key=f"{name}_undo", on_click=undo)
    else:
        fact("Change a rating, leave one out, or add a title: the list follows at once.")
    return ratings, changed
