"""Whole fits beside other packages, on one weak split of MovieLens 1M, in one run.

    python -m benchmarks.external --ml1m ml-1m.zip --python external/bin/python \\
        --python lenskit/bin/python

The same as ``gmc compare`` with this package's MAP-EM in both precisions; packages that
no given Python has are left out. Prints a Markdown table: seconds and CPU seconds of
fit and predictions, memory beyond the data, NMAE and RMSE.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.data import ratings_named
from gmc_core.base.files import without_nan
from gmc_core.comparison.comparators import ExternalBaseline, GaussianMethod, Method
from gmc_core.comparison.comparators.external import installed_baselines
from gmc_core.comparison.compare import Comparison, Step, compare
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.splits import weak_split


def tell(step: Step, _: Comparison) -> None:
    """A line for each finished method, on stderr."""
    outcome = step.outcome
    text = step.failure if outcome is None else f"{outcome.seconds:.1f} s, NMAE {step.nmae():.4f}"
    print(f"{step.method.label}: {text}", file=sys.stderr, flush=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ml1m", type=Path, required=True)
    parser.add_argument(
        "--python", action="append", default=[], help="interpreter with packages; repeatable"
    )
    parser.add_argument("--only", nargs="*", help="names of methods")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    methods: list[Method] = [
        GaussianMethod("gmc-float64", FitSettings(), "this package, float64"),
        GaussianMethod("gmc-float32", FitSettings(dtype="float32"), "this package, float32"),
        *(ExternalBaseline(*found) for found in installed_baselines(arguments.python).items()),
    ]
    chosen = [m for m in methods if not arguments.only or m.name in arguments.only]
    split = weak_split(ratings_named("ml-1m", arguments.ml1m), arguments.seed)
    result = compare(chosen, [split], on_end=tell)
    print("| method | s | CPU s | MB | NMAE | RMSE |\n|---|---|---|---|---|---|")
    for row in result.rows():
        if row.scores is None:
            print(f"| {row.label} | {row.failure} |||||")
        else:
            print(
                f"| {row.label} | {row.seconds:.1f} | {row.cpu_seconds:.1f} | "
                f"{row.peak_bytes / 1e6:.0f} | {row.scores.nmae:.4f} | {row.scores.rmse:.4f} |"
            )
    if arguments.json:
        text = json.dumps(without_nan(result.as_dict()), indent=1)
        arguments.json.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
