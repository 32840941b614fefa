"""What the cost of a fit depends on, known or expected: of a split, of ratings, of mere counts.

A fit that takes too long is refused before the slow part, so its shape is found as early as can
be: from what is remembered of the data, or as soon as the ratings are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.data.ratings import Ratings
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.gaussian.attributes import UserGroups
from gmc_core.gaussian.settings import FitSettings
from gmc_core.gaussian.signals import Layout, Signals
from gmc_core.protocol.filter_options import Filter
from gmc_core.protocol.filters import kept_counts
from gmc_core.protocol.held_out_options import USUAL_LAST, USUAL_SHARE
from gmc_core.protocol.splits import Split, default_counts

Sizes = npt.NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class Shape:
    """The shape of training signals.

    sizes : (M,) the N_i. dimension : N.
    query_sizes : of the novel users under strong generalization, None otherwise.
    groups : of users, by their attributes.
    """

    sizes: Sizes
    dimension: int
    query_sizes: Sizes | None = None
    groups: int = 0

    @classmethod
    def of(cls, split: Split, settings: FitSettings) -> Shape:
        """Of a split."""
        train = split.train
        layout = Layout(settings.signals, train.n_users, train.n_items, settings.block)
        groups = len(UserGroups.of(train.user_info))
        query = None if split.query is None else split.query.user_counts
        return cls(Signals.of(train, layout).sizes, layout.dimension, query, groups)


@dataclass(frozen=True, eq=False)
class Expected:
    """What ratings will be like after filter and split, before either is made.

    user_counts, item_counts : ratings of each user and item. novel : of the novel users under
        strong generalization, None otherwise.
    """

    user_counts: Sizes
    item_counts: Sizes
    novel: Sizes | None = None

    @classmethod
    def of_ratings(cls, ratings: Ratings, config: ExperimentConfig) -> Expected:
        """Of ratings as they were read, by counting. Which users will be drawn is not known: those
        that are taken here are spread evenly over the light and the heavy ones."""
        wanted = Filter(0, 0) if config.protocol == "pair" else config.filter
        users, items = kept_counts(ratings, wanted)
        return cls(users, items).trained(config)

    @classmethod
    def of_description(cls, data: Mapping[str, Any], config: ExperimentConfig) -> Expected:
        """Of filtered data of which numbers alone are remembered, as
        :func:`gmc_core.fitting.preparing.describe` says them.

        As if all users had rated equally many items: no other ratings cost less.
        """
        users, items, ratings = (int(data[name]) for name in ("users", "items", "ratings"))
        each = _even(ratings, users), _even(ratings, items)
        drawn = data.get("users_to_draw")
        return cls(*each).trained(config, drawn if isinstance(drawn, int) else users)

    def trained(self, config: ExperimentConfig, eligible: int | None = None) -> Expected:
        """Of filtered ratings the part that trains.

        eligible : users with two ratings or more, where they cannot be counted here.
        """
        users, items, novel = self.user_counts, self.item_counts, None
        total = max(int(users.sum()), 1)
        if config.protocol in ("weak", "strong"):
            able = np.sort(users[users >= 2])
            weak, strong = default_counts(len(able) if eligible is None else eligible)
            weak = weak if config.weak_users is None else config.weak_users
            strong = strong if config.strong_users is None else config.strong_users
            users = _spread(able, weak)
            if config.protocol == "weak":
                users = users - 1
            else:
                novel = _spread(able, strong) - 1
        elif config.protocol == "random":
            share = USUAL_SHARE if config.held_out is None else config.held_out
            if isinstance(config.folds, int):
                share = 1 / max(config.folds, 2)
            users = np.rint(users * (1 - share)).astype(np.int64)
        elif config.protocol == "latest":
            last = USUAL_LAST if config.last is None else config.last
            least = users * (1 - config.held_out) if config.held_out is not None else users - last
            users = np.maximum(np.rint(least), 0).astype(np.int64)
        return Expected(users, np.rint(items * (users.sum() / total)).astype(np.int64), novel)

    def shape(self, settings: FitSettings) -> Shape | None:
        """For signals of a kind; None for blocks, whose systems are small."""
        if settings.signals == "blocks":
            return None
        if settings.signals == "columns":
            return Shape(self.item_counts, len(self.user_counts))
        return Shape(self.user_counts, len(self.item_counts), self.novel)


def _spread(ordered: Sizes, count: int) -> Sizes:
    """``count`` of these numbers (all, if there are fewer), spread evenly over their order."""
    count = max(min(count, len(ordered)), 0)
    return ordered[((np.arange(count) + 0.5) * (len(ordered) / max(count, 1))).astype(np.int64)]


def _even(total: int, parts: int) -> Sizes:
    """(parts,) whole numbers that differ by one at most and add up to ``total``."""
    small, more = divmod(max(total, 0), max(parts, 1))
    return np.full(parts, small, np.int64) + (np.arange(parts) < more)
