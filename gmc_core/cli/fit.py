"""``gmc fit``: fit the model and measure it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from gmc_core.base.errors import ConfigError, NumericalError
from gmc_core.cli.activity import doing
from gmc_core.cli.affordable import Fits, add_long_argument, refusing
from gmc_core.cli.arguments import (
    add_experiment_arguments,
    add_resource_arguments,
    config_from_arguments,
    memory_limit_from_arguments,
    whole,
)
from gmc_core.cli.calibrate import add_intervals_argument, check_intervals, save_calibrated
from gmc_core.cli.dask import cluster_at, experiment_at, refuse_detached
from gmc_core.cli.output import check_output, duration, figure, note, size, table, write_json
from gmc_core.cli.parser import add_command
from gmc_core.fitting.config import DRAWN, EVERYONE, ExperimentConfig

if TYPE_CHECKING:
    from gmc_core.fitting.experiment import Experiment

EXAMPLES = """\
  gmc fit --data sample
  gmc fit --data ml-1m --protocol strong --repetitions 3 --json strong.json
  gmc fit --data my-ratings.csv --scale 1,10 --max-items 2000 --model-out my.npz
  gmc fit --data ml-100k --protocol random --folds published --repetitions 5 --no-filter
  gmc fit --train train.csv --test test.csv --epsilon 0.1 --iterations 20
"""
# The parts of an iteration's time in its record.
_SECONDS = ("e_seconds", "m_seconds", "evaluation_seconds")


def add_parser(commands: Any) -> None:
    """Add the command ``fit``."""
    parser = add_command(
        commands,
        "fit",
        help="fit the model to ratings and measure it on held-out ones",
        description="Fit the Gaussian to ratings by MAP-EM, and measure it on held-out ratings.\n"
        "To have a model of all ratings for use, give --protocol none --model-out FILE.",
        examples=EXAMPLES,
    )
    add_experiment_arguments(parser)
    resources = add_resource_arguments(parser, dask=True)
    add_long_argument(resources)
    resources.add_argument(
        "--shards",
        nargs="?",
        type=whole,
        const=0,
        metavar="N",
        help="with --dask and --model factor: share the users of each fit among the workers, in N "
        "parts (default: one for each worker), instead of giving each worker a fit",
    )
    output = parser.add_argument_group("output")
    output.add_argument("--json", metavar="FILE", help="write the result as JSON ('-' for stdout)")
    output.add_argument(
        "--model-out",
        metavar="FILE",
        help="save the model (of the last repetition) with its training ratings, which stay "
        "under the licence of the data",
    )
    output.add_argument(
        "--without-ratings",
        action="store_true",
        help="leave the training ratings out of the saved model; it then only folds in new users",
    )
    add_intervals_argument(output)
    output.add_argument(
        "--detach", action="store_true", help="run in the background; gmc runs shows it"
    )
    output.add_argument(
        "--again", action="store_true", help="with --detach: repeat a run even if it is there"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the experiment."""
    config = config_from_arguments(args)
    if args.without_ratings and args.model_out is None:
        raise ConfigError("--without-ratings is about the saved model; give --model-out.")
    if args.without_ratings and config.fit.signals != "rows":
        raise ConfigError(
            f"A model with {config.fit.signals} as signals cannot fold in new users, so it could "
            "predict nothing without its ratings; leave out --without-ratings."
        )
    check_intervals(args.intervals, args.model_out)
    refuse_detached(args)
    _check_shards(args, config)
    if args.detach:
        return _detach(args, config)
    if args.again:
        raise ConfigError("--again is about the runs that are kept; give --detach.")
    check_output(args.json, "--json")
    check_output(args.model_out, "--model-out")
    from gmc_core.cli.data import prepare_telling
    from gmc_core.cli.progress import run_with_progress, tell_prepared
    from gmc_core.gaussian.linalg.threads import ThreadPool

    team = ThreadPool(args.threads)
    limit = memory_limit_from_arguments(args)
    prepared = prepare_telling(config, refusing(args, config, _fits(config), limit))
    tell_prepared(prepared)
    with cluster_at(args.dask, args.threads) as cluster:
        experiment: Experiment
        if cluster is not None and args.shards is not None:
            experiment = cluster.sharded(
                config, prepared=prepared, team=team, limit=limit, shards=args.shards
            )
        else:
            experiment = experiment_at(
                cluster, config, prepared, team, limit, wants_state=args.model_out is not None
            )
        try:
            run_with_progress(experiment, however_long=args.long)
        except (KeyboardInterrupt, NumericalError) as error:
            _keep(args, experiment, error)
            raise
    result = experiment.result()
    if args.json is not None:
        write_json(args.json, result)
    if args.json != "-":
        print(summary(result))
    _save_model(args, experiment)
    return 0


def _check_shards(args: argparse.Namespace, config: ExperimentConfig) -> None:
    if args.shards is None:
        return
    if args.dask is None:
        raise ConfigError("--shards is about the workers of a cluster; give --dask.")
    if config.fit.model != "factor":
        raise ConfigError(
            "--shards shares the E-step of the low-rank model; give --model factor, or leave out "
            "--shards."
        )
    if args.shards < 0:
        raise ConfigError(f"--shards is a number of parts of at least 1, not {args.shards}.")


