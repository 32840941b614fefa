"""Auto: choose model, ε, noise, prior and L on ratings held out inside the training set.

What is chosen on cannot be the test set, because :func:`choose` is never given one:
it takes training ratings, holds some of every user out (:mod:`gmc_core.protocol.validation`), and
tries settings on the rest, one change at a time from good defaults, until nothing helps
or the time is used up. The smallest of many errors is an optimistic estimate, since it was
selected for being small; so the reported gain is measured on a second set of held-out
ratings, which took no part in the choice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError, GmcError, NumericalError, ResourceError
from gmc_core.base.signs import signed
from gmc_core.base.times import duration
from gmc_core.data.ratings import Ratings
from gmc_core.fitting.affordable import TooLongError, Wanted, check_affordable, cost_and_time
from gmc_core.fitting.duration import estimate_seconds
from gmc_core.fitting.fit import Fit
from gmc_core.fitting.shape import Shape
from gmc_core.gaussian.averaged_settings import BEST_RANK
from gmc_core.gaussian.declaration import DENSE, EITHER
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.ordinal import MAX_VALUES
from gmc_core.gaussian.session_settings import WITH_SESSIONS
from gmc_core.gaussian.settings import USUAL_SESSION_NOISE, FitSettings, Precision, variance_unit
from gmc_core.protocol.filters import Filter, apply_filter
from gmc_core.protocol.metrics import PairedDifference, normalized_errors, paired_difference
from gmc_core.protocol.validation import HeldOutSet, hold_out

Floats = npt.NDArray[np.float64]

SECONDS = 60.0
# The share of the time that one trial may take; if the first would take more, settings are tried on
# the most rated items only.
_TRIAL_SHARE = 0.08
_LEAST_ITEMS = 200
# The share that one trial of the two-sided model may take.
_TWO_SIDED_SHARE = 0.25

# What is tried from the best settings so far, by model: a factor, or a value to take.
_FACTORS: dict[str, tuple[tuple[str, tuple[float, ...]], ...]] = {
    "paper": (("epsilon", (1 / 3, 3.0)),),
    "exact": (("noise", (0.6, 1.6)), ("prior_strength", (0.4, 2.5))),
    "ordinal": (("noise", (0.6, 1.6)), ("prior_strength", (0.4, 2.5))),
    "factor": (("noise", (0.6, 1.6)), ("prior_strength", (0.4, 2.5))),
    "two-sided": (("noise", (0.6, 1.6)), ("prior_strength", (0.4, 2.5))),
}
_OF_SESSIONS = (("session_noise", (0.5, 2.0)), ("session_window", (1 / 3, 3.0)))
_GENRES = 0.1


@dataclass(frozen=True)
class Trial:
    """One try. nmae : on the ratings that choose, every user weighing alike; best over the
    iterations, reached at ``iterations``."""

    label: str
    settings: FitSettings
    nmae: float
    iterations: int
    seconds: float


@dataclass(frozen=True)
class Report:
    """What the choice is worth on held-out ratings that played no part in it.

    ratings : how many. nmae, map_em : NMAE of the chosen settings and of the paper's MAP-EM
        at its best L, every user weighing alike.
    lead : ``nmae`` less ``map_em``; its n counts users.
    """

    ratings: int
    nmae: float
    map_em: float
    lead: PairedDifference

    @classmethod
    def of(cls, chosen: Floats, map_em: Floats, held: HeldOutSet) -> Report | None:
        """From the errors of all held-out ratings; None with fewer than two users."""
        if held.users < 2:
            return None
        own, other = held.by_user(chosen), held.by_user(map_em)
        lead = paired_difference(own, other)
        return cls(len(held.ratings), float(own.mean()), float(other.mean()), lead)

    def as_dict(self) -> dict[str, Any]:
        """For JSON, where the NMAE of MAP-EM has the name ``recipe`` since the first version."""
        content = asdict(self)
        content["recipe"] = content.pop("map_em")
        return content


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why.

    settings : complete, for a fit to all training ratings.
    trials : in the order tried. held_out : ratings that chose. users : whose they are.
    report : the gain, on other ratings; None where too few users have a rating to spare, or
        MAP-EM broke down.
    notes : what a reader must know, a sentence each.
    """

    settings: FitSettings
    trials: tuple[Trial, ...]
    held_out: int
    users: int
    report: Report | None
    seconds: float
    notes: tuple[str, ...]

    @property
    def lead(self) -> PairedDifference | None:
        """NMAE of the chosen less the paper's MAP-EM, on ratings that did not choose."""
        return None if self.report is None else self.report.lead

    @property
    def reason(self) -> str:
        """Why, in a few sentences."""
        best = min(self.trials, key=lambda trial: trial.nmae)
        return (
            f"{best.label} with L = {best.iterations} had the smallest NMAE ({best.nmae:.4f}) of "
            f"{len(self.trials)} settings on {self.held_out:,} ratings of {self.users:,} users "
            f"held out inside the training set, every user weighing alike. {self._gain(best)}"
        )

    def _gain(self, best: Trial) -> str:
        if best is self.trials[0] and best.settings.model == "paper":
            return "These are the paper's settings with the best L."
        if self.report is None:
            return "What it gains on the paper's MAP-EM on other ratings could not be measured."
        lead = self.report.lead
        return (
            f"On {self.report.ratings:,} others, which chose nothing, it has "
            f"{self.report.nmae:.4f}, {signed(lead.mean, 4)} [{signed(lead.low, 4)}, "
            f"{signed(lead.high, 4)}] against "
            f"the paper's MAP-EM (95 % over {lead.n:,} users)."
            + (
                " It also reads when ratings were given, those to be predicted included; MAP-EM "
                "sees ratings alone."
                if best.settings.reads_times
                else ""
            )
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "settings": self.settings.as_dict(),
            "reason": self.reason,
            "held_out": self.held_out,
            "users": self.users,
            "report": self.report and self.report.as_dict(),
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


def choose(
    train: Ratings,
    *,
    seconds: float = SECONDS,
    seed: int = 0,
    dtype: Precision = "float32",
    attributes: bool = True,
    times: bool = False,
    team: ThreadPool | None = None,
    on_trial: Callable[[Trial], object] | None = None,
    however_long: bool = False,
    memory_limit: int | None = None,
) -> Choice:
    """Settings for a fit to ``train``, chosen within about ``seconds``.

    Parameters
    ----------
    train : the ratings to learn from; test ratings must not be among them.
    seconds : wall time to use; the trial that crosses it is finished.
    seed : of the held-out ratings. dtype : of the trials and of the chosen settings.
    attributes : whether what is known of users besides their ratings may be used.
    times : whether predictions may use when ratings were given, those to be predicted included,
        by session noise. Such figures are of another task than those from ratings alone.
    on_trial : told of every trial.
    however_long, memory_limit : of :func:`gmc_core.fitting.affordable.check_affordable`. Models of
        which a fit to all of ``train`` would be refused are not tried.

    Raises
    ------
    ConfigError
        If ``seconds`` is not above 0, or ``times`` are to be used and none is known.
    TooLongError, ResourceError
        If a fit of every model would be refused.
    DataError
        If the ratings are too few.
    Cancelled
        If the pool was told to stop.
    """
    if not seconds > 0:
        raise ConfigError(f"The time to choose in must be above 0 seconds, not {seconds}.")
    if times and not train.has_times:
        raise ConfigError(
            "It is not known when these ratings were given. Choose without times, or use data that "
            "have them."
        )
    began = time.perf_counter()
    team = team or ThreadPool()
    first, refused = _not_refused(train, dtype, attributes, however_long, memory_limit)
    reduced, notes = _affordable(train, seconds, dtype)
    notes += refused
    split, (choosing, reporting) = hold_out(reduced, seed, sets=2)
    trials: list[Trial] = []
    errors: list[Floats] = []

    def attempt(label: str, settings: FitSettings) -> Trial | None:
        if any(trial.settings == settings for trial in trials):
            return None
        start = time.perf_counter()
        best: tuple[float, int, Floats] | None = None
        fit = Fit(split, settings, team=team)
        try:
            for record in fit.records():
                found = normalized_errors(fit.predictions, split.test_values, train.scale)
                nmae = float(choosing.by_user(found).mean())
                # The mean with low rank is what the last iteration ends with, whichever that is.
                if best is None or nmae < best[0] or settings.average_rank:
                    best = (nmae, record.iteration, found)
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

    for start in first:
        if start.model == "two-sided":
            dear = _trial_seconds(start, reduced)
            if dear > _TWO_SIDED_SHARE * seconds:
                notes.append(
                    f"The two-sided model was not tried: one trial would take about "
                    f"{duration(dear)} of the {duration(seconds)} to choose in. Give more time to "
                    "have it tried."
                )
                continue
        attempt(start.model, start)
    if not trials:
        raise NumericalError("No model could be fitted to these ratings. Look at the data.")
    able = [trial for trial in trials if trial.settings.model in WITH_SESSIONS]
    if times and able:
        best = min(able, key=lambda trial: trial.nmae)
        shared = USUAL_SESSION_NOISE * variance_unit(train.scale)
        label = f"{best.settings.model}, session noise {shared:g}"
        attempt(label, replace(best.settings, session_noise=shared))
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
    paper_first = trials[0].settings.model == "paper"
    return Choice(
        settings=replace(chosen.settings, iterations=chosen.iterations),
        trials=tuple(trials),
        held_out=len(choosing.ratings),
        users=choosing.users,
        report=Report.of(errors[order], errors[0], reporting) if paper_first else None,
        seconds=time.perf_counter() - began,
        notes=tuple(notes),
    )


def first_settings(train: Ratings, dtype: Precision = "float32") -> tuple[FitSettings, ...]:
    """What is tried first: the paper's MAP-EM, low rank, exact EM, on ordered ratings where there
    are few enough values, and two sides."""
    dense = _dense_settings(train, dtype)
    first = [settings_for("paper"), settings_for("factor"), dense, settings_for("two-sided")]
    return tuple(
        replace(one, dtype=dtype, ordered=dense.is_ordered if one.model in EITHER else None)
        for one in first
    )


def _not_refused(
    train: Ratings,
    dtype: Precision,
    attributes: bool,
    however_long: bool,
    memory_limit: int | None,
) -> tuple[list[FitSettings], list[str]]:
    """Complete settings to begin with, without those whose fit to all ratings would be refused; and
    a sentence about each of these."""
    kept: list[FitSettings] = []
    refusals: list[tuple[float, GmcError]] = []
    for given in first_settings(train, dtype):
        start = given.resolved(train.scale, train.n_items)
        start = replace(start, attributes=attributes) if start.is_exact else start
        wanted = Wanted(start, f"A fit of the model {start.model}")
        shape = Shape(train.user_counts, train.n_items)
        cost, estimate = cost_and_time(start, shape)
        try:
            check_affordable(
                wanted, cost, estimate, memory_limit=memory_limit, however_long=however_long
            )
            kept.append(start)
        except (TooLongError, ResourceError) as error:
            refusals.append((estimate.computing, error))
    if not kept:
        raise min(refusals, key=lambda refusal: refusal[0])[1]
    return kept, [f"Not tried: {error}" for _, error in refusals]


def _dense_settings(train: Ratings, dtype: Precision) -> FitSettings:
    grades = 3 <= len(np.unique(train.values)) <= MAX_VALUES
    return replace(settings_for("ordinal" if grades else "exact"), dtype=dtype)


def _trial_seconds(settings: FitSettings, ratings: Ratings) -> float:
    """settings : complete, see :meth:`FitSettings.resolved`."""
    return estimate_seconds(settings, ratings.user_counts, ratings.n_items).repetition


def _neighbours(settings: FitSettings, train: Ratings) -> Iterator[tuple[str, FitSettings]]:
    """Settings that differ in one respect."""
    if settings.model in DENSE:
        rank = 0 if settings.average_rank else min(BEST_RANK, train.n_items)
        label = f"averaged with rank {rank}" if rank else "not averaged"
        yield label, replace(settings, average_rank=rank)
    for name, factors in _FACTORS[settings.model]:
        for factor in factors:
            value: Any = float(f"{getattr(settings, name) * factor:.3g}")
            yield f"{name.replace('_', ' ')} {value:g}", replace(settings, **{name: value})
    if settings.reads_times:
        for name, factors in _OF_SESSIONS:
            for factor in factors:
                value = float(f"{getattr(settings, name) * factor:.3g}")
                yield f"{name.replace('_', ' ')} {value:g}", replace(settings, **{name: value})
    if settings.is_exact and any(train.item_info.genres):
        assert settings.prior_target is not None
        offset, genres, implicit, own = settings.prior_target
        other = 0.0 if genres else _GENRES * variance_unit(train.scale)
        target = (offset, other, implicit, own)
        yield f"genre variance {other:g}", replace(settings, prior_target=target)


def _affordable(train: Ratings, seconds: float, dtype: Precision) -> tuple[Ratings, list[str]]:
    """The most rated items, as many as let some trials fit into the time."""
    settings = _dense_settings(train, dtype)

    def trial_seconds(ratings: Ratings) -> float:
        return _trial_seconds(settings.resolved(ratings.scale, ratings.n_items), ratings)

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
