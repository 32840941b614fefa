"""What Back and Forward of the browser go through: one entry for each visible step.

    history.install()              # in a page's header
    if history.returned(): ...     # Back or Forward led here: the address is the truth

Streamlit adds an entry to the browser's history whenever a page writes into its address, and
one more for the bare address of a page that is reached by the menu; it adds none where a
visitor turns to another view. So a script in the page decides instead: another page is a new
entry, and so is a visitor's choice among ``STEPS``. All else that is written into the address
belongs to the entry that one is at.
"""

from __future__ import annotations

import json

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

# Parameters whose change by a visitor shows something else than before. What only adds to a
# picture (a rating, a picked run, an iteration) is no step.
STEPS = (
    *("run", "sweep", "comparison", "data"),
    *("view", "titles_from", "title", "who", "user", "tab", "chapter"),
)
# Buttons that lead to another page; what they write belongs to that page's address.
LEAVING = ("leave_to_fit",)

_SCRIPT = """<script>
(() => {
    if (window.gmcHistory) return
    window.gmcHistory = true
    const steps = %s, leavingButtons = %s
    const push = history.pushState.bind(history), replace = history.replaceState.bind(history)
    let acted = false    // the visitor did something that has not led to an entry yet
    let leaving = false  // on the way to another page
    const shows = url => JSON.stringify(steps.map(name => url.searchParams.getAll(name)))
    const write = (state, unused, address) => {
        const here = new URL(location.href), next = new URL(address ?? here, here)
        const other = next.pathname !== here.pathname
        if (leaving && !other) return  // the entry that is being left stays as it was
        const step = other || (acted && shows(next) !== shows(here))
        if (step) acted = leaving = false
        ;(step ? push : replace)({...state, gmc: true}, '', next.href)
    }
    history.pushState = history.replaceState = write
    const leads = target => {
        const link = target.closest?.('a[href]')
        if (link) {
            const next = new URL(link.href, location.href)
            return next.origin === location.origin && next.pathname !== location.pathname
                && link.target !== '_blank'
        }
        return leavingButtons.some(key => target.closest?.(`[class*="st-key-${key}"] button`))
    }
    const act = event => {
        acted = event.isTrusted
        leaving = event.type === 'click' && !event.ctrlKey && !event.metaKey && !event.shiftKey
            && leads(event.target)
    }
    for (const kind of ['pointerdown', 'keydown', 'click']) addEventListener(kind, act, true)
    // What the first visit of a page wrote before this script was there becomes one entry.
    const unmarked = () => history.state !== null && !history.state.gmc
    let mended = unmarked() ? location.href : null
    addEventListener('popstate', event => {
        if (mended !== null) {
            event.stopImmediatePropagation()
            if (unmarked()) return history.back()
            replace({gmc: true}, '', mended)
            mended = null
        }
        acted = leaving = false
    }, true)
    if (mended !== null) history.back()
})()
</script>"""


def install() -> None:
    """Let the script decide; once in a browser's tab, however often it is asked to."""
    script = _SCRIPT % (json.dumps(STEPS), json.dumps(LEAVING))
    st.html(script, unsafe_allow_javascript=True)


def returned() -> bool:
    """Whether Back or Forward of the browser led here, in this run of the page."""
    return bool(getattr(get_script_run_ctx(suppress_warning=True), "is_history_navigation", False))
