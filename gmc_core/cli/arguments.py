"""Arguments that several commands share, and the configuration they stand for."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gmc_core.base.errors import ConfigError
from gmc_core.cli.reading import add_reading_arguments, reading_from_arguments
from gmc_core.cli.values import block, four_numbers, noise, number, whole

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
SIGNALS = ("rows", "columns", "blocks")
MODELS = ("paper", "exact", "ordinal", "mixture")
# Destinations of the settings of a fit, for commands that choose or vary them.
FIT = (
    "model", "epsilon", "iterations", "noise", "init", "signals", "block", "dtype", "objective",
    "prior_strength", "prior_target", "relaxation", "warm", "learn_noise", "attributes",
    "components", "noise_sha256",
)  # fmt: skip
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
    add(
        model,
        "--model",
        choices=MODELS,
        default="paper",
        help="paper: the recipe (default); exact: exact EM with a prior; ordinal: the same on "
        "ordered ratings; mixture: several Gaussians. Sets the defaults of the options below",
    )
    add(
        model,
        "--epsilon",
        type=number,
        metavar="E",
        help="added to the covariance's diagonal (default: 0.3, scaled to the rating scale; exact "
        "and ordinal: 0)",
    )
    add(
        model,
        "--iterations",
        type=whole,
        metavar="L",
        help="of MAP-EM; 0 predicts the initial value (default: 10)",
    )
    add(
        model,
        "--noise",
        type=noise,
        metavar="VARIANCE|FILE",
        help="noise of a rating: a variance, a .csv of item,variance lines, or an .npy matrix "
        "(default: 0; exact and ordinal: 0.5, scaled)",
    )
    add(
        model,
        "--noise-sha256",
        metavar="HASH",
        help="refuse another file of noise variances: its SHA-256",
    )
    add(
        model,
        "--init",
        type=number,
        metavar="VALUE",
        help="initial value of unknown ratings (default: 3 on star scales, else the midpoint)",
    )
    add(
        model,
        "--signals",
        choices=SIGNALS,
        default="rows",
        help="what one draw of the Gaussian is: a row (user; default), a column (item), or a block",
    )
    add(model, "--block", type=block, metavar="HxW", help="size of a block (default: 16x16)")
    add(
        model,
        "--dtype",
        choices=("float64", "float32"),
        default="float64",
        help="precision; float32 halves the memory (default: float64)",
    )
    add(
        model,
        "--objective",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="also compute the paper's MAP objective at every iteration (slower)",
    )
    add(
        model,
        "--prior-strength",
        type=number,
        metavar="NU",
        help="weight of the prior of exact EM, in users (default: half as many as there are "
        "items, at most 300)",
    )
    add(
        model,
        "--prior-target",
        type=four_numbers,
        metavar="O,G,R,I",
        help="what it shrinks to: variance shared by all items, by a genre, by items of the same "
        "raters, and an item's own (default: 0.15,0,0.2,0.15, scaled)",
    )
    add(
        model,
        "--relaxation",
        type=number,
        metavar="ETA",
        help="length of the longest of every four steps of exact EM, 1 up to 8 (default: 5)",
    )
    add(
        model,
        "--warm",
        type=whole,
        metavar="L",
        help="iterations of the paper's recipe before exact EM (default: 3)",
    )
    add(
        model,
        "--learn-noise",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="exact EM begins with --noise and learns it",
    )
    add(
        model,
        "--attributes",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether exact EM uses what is known of users besides ratings (age, gender, …)",
    )
    add(model, "--components", type=whole, metavar="K", help="of a mixture (default: 2)")
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
    from gmc_core.gaussian.models import settings_for
    from gmc_core.protocol.filters import Filter

    pair = args.train is not None or args.test is not None
    if pair:
        _refuse_with_pair(args)
    if args.protocol == "none" and args.repetitions != 1:
        raise ConfigError(
            "With --protocol none nothing is drawn, so all repetitions would be the same; leave "
            "out --repetitions."
        )
    if args.block is not None and args.signals != "blocks":
        raise ConfigError("--block is the size of blocks; it needs --signals blocks.")
    thresholds = {
        name: getattr(args, name)
        for name in ("min_user_ratings", "min_item_ratings", "max_items")
        if getattr(args, name) is not None
    }
    settings: dict[str, Any] = {
        "initial": getattr(args, "init", None),
        "signals": args.signals,
        "dtype": args.dtype,
        "objective": args.objective,
    }
    for name in (
        "epsilon", "iterations", "noise", "prior_strength", "prior_target", "relaxation", "warm",
        "learn_noise", "attributes", "components",
    ):  # fmt: skip
        if getattr(args, name, None) is not None:
            settings[name] = getattr(args, name)
    if args.block is not None:
        settings["block"] = args.block
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
        fit=replace(settings_for(args.model), **{**settings, **fit}),
        expected={
            role: value
            for role in HASHES
            if (value := getattr(args, f"{role}_sha256", None)) is not None
        },
    )


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
