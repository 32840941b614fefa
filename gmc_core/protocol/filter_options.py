"""The thresholds of the paper's filter, which :mod:`gmc_core.protocol.filters` applies."""

from __future__ import annotations

from dataclasses import dataclass

from gmc_core.base.kinds import Whole
from gmc_core.base.setting import Setting, check, setting


@dataclass(frozen=True)
class Filter:
    """Which users and items to keep; the defaults are the paper's.

    Parameters
    ----------
    min_user_ratings : users with fewer ratings go out; 0 or more.
    min_item_ratings : items with fewer ratings, by the users that are left, go
        out; 0 or more.
    max_items : keep at most this many items, the most rated; ``None`` for all.
        It bounds the N × N covariance matrix and is no part of the paper.

    Raises
    ------
    ConfigError
        If a threshold is not a whole number or is out of its range.
    """

    min_user_ratings: int = setting(
        20,
        Setting(
            kind=Whole(0),
            noun="The threshold min_user_ratings",
            flag="--min-user-ratings",
            about="leave out users with fewer ratings",
            usual_words="20, the paper's",
        ),
    )
    min_item_ratings: int = setting(
        2,
        Setting(
            kind=Whole(0),
            noun="The threshold min_item_ratings",
            flag="--min-item-ratings",
            about="then leave out items with fewer ratings",
            usual_words="2, the paper's",
        ),
    )
    max_items: int | None = setting(
        None,
        Setting(
            kind=Whole(1),
            noun="The threshold max_items",
            flag="--max-items",
            about="keep only the N most rated items; memory grows with N squared",
        ),
    )

    def __post_init__(self) -> None:
        check(self)
