"""Compare: several methods on the same splits, with paired differences and their cost.

A comparison runs in a process of its own and is found by its id in the URL, like a run.
"""

from __future__ import annotations

import streamlit as st

from gmc_core.runs.store import StoreError
from gmc_core.runs.store.comparisons import comparison_named
from gmc_dashboard.compare import form as compare_form
from gmc_dashboard.compare import view as compare_view
from gmc_dashboard.shared.components import escape, guard, page_header


def show(identity: str) -> None:
    """The comparison with this id, or the way on if there is none."""
    try:
        folder = comparison_named(identity)
    except StoreError as error:
        st.error(escape(str(error)), icon=":material/error:")
        st.button("New comparison", key="new_compare", type="primary", on_click=compare_view.leave)
        compare_form.earlier()
        return
    compare_view.show(folder)


page_header(
    "Compare",
    "Which method predicts best, by how much, and at what cost? All methods see the same splits, "
    "so that what makes a rating hard cancels in their differences.",
)
with guard():
    identity = st.query_params.get("comparison")
    if identity:
        show(identity)
    else:
        compare_form.form()
        compare_form.earlier()
