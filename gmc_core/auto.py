"""Auto: choose model, ε, noise, prior and L on ratings held out inside the training set.

What is chosen on cannot be the test set, because :func:`choose` is never given one:
it takes training ratings, holds a tenth of them out, and tries settings on the rest,
one change at a time from good defaults, until nothing helps or the time is used up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gmc_core.cost import estimate, gemm_rate
from gmc_core.draws import bounded, word_stream
from gmc_core.errors import ConfigError, DataError, NumericalError
from gmc_core.filters import Filter, apply_filter
from gmc_core.fit import Fit
from gmc_core.linalg.threads import Team
from gmc_core.metrics import PairedDifference, normalized_errors, paired_difference
from gmc_core.models import settings_for
from gmc_core.ordinal import MAX_VALUES
from gmc_core.ratings import Ratings
from gmc_core.settings import FitSettings, Precision, variance_unit
from gmc_core.splits import Split, inner_split

SHARE = 0.1
SECONDS = 60.0
# A trial should not take more of the time than this; beyond it the catalogue is cut.
_TRIAL_SHARE = 0.08
_LEAST_ITEMS = 200
# Solves and sparse sums run at about this share of the machine's product rate.
_EFFICIENCY = 0.3

# What is tried from the best settings so far, by model: a factor, or a value to take.
_FACTORS: dict[str, tuple[tuple[str, tuple[float, ...]], ...]] = {
    "paper": (("epsilon", (1 / 3, 3.0)),),
    "exact": (("noise", (0.6, 1.6)), ("prior_strength", (0.4, 2.5))),
    "ordinal": (("noise", (0.6, 1.6)), ("prior_strength", (0.4, 2.5))),
}
_GENRES = 0.1


@dataclass(frozen=True)
class Trial:
    """One try. nmae : best over the iterations, reached at ``iterations``."""

    label: str
    settings: FitSettings
    nmae: float
    iterations: int
    seconds: float


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why.

    settings : complete, for a fit to all training ratings.
    trials : in the order tried. lead : NMAE of the chosen less the paper's recipe, on
        the same held-out ratings. notes : what a reader must know, a sentence each.
    """

    settings: FitSettings
    trials: tuple[Trial, ...]
    lead: PairedDifference
    held_out: int
    seconds: float
    notes: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Why, in a sentence or two."""
        best = min(self.trials, key=lambda trial: trial.nmae)
        against = (
            f"{self.lead.mean:+.4f} NMAE against the paper's recipe "
            f"[{self.lead.low:+.4f}, {self.lead.high:+.4f}]"
        )
        return (
            f"{best.label} with L = {best.iterations} had the smallest NMAE ({best.nmae:.4f}; "
            f"{against}) of {len(self.trials)} settings on {self.held_out:,} ratings held out "
            "inside the training set."
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "settings": self.settings.as_dict(),
            "reason": self.reason,
            "held_out": self.held_out,
            "seconds": self.seconds,
            "notes": list(self.notes),
            "trials": [
                {
                    "label": trial.label,
                    "nmae": trial.nmae,
                    "iterations": trial.iterations,
                    "seconds": trial.seconds,
                    "settings": trial.settings.as_dict(),
                }
                for trial in self.trials
            ],
        }


def hold_out(train: Ratings, seed: int, share: float = SHARE) -> Split:
    """Hold a share of the training ratings out; every user keeps at least one.

    Raises
    ------
    DataError
        If that leaves nothing to hold out.
    """
    wanted = round(share * len(train))
    keys = bounded(word_stream(seed), np.full(len(train), 2**62))
    # The rating of each user with the largest key stays.
    order = np.lexsort((keys, train.rows))
    last = train.indptr[1:][train.user_counts > 0] - 1
    free = np.ones(len(train), dtype=bool)
    free[order[last]] = False
    candidates = np.flatnonzero(free)
    held = np.sort(candidates[np.argsort(keys[candidates], kind="stable")[:wanted]])
    if len(held) < 2:
        raise DataError(
            "There are too few ratings to hold some out and choose settings on them. Give the "
            "settings yourself."
        )
    return inner_split(train, held, seed)


def choose(
    train: Ratings,
    *,
    seconds: float = SECONDS,
    seed: int = 0,
    dtype: Precision = "float32",
    attributes: bool = True,
    team: Team | None = None,
    on_trial: Callable[[Trial], object] | None = None,
) -> Choice:
    """Settings for a fit to ``train``, chosen within about ``seconds``.

    Parameters
    ----------
    train : the ratings to learn from; test ratings have no business here.
    seconds : wall time to use; the trial that crosses it is finished.
    seed : of the held-out ratings. dtype : of the trials and of the chosen settings.
    attributes : whether what is known of users besides their ratings may be used.
    on_trial : told of every trial.

    Raises
    ------
    ConfigError
        If ``seconds`` is not above 0.
    DataError
        If the ratings are too few.
    Cancelled
        If the team was told to stop.
    """
    if not seconds > 0:
        raise ConfigError(f"The time to choose in must be above 0 seconds, not {seconds}.")
    began = time.perf_counter()
    team = team or Team()
    reduced, notes = _affordable(train, seconds, dtype)
    split = hold_out(reduced, seed)
    trials: list[Trial] = []
    errors: list[np.ndarray] = []

    def attempt(label: str, settings: FitSettings) -> Trial | None:
        if any(trial.settings == settings for trial in trials):
            return None
        start = time.perf_counter()
        best: tuple[float, int, np.ndarray] | None = None
        fit = Fit(split, settings, team=team)
        try:
            for record in fit.records():
                assert record.nmae is not None
                if best is None or record.nmae < best[0]:
                    found = normalized_errors(fit.predictions, split.test_values, train.scale)
                    best = (record.nmae, record.iteration, found)
        except NumericalError as error:
            notes.append(f"{label}: {error}")
        if best is None:
            return None
        trial = Trial(label, settings, best[0], best[1], time.perf_counter() - start)
        trials.append(trial)
        errors.append(best[2])
        if on_trial is not None:
            on_trial(trial)
        return trial

    for name in _models(train):
        start = replace(settings_for(name), dtype=dtype).resolved(train.scale, train.n_items)
        attempt(name, replace(start, attributes=attributes) if start.is_exact else start)
    if not trials:
        raise NumericalError("No model could be fitted to these ratings. Look at the data.")
    improved = True
    while improved and time.perf_counter() - began < seconds:
        improved = False
        best = min(trials, key=lambda trial: trial.nmae)
        for label, settings in _neighbours(best.settings, train):
            if time.perf_counter() - began > seconds:
                notes.append("The time was used up before all neighbours were tried.")
                break
            trial = attempt(f"{best.settings.model}, {label}", settings)
            if trial is not None and trial.nmae < best.nmae:
                best, improved = trial, True
    order = min(range(len(trials)), key=lambda k: trials[k].nmae)
    chosen = trials[order]
    return Choice(
        settings=replace(chosen.settings, iterations=chosen.iterations),
        trials=tuple(trials),
        lead=paired_difference(errors[order], errors[0]),
        held_out=split.n_test,
        seconds=time.perf_counter() - began,
        notes=tuple(notes),
    )


def _models(train: Ratings) -> tuple[str, ...]:
    """The paper's recipe first; ordered ratings where there are few enough values."""
    distinct = len(np.unique(train.values))
    return ("paper", "ordinal" if 3 <= distinct <= MAX_VALUES else "exact")


