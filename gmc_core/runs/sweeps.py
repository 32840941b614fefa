"""Sweeps: the same experiment over ε, L and seeds, as one parent with many runs.

L costs nothing: the records of one fit to the largest L hold the results of all
smaller ones, so a child is a pair (ε, seed). All children of a seed share the split.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from gmc_core.base.errors import ConfigError
from gmc_core.fitting.affordable import Wanted
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.protocol.random_splits import check_seeds
from gmc_core.runs.store import Run, Store

MAX_CHILDREN = 10_000
SCORES = ("nmae", "nmae_se", "mae", "rmse", "nmae_unprojected")


@dataclass(frozen=True)
class SweepConfig:
    """What to vary.

    base : the experiment; its ε, L, seed and repetitions are replaced.
    epsilons : ε > 0 or = 0, distinct. iterations : the L of interest, each 1 or more.
    seeds : of the splits.

    Raises
    ------
    ConfigError
        If a list is empty or repeats a value, or a value has no meaning.
    """

    base: ExperimentConfig
    epsilons: tuple[float, ...]
    iterations: tuple[int, ...] = ()
    seeds: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "epsilons", tuple(float(value) for value in self.epsilons))
        set_(self, "iterations", tuple(self.iterations) or (self.base.fit.iterations,))
        set_(self, "seeds", tuple(self.seeds))
        for name in ("epsilons", "iterations", "seeds"):
            values = getattr(self, name)
            if not values:
                raise ConfigError(f"A sweep needs at least one value of {name}.")
            if len(set(values)) < len(values):
                raise ConfigError(f"A value of {name} is given twice; give each once.")
        if min(self.iterations) < 1:
            raise ConfigError(
                "A sweep compares iterations, so each L is 1 or more; for L = 0 run a single fit."
            )
        if len(self.epsilons) * len(self.seeds) > MAX_CHILDREN:
            raise ConfigError(f"A sweep has at most {MAX_CHILDREN:,} runs; give fewer values.")
        self.children()  # each checks its own values

    def children(self) -> list[ExperimentConfig]:
        """One experiment for each seed and ε, those of a seed together."""
        return [
            replace(
                self.base,
                seed=seed,
                repetitions=1,
                fit=replace(self.base.fit, epsilon=epsilon, iterations=max(self.iterations)),
            )
            for seed in self.seeds
            for epsilon in self.epsilons
        ]

    def fits(self) -> list[Wanted]:
        """The dearest of its fits; all take about as long."""
        first = self.children()[0]
        count = len(self.epsilons) * len(self.seeds)
        name = f"epsilon {self.epsilons[0]:g}, L = {first.fit.iterations}"
        which = f"Each of {count:,} fits ({name} and others)" if count > 1 else f"The fit ({name})"
        return [Wanted(first.fit, which)]

    def as_dict(self) -> dict[str, Any]:
        """What varies, for JSON."""
        return {
            "epsilons": list(self.epsilons),
            "iterations": list(self.iterations),
            "seeds": list(self.seeds),
        }

    @classmethod
    def of(cls, run: Run) -> SweepConfig:
        """The configuration of a sweep in the store."""
        if run.sweep is None:
            raise ConfigError(f"Run {run.id} is no sweep.")
        return cls(run.config, **{name: tuple(values) for name, values in run.sweep.items()})


def log_epsilons(low: float, high: float, count: int) -> tuple[float, ...]:
    """``count`` values of ε from ``low`` to ``high``, equally spaced in log ε.

    Rounded to three significant digits, which a label and a command can show.
    """
    if not 0 < low <= high < math.inf or count < 1 or (low == high) != (count == 1):
        raise ConfigError(
            f"Give 0 < lowest ε < highest ε and at least 2 values, not {low}, {high} and {count}."
        )
    return tuple(float(f"{value:.3g}") for value in np.geomspace(low, high, count))


def submit_or_find_sweep(
    store: Store,
    sweep: SweepConfig,
    *,
    label: str = "",
    again: bool = False,
    keep_models: bool = False,
    cost: dict[str, Any] | None = None,
) -> tuple[Run, bool]:
    """Queue a sweep, or find the same one; returns the parent, and whether it is new.

    again : make a new one even if there is the same, finished or on its way.
    keep_models : keep the model and all pictures of every child, which takes about
        8 N² bytes each.
    cost : of each child, see :meth:`Store.submit`.

    Raises
    ------
    ConfigError
        If a seed has no published fold.
    """
    check_seeds(sweep.base.folds, sweep.seeds)
    return store.submit_sweep(
        sweep.base,
        sweep.as_dict(),
        sweep.children(),
        label=label,
        again=again,
        keep_models=keep_models,
        cost=cost,
    )


def sweep_results(
    store: Store, parent: str, *, iterations: Sequence[int] | None = None
) -> pd.DataFrame:
    """The results so far, a line per (ε, L, seed) that has been reached.

    iterations : the L to show; default the sweep's. Every L up to the largest has
        been computed, so any of them can be asked for.

    Returns
    -------
    Columns ``epsilon``, ``iterations``, ``seed``, ``nmae``, ``nmae_se``, ``mae``,
    ``rmse``, ``nmae_unprojected``, ``log_likelihood``, ``run`` (the child's id) and
    ``state``; sorted by the first three. Scores are NaN without hold-out.
    """
    run = store.run(parent)
    sweep = SweepConfig.of(run)
    wanted = set(sweep.iterations if iterations is None else iterations)
    lines = []
    records = store.children_records(parent)
    for child in store.runs(parent=parent):
        for _, record in records.get(child.id, []):
            if record.iteration not in wanted:
                continue
            scores = {name: getattr(record, name) for name in SCORES}
            lines.append(
                {
                    "epsilon": child.config.fit.epsilon,
                    "iterations": record.iteration,
                    "seed": child.config.seed,
                    **{name: math.nan if v is None else v for name, v in scores.items()},
                    "log_likelihood": record.log_likelihood,
                    "run": child.id,
                    "state": child.state,
                }
            )
    columns = ["epsilon", "iterations", "seed", *SCORES, "log_likelihood", "run", "state"]
    table = pd.DataFrame(lines, columns=columns)
    return table.sort_values(columns[:3], ignore_index=True)
