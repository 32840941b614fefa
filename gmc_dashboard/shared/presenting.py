"""A page for the projector: large type, few words, and links that open just what is seen.

    if presenting(): ...     # in a page, to leave out side texts
    begin()                  # in a page's header: keeps the choice, sets the type
    bar()                    # beside the title: the link, and the way in and out
    enlarge(figure)          # no text of a figure smaller than LEAST

``present=1`` in the address turns it on and ``controls=0`` hides what can be moved; both stay
while one goes from page to page, until the presentation is left.
"""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import streamlit as st

from gmc_dashboard.shared import link_state

PRESENT, CONTROLS = "present", "controls"
LEAST = 18  # px, of any text that is shown
TALLEST = 440  # px, of a figure: it shares 720 with the title and what moves it
MOST_NAMED = 5  # lines in a legend; of more it would take the picture's place
LINE = 27  # px, of a name in a legend, where two share the first line
ROOM_RIGHT = 20  # px; a margin beyond that holds the names of lines

# Captions are .875 of the root's size, so 21 px make 18. A narrow window cannot hold that.
_TYPE = """<style>
@media (min-width: 900px) { html { font-size: 21px !important } }
[data-testid="stHeader"], [data-testid="stCaptionContainer"], [data-testid="stDownloadButton"],
label [data-testid="stTooltipIcon"], [data-testid="stWidgetLabel"] [data-testid="stTooltipIcon"],
[data-testid="stSkipToContent"],
[data-testid="stColumn"]:has([class*="st-key-chosen_run_"]), .st-key-titles_order, .st-key-order,
.js-plotly-plot .modebar-container { display: none !important }
[data-testid="stMainBlockContainer"] { padding: .6rem 1.6rem !important }
[data-testid="stMain"] [data-testid="stVerticalBlock"] { gap: .5rem }
[data-testid="stMain"] h1 { font-size: 1.4rem; padding: 0 }
[data-testid="stMain"] :is(h2, h3) { font-size: 1.1rem; padding: 0 0 .3rem; line-height: 1.2 }
[data-testid="stMain"] .katex { font-size: 1.25em }
[data-testid="stMain"] .katex-display > .katex { font-size: 1em }
[data-testid="stMain"] :is(p, li) code { font-size: 18px !important }
[data-testid="stMain"] [data-testid="stMetric"] { padding: .3rem .6rem }
[data-testid="stMain"] [data-testid="stButton"] button { padding-inline: .5rem }
[data-testid="stMain"] :is([data-testid="stBadge"], .stBadge, [data-testid="stThumbValue"],
    [data-testid="stSliderThumbValue"], [data-testid="stSliderTickBar"], small) {
    font-size: 18px !important }
[data-testid="stMain"] :is(.stMarkdownBadge, .stMarkdownBadge *) { font-size: 18px !important }
.st-key-picture_room { height: max(20rem, calc(100vh - 12rem)) !important }
</style>"""
# What can be moved, but for the ways on in a tour and out of the presentation.
_KINDS = (
    *("stSlider", "stSelectbox", "stMultiSelect", "stButtonGroup", "stRadio", "stCheckbox"),
    *("stNumberInput", "stTextInput", "stPageLink", "stFileUploader", "stButton", "stPopover"),
)
_KEPT = ", ".join(f'[class*="st-key-{key}"]' for key in ("tour", "leave_to_tour", "present_"))
_HIDDEN = ", ".join(
    f'[data-testid="stMain"] [data-testid="stElementContainer"]:not({_KEPT})'
    f':has([data-testid="{kind}"])'
    for kind in _KINDS
)
_NO_CONTROLS = f"""<style>{_HIDDEN}, [data-testid="stMain"] [data-testid="stExpander"]
{{ display: none !important }}</style>"""

