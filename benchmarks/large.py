"""Ratings of the shape of MovieLens 25M and 32M, as files; and how long their way to a split is.

    python -m benchmarks.large write ml-32m FOLDER [--scale 0.1] [--seed 0]
    python -m benchmarks.large time FOLDER
    python -m benchmarks.large items [--titles 10000 30000 87585] [--ratings 3000000]

``items`` writes nothing: it makes ratings of several numbers of titles, as many of as many users
each, and prints what a low-rank fit to them takes, as a Markdown table.

The sets themselves may not be redistributed. What is written has their numbers of users, titles
and ratings, and like them many users with few ratings and some with thousands, a few titles that
half of the users know and ten thousand that hardly anybody does, taste of a few directions that
weaken, means of users and titles, and half stars. ``scale`` shrinks users, titles and ratings
alike. One seed gives one set of files.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
from numba import njit
from pyarrow import csv

from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.experiment import Experiment
from gmc_core.fitting.fit import Fit
from gmc_core.fitting.preparing import make_split, prepare
from gmc_core.gaussian.models import settings_for

# Users, titles, ratings. Some of the titles have no rating, as in the sets themselves.
SHAPES = {
    "ml-25m": (162_541, 62_423, 25_000_095),
    "ml-32m": (200_948, 87_585, 32_000_204),
}
LEAST = 20  # ratings of a user
MOST = 0.4  # of all titles that a user has rated
# Standard deviations of the logarithms: of a user's ratings above LEAST, of a title's popularity
USERS_SPREAD, TITLES_SPREAD = 1.39, 3.3
SATURATION = 16_000.0  # popularity, in medians, beyond which more of it brings little
UNKNOWN = 2.0  # ratings that a title gets that nobody knows
# Of a rating around 3.5: means, taste in DIRECTIONS with weights 1, 1/2, 1/3, …, and chance.
MEAN, USER_MEANS, TITLE_MEANS, TASTE, DIRECTIONS, CHANCE = 3.4, 0.42, 0.45, 0.45, 20, 0.75
GENRES = ("Action", "Comedy", "Documentary", "Drama", "Horror", "Romance", "Thriller")
BLOCK = 2_000  # users
STARS = pa.array([f"{half / 2}" for half in range(1, 11)])

Integers = npt.NDArray[np.int64]


@njit(nogil=True)
def _draw(rng, sizes, cumulative, drawn):  # type: ignore[no-untyped-def]
    """Fill ``drawn`` with each user's titles, one after another by weight, none of them twice."""
    owner = np.full(len(cumulative), -1)
    place = 0
    for user in range(len(sizes)):
        for _ in range(sizes[user]):
            title = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
            while owner[title] == user:
                title = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
            owner[title] = user
            drawn[place] = title
            place += 1


def sizes_of(users: int, titles: int, ratings: int, rng: np.random.Generator) -> Integers:
    """(users,) how many ratings each user gives; their sum is ``ratings``.

    Raises
    ------
    ValueError
        If so many users cannot give so many ratings to so few titles.
    """
    most = max(int(MOST * titles), LEAST)
    if not LEAST * users <= ratings <= most * users // 2:
        raise ValueError("These shapes have too few titles or ratings; take a larger scale.")
    more, low, high = np.exp(USERS_SPREAD * rng.normal(size=users)), 0.0, 1e6
    for _ in range(60):  # the factor that gives the wanted total
        middle = (low + high) / 2
        total = np.minimum(LEAST + middle * more, most).sum()
        low, high = (middle, high) if total < ratings else (low, middle)
    sizes = np.minimum(LEAST + low * more, most).astype(np.int64)
    while missing := ratings - int(sizes.sum()):
        sizes[np.flatnonzero(sizes < most)[:missing]] += 1
    return sizes


def blocks(
    shape: tuple[int, int, int], seed: int = 0
) -> Iterator[tuple[Integers, Integers, Integers, Integers]]:
    """Users, titles, ratings in half stars (1..10) and seconds, of ``BLOCK`` users after another.

    All are (n,), by user and title, each counted from 0.
    """
    users, titles, ratings = shape
    rng = np.random.default_rng(seed)
    sizes = sizes_of(*shape, rng)
    popular = np.exp(TITLES_SPREAD * rng.normal(size=titles))
    known = popular / (1 + popular / SATURATION)
    cumulative = np.cumsum(known / known.sum() + UNKNOWN / ratings)
    weights = 1 / np.arange(1, DIRECTIONS + 1)
    weights *= TASTE / np.linalg.norm(weights)
    loadings = (rng.normal(size=(titles, DIRECTIONS)) * weights).astype(np.float32)
    # People know the better titles.
    means = MEAN + TITLE_MEANS * (rng.normal(size=titles) + 0.15 * np.log(popular)) / 1.1
    for first in range(0, users, BLOCK):
        own = sizes[first : first + BLOCK]
        drawn = np.empty(own.sum(), np.int64)
        _draw(rng, own, cumulative, drawn)
        rows = np.repeat(np.arange(len(own)), own)
        # Those rated first, a minute's page after another, were drawn first.
        joined = rng.integers(820_000_000, 1_690_000_000, len(own))
        seconds = joined[rows] + 7 * (np.arange(len(rows)) - np.repeat(np.cumsum(own) - own, own))
        order = np.argsort(rows * titles + drawn)
        drawn, seconds = drawn[order], seconds[order]
        tastes = rng.normal(size=(len(own), DIRECTIONS)).astype(np.float32)
        value = means[drawn] + (USER_MEANS * rng.normal(size=len(own)))[rows]
        value += np.einsum("ij,ij->i", tastes[rows], loadings[drawn])
        value += CHANCE * rng.normal(size=len(rows))
        halves = np.clip(np.rint(2 * value), 1, 10).astype(np.int64)
        yield first + rows, drawn, halves, seconds


