"""``gmc reproduce``: the paper's two tables, beside what this program reaches."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gmc_core.base.errors import ConfigError
from gmc_core.base.signs import signed
from gmc_core.cli import reproduce_systems
from gmc_core.cli.affordable import add_long_argument, refusing
from gmc_core.cli.arguments import add_resource_arguments, memory_limit_from_arguments
from gmc_core.cli.compare import names
from gmc_core.cli.dask import cluster_at, experiment_at
from gmc_core.cli.output import check_output, duration, figure, note, table, write_json
from gmc_core.cli.parser import add_command
from gmc_core.cli.values import number, whole

if TYPE_CHECKING:
    from gmc_core.data.ratings import Ratings
    from gmc_core.fitting.preparing import Prepared
    from gmc_core.gaussian.settings import FitSettings
    from gmc_core.paper.published import PublishedTable, Reference
    from gmc_core.paper.random_holdout import RandomTable
    from gmc_core.protocol.metrics import Scores

RANDOM = "random"
# What may be measured for the table random.
RANDOM_MODELS = {
    "best": "two-sided averaged with low rank",
    "ordinal": "ordered ratings",
}

EXAMPLES = """\
  gmc reproduce --table 2
  gmc reproduce --table 2 --data ml-1m.zip --repetitions 1 --dtype float32
  gmc reproduce --table 1 --data eachmovie/
  gmc reproduce --table 2 --systems urp,mmmf,nbmc --repetitions 1
  gmc reproduce --table random --data ml-1m.zip --repetitions 1 --dtype float32
"""


def add_parser(commands: Any) -> None:
    """Add the command ``reproduce``."""
    parser = add_command(
        commands,
        "reproduce",
        help="repeat the paper's experiments and compare",
        description="Repeat the paper's weak and strong generalization with its settings, and "
        "show the\nresult beside the published ones. Table 1 is EachMovie, which is no longer "
        "distributed:\ngive the path of your own copy. Table 2 is MovieLens 1M. The table "
        "random is what others report\non a random tenth of MovieLens 1M, or with --data of 10M, "
        "beside the preset best.",
        examples=EXAMPLES,
    )
    parser.add_argument("--table", choices=("1", "2", RANDOM), required=True)
    parser.add_argument("--data", metavar="NAME|PATH", help="default for table 2: ml-1m")
    parser.add_argument(
        "--repetitions", type=whole, default=3, metavar="N", help="default: 3, the paper's"
    )
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="default: 0")
    parser.add_argument(
        "--epsilon", type=number, metavar="E", help="tables 1 and 2; default: 0.3, the paper's"
    )
    parser.add_argument(
        "--systems",
        type=names,
        metavar="all|NAME,NAME,…",
        help="tables 1 and 2: measure the table's other systems too, on the same splits",
    )
    parser.add_argument(
        "--model",
        choices=tuple(RANDOM_MODELS),
        help="table random: what is measured (default: best, the preset)",
    )
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    parser.add_argument("--json", metavar="FILE", help="write the results ('-' for stdout)")
    add_long_argument(add_resource_arguments(parser, dask=True))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run both protocols."""
    if args.table == RANDOM:
        return _random(args)
    if args.model is not None:
        raise ConfigError("--model belongs to the table random; leave it out.")
    number_of_table = int(args.table)
    if number_of_table == 1 and args.data is None:
        raise ConfigError(
            "Table 1 is EachMovie, which is no longer distributed; give the path of your own copy "
            "with --data."
        )
    check_output(args.json, "--json")
    if args.systems is not None:
        reproduce_systems.chosen(args.systems)
    from gmc_core.cli.data import prepare_telling
    from gmc_core.cli.progress import run_with_progress, tell_prepared
    from gmc_core.fitting.affordable import Wanted
    from gmc_core.fitting.config import ExperimentConfig
    from gmc_core.gaussian.linalg.threads import ThreadPool
    from gmc_core.gaussian.settings import FitSettings
    from gmc_core.paper.published import EACHMOVIE, MOVIELENS_1M
    from gmc_core.protocol.metrics import Scores

    published = EACHMOVIE if number_of_table == 1 else MOVIELENS_1M
    limit, team = memory_limit_from_arguments(args), ThreadPool(args.threads)
    configs = {
        protocol: ExperimentConfig(
            data=args.data or "ml-1m",
            protocol=protocol,
            seed=args.seed,
            repetitions=args.repetitions,
            fit=FitSettings(epsilon=args.epsilon, dtype=args.dtype),
        )
        for protocol in ("weak", "strong")
    }

    def check(ratings: Ratings) -> None:
        for protocol, config in configs.items():
            name = f"The table's {protocol} generalization"
            wanted = Wanted(config.fit, name, 1 if args.systems else len(config.seeds))
            refusing(args, config, lambda scale, one=wanted: [one], limit)(ratings)  # type: ignore[misc]

    prepared = prepare_telling(configs["weak"], check)
    tell_prepared(prepared)
    reasons = _differences(prepared, published, configs["weak"].fit)
    for reason in reasons:
        note(f"does not compare: {reason}")
    if args.systems is not None:
        return reproduce_systems.reproduce_systems(
            args, number_of_table, published, configs, prepared, reasons
        )
    results: dict[str, Any] = {}
    scores: dict[str, Scores] = {}
    with cluster_at(args.dask, args.threads) as cluster:
        for protocol, config in configs.items():
            note(f"{protocol} generalization")
            experiment = experiment_at(cluster, config, prepared, team, limit)
            run_with_progress(experiment, however_long=args.long)
            result = experiment.result()
            results[protocol] = result
            summary = result["summary"]
            wanted = {name: summary[name] for name in Scores.__dataclass_fields__}
            scores[protocol] = Scores(**wanted)
            note(f"{protocol} generalization took {duration(summary['seconds'])}")
    if args.json is not None:
        compared = {"comparable": not reasons, "differences": reasons}
        write_json(args.json, {"table": number_of_table, **compared, **results})
    if args.json != "-":
        text = comparison(published, number_of_table, scores["weak"], scores["strong"], reasons)
        print(text)
    return 0


