"""Rates of this machine and the cost of one iteration, in one run.

    python -m benchmarks [--ml1m ml-1m.zip] [--quick] [--json FILE]

Run it on an idle machine. Every measurement is a process of its own; figures are
medians over the iterations after the first.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from gmc_core.fitting.cost import gemm_rate
from gmc_core.gaussian.linalg.threads import available_cores

SCALING_ITEMS = (500, 1000, 2000, 3500)
SCALING_USERS = (1, 2, 4, 8)


def measure(name: str, dtype: str, ml1m: Path | None, *more: str) -> dict[str, Any]:
    """One measurement in a child process."""
    command = [sys.executable, "-m", "benchmarks.iteration", name, dtype, *more]
    if ml1m is not None:
        command += ["--ml1m", str(ml1m)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return {"data": name, **json.loads(done.stdout)}


def line(row: dict[str, Any]) -> str:
    """One row of the Markdown table."""
    bare = f"{row['ratio_to_bare']:.2f}" if "ratio_to_bare" in row else ""
    return (
        f"| {row['data']} | {row['users']:,} × {row['items']:,} | {row['dtype']} | {row['form']} "
        f"| {row['gflop']:.1f} | {row['e_seconds']:.2f} | {row['m_seconds']:.2f} "
        f"| {row['ratio_to_floor']:.2f} | {bare} | {row['peak_bytes'] / 1e6:.0f} "
        f"| {row['allocated_in_n_squared']:.1f} |"
    )


HEADER = (
    "| data | M × N | precision | M-step form | GFLOP | E s | M s | ÷ floor | ÷ bare calls "
    "| peak MB | allocated / N² |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ml1m", type=Path)
    parser.add_argument("--quick", action="store_true", help="without the scaling tables")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    print(f"Cores: {available_cores()}. Matrix product rate, all cores:")
    for dtype in ("float64", "float32"):
        print(f"- {dtype}: {gemm_rate(dtype) / 1e9:.0f} GFLOP/s")
    names = ["sample", "eachmovie-synthetic"]
    if arguments.ml1m is not None:
        names.insert(0, "ml-1m")
    rows = []

    def show(*row: Any) -> None:
        rows.append(measure(*row))
        print(line(rows[-1]), flush=True)

    print(f"\nOne iteration\n\n{HEADER}")
    for name in names:
        for dtype in ("float64", "float32"):
            show(name, dtype, arguments.ml1m)
    if not arguments.quick:
        print(f"\nAgainst M (users of {names[0]} repeated)\n\n{HEADER}")
        for times in SCALING_USERS:
            show(names[0], "float32", arguments.ml1m, "--users", str(times), "--iterations", "3")
        print(f"\nAgainst N (the most rated items of {names[0]})\n\n{HEADER}")
        for items in SCALING_ITEMS:
            show(names[0], "float32", arguments.ml1m, "--items", str(items), "--iterations", "4")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
