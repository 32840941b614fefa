"""One low-rank fit in this process, and with its E-step on one and two workers of this machine.

    python -m benchmarks.shards --data ml-1m.zip --rank 61

Each process has one thread, and so has the fit in this one; "both cores" is the same with all
threads. Seconds of an iteration, median of all but the first, which sends the users and
loads the compiled code; and what the others move, counted as docs/cluster.md does. Prints a
Markdown table, and fails if a likelihood differs by more than rounding.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from statistics import median

import numpy as np

from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.experiment import Experiment
from gmc_core.fitting.preparing import prepare
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.models import settings_for
from gmc_core.runs.cluster.cluster import Cluster


def line(where: str, experiment: Experiment, workers: int) -> list[float]:
    """Run it, print its line; the log-likelihoods."""
    experiment.run()
    records, fit = experiment.records, experiment.fit
    assert fit is not None
    names = ("e_seconds", "m_seconds")
    each = [median(getattr(one, name) for one in records[1:]) for name in names]
    items, rank = fit.signals.dimension, fit.settings.rank or 1
    item = np.dtype(fit.settings.dtype).itemsize
    moved = workers * items * ((rank + 1) + (rank + 1) * (rank + 4) / 2) * item
    moved += (item + 8) * len(fit.signals.values) + rank * item * fit.signals.count
    first = f"{records[0].e_seconds:.1f}"
    size = f"{moved / 1e6:.0f}" if workers else ""
    print(f"| {where} | {first} | {each[0]:.2f} | {each[1]:.2f} | {size} |", flush=True)
    return [record.log_likelihood for record in records]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="One low-rank fit on 1 and 2 workers.")
    parser.add_argument("--data", default="sample", help="a name or a path (default: sample)")
    parser.add_argument("--rank", type=int, default=61)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    args = parser.parse_args()
    fit = replace(
        settings_for("factor"), rank=args.rank, iterations=args.iterations, dtype="float32"
    )
    config = ExperimentConfig(data=args.data, protocol="random", fit=fit)
    prepared = prepare(config)
    Experiment(replace(config, fit=replace(fit, iterations=1)), prepared=prepared).run()  # compiles
    print("| where | first E, s | E, s | M, s | MB an iteration |\n|---|---|---|---|---|")
    alone = line("this process", Experiment(config, prepared=prepared, team=ThreadPool(1)), 0)
    line("this process, both cores", Experiment(config, prepared=prepared), 0)
    for workers in args.workers:
        with Cluster(f"local:{workers}", 1) as cluster:
            found = line(
                f"{workers} × 1 thread", cluster.sharded(config, prepared=prepared), workers
            )
        if not np.allclose(found, alone, rtol=1e-5):
            raise SystemExit(f"other likelihoods on {workers} workers: {found}, not {alone}")


if __name__ == "__main__":
    main()
