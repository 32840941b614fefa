"""What a reader of the figures must know of the times of ratings, where a fit reads them."""

from __future__ import annotations

from gmc_core.data.rating_times import are_days, known_mask
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.splits import Split

DAYS = (
    "The times are days without hours, so all that a user rated on one day counts as rated in one "
    "moment, and shares the session noise in full."
)


def notes_on_times(split: Split, settings: FitSettings) -> tuple[str, ...]:
    """A sentence for each thing that session noise makes of these times and is not plain."""
    if not settings.reads_times:
        return ()
    notes = []
    if are_days(split.train.times):
        notes.append(DAYS)
    known = 0 if split.test_times is None else int(known_mask(split.test_times).sum())
    if known < split.n_test:
        whose = (
            "None of the ratings to be predicted has a time: they share"
            if not known
            else f"{split.n_test - known:,} of {split.n_test:,} ratings to be predicted have no "
            "time: these share"
        )
        notes.append(
            f"{whose} the session noise with none, which then only changes what is learned from "
            "the others."
        )
    return tuple(notes)
