"""What a run's NMAE is compared with: four baselines, and the paper's figure.

A finished run has its baselines with its result. Before, and of runs that have none,
they are computed here.

The baselines need the ratings, which take seconds to read where there are millions. A
thread computes them once per run's data and splits, so that no page waits. A failure is
not kept for others: a visitor sees it until "Try again", the next one tries anew.
"""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from gmc_core.base.errors import DataError
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.preparing import make_split, prepare
from gmc_core.gaussian.settings import FitSettings
from gmc_core.paper.reproduction import paper_nmae, table_for
from gmc_core.protocol.baselines import baselines
from gmc_core.runs.store import Run
from gmc_core.runs.store.submitting import source_of
from gmc_dashboard.shared.components import sentence_of

PAPER_LABEL = "the paper's figure"
PROBLEMS = "gmc_dashboard.baseline_problems"

Key = tuple[str, str, str]  # what decides the splits; the data's hash; their files' stamps


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
    if run.baselines:  # kept with the result
        return References({**run.baselines, **lines}, True)
    problems: dict[Key, str] = st.session_state.setdefault(PROBLEMS, {})
    key = _key(run)
    if key in problems:
        return References(lines, True, problems[key])
    job = _job(*key)
    if not job.done():
        return References(lines, False)
    error = job.exception()
    if error is None:
        return References({**job.result(), **lines}, True)
    _job.clear(*key)
    problems[key] = f"The baselines could not be computed. {sentence_of(error)}"
    return References(lines, True, problems[key])


def try_again(run: Run) -> None:
    """Forget that the baselines of a run could not be computed."""
    st.session_state.get(PROBLEMS, {}).pop(_key(run), None)


def _key(run: Run) -> Key:
    return _without_fit(run.config), run.data_sha256 or "", source_of(run.config)


def _without_fit(config: ExperimentConfig) -> str:
    """The part of a configuration that decides the splits, as a cache key."""
    return json.dumps(replace(config, fit=FitSettings()).as_dict())


@st.cache_resource
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="baselines")


@st.cache_resource(max_entries=200, show_spinner=False)
def _job(settings: str, data_sha256: str, source: str) -> Future[dict[str, float]]:
    config = ExperimentConfig.from_dict(json.loads(settings))
    return _pool().submit(_mean_baselines, config, data_sha256)


def _mean_baselines(config: ExperimentConfig, data_sha256: str) -> dict[str, float]:
    """NMAE of each baseline, the mean over the repetitions' splits."""
    prepared = prepare(config)
    if data_sha256 and prepared.data_sha256 != data_sha256:
        raise DataError(
            "The ratings are not those that this run was fitted to. Put the old file back, or fit "
            "the new one."
        )
    scores = [baselines(make_split(config, prepared, seed)) for seed in config.seeds]
    return {name: float(np.mean([each[name].nmae for each in scores])) for name in scores[0]}
