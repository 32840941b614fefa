"""What Back and Forward of the browser go through: one entry for each visible step.

    history.install()              # in a page's header
    if history.returned(): ...     # Back or Forward led here: only the address counts

Streamlit adds an entry to the browser's history whenever a page writes into its address, and
one more for the bare address of a page that is reached by the menu; it adds none where a
visitor turns to another view. So a script in the page decides instead: another page is a new
entry, and so is a visitor's choice among ``STEPS``. All else that is written into the address
belongs to the entry that one is at.
"""

from __future__ import annotations

import json
from urllib.parse import parse_qs

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

# Parameters whose change by a visitor shows something else than before. What only adds to a
# picture (a rating, a picked run, an iteration) is no step.
STEPS = (
    *("run", "sweep", "comparison", "data"),
    *("view", "titles_from", "title", "who", "user", "tab", "chapter", "tour"),
)
# Buttons that lead to another page; what they write belongs to that page's address.
LEAVING = ("leave_to_fit", "leave_to_recommend", "leave_to_tour")
_AGAIN, _ONCE_MORE = "gmc_dashboard.returned.again", "gmc_dashboard.returned.once_more"

_SCRIPT = """<script>
(() => {
    if (window.gmcHistory) return
    window.gmcHistory = true
    const steps = %s, leavingButtons = %s
    const push = history.pushState.bind(history), replace = history.replaceState.bind(history)
    let acted = false    // the visitor did something that has not led to an entry yet
    let leaving = false  // on the way to another page
    let backing = false  // on the way to the tour's step before, which is no step onward
    let place = history.state?.place ?? 0  // of the entry that is shown
    const shows = url => JSON.stringify(steps.map(name => url.searchParams.getAll(name)))
    const picture = () => location.pathname + shows(new URL(location.href))
    let shown = picture()
    const write = (state, unused, address) => {
        const here = new URL(location.href), next = new URL(address ?? here, here)
        const other = next.pathname !== here.pathname
        if (leaving && !other) return  // the entry that is being left stays as it was
        const turned = other || (acted && shows(next) !== shows(here))
        const step = turned && !backing
        if (turned) acted = leaving = backing = false
        if (step) place += 1
        ;(step ? push : replace)({...state, gmc: true, place}, '', next.href)
        shown = picture()
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
    // The tour's buttons answer to keys, too.
    const turns = {PageDown: 'next', PageUp: 'back'}
    const keyLeads = event => event.type === 'keydown' && event.key in turns
        && document.querySelector(`[class*="st-key-leave_to_tour_${turns[event.key]}"]`) !== null
    const stepsBack = event => event.type === 'click'
        ? event.target.closest?.('[class*="tour_back"] button')
        : event.type === 'keydown' && event.key === 'PageUp'
            && document.querySelector('[class*="tour_back"] button:enabled')
    const act = event => {
        backing = Boolean(stepsBack(event))
        acted = event.isTrusted
        leaving = event.type === 'click' && !event.ctrlKey && !event.metaKey && !event.shiftKey
            && leads(event.target) || keyLeads(event)
    }
    for (const kind of ['pointerdown', 'keydown', 'click']) addEventListener(kind, act, true)
    // What a first visit wrote before this script was there made entries of the same picture,
    // which have no mark. Going to them at once would disturb the page that is being drawn; so
    // they stay, and the way back skips them.
    replace({...history.state, gmc: true, place}, '', location.href)
    addEventListener('popstate', event => {
        acted = leaving = backing = false
        const onward = event.state?.place > place, same = picture() === shown
        place = event.state?.place ?? place
        shown = picture()
        if (!event.state?.gmc) history.back()
        // Two entries of one picture, after the tour's own Back, are one step.
        else if (same) onward ? history.forward() : history.back()
    }, true)
})()
</script>"""


def install() -> None:
    """Let the script decide; once in a browser's tab, however often it is asked to."""
    script = _SCRIPT % (json.dumps(STEPS), json.dumps(LEAVING))
    st.html(script, unsafe_allow_javascript=True)


def restore() -> None:
    """After Back and Forward, give a page the whole of its address; in a page's header.

    Streamlit takes from the address what names a control of the page that is being left, though
    this page has one of the same name, as Fit and Sensitivity have. The page then starts again.
    """
    st.session_state[_ONCE_MORE] = st.session_state.pop(_AGAIN, False)
    context = get_script_run_ctx(suppress_warning=True)
    if context is None or not context.is_history_navigation:
        return
    whole = parse_qs(context.query_string, keep_blank_values=True)
    lost = {name: values for name, values in whole.items() if name not in st.query_params}
    if lost:
        for name, values in lost.items():
            st.query_params[name] = values
        st.session_state[_AGAIN] = True
        st.rerun()


def returned() -> bool:
    """Whether Back or Forward of the browser led here, in this run of the page."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is None or context.fragment_ids_this_run:
        return False
    return context.is_history_navigation or bool(st.session_state.get(_ONCE_MORE))
