"""The key of a run: what two runs of the same figures have in common."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from dataclasses import replace
from typing import Any

from gmc_core.base.errors import GmcError
from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.data.hashes import is_hash
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.config import MODEL_VERSIONS, OF_HELD_OUT, ExperimentConfig
from gmc_core.protocol.splits import default_counts


def key_of(
    config: ExperimentConfig, data: dict[str, Any] | None, plan: ComparisonPlan | None = None
) -> str | None:
    """The run's key with the scale's defaults filled in, None for unknown data.

    plan : of a comparison; its key is None too where a method cannot be made any more.
    """
    if plan is not None:
        return _comparison_key(config, data, plan)
    if data is None or ("side_sha256" not in data and config.fit.model != "paper"):
        return None
    if config.fit.reads_times and "times_sha256" not in data:
        return None
    return _complete(config, data).key(
        data["sha256"], data.get("side_sha256", ""), data.get("times_sha256", "")
    )


def _comparison_key(
    config: ExperimentConfig, data: dict[str, Any] | None, plan: ComparisonPlan
) -> str | None:
    """Hash of the data, the splits and the methods; not of the reference, nor of any order."""
    if data is None or "side_sha256" not in data:
        return None
    try:
        scale = RatingScale(*data["scale"])
        identity, timed = plan.identity(scale), plan.reads_times(scale)
    except GmcError:
        return None  # such as a method of another package, whose Python is gone
    counts = {"weak_users": config.weak_users, "strong_users": config.strong_users}
    counts |= {name: value for name in OF_HELD_OUT if (value := getattr(config, name)) is not None}
    usual = usual_counts(config, data)
    content = {
        "comparison": identity,
        "protocol": config.protocol,
        **{n: v for n, v in (counts | usual).items() if n not in OF_HELD_OUT or v is not None},
        "data_sha256": data["sha256"],
        "side_sha256": data["side_sha256"],
    }
    if timed:
        if "times_sha256" not in data:
            return None
        content["times_sha256"] = data["times_sha256"]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _complete(config: ExperimentConfig, data: dict[str, Any]) -> ExperimentConfig:
    fit = config.fit.resolved(RatingScale(*data["scale"]), data.get("items"))
    return replace(config, fit=fit, **usual_counts(config, data))


def usual_counts(config: ExperimentConfig, data: dict[str, Any]) -> dict[str, Any]:
    """None for what is written out and equal to what None stands for: numbers of users and,
    where all take part, how much is held out."""
    usual: dict[str, Any] = {}
    if isinstance(data.get("users_to_draw"), int):
        weak, strong = default_counts(data["users_to_draw"])
        usual = {"weak_users": weak, "strong_users": strong}
    unset: dict[str, Any] = dict.fromkeys(OF_HELD_OUT)
    usual |= replace(config, **unset).usual_held_out
    return {name: None for name, count in usual.items() if getattr(config, name) == count}


def doubt_copied_keys(database: sqlite3.Connection) -> None:
    """Let no run answer any more whose key is not that of its settings and data.

    Versions that copied the key of an imported run left such ones behind. A key of an earlier
    version of the model is a run's own as well.
    """
    rows = database.execute(
        "SELECT id, config, data, key FROM runs WHERE kind = 'run' AND key IS NOT NULL AND answers"
    ).fetchall()
    foreign = [(row["id"],) for row in rows if not _is_own(row)]
    database.executemany("UPDATE runs SET answers = 0 WHERE id = ?", foreign)


def _is_own(row: sqlite3.Row) -> bool:
    try:
        data = json.loads(row["data"])
        config = _complete(ExperimentConfig.from_dict(json.loads(row["config"])), data)
        side, files = data.get("side_sha256", ""), data.get("files")
        times = data.get("times_sha256", "")
        noise = files.get("noise") if isinstance(files, dict) else None
        for version in range(MODEL_VERSIONS[config.fit.model], 0, -1):
            if row["key"] == config.key(data["sha256"], side, times, version=version):
                return True
            # The file of noise variances may have changed since.
            if is_hash(noise) and row["key"] == config.key(
                data["sha256"], side, times, version=version, noise_sha256=noise
            ):
                return True
    except (GmcError, ValueError, TypeError, LookupError, AttributeError, OSError):
        pass  # nobody can tell that the key is that of these settings
    return False
