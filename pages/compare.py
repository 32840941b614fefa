"""Compare: several methods on the same splits, with paired differences and their cost.

A comparison is a run of the store, and is found by its id in the URL.
"""

from __future__ import annotations

import streamlit as st

from gmc_core.runs.comparisons import comparison_named
from gmc_core.runs.store import StoreError
from gmc_dashboard.compare import form as compare_form
from gmc_dashboard.compare import view as compare_view
from gmc_dashboard.shared import context
from gmc_dashboard.shared.components import escape, guard, page_header


def show(identity: str) -> None:
    """The comparison with this id, or the way on if there is none."""
    try:
        run = comparison_named(context.store(), identity)
    except StoreError as error:
        st.error(escape(str(error)), icon=":material/error:")
        st.button("New comparison", key="new_compare", type="primary", on_click=compare_view.leave)
        compare_form.earlier()
        return
    assert run.comparison is not None  # comparison_named finds nothing else
    compare_view.show(run, run.comparison)


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