def _random(args: argparse.Namespace) -> int:
    """A model on a random tenth, from ratings alone, beside the published figures."""
    for flag, given in (("--epsilon", args.epsilon), ("--systems", args.systems)):
        if given is not None:
            raise ConfigError(f"{flag} belongs to tables 1 and 2; leave it out.")
    check_output(args.json, "--json")
    from dataclasses import replace

    from gmc_core.cli.data import prepare_telling
    from gmc_core.cli.progress import run_with_progress, tell_prepared
    from gmc_core.fitting.affordable import Wanted
    from gmc_core.fitting.config import ExperimentConfig
    from gmc_core.fitting.preparing import describe
    from gmc_core.gaussian.linalg.threads import ThreadPool
    from gmc_core.gaussian.models import PRESETS, settings_for
    from gmc_core.paper.random_holdout import RANDOM_TABLES, random_table_for
    from gmc_core.protocol.filter_options import Filter

    model = args.model or "best"
    start = PRESETS[model] if model in PRESETS else settings_for(model)
    config = ExperimentConfig(
        data=args.data or "ml-1m",
        protocol="random",
        filter=Filter(0, 0),
        seed=args.seed,
        repetitions=args.repetitions,
        fit=replace(start, attributes=False, dtype=args.dtype),
    )
    whole = Wanted(config.fit, repetitions=len(config.seeds))
    limit, team = memory_limit_from_arguments(args), ThreadPool(args.threads)
    prepared = prepare_telling(config, refusing(args, config, lambda scale: [whole], limit))
    tell_prepared(prepared)
    found = random_table_for(describe(prepared))
    if found is None:
        known = " and ".join(
            f"{one.data_set} ({one.users:,} users, {one.items:,} items)"
            for one in RANDOM_TABLES.values()
        )
        note(f"does not compare: there are published figures for {known}, not for these data")
    with cluster_at(args.dask, args.threads) as cluster:
        experiment = experiment_at(cluster, config, prepared, team, limit)
        run_with_progress(experiment, however_long=args.long)
        result = experiment.result()
    if args.json is not None:
        content = {"table": RANDOM, "comparable": found is not None, "random": result}
        write_json(args.json, content)
    if args.json != "-":
        print(random_comparison(found, result["summary"], args.repetitions, model))
    return 0


