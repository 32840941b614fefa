"""One person's ratings: from the data or the visitor, edited, and as text in a URL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, unquote

import numpy as np
import numpy.typing as npt

from gmc_core.data.rating_times import seconds_of
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.protocol.splits import Split
from gmc_core.runs.store import HeldOut

Positions = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
RatingsByItem = dict[int, float]

MAX_IN_URL = 60  # ratings; a longer list would not fit the address bar


def to_text(model: GaussianModel, ratings: Mapping[int, float]) -> str:
    """Ratings as ``id:rating,id:rating`` with original ids; "" if there are too many."""
    if len(ratings) > MAX_IN_URL:
        return ""
    ids = model.items.ids
    return ",".join(f"{quote(str(ids[m]), safe='')}:{value:g}" for m, value in ratings.items())


def from_text(model: GaussianModel, text: str) -> tuple[RatingsByItem, int]:
    """Read :func:`to_text`; what this model cannot use is left out and counted.

    Returns
    -------
    Ratings by item position, and how many entries were left out.
    """
    ratings: RatingsByItem = {}
    lost = 0
    for part in filter(None, text.split(",")):
        name, colon, number = part.rpartition(":")
        item = int(model.items.find([unquote(name)])[0]) if colon else -1
        try:
            value = float(number)
        except ValueError:
            item, value = -1, float("nan")
        if item < 0 or not model.scale.low <= value <= model.scale.high:
            lost += 1
        else:
            ratings[item] = value
    return ratings, lost


def changes_to_text(
    model: GaussianModel, user: object, base: Mapping[int, float], ratings: Mapping[int, float]
) -> str:
    """What-if changes to a user's ratings ``base``, for a URL; "" if none or too many.

    ``user;id:rating,id:-``: new ratings, and a minus sign for those that are left out.
    """
    changed = {m: value for m, value in ratings.items() if base.get(m) != value}
    gone = [m for m in base if m not in ratings]
    if not 0 < len(changed) + len(gone) <= MAX_IN_URL:
        return ""
    ids = model.items.ids
    parts = [to_text(model, changed)] if changed else []
    parts += [f"{quote(str(ids[m]), safe='')}:-" for m in gone]
    return f"{quote(str(user), safe='')};{','.join(parts)}"


def changed_by_text(
    model: GaussianModel, user: object, base: Mapping[int, float], text: str
) -> RatingsByItem:
    """A user's ratings with the changes of :func:`changes_to_text`, if they are this user's."""
    owner, _, rest = text.partition(";")
    if unquote(owner) != str(user):
        return dict(base)
    parts = rest.split(",")
    left_out = [unquote(part[:-2]) for part in parts if part.endswith(":-")]
    gone = {int(m) for m in model.items.find(left_out)} if left_out else set()
    changed, _ = from_text(model, ",".join(part for part in parts if not part.endswith(":-")))
    return {m: value for m, value in {**base, **changed}.items() if m not in gone}


def rating_options(scale: RatingScale) -> list[float] | None:
    """The values a person can choose, None for a continuous or very fine scale."""
    levels = scale.levels
    return None if levels is None or len(levels) > 21 else [float(level) for level in levels]


def has_stars(scale: RatingScale) -> bool:
    """Whether five whole stars are the scale."""
    return (scale.low, scale.high, scale.step) == (1.0, 5.0, 1.0)


MOST_QUICK = 11  # values beside each other
FEW_QUICK = 5  # of a scale with more


def fits_five_stars(scale: RatingScale) -> bool:
    """Whether 1, 2, 3, 4 and 5 are ratings and 5 is the best, as on half-star scales."""
    levels = scale.levels
    return levels is not None and scale.high == 5 and {1.0, 2.0, 3.0, 4.0} <= set(levels.tolist())


def quick_values(scale: RatingScale) -> list[float]:
    """The ratings that one click can give: five stars, all values of a short scale, or five
    values spread evenly over a long or continuous one."""
    levels = scale.levels
    if fits_five_stars(scale):
        return [1.0, 2.0, 3.0, 4.0, 5.0]
    if levels is not None and len(levels) <= MOST_QUICK:
        return [float(level) for level in levels]
    spread = scale.project(np.linspace(scale.low, scale.high, FEW_QUICK))
    return [float(value) for value in spread]


def offers_all(scale: RatingScale) -> bool:
    """Whether :func:`quick_values` are all ratings that there are."""
    return scale.levels is not None and len(quick_values(scale)) == len(scale.levels)


@dataclass(frozen=True, eq=False)
class People:
    """The users that one can look at, with what was hidden from the fit.

    ratings : what is known of each user, on the model's items.
    test_users, test_items, test_values : held-out ratings, by positions.
    novel : whether these users were absent from training (strong generalization).
    hidden_known : whether it is known which ratings were held out; false for a run that
        stopped before it had written them down.
    """

    ratings: Ratings
    test_users: Positions
    test_items: Positions
    test_values: Floats
    novel: bool = False
    hidden_known: bool = True

    @classmethod
    def trained(
        cls, model: GaussianModel, held_out: HeldOut | None = None, *, hidden_known: bool = True
    ) -> People | None:
        """The training users; None in a model without ratings.

        held_out : of the repetition that the model is from; ratings of users or items
            that the model does not know are left out.
        """
        ratings = model.ratings
        if ratings is None:
            return None
        if held_out is None:
            none = np.zeros(0, int)
            return cls(ratings, none, none, np.zeros(0), hidden_known=hidden_known)
        users, items = ratings.users.find(held_out.user_ids), model.items.find(held_out.item_ids)
        known = (users >= 0) & (items >= 0)
        return cls(ratings, users[known], items[known], held_out.actual[known])

    @classmethod
    def unseen(cls, model: GaussianModel, split: Split | None) -> People | None:
        """The novel users of a strong split; None where there are none.

        A split of other data than the model's counts as none.
        """
        if split is None or split.query is None or split.train.sha256 != model.data_sha256:
            return None
        return cls(split.query, split.test_users, split.test_items, split.test_values, novel=True)

    @cached_property
    def hidden_counts(self) -> Positions:
        """(M,) held-out ratings of each user."""
        return np.bincount(self.test_users, minlength=self.ratings.n_users)

    def matching(self, low: int, high: int, *, with_hidden: bool = False) -> Positions:
        """Users with ``low`` to ``high`` ratings, most ratings first."""
        counts = self.ratings.user_counts
        keep = (counts >= low) & (counts <= high)
        if with_hidden:
            keep &= self.hidden_counts > 0
        users = np.flatnonzero(keep)
        return users[np.argsort(-counts[users], kind="stable")]

    def find(self, text: str) -> int:
        """The user with this id.

        Raises
        ------
        UnknownIdError
            If there is none, with a sentence that says what ids look like.
        """
        return self.ratings.users.index(text.strip())

    def of(self, user: int) -> RatingsByItem:
        """What is known of a user, by item position."""
        items, values = self.ratings.of_user(user)
        return dict(zip(items.tolist(), values.tolist(), strict=True))

    def times(self, user: int, ratings: Mapping[int, float]) -> dict[int, float]:
        """When a user's ratings were given, in seconds, by item; without those of which the
        rating in ``ratings`` is not the one that was given then."""
        if self.ratings.times is None:
            return {}
        items, values = self.ratings.of_user(user)
        own = self.ratings.times[self.ratings.indptr[user] : self.ratings.indptr[user + 1]]
        entries = zip(items.tolist(), values.tolist(), seconds_of(own).tolist(), strict=True)
        return {item: when for item, value, when in entries if ratings.get(item) == value}

    def hidden(self, user: int) -> tuple[Positions, Floats]:
        """Item positions and values of a user's held-out ratings."""
        own = self.test_users == user
        return self.test_items[own], self.test_values[own]
