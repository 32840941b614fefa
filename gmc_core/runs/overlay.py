"""Runs that were tested on the same held-out ratings, side by side.

for other in on_same_split(store, run): ...
difference(store, other, run)        # of NMAE, paired, with its interval
telling_settings([run, *others])           # only what tells them apart
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gmc_core.data.ratings import RatingScale
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.metrics import PairedDifference, normalized_errors, paired_difference
from gmc_core.runs.store import Run, Store
from gmc_core.runs.store.keys import usual_counts
from gmc_core.runs.store.naming import differing_words
from gmc_core.runs.store.submitting import source_of


def split_key(run: Run) -> str:
    """What decides a run's held-out ratings, but for the seeds: data, filter, protocol, users.

    Of a run whose data have not been seen yet, by the name and age of its files.
    """
    config, data = run.config, run.data or {}
    values = replace(
        config, fit=FitSettings(), seed=0, repetitions=1, expected={}, **usual_counts(config, data)
    ).as_dict()
    for name in ("data", "reading", "train_file", "test_file"):
        del values[name]
    values["content"] = run.data_sha256 or source_of(config)
    return json.dumps(values, sort_keys=True)


def common_seeds(run: Run, other: Run) -> tuple[int, ...]:
    """The seeds of the splits that both runs are tested on."""
    if run.config.protocol == "none" or not _one_split(run, other):
        return ()
    if run.config.protocol == "pair":
        return run.seeds[:1]
    return tuple(sorted(set(run.seeds) & set(other.seeds)))


def _one_split(run: Run, other: Run) -> bool:
    if run.data_sha256 is None or other.data_sha256 is None:
        # Not seen yet: the same files, read alike, hold the same ratings.
        run, other = (replace(each, data_sha256=None, data=None) for each in (run, other))
    return split_key(run) == split_key(other)


def on_same_split(store: Store, run: Run) -> list[Run]:
    """Other runs with held-out ratings in common, newest first; no sweeps and no children."""
    return [
        other
        for other in store.runs()
        if other.id != run.id and other.kind == "run" and common_seeds(run, other)
    ]


def difference(store: Store, run: Run, other: Run) -> PairedDifference | None:
    """NMAE of ``run`` less that of ``other`` over the ratings that both predicted.

    None where either has not finished a split in common, or its predictions are gone.
    """
    data = run.data or other.data
    if not data or not data.get("scale"):
        return None
    scale, own, others = RatingScale(*data["scale"]), [], []
    for seed in common_seeds(run, other):
        one = store.held_out(run.id, run.seeds.index(seed))
        two = store.held_out(other.id, other.seeds.index(seed))
        if one is None or two is None:
            continue
        if not one.same_ratings(two):  # one of them was computed by a version that drew otherwise
            return None
        own.append(normalized_errors(one.predictions, one.actual, scale))
        others.append(normalized_errors(two.predictions, two.actual, scale))
    if sum(map(len, own)) < 2:
        return None
    return paired_difference(np.concatenate(own), np.concatenate(others))


def telling_settings(runs: Sequence[Run]) -> dict[str, str]:
    """id → the settings in which these runs differ; the whole name where they do not."""
    return {
        run.id: words or run.title for run, words in zip(runs, differing_words(runs), strict=True)
    }
