"""The shell command that repeats a run."""

from __future__ import annotations

import shlex
from typing import Any

from gmc_core.experiment import ExperimentConfig
from gmc_core.filters import Filter
from gmc_core.models import settings_for
from gmc_core.store.run import Run

PROGRAM = "python -m gmc_core"

# Names of DelimitedOptions that say which column has which role.
_COLUMNS = ("user", "item", "rating", "timestamp", "title")
_SEPARATORS = {"\t": "tab", " ": "space"}


def command(run: Run) -> str:
    """The command, with every argument that differs from its default."""
    arguments = arguments_of(run.config, sweep=run.sweep is not None)
    if run.sweep is None:
        return f"{PROGRAM} fit {shlex.join(arguments)}".rstrip()
    lists = [
        "--epsilon", _joined(run.sweep["epsilons"]),
        "--iterations", _joined(run.sweep["iterations"]),
        "--seeds", _joined(run.sweep["seeds"]),
    ]  # fmt: skip
    if run.keeps_model:
        arguments.append("--keep-models")
    return f"{PROGRAM} sweep {shlex.join(lists + arguments)}".rstrip()


def arguments_of(config: ExperimentConfig, *, sweep: bool = False) -> list[str]:
    """The arguments from which the command line makes this configuration.

    sweep : without those that a sweep varies.
    """
    given: list[str] = []

    def add(flag: str, value: Any, default: Any = None) -> None:
        if value != default:
            # One word, so that a value may begin with a minus sign.
            given.append(f"{flag}={_number(value)}")

    if config.protocol == "pair":
        add("--train", config.train_file)
        add("--test", config.test_file)
    else:
        add("--data", config.data)
        add("--protocol", config.protocol)
        plain = Filter()
        add("--min-user-ratings", config.filter.min_user_ratings, plain.min_user_ratings)
        add("--min-item-ratings", config.filter.min_item_ratings, plain.min_item_ratings)
        add("--max-items", config.filter.max_items)
        add("--weak-users", config.weak_users)
        add("--strong-users", config.strong_users)
    model = settings_for(config.fit.model)
    add("--model", config.fit.model, "paper")
    if not sweep:
        add("--seed", config.seed, 0)
        add("--repetitions", config.repetitions, 1)
        add("--epsilon", config.fit.epsilon)
        add("--iterations", config.fit.iterations, model.iterations)
    add("--noise", config.fit.noise, model.noise)
    add("--init", config.fit.initial)
    add("--signals", config.fit.signals, "rows")
    if config.fit.signals == "blocks":
        add("--block", "x".join(map(str, config.fit.block)))
    add("--dtype", config.fit.dtype, "float64")
    add("--prior-strength", config.fit.prior_strength)
    if config.fit.prior_target is not None:
        add("--prior-target", _joined(list(config.fit.prior_target)))
    add("--relaxation", config.fit.relaxation)
    add("--warm", config.fit.warm)
    add("--components", config.fit.components)
    if config.fit.learn_noise:
        given.append("--learn-noise")
    if not config.fit.attributes:
        given.append("--no-attributes")
    if config.fit.objective:
        given.append("--objective")
    return given + _reading(config.reading)


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
    if columns:
        given.append(f"--columns={','.join(columns)}")
    if reading.get("low") is not None and reading.get("high") is not None:
        scale = [reading["low"], reading["high"]]
        if reading.get("step") is not None:
            scale.append(reading["step"])
        given.append(f"--scale={_joined(scale)}")
    return given


def _joined(values: list[Any]) -> str:
    return ",".join(_number(value) for value in values)


def _number(value: Any) -> str:
    """The shortest text that reads back as the same number."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)