def _neighbours(settings: FitSettings, train: Ratings) -> Iterator[tuple[str, FitSettings]]:
    """Settings that differ in one respect."""
    for name, factors in _FACTORS[settings.model]:
        for factor in factors:
            value = float(f"{getattr(settings, name) * factor:.3g}")
            changed = {**settings.as_dict(), name: value}
            yield f"{name.replace('_', ' ')} {value:g}", FitSettings.from_dict(changed)
    if settings.is_exact and any(train.item_info.genres):
        assert settings.prior_target is not None
        offset, genres, raters, own = settings.prior_target
        other = 0.0 if genres else _GENRES * variance_unit(train.scale)
        target = (offset, other, raters, own)
        yield f"genre variance {other:g}", replace(settings, prior_target=target)


def _affordable(train: Ratings, seconds: float, dtype: Precision) -> tuple[Ratings, list[str]]:
    """The most rated items, as many as let some trials fit into the time."""
    settings = replace(settings_for(_models(train)[-1]), dtype=dtype)
    rate = gemm_rate(dtype) * _EFFICIENCY

    def trial_seconds(ratings: Ratings) -> float:
        cost = estimate(ratings.user_counts, ratings.n_items, dtype, exact=settings.is_exact)
        return settings.iterations * cost.flops / rate

    reduced, limit = train, train.n_items
    while trial_seconds(reduced) > _TRIAL_SHARE * seconds and limit > _LEAST_ITEMS:
        limit = max(_LEAST_ITEMS, limit * 3 // 4)
        only = Filter(min_user_ratings=0, min_item_ratings=0, max_items=limit)
        reduced, _ = apply_filter(train, only)
    if reduced is train:
        return train, []
    return reduced, [
        f"To fit the time, settings were tried on the {reduced.n_items:,} most rated of "
        f"{train.n_items:,} items, which hold {len(reduced) / len(train):.0%} of the ratings."
    ]
