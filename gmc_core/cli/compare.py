"""``gmc compare``: methods on the same splits, with paired differences, time and memory."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmc_core.base.errors import ConfigError, GmcError
from gmc_core.cli.activity import doing
from gmc_core.cli.affordable import add_long_argument, refusing
from gmc_core.cli.arguments import FIT, add_experiment_arguments, config_from_arguments, whole
from gmc_core.cli.comparison_tables import legend, markdown, methods_table, text_table
from gmc_core.cli.dask import add_dask_argument, cluster_at
from gmc_core.cli.output import (
    check_output,
    duration,
    figure,
    note,
    write_json,
    write_text,
)
from gmc_core.cli.parser import add_command

if TYPE_CHECKING:
    from gmc_core.comparison.comparators import Method
    from gmc_core.comparison.compare import Comparison, Step
    from gmc_core.comparison.plan import ComparisonPlan
    from gmc_core.data.ratings import RatingScale
    from gmc_core.fitting.affordable import Wanted
    from gmc_core.fitting.config import ExperimentConfig
    from gmc_core.fitting.preparing import Prepared
    from gmc_core.runs.cluster.cluster import Cluster
    from gmc_core.runs.store import Run, Store

EXAMPLES = """\
  gmc compare --data sample --seeds 0..9
  gmc compare --data ml-1m --seeds 0..4 --methods paper,knn,mf,bias --markdown table.md
  gmc compare --data sample --methods exact,paper,paper:epsilon=1 --reference paper
  gmc compare --data ml-1m --protocol strong --methods paper,myfm-mf \\
      --peer-python external/bin/python
"""
DEFAULT_METHODS = ("paper", "mf", "knn", "bias", "item", "user", "global")
MOST_SEEDS = 1000


def seeds(text: str) -> tuple[int, ...]:
    """Whole numbers and ranges FIRST..LAST with commas between, without repetition."""
    found: list[int] = []
    for part in text.split(","):
        span = re.fullmatch(r"\s*(\d+)\.\.(\d+)\s*", part)
        first, last = (int(span[1]), int(span[2])) if span else (whole(part.strip()),) * 2
        if first < 0 or last < first or last - first >= MOST_SEEDS:
            raise argparse.ArgumentTypeError(
                f"{part.strip()!r} is no seed or range such as 0..4, of at most {MOST_SEEDS:,}"
            )
        found += range(first, last + 1)
    return tuple(dict.fromkeys(found))


def names(text: str) -> tuple[str, ...]:
    """Names with commas between, but not inside brackets, without repetition."""
    parts = re.split(r",(?![^\[]*\])", text)
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def add_parser(commands: Any) -> None:
    """Add the command ``compare``."""
    parser = add_command(
        commands,
        "compare",
        help="compare methods on the same splits, with paired differences and their cost",
        description="Run several methods on the same splits. A comparison is a run, as a fit is: "
        "it is\nkept, and goes on where it was interrupted. What another has computed is not "
        "repeated.",
        examples=EXAMPLES,
    )
    group = parser.add_argument_group("what is compared")
    group.add_argument(
        "--methods",
        type=names,
        default=DEFAULT_METHODS,
        metavar="NAME,NAME,…",
        help=f"(default: {','.join(DEFAULT_METHODS)}; --list shows all; a model may have other "
        "settings, as in paper:epsilon=1:iterations=5)",
    )
    group.add_argument("--list", action="store_true", help="show the methods and leave")
    group.add_argument(
        "--reference", metavar="NAME", help="compare with this one (default: the first)"
    )
    group.add_argument(
        "--seeds",
        type=seeds,
        default=(0,),
        metavar="N..N,…",
        help="of the splits, such as 0..4 (default: 0; five or more for intervals over splits)",
    )
    group.add_argument(
        "--peer-python",
        action="append",
        metavar="PATH",
        help="a Python that has Surprise, cornac, myFM or LensKit; repeatable (default: those in "
        "GMC_PEER_PYTHON)",
    )
    # The methods themselves decide how they are fitted.
    add_experiment_arguments(parser, skip=("seed", "repetitions", *FIT))
    machine = parser.add_argument_group("this machine")
    machine.add_argument(
        "--threads", type=whole, metavar="N", help="cores to use (default: all, or GMC_THREADS)"
    )
    add_dask_argument(machine)
    add_long_argument(machine)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--folder",
        metavar="DIR",
        help="keep the predictions there, apart from the runs, and use again what is there",
    )
    output.add_argument("--again", action="store_true", help="compute everything again")
    output.add_argument("--json", metavar="FILE", help="write the figures ('-' for stdout)")
    output.add_argument("--markdown", metavar="FILE", help="write the table as Markdown")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the comparison."""
    check_output(args.json, "--json")
    check_output(args.markdown, "--markdown")
    from gmc_core.comparison.comparators.external import installed_baselines

    external = installed_baselines(args.peer_python)
    if args.list:
        print(methods_table(external))
        return 0
    config = config_from_arguments(args)
    if config.protocol == "none":
        raise ConfigError("--protocol none holds nothing out; compare with another one.")
    _check_names(args, external)
    comparison = _compared(args, config, external)
    if args.json is not None:
        write_json(args.json, comparison.as_dict())
    if args.markdown is not None:
        write_text(args.markdown, markdown(comparison))
    if args.json != "-":
        print(text_table(comparison))
        print("\n" + legend(comparison))
    failed = [row for row in comparison.rows() if row.failure]
    for row in failed:
        note(f"{row.label}: {row.failure}")
    return 2 if failed else 0


