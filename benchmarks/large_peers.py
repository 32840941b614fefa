"""Low rank beside other packages on one split of a large set, each in a process of its own.

    python -m venv peers && peers/bin/pip install cmfrec implicit
    python -m benchmarks.large write ml-32m FOLDER
    python -m benchmarks.large_peers FOLDER --python peers/bin/python

One random split after the paper's filter: a tenth of all ratings is held out. The others get the
training ratings as arrays, ready to be used; this package reads the file anew, by ``gmc fit``.
cmfrec has the settings of its authors' own benchmark, without and with the implicit features that
are its best there. implicit knows of no explicit ratings: its ALS is fitted to what was rated, for
time and memory; it predicts no ratings. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

PEERS = {
    "cmfrec": dict(k=50, niter=15, lambda_=0.05, scale_lam=True),
    "cmfrec, implicit features": dict(
        k=50, niter=15, lambda_=0.05, scale_lam=True, use_cg=False, add_implicit_features=True
    ),
    "implicit ALS": dict(factors=64, iterations=15),
}


def peer(name: str, arrays: str) -> None:
    """Fit one package to the arrays of a file and print its figures as JSON."""
    data, settings = np.load(arrays), PEERS[name]
    users, items, values = data["users"], data["items"], data["values"]
    shape = tuple(int(one) for one in data["shape"])
    from scipy.sparse import coo_matrix  # type: ignore[import-untyped, unused-ignore]

    table = coo_matrix((values, (users, items)), shape=shape)
    began = time.perf_counter()
    found = None
    if name.startswith("cmfrec"):
        from cmfrec import CMF  # type: ignore[import-not-found, unused-ignore]

        model = CMF(method="als", nthreads=os.cpu_count(), **settings).fit(table)
        found = model.predict(data["test_users"], data["test_items"])
    else:
        from implicit.als import (  # type: ignore[import-not-found, unused-ignore]
            AlternatingLeastSquares,
        )

        AlternatingLeastSquares(**settings).fit(table.tocsr(), show_progress=False)
    took = time.perf_counter() - began
    result: dict[str, Any] = {"seconds": took, **_usage(resource.RUSAGE_SELF)}
    if found is not None:
        np.save(arrays + ".found.npy", np.asarray(found, dtype=float))
    print(json.dumps(result))


def _usage(who: int) -> dict[str, float]:
    used = resource.getrusage(who)
    return {"cpu": used.ru_utime + used.ru_stime, "gigabytes": used.ru_maxrss / 1e6}


def own(folder: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """The whole process of ``gmc fit``, from the file to the score."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "result.json"
        command = [sys.executable, "-m", "gmc_core", "fit", "--data", str(folder), *arguments]
        began = time.perf_counter()
        process = subprocess.Popen([*command, "--json", str(out)], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise SystemExit("gmc fit failed")
        summary = json.loads(out.read_text())["summary"]
    return {
        "seconds": time.perf_counter() - began,
        "cpu": used.ru_utime + used.ru_stime,
        "gigabytes": used.ru_maxrss / 1e6,
        "nmae": summary["nmae"],
        "rmse": summary["rmse"],
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", help="interpreter that has the other packages")
    parser.add_argument("--only", nargs="*", default=list(PEERS), help="of the other packages")
    parser.add_argument("--rank", type=int, default=61)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        peer(args.peer, str(args.folder))
        return
    print("| package | s | CPU s | GB | NMAE | RMSE |\n|---|---|---|---|---|---|")
    fit = [
        "--protocol",
        "random",
        "--model",
        "factor",
        "--dtype",
        "float32",
        "--rank",
        str(args.rank),
    ]
    row(
        "this package, from the file",
        own(args.folder, [*fit, "--iterations", str(args.iterations)]),
    )
    if args.python:
        beside(args)


def beside(args: argparse.Namespace) -> None:
    """The other packages on the same split."""
    from gmc_core.fitting.config import ExperimentConfig
    from gmc_core.fitting.preparing import make_split, prepare
    from gmc_core.protocol.metrics import score

    config = ExperimentConfig(data=str(args.folder), protocol="random")
    split = make_split(config, prepare(config), 0)
    train = split.train
    with tempfile.TemporaryDirectory() as place:
        arrays = Path(place) / "split.npz"
        np.savez(
            arrays, users=train.rows.astype(np.int32), items=train.indices,
            values=train.values.astype(np.float32), shape=(train.n_users, train.n_items),
            test_users=split.test_users, test_items=split.test_items,
        )  # fmt: skip
        actual, scale, unseen = split.test_values, train.scale, split.unseen_items
        del split, train
        for name in args.only:
            command = [args.python, __file__, str(arrays), "--peer", name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"| {name} | {done.stderr.strip().splitlines()[-1]} |||||", flush=True)
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            predicted = Path(f"{arrays}.found.npy")
            if predicted.is_file():
                scores = score(np.load(predicted), actual, scale, unseen)
                predicted.unlink()
                found |= {"nmae": scores.nmae, "rmse": scores.rmse}
            row(name, found)


def row(name: str, found: dict[str, Any]) -> None:
    """One line of the table."""
    cells = [f"{found['seconds']:.0f}", f"{found['cpu']:.0f}", f"{found['gigabytes']:.1f}"]
    cells += [f"{found[one]:.4f}" if one in found else "–" for one in ("nmae", "rmse")]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
