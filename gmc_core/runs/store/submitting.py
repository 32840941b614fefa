"""Queueing runs, and finding the same run instead."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from gmc_core.base.errors import ConfigError
from gmc_core.base.version import package_version
from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.data.datasets import DATASETS
from gmc_core.data.readers.stamps import stamps
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.provenance import check_known, of_data, with_noise
from gmc_core.gaussian.settings import FitSettings
from gmc_core.runs.store.keys import key_of as key_of
from gmc_core.runs.store.reading import Reading
from gmc_core.runs.store.run import LONG_KEY, RESUMABLE, Run
from gmc_core.runs.store.selection import Selection

NAMED = frozenset({"sample", *DATASETS})
# As :attr:`Run.resumable`.
_RESUMABLE = (
    f"(state IN ({', '.join(repr(state) for state in RESUMABLE)}) OR (state = 'finished' AND id IN "
    "(SELECT run FROM cells WHERE state = 'failed')))"
)


class Submitting(Reading):
    """The part of a store that takes in new runs."""

    def submit(
        self,
        config: ExperimentConfig,
        *,
        label: str = "",
        parent: str | None = None,
        again: bool = False,
        keep_model: bool = True,
        data: dict[str, Any] | None = None,
        cost: dict[str, Any] | None = None,
    ) -> Run:
        """Queue an experiment, or find the same one; see :meth:`submit_or_find`."""
        return self.submit_or_find(
            config,
            label=label,
            parent=parent,
            again=again,
            keep_model=keep_model,
            data=data,
            cost=cost,
        )[0]

    def submit_or_find(
        self,
        config: ExperimentConfig,
        *,
        label: str = "",
        parent: str | None = None,
        again: bool = False,
        keep_model: bool = True,
        data: dict[str, Any] | None = None,
        cost: dict[str, Any] | None = None,
        selection: Selection | None = None,
    ) -> tuple[Run, bool]:
        """Queue an experiment, or find the same one; tells whether it is new.

        The same one is a finished, queued or running run with the same settings on
        the same data and the same version of the model's code; an imported one only if
        this store has exported it. Data that this store
        has never seen have no hash before the worker has loaded them; the worker
        then takes over the result of an identical run, if there is one.

        Parameters
        ----------
        label : a person's name for it.
        parent : id of the sweep that it belongs to; such a run is always new.
        again : make a new run even if there is the same one.
        keep_model : whether to keep the model and the pictures of all iterations.
        data : :func:`gmc_core.fitting.preparing.describe` of the data, where the caller has
            loaded them already.
        cost : :func:`gmc_core.runs.store.waiting.cost_with_estimate`, where the caller knows it;
            those who wait behind this run are told from it how long.
        selection : have auto choose the settings; of those in ``config`` only the precision counts.
            The same one was asked for the same.

        Raises
        ------
        GmcError
            If the data are known, and are not those that ``config.expected`` names; of others
            the worker finds that out. If settings are to be chosen for more than one split:
            what trains one of them, another holds out.

        Notes
        -----
        Nothing computes until there is a worker: see :func:`gmc_core.runs.worker.ensure_worker`.
        """
        config = anywhere(config)
        if selection is not None:
            if len(config.seeds) > 1:
                raise ConfigError(
                    "Settings are chosen inside the training set of one split; take one repetition."
                )
            config = _without_settings(config)
        source = source_of(config)
        request = request_of(config, selection=selection)
        given = data
        data = given or self.known_data(source)
        if data is not None:
            if parent is None:  # a sweep's are checked once
                check_known(config, data["sha256"], data.get("files"), data.get("times_sha256"))
            data = with_noise(config, data)
        with self.writing() as database:
            if given is not None:
                self.remember_data(source, given)
            key = None if selection else key_of(config, data)
            if parent is None and not again:
                if selection is None:
                    same = self._same("run", request, key, keep_model)
                else:
                    same = self._same_selection(request, data, keep_model)
                if same is not None:
                    return self._found(same, cost)
            identity = secrets.token_hex(5)
            database.execute(
                "INSERT INTO runs (id, kind, parent, state, label, config, request, key, "
                "data_sha256, data, keep, again, created, version, cost, selection) "
                "VALUES (?, 'run', ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    identity, parent, label, json.dumps(config.as_dict()), request, key,
                    data and data["sha256"], data and json.dumps(data), int(keep_model),
                    int(again), time.time(), package_version(), cost and json.dumps(cost),
                    selection and json.dumps(selection.as_dict()),
                ),
            )  # fmt: skip
            return self.run(identity), True

    def submit_sweep(
        self,
        base: ExperimentConfig,
        sweep: dict[str, Any],
        children: list[ExperimentConfig],
        *,
        label: str = "",
        again: bool = False,
        keep_models: bool = False,
        cost: dict[str, Any] | None = None,
    ) -> tuple[Run, bool]:
        """Queue a parent and its children, or find the same; tells whether it is new.

        See :func:`gmc_core.runs.sweeps.submit_or_find_sweep`.
        """
        base = anywhere(base)
        known = self.known_data(source_of(base))
        if known is not None:
            check_known(base, known["sha256"], known.get("files"), known.get("times_sha256"))
        request = _hash(
            {"sweep": sweep, "base": base.as_dict(), "source": source_of(base), "keep": keep_models}
        )
        with self.writing() as database:
            if not again:
                for run in self._runs("request = ? AND kind = 'sweep'", request):
                    if run.state in ("finished", "running", "queued"):
                        return self._found(run.id, cost)
            identity = secrets.token_hex(5)
            database.execute(
                "INSERT INTO runs (id, kind, state, label, config, sweep, request, keep, created, "
                "version) VALUES (?, 'sweep', 'queued', ?, ?, ?, ?, ?, ?, ?)",
                (
                    identity, label, json.dumps(base.as_dict()), json.dumps(sweep), request,
                    int(keep_models), time.time(), package_version(),
                ),
            )  # fmt: skip
            for child in children:
                self.submit(child, parent=identity, again=again, keep_model=keep_models, cost=cost)
            return self.run(identity), True

    def submit_comparison(
        self,
        config: ExperimentConfig,
        plan: ComparisonPlan,
        *,
        label: str = "",
        again: bool = False,
        data: dict[str, Any] | None = None,
        cost: dict[str, Any] | None = None,
    ) -> tuple[Run, bool]:
        """Queue a comparison, or find the same one; tells whether there is work for it.

        The same one has the same methods with the same settings, and the same splits of the same
        data; reference and order do not count. One that was stopped goes on, and so does one of
        which a fit has failed.

        Parameters
        ----------
        config : data, filter and protocol; its seed, repetitions and fit do not count.
        label : a person's name for it.
        again : make a new one, and compute every fit of it anew.
        data : :func:`gmc_core.fitting.preparing.describe` of the data, where they are loaded
            already.
        cost : None, or that it may take long, see :attr:`Run.however_long`.

        Raises
        ------
        GmcError
            If nothing is held out, or the data are known and are not those that ``config`` expects.
        """
        if config.protocol == "none":
            raise ConfigError(
                "Without hold-out there is nothing to compare on; take the protocol weak or strong."
            )
        # The methods decide how they are fitted, and the plan has the seeds.
        config = anywhere(replace(config, fit=FitSettings(), seed=plan.seeds[0], repetitions=1))
        plan = replace(plan, pythons=tuple(absolute(python) or "" for python in plan.pythons))
        source, request = source_of(config), request_of(config, plan)
        given = data
        data = given or self.known_data(source)
        if data is not None:
            check_known(config, data["sha256"], data.get("files"), data.get("times_sha256"))
        key = key_of(config, data, plan)  # before the transaction: it may start other Pythons
        with self.writing() as database:
            if given is not None:
                self.remember_data(source, given)
            if not again:
                same = self._same("comparison", request, key, keep_model=False)
                if same is not None:
                    return self._found(same, cost)
                stopped = self._stopped_comparison(request, key)
                if stopped is not None:
                    self._queue_again(stopped)
                    return self._found(stopped, cost)[0], True
            identity = secrets.token_hex(5)
            columns = {
                "id": identity, "kind": "comparison", "state": "queued", "label": label,
                "config": json.dumps(config.as_dict()), "comparison": json.dumps(plan.as_dict()),
                "request": request, "key": key, "data_sha256": data and data["sha256"],
                "data": data and json.dumps(data), "again": int(again), "created": time.time(),
                "version": package_version(), "cost": cost and json.dumps(cost),
            }  # fmt: skip
            marks = ", ".join("?" * len(columns))
            database.execute(
                f"INSERT INTO runs ({', '.join(columns)}) VALUES ({marks})", [*columns.values()]
            )
            return self.run(identity), True

    def allow_long(self, id: str) -> None:
        """Let a run (of a sweep: all of its runs) take longer than an hour."""
        with self.writing() as database:
            database.execute(
                "UPDATE runs SET cost = json_set(coalesce(cost, '{}'), ?, json('true')) "
                "WHERE id = ? OR parent = ?",
                (f"$.{LONG_KEY}", id, id),
            )

    def _found(self, id: str, cost: dict[str, Any] | None) -> tuple[Run, bool]:
        """A run that is there already; what a new start allows, it may now too."""
        if (cost or {}).get(LONG_KEY):
            self.allow_long(id)
        return self.run(id), False

    def _same(self, kind: str, request: str, key: str | None, keep_model: bool) -> str | None:
        """What answers for a new start: finished with every fit, or on its way."""
        found = self.rows(
            "SELECT id FROM runs WHERE kind = ? AND answers AND keep >= ? AND ("
            "(key = ? AND state IN ('finished', 'queued', 'running')) OR "
            "(request = ? AND state IN ('queued', 'running'))) "
            "AND cancel = 0 AND NOT (state = 'finished' AND id IN "
            "(SELECT run FROM cells WHERE state = 'failed')) "
            "ORDER BY state = 'finished' DESC, number LIMIT 1",
            kind, int(keep_model), key, request,
        )  # fmt: skip
        return found[0]["id"] if found else None

    def _same_selection(
        self, request: str, data: dict[str, Any] | None, keep_model: bool
    ) -> str | None:
        """The run whose settings were asked to be chosen in the same way: on its way, or finished
        by today's version of the model that it has chosen."""
        found = self.rows(
            "SELECT id FROM runs WHERE request = ? AND answers AND keep >= ? AND cancel = 0 "
            "AND state IN ('finished', 'queued', 'running') "
            "ORDER BY state = 'finished' DESC, number",
            request, int(keep_model),
        )  # fmt: skip
        for run in (self.run(row["id"]) for row in found):
            if run.state != "finished" or run.key == key_of(run.config, data):
                return run.id
        return None

    def _stopped_comparison(self, request: str, key: str | None) -> str | None:
        """The newest comparison of these methods and splits that can go on."""
        found = self.rows(
            "SELECT id FROM runs WHERE kind = 'comparison' AND answers AND cancel = 0 AND "
            f"(key = ? OR (key IS NULL AND request = ?)) AND {_RESUMABLE} "
            "ORDER BY number DESC LIMIT 1",
            key, request,
        )  # fmt: skip
        return found[0]["id"] if found else None

    def _queue_again(self, id: str) -> int:
        """Queue what can go on of a run, or of a sweep's runs; returns how many those are."""
        with self.writing() as database:
            return database.execute(
                "UPDATE runs SET state = 'queued', cancel = 0, ended = NULL, message = '', "
                "error_kind = NULL, error_iteration = NULL "
                f"WHERE (id = ? OR parent = ?) AND kind != 'sweep' AND {_RESUMABLE}",
                (id, id),
            ).rowcount

    def remember_data(self, source: str, data: dict[str, Any]) -> None:
        """Note the hash and description of the data that ``source`` stands for.

        Without the hash of noise: the source does not say which noise.
        """
        if "files" in data:
            data = {**data, "files": of_data(data["files"])}
        with self.writing() as database:
            database.execute(
                "INSERT OR REPLACE INTO sources (source, data) VALUES (?, ?)",
                (source, json.dumps(data)),
            )

    def known_data(self, source: str) -> dict[str, Any] | None:
        """What is remembered of the data of ``source``."""
        rows = self.rows("SELECT data FROM sources WHERE source = ?", source)
        return json.loads(rows[0]["data"]) if rows else None