def _check_names(args: argparse.Namespace, external: dict[str, str]) -> None:
    """Refuse unknown names before the ratings are read."""
    from gmc_core.comparison.comparators import method_named
    from gmc_core.data.ratings import RatingScale

    if not args.methods:
        raise ConfigError("--methods names no method; --list shows them.")
    for name in args.methods:
        method_named(name, RatingScale(1, 5), external)
    if args.reference not in (None, *args.methods):
        raise ConfigError(
            f"--reference {args.reference} is not among the methods compared; add it to --methods."
        )


def _compared(
    args: argparse.Namespace, config: ExperimentConfig, external: dict[str, str]
) -> Comparison:
    """The comparison, found or computed in this process, with progress on stderr."""
    from gmc_core.cli.data import prepare_telling
    from gmc_core.cli.progress import tell_prepared
    from gmc_core.cli.runs import open_store
    from gmc_core.comparison.comparators import method_named
    from gmc_core.comparison.plan import ComparisonPlan, fits_of
    from gmc_core.protocol.random_splits import check_seeds

    def fits(scale: RatingScale) -> list[Wanted]:
        return fits_of(method_named(name, scale, external) for name in args.methods)

    prepared = prepare_telling(config, refusing(args, config, fits))
    tell_prepared(prepared)
    scale = prepared.ratings.scale
    methods = [method_named(name, scale, external) for name in args.methods]
    # An explicit pair is one split.
    numbers = (0,) if config.protocol == "pair" else args.seeds
    check_seeds(config.folds, numbers, prepared.ratings)
    told = Progress(len(methods) * len(numbers), config)
    with cluster_at(args.dask, args.threads) as cluster:
        if args.folder is not None:
            return _in_folder(args, config, prepared, methods, numbers, told, cluster)
        plan = ComparisonPlan.of(methods, numbers, args.reference, external)
        with open_store() as store:
            return as_run(
                store, config, plan, prepared, told,
                again=args.again, threads=args.threads, cluster=cluster, however_long=args.long,
            )  # fmt: skip


