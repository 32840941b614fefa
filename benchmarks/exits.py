"""How often a short command that reads a file ends as it should.

    python -m benchmarks.exits FILE [--count 2000] [--whole 100] [--processes 2]

``--count`` children are forked from a process that has loaded the readers; each reads the
file and ends as Python does, which is where threads of Arrow that still hold a buffer of
Python's took the process down (exit 134). ``--whole`` times ``gmc data check FILE`` is run
as a process of its own. Both print how often each exit code came; all must be 0.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

CHILDREN = """
import os, sys
from collections import Counter
from gmc_core.data.readers import load
from gmc_core.tables.wide_reader import read_table
path, count = sys.argv[1], int(sys.argv[2])
read = read_table if path.endswith(".parquet") else load
codes = Counter()
for _ in range(count):
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        read(path)
        sys.exit(0)
    codes[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])] += 1
print(*(f"{code}:{times}" for code, times in codes.items()))
"""


def forked(path: str, count: int) -> Counter[int]:
    """Exit codes of children of one process."""
    command = [sys.executable, "-c", CHILDREN, path, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    pairs = (pair.split(":") for pair in done.stdout.split())
    return Counter({int(code): int(times) for code, times in pairs})


def whole(path: str, count: int) -> Counter[int]:
    """Exit codes of whole commands, one after the other."""
    command = [sys.executable, "-m", "gmc_core", "data", "check", path]
    codes: Counter[int] = Counter()
    for _ in range(count):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        codes[done.returncode] += 1
        if done.returncode:
            print(f"exit {done.returncode}: {done.stderr[-2000:]}", flush=True)
    return codes


def main() -> int:
    """Run both, and print how often each exit code came."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--whole", type=int, default=100)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    wrong = 0
    for name, run, count in (("forked", forked, args.count), ("whole", whole, args.whole)):
        each = -(-count // args.processes)
        if not count or args.file.endswith(".parquet") and run is whole:
            continue
        with ThreadPoolExecutor(args.processes) as pool:
            parts = pool.map(run, [args.file] * args.processes, [each] * args.processes)
        codes = sum(parts, Counter())
        wrong += codes.total() - codes[0]
        print(f"{name}: {codes.total():,} ends, exit codes {dict(codes)}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
