"""The shell command that repeats a run, on another machine and with later defaults too.

Every setting is written out, also where it equals today's default. Files are named with
their hashes, and a file of one's own with the way in which it was read.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.data.datasets import DATASETS
from gmc_core.data.hashes import ROLES, given_name, is_hash, option
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.experiment import ExperimentConfig
from gmc_core.fitting.provenance import paths
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.filters import Filter
from gmc_core.protocol.splits import default_counts
from gmc_core.runs.store.run import Run

PROGRAM = "gmc"
RATINGS_DIGITS = 16  # of 64; a file's hash is written in full, to be compared with other tools'

# Names of DelimitedOptions that say which column has which role.
_COLUMNS = ("user", "item", "rating", "timestamp", "title")
_SEPARATORS = {"\t": "tab", " ": "space"}


def command(run: Run, data: Mapping[str, Any] | None = None) -> str:
    """The command, with every argument that decides a figure.

    data : what is known of the data; by default the run's own. A sweep has none of its
        own: its children have.
    """
    known = run.data if data is None else data
    if run.comparison is not None:
        arguments = repeating(run.config, known, sweep=True, fit=False)
        arguments += _comparing(run.config, run.comparison)
        return f"{PROGRAM} compare {shlex.join(arguments)}"
    arguments = repeating(run.config, known, sweep=run.sweep is not None)
    if run.sweep is None:
        return f"{PROGRAM} fit {shlex.join(arguments)}"
    lists = [
        f"--epsilon={_joined(run.sweep['epsilons'])}",
        f"--iterations={_joined(run.sweep['iterations'])}",
        f"--seeds={_joined(run.sweep['seeds'])}",
    ]
    if run.keeps_model:
        arguments.append("--keep-models")
    return f"{PROGRAM} sweep {shlex.join(lists + arguments)}"


def _comparing(config: ExperimentConfig, plan: ComparisonPlan) -> list[str]:
    """The arguments of ``gmc compare`` beside those of the data."""
    return [
        *(() if config.protocol == "pair" else (f"--seeds={_joined(list(plan.seeds))}",)),
        f"--methods={','.join(plan.methods)}",
        f"--reference={plan.reference}",
        *(f"--peer-python={python}" for python in plan.pythons),
    ]


def repeating(
    config: ExperimentConfig,
    data: Mapping[str, Any] | None,
    *,
    sweep: bool = False,
    fit: bool = True,
) -> list[str]:
    """The arguments that repeat an experiment on these data and refuse other ones.

    An uploaded file has the name that the person gave it. sweep, fit : see
    :func:`arguments_of`.
    """
    config = written_out(config, data)
    name = given_name(config.data)
    if name != config.data and name in DATASETS:
        name = f"./{name}"
    return arguments_of(replace(config, data=name), sweep=sweep, fit=fit)


def written_out(config: ExperimentConfig, data: Mapping[str, Any] | None) -> ExperimentConfig:
    """The same with nothing left to defaults or to what would be found in the data.

    data : :func:`gmc_core.fitting.experiment.describe`; None before they have been seen, and then
        the configuration stays as it is. Of data that an older version has seen, less is
        known, and less is written out.
    """
    if data is None:
        return config
    scale = RatingScale(*data["scale"])
    fit = config.fit.resolved(scale, data.get("items"))
    expected = dict(config.expected) | _hashes(config, data)
    counts: dict[str, int] = {}
    drawn = data.get("users_to_draw")
    if isinstance(drawn, int) and config.protocol in ("weak", "strong"):
        weak, strong = default_counts(drawn)
        counts["weak_users"] = config.weak_users if config.weak_users is not None else weak
        if config.protocol == "strong":
            counts["strong_users"] = (
                config.strong_users if config.strong_users is not None else strong
            )
    reading = config.reading if config.data in DATASETS else _found_reading(config, data)
    return replace(config, fit=fit, expected=expected, reading=reading, **counts)  # type: ignore[arg-type]


def _hashes(config: ExperimentConfig, data: Mapping[str, Any]) -> dict[str, str]:
    files = data.get("files")
    found = {
        role: files[role]
        for role in paths(config)  # an older version has put one run's noise on another's data
        if isinstance(files, Mapping) and is_hash(files.get(role))
    }
    if is_hash(data.get("sha256")):
        found["ratings"] = data["sha256"][:RATINGS_DIGITS]
    return found


def _found_reading(config: ExperimentConfig, data: Mapping[str, Any]) -> dict[str, Any]:
    """How the data were read; the words of an imported run are taken only if they have sense."""
    found = data.get("reading")
    if not isinstance(found, Mapping):
        return config.reading
    plain = {
        name: value
        for name, value in found.items()
        if isinstance(name, str)
        and (isinstance(value, (str, int, float)) or (name == "not_rated" and _are_codes(value)))
    }
    return {**config.reading, **plain}


def _are_codes(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(
        isinstance(code, (str, int, float)) for code in value
    )


def arguments_of(config: ExperimentConfig, *, sweep: bool = False, fit: bool = True) -> list[str]:
    """The arguments from which the command line makes this configuration.

    What is None is left out; :func:`written_out` leaves nothing None that could be known.

    sweep : without those that a sweep varies. fit : with the settings of the fit.
    """
    given: list[str] = []

    def add(flag: str, value: Any) -> None:
        if value is not None:
            # One word, so that a value may begin with a minus sign.
            given.append(f"{flag}={_number(value)}")

    if config.protocol == "pair":
        add("--train", config.train_file)
        add("--test", config.test_file)
    else:
        add("--data", config.data)
        add("--protocol", config.protocol)
        _add_filter(add, config.filter)
        add("--weak-users", config.weak_users)
        add("--strong-users", config.strong_users)
    for role in ROLES:
        add(option(role), config.expected.get(role))
    if not sweep:
        add("--seed", config.seed)
        if config.protocol in ("weak", "strong"):
            add("--repetitions", config.repetitions)
    settings = _fit(config.fit, sweep=sweep) if fit else []
    return given + settings + _reading(config.reading)


def _add_filter(add: Any, filter: Filter) -> None:
    add("--min-user-ratings", filter.min_user_ratings)
    add("--min-item-ratings", filter.min_item_ratings)
    add("--max-items", filter.max_items)


def _fit(fit: FitSettings, *, sweep: bool) -> list[str]:
    """The arguments of the settings of a fit."""
    given = [f"--model={fit.model}"]

    def add(flag: str, value: Any) -> None:
        if value is not None:
            given.append(f"{flag}={_number(value)}")

    if not sweep:
        add("--epsilon", fit.epsilon)
        add("--iterations", fit.iterations)
    add("--noise", fit.noise)
    add("--init", fit.initial)
    add("--signals", fit.signals)
    if fit.signals == "blocks":
        add("--block", "x".join(map(str, fit.block)))
    add("--dtype", fit.dtype)
    add("--prior-strength", fit.prior_strength)
    if fit.prior_target is not None:
        add("--prior-target", _joined(list(fit.prior_target)))
    add("--relaxation", fit.relaxation)
    add("--warm", fit.warm)
    add("--components", fit.components)
    if fit.is_exact:
        given.append("--learn-noise" if fit.learn_noise else "--no-learn-noise")
        given.append("--attributes" if fit.attributes else "--no-attributes")
    if fit.model == "paper":
        given.append("--objective" if fit.objective else "--no-objective")
    return given


def _reading(reading: dict[str, Any]) -> list[str]:
    """The arguments of the reading options."""
    given = []
    for name in ("format", "duplicates", "decimal", "encoding"):
        if reading.get(name) is not None:
            given.append(f"--{name}={reading[name]}")
    if reading.get("separator") is not None:
        given.append(f"--separator={_SEPARATORS.get(reading['separator'], reading['separator'])}")
    if reading.get("header") is not None:
        given.append("--header" if reading["header"] else "--no-header")
    columns = [
        f"{role}={reading[role] + 1 if isinstance(reading[role], int) else reading[role]}"
        for role in _COLUMNS
        if reading.get(role) is not None
    ]
    for code in _codes(reading.get("not_rated")):
        given.append(f"--not-rated={code}")
    if columns:
        given.append(f"--columns={','.join(columns)}")
    if reading.get("low") is not None and reading.get("high") is not None:
        scale = [reading["low"], reading["high"]]
        if reading.get("step") is not None:
            scale.append(reading["step"])
        given.append(f"--scale={_joined(scale)}")
    return given


def _codes(values: Any) -> list[str]:
    """The values that mean "not rated"; those of an imported run only if they have sense."""
    if not isinstance(values, (list, tuple)):
        return []
    return [_number(value) for value in values if isinstance(value, (str, int, float))]


def _joined(values: list[Any]) -> str:
    return ",".join(_number(value) for value in values)


def _number(value: Any) -> str:
    """The shortest text that reads back as the same number."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)
