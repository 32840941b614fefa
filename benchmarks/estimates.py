"""Estimated against measured seconds, for every model and both precisions.

    python -m benchmarks.estimates [--ml1m ml-1m.zip] [--json FILE]

Run it on an idle machine. Each fit is a process of its own, from its start to its score;
what it compiles is not counted. An estimate is good where the ratio lies in 0.67 .. 1.5.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.data import ratings_named, synthetic
from gmc_core.data.ratings import Ratings
from gmc_core.fitting.compiling import compile_for
from gmc_core.fitting.duration import READING, estimate_of_fit
from gmc_core.fitting.fit import Fit
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.settings import MODEL_KINDS
from gmc_core.protocol.splits import strong_split, weak_split

DATA = ("own-small", "sample", "ml-1m", "eachmovie-synthetic")
HEADER = (
    "| data | protocol | model | precision | estimated s | took s | ratio | by iteration |\n"
    "|---|---|---|---|---|---|---|---|"
)


def ratings_of(name: str, ml1m: Path | None) -> Ratings:
    """Ratings by name; "own-small" has the size of a class's own file."""
    if name == "own-small":
        return synthetic(60, 80, 2400)
    return ratings_named(name, ml1m)


def measure(name: str, protocol: str, model: str, dtype: str, ml1m: Path | None) -> dict[str, Any]:
    """One fit in this process, since when it was started."""
    began = psutil.Process().create_time()
    started = time.time()
    ratings = ratings_of(name, ml1m)
    made = time.time() - started if name.endswith(("synthetic", "small")) else 0.0
    split = (strong_split if protocol == "strong" else weak_split)(ratings, 0)
    settings = replace(settings_for(model), dtype=dtype)
    fit = Fit(split, settings, team=ThreadPool())
    compiling = compile_for(fit.settings)
    estimate = estimate_of_fit(fit)
    records = list(fit.records())
    took = time.time() - began - compiling
    # Ratings that are made up here are not read; making them is taken off the clock.
    expected = estimate.computing - (READING * len(fit.signals.values) if made else 0.0)
    pairs = zip(records, estimate.iterations, strict=True)
    each = [guess / max(record.seconds, 1e-9) for record, guess in pairs]
    return {
        "data": name,
        "protocol": protocol,
        "model": model,
        "dtype": dtype,
        "estimated": expected,
        "took": took - made,
        "ratio": expected / (took - made),
        "iterations": [
            {
                "e": record.e_seconds,
                "m": record.m_seconds,
                "evaluation": record.evaluation_seconds,
                "estimated": guess,
            }
            for record, guess in zip(records, estimate.iterations, strict=True)
        ],
        "by_iteration": [round(float(np.clip(ratio, 0, 99)), 2) for ratio in each],
    }


def line(row: dict[str, Any]) -> str:
    """One row of the Markdown table."""
    ratios = " ".join(f"{ratio:.1f}" for ratio in row["by_iteration"])
    return (
        f"| {row['data']} | {row['protocol']} | {row['model']} | {row['dtype']} "
        f"| {row['estimated']:.1f} | {row['took']:.1f} | {row['ratio']:.2f} | {ratios} |"
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ml1m", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--data", action="append", choices=DATA)
    parser.add_argument("--precision", action="append", choices=("float32", "float64"))
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(*arguments.one, arguments.ml1m)))
        return
    rows = []
    precisions = arguments.precision or ["float32", "float64"]
    print(HEADER)
    for name in arguments.data or DATA:
        if name == "ml-1m" and arguments.ml1m is None:
            continue
        cases = [("weak", model, dtype) for model in MODEL_KINDS for dtype in precisions]
        if name in ("sample", "ml-1m"):
            cases.append(("strong", "ordinal", "float32"))
        for case in cases:
            command = [sys.executable, "-m", "benchmarks.estimates", "--one", name, *case]
            if arguments.ml1m is not None:
                command += ["--ml1m", str(arguments.ml1m)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise SystemExit(done.stderr)
            rows.append(json.loads(done.stdout))
            print(line(rows[-1]), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
