"""``gmc auto``: choose the settings on held-out training ratings, then fit."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gmc_core.cli.activity import doing
from gmc_core.cli.affordable import add_long_argument
from gmc_core.cli.arguments import (
    FIT,
    add_experiment_arguments,
    add_resource_arguments,
    config_from_arguments,
    memory_limit_from_arguments,
    number,
)
from gmc_core.cli.calibrate import add_intervals_argument, check_intervals, save_calibrated
from gmc_core.cli.output import check_output, duration, note, write_json
from gmc_core.cli.parser import add_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gmc_core.fitting.auto import Choice
    from gmc_core.fitting.fit import Fit, IterationRecord

EXAMPLES = """\
  gmc auto --data sample
  gmc auto --data my-ratings.csv --protocol none --model-out my.npz
  gmc auto --data ml-1m --seconds 300 --repetitions 3 --json auto.json
"""


def add_parser(commands: Any) -> None:
    """Add the command ``auto``."""
    parser = add_command(
        commands,
        "auto",
        help="choose model and settings on held-out training ratings, then fit",
        description="Choose model, epsilon, noise, prior and number of iterations on ratings held "
        "out inside\nthe training set, say what was chosen and why, then fit with that. The test "
        "ratings play no part.",
        examples=EXAMPLES,
    )
    parser.add_argument(
        "--seconds",
        type=number,
        default=60.0,
        metavar="S",
        help="time to choose in, for each repetition (default: 60)",
    )
    parser.add_argument(
        "--no-attributes",
        dest="use_attributes",
        action="store_false",
        help="without what is known of users besides ratings (age, gender, …)",
    )
    parser.add_argument(
        "--times",
        dest="use_times",
        action="store_true",
        help="also with session noise, which reads when ratings were given, those to be predicted "
        "included; such figures are not to be compared with those from ratings alone",
    )
    add_experiment_arguments(parser, skip=[name for name in FIT if name != "dtype"])
    add_long_argument(add_resource_arguments(parser))
    output = parser.add_argument_group("output")
    output.add_argument("--json", metavar="FILE", help="write the result as JSON ('-' for stdout)")
    output.add_argument("--model-out", metavar="FILE", help="save the model of the last repetition")
    add_intervals_argument(output)
    parser.set_defaults(run=run)


def _chosen(*args: Any, **how: Any) -> Choice:
    """As :func:`gmc_core.fitting.auto.choose`; a refusal says how to start all the same."""
    from gmc_core.fitting.affordable import ON_THE_COMMAND_LINE, TooLongError
    from gmc_core.fitting.auto import choose

    try:
        return choose(*args, **how)
    except TooLongError as error:
        raise TooLongError(f"{error} {ON_THE_COMMAND_LINE}") from None


def _shown(fit: Fit) -> Iterator[IterationRecord]:
    """The records of a fit; what it is at is shown."""
    share, iterations = fit.team.progress.now, fit.settings.iterations
    doing(f"fit with these settings, iteration 1 of {iterations}", share)
    for record in fit.records():
        at = record.iteration + 1
        if at <= iterations:
            doing(f"fit with these settings, iteration {at} of {iterations}", share)
        else:
            doing("finishing")
        yield record


def run(args: argparse.Namespace) -> int:
    """Choose and fit, once for every repetition."""
    config = config_from_arguments(args)
    check_output(args.json, "--json")
    check_output(args.model_out, "--model-out")
    check_intervals(args.intervals, args.model_out)
    from gmc_core.cli.data import prepare_telling
    from gmc_core.fitting.auto import Trial
    from gmc_core.fitting.fit import Fit
    from gmc_core.fitting.preparing import make_split
    from gmc_core.fitting.repetition import finish, pooled_scores
    from gmc_core.fitting.time_notes import notes_on_times
    from gmc_core.gaussian.linalg.threads import ThreadPool

    team, limit = ThreadPool(args.threads), memory_limit_from_arguments(args)
    prepared = prepare_telling(config)
    results, chosen = [], []
    fit: Fit | None = None

    def tell(trial: Trial) -> None:
        doing("trying settings", team.progress.now)
        note(
            f"  {trial.nmae:.4f}  {trial.label} (L = {trial.iterations}, {duration(trial.seconds)})"
        )

    for seed in config.seeds:
        split = make_split(config, prepared, seed)
        drawn = config.split_words(seed)
        note(f"Choosing on training ratings of {drawn}:")
        doing("trying settings", team.progress.now)
        choice = _chosen(
            split.train,
            seconds=args.seconds,
            seed=seed,
            dtype=config.fit.dtype,
            attributes=args.use_attributes,
            times=args.use_times,
            team=team,
            on_trial=tell,
            however_long=args.long,
            memory_limit=limit,
        )
        for line in (choice.reason, *choice.notes, *notes_on_times(split, choice.settings)):
            note(line)
        fit = None  # frees the last covariance
        fit = Fit(split, choice.settings, team=team, memory_limit=limit)
        records = list(_shown(fit))
        results.append(finish(fit, records))
        chosen.append(choice)
        scores = results[-1].scores
        if scores is not None:
            print(f"{drawn}: NMAE {scores.nmae:.4f} ± {scores.nmae_se:.4f}", flush=True)
    pooled = pooled_scores(results, prepared.ratings.scale)
    if pooled is not None and len(results) > 1:
        print(f"all: NMAE {pooled.nmae:.4f} ± {pooled.nmae_se:.4f}")
    if args.json is not None:
        content = {
            "config": replace(config, fit=chosen[-1].settings).as_dict(),
            "choices": [choice.as_dict() for choice in chosen],
            "repetitions": [result.as_dict() for result in results],
            "summary": pooled and pooled.as_dict(),
        }
        write_json(args.json, content)
    if args.model_out is not None:
        assert fit is not None
        seconds = sum(record.seconds for record in records)
        save_calibrated(fit.model(), args.model_out, args.intervals, seconds, team=team)
    return 0
