"""What a fit is given, made ready: signals, noise, groups of users, what is to be predicted.

It never changes while the iterations go on, and is the same wherever they are computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError
from gmc_core.data.rating_times import seconds_of
from gmc_core.fitting.checks import check_range, check_state
from gmc_core.fitting.cost import Cost, check_memory, estimate_fit
from gmc_core.fitting.records import IterationRecord
from gmc_core.fitting.users_side import UsersSide
from gmc_core.gaussian.attributes import UserGroups
from gmc_core.gaussian.iterate import EmState
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.mixture_start import user_groups
from gmc_core.gaussian.noise import Noise, SessionNoise
from gmc_core.gaussian.noise_files import load_noise
from gmc_core.gaussian.ordinal import OrdinalScale
from gmc_core.gaussian.priors import genre_matrix
from gmc_core.gaussian.settings import FitSettings
from gmc_core.gaussian.signals import Layout, Signals
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.protocol.metrics import Scores, score
from gmc_core.protocol.splits import Split


@dataclass(frozen=True, eq=False)
class FitInputs:
    """The inputs of a fit.

    split : what to learn from and what to predict. settings : complete.
    team : the threads, and the way to cancel.
    cost : estimated. groups : of users, by their attributes.
    signals, query_signals : of the training, and what is known of the test users; the same where
        both are one.
    session : what ratings given at about the same time share. noise : Σ_w as given.
    ordinal : the cuts of ordered ratings, None for numbers.
    pairs : (signal, coordinate) of each held-out rating. pair_times : (n_test,) when these were
        given, in seconds, NaN where unknown; None unless the model reads them.
    clusters : where the Gaussians of a mixture begin; None for one Gaussian.
    users : of a two-sided model.
    """

    split: Split
    settings: FitSettings
    team: ThreadPool
    cost: Cost
    groups: UserGroups
    signals: Signals
    query_signals: Signals
    session: SessionNoise | None
    noise: Noise
    ordinal: OrdinalScale | None
    pairs: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
    pair_times: npt.NDArray[np.float64] | None
    clusters: npt.NDArray[np.int64] | None
    users: UsersSide

    @classmethod
    def of(
        cls,
        split: Split,
        settings: FitSettings | None = None,
        team: ThreadPool | None = None,
        memory_limit: int | None = None,
    ) -> FitInputs:
        """Of a split; the arguments and errors are those of :class:`gmc_core.fitting.fit.Fit`."""
        train, settings = split.train, settings or FitSettings()
        if not len(train):
            raise ConfigError("There are no training ratings, so there is nothing to learn from.")
        check_range(settings, train.scale)
        settings = settings.resolved(train.scale, train.n_items)
        team = team or ThreadPool()
        layout = Layout(settings.signals, train.n_users, train.n_items, settings.block)
        if split.query is not None and layout.kind != "rows":
            raise ConfigError(
                "Strong generalization predicts users who were absent from training. With "
                f"{layout.kind} as signals a user is part of the model's coordinates, so a new "
                "user has none. Use rows as signals, or weak generalization."
            )
        signals = Signals.of(train, layout)
        groups = UserGroups.of(train.user_info if settings.uses_attributes else {})
        cost = estimate_fit(
            settings, signals.sizes, layout.dimension, groups=len(groups), threads=team.size
        )
        check_memory(cost, memory_limit, low_rank=settings.model != "factor")
        signals = groups.on(signals, train)
        given = settings.noise
        assert given is not None
        session = _session_noise(settings, split)
        noise = Noise.of(load_noise(given, train, layout), layout.dimension, session)
        ordinal = OrdinalScale.of(train.values) if settings.is_ordered else None
        users = UsersSide(settings, train, signals, noise)
        query = signals
        if split.query is not None:
            rows = replace(layout, users=split.query.n_users)
            query = groups.on(Signals.of(split.query, rows), split.query)
        pairs = query.layout.locate(split.test_users, split.test_items)
        pair_times: npt.NDArray[np.float64] | None = None
        if session is not None:
            same = query is signals
            signals = signals.at_times(train)
            query = signals if same else query.at_times(split.known)
            if split.test_times is not None:
                pair_times = seconds_of(split.test_times)
        clusters: npt.NDArray[np.int64] | None = None
        if (settings.components or 1) > 1:  # a mixture of one Gaussian is MAP-EM itself
            kinds = genre_matrix(train) if layout.kind == "rows" else None
            clusters = user_groups(signals, settings.components or 1, kinds)
        return cls(
            split, settings, team, cost, groups, signals, query, session, noise, ordinal, pairs,
            pair_times, clusters, users,
        )  # fmt: skip

    def check_state(self, state: EmState) -> None:
        """Refuse a state of another fit.

        Raises
        ------
        StateError
        """
        check_state(
            state, self.signals, self.settings,
            groups=len(self.groups),
            components=0 if self.clusters is None else self.settings.components or 1,
            users=self.users,
        )  # fmt: skip

    def scores(self, predictions: npt.NDArray[np.float64]) -> Scores | None:
        """Of predictions (n_test,) of the held-out ratings; None without hold-out."""
        split = self.split
        if not split.n_test:
            return None
        unseen = split.unseen_items | split.unseen_users
        return score(predictions, split.test_values, split.train.scale, unseen)


class OfInputs:
    """What a fit says of its inputs, wherever its iterations are computed.

    Attributes
    ----------
    inputs : what it was given, made ready.
    """

    inputs: FitInputs

    @property
    def split(self) -> Split:
        """What it learns from and predicts."""
        return self.inputs.split

    @property
    def settings(self) -> FitSettings:
        """Complete."""
        return self.inputs.settings

    @property
    def team(self) -> ThreadPool:
        """The threads, and the way to cancel."""
        return self.inputs.team

    @property
    def cost(self) -> Cost:
        """Estimated, of one iteration; and the memory."""
        return self.inputs.cost

    @property
    def groups(self) -> UserGroups:
        """Of users, by their attributes."""
        return self.inputs.groups

    @property
    def signals(self) -> Signals:
        """Of the training."""
        return self.inputs.signals

    @property
    def query_signals(self) -> Signals:
        """What is known of the test users."""
        return self.inputs.query_signals

    @property
    def ordinal(self) -> OrdinalScale | None:
        """The cuts of ordered ratings."""
        return self.inputs.ordinal

    @property
    def pairs(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(signal, coordinate) of each held-out rating."""
        return self.inputs.pairs

    @property
    def pair_times(self) -> npt.NDArray[np.float64] | None:
        """(n_test,) when these were given, in seconds; None unless the model reads them."""
        return self.inputs.pair_times


