"""``--dask``: fits on a Dask cluster."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from gmc_core.base.errors import ConfigError
from gmc_core.cli.activity import doing
from gmc_core.cli.output import note

if TYPE_CHECKING:
    from gmc_core.fitting.config import ExperimentConfig
    from gmc_core.fitting.experiment import Experiment
    from gmc_core.fitting.preparing import Prepared
    from gmc_core.gaussian.linalg.threads import ThreadPool
    from gmc_core.runs.cluster.cluster import Cluster
    from gmc_core.runs.store import Store


def add_dask_argument(group: Any) -> None:
    """Add ``--dask`` to a parser or a group of it."""
    group.add_argument(
        "--dask",
        metavar="WHERE",
        help="fit on a Dask cluster: local[:N] for N processes of this machine (default: 2), or "
        "the address of a scheduler (extra dask)",
    )


def refuse_detached(args: argparse.Namespace) -> None:
    """Who detaches leaves the work to the worker of this machine."""
    if args.dask is not None and args.detach:
        raise ConfigError(
            "--dask and --detach exclude each other. The worker that runs in the background fits "
            "on the cluster that is chosen on the Runs page, or that GMC_DASK names."
        )


@contextmanager
def cluster_at(where: str | None, threads: int | None = None) -> Iterator[Cluster | None]:
    """The cluster, told of; None where none is wanted."""
    if where is None:
        yield None
        return
    from gmc_core.runs.cluster.cluster import Cluster

    doing("starting the cluster")
    with Cluster(where, threads) as cluster:
        note(f"a cluster of {cluster.workers} workers, {cluster.threads} threads in all")
        yield cluster


def experiment_at(
    cluster: Cluster | None,
    config: ExperimentConfig,
    prepared: Prepared,
    team: ThreadPool,
    limit: int | None,
    *,
    wants_state: bool = False,
) -> Experiment:
    """An experiment whose fits are computed there, or here.

    limit : bytes for a fit. wants_state : whether a model is wanted at the end.
    """
    from gmc_core.fitting.experiment import Experiment

    if cluster is None:
        return Experiment(config, prepared=prepared, team=team, memory_limit=limit)
    return cluster.experiment(
        config, prepared=prepared, team=team, limit=limit, wants_state=wants_state
    )


@contextmanager
def computing(
    store: Store, where: str | None, among: Collection[str], only_run: str
) -> Iterator[Callable[[], object]]:
    """Runs of the store are computed inside the ``with``: on a cluster, or by the worker.

    where : None for the worker. among : ids, which may become more. only_run : one of them, or
        their parent.

    Returns
    -------
    What sees to it that the work goes on; to be called from time to time.
    """
    if where is None:
        from gmc_core.runs.worker import ensure_worker

        yield partial(ensure_worker, store)
        return
    from gmc_core.runs.worker import on_cluster

    with cluster_at(where) as cluster:
        assert cluster is not None
        with on_cluster.computing(store.path, cluster, among, only_run) as check:
            yield check
