"""Runs in any state in a real store, with made-up records: nothing is computed."""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st
from made_records import record
from making import random_table, ratings_of
from streamlit.testing.v1 import AppTest

from gmc_core.comparison.comparators import BASELINES, ItemKnn
from gmc_core.comparison.comparators.method import Method
from gmc_core.comparison.compare import compare
from gmc_core.comparison.comparison_files import method_key
from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.preparing import prepare
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.filters import Filter
from gmc_core.protocol.metrics import Scores
from gmc_core.protocol.splits import weak_split
from gmc_core.runs.comparisons import comparison_of, summary_of
from gmc_core.runs.store import Run, Store
from gmc_core.runs.store import queue as worker_side
from gmc_core.runs.store.cells import Cell
from gmc_core.runs.sweeps import SweepConfig, submit_or_find_sweep

APP = str(Path(__file__).parent.parent / "app.py")
SMALL = Filter(max_items=60)
DATA = {
    "name": "sample",
    "sha256": prepare(ExperimentConfig(filter=SMALL)).data_sha256,
    "side_sha256": prepare(ExperimentConfig(filter=SMALL)).ratings.side_sha256,
    "users": 600,
    "items": 60,
    "ratings": 9000,
    "scale": [0.5, 5.0, 0.5],
    "divisor": 1.65,
}
ML1M = {**DATA, "name": "ml-1m", "users": 6040, "items": 3592, "scale": [1.0, 5.0, 1.0]}


def small(**changes: Any) -> ExperimentConfig:
    """An experiment on 60 titles of the sample."""
    return ExperimentConfig(**{"filter": SMALL, "fit": FitSettings(iterations=4), **changes})


def summary(nmae: float = 0.42, n: int = 500, se: float = 0.02) -> dict[str, Any]:
    """A run's summary as the worker writes it."""
    scores = Scores(n, nmae, se, 0.7, 0.9, nmae, 0.7, 0.9, 0.9, 1.65)
    return {**scores.as_dict(), "seconds": 12.0, "peak_rss_bytes": 10**8}


def stored(
    store: Store,
    state: str = "finished",
    config: ExperimentConfig | None = None,
    *,
    done: int | None = None,
    data: dict[str, Any] = DATA,
    nmae: float = 0.42,
    message: str = "",
    kind: str = "",
    label: str = "",
) -> Run:
    """A run in ``state``, with ``done`` iterations in its only begun repetition.

    A finished run has all its iterations. kind : of the error of one that failed.
    """
    config = config or small()
    run = store.submit(config, label=label, again=True)
    if state == "queued":
        return run
    name = secrets.token_hex(4)
    worker_side.register(store, name, beside=True)
    claim = worker_side.take(store, name)
    assert claim is not None
    assert claim.run.id == run.id, "an older run was waiting"
    claim.describe(data)
    total = config.fit.iterations
    finished = state == "finished"
    for repetition in range(run.repetitions if finished else 1):
        claim.start_at(repetition, [], {"seconds": 1.0})
        for t in range(1, (total if finished or done is None else done) + 1):
            claim.add_record(repetition, record(t, nmae + 0.1 / t + 0.003 * repetition))
    if state != "running":
        claim.end(state, message, summary(nmae) if finished else None, error_kind=kind or None)
        worker_side.retire(store, name)
    return store.run(run.id)


def stored_sweep(store: Store, finished: int = 4, state: str = "finished") -> Run:
    """A sweep of 2 ε × L 2 and 4 × 2 seeds, of which the first children are finished.

    state : of the child after them ("queued" leaves it and the rest as they are).
    """
    sweep = SweepConfig(small(), epsilons=(0.1, 0.3), iterations=(2, 4), seeds=(0, 1))
    parent = submit_or_find_sweep(store, sweep)[0]
    name = secrets.token_hex(4)
    worker_side.register(store, name, beside=True)
    for index in range(4):
        if index > finished or (index == finished and state == "queued"):
            break
        claim = worker_side.take(store, name)
        assert claim is not None
        claim.describe(DATA)
        claim.start_at(0, [], {"seconds": 1.0})
        config = claim.run.config
        base = 0.4 + 0.01 * (config.fit.epsilon == 0.1) + 0.003 * config.seed
        for t in range(1, 5 if index < finished else 2):
            claim.add_record(0, record(t, base + 0.1 / t))
        if index < finished:
            claim.end("finished", "", summary(base))
        elif state != "running":
            claim.end(state, "Σ is not positive definite. Raise ε." if state == "failed" else "")
    if state in ("cancelled", "interrupted", "failed"):
        store.cancel(parent.id)
    if state != "running":
        worker_side.retire(store, name)
    return store.run(parent.id)


