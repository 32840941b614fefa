"""A sweep of eight fits on a cluster of one and of two processes of this machine.

    python -m benchmarks.cluster --data ml-1m.zip --threads 1

Each process has the same number of threads, so that one fit takes as long everywhere. In turn: in
this process without a cluster, on one worker, on two workers. What every cluster must do once
(start, read the data, load the compiled code) is timed apart, with a first fit on each worker.
Prints a Markdown table, and fails if any figure differs from those without a cluster.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.experiment import Experiment
from gmc_core.fitting.preparing import prepare
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.settings import FitSettings
from gmc_core.runs.cluster.cluster import Cluster
from gmc_core.runs.store import Store
from gmc_core.runs.sweeps import SweepConfig, submit_or_find_sweep, sweep_results
from gmc_core.runs.worker import work
from gmc_core.runs.worker.on_cluster import computing

EPSILONS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0)


def swept(sweep: SweepConfig, cluster: Cluster | None) -> tuple[float, list[float]]:
    """Seconds until all fits are in a store, and NMAE of each. cluster : None for this process."""
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder)) as store:
        parent = submit_or_find_sweep(store, sweep)[0]
        began = time.perf_counter()
        if cluster is None:
            work(store, idle_seconds=0, polite=False)
            seconds = time.perf_counter() - began
        else:
            ids = {child.id for child in store.runs(parent=parent.id)}
            with computing(store.path, cluster, ids, parent.id) as check:
                while not store.run(parent.id).ended_for_good:
                    check()
                    time.sleep(0.05)
                seconds = time.perf_counter() - began
        return seconds, sweep_results(store, parent.id)["nmae"].tolist()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="A sweep of eight fits on 1 and 2 workers.")
    parser.add_argument("--data", default="sample", help="a name or a path (default: sample)")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1, help="of each fit (default: 1)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    args = parser.parse_args()
    base = ExperimentConfig(
        data=args.data, fit=FitSettings(iterations=args.iterations, dtype="float32")
    )
    sweep = SweepConfig(base, EPSILONS, (args.iterations,))
    prepared, threads = prepare(base), args.threads
    os.environ["GMC_THREADS"] = str(threads)
    first = replace(sweep.children()[0], fit=replace(base.fit, epsilon=0.25, iterations=1))
    Experiment(first, prepared=prepared, team=ThreadPool(threads)).run()  # compiles
    swept(replace(sweep, epsilons=(0.25,)), None)  # what only the worker's loop compiles
    alone, expected = swept(sweep, None)
    print("| where | first fit everywhere, s | 8 fits, s | times as fast |\n|---|---|---|---|")
    print(f"| this process | | {alone:.1f} | 1.00 |", flush=True)
    for workers in args.workers:
        began = time.perf_counter()
        with Cluster(f"local:{workers}", threads) as cluster:
            config = replace(first, repetitions=workers)
            cluster.experiment(config, prepared=prepared).run()
            starting = time.perf_counter() - began
            seconds, found = swept(sweep, cluster)
        if found != expected:
            raise SystemExit(f"other figures on {workers} workers: {found}, not {expected}")
        ratio = alone / seconds
        print(f"| {workers} × {threads} threads | {starting:.1f} | {seconds:.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
