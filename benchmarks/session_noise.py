"""Which session noise helps, on ratings held out inside one training set.

    python -m benchmarks.session_noise --data sample [--max-items 700] [--model ordinal]

A tenth of the training ratings of weak seed 0 is held out at random; its test ratings are never
looked at. Prints NMAE and RMSE for pairs of variance and window, and the paired difference to no
session noise with its 95 % interval over the ratings.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from gmc_core.base.signs import signed
from gmc_core.data.datasets import load_named
from gmc_core.data.ratings import Ratings
from gmc_core.fitting.fit import Fit
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.filters import Filter, apply_filter
from gmc_core.protocol.metrics import normalized_errors, paired_difference
from gmc_core.protocol.splits import Split, weak_split

SHARE = 0.1
GRID = (
    (0.0, 300.0),
    *((variance, 300.0) for variance in (0.05, 0.1, 0.15, 0.2, 0.3)),
    *((0.15, window) for window in (30.0, 60.0, 900.0, 3600.0)),
)


def inner(train: Ratings, seed: int) -> Split:
    """A random share of the training ratings held out."""
    held = np.random.default_rng(seed).random(len(train)) < SHARE
    assert train.times is not None
    return Split(
        "weak", train.keep_ratings(~held), None,
        train.rows[held].astype(np.int64), train.indices[held].astype(np.int64),
        train.values[held], seed, test_times=train.times[held],
    )  # fmt: skip


def predictions(split: Split, settings: FitSettings) -> np.ndarray:
    """(n_test,) of the last iteration."""
    fit = Fit(split, settings)
    for _ in fit.records():
        pass
    return fit.predictions


def main() -> None:
    """Print a line for every pair of the grid."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="sample")
    parser.add_argument("--model", default="ordinal")
    parser.add_argument("--max-items", type=int)
    args = parser.parse_args()
    loaded = load_named(args.data).ratings
    ratings, _ = apply_filter(loaded, Filter(max_items=args.max_items))
    split, scale = inner(weak_split(ratings, 0).train, 0), ratings.scale
    print(f"{split.n_test:,} ratings held out of {len(split.train) + split.n_test:,}")
    base = np.zeros(0)
    for variance, window in GRID:
        found = predictions(
            split,
            replace(
                settings_for(args.model), dtype="float32",
                session_noise=variance, session_window=window,
            ),
        )  # fmt: skip
        errors = normalized_errors(found, split.test_values, scale)
        base = errors if not base.size else base
        clipped = np.clip(found, scale.low, scale.high) - split.test_values
        lead = paired_difference(errors, base)
        print(
            f"variance {variance:g}, window {window:g} s: NMAE {errors.mean():.4f}, RMSE "
            f"{np.sqrt(np.mean(clipped**2)):.4f}; NMAE {signed(lead.mean, 4)} "
            f"[{signed(lead.low, 4)}, {signed(lead.high, 4)}]",
            flush=True,
        )


if __name__ == "__main__":
    main()