def anywhere(config: ExperimentConfig) -> ExperimentConfig:
    """The same with absolute paths: the worker has another current folder."""
    noise = config.fit.noise
    if isinstance(noise, str):
        noise = str(Path(noise).expanduser().absolute())
    data = config.data if config.data in NAMED else absolute(config.data) or ""
    return replace(
        config,
        data=data,
        train_file=absolute(config.train_file),
        test_file=absolute(config.test_file),
        fit=replace(config.fit, noise=noise),
    )


def absolute(name: str | None) -> str | None:
    """A path from any folder; a name, or a file that nobody will find, as it is."""
    if not name or not (os.sep in name or Path(name).expanduser().exists()):
        return name
    return str(Path(name).expanduser().absolute())


def _without_settings(config: ExperimentConfig) -> ExperimentConfig:
    """The same with settings of the fit that nobody has asked for, but for the precision."""
    return replace(config, fit=FitSettings(dtype=config.fit.dtype))


def request_of(
    config: ExperimentConfig,
    plan: ComparisonPlan | None = None,
    selection: Selection | None = None,
) -> str:
    """Hash of what was asked for, before anyone has seen the data.

    With the hashes that are expected: a run that expects others, or none, may end otherwise.
    plan : of a comparison. selection : of settings that auto chooses; those that it has chosen were
    not asked for.
    """
    if selection is not None:
        config = _without_settings(config)
    content: dict[str, Any] = {"config": config.as_dict(), "source": source_of(config)}
    if plan is not None:
        content["comparison"] = [sorted(plan.methods), sorted(plan.seeds), plan.pythons]
    if selection is not None:
        content["selection"] = selection.asked
    return _hash(content)


def source_of(config: ExperimentConfig) -> str:
    """Hash of where the data come from and how they are read, files' versions included."""
    files = [config.data, config.train_file, config.test_file]
    values = config.as_dict()
    return _hash(
        {
            "reading": values["reading"],
            "filter": values["filter"],
            "pair": config.protocol == "pair",
            "files": files,
            "stamps": [stamps(Path(name).expanduser()) for name in files if name],
            # The hash of the data has what draws the split in it; see Prepared.drawn_by.
            **({"drawn_by": config.drawn_by} if config.drawn_by else {}),
        }
    )


def _hash(values: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
