"""The data that the claims are checked on, and the experiments that they share."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.affordable import Wanted, check_expected
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.duration import estimate_seconds
from gmc_core.fitting.preparing import Prepared, describe
from gmc_core.fitting.shape import Expected
from gmc_core.gaussian.settings import PAPER_EPSILON, PAPER_ITERATIONS, FitSettings, paper_epsilon
from gmc_core.paper.published import PublishedTable
from gmc_core.paper.reproduction import table_for
from gmc_core.protocol.splits import default_counts

# Held-out ratings that resolve a paired difference of the margin on whole-star scales.
WANTED_RATINGS = 2_500
FEWEST_SPLITS, MOST_SPLITS = 3, 10
# A printed figure allows no paired difference, so its interval needs more ratings: with so many it
# is ± .003 (weak) or ± .0035 (strong).
TABLE_WEAK_RATINGS, TABLE_STRONG_RATINGS = 80_000, 60_000

COMPONENTS = (2, 3)
BLOCKS = (16, 32)
NOISES = (0.1, 0.5)  # in stars², scaled like ε
METHODS = ("paper", "mf", "knn", "bias")


@dataclass(frozen=True, eq=False)
class Subject:
    """Filtered data, and how many splits to measure on.

    base : data, reading and filter; its protocol and fit do not count.
    data : :func:`gmc_core.fitting.preparing.describe` of them.
    user_counts, item_counts : (M,), (N,) ratings of each user and item.
    splits : of each setting that is compared with the paper's, 2 or more.
    table_weak, table_strong : splits of the paper's own settings, more where it has
        printed a figure for these data.
    """

    base: ExperimentConfig
    data: dict[str, Any]
    user_counts: npt.NDArray[np.int64]
    item_counts: npt.NDArray[np.int64]
    splits: int
    table_weak: int
    table_strong: int

    @classmethod
    def of(cls, base: ExperimentConfig, prepared: Prepared, splits: int | None = None) -> Subject:
        """The subject of loaded data.

        splits : default as many as give ``WANTED_RATINGS`` held-out ratings, 3 to 10.

        Raises
        ------
        ConfigError
            If the data are an explicit pair of files, ``splits`` is below 2, or all
            ratings are equal.
        """
        if prepared.pair is not None:
            raise ConfigError(
                "The claims are checked on splits of one data set; give it with --data instead "
                "of a training and a test file."
            )
        if splits is not None and not 2 <= splits <= 100:
            raise ConfigError(f"The claims are checked on 2..100 splits, not {splits}.")
        ratings = prepared.ratings
        ratings.scale.nmae_divisor  # noqa: B018  (raises where there is nothing to predict)
        weak, strong = default_counts(int((ratings.user_counts > 1).sum()))
        data = describe(prepared)
        count = min(_splits_for(WANTED_RATINGS, weak), MOST_SPLITS) if splits is None else splits
        printed = table_for(data) is not None
        return cls(
            base=replace(base, protocol="weak", weak_users=None, strong_users=None, seed=0),
            data=data,
            user_counts=ratings.user_counts,
            item_counts=ratings.item_counts,
            splits=count,
            table_weak=max(count, _splits_for(TABLE_WEAK_RATINGS, weak)) if printed else count,
            table_strong=_splits_for(TABLE_STRONG_RATINGS, strong) if printed else count,
        )

    @property
    def scale(self) -> RatingScale:
        """Of the ratings."""
        return RatingScale(*self.data["scale"])

    @property
    def table(self) -> PublishedTable | None:
        """The paper's table for these data, if it has one."""
        return table_for(self.data)

    def is_of(self, data: Mapping[str, Any]) -> bool:
        """Whether a description is of these very data."""
        return bool(data["sha256"] == self.data["sha256"])

    @property
    def epsilon(self) -> float:
        """The paper's ε on this scale."""
        return paper_epsilon(self.scale)

    def experiments(self) -> dict[str, ExperimentConfig]:
        """All experiments by name; every claim names those that it needs.

        float32 except where the claim is about the numbers' precision: the objective's
        rise, and a covariance that is barely positive definite.
        """
        plain = FitSettings(dtype="float32")

        def config(repetitions: int = self.splits, **fit: Any) -> ExperimentConfig:
            return replace(self.base, repetitions=repetitions, fit=replace(plain, **fit))

        found = {
            "paper": config(self.table_weak),
            "objective": config(1, dtype="float64", objective=True),
            "singular": config(1, dtype="float64", epsilon=0.0),
            "longer": config(iterations=2 * PAPER_ITERATIONS),
        }
        for name, value in self.epsilons().items():
            found[name] = config(epsilon=value)
        for name, value in self.initials().items():
            found[name] = config(initial=value)
        found["columns"] = config(signals="columns")
        for side in BLOCKS:
            found[f"blocks {side}"] = config(signals="blocks", block=(side, side))
        for name, value in self.noises().items():
            found[name] = config(noise=value)
        for count in COMPONENTS:
            found[f"mixture {count}"] = config(model="mixture", components=count)
        if self.table is not None:
            found["strong"] = replace(config(self.table_strong), protocol="strong")
        return found

    def epsilons(self) -> dict[str, float]:
        """Half and double the paper's ε."""
        return {
            f"epsilon {value:g}": value
            for value in (float(f"{self.epsilon * factor:.3g}") for factor in (0.5, 2.0))
        }

    def initials(self) -> dict[str, float]:
        """The paper's initial value less and plus a star, or a quarter of other ranges."""
        scale = self.scale
        usual = FitSettings().resolved(scale).initial
        assert usual is not None
        step = 1.0 if scale.is_stars else (scale.high - scale.low) / 4
        return {f"initial {value:g}": value for value in (usual - step, usual + step)}

    def noises(self) -> dict[str, float]:
        """Noise variances to be neglected or not."""
        unit = self.epsilon / PAPER_EPSILON
        return {f"noise {value * unit:g}": value * unit for value in NOISES}

    def seconds(self) -> float:
        """Estimated computing time of all experiments, without the comparison.

        Blocks are not counted: their covariances are small.
        """
        total = 0.0
        for config in self.experiments().values():
            fit = config.fit
            if fit.signals == "blocks":
                continue
            sizes, dimension = self.user_counts, len(self.item_counts)
            if fit.signals == "columns":
                sizes, dimension = self.item_counts, len(self.user_counts)
            expected = estimate_seconds(fit, sizes, dimension, repetitions=config.repetitions)
            total += expected.computing - expected.starting
        return total

    def check_affordable(
        self,
        however_long: bool,
        memory_limit: int | None = None,
        anyway: str = "",
        *,
        only: Collection[str] | None = None,
    ) -> None:
        """Refuse experiments of which one would cost too much on this machine.

        only : the names of those that are to be computed; None for all.

        Raises
        ------
        TooLongError, ResourceError
            See :func:`gmc_core.fitting.affordable.check_affordable`, whose arguments these are.
        """
        ratings = Expected(self.user_counts, self.item_counts)
        for name, config in self.experiments().items():
            if only is not None and name not in only:
                continue
            wanted = Wanted(config.fit, f"The experiment “{name}”", config.repetitions, fixed=True)
            check_expected(
                [wanted], ratings.trained(config), self.scale,
                memory_limit=memory_limit, however_long=however_long, anyway=anyway,
            )  # fmt: skip


def _splits_for(wanted: int, each: int) -> int:
    """How many splits hold out ``wanted`` ratings, ``each`` of them so many; 3 or more."""
    return max(math.ceil(wanted / max(each, 1)), FEWEST_SPLITS)