def random_comparison(
    published: RandomTable | None, summary: Mapping[str, Any], repetitions: int, model: str
) -> str:
    """The published figures with the measured one among them, as text.

    summary : of a result. published : None where there are no figures for these data. model : of
    ``RANDOM_MODELS``.
    """
    from gmc_core.paper.random_holdout import CHOSEN_WORDS, caution

    many = "one split" if repetitions == 1 else f"{repetitions} splits"
    own = (
        f"This product, {RANDOM_MODELS[model]}", "this run", figure(summary["rmse"]),
        f"{many}, a tenth", "", "without the test ratings",
    )  # fmt: skip
    rows = [(summary["rmse"], own)]
    for one in published.results if published else ():
        row = (
            one.method, _short(one.reference), one.rmse_text, one.split, one.uses,
            CHOSEN_WORDS[one.chosen],
        )  # fmt: skip
        rows.append((one.rmse, row))
    head = ("method", "published in", "RMSE", "test ratings", "uses besides", "settings chosen")
    lines = [table(head, [row for _, row in sorted(rows, key=lambda pair: pair[0])], left=2), ""]
    if published is None:
        lines.append("There are no published figures for these data to compare with.")
    else:
        lines.append(caution(published))
    lines.append(f"NMAE of this run: {figure(summary['nmae'])} ± {figure(summary['nmae_se'])}")
    return "\n".join(lines)


def _differences(prepared: Prepared, published: PublishedTable, fit: FitSettings) -> list[str]:
    """Why figures on these data, with these settings, cannot be compared with the table."""
    from gmc_core.gaussian.settings import PAPER_EPSILON

    ratings, settings = prepared.ratings, published.settings
    scale = (ratings.scale.low, ratings.scale.high, ratings.scale.step)
    reasons = []
    if (ratings.n_users, ratings.n_items) != (settings.users, settings.items):
        reasons.append(
            f"the paper has {settings.users:,} users and {settings.items:,} items of "
            f"{published.data_set} after the filter, these data {ratings.n_users:,} and "
            f"{ratings.n_items:,}"
        )
    if fit.epsilon not in (None, PAPER_EPSILON):
        reasons.append(f"the paper's ε is {PAPER_EPSILON:g}, that of these runs {fit.epsilon:g}")
    if scale != (settings.low, settings.high, 1):
        reasons.append(
            f"the paper's scale is {settings.low}..{settings.high}, that of these data "
            f"{ratings.scale}"
        )
    return reasons


def comparison(
    published: PublishedTable, number: int, weak: Scores, strong: Scores, reasons: list[str]
) -> str:
    """The table as text, and in a sentence how the result compares."""
    from gmc_core.paper.published import compare

    rows = compare(published, weak, strong)
    short = {row.method: _short(row.reference) for row in published.results}
    lines = [f"Table {number}: NMAE on {published.data_set}", ""]
    lines.append(
        table(
            ("method", "published in", "weak", "± SE", "strong", "± SE"),
            [
                (
                    row.method,
                    "this run" if row.measured else short[row.method],
                    figure(row.weak),
                    figure(row.weak_se) if row.measured else "",
                    figure(row.strong),
                    figure(row.strong_se) if row.measured else "",
                )
                for row in rows
            ],
            left=2,
        )
    )
    lines.append("")
    own = next(row for row in published.results if row.method == "GM")
    if reasons:
        lines.append("These figures do not compare with the published ones:")
        lines += [f"  {reason}" for reason in reasons]
        return "\n".join(lines)
    for name, measured, reference in (("weak", weak, own.weak), ("strong", strong, own.strong)):
        assert reference is not None
        gap, reach = measured.nmae - reference, 3 * measured.nmae_se
        verdict = "within" if abs(gap) <= reach else "OUTSIDE"
        lines.append(
            f"{name}: {measured.nmae:.4f} against the paper's {reference:.4f}, a difference of "
            f"{signed(gap, 4)}: {verdict} three standard errors ({reach:.4f})"
        )
    return "\n".join(lines)


def _short(reference: Reference) -> str:
    """Authors and year, or the paper's citation key where it leaves more open."""
    if reference.authors is None:
        return str(reference)
    authors = reference.authors.replace(" and ", ", ").split(", ")
    names = [author.split()[-1] for author in authors]
    shown = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
    return f"{shown}, {reference.year}"
