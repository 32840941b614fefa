"""Other runs beside the one on the Fit page: their curves in its chart, and the differences.

    others = overlay.chosen(run)         # from the address, else what was picked last
    overlay.picker(run, others)          # add and take away
    overlay.add(run, identity)           # for a button's callback
    overlay.outcomes(run, others)        # of those that have ended, in words, each to be opened
    overlay.progress(run, others)        # of those that have not; in the part that repeats
    overlay.opened(run)                  # after an opening, the page from its beginning

Only runs that were tested on the same held-out ratings can be beside each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gmc_core.protocol.metrics import PairedDifference
from gmc_core.runs.overlay import common_seeds, difference, on_same_split, telling_settings
from gmc_core.runs.store import Run, StoreError
from gmc_core.runs.store.naming import distinct_names
from gmc_dashboard.fit.run_words import name_help, status_text
from gmc_dashboard.shared import context, link_state, tour
from gmc_dashboard.shared.components import escape, to_the_top, told
from gmc_dashboard.shared.units import minus

PARAMETER = "with"
MOST = 5
ACTIVE = ("queued", "running")
BADGES = {
    "queued": ("waiting", "gray"),
    "running": ("running", "blue"),
    "finished": ("finished", "green"),
}
_OPENED = "gmc_dashboard.opened"
LONGEST_LABEL = 28


def chosen(run: Run) -> list[Run]:
    """The runs to show beside it, those that exist and share held-out ratings."""
    # A step of the tour shows what it names, not what somebody has picked before.
    told = (
        st.query_params.get(PARAMETER, "") if tour.asked() else link_state.recall(PARAMETER, run.id)
    )
    found = []
    for identity in told.split(","):
        try:
            other = context.store().run(identity) if identity else None
        except StoreError:  # deleted meanwhile, or a link from elsewhere
            continue
        if other is not None and other.id != run.id and common_seeds(run, other):
            found.append(other)
    return found[:MOST]


def add(run: Run, identity: str) -> None:
    """Show one more run beside it, the oldest giving way where there are too many."""
    kept = [other.id for other in chosen(run) if other.id != identity]
    _keep(run, [*kept, identity][-MOST:])


def _keep(run: Run, identities: Sequence[str]) -> None:
    link_state.keep(PARAMETER, ",".join(identities), run.id)
    st.session_state[_key(run)] = list(identities)


def _key(run: Run) -> str:
    return f"overlay_{run.id}"


def picker(run: Run, others: Sequence[Run]) -> None:
    """Which runs are beside it; nothing where there is no other on the same split."""
    candidates = on_same_split(context.store(), run)
    known = {other.id for other in candidates}
    candidates += [other for other in others if other.id not in known]  # such as a sweep's fits
    if not candidates:
        return
    names = distinct_names(candidates)
    if link_state.unset(_key(run)):
        st.session_state[_key(run)] = [other.id for other in others]
    st.session_state[_key(run)] = [
        identity for identity in st.session_state[_key(run)] if identity in names
    ]
    st.multiselect(
        "Beside it: runs on the same held-out ratings",
        list(names),
        key=_key(run),
        max_selections=MOST,
        format_func=names.__getitem__,
        placeholder="Choose runs to draw in this chart",
        on_change=_picked,
        args=(run,),
    )


def _picked(run: Run) -> None:
    _keep(run, st.session_state[_key(run)])


def labels(run: Run, others: Sequence[Run], *, short: bool = False) -> dict[str, str]:
    """By id, the settings that tell them apart; ``short`` for the end of a line.

    Too many for a line give way to the first that no other of these runs has. A line keeps the
    name with which it was drawn first.
    """
    named = tour.labels()
    if run.id in named:
        return {one.id: named.get(one.id, one.title) for one in (run, *others)}
    told = telling_settings([run, *others]) if others else {}
    if not short:
        return told
    words = [word for text in told.values() for word in text.split(", ")]
    cut: dict[str, str] = {}
    for identity, text in told.items():
        if len(text) > LONGEST_LABEL:
            text = next((word for word in text.split(", ") if words.count(word) == 1), text)
        if len(text) > LONGEST_LABEL:
            text = f"{text[: LONGEST_LABEL - 1].rstrip(', ')}…"
        text = _first_label(run, identity, text, [*cut.values(), *told.values()])
        cut[identity] = f"{text} ({identity[:4]})" if text in cut.values() else text
    return cut


def _first_label(run: Run, identity: str, text: str, taken: Sequence[str]) -> str:
    """The name under which a line was drawn first beside a run, unless another has it now."""
    kept: dict[str, str] = st.session_state.setdefault(f"labels.{run.id}", {})
    first = kept.setdefault(identity, text)
    return text if first != text and first in taken else first


def outcomes(run: Run, others: Sequence[Run]) -> None:
    """A line for each run beside it that has ended: its figure, how it differs, a way to it."""
    told = labels(run, others)
    for other in others:
        if other.state in ACTIVE:
            continue
        with _line(other, told[other.id], _outcome(run, other)):
            if not run.config.fit.is_exact and other.config.fit.is_exact:
                st.page_link(
                    "pages/learn.py",
                    label="Why does this help?",
                    icon=":material/school:",
                    query_params={"chapter": "steps"},
                )
            st.button(
                "Open run",
                key=f"open_{other.id}",
                icon=":material/open_in_full:",
                help="Show this run, with the present one beside it.",
                on_click=_open,
                args=(run, others, other),
            )


def progress(run: Run, others: Sequence[Run]) -> None:
    """A line for each run beside it that waits or is computed; for the part that repeats."""
    told = labels(run, others)
    for other in others:
        if other.state in ACTIVE:
            with _line(other, told[other.id], status_text(other, context.curves_of(other))):
                if other.progress:
                    st.progress(other.progress, width=120)


def _line(other: Run, told: str, text: str) -> DeltaGenerator:
    """What is said of a run; what it returns is the room below it."""
    label, colour = BADGES.get(other.state, (other.state, "orange"))
    with st.container(gap="xsmall"):
        st.markdown(f":{colour}-badge[{label}] **{escape(told)}**: {text}", help=name_help(other))
        return st.container(horizontal=True, vertical_alignment="center", gap="small")


def _open(run: Run, others: Sequence[Run], other: Run) -> None:
    """Make another run the page's, with this one beside it; Back leads to the present picture."""
    beside = [run.id, *(one.id for one in others if one.id != other.id)]
    context.select_run(other.id)
    _keep(other, beside[:MOST])
    st.session_state[_OPENED] = other.id