def _fits(config: ExperimentConfig) -> Fits:
    from gmc_core.fitting.affordable import Wanted

    return lambda scale: [Wanted(config.fit, repetitions=len(config.seeds))]


def _detach(args: argparse.Namespace, config: Any) -> int:
    for flag in ("json", "model_out", "threads", "memory_limit"):
        if getattr(args, flag) is not None:
            raise ConfigError(
                f"--{flag.replace('_', '-')} has no meaning with --detach: the run's result is "
                "kept among the runs."
            )
    from gmc_core.cli import runs  # type: ignore[attr-defined, unused-ignore]

    return int(runs.detach(args, config, _fits(config)) or 0)


def _keep(
    args: argparse.Namespace, experiment: Experiment, error: KeyboardInterrupt | NumericalError
) -> None:
    """Keep what an interrupted run has reached, where the person asked for it."""
    result = experiment.result()
    if args.json is not None and result["repetitions"]:
        write_json(
            args.json,
            {
                **result,
                "error": str(error) or "stopped",
                "error_kind": getattr(error, "kind", "stopped"),
                "error_iteration": getattr(error, "iteration", None),
            },
        )
        if args.json != "-":
            note(f"the iterations done so far are in {args.json}")
    if experiment.fit is not None and experiment.fit.iteration > 0:
        _save_model(args, experiment)


def _save_model(args: argparse.Namespace, experiment: Experiment) -> None:
    if args.model_out is None or experiment.fit is None:
        return
    model, wanted, seconds = experiment.fit.model(), args.intervals, 0.0
    if experiment.finished:
        repetition = experiment.result()["repetitions"][-1]["records"]
        seconds = sum(record[part] for record in repetition for part in _SECONDS)
    else:
        wanted = "none"
    doing("saving the model")
    path = save_calibrated(
        model,
        args.model_out,
        wanted,
        seconds,
        with_ratings=not args.without_ratings,
        team=experiment.fit.team,
    )
    content = "without ratings" if args.without_ratings else "with its training ratings"
    note(f"model of iteration {model.iteration} saved to {path}, {content} ({model.licence})")
    if experiment.config.protocol in DRAWN:
        drawn = "" if experiment.config.protocol in EVERYONE else ", nor users who were not drawn"
        note(f"it has not seen the held-out ratings{drawn}; --protocol none learns from everything")


def summary(result: dict[str, Any]) -> str:
    """The result as a table."""
    data, total = result["data"], result["summary"]
    fill = 100 * data["fill_ratio"]
    low, high, step = data["scale"]
    steps = "continuous" if step is None else f"step {step:g}"
    lines = [
        f"{data['name']}: {data['users']:,} users, {data['items']:,} items, "
        f"{data['ratings']:,} ratings ({fill:.1f} %), scale {low:g}..{high:g} {steps}"
    ]
    if total["nmae"] is None:
        lines.append("no ratings were held out, so there is no error to report")
    else:
        lines += ["", _scores(result), ""]
        lines.append(
            f"NMAE = MAE / {data['divisor']:.4g}, the error of random guessing on this scale; "
            "MAE after projection to the scale"
        )
        lines += _warnings(result)
        if total["n_unseen"]:
            lines.append(
                f"{total['n_unseen']:,} of {total['n']:,} test ratings are of an item or a user "
                "without training ratings; they are predicted from the prior"
            )
    lines.append(f"{duration(total['seconds'])}, peak memory {size(total['peak_rss_bytes'])}")
    return "\n".join(lines)


def _scores(result: dict[str, Any]) -> str:
    rows, config = [], ExperimentConfig.from_dict(result["config"])
    for repetition in result["repetitions"]:
        scores = repetition["scores"]
        if scores is not None:
            rows.append((config.split_words(repetition["seed"]), scores))
    if len(rows) > 1:
        rows.append(("all", result["summary"]))
    baselines = [
        (
            name, figure(scores["nmae"]), "", figure(scores["mae"]), figure(scores["rmse"]),
            f"{scores['n']:,}",
        )
        for name, scores in result["summary"]["baselines"].items()
    ]  # fmt: skip
    return table(
        ("", "NMAE", "± SE", "MAE", "RMSE", "test ratings"),
        [
            (
                name,
                figure(scores["nmae"]),
                figure(scores["nmae_se"]),
                figure(scores["mae"]),
                figure(scores["rmse"]),
                f"{scores['n']:,}",
            )
            for name, scores in rows
        ]
        + baselines,
    )


def _warnings(result: dict[str, Any]) -> list[str]:
    """What a reader of the scores must know: few ratings, a scale that was only derived."""
    from gmc_core.data.ratings import RatingScale
    from gmc_core.data.readers.report import scale_warning
    from gmc_core.protocol.metrics import (
        enough_repetitions,
        few_held_out,
        few_held_out_words,
    )

    total, data, lines = result["summary"], result["data"], []
    repetitions = result["config"]["repetitions"]
    if few_held_out(total["n"], total["nmae_se"]):
        more = enough_repetitions(repetitions, total["n"], total["nmae_se"])
        text = few_held_out_words(total["n"], data["ratings"])
        if more and ExperimentConfig.from_dict(result["config"]).redraws:
            text += f"; --repetitions {more} averages over more draws"
        lines.append(text)
    derived = (data["load_report"] or {}).get("scale_derived")
    if derived:
        lines.append(scale_warning(RatingScale(*data["scale"]), derived))
    return lines
