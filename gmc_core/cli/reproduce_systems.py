"""``gmc reproduce --systems``: every system of a table on the same splits, printed and measured."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gmc_core.base.errors import ConfigError
from gmc_core.base.signs import signed
from gmc_core.cli.compare import Progress, as_run
from gmc_core.cli.comparison_tables import interval
from gmc_core.cli.dask import cluster_at
from gmc_core.cli.output import figure, note, size, table, write_json

if TYPE_CHECKING:
    from gmc_core.fitting.config import ExperimentConfig
    from gmc_core.fitting.preparing import Prepared
    from gmc_core.paper.published import PublishedTable
    from gmc_core.paper.systems import SystemRow

HEADER = (
    "method", "printed", "measured", "± SE", "verdict", "− GM", "95 % over ratings", "s", "memory",
)  # fmt: skip
ALL = ("all",)


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """The systems that are asked for, in the tables' order.

    Raises
    ------
    ConfigError
        If a name is none of theirs.
    """
    from gmc_core.paper.systems import METHODS

    known = tuple(METHODS.values())
    wrong = [name for name in names if name not in (*known, *ALL)]
    if wrong or not names:
        raise ConfigError(
            f"--systems takes all, or some of {', '.join(known)} with commas between"
            + (f", not {wrong[0]!r}." if wrong else ".")
        )
    return known if set(names) & set(ALL) else tuple(name for name in known if name in names)


def reproduce_systems(
    args: argparse.Namespace,
    number: int,
    published: PublishedTable,
    configs: Mapping[str, ExperimentConfig],
    prepared: Prepared,
    reasons: list[str],
) -> int:
    """Both protocols, each as a comparison of the store; what is there is not computed again.

    number : of the table. reasons : why these data do not compare with it.
    """
    from dataclasses import replace

    from gmc_core.cli.runs import open_store
    from gmc_core.comparison.comparators import method_named
    from gmc_core.comparison.plan import ComparisonPlan
    from gmc_core.gaussian.settings import FitSettings
    from gmc_core.paper.systems import system_rows

    own = _own(args)
    # The methods themselves decide how they are fitted; so compared, the runs are found again.
    plain = {
        name: replace(config, seed=0, repetitions=1, fit=FitSettings())
        for name, config in configs.items()
    }
    scale = prepared.ratings.scale
    methods = [method_named(name, scale) for name in (own, *chosen(args.systems))]
    seeds = range(args.seed, args.seed + args.repetitions)
    plan = ComparisonPlan.of(methods, seeds)
    rows: dict[str, list[SystemRow]] = {}
    failures: list[str] = []
    with cluster_at(args.dask, args.threads) as cluster, open_store() as store:
        for protocol, config in plain.items():
            note(f"{protocol} generalization")
            told = Progress(plan.total, config)
            comparison = as_run(
                store,
                config,
                plan,
                prepared,
                told,
                threads=args.threads,
                cluster=cluster,
                however_long=args.long,
            )
            rows[protocol] = system_rows(published, protocol, comparison, own, not reasons)
            failures += [f"{one.label}: {one.failure}" for one in comparison.rows() if one.failure]
    if args.json is not None:
        compared: dict[str, Any] = {"comparable": not reasons, "differences": reasons}
        found = {name: [row.as_dict() for row in lines] for name, lines in rows.items()}
        write_json(args.json, {"table": number, "seeds": list(seeds), **compared, **found})
    if args.json != "-":
        print(systems_text(published, number, rows, reasons, len(seeds)))
    for text in failures:
        note(text)
    return 2 if failures else 0


def systems_text(
    published: PublishedTable,
    number: int,
    rows: Mapping[str, Sequence[SystemRow]],
    reasons: list[str],
    splits: int,
) -> str:
    """Both columns of the table, each as one of its own, and how to read them."""
    lines = []
    for protocol, of_protocol in rows.items():
        many = "one split" if splits == 1 else f"{splits} splits"
        lines += [f"Table {number}, {protocol}: NMAE on {published.data_set}, {many}", ""]
        lines += [table(HEADER, [_cells(row) for row in of_protocol]), ""]
    if reasons:
        lines.append("The measured figures do not compare with the printed ones:")
        lines += [f"  {reason}" for reason in reasons]
    else:
        lines.append(
            "Verdicts: measured within three of its standard errors of the printed figure, better, "
            "or worse."
        )
    lines.append(
        "Differences to GM, the paper's MAP-EM, are on the same held-out ratings; below 0 the "
        "system is better."
    )
    return "\n".join(lines)


def _cells(row: SystemRow) -> tuple[str, ...]:
    own = row.measured
    if own is None or own.scores is None:
        return (row.published.method, figure(row.printed), *[""] * (len(HEADER) - 2))
    ratings = None if row.difference is None else row.difference.ratings
    peak = own.peak_bytes
    return (
        row.published.method,
        figure(row.printed),
        figure(own.scores.nmae),
        figure(own.scores.nmae_se),
        row.verdict,
        "" if ratings is None else signed(ratings.mean, 4),
        "" if ratings is None else interval(ratings),
        f"{own.seconds:.1f}",
        "-" if peak is None or peak != peak else size(peak),
    )


def _own(args: argparse.Namespace) -> str:
    """The paper's method, with the settings of the command."""
    epsilon = "" if args.epsilon is None else f":epsilon={args.epsilon!r}"
    return f"paper{epsilon}" + (":dtype=float32" if args.dtype == "float32" else "")
