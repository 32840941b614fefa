"""What a finished fit shows, and what to try next: rules over its records and baselines.

    found = findings(evidence)       # at most three sentences, the most important first
    steps = next_steps(evidence)     # other settings for the same split, a sweep

A rule looks at means over the repetitions. Its threshold is written beside it, and it keeps
silent where the held-out ratings do not settle what it would say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from gmc_core.base.errors import GmcError
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.records import IterationRecord
from gmc_core.gaussian.models import PRESETS, settings_for
from gmc_core.gaussian.settings import MAX_ITERATIONS, FitSettings, variance_unit
from gmc_core.protocol.baselines import BIAS as BIAS
from gmc_core.runs.store.run import Run
from gmc_core.runs.store.selection import Selection

# A rise or fall of NMAE counts from this share of its value on. On the embedded sample one
# more iteration near the lowest point moves it by .1 to .3 per cent.
NOTABLE = 0.003
# A rise since the lowest point counts from this NMAE on, and from this share of its standard
# error. Two iterations of a fit are measured on the same ratings: their paired difference has a
# fifth to a half of the standard error of either.
FLAT = 0.002
FLAT_SE = 0.25
# What differs by fewer standard errors may be chance.
SURE_SE = 2.0
# Σ counts as still moving while an iteration changes it by more, relative to its norm.
MOVING = 0.05
# Ratings of no more distinct values than this are ordered grades; of more, nearly continuous.
MOST_GRADES = 12
SWEEP_EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)  # in squared stars

Kind = Literal[
    "beats",
    "loses",
    "undecided",
    "rising",
    "flat",
    "falling",
    "moving",
    "few_users",
    "no_hold_out",
    "averaged",
]
StepKind = Literal["epsilon", "stop", "more", "ordinal", "auto", "sweep", "best"]


@dataclass(frozen=True)
class Finding:
    """One thing that the records show.

    kind : which rule speaks. sentence : for a person, plain text. good : whether it speaks for
    the fit (True), against it (False), or neither (None).
    """

    kind: Kind
    sentence: str
    good: bool | None = None


@dataclass(frozen=True)
class NextStep:
    """Something worth trying on the same split.

    kind : which rule proposes it. label : of a button. reason : one sentence.
    fit : the settings to fit; None for the others. selection : that auto is to choose them.
    epsilons : of a sweep.
    """

    kind: StepKind
    label: str
    reason: str
    fit: FitSettings | None = None
    selection: Selection | None = None
    epsilons: tuple[float, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """What the rules look at.

    fit : the settings, those that depend on the scale filled in. scale : of the ratings.
    nmae : mean over the repetitions after iteration 1, 2, …; empty without hold-out.
    nmae_se : standard error of the last. n : held-out ratings of all repetitions.
    likelihood_rose : whether the likelihood of the training ratings rose from ``best`` to the end.
    covariance_change : ‖Σ_t - Σ_{t-1}‖ / ‖Σ_{t-1}‖ of the last iteration, mean over the
        repetitions; None after fewer than two iterations.
    baselines : NMAE by name. users, items : of the filtered table, 0 if unknown.
    auto : whether the settings were chosen inside the training set.
    """

    fit: FitSettings
    scale: RatingScale
    nmae: tuple[float, ...]
    nmae_se: float | None
    n: int
    likelihood_rose: bool
    covariance_change: float | None
    baselines: Mapping[str, float]
    users: int
    items: int
    auto: bool = False

    @classmethod
    def of(
        cls, run: Run, curves: Sequence[Sequence[IterationRecord]], baselines: Mapping[str, float]
    ) -> Evidence | None:
        """That of a finished run; None where its data or records are not known."""
        data, summary = run.data or {}, run.summary or {}
        whole = [curve for curve in curves if curve]
        if run.state != "finished" or not data.get("scale") or not whole:
            return None
        scale = RatingScale(*data["scale"])
        try:
            fit = run.config.fit.resolved(scale, data.get("items"))
        except GmcError:  # an imported run may describe its data in any way
            return None
        length = min(len(curve) for curve in whole)
        rows = [
            [record.nmae for record in curve[:length] if record.nmae is not None] for curve in whole
        ]
        held_out = all(len(row) == length for row in rows)
        last = [curve[-1].covariance_change for curve in whole]
        changes = [value for value in last if value is not None]
        nmae = tuple(np.mean(rows, axis=0).tolist()) if held_out else ()
        best = int(np.argmin(nmae)) if nmae else 0
        return cls(
            fit=fit,
            scale=scale,
            nmae=nmae,
            nmae_se=summary.get("nmae_se"),
            n=int(summary.get("n") or 0),
            likelihood_rose=all(
                curve[-1].log_likelihood > curve[best].log_likelihood for curve in whole
            ),
            covariance_change=float(np.mean(changes)) if changes else None,
            baselines=baselines,
            users=int(data.get("users") or 0),
            items=int(data.get("items") or 0),
            auto=run.selection is not None,
        )

    @property
    def best(self) -> int:
        """The iteration with the lowest NMAE, counted from 1; 0 without hold-out."""
        return int(np.argmin(self.nmae)) + 1 if self.nmae else 0

    @property
    def rising(self) -> bool:
        """Whether NMAE has risen notably since its lowest point."""
        if not self.nmae:
            return False
        least = max(FLAT, NOTABLE * min(self.nmae), FLAT_SE * (self._se or 0.0))
        return self.nmae[-1] - min(self.nmae) > least

    @property
    def falling(self) -> bool:
        """Whether the last iteration still lowered NMAE notably, and one more might as well."""
        if self.fit.average_rank:
            return False  # what the last iteration did was to take the mean
        return len(self.nmae) > 1 and self.nmae[-1] < self.nmae[-2] * (1 - NOTABLE)

    @property
    def _se(self) -> float | None:
        """The standard error, None where it is not known."""
        return self.nmae_se if self.nmae_se is not None and np.isfinite(self.nmae_se) else None

    @property
    def gain(self) -> float | None:
        """NMAE of the bias baseline less the fit's; None if either is not known."""
        bias = self.baselines.get(BIAS)
        return None if bias is None or not self.nmae else bias - self.nmae[-1]


