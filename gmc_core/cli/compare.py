"""``gmc compare``: methods on the same splits, with paired differences, time and memory."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gmc_core.base.errors import ConfigError, GmcError
from gmc_core.cli.arguments import FIT, add_experiment_arguments, config_from_arguments, whole
from gmc_core.cli.output import (
    check_output,
    duration,
    figure,
    note,
    size,
    table,
    write_json,
    write_text,
)
from gmc_core.cli.parser import add_command

if TYPE_CHECKING:
    from gmc_core.comparison.compare import Comparison, Difference, Row, Step
    from gmc_core.fitting.experiment import ExperimentConfig, Prepared
    from gmc_core.protocol.metrics import PairedDifference
    from gmc_core.protocol.splits import Split
    from gmc_core.runs.store.comparisons import ComparisonFolder, Plan

EXAMPLES = """\
  gmc compare --data sample --seeds 0..9
  gmc compare --data ml-1m --seeds 0..4 --methods paper,knn,mf,bias --markdown table.md
  gmc compare --data sample --methods exact,paper,paper:epsilon=1 --reference paper
  gmc compare --data ml-1m --protocol strong --methods paper,myfm-mf \\
      --peer-python peers/bin/python
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
        description="Run several methods on the same splits. Every prediction is kept in a folder: "
        "an\ninterrupted comparison goes on where it was, and another method can be added later.",
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
    output = parser.add_argument_group("output")
    output.add_argument(
        "--folder", metavar="DIR", help="where predictions are kept (default: with the runs)"
    )
    output.add_argument(
        "--again", action="store_true", help="compute everything again, in place of what is kept"
    )
    output.add_argument("--json", metavar="FILE", help="write the figures ('-' for stdout)")
    output.add_argument("--markdown", metavar="FILE", help="write the table as Markdown")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the comparison."""
    check_output(args.json, "--json")
    check_output(args.markdown, "--markdown")
    from gmc_core.comparison.comparators.peers import installed_peers

    peers = installed_peers(args.peer_python)
    if args.list:
        print(methods_table(peers))
        return 0
    config = config_from_arguments(args)
    if config.protocol == "none":
        raise ConfigError("--protocol none holds nothing out; compare with weak or strong.")
    _check_names(args, peers)
    comparison = _Run(args, config, peers).run()
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


def _check_names(args: argparse.Namespace, peers: dict[str, str]) -> None:
    """Refuse unknown names before the ratings are read."""
    from gmc_core.comparison.comparators import method_named
    from gmc_core.data.ratings import RatingScale

    if not args.methods:
        raise ConfigError("--methods names no method; --list shows them.")
    for name in args.methods:
        method_named(name, RatingScale(1, 5), peers)
    if args.reference not in (None, *args.methods):
        raise ConfigError(
            f"--reference {args.reference} is not among the methods compared; add it to --methods."
        )


class _Run:
    """One comparison with its progress on stderr and in its folder."""

    def __init__(
        self, args: argparse.Namespace, config: ExperimentConfig, peers: dict[str, str]
    ) -> None:
        from pathlib import Path

        from gmc_core.runs.store.comparisons import ComparisonFolder, folder_for

        self.args, self.config, self.peers = args, config, peers
        self.folder: ComparisonFolder = (
            folder_for(config) if args.folder is None else ComparisonFolder(Path(args.folder))
        )
        self.plan: Plan | None = None
        self.failures: list[tuple[str, str, str]] = []
        self.done = self.reused = 0
        self.key = ""  # of the current split
        self.told: set[str] = set()

    def run(self) -> Comparison:
        with self.folder.claimed():
            return self._computed()

    def _computed(self) -> Comparison:
        """The comparison, with its state in the folder whatever happens."""
        from gmc_core.gaussian.linalg.threads import Cancelled

        if self.args.again:
            self.folder.forget_results()
        self._status("running", "reading the ratings")
        try:
            comparison = self._compare()
        except (KeyboardInterrupt, Cancelled) as error:
            self._status("cancelled")
            note(f"stopped; the same command goes on (results are in {self.folder.path})")
            raise KeyboardInterrupt from error
        except GmcError as error:
            self._status("failed", message=str(error))
            raise
        except BaseException as error:
            message = f"A mistake of the program ({type(error).__name__}); see {self.folder.log}."
            self._status("failed", message=message)
            raise
        self._status("finished")
        if self.reused == self.done > 0:
            note(
                "this comparison was computed before; nothing new was computed. --again computes "
                "all of it anew."
            )
        return comparison

    def _compare(self) -> Comparison:
        from gmc_core.cli.data import DownloadBar
        from gmc_core.cli.progress import tell_prepared
        from gmc_core.comparison.comparators import method_named
        from gmc_core.comparison.compare import compare
        from gmc_core.fitting.experiment import prepare
        from gmc_core.gaussian.linalg.threads import Team

        prepared = prepare(self.config, progress=DownloadBar())
        tell_prepared(prepared)
        scale = prepared.ratings.scale
        methods = [method_named(name, scale, self.peers) for name in self.args.methods]
        self._make_plan(prepared, methods)
        note(f"{len(methods)} methods on {len(self.seeds)} splits; results in {self.folder.path}")
        return compare(
            methods,
            self._splits(prepared),
            reference=self.args.reference or self.args.methods[0],
            folder=self.folder.path,
            team=Team(self.args.threads, self.folder.cancelled),
            on_begin=self._begin,
            on_end=self._end,
        )

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of the splits; an explicit pair is one split."""
        return (0,) if self.config.protocol == "pair" else self.args.seeds

    def _splits(self, prepared: Prepared) -> Iterator[Split]:
        from gmc_core.fitting.experiment import make_split

        for seed in self.seeds:
            split = make_split(self.config, prepared, seed)
            for text in split.notes:
                if text not in self.told:
                    self.told.add(text)
                    note(text)
            yield split

    def _make_plan(self, prepared: Prepared, methods: list[Any]) -> None:
        from gmc_core.comparison.comparison_files import method_key
        from gmc_core.fitting.experiment import describe
        from gmc_core.runs.store.comparison_again import repeating_command
        from gmc_core.runs.store.comparisons import Plan, command_for

        scale = prepared.ratings.scale
        reference = self.args.reference or self.args.methods[0]
        found = self.folder.plan()
        self.plan = Plan(
            title=found.title if found else f"{prepared.ratings.name}, {self.config.protocol}",
            command=command_for(
                self.config, self.folder, self.seeds, self.args.methods, reference,
                self.args.peer_python or (),
            ),
            protocol=self.config.protocol,
            seeds=self.seeds,
            methods=tuple((m.name, m.label, method_key(m)) for m in methods),
            reference=reference,
            scale=(scale.low, scale.high, scale.step),
            # What was reached before stays in sight while it is read again.
            splits=found.splits if found and found.seeds == self.seeds else (),
            repeat=repeating_command(
                self.config, describe(prepared), self.seeds, self.args.methods, reference,
                self.args.peer_python or (),
            ),
        )  # fmt: skip
        self.folder.keep_plan(self.plan)

    def _begin(self, step: Step) -> None:
        from dataclasses import replace

        from gmc_core.comparison.comparison_files import truth_of

        assert self.plan is not None
        self.key = truth_of(step.split).key
        if self.key not in self.plan.splits:
            self.plan = replace(self.plan, splits=(*self.plan.splits, self.key))
            self.folder.keep_plan(self.plan)
        seed = "" if step.split.seed is None else f", seed {step.split.seed}"
        self._status("running", f"{step.method.label}{seed}")

    def _end(self, step: Step, comparison: Comparison) -> None:
        assert self.plan is not None
        self.done += 1
        seed = "" if step.split.seed is None else f" seed {step.split.seed},"
        line = f"[{self.done}/{self.plan.total}]{seed} {step.method.label}: "
        if step.outcome is None:
            self.failures.append((step.method.name, self.key, step.failure))
            note(line + step.failure)
        else:
            self.reused += step.reused
            again = " (kept from before)" if step.reused else ""
            spent = duration(step.outcome.seconds)
            note(f"{line}NMAE {figure(step.nmae())}, {spent}{again}")
        self.folder.keep_summary(comparison)

    def _status(self, state: str, now: str = "", message: str = "") -> None:
        from gmc_core.runs.store.comparisons import Status

        total = self.plan.total if self.plan else len(self.args.methods) * len(self.seeds)
        self.folder.keep_status(
            Status(state, self.done, total, now, time.time(), message, tuple(self.failures))
        )


