"""``gmc claims``: every claim of the paper, measured on the data at hand."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gmc_core.base.errors import ConfigError
from gmc_core.cli.activity import doing
from gmc_core.cli.affordable import add_long_argument
from gmc_core.cli.arguments import FIT, add_experiment_arguments, config_from_arguments, whole
from gmc_core.cli.dask import add_dask_argument, computing
from gmc_core.cli.output import check_output, duration, figure, note, table, write_text
from gmc_core.cli.parser import add_command
from gmc_core.fitting.config import OF_HELD_OUT

if TYPE_CHECKING:
    from gmc_core.paper.claims import Subject
    from gmc_core.paper.claims.results import Results
    from gmc_core.runs.store import Run, Store

EXAMPLES = """\
  gmc claims --data sample --out report.html
  gmc claims --data ml-1m --out report.html --markdown claims.md --json claims.json
  gmc claims --data ml-1m --now          what has been found so far, computing nothing
"""
POLL_SECONDS = 0.5
PATIENCE = 3  # times that a run whose worker died is resumed
# What the claims themselves decide.
SKIPPED = (
    "train", "test", "protocol", "seed", "repetitions", "weak_users", "strong_users",
    *OF_HELD_OUT, *FIT,
)  # fmt: skip


def add_parser(commands: Any) -> None:
    """Add the command ``claims``."""
    parser = add_command(
        commands,
        "claims",
        help="check every claim of the paper on these data",
        description="Measure each claim of the paper: holds, does not hold, or not resolved, with "
        "figure,\ninterval and run. Everything computed is kept among the runs: stopped with "
        "Ctrl-C, the same\ncommand goes on, and a second time it only reports.",
        examples=EXAMPLES,
    )
    add_experiment_arguments(parser, skip=SKIPPED)
    group = parser.add_argument_group("claims")
    group.add_argument(
        "--splits",
        type=whole,
        metavar="N",
        help="compare settings on N splits (default: 3 to 10, enough for the margin of .005)",
    )
    group.add_argument(
        "--now", action="store_true", help="report what is there, without computing anything"
    )
    machine = parser.add_argument_group("this machine, or others")
    add_dask_argument(machine)
    add_long_argument(machine)
    output = parser.add_argument_group("output")
    output.add_argument("--out", metavar="FILE", help="write the report as one HTML file")
    output.add_argument("--markdown", metavar="FILE", help="write it as Markdown")
    output.add_argument("--json", metavar="FILE", help="write all figures ('-' for stdout)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compute what is missing, then report."""
    for path, flag in ((args.out, "--out"), (args.markdown, "--markdown"), (args.json, "--json")):
        check_output(path, flag)
    if args.splits is not None and args.splits < 2:
        raise ConfigError(f"--splits must be 2 or more, not {args.splits}.")
    from gmc_core.cli.data import prepare_telling
    from gmc_core.cli.progress import tell_prepared
    from gmc_core.cli.runs import open_store
    from gmc_core.paper.claims import Subject
    from gmc_core.paper.claims.check import look, progress

    config = config_from_arguments(args)
    prepared = prepare_telling(config)
    tell_prepared(prepared)
    subject = Subject.of(config, prepared, args.splits)
    del prepared
    with open_store() as store:
        if not args.now:
            _refuse(args, subject)
            _compute(store, subject, args.dask, args.long)
        results = look(store, subject)
        open_ = not progress(store, subject).complete
    _tell(results, args)
    if open_:
        note("not everything has been computed; the same command without --now goes on")
    return 0


def _refuse(args: argparse.Namespace, subject: Subject) -> None:
    """Refuse experiments that would cost too much; nothing is queued then."""
    import sys

    from gmc_core.fitting.affordable import ON_THE_COMMAND_LINE

    limit = None if args.dask is None else sys.maxsize
    subject.check_affordable(args.long, limit, ON_THE_COMMAND_LINE)