def findings(seen: Evidence) -> tuple[Finding, ...]:
    """At most three findings, the most important first."""
    found = [
        finding
        for rule in (
            _no_hold_out,
            _against_bias,
            _averaged,
            _rising,
            _falling,
            _few_users,
            _moving,
        )  # fmt: skip
        if (finding := rule(seen)) is not None
    ]
    return tuple(found[:3])


def _no_hold_out(seen: Evidence) -> Finding | None:
    if seen.nmae:
        return None
    return Finding("no_hold_out", "Nothing was held out, so no error can be measured.")


def _against_bias(seen: Evidence) -> Finding | None:
    gain = seen.gain
    if gain is None:
        return None
    se = seen._se or 0.0
    if abs(gain) < se:
        return Finding(
            "undecided",
            "It errs about as much as the user and item bias, two averages that know nothing of "
            "tastes: the two are less than one standard error apart, so these ratings do not "
            "settle which is better.",
        )
    unsure = (
        ", by less than two standard errors: likely, not certain"
        if abs(gain) < SURE_SE * se
        else ""
    )
    if gain > 0:
        worth = "" if unsure else ": what ratings say about each other, Σ, is worth something here"
        return Finding(
            "beats",
            "It predicts better than the averages of users and items (the user and item bias)"
            f"{unsure or worth}.",
            good=True,
        )
    return Finding(
        "loses",
        "The user and item bias, two averages that know nothing of tastes, predicts better"
        f"{unsure}.",
        good=False,
    )


def _averaged(seen: Evidence) -> Finding | None:
    if not seen.fit.average_rank or len(seen.nmae) < 2:
        return None
    before, last = seen.nmae[-2:]
    what = "lowered" if last < before else "did not lower"
    return Finding(
        "averaged",
        "The last iteration took the mean with a fit of low rank of the same ratings, whose errors "
        f"are others: that {what} the error ({before:.4f} before, {last:.4f} after).",
    )


def _rising(seen: Evidence) -> Finding | None:
    if not seen.rising:
        if not seen.nmae or seen.best == len(seen.nmae):
            return None
        return Finding(
            "flat",
            f"The error was lowest at iteration {seen.best} ({min(seen.nmae):.4f}) and flat since.",
        )
    why = (
        "MAP-EM learns from its own guesses of the missing ratings as if people had given them, "
        "so chance agreements of few ratings become taste."
        if seen.fit.model == "paper"
        else "Σ takes chance agreements of few ratings for taste."
    )
    meanwhile = (
        f", while the training ratings became ever more likely: over-fitting. {why}"
        if seen.likelihood_rose
        else "."
    )
    return Finding(
        "rising",
        f"The error was lowest at iteration {seen.best} ({min(seen.nmae):.4f}) and has risen "
        f"since{meanwhile}",
        good=False,
    )


def _falling(seen: Evidence) -> Finding | None:
    if not seen.falling or seen.rising:
        return None
    return Finding(
        "falling",
        f"The error was still falling at the last iteration, by {_last_fall(seen):.1f} %: more "
        "iterations may lower it further.",
    )


def _few_users(seen: Evidence) -> Finding | None:
    if not 0 < seen.users < seen.items or seen.fit.signals != "rows":
        return None
    return Finding(
        "few_users",
        f"There are fewer users ({seen.users:,}) than titles ({seen.items:,}), too few to "
        "determine Σ alone: ε, or a prior, decides what they leave open.",
    )


def _moving(seen: Evidence) -> Finding | None:
    change = seen.covariance_change
    if change is None or change < MOVING or seen.falling:
        return None
    return Finding(
        "moving",
        f"Σ was still moving: the last iteration changed it by {100 * change:.0f} %.",
    )