# Tables ------------------------------------------------------------------------------

HEADER = (
    "method", "splits", "NMAE", "± SE", "− reference", "95 % over ratings", "over splits",
    "RMSE", "− reference", "95 % over ratings", "s", "CPU s", "memory",
)  # fmt: skip


def cells(row: Row) -> tuple[str, ...]:
    """A line of the table, as wide as ``HEADER``."""
    scores = row.scores
    if scores is None:
        return (row.label, "0", *["-"] * (len(HEADER) - 2))
    peak = row.peak_bytes
    assert row.seconds is not None and row.cpu_seconds is not None
    return (
        row.label,
        str(row.splits),
        figure(scores.nmae),
        figure(scores.nmae_se),
        *_difference(row.nmae),
        figure(scores.rmse),
        *_difference(row.rmse)[:2],
        f"{row.seconds:.1f}",
        f"{row.cpu_seconds:.1f}",
        "-" if peak is None or peak != peak else size(peak),
    )


def text_table(comparison: Comparison) -> str:
    """Columns for a terminal."""
    return table(HEADER, [cells(row) for row in comparison.rows()])


def markdown(comparison: Comparison) -> str:
    """The table and its legend as Markdown."""
    lines = [HEADER, ["---"] * len(HEADER), *(cells(row) for row in comparison.rows())]
    rows = ["| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines]
    return "\n".join(rows) + "\n\n" + legend(comparison) + "\n"


def legend(comparison: Comparison) -> str:
    """How to read the table."""
    return (
        f"Differences to {comparison.labels[comparison.reference]}, below 0 where the method is "
        "better, on the same held-out ratings.\n"
        f"NMAE = MAE / {comparison.scale.nmae_divisor:.4g} after projection to the scale; RMSE "
        "clipped, not rounded. Seconds and CPU seconds are means over the splits, of fit and "
        "predictions; memory is the largest, beyond the ratings."
    )


def methods_table(peers: dict[str, str]) -> str:
    """Names and labels of all methods, and which packages' are installed."""
    from gmc_core.comparison.comparators import PEER_LABELS, available

    lines = [(name, label, "") for name, label in available().items()]
    lines += [
        (name, label, peers.get(name, "not installed; --peer-python names a Python that has it"))
        for name, label in PEER_LABELS.items()
    ]
    return table(("name", "method", ""), lines, left=3)


def _difference(difference: Difference | None) -> tuple[str, str, str]:
    if difference is None:
        return "", "", ""
    splits = difference.splits
    return (
        f"{difference.ratings.mean:+.4f}",
        _interval(difference.ratings),
        "-" if splits is None else _interval(splits),
    )


def _interval(difference: PairedDifference) -> str:
    return f"[{difference.low:+.4f}, {difference.high:+.4f}]"