def _compute(store: Store, subject: Subject, where: str | None, however_long: bool) -> None:
    """Wait for runs and comparison, with progress on stderr; Ctrl-C stops them.

    where : the cluster; None for the worker. however_long : of the fits.
    """
    from gmc_core.paper.claims.check import cancel, progress, submit

    if where is not None and progress(store, subject).complete:
        where = None  # there is nothing to compute
    runs = submit(store, subject, however_long)
    ids = {run.id for run in runs.values()}
    with computing(store, where, ids, only_run="claims") as ensure:
        try:
            _follow_runs(store, runs, ensure)
            _follow_comparison(store, subject, ids, ensure, however_long)
        except KeyboardInterrupt:
            cancel(store, subject)
            note("stopped; the same command goes on")
            raise


def _follow_runs(store: Store, runs: dict[str, Run], ensure: Callable[[], object]) -> None:
    told = {name for name, found in runs.items() if found.ended_for_good}
    resumed: list[str] = []
    note(f"{len(runs)} experiments, {len(told)} of them were there already")
    shown = ""
    while len(told) < len(runs):
        for name in runs:
            if name in told:
                continue
            found = store.run(runs[name].id)
            if found.state == "interrupted" and resumed.count(name) < PATIENCE:
                # Its worker died: nobody wanted it to stop.
                resumed.append(name)
                store.resume(found.id)
            elif found.ended_for_good:
                told.add(name)
                note(f"[{len(told)}/{len(runs)}] {_line(found)}")
        now = _now(store, runs, told)
        if now != shown:
            shown = now
            doing(now)
        if len(told) < len(runs):
            ensure()
            time.sleep(POLL_SECONDS)


def _now(store: Store, runs: dict[str, Run], told: set[str]) -> str:
    """Which experiments are being computed."""
    found = (store.run(run.id) for name, run in runs.items() if name not in told)
    running = [run for run in found if run.state == "running"]
    return "; ".join(
        [
            f"{len(told)} of {len(runs)} experiments have ended",
            *(f"{run.title}, iteration {run.iteration + 1}" for run in running),
        ]
    )


def _line(run: Run) -> str:
    """What became of an experiment."""
    if run.state != "finished":
        return f"{run.title}: {run.state}. {run.message}"
    summary = run.summary or {}
    spent = duration(float(summary.get("seconds") or 0.0))
    return f"{run.title}: NMAE {figure(summary.get('nmae'))}, {spent}"


def _follow_comparison(
    store: Store,
    subject: Subject,
    ids: set[str],
    ensure: Callable[[], object],
    however_long: bool,
) -> None:
    """ids : of the runs that are computed; the comparison is added."""
    from gmc_core.paper.claims.check import submit_comparison
    from gmc_core.runs.comparisons import now_computed

    found = submit_comparison(store, subject, however_long)
    ids.add(found.id)
    total = found.comparison.total if found.comparison else 0
    said, resumed = "", 0
    while not found.ended_for_good or (found.state == "interrupted" and resumed < PATIENCE):
        if found.state == "interrupted":
            resumed += 1  # its worker died: nobody wanted it to stop
            store.resume(found.id)
        now = now_computed(found, store.cells(found.id))
        line = f"comparison with other methods: {found.iteration} of {total}"
        line += f"; {now[0]}" if now else ""
        if line != said:
            said = line
            note(line)
            doing("comparing")
        ensure()
        time.sleep(POLL_SECONDS)
        found = store.run(found.id)
    if found.state != "finished":
        note(f"the comparison is {found.state}. {found.message}".rstrip())
    for cell in store.cells(found.id):
        if cell.failure:
            note(f"{cell.method}: {cell.failure}")


def _tell(results: Results, args: argparse.Namespace) -> None:
    """Write the files, and the table to stdout."""
    from gmc_core.paper.claims import judge
    from gmc_core.paper.claims.report import (
        as_html,
        as_json,
        as_markdown,
        summary_sentence,
        text_rows,
    )

    if args.out is not None:
        write_text(args.out, as_html(results))
    if args.markdown is not None:
        write_text(args.markdown, as_markdown(results))
    if args.json is not None:
        write_text(args.json, as_json(results) + "\n")
    if args.json == "-":
        return
    verdicts = judge(results)
    header = ("claim", "verdict", "figure", "95 % interval", "run")
    print(table(header, text_rows(verdicts), left=5))
    print("\n" + summary_sentence(verdicts))