def _last_fall(seen: Evidence) -> float:
    """By how many per cent the last iteration lowered NMAE."""
    return 100 * (1 - seen.nmae[-1] / seen.nmae[-2])


def next_steps(seen: Evidence) -> tuple[NextStep, ...]:
    """What to try on the same split, the most promising first."""
    if not seen.nmae:
        return ()
    steps = [
        step
        for rule in (
            _ordered_ratings,
            _larger_epsilon,
            _stop_early,
            _go_on,
            _best,
            _auto,
            _sweep,
        )  # fmt: skip
        if (step := rule(seen)) is not None
    ]
    return tuple(steps)


def _ordered_ratings(seen: Evidence) -> NextStep | None:
    """Where ratings are few grades and the model takes them for numbers."""
    grades = seen.scale.levels
    if seen.fit.is_ordered or grades is None or not 2 <= len(grades) <= MOST_GRADES:
        return None
    # Low rank reaches the figures of a dense Σ in a fraction of the time, where it can be used.
    if seen.fit.signals == "rows" and not seen.fit.reads_times:
        fit = replace(settings_for("factor"), dtype="float32")
    else:
        fit = replace(
            settings_for("ordinal"), signals=seen.fit.signals, block=seen.fit.block, dtype="float32"
        )
    if seen.fit.reads_times:  # with it a fit is of another task than without
        fit = replace(
            fit, session_noise=seen.fit.session_noise, session_window=seen.fit.session_window
        )
    return NextStep(
        "ordinal",
        "Try ordered ratings",
        "Remembers how uncertain each estimate is, holds Σ back by a prior, and treats stars as "
        "ordered grades. Usually the largest gain."
        + (
            " Low rank: Σ is made of a few directions of taste, which is fast."
            if fit.model == "factor"
            else ""
        ),
        fit,
    )


def _larger_epsilon(seen: Evidence) -> NextStep | None:
    """Where MAP-EM over-fits or loses, and ε is small."""
    if seen.fit.model != "paper" or seen.fit.epsilon is None:
        return None
    losing = seen.gain is not None and seen.gain < 0
    unit = variance_unit(seen.scale)
    wanted = float(f"{1.0 * unit:.3g}")
    if not (seen.rising or losing) or not 0 < seen.fit.epsilon < 0.9 * wanted:
        return None
    return NextStep(
        "epsilon",
        f"Try ε = {wanted:g}",
        f"A larger ε than {seen.fit.epsilon:.3g} trusts agreements of few ratings less.",
        replace(seen.fit, epsilon=wanted),
    )


def _stop_early(seen: Evidence) -> NextStep | None:
    if not seen.rising or seen.best < 1:
        return None
    return NextStep(
        "stop",
        f"Stop at iteration {seen.best}",
        "The same settings, ended where the error was lowest. That was found out on the "
        "held-out ratings themselves, so the figure flatters.",
        replace(seen.fit, iterations=seen.best),
    )


def _go_on(seen: Evidence) -> NextStep | None:
    if not seen.falling or seen.rising:
        return None
    more = min(2 * seen.fit.iterations, MAX_ITERATIONS)
    if more == seen.fit.iterations:
        return None
    return NextStep(
        "more",
        f"Go on to iteration {more}",
        "The same settings with twice as many iterations.",
        replace(seen.fit, iterations=more),
    )


def _best(seen: Evidence) -> NextStep | None:
    """Where ordered ratings are in use, and no mean is taken yet."""
    if not seen.fit.is_ordered or seen.fit.average_rank or seen.fit.signals != "rows":
        return None
    if seen.fit.reads_times:  # with it a fit is of another task than without
        return None
    return NextStep(
        "best",
        "Try the best",
        "Users resemble each other as titles do, and the mean of two estimates of all that errs "
        "less than each: the lowest error that was measured, at about twice the time.",
        replace(PRESETS["best"], attributes=seen.fit.attributes),
    )


def _auto(seen: Evidence) -> NextStep | None:
    """Unless these settings are what auto has chosen."""
    if seen.auto:
        return None
    return NextStep(
        "auto",
        "Choose for me",
        "Auto tries models, ε, noise, prior and numbers of iterations for a minute, on ratings "
        "held out inside the training set, and fits with the best. The test ratings play no part.",
        selection=Selection(attributes=seen.fit.attributes, times=seen.fit.reads_times),
    )


def _sweep(seen: Evidence) -> NextStep | None:
    """Over ε, where the model has one that decides something."""
    if seen.fit.model not in ("paper", "mixture"):
        return None
    unit = variance_unit(seen.scale)
    epsilons = tuple(float(f"{value * unit:.3g}") for value in SWEEP_EPSILONS)
    return NextStep(
        "sweep",
        "Sweep ε",
        f"A fit for each of {len(epsilons)} values of ε, from {epsilons[0]:g} to {epsilons[-1]:g}.",
        epsilons=epsilons,
    )
