"""How many held-out ratings lie in their calibrated intervals, pooled over splits.

    python -m benchmarks.coverage --data ml-1m.zip --seeds 0..4 --model paper ordinal

For every split the interval's width is learned inside the training set
(:func:`gmc_core.fitting.intervals.calibrate`), the model is fitted to all training ratings, and the
intervals of the test ratings are counted. Prints a Markdown table: the share covered with a 95 %
interval over the splits (of two their range), and the standard deviations that the intervals
needed.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from gmc_core.cli.compare import seeds
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.fit import run_fit
from gmc_core.fitting.intervals import calibrate, covered
from gmc_core.fitting.preparing import make_split, prepare
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.models import MODELS, settings_for
from gmc_core.protocol.metrics import mean_with_interval


def share_with_interval(shares: list[float]) -> str:
    """Mean over the splits and Student's 95 % interval; with two splits their range."""
    if len(shares) == 1:
        return f"{shares[0]:.1%}"
    if len(shares) == 2:
        return f"{sum(shares) / 2:.1%} (range of 2: {min(shares):.1%} to {max(shares):.1%})"
    over = mean_with_interval(shares)
    return f"{over.mean:.1%} [{over.low:.1%}, {over.high:.1%}]"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Coverage of calibrated intervals.")
    parser.add_argument("--data", default="sample", help="a name or a path (default: sample)")
    parser.add_argument("--protocol", default="weak", choices=("weak", "strong"))
    parser.add_argument("--seeds", type=seeds, default=tuple(range(5)), help="such as 0..4")
    parser.add_argument("--model", nargs="+", default=["paper", "ordinal"], choices=list(MODELS))
    parser.add_argument("--iterations", type=int, help="L (default: the model's)")
    parser.add_argument("--level", type=float, default=0.9)
    args = parser.parse_args()
    config = ExperimentConfig(data=args.data, protocol=args.protocol)
    prepared, team = prepare(config), ThreadPool()
    print("| model | splits | held out | covered | standard deviations |\n|---|---|---|---|---|")
    for model in args.model:
        settings = replace(settings_for(model), dtype="float32")
        if args.iterations:
            settings = replace(settings, iterations=args.iterations)
        shares, factors, count = [], [], 0
        for seed in args.seeds:
            split = make_split(config, prepared, seed)
            factor = calibrate(split.train, settings, args.level, seed=seed, team=team).factor
            inside = covered(run_fit(split, settings, team=team), factor)
            shares.append(float(inside.mean()))
            factors.append(factor)
            count += len(inside)
        print(
            f"| {model} | {len(shares)} | {count:,} | {share_with_interval(shares)} | "
            f"{min(factors):.2f} to {max(factors):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