class AnyFit(Protocol):
    """A fit as an experiment goes through it: :class:`gmc_core.fitting.fit.Fit`, or one whose
    iterations are computed elsewhere."""

    inputs: FitInputs
    predictions: npt.NDArray[np.float64]
    history: list[IterationRecord]

    @property
    def split(self) -> Split:
        """See :class:`OfInputs`, as for the next ones."""

    @property
    def settings(self) -> FitSettings:
        """Complete."""

    @property
    def team(self) -> ThreadPool:
        """The threads."""

    @property
    def cost(self) -> Cost:
        """Estimated."""

    @property
    def groups(self) -> UserGroups:
        """Of users."""

    @property
    def signals(self) -> Signals:
        """Of the training."""

    @property
    def query_signals(self) -> Signals:
        """Of the test users."""

    @property
    def iteration(self) -> int:
        """Of the state that is here; 0 before the first."""

    def records(self) -> Iterator[IterationRecord]:
        """One record for each remaining iteration, as they end."""

    def scores(self) -> Scores | None:
        """Of the current predictions."""

    def model(self) -> GaussianModel:
        """The model of the state that is here."""


def _session_noise(settings: FitSettings, split: Split) -> SessionNoise | None:
    """What ratings given at about the same time share, from the settings.

    Raises
    ------
    ConfigError
        If the settings ask for it and no time of a rating is known.
    """
    if settings.reads_times and not split.train.has_times:
        raise ConfigError(
            "Session noise needs to know when ratings were given, and these have no times. "
            "Use data with a column of times, or leave it out."
        )
    return SessionNoise.of(settings.session_noise, settings.session_window)