_LINKS = """<div class="gmc-links"></div><script>{
    const place = [...document.querySelectorAll('.gmc-links')].at(-1)
    const address = changes => {
        const url = new URL(location.href)
        for (const [name, value] of Object.entries(changes)) url.searchParams.set(name, value)
        return url.href
    }
    const kinds = [
        ['Exactly this', {}],
        ['For the projector', {present: 1}],
        ['For the projector, without controls', {present: 1, controls: 0}],
    ]
    place.replaceChildren()
    const seen = []
    for (const [words, changes] of kinds) {
        const link = address(changes)
        if (seen.includes(link)) continue
        seen.push(link)
        const label = document.createElement('label'), field = document.createElement('input')
        const copy = document.createElement('button')
        label.append(words, field)
        field.readOnly = true
        field.value = link
        field.setAttribute('aria-label', words)
        field.onfocus = () => field.select()
        copy.textContent = 'Copy'
        copy.setAttribute('aria-label', `Copy: ${words}`)
        copy.onclick = async () => {
            try { await navigator.clipboard.writeText(link); copy.textContent = 'Copied' }
            catch { field.focus() }  // the address is selected, to be copied by hand
        }
        const row = document.createElement('div')
        row.append(label, copy)
        place.append(row)
    }
}</script><style>
.gmc-links { width: min(34rem, 80vw) }
.gmc-links > div { display: flex; gap: .5rem; align-items: end; margin-bottom: .6rem }
.gmc-links label { flex: 1 }
.gmc-links input { width: 100%; font: inherit; color: inherit; background: transparent;
    border: 1px solid color-mix(in srgb, currentColor 40%, transparent); border-radius: .4rem;
    padding: .3rem .5rem }
.gmc-links button { font: inherit; color: inherit; background: transparent; cursor: pointer;
    border: 1px solid color-mix(in srgb, currentColor 40%, transparent); border-radius: .4rem;
    padding: .3rem .8rem }
</style>"""


def presenting() -> bool:
    """Whether the page is shown on a projector, by the link or since it was turned on."""
    return link_state.recall(PRESENT) == "1"


def begin() -> None:
    """Keep the choice in the address of this page too, and set the type."""
    on = presenting()
    hidden = on and link_state.recall(CONTROLS) == "0"
    link_state.keep(PRESENT, "1" if on else "")
    link_state.keep(CONTROLS, "0" if hidden else "")
    if on:
        st.html(_TYPE)
    if hidden:
        st.html(_NO_CONTROLS)


def bar() -> None:
    """The full address to copy, and the way into the presentation and out of it."""
    on = presenting()
    with st.popover(
        "Link", icon=":material/link:", key="present_link", help="Link to exactly this"
    ):
        st.html(_LINKS, unsafe_allow_javascript=True)
    st.button(
        "Leave" if on else "Present",
        key="present_leave" if on else "present_start",
        icon=":material/close_fullscreen:" if on else ":material/present_to_all:",
        help="Back to all controls and texts." if on else "Larger, with few words: a projector.",
        on_click=_turn,
        args=(not on,),
    )


def _turn(on: bool) -> None:
    link_state.keep(PRESENT, "1" if on else "")
    link_state.keep(CONTROLS, "")


def enlarge(figure: go.Figure) -> go.Figure:
    """Make every text of a figure at least ``LEAST`` px large, in place, and return it.

    Names of lines beside a picture get the room that they then need; a legend below stands above,
    and a long one goes.
    """
    smallest = min(figure.layout.font.size or LEAST, LEAST)
    layout: dict[str, Any] = figure.layout.to_plotly_json()
    _enlarge(layout)
    named = [trace for trace in figure.data if trace.showlegend is not False and trace.name]
    if len(named) > MOST_NAMED:
        layout["showlegend"] = False
    layout["font"] = {**layout.get("font", {}), "size": LEAST}
    height, legend = layout.get("height"), layout.get("legend") or {}
    if layout.get("showlegend") and legend.get("y", 0) < 0:
        # Below the figure the larger words of its axis are in the way.
        legend.update(y=1.02, yanchor="bottom")
        height = height and height + LINE * max(len(named) - 2, 0)
    if height:
        layout["height"] = min(height, TALLEST)
    right = (layout.get("margin") or {}).get("r", 0)
    if right > ROOM_RIGHT:
        layout["margin"]["r"] = round(right * LEAST / smallest)
    figure.update_layout(layout)
    for trace in figure.data:
        values = trace.to_plotly_json()
        _enlarge(values)
        trace.update({name: values[name] for name in ("textfont", "colorbar") if name in values})
    return figure


def _enlarge(values: Any) -> None:
    """Raise every font's size within nested dictionaries and lists."""
    if isinstance(values, dict):
        for name, value in values.items():
            if name.endswith("font") and isinstance(value, dict):
                size = value.get("size")
                value["size"] = max(size, LEAST) if isinstance(size, (int, float)) else LEAST
            elif name != "template":
                _enlarge(value)
    elif isinstance(values, (list, tuple)):
        for value in values:
            if isinstance(value, dict):
                _enlarge(value)
