"""A fit as a notebook shows it: its curve and its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gmc_core.base import html
from gmc_core.fitting.records import IterationRecord


def fit_html(
    name: str, records: Sequence[IterationRecord], settings: Mapping[str, Any], sizes: str
) -> str:
    """HTML of a fit.

    name : of the data. records : one of each iteration so far; NMAE is drawn where ratings are
        held out, else the log-likelihood. settings : as filled in. sizes : of the training ratings.
    """
    held_out = [record.nmae for record in records if record.nmae is not None]
    if held_out:
        drawn, label = held_out, "NMAE by iteration"
    else:
        drawn, label = [record.log_likelihood for record in records], "log-likelihood by iteration"
    state = "no iteration yet"
    if records:
        last = records[-1]
        state = f"iteration {last.iteration}"
        if last.nmae is not None and last.nmae_se is not None:
            state += f": NMAE {last.nmae:.4f} ± {last.nmae_se:.4f}"
    given = [(key, value) for key, value in settings.items() if value is not None]
    return (
        html.caption(f"Fit of {name} ({sizes}), {state}")
        + html.curve(drawn, label)
        + html.table(("setting", "value"), given)
    )