FEW_RATINGS = ratings_of(*random_table(60, 20, 0.5, 2))
METHODS: list[Method] = [BASELINES["bias"], ItemKnn(), BASELINES["item"]]


def stored_comparison(
    store: Store,
    state: str = "finished",
    *,
    done: int = 3,
    methods: list[Method] = METHODS,
    failures: tuple[tuple[str, str], ...] = (),
    message: str = "",
    label: str = "",
    config: ExperimentConfig | None = None,
    data: dict[str, Any] = DATA,
) -> Run:
    """A comparison on three splits in ``state``, of which ``done`` are computed.

    Its figures are those of ``FEW_RATINGS``. failures : method and reason, on the first split.
    """
    plan = ComparisonPlan.of(methods, (0, 1, 2))
    config = config or ExperimentConfig(filter=SMALL)
    run, _ = store.submit_comparison(config, plan, label=label, again=True)
    if state == "queued":
        return run
    name = secrets.token_hex(4)
    worker_side.register(store, name, beside=True)
    claim = worker_side.take(store, name, run.id)
    assert claim is not None
    claim.describe({**data, "scale": [1.0, 5.0, 1.0]})
    told = dict(failures)
    able = [method for method in methods if method.name not in told]
    splits = [weak_split(FEW_RATINGS, seed) for seed in range(done)]
    result = compare(able, splits, folder=claim.folder) if splits else None
    for index, key in enumerate(result.held_out if result else ()):
        for method in methods:
            cell = Cell(index, method.name, "failed", 0.0, key, method_key(method))
            if method in able:
                assert result is not None
                cost = result.outcomes[method.name, key].seconds
                cell = replace(cell, state="done", nmae=0.4, seconds=cost)
            else:
                cell = replace(cell, failure=told[method.name])
            claim.put_cell(cell)
    if state == "running":
        if done:
            claim.put_cell(Cell(done, methods[0].name, "running", time.time(), "later", "later"))
        return store.run(run.id)
    found = comparison_of(store, store.run(run.id))
    ended = state == "finished" and found is not None
    claim.end(state, message, summary_of(found) if ended and found is not None else None)
    worker_side.retire(store, name)
    return store.run(run.id)


def use_folders(tmp_path: Path, monkeypatch: Any) -> list[Store]:
    """A home of the test's own, and no worker; returns the stores that asked for one."""
    monkeypatch.setenv("GMC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GMC_CACHE", str(tmp_path / "cache"))
    st.cache_resource.clear()
    asked: list[Store] = []
    monkeypatch.setattr("gmc_core.runs.worker.ensure_worker", asked.append)
    return asked


def opened(page: str, **query: str) -> AppTest:
    """A page as its URL opens it."""
    at = AppTest.from_file(APP, default_timeout=60)
    at.session_state["gmc_dashboard.entered"] = True  # as app.py does, which is not run first here
    for name, value in query.items():
        at.query_params[name] = value
    return at.switch_page(f"pages/{page}.py").run()


def texts(at: AppTest) -> str:
    """All sentences of a page."""
    kinds = (at.markdown, at.caption, at.success, at.info, at.warning, at.error)
    return "\n".join(element.value for kind in kinds for element in kind)


def charts(at: AppTest) -> list[str]:
    """The text alternatives of the page's charts."""
    return [element.proto.alt for element in at.get("plotly_chart")]
