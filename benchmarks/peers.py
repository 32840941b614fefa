"""Whole fits beside other packages, on one weak split of MovieLens 1M, in one run.

    python -m benchmarks.peers --ml1m ml-1m.zip --python peers/bin/python \\
        --lenskit-python lenskit/bin/python

Each method runs in a process of its own; peers that are not installed are left out
with a line that says so. Prints a Markdown table: fit seconds, CPU seconds, peak
memory, NMAE and RMSE.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import ratings_named
from benchmarks.peer_fit import PEERS
from gmc_core.metrics import score
from gmc_core.splits import Split, weak_split

OWN = {"gmc float64": "float64", "gmc float32": "float32"}


def save_split(split: Split, path: Path) -> None:
    """The split as plain arrays of positions, for any package."""
    train = split.train
    np.savez(
        path,
        train_users=train.rows,
        train_items=train.indices,
        train_values=train.values,
        test_users=split.test_users,
        test_items=split.test_items,
        low=train.scale.low,
        high=train.scale.high,
    )


def own_fit(ml1m: Path, dtype: str, seed: int, target: Path) -> None:
    """This package's fit by the paper's recipe, with evaluation; used by a child process."""
    import resource
    import time

    from gmc_core.fit import Fit
    from gmc_core.settings import FitSettings

    split = weak_split(ratings_named("ml-1m", ml1m), seed)
    wall, cpu = time.perf_counter(), time.process_time()
    fit = Fit(split, FitSettings(dtype=dtype))
    for _ in fit.records():
        pass
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    np.savez(
        target,
        predictions=fit.predictions,
        fit_seconds=wall,
        cpu_seconds=cpu,
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


def run_one(command: list[str], target: Path, split: Split) -> dict[str, Any] | str:
    """Run a child; its figures, or the last line of its complaint."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        return lines[-1][:160]
    with np.load(target) as stored:
        scores = score(stored["predictions"], split.test_values, split.train.scale)
        return {
            "fit_seconds": float(stored["fit_seconds"]),
            "cpu_seconds": float(stored["cpu_seconds"]),
            "peak_mb": float(stored["peak_bytes"]) / 1e6,
            "nmae": scores.nmae,
            "rmse": scores.rmse,
        }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ml1m", type=Path, required=True)
    parser.add_argument("--python", help="interpreter with Surprise, cornac and myFM")
    parser.add_argument("--lenskit-python", help="interpreter with LensKit")
    parser.add_argument("--only", nargs="*", help="names of methods")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--own", help=argparse.SUPPRESS)
    parser.add_argument("--target", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.own:
        own_fit(arguments.ml1m, arguments.own, arguments.seed, arguments.target)
        return
    split = weak_split(ratings_named("ml-1m", arguments.ml1m), arguments.seed)
    results: dict[str, dict[str, Any] | str] = {}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "split.npz", Path(folder) / "out.npz"
        save_split(split, source)
        for name in [*OWN, *PEERS]:
            if arguments.only and name not in arguments.only:
                continue
            if name in OWN:
                command = [
                    sys.executable, "-m", "benchmarks.peers", "--ml1m", str(arguments.ml1m),
                    "--own", OWN[name], "--seed", str(arguments.seed), "--target", str(target),
                ]  # fmt: skip
            else:
                own_python = arguments.lenskit_python if "lenskit" in name else arguments.python
                if not own_python:
                    results[name] = "left out: no interpreter given"
                    continue
                script = str(Path(__file__).with_name("peer_fit.py"))
                command = [own_python, script, name, str(source), str(target)]
            results[name] = run_one(command, target, split)
            print(name, results[name], file=sys.stderr, flush=True)
    print("| method | fit s | CPU s | peak MB | NMAE | RMSE |\n|---|---|---|---|---|---|")
    for name, row in results.items():
        if isinstance(row, str):
            print(f"| {name} | {row} |||||")
        else:
            print(
                f"| {name} | {row['fit_seconds']:.1f} | {row['cpu_seconds']:.1f} | "
                f"{row['peak_mb']:.0f} | {row['nmae']:.4f} | {row['rmse']:.4f} |"
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