def as_run(
    store: Store,
    config: ExperimentConfig,
    plan: ComparisonPlan,
    prepared: Prepared,
    told: Progress,
    *,
    again: bool = False,
    threads: int | None = None,
    cluster: Cluster | None = None,
    however_long: bool = False,
) -> Comparison:
    """As a run of the store, which the pages show and may cancel.

    Raises
    ------
    KeyboardInterrupt
        If it was cancelled there.
    GmcError
        If it has ended otherwise, or its files are gone.
    """
    from dataclasses import replace

    from gmc_core.runs.comparisons import comparison_of
    from gmc_core.runs.worker.comparing import compute_here

    def begin(run: Run) -> None:
        note(f"{len(plan.methods)} methods on {len(plan.seeds)} splits, as run {run.id}")

    run, computed = compute_here(
        store, config, plan, prepared,
        again=again, threads=threads, begin=begin, tell=told.end, at_begin=told.begin,
        cluster=cluster, however_long=however_long, progress=told.step,
    )  # fmt: skip
    if run.state == "cancelled":
        note(f"stopped; the same command goes on, and so does gmc runs resume {run.id}")
        raise KeyboardInterrupt
    if run.state != "finished":
        raise GmcError(f"{run.message} The comparison is {run.state}, as run {run.id}.")
    comparison = comparison_of(store, run, plan.reference)
    if comparison is None:
        raise GmcError(f"The files of run {run.id} are gone; --again computes it anew.")
    if not computed or told.reused == told.done > 0:
        note(
            f"this comparison was computed before, as run {run.id}; nothing new was computed. "
            "--again computes all of it anew."
        )
    # A comparison that was found may have them in another order.
    return replace(comparison, labels=dict(zip(plan.methods, plan.labels, strict=True)))


def _in_folder(
    args: argparse.Namespace,
    config: ExperimentConfig,
    prepared: Prepared,
    methods: list[Method],
    numbers: tuple[int, ...],
    told: Progress,
    cluster: Cluster | None,
) -> Comparison:
    """With its predictions in a folder of the person's choice, and no run."""
    from gmc_core.comparison.compare import compare
    from gmc_core.comparison.comparison_files import remove_results
    from gmc_core.fitting.preparing import make_split
    from gmc_core.gaussian.linalg.threads import ThreadPool

    folder = Path(args.folder)
    if args.again:
        remove_results(folder)
    note(f"{len(methods)} methods on {len(numbers)} splits; predictions in {folder}")
    try:
        comparison = compare(
            methods,
            (make_split(config, prepared, seed) for seed in numbers),
            reference=args.reference,
            folder=folder,
            team=ThreadPool(args.threads, progress=told.step),
            on_begin=told.begin,
            on_end=told.end,
            **({} if cluster is None else cluster.for_compare(config, prepared)),
        )
    except KeyboardInterrupt:
        note(f"stopped; the same command goes on (predictions are in {folder})")
        raise
    write_json(str(folder / "summary.json"), comparison.as_dict())
    if told.reused == told.done > 0:
        note(
            "this comparison was computed before; nothing new was computed. --again computes all "
            "of it anew."
        )
    return comparison


class Progress:
    """A line on stderr for each fit.

    done, reused : fits that have a result or a failure, and those that were there.
    step : what the fit that goes on is at.
    """

    def __init__(self, total: int, config: ExperimentConfig) -> None:
        from gmc_core.gaussian.linalg.progress import StepProgress

        self.step = StepProgress()
        self.total, self.config = total, config
        self.done = self.reused = 0
        self._begun = 0
        self._noted: set[str] = set()

    def begin(self, step: Step) -> None:
        """A fit begins (on a cluster several at once)."""
        self._begun += 1
        seed = step.split.seed
        drawn = "" if seed is None else f", {self.config.split_words(seed)}"
        doing(f"fit {self._begun} of {self.total}: {step.method.label}{drawn}", self.step.now)

    def end(self, step: Step, comparison: Comparison) -> None:
        """One fit more."""
        from gmc_core.comparison.comparators.gaussian import GaussianMethod
        from gmc_core.fitting.time_notes import notes_on_times

        notes = step.split.notes
        if isinstance(step.method, GaussianMethod):
            notes += notes_on_times(step.split, step.method.settings)
        for text in notes:
            if text not in self._noted:
                self._noted.add(text)
                note(text)
        self.done += 1
        seed = step.split.seed
        drawn = "" if seed is None else f" {self.config.split_words(seed)},"
        line = f"[{self.done}/{self.total}]{drawn} {step.method.label}: "
        if step.outcome is None:
            note(line + step.failure)
            return
        self.reused += step.reused
        kept = " (kept from before)" if step.reused else ""
        note(f"{line}NMAE {figure(step.nmae())}, {duration(step.outcome.seconds)}{kept}")