def write(folder: Path, shape: tuple[int, int, int], seed: int = 0) -> None:
    """Write ``ratings.csv`` and ``movies.csv`` in MovieLens's layout into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng([seed, 1])
    ids = np.sort(rng.choice(10 * shape[1] // 3, shape[1], replace=False)) + 1
    with (folder / "movies.csv").open("w", encoding="utf-8", newline="\n") as file:
        file.write("movieId,title,genres\n")
        years = rng.integers(1920, 2024, len(ids)).tolist()
        for number, year in zip(ids.tolist(), years, strict=True):
            genres = "|".join(sorted(rng.choice(GENRES, rng.integers(1, 4), replace=False)))
            file.write(f'{number},"Title {number}, The ({year})",{genres}\n')
    with (folder / "ratings.csv").open("wb") as file:
        file.write(b"userId,movieId,rating,timestamp\n")
        for users, titles, halves, seconds in blocks(shape, seed):
            _write_rows(file, users + 1, ids[titles], STARS.take(pa.array(halves - 1)), seconds)


def _write_rows(file: BinaryIO, *columns: object) -> None:
    table = pa.table([pa.array(column) for column in columns], names=list("uirt"))
    csv.write_csv(table, file, csv.WriteOptions(include_header=False, quoting_style="none"))


def scaled(name: str, scale: float) -> tuple[int, int, int]:
    """Users, titles and ratings of a set, all times ``scale``."""
    users, titles, ratings = (round(scale * count) for count in SHAPES[name])
    return users, titles, ratings


def measure(folder: Path) -> None:
    """Print seconds, of the clock and of processors, and memory after each step to splits."""
    import psutil

    from gmc_core.data.datasets import load_named
    from gmc_core.fitting.repetition import peak_rss_bytes
    from gmc_core.protocol.filters import Filter, apply_filter
    from gmc_core.protocol.latest_splits import latest_split
    from gmc_core.protocol.random_splits import random_split
    from gmc_core.protocol.splits import strong_split, weak_split

    clock, busy = time.perf_counter(), time.process_time()

    def tell(what: str) -> None:
        nonlocal clock, busy
        took, used = time.perf_counter() - clock, time.process_time() - busy
        now, most = psutil.Process().memory_info().rss / 1e9, peak_rss_bytes() / 1e9
        print(f"{what:<14} {took:6.1f} s, {used:5.1f} busy  {now:5.2f} GB, at most {most:.2f}")
        clock, busy = time.perf_counter(), time.process_time()

    tell("start")
    ratings = load_named(folder).ratings
    tell("read")
    _ = ratings.sha256
    tell("hash")
    ratings = apply_filter(ratings, Filter())[0]
    tell("filter")
    for split in (weak_split, strong_split, random_split, latest_split):
        split(ratings, 0)
        tell(split.__name__)


def made(shape: tuple[int, int, int], seed: int = 0) -> Ratings:
    """The ratings of a shape, in memory, with their titles and no more."""
    parts = list(blocks(shape, seed))
    users, titles, halves, _ = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Ratings.from_triplets(users, titles, halves / 2, RatingScale(0.5, 5, 0.5))


def by_items(titles: list[int], users: int, ratings: int, rank: int, iterations: int) -> None:
    """Print seconds and memory of low-rank fits to ratings of so many titles."""
    print("| ratings | items | rank | before, s | E, s | M, s | estimated GB |")
    print("|---|---|---|---|---|---|---|")
    fit = replace(settings_for("factor"), rank=rank, iterations=iterations, dtype="float32")
    config = ExperimentConfig(protocol="random", fit=fit)
    warm = ExperimentConfig(data="sample", fit=replace(fit, iterations=1))
    Experiment(warm).run()  # compiles
    for count in titles:
        prepared = prepare(config, made((users, count, ratings)))
        split = make_split(config, prepared, 0)
        began = time.perf_counter()
        running = Fit(split, fit)
        records = list(running.records())
        spent = time.perf_counter() - began - sum(record.seconds for record in records)
        e, m = (median(getattr(one, f"{name}_seconds") for one in records[1:]) for name in "em")
        print(
            f"| {len(split.train):,} | {running.signals.dimension:,} | {rank} | {spent:.1f} | "
            f"{e:.2f} | {m:.2f} | {running.cost.memory_bytes / 1e9:.2f} |",
            flush=True,
        )


def main() -> None:
    """Write or measure, as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("name", choices=list(SHAPES))
    writing.add_argument("folder", type=Path)
    writing.add_argument("--scale", type=float, default=1.0)
    writing.add_argument("--seed", type=int, default=0)
    timing = commands.add_parser("time")
    timing.add_argument("folder", type=Path)
    costing = commands.add_parser("items")
    costing.add_argument("--titles", type=int, nargs="+", default=[10_000, 30_000, 87_585])
    costing.add_argument("--users", type=int, default=30_000)
    costing.add_argument("--ratings", type=int, default=3_000_000)
    costing.add_argument("--rank", type=int, default=61)
    costing.add_argument("--iterations", type=int, default=3)
    args = parser.parse_args()
    if args.command == "write":
        write(args.folder, scaled(args.name, args.scale), args.seed)
    elif args.command == "items":
        by_items(args.titles, args.users, args.ratings, args.rank, args.iterations)
    else:
        measure(args.folder)


if __name__ == "__main__":
    main()
