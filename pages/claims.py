"""Claims: what the paper says, measured on the selected data, with verdicts by rule.

The experiments are runs like any others: they go on when the page is left, and are found
again by what they are.
"""

from __future__ import annotations

from explorer import claims_view, context, sources
from explorer.components import empty_state, escape, guard, page_header
from gmc_core.claims import Subject
from gmc_core.errors import DataError
from gmc_core.experiment import Prepared


def subject() -> Subject | None:
    """The selected data as the claims see them; the way on where they cannot be read."""
    try:
        ratings, report = context.filtered()
    except DataError as error:
        empty_state(escape(str(error)), "pages/data.py", "Choose the data")
        return None
    config = context.current_config(protocol="weak", seed=0)
    return Subject.of(config, Prepared(ratings, None, report))


page_header(
    "Claims",
    "What the paper says, measured on these data: each claim with its figure, an interval and the "
    "run behind it. Verdicts are computed by a rule, not written.",
)
with guard():
    found = subject()
    if found is not None:
        claims_view.show(found, sources.title(context.current().data))
