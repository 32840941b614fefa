"""Where the worker has fits computed: on this machine, or on a Dask cluster.

Somebody chooses it on a page, and the store remembers it; else ``GMC_DASK`` says it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

from gmc_core.base.errors import ConfigError
from gmc_core.base.extras import require
from gmc_core.gaussian.linalg.threads import available_cores
from gmc_core.runs.store import Store

ENVIRONMENT = "GMC_DASK"
_NAME = "dask"
MOST_LOCAL = 256


@dataclass(frozen=True)
class Place:
    """where : as ``--dask`` takes it, "" for this machine without a cluster.

    workers, threads : of all of them, as found when it was chosen; 0 where that is not known.
    """

    where: str = ""
    workers: int = 0
    threads: int = 0


def place_of(store: Store) -> Place:
    """Where fits are computed now."""
    rows = store.rows("SELECT value FROM settings WHERE name = ?", _NAME)
    if rows:
        return Place(**json.loads(rows[0]["value"]))
    return Place(os.environ.get(ENVIRONMENT) or "")


def look_at(where: str) -> Place:
    """A place that can be used, with its workers and threads.

    where : local, local:N, the address of a scheduler, or "".

    Raises
    ------
    MissingPackageError
        If the extra ``dask`` is not installed.
    ConfigError
        If it is none of these, nobody answers there, or no worker there can be used.
    """
    where = where.strip()
    if not where:
        return Place()
    require("dask", "A cluster")
    name, _, count = where.partition(":")
    if name == "local":
        from gmc_core.runs.cluster.cluster import LOCAL_WORKERS

        given = count or str(LOCAL_WORKERS)
        if not (given.isascii() and given.isdigit() and 1 <= int(given) <= MOST_LOCAL):
            raise ConfigError(
                f"local:N is a number of processes from 1 to {MOST_LOCAL}, not {given!r}."
            )
        workers = int(given)  # they are started for the work only
        return Place(where, workers, workers * max(available_cores() // workers, 1))
    from gmc_core.runs.cluster.cluster import Cluster

    with Cluster(where) as cluster:
        return Place(where, cluster.workers, cluster.threads)


def choose(store: Store, place: Place) -> None:
    """Have fits computed there from now on. A worker that is at a run finishes it first."""
    with store.writing() as database:
        database.execute(
            "INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)",
            (_NAME, json.dumps(asdict(place))),
        )
