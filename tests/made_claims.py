"""Made-up results of the claims' experiments: nothing is computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from made_records import record

from gmc_core.comparison.comparators.measure import Outcome
from gmc_core.comparison.compare import Comparison
from gmc_core.comparison.comparison_files import HeldOutValues
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.paper.claims import Measured, Results, Subject
from gmc_core.runs.store import HeldOut

STARS = RatingScale(1, 5)
DATA: dict[str, Any] = {
    "name": "made <up>",
    "sha256": "0" * 64,
    "users": 100,
    "items": 50,
    "ratings": 1000,
    "fill_ratio": 0.2,
    "scale": [1.0, 5.0, 1.0],
    "divisor": 1.6,
}
ML1M = {**DATA, "users": 6040, "items": 3592, "fill_ratio": 0.0461, "ratings": 1_000_192}
N = 2000  # held-out ratings of a split


def subject(data: dict[str, Any] = DATA, counts: Any = None, splits: int = 3) -> Subject:
    """A subject with three splits; ``counts`` are the users' numbers of ratings."""
    counts = np.full(data["users"], 10) if counts is None else np.asarray(counts)
    items = np.full(data["items"], int(counts.sum()) // data["items"])
    return Subject(ExperimentConfig(), data, counts, items, splits, splits, splits)


def held_out(seed: int, worse: float = 0.0, n: int = N) -> HeldOut:
    """Half of the predictions are one star off, and so is a share ``worse`` of the others.

    The normalised error of those grows from 0 to 1/1.6; a negative share mends.
    """
    rng = np.random.default_rng(seed)
    actual = rng.integers(1, 6, n).astype(float)
    towards = np.where(actual < 3, 1.0, -1.0)
    wrong = np.arange(n) % 2 == 0
    changed = int(round(abs(worse) * n))
    candidates = np.flatnonzero(wrong if worse < 0 else ~wrong)
    wrong[rng.permutation(candidates)[:changed]] = worse > 0
    ids = np.arange(n)
    return HeldOut(actual + towards * wrong, actual, np.zeros(n, bool), ids, ids)


def measured(
    name: str,
    worse: float = 0.0,
    *,
    iterations: int = 10,
    n: int = N,
    splits: int = 3,
    **fields: Any,
) -> Measured:
    """A finished experiment; ``fields`` of its records replace the usual ones."""
    curve = tuple(
        replace(
            record(t, 0.4 + 0.1 / t), **{k: v(t) if callable(v) else v for k, v in fields.items()}
        )
        for t in range(1, iterations + 1)
    )
    return Measured(
        f"run{''.join(filter(str.isalnum, name))}",
        "finished",
        records=(curve,) * splits,
        held_out=tuple(held_out(seed, worse, n) for seed in range(splits)),
    )


def results(changes: dict[str, Measured | None] | None = None, **options: Any) -> Results:
    """Results of which all experiments agree with the paper's, but for the ``changes``.

    None takes an experiment away. options : of :class:`Results`.
    """
    about = options.pop("subject", None) or subject()
    found = {
        name: measured(name, iterations=config.fit.iterations)
        for name, config in about.experiments().items()
    }
    for name, change in (changes or {}).items():
        found.pop(name, None)
        if change is not None:
            found[name] = change
    return Results(about, found, **options)


def comparison(
    worse: dict[str, float], seconds: dict[str, float] | None = None, peaks: Any = (3e6,) * 3
) -> Comparison:
    """A comparison of methods by their share of worse predictions and their CPU time."""
    seconds = seconds or {}
    made = Comparison(STARS, {name: name.title() for name in worse}, "paper")
    for split in range(3):
        key = f"weak-{split}"
        held = held_out(split)
        made.held_out[key] = HeldOutValues(key, "weak", split, held.actual, held.unseen)
        for name, share in worse.items():
            # A little more or less on every split, as real times are.
            cpu = seconds.get(name, 10.0) * (1 + 0.01 * split * (name == "paper"))
            made.outcomes[name, key] = Outcome(
                held_out(split, share).predictions, cpu, cpu, peaks[split]
            )
    return made
