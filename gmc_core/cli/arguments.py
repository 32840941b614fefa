"""Arguments that several commands share, and the configuration they stand for."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gmc_core.base.errors import ConfigError
from gmc_core.cli.options import add_option
from gmc_core.cli.reading import add_reading_arguments, reading_from_arguments
from gmc_core.cli.values import number, whole
from gmc_core.gaussian.settings import FitSettings, settings_of_a_fit

if TYPE_CHECKING:
    from gmc_core.fitting.experiment import ExperimentConfig

__all__ = [
    "FIT",
    "add_experiment_arguments",
    "add_resource_arguments",
    "config_from_arguments",
    "memory_limit_from_arguments",
    "number",
    "whole",
]

PROTOCOLS = ("weak", "strong", "none")
# Destinations of the settings of a fit, for commands that choose or vary them.
FIT = (*settings_of_a_fit(), "noise_sha256")
# Of what a repeated command expects; roles of gmc_core.fitting.provenance, a test compares them.
HASHES = ("data", "train", "test", "noise", "ratings")


def add_experiment_arguments(
    parser: argparse.ArgumentParser, *, skip: Collection[str] = ()
) -> None:
    """All that decides an experiment's figures.

    skip : destinations ("epsilon", "iterations", …) that the command defines
        itself, such as a list where this has one value, or does not have. What is
        parsed holds their defaults.
    """

    def add(group: argparse._ArgumentGroup, flag: str, **options: Any) -> None:
        name = options.get("dest", flag.removeprefix("--").replace("-", "_"))
        if name not in skip:
            group.add_argument(flag, **options)
        elif parser.get_default(name) is None:
            parser.set_defaults(**{name: options.get("default")})

    data = parser.add_argument_group("data")
    add(
        data,
        "--data",
        metavar="NAME|PATH",
        help="a named data set (gmc data list), or a file, zip or folder (default: sample)",
    )
    add(data, "--train", metavar="FILE", help="CSV user,item,rating to learn from, as it is")
    add(data, "--test", metavar="FILE", help="CSV user,item,rating to predict, with --train")
    for role, what in (
        ("data", "the file given with --data"),
        ("train", "the file given with --train"),
        ("test", "the file given with --test"),
        ("ratings", "the ratings, as read and filtered"),
        ("noise", "the file of noise variances"),
    ):
        add(
            data,
            f"--{role}-sha256",
            metavar="HASH",
            help=f"refuse other data: SHA-256 of {what} (12 or more of its digits)",
        )
    add(
        data,
        "--min-user-ratings",
        type=whole,
        metavar="N",
        help="leave out users with fewer ratings (default: 20, the paper's)",
    )
    add(
        data,
        "--min-item-ratings",
        type=whole,
        metavar="N",
        help="then leave out items with fewer ratings (default: 2, the paper's)",
    )
    add(
        data,
        "--max-items",
        type=whole,
        metavar="N",
        help="keep only the N most rated items; memory grows with N squared",
    )
    protocol = parser.add_argument_group("protocol")
    add(
        protocol,
        "--protocol",
        choices=PROTOCOLS,
        help="weak: predict a held-out rating of each training user (default); strong: of users "
        "absent from training; none: train on everything, measure nothing",
    )
    add(protocol, "--seed", type=whole, default=0, metavar="N", help="of the splits (default: 0)")
    add(
        protocol,
        "--repetitions",
        type=whole,
        default=1,
        metavar="N",
        help="average over N splits with seeds SEED, SEED+1, … (default: 1; the paper: 3)",
    )
    add(
        protocol,
        "--weak-users",
        type=whole,
        metavar="N",
        help="training users (default: the paper's number, scaled to the data)",
    )
    add(protocol, "--strong-users", type=whole, metavar="N", help="novel users, strong only")
    model = parser.add_argument_group("model")
    declared = settings_of_a_fit()
    for name in dict.fromkeys(("model", *declared)):  # first what decides the others' defaults
        if name not in skip:
            add_option(model, declared[name])
    add_reading_arguments(parser)


def add_resource_arguments(parser: argparse.ArgumentParser) -> None:
    """How much of the machine to use; no influence on the figures."""
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
    from gmc_core.fitting.experiment import ExperimentConfig
    from gmc_core.protocol.filters import Filter

    pair = args.train is not None or args.test is not None
    if pair:
        _refuse_with_pair(args)
    if args.protocol == "none" and args.repetitions != 1:
        raise ConfigError(
            "With --protocol none nothing is drawn, so all repetitions would be the same; leave "
            "out --repetitions."
        )
    thresholds = {
        name: getattr(args, name)
        for name in ("min_user_ratings", "min_item_ratings", "max_items")
        if getattr(args, name) is not None
    }
    return ExperimentConfig(
        data="" if pair else (args.data or "sample"),
        reading=reading_from_arguments(args),
        protocol="pair" if pair else (args.protocol or "weak"),
        train_file=args.train,
        test_file=args.test,
        filter=Filter(**thresholds),
        weak_users=args.weak_users,
        strong_users=args.strong_users,
        seed=args.seed,
        repetitions=args.repetitions,
        fit=_settings(args, fit),
        expected={
            role: value
            for role in HASHES
            if (value := getattr(args, f"{role}_sha256", None)) is not None
        },
    )


def _settings(args: argparse.Namespace, others: dict[str, Any]) -> FitSettings:
    """The settings of the fit: the model's, then what was given."""
    from gmc_core.gaussian.models import settings_for

    declared = settings_of_a_fit()
    given = {
        name: value for name in declared if (value := getattr(args, name, None)) is not None
    } | others
    settings = replace(settings_for(given.pop("model", "paper")), **given)
    for name in given:
        needs = declared[name].needs
        if needs is not None and getattr(settings, needs[0]) != needs[1]:
            raise ConfigError(
                f"{declared[name].flag} is {declared[name].about}; it needs "
                f"{declared[needs[0]].flag} {needs[1]}."
            )
    return settings


def _refuse_with_pair(args: argparse.Namespace) -> None:
    """--train and --test are taken as they are, so nothing else may choose ratings."""
    if args.train is None or args.test is None:
        raise ConfigError("--train and --test belong together; give both.")
    names = (
        "data", "protocol", "min_user_ratings", "min_item_ratings", "max_items", "weak_users",
        "strong_users",
    )  # fmt: skip
    for name in names:
        if getattr(args, name) is not None:
            flag = "--" + name.replace("_", "-")
            raise ConfigError(
                f"--train and --test are taken as they are, so {flag} has no meaning with them."
            )
    if args.repetitions != 1:
        raise ConfigError("--train and --test are one split; leave out --repetitions.")