def opened(run: Run) -> None:
    """After an opening, show the page from its beginning."""
    if st.session_state.pop(_OPENED, None) == run.id:
        to_the_top(run.id)


def _outcome(run: Run, other: Run) -> str:
    nmae = (other.summary or {}).get("nmae")
    if other.state != "finished" or nmae is None:
        return told(other.message) or "it has no figure to compare."
    found = difference(context.store(), other, run)
    if found is None:
        return f"NMAE {nmae:.4f}."
    text = f"NMAE {nmae:.4f}, {difference_words(found)}"
    return f"{text} {what_helped(run, other)}" if found.resolved and found.mean < 0 else text


def what_helped(run: Run, other: Run) -> str:
    """What a model that is clearly better does otherwise, in plain words; "" without a rule."""
    if run.config.fit.is_exact or not other.config.fit.is_exact:
        return ""
    parts = [
        "it remembers how uncertain its guesses of missing ratings are",
        "a prior holds Σ back where ratings are few",
    ]
    if other.config.fit.is_ordered:
        parts.append("stars are grades in an order, not numbers")
    return f"What it does otherwise: {', '.join(parts[:-1])}, and {parts[-1]}."


def difference_words(found: PairedDifference) -> str:
    """How another run's NMAE differs from this one's, with the 95 % interval."""
    lower = found.mean < 0
    clearly = f"**clearly {'better' if lower else 'worse'}**: " if found.resolved else ""
    low, high = (minus(f"{end:z.4f}") for end in (found.low, found.high))
    text = (
        f"{clearly}{abs(found.mean):.4f} {'lower' if lower else 'higher'} than this run (95 % "
        f"interval of the difference: {low} to {high})"
    )
    return f"{text}." if found.resolved else f"{text}, so these ratings do not settle it."
