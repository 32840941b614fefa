"""What a run's NMAE is compared with: four baselines, and the paper's figure.

The baselines need the ratings, which take seconds to read where there are millions. A
thread computes them once per run's data and splits, so that no page waits.
"""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from explorer.components import escape
from gmc_core.baselines import baselines
from gmc_core.experiment import ExperimentConfig, make_split, prepare
from gmc_core.reproduction import paper_nmae, table_for
from gmc_core.settings import FitSettings
from gmc_core.store import Run

PAPER_LABEL = "the paper's figure"


@dataclass(frozen=True)
class References:
    """NMAE by label, for the lines of a chart.

    lines : empty while they are computed, and where there is no hold-out.
    ready : whether ``lines`` will not change any more.
    problem : why there are no baselines, "" if there are.
    """

    lines: dict[str, float]
    ready: bool
    problem: str = ""


def references(run: Run) -> References:
    """The reference lines of a run, as far as they are known by now."""
    config = run.config
    if config.protocol == "none":
        return References({}, True)
    table = table_for(run.data)
    paper = paper_nmae(table, config.protocol) if table else None
    lines = {} if paper is None else {PAPER_LABEL: paper}
    job = _job(_without_fit(config), run.data_sha256 or "")
    if not job.done():
        return References(lines, False)
    error = job.exception()
    if error is not None:
        return References(lines, True, f"The baselines could not be computed: {escape(str(error))}")
    return References({**job.result(), **lines}, True)


def _without_fit(config: ExperimentConfig) -> str:
    """The part of a configuration that decides the splits, as a cache key."""
    return json.dumps(replace(config, fit=FitSettings()).as_dict())


@st.cache_resource
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="baselines")


@st.cache_resource(max_entries=200, show_spinner=False)
def _job(settings: str, data_sha256: str) -> Future[dict[str, float]]:
    config = ExperimentConfig.from_dict(json.loads(settings))
    return _pool().submit(_mean_baselines, config)


def _mean_baselines(config: ExperimentConfig) -> dict[str, float]:
    """NMAE of each baseline, the mean over the repetitions' splits."""
    prepared = prepare(config)
    scores = [baselines(make_split(config, prepared, seed)) for seed in config.seeds]
    return {name: float(np.mean([each[name].nmae for each in scores])) for name in scores[0]}
