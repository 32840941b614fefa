"""What a searchable box of titles offers: all of them, or of a large catalogue a part.

The browser gets all options of a box each time that its page is drawn, and every one is text.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import streamlit as st

# Measured in a browser: 10,000 make 0.3 MB a box, and the page is painted as soon as with 5,000.
MOST = 10_000


def holding(words: str, items: Sequence[int], titles: Sequence[str]) -> list[int]:
    """Those of the items whose title holds each of the words, in any case of letters."""
    wanted = words.casefold().split()
    return [item for item in items if all(word in titles[item].casefold() for word in wanted)]


def offered(
    items: Sequence[int], titles: Sequence[str], key: str, chosen: Collection[int | None] = ()
) -> list[int]:
    """The options of a box, drawn next; of more than ``MOST`` titles, a search narrows them.

    Parameters
    ----------
    items : positions of all titles that could be offered, most rated first.
    titles : (N,) by position.
    key : of the box.
    chosen : what the box holds already, which stays an option.
    """
    if len(items) <= MOST:
        return list(items)
    words = st.text_input(
        f"Words of a title, of {len(items):,}",
        key=f"{key}_words",
        placeholder="for example: star wars",
        help=f"The box with it offers the {MOST:,} most rated titles, or those with the words.",
    )
    found = holding(words, items, titles) if words else items
    if not found:
        st.info("No title holds these words. Try fewer or shorter ones.")
    shown = list(found[:MOST])
    there = set(shown)
    return [item for item in chosen if item is not None and item not in there] + shown
