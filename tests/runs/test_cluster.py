"""Fits on a cluster of two processes: the same to the last bit, whatever happens to them."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from store_workers import figures, small
from store_workers import wait_for as wait_longer

from gmc_core.base.errors import ClusterError, ConfigError, NumericalError
from gmc_core.base.extras import DISTRIBUTION, EXTRAS
from gmc_core.cli import main
from gmc_core.comparison.comparators import method_named
from gmc_core.comparison.compare import Comparison, compare
from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.experiment import Experiment
from gmc_core.fitting.fit import IterationRecord
from gmc_core.fitting.preparing import make_split, prepare
from gmc_core.gaussian.linalg.threads import Cancelled, ThreadPool
from gmc_core.gaussian.settings import FitSettings
from gmc_core.model.model_file import load_model
from gmc_core.protocol.filters import Filter
from gmc_core.runs.cluster.cluster import Cluster
from gmc_core.runs.store import Store, artifacts
from gmc_core.runs.sweeps import SweepConfig, submit_or_find_sweep
from gmc_core.runs.worker import on_cluster, work

pytest.importorskip("distributed")
THREADS = 2


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster("local:2", THREADS) as found:
        yield found


def wait_for(condition: Callable[[], object]) -> None:
    wait_longer(condition, seconds=30)


def processes(cluster: Cluster) -> dict[str, int]:
    return cluster._client.run(os.getpid)


def computing_now(cluster: Cluster) -> list[str]:
    """Addresses of the workers that are at a fit."""
    return [address for address, keys in cluster._client.processing().items() if keys]


@pytest.fixture
def long() -> ExperimentConfig:
    """A fit that is stopped long before its end."""
    return replace(small(iterations=1000), repetitions=1)


# The same figures ----------------------------------------------------------------------


def undisturbed(config: ExperimentConfig) -> Experiment:
    found = Experiment(config, team=ThreadPool(THREADS))
    found.run()
    return found


def equal(one: Experiment, other: Experiment) -> None:
    timings = {"e_seconds": 0.0, "m_seconds": 0.0, "evaluation_seconds": 0.0}
    assert len(one.done) == len(other.done) == len(one.config.seeds)
    for mine, its in zip(one.done, other.done, strict=True):
        assert mine.predictions.tobytes() == its.predictions.tobytes()
        assert [replace(r, **timings) for r in mine.records] == [
            replace(r, **timings) for r in its.records
        ]
        assert (mine.scores, mine.baselines) == (its.scores, its.baselines)


@pytest.mark.parametrize(
    "settings", [{}, {"model": "factor", "noise": 0.5}, {"dtype": "float32"}], ids=str
)
def test_repetitions_are_those_of_this_process(cluster, settings) -> None:
    config = replace(small(**settings), repetitions=3)
    here, told = undisturbed(config), []
    there = cluster.experiment(config, prepared=here.prepared, wants_state=True)
    there.run(lambda index, record: told.append((index, record.iteration)))
    equal(here, there)
    assert told == [(index, t) for index in range(3) for t in range(1, 6)]
    one, other = here.fit.model(), there.fit.model()
    every = np.arange(one.layout.dimension)
    assert np.array_equal(
        one.gaussian.covariance.rows(every), other.gaussian.covariance.rows(every)
    )
    assert np.array_equal(one.gaussian.mean, other.gaussian.mean)
    assert there.result()["summary"]["nmae"] == here.result()["summary"]["nmae"]


def test_ratings_without_a_file_are_sent(cluster, tmp_path) -> None:
    path = tmp_path / "ratings.csv"
    lines = [f"{u},{i},{1 + (3 * u + i * i) % 5}" for u in range(30) for i in range(9)]
    path.write_text("user,item,rating\n" + "\n".join(lines))
    config = ExperimentConfig(data=str(path), filter=Filter(1, 1), fit=FitSettings(iterations=2))
    prepared = prepare(config)
    expected = Experiment(config, prepared=prepared, team=ThreadPool(THREADS))
    expected.run()
    path.write_text("user,item,rating\n1,1,5\n")  # other ratings than those that were read
    there = cluster.experiment(config, prepared=prepared)
    there.run()
    equal(expected, there)


def test_an_error_is_that_of_the_fit(cluster, monkeypatch) -> None:
    config = small(epsilon=0.0, noise=1e-300, initial=1e-300)
    with pytest.raises(NumericalError) as here:
        Experiment(config).run()
    there = cluster.experiment(config, prepared=prepare(config))
    with pytest.raises(type(here.value)) as found:
        there.run()
    assert str(found.value) == str(here.value)
    assert (found.value.kind, found.value.iteration) == (here.value.kind, here.value.iteration)
    assert there.result()["repetitions"] == []


def comparison(begin: dict, config: ExperimentConfig, prepared, names=("paper", "bias", "knn")):
    methods = [method_named(name, prepared.ratings.scale, {}) for name in names]
    splits = (make_split(config, prepared, seed) for seed in (0, 1))
    ended: list[tuple[int, str]] = []

    def on_end(step, _: Comparison) -> None:
        ended.append((step.split_index, step.method.name))

    return compare(methods, splits, team=ThreadPool(THREADS), on_end=on_end, **begin), ended


def test_a_comparison_is_that_of_this_process(cluster) -> None:
    config = small()
    prepared = prepare(config)
    here, order = comparison({}, config, prepared)
    there, ended = comparison(cluster.for_compare(config, prepared), config, prepared)
    assert ended == order
    assert here.outcomes.keys() == there.outcomes.keys() and not there.failures
    for place, outcome in here.outcomes.items():
        assert outcome.predictions.tobytes() == there.outcomes[place].predictions.tobytes()


def test_a_fit_whose_worker_dies_is_done_again_and_told_once(cluster) -> None:
    config = replace(small(iterations=60), repetitions=2)
    here, told = undisturbed(config), []
    pids = processes(cluster)

    def record(index: int, record: IterationRecord) -> None:
        told.append((index, record.iteration))
        if len(told) == 5:
            for address in computing_now(cluster):
                os.kill(pids[address], signal.SIGKILL)

    there = cluster.experiment(config, prepared=here.prepared)
    there.run(record)
    equal(here, there)
    assert told == [(index, t) for index in (0, 1) for t in range(1, 61)]
    assert not set(pids.values()) & set(processes(cluster).values())


# The store -----------------------------------------------------------------------------


def swept(
    path: Path, sweep: SweepConfig, compute: Callable[[Store, str], None]
) -> tuple[Store, list]:
    store = Store(path)
    parent = submit_or_find_sweep(store, sweep, keep_models=True)[0]
    compute(store, parent.id)
    assert store.run(parent.id).state == "finished"
    return store, store.runs(parent=parent.id)


def test_a_killed_worker_costs_time_and_no_figure(cluster, tmp_path, monkeypatch) -> None:
    """A sweep of twenty, one process killed amid a fit: all are there, none twice."""
    monkeypatch.setenv("GMC_THREADS", str(THREADS))
    epsilons = tuple(0.1 * (1 + k) for k in range(10))
    sweep = SweepConfig(replace(small(), filter=Filter(max_items=100)), epsilons, (2, 5), (0, 1))
    quiet, expected = swept(
        tmp_path / "quiet", sweep, lambda store, _: work(store, idle_seconds=0, polite=False)
    )
    before = processes(cluster)

    def compute(store: Store, parent: str) -> None:
        ids = {child.id for child in store.runs(parent=parent)}
        with on_cluster.computing(store.path, cluster, ids, parent) as check:
            wait_for(lambda: store.run(parent).children.get("finished", 0) >= 3)
            os.kill(before[wait_longer(lambda: computing_now(cluster))[0]], signal.SIGKILL)
            wait_for(lambda: store.run(parent).ended_for_good)
            check()

    noisy, found = swept(tmp_path / "noisy", sweep, compute)
    assert set(processes(cluster).values()) != set(before.values())
    assert len(found) == 20
    for one, other in zip(expected, found, strict=True):
        assert figures(quiet, one.id) == figures(noisy, other.id)
        models = [store.model(run.id) for store, run in ((quiet, one), (noisy, other))]
        matrices = [model.gaussian.covariance.matrix for model in models]
        assert np.array_equal(*matrices)
        names = [
            {path.name for path in store.folder(run.id).iterdir()}
            for store, run in ((quiet, one), (noisy, other))
        ]
        assert names[0] == names[1]
        last = [
            artifacts.picture_path(store.folder(run.id), 0, 5).read_bytes()
            for store, run in ((quiet, one), (noisy, other))
        ]
        assert last[0] == last[1]


def test_queued_fits_and_comparisons_are_computed(cluster, tmp_path) -> None:
    stores = [Store(tmp_path / name) for name in ("here", "there")]
    plan = ComparisonPlan(("bias", "paper"), ("Bias", "Paper"), "bias", (0, 1))
    for store in stores:
        store.submit(replace(small(), repetitions=3))
        store.submit_comparison(replace(small(), weak_users=None), plan)
    work(stores[0], idle_seconds=0, polite=False)
    on_cluster.Loops(stores[1].path, cluster, idle_seconds=0).join()
    runs = [{run.kind: run for run in store.runs()} for store in stores]
    assert [run.state for run in runs[1].values()] == ["finished"] * 2
    assert figures(stores[0], runs[0]["run"].id) == figures(stores[1], runs[1]["run"].id)
    cells = [
        [(c.split, c.method, c.state, c.nmae) for c in store.cells(found["comparison"].id)]
        for store, found in zip(stores, runs, strict=True)
    ]
    assert cells[0] == cells[1] and len(cells[0]) == 4


# Stopping ------------------------------------------------------------------------------


def busy(cluster: Cluster) -> int:
    """How many fits the workers are at, whatever the scheduler believes."""
    counts = cluster._client.run(lambda dask_worker: len(dask_worker.active_threads))
    return sum(counts.values())


def test_cancel_reaches_the_worker(cluster, long) -> None:
    wanted = threading.Event()
    team = ThreadPool(1, should_stop=wanted.is_set)
    experiment = cluster.experiment(long, prepared=prepare(long), team=team)
    with pytest.raises(Cancelled):
        experiment.run(lambda index, record: record.iteration == 3 and wanted.set())
    wait_for(lambda: busy(cluster) == 0)
    assert experiment.result()["repetitions"] == []
    again = cluster.experiment(small(), prepared=experiment.prepared)
    again.run()
    assert again.finished


def test_a_run_that_is_cancelled_in_the_store_ends(cluster, long, tmp_path) -> None:
    store = Store(tmp_path)
    run = store.submit(long)
    with on_cluster.computing(store.path, cluster, {run.id}, run.id):
        wait_for(lambda: store.run(run.id).iteration > 2)
        store.cancel(run.id)
        wait_for(lambda: store.run(run.id).state == "cancelled")
        wait_for(lambda: busy(cluster) == 0)
    assert store.rows("SELECT 1 FROM workers") == []


def test_leaving_interrupts_what_is_being_computed(cluster, long, tmp_path) -> None:
    store = Store(tmp_path)
    run = store.submit(long)
    with on_cluster.computing(store.path, cluster, {run.id}, run.id):
        wait_for(lambda: store.run(run.id).iteration > 2)
    assert store.run(run.id).state == "interrupted"
    wait_for(lambda: busy(cluster) == 0)


# What is missing -----------------------------------------------------------------------


def test_the_missing_extra_is_named(monkeypatch, capsys) -> None:
    monkeypatch.setitem(EXTRAS, "dask", {"dask": "no_such_module", "distributed": "nor_this"})
    assert main(["fit", "--data", "sample", "--max-items", "30", "--dask", "local"]) == 2
    told = capsys.readouterr().err
    assert "A cluster needs dask and distributed, which are not installed" in told
    assert f"pip install '{DISTRIBUTION}[dask]'" in told


@pytest.mark.parametrize(
    ("where", "words"),
    [("nowhere", "tcp://host:8786"), ("local:0", "at least 1"), ("local:x", "at least 1")],
)
def test_other_words_are_refused(where: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Cluster(where)


def test_nobody_there(monkeypatch) -> None:
    monkeypatch.setattr("gmc_core.runs.cluster.cluster.CONNECT_SECONDS", 0.2)
    with pytest.raises(ConfigError, match="No Dask scheduler answers"):
        Cluster("tcp://127.0.0.1:1")


def test_workers_that_take_several_fits_at_a_time_are_refused() -> None:
    from distributed import LocalCluster

    other = LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0")
    with other, pytest.raises(ConfigError, match="--resources gmc-fit=1"):
        Cluster(other.scheduler_address)


def test_workers_of_another_version_are_refused(cluster, monkeypatch) -> None:
    address = cluster._local.scheduler_address
    with pytest.raises(ConfigError, match="leave out --threads"):
        Cluster(address, threads=3)
    monkeypatch.setattr("gmc_core.runs.cluster.cluster.package_version", lambda: "9.9")
    with pytest.raises(ConfigError, match=r"and this is 9\.9"):
        Cluster(address)


def test_a_worker_of_another_version_that_joins_later(cluster, monkeypatch) -> None:
    monkeypatch.setattr("gmc_core.runs.cluster.tasks.package_version", lambda: "9.9")
    with pytest.raises(ClusterError, match=r"the fit is of version 9\.9"):
        cluster.experiment(small(), prepared=prepare(small())).run()


# Commands ------------------------------------------------------------------------------


@pytest.fixture
def at_cluster(cluster, tmp_path, monkeypatch) -> list[str]:
    """What a command is given to compute there; runs are those of the test."""
    # Of a worker that an earlier test has killed the next may still be on its way.
    cluster._client.wait_for_workers(2, timeout=60)
    monkeypatch.setenv("GMC_HOME", str(tmp_path / "home"))
    return ["--data", "sample", "--max-items", "60", "--dask", cluster._local.scheduler_address]


def test_a_fit_with_its_model(at_cluster, tmp_path, capsys) -> None:
    model, result = tmp_path / "m.npz", tmp_path / "r.json"
    given = ["--iterations", "2", "--repetitions", "2", "--model-out", str(model)]
    assert main(["fit", *at_cluster, *given, "--json", str(result)]) == 0
    assert "a cluster of 2 workers, 4 threads in all" in capsys.readouterr().err
    found = json.loads(result.read_text())
    assert [len(part["records"]) for part in found["repetitions"]] == [2, 2]
    assert load_model(model).iteration == 2


def test_a_sweep_and_a_comparison(at_cluster, capsys) -> None:
    given = ["--epsilon", "0.1,1", "--iterations", "2", "--json", "-"]
    assert main(["sweep", *at_cluster, *given]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [line["state"] for line in found["results"]] == ["finished"] * 2
    assert main(["compare", *at_cluster, "--methods", "paper,bias", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["splits"] for row in found["methods"]] == [1, 1]
    with Store() as store:
        assert store.rows("SELECT 1 FROM workers") == []
        assert {run.state for run in store.runs()} == {"finished"}


def test_the_worker_of_the_dashboard(at_cluster, monkeypatch) -> None:
    monkeypatch.setenv("GMC_DASK", at_cluster[-1])
    with Store() as store:
        run = store.submit(small())
        assert main(["worker", "--idle-seconds", "0"]) == 0
        assert store.run(run.id).state == "finished"
        assert store.model(run.id).iteration == 5


def test_detaching_is_refused(at_cluster, capsys) -> None:
    assert main(["sweep", *at_cluster, "--epsilon", "1", "--detach"]) == 2
    assert "GMC_DASK" in capsys.readouterr().err
