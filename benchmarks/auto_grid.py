"""Settings chosen automatically against the best of a full grid, on the same splits.

    python -m benchmarks.auto_grid --data sample --seeds 0..2

The grid is judged by the test ratings themselves, which nobody could do in earnest: its best is
what no choice can be expected to reach. Prints a Markdown table with a line for every point of the
grid, then the automatic choice, its time, and its paired difference from the grid's best.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gmc_core.base.errors import NumericalError
from gmc_core.base.signs import signed
from gmc_core.cli.compare import seeds
from gmc_core.comparison.comparators.gaussian import fit_and_predict
from gmc_core.fitting.auto import SECONDS, choose
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.fit import Fit
from gmc_core.fitting.preparing import make_split, prepare
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.metrics import normalized_errors, paired_difference
from gmc_core.protocol.splits import Split

EPSILONS = (0.1, 0.3, 1.0, 3.0, 9.0)
NOISES = (0.3, 0.5, 0.8)
STRENGTHS = (100.0, 300.0, 900.0)


def grid(iterations: int | None) -> Iterator[tuple[str, FitSettings]]:
    """MAP-EM over ε; ordered ratings, of the items' side (with that L) over noise and prior, and
    two-sided over noise."""
    for epsilon in EPSILONS:
        settings = replace(settings_for("paper"), epsilon=epsilon, dtype="float32")
        yield f"paper, ε = {epsilon:g}", settings
    for noise, strength in itertools.product(NOISES, STRENGTHS):
        settings = replace(
            settings_for("ordinal"), noise=noise, prior_strength=strength, dtype="float32"
        )
        if iterations:
            settings = replace(settings, iterations=iterations)
        yield f"ordinal, noise {noise:g}, prior strength {strength:g}", settings
    for noise in NOISES:
        settings = replace(settings_for("two-sided"), noise=noise, dtype="float32")
        yield f"two-sided, noise {noise:g}", settings


def errors_by_iteration(split: Split, settings: FitSettings, team: ThreadPool) -> list[np.ndarray]:
    """(n_test,) normalized errors after every iteration until a breakdown."""
    fit, found = Fit(split, settings, team=team), []
    try:
        for _ in fit.records():
            found.append(normalized_errors(fit.predictions, split.test_values, split.train.scale))
    except NumericalError:
        pass  # the iterations before it count
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The automatic choice against a full grid.")
    parser.add_argument("--data", default="sample", help="a name or a path (default: sample)")
    parser.add_argument("--seeds", type=seeds, default=(0, 1, 2), help="such as 0..2")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="to choose in")
    parser.add_argument("--iterations", type=int, help="L of exact EM (default: its own)")
    args = parser.parse_args()
    config = ExperimentConfig(data=args.data)
    prepared, team = prepare(config), ThreadPool()
    points: dict[tuple[str, int], list[np.ndarray]] = {}
    chosen, told = [], []
    for seed in args.seeds:
        split = make_split(config, prepared, seed)
        choice = choose(split.train, seconds=args.seconds, seed=seed, team=team)
        predictions = fit_and_predict(split, choice.settings, team)
        chosen.append(normalized_errors(predictions, split.test_values, split.train.scale))
        told.append(f"seed {seed}: {choice.seconds:.0f} s; {choice.reason}")
        for label, settings in grid(args.iterations):
            for step, errors in enumerate(errors_by_iteration(split, settings, team), 1):
                points.setdefault((label, step), []).append(errors)
    pooled = {
        key: np.concatenate(parts) for key, parts in points.items() if len(parts) == len(chosen)
    }
    print("| settings | best L | NMAE |\n|---|---|---|")
    for label, _ in grid(args.iterations):
        steps = {step: pooled[label, step].mean() for name, step in pooled if name == label}
        if steps:
            best = min(steps, key=steps.__getitem__)
            print(f"| {label} | {best} | {steps[best]:.4f} |")
    own = np.concatenate(chosen)
    best_key = min(pooled, key=lambda key: pooled[key].mean())
    lead = paired_difference(own, pooled[best_key])
    print(f"| chosen automatically | | {own.mean():.4f} |\n")
    print(
        f"Against the grid's best ({best_key[0]}, L = {best_key[1]}): "
        f"{signed(lead.mean, 4)} [{signed(lead.low, 4)}, {signed(lead.high, 4)}] NMAE "
        f"on {lead.n:,} ratings."
    )
    print("\n".join(told))


if __name__ == "__main__":
    main()
