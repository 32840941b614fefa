"""Arguments that several commands share, and the configuration they stand for."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from gmc_core.base.errors import ConfigError
from gmc_core.base.setting import Setting, declared
from gmc_core.cli.dask import add_dask_argument
from gmc_core.cli.options import add_option
from gmc_core.cli.reading import add_reading_arguments, reading_from_arguments
from gmc_core.cli.values import number, whole
from gmc_core.data.hashes import option
from gmc_core.fitting.config import OF_HELD_OUT, PROTOCOLS, ExperimentConfig
from gmc_core.gaussian.models import PRESETS, settings_for
from gmc_core.gaussian.settings import FitSettings, settings_of_a_fit
from gmc_core.protocol.filter_options import Filter

__all__ = [
    "FIT",
    "add_experiment_arguments",
    "add_resource_arguments",
    "config_from_arguments",
    "memory_limit_from_arguments",
    "number",
    "whole",
]

# Destinations of the settings of a fit, for commands that choose or vary them.
FIT = (*settings_of_a_fit(), "noise_sha256")
# Of what a repeated command expects: roles of gmc_core.data.hashes.
HASHES = {
    "data": "the file given with --data",
    "train": "the file given with --train",
    "test": "the file given with --test",
    "ratings": "the ratings, as read and filtered",
    "times": "when these were given, with session noise",
    "noise": "the file of noise variances",
}
# What belongs to the drawing of splits.
_DRAWN = ("seed", "repetitions", "weak_users", "strong_users", *OF_HELD_OUT)


def add_experiment_arguments(
    parser: argparse.ArgumentParser, *, skip: Collection[str] = ()
) -> None:
    """All that decides an experiment's figures.

    skip : destinations ("epsilon", "iterations", …) that the command defines
        itself, such as a list where this has one value, or does not have. What is
        parsed holds None for them.
    """

    def add(group: argparse._ArgumentGroup, *settings: Setting, **others: Any) -> None:
        for one in settings:
            name = others.get("dest", one.name)
            if name not in skip:
                add_option(group, one, **others)
            elif parser.get_default(name) is None:
                parser.set_defaults(**{name: None})

    experiment = declared(ExperimentConfig)
    data = parser.add_argument_group("data")
    add(data, experiment["data"])
    add(data, experiment["train_file"], dest="train")
    add(data, experiment["test_file"], dest="test")
    for role, what in HASHES.items():
        if f"{role}_sha256" not in skip:
            data.add_argument(
                option(role),
                metavar="HASH",
                help=f"refuse other data: SHA-256 of {what} (12 or more of its digits)",
            )
    add(data, *declared(Filter).values())
    data.add_argument(
        "--no-filter",
        action="store_true",
        help="leave out nobody and nothing, as the literature's random hold-outs do",
    )
    protocol = parser.add_argument_group("protocol")
    # A pair of files is a protocol that --train and --test choose.
    add(protocol, experiment["protocol"], choices=[one for one in PROTOCOLS if one != "pair"])
    add(protocol, *(experiment[name] for name in _DRAWN))
    model = parser.add_argument_group("model")
    fit = settings_of_a_fit()
    add(model, fit["model"])  # first what decides the others' defaults
    if "model" not in skip:
        model.add_argument(
            "--preset",
            choices=list(PRESETS),
            help="settings that have a name: fast is a factor model of rank 31, 5 iterations and "
            "float32; best is a two-sided one averaged with a fit of rank 101, in float32; others "
            "that are given beside it count",
        )
    add(model, *(one for one in fit.values() if one.name != "model"))
    add_reading_arguments(parser)


def add_resource_arguments(
    parser: argparse.ArgumentParser, *, dask: bool = False
) -> argparse._ArgumentGroup:
    """How much of the machine to use; no influence on the figures. Returns their group.

    dask : of other machines too.
    """
    group = parser.add_argument_group("this machine")
    group.add_argument(
        "--threads", type=whole, metavar="N", help="cores to use (default: all, or GMC_THREADS)"
    )
    group.add_argument(
        "--memory-limit",
        type=number,
        metavar="GB",
        help="refuse a fit that needs more (default: 80 %% of the free memory)",
    )
    if dask:
        add_dask_argument(group)
    return group


def memory_limit_from_arguments(args: argparse.Namespace) -> int | None:
    """``--memory-limit`` in bytes."""
    if args.memory_limit is None:
        return None
    if not 0 < args.memory_limit < 1e9:
        raise ConfigError(f"--memory-limit is a number of gigabytes, not {args.memory_limit}.")
    return int(args.memory_limit * 1e9)


def config_from_arguments(args: argparse.Namespace, **fit: Any) -> ExperimentConfig:
    """The experiment that the arguments describe.

    fit : settings of the fit that replace those of the arguments, for commands
        that skipped some in :func:`add_experiment_arguments`.

    Raises
    ------
    ConfigError
        If values have no meaning, alone or together.
    """
    found = vars(args)
    pair = args.train is not None or args.test is not None
    if pair:
        _refuse_with_pair(args)
    drawn = _given(found, _DRAWN)
    if args.protocol == "none" and drawn.get("repetitions", 1) != 1:
        raise ConfigError(
            "With --protocol none nothing is drawn, so all repetitions would be the same; leave "
            "out --repetitions."
        )
    expected = {role: found.get(f"{role}_sha256") for role in HASHES}
    return ExperimentConfig(
        data="" if pair else (args.data or "sample"),
        reading=reading_from_arguments(args),
        protocol="pair" if pair else (args.protocol or "weak"),
        train_file=args.train,
        test_file=args.test,
        filter=_filter(args),
        fit=_settings(args, fit),
        expected={role: value for role, value in expected.items() if value is not None},
        **drawn,
    )


def _given(found: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Those of the options that were given."""
    return {name: found[name] for name in names if found.get(name) is not None}


def _filter(args: argparse.Namespace) -> Filter:
    given = _given(vars(args), declared(Filter))
    if not args.no_filter:
        return Filter(**given)
    least = [declared(Filter)[name].flag for name in given if name != "max_items"]
    if least:
        raise ConfigError(f"--no-filter and {least[0]} exclude each other; give one of them.")
    return Filter(0, 0, given.get("max_items"))


def _settings(args: argparse.Namespace, others: dict[str, Any]) -> FitSettings:
    """The settings of the fit: the model's, then what was given."""
    fit = settings_of_a_fit()
    given = _given(vars(args), fit) | others
    preset = getattr(args, "preset", None)
    if preset and "model" in given:
        raise ConfigError("--preset and --model exclude each other; give one of them.")
    start = PRESETS[preset] if preset else settings_for(given.pop("model", "paper"))
    settings = replace(start, **given)
    settings.check_needed(given)
    return settings


def _refuse_with_pair(args: argparse.Namespace) -> None:
    """--train and --test are taken as they are, so nothing else may choose ratings."""
    if args.train is None or args.test is None:
        raise ConfigError("--train and --test belong together; give both.")
    chooses = {"data": "--data", "protocol": "--protocol"}
    chooses |= {name: one.flag for name, one in declared(Filter).items()}
    drawing = declared(ExperimentConfig)
    chooses |= {name: drawing[name].flag for name in ("weak_users", "strong_users", *OF_HELD_OUT)}
    chooses["no_filter"] = "--no-filter"
    for name, flag in chooses.items():
        if getattr(args, name) not in (None, False):
            raise ConfigError(
                f"--train and --test are taken as they are, so {flag} has no meaning with them."
            )
    if args.repetitions not in (None, 1):
        raise ConfigError("--train and --test are one split; leave out --repetitions.")
