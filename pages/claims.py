"""Claims: what the paper says, measured on the selected data, with verdicts by rule.

The experiments are runs like any others: they go on when the page is left, and are found
again by what they are.
"""

from __future__ import annotations

from gmc_core.fitting.preparing import Prepared
from gmc_core.paper.claims import Subject
from gmc_dashboard.claims import view as claims_view
from gmc_dashboard.shared import context, sources
from gmc_dashboard.shared.chosen_data import filtered_or_way_on
from gmc_dashboard.shared.components import guard, page_header


def subject() -> Subject | None:
    """The selected data as the claims see them; the way on where they cannot be read."""
    found = filtered_or_way_on()
    if found is None:
        return None
    ratings, report = found
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
