"""Other runs beside the one on the Fit page: their curves in its chart, and the differences.

    others = overlay.chosen(run)         # from the address, else what was picked last
    overlay.picker(run, others)          # add and take away
    overlay.add(run, identity)           # for a button's callback
    overlay.differences(run, others)     # in words, with a link to each

Only runs that were tested on the same held-out ratings can be beside each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from gmc_core.protocol.metrics import PairedDifference
from gmc_core.runs.overlay import common_seeds, difference, on_same_split, telling_settings
from gmc_core.runs.store import Run, StoreError
from gmc_core.runs.store.naming import distinct_names
from gmc_dashboard.fit.run_words import choosing_text
from gmc_dashboard.shared import context, link_state
from gmc_dashboard.shared.components import escape
from gmc_dashboard.shared.units import minus

PARAMETER = "with"
MOST = 5
LONGEST_LABEL = 34


def chosen(run: Run) -> list[Run]:
    """The runs to show beside it, those that exist and share held-out ratings."""
    found = []
    for identity in link_state.recall(PARAMETER, run.id).split(","):
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
    """By id, the settings that tell them apart; ``short`` for the end of a line."""
    told = telling_settings([run, *others]) if others else {}
    if not short:
        return told
    cut: dict[str, str] = {}
    for identity, text in told.items():
        if len(text) > LONGEST_LABEL:
            text = f"{text[: LONGEST_LABEL - 1].rstrip(', ')}…"
        cut[identity] = f"{text} ({identity[:4]})" if text in cut.values() else text
    return cut


def differences(run: Run, others: Sequence[Run]) -> None:
    """A line for each run beside it: its settings, its figure, and how it differs."""
    told = labels(run, others)
    for other in others:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"**{escape(told[other.id])}**: {_outcome(run, other)}", width="stretch")
            st.page_link(
                "pages/fit.py",
                label="Open",
                icon=":material/open_in_new:",
                query_params=context.link_params(run=other.id),
            )


def _outcome(run: Run, other: Run) -> str:
    nmae = (other.summary or {}).get("nmae")
    if other.state == "queued":
        return "waiting for the worker."
    if other.state == "running" and other.selection is not None and other.choosing:
        return choosing_text(other.selection)
    if other.state == "running":
        return f"iteration {other.iteration} of {other.iterations} …"
    if other.state != "finished" or nmae is None:
        return f"{other.state}. {escape(other.message)}"
    found = difference(context.store(), other, run)
    if found is None:
        return f"NMAE {nmae:.4f}."
    return f"NMAE {nmae:.4f}, {difference_words(found)}"


def difference_words(found: PairedDifference) -> str:
    """How another run's NMAE differs from this one's, with the 95 % interval."""
    way = "lower" if found.mean < 0 else "higher"
    text = (
        f"{abs(found.mean):.4f} {way} than this run; the difference lies in "
        f"[{minus(f'{found.low:.4f}')}, {minus(f'{found.high:.4f}')}] with 95 % confidence"
    )
    return f"{text}." if found.resolved else f"{text}, so these ratings do not settle it."
