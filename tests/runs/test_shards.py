"""The E-step of a low-rank fit shared by two processes: the same to rounding, whatever happens."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from commands import refused, run
from store_workers import small, wait_for

from gmc_core.base.errors import ConfigError, NumericalError
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.experiment import Experiment
from gmc_core.fitting.inputs import FitInputs
from gmc_core.fitting.preparing import make_split, prepare
from gmc_core.gaussian.factor import believe
from gmc_core.gaussian.linalg.progress import StepShare
from gmc_core.gaussian.linalg.threads import Cancelled, ThreadPool
from gmc_core.gaussian.ordinal import LatentResponses
from gmc_core.model.model_file import load_model
from gmc_core.runs.cluster import shards
from gmc_core.runs.cluster.cluster import Cluster
from gmc_core.runs.cluster.shards import ShardedBeliefs, cut

pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster("local:2", 1) as found:
        yield found


def low_rank(**changes) -> ExperimentConfig:
    return small(model="factor", noise=0.5, rank=7, iterations=4, **changes)


def here(config: ExperimentConfig) -> Experiment:
    found = Experiment(config, team=ThreadPool(2))
    found.run()
    return found


def close(one: Experiment, other: Experiment, rtol: float = 1e-8) -> None:
    assert len(one.done) == len(other.done) == len(one.config.seeds)
    for mine, its in zip(one.done, other.done, strict=True):
        np.testing.assert_allclose(mine.predictions, its.predictions, rtol=rtol)
        likelihoods = [[r.log_likelihood for r in result.records] for result in (mine, its)]
        np.testing.assert_allclose(*likelihoods, rtol=rtol)
    a, b = (found.fit.model().gaussian for found in (one, other))
    np.testing.assert_allclose(a.mean, b.mean, rtol=rtol)
    scale = np.abs(a.covariance.factor).max()
    np.testing.assert_allclose(a.covariance.factor, b.covariance.factor, atol=rtol * scale)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"ordered": False},
        {"protocol": "strong", "repetitions": 2},
        {"shards": 5},
    ],
    ids=str,
)
def test_shards_add_up_to_the_fit_of_this_process(cluster, changes) -> None:
    own = {name: changes[name] for name in ("protocol", "repetitions") if name in changes}
    fit = {name: changes[name] for name in ("ordered",) if name in changes}
    config = replace(low_rank(**fit), **own)
    alone = here(config)
    shared = cluster.sharded(config, prepared=alone.prepared, shards=changes.get("shards", 0))
    told = []
    shared.run(lambda index, record: told.append((index, record.iteration)))
    close(alone, shared)
    assert told == [(r, t) for r in range(config.repetitions) for t in range(1, 5)]


def test_attributes_of_users_are_shared_too(cluster, tmp_path) -> None:
    """Γ needs the factors of all users, and the shards the covariates of theirs."""
    from making import movielens_folder

    config = replace(low_rank(), data=str(movielens_folder(tmp_path)), weak_users=None)
    alone = here(config)
    assert len(alone.fit.groups)
    shared = cluster.sharded(config, prepared=alone.prepared)
    shared.run()
    close(alone, shared)


def test_every_shard_begins_from_the_latent_responses_of_its_own(cluster) -> None:
    """Where the workers have none of a state, as after a resume, they are sent."""
    config = low_rank()
    prepared = prepare(config)
    inputs = FitInputs.of(make_split(config, prepared, 0), config.fit)
    gaussian = here(config).fit.model().gaussian
    latent = LatentResponses(inputs.ordinal, inputs.signals.values)
    values = latent.first_guess + 0.05
    own, mine = values.copy(), values.copy()
    kwargs = {"rounds": 200, "tolerance": 1e-9, "sums": True}
    expected, sums = believe(
        inputs.signals, gaussian, inputs.noise, inputs.team, latent, own, **kwargs
    )
    beliefs = ShardedBeliefs(cluster, inputs, 2)
    told, add = [], inputs.team.progress.add
    inputs.team.progress.begin("E-step")
    inputs.team.progress.add = lambda work: told.append(add(work) or inputs.team.progress.now())
    found, shared = beliefs(gaussian, mine, (7, 8), **kwargs)
    assert told == [StepShare("E-step", 0.5), StepShare("E-step", 1.0)]
    np.testing.assert_allclose(mine, own, rtol=1e-10)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-9)
    for name in ("moments", "pulls", "whole", "factors"):
        wanted = getattr(sums, name)
        np.testing.assert_allclose(getattr(shared, name), wanted, atol=1e-9 * np.abs(wanted).max())
    assert sum(cluster._client.run(lambda: len(shards._kept)).values()) >= 2
    before = cluster._client.run(lambda: len(shards._kept))
    beliefs.close()
    after = lambda: cluster._client.run(lambda: len(shards._kept))  # noqa: E731
    wait_for(lambda: sum(after().values()) == sum(before.values()) - 2, seconds=30)


def test_a_worker_that_dies_costs_time_and_no_figure(cluster) -> None:
    config = replace(low_rank(), fit=replace(low_rank().fit, iterations=12))
    prepared = prepare(config)
    quiet = cluster.sharded(config, prepared=prepared)
    quiet.run()
    before = cluster._client.run(os.getpid)
    told = []

    def kill(index, record) -> None:
        told.append(record.iteration)
        if record.iteration in (3, 6):
            alive = cluster._client.run(os.getpid)
            os.kill(next(iter(alive.values())), signal.SIGKILL)

    noisy = cluster.sharded(config, prepared=prepared)
    noisy.run(kill)
    assert told == list(range(1, 13))
    assert noisy.done[0].predictions.tobytes() == quiet.done[0].predictions.tobytes()
    assert [r.log_likelihood for r in noisy.records] == [r.log_likelihood for r in quiet.records]
    assert set(before.values()) != set(cluster._client.run(os.getpid).values())


def test_cancel_reaches_the_workers(cluster) -> None:
    config = replace(low_rank(), fit=replace(low_rank().fit, iterations=1000))
    wanted = threading.Event()
    team = ThreadPool(1, should_stop=wanted.is_set)
    experiment = cluster.sharded(config, prepared=prepare(config), team=team)
    with pytest.raises(Cancelled):
        experiment.run(lambda index, record: record.iteration == 3 and wanted.set())
    busy = lambda dask_worker: len(dask_worker.active_threads)  # noqa: E731
    wait_for(lambda: sum(cluster._client.run(busy).values()) == 0, seconds=30)
    assert experiment.fit.iteration == 3  # what was reached is here


def test_an_error_is_that_of_the_fit(cluster, monkeypatch) -> None:
    config = low_rank(dtype="float32")
    prepared = prepare(config)
    inputs = FitInputs.of(make_split(config, prepared, 0), config.fit)
    gaussian = here(config).fit.model().gaussian
    broken = replace(gaussian, mean=np.full_like(gaussian.mean, np.nan))
    beliefs = ShardedBeliefs(cluster, inputs, 2)
    with pytest.raises(NumericalError):
        beliefs(broken, None, (0, 1), rounds=5, tolerance=1e-6, sums=True)
    beliefs.close()


def test_a_worker_of_another_version_is_refused(cluster, monkeypatch) -> None:
    monkeypatch.setattr(shards, "package_version", lambda: "9.9")
    experiment = cluster.sharded(low_rank(), prepared=prepare(low_rank()))
    with pytest.raises(Exception, match=r"the fit is of version 9\.9"):
        experiment.run()


def test_shards_are_of_equal_work() -> None:
    signals = FitInputs.of(make_split(small(), prepare(small()), 0), small().fit).signals
    for count in (1, 2, 3, 7, 10_000):
        spans = cut(signals, 5, count)
        assert spans[0][0] == 0 and spans[-1][1] == signals.count
        assert all(a < b for a, b in spans)
        assert all(end == begin for (_, end), (begin, _) in zip(spans, spans[1:], strict=False))
        assert len(spans) == min(count, signals.count) or count == 10_000
    work = [signals.sizes[a:b].sum() * 25 + 125 * (b - a) for a, b in cut(signals, 5, 3)]
    assert max(work) < 1.2 * min(work)


def test_other_models_have_no_shards(cluster) -> None:
    with pytest.raises(ConfigError, match="--model factor"):
        cluster.sharded(small(), prepared=prepare(small()))


# The command ---------------------------------------------------------------------------


def test_the_command(cluster, capsys, tmp_path) -> None:
    # Of a worker that an earlier test has killed the next may still be on its way.
    cluster._client.wait_for_workers(2, timeout=60)
    model = tmp_path / "m.npz"
    given = ["--data", "sample", "--max-items", "60", "--model", "factor", "--rank", "5"]
    where = ["--dask", cluster._local.scheduler_address]
    code, out, err = run(
        capsys, "fit", *given, *where, "--shards", "--iterations", "2", "--model-out", model
    )
    assert code == 0 and "NMAE" in out
    assert "iteration 2 of 2" in err
    assert load_model(model).iteration == 2
    assert "give --dask" in refused(capsys, "fit", *given, "--shards")
    other = ["--data", "sample", "--max-items", "60", *where, "--shards", "3"]
    assert "--model factor" in refused(capsys, "fit", *other)
