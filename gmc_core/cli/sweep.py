"""``gmc sweep``: the same experiment over ε, L and seeds."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gmc_core.cli.activity import doing
from gmc_core.cli.affordable import add_long_argument, check_before_queueing
from gmc_core.cli.arguments import (
    add_experiment_arguments,
    config_from_arguments,
    number,
    whole,
)
from gmc_core.cli.dask import add_dask_argument, computing, refuse_detached
from gmc_core.cli.output import check_output, figure, note, write_json
from gmc_core.cli.parser import add_command

if TYPE_CHECKING:
    from gmc_core.runs.store import Run, Store

EXAMPLES = """\
  gmc sweep --data sample --epsilon 0.03,0.1,0.3,1,3
  gmc sweep --data ml-1m --epsilon 0.1,0.3,1 --iterations 2,5,10 --seeds 0,1,2 --detach
"""
POLL_SECONDS = 0.3


def numbers(text: str) -> tuple[float, ...]:
    """Numbers with commas between."""
    return tuple(number(part.strip()) for part in text.split(","))


def wholes(text: str) -> tuple[int, ...]:
    """Whole numbers with commas between."""
    return tuple(whole(part.strip()) for part in text.split(","))


def add_parser(commands: Any) -> None:
    """Add the command ``sweep``."""
    parser = add_command(
        commands,
        "sweep",
        help="the same experiment over several epsilon, iterations and seeds",
        description="Run the same experiment over several epsilon and seeds. One fit gives the "
        "results of\nall iterations up to the largest. The sweep is kept among the runs; stopped "
        "with Ctrl-C,\nit goes on with gmc runs resume.",
        examples=EXAMPLES,
    )
    group = parser.add_argument_group("what varies")
    group.add_argument("--epsilon", type=numbers, required=True, metavar="E,E,…")
    group.add_argument(
        "--iterations", type=wholes, default=(10,), metavar="L,L,…", help="(default: 10)"
    )
    group.add_argument(
        "--seeds", type=wholes, default=(0,), metavar="N,N,…", help="of the splits (default: 0)"
    )
    add_experiment_arguments(parser, skip=("epsilon", "iterations", "seed", "repetitions"))
    machine = parser.add_argument_group("this machine, or others")
    add_dask_argument(machine)
    add_long_argument(machine)
    output = parser.add_argument_group("output")
    output.add_argument("--label", default="", metavar="TEXT", help="a name for it")
    output.add_argument("--json", metavar="FILE", help="write the results ('-' for stdout)")
    output.add_argument(
        "--keep-models", action="store_true", help="keep the model of every run (8 N² bytes each)"
    )
    output.add_argument("--again", action="store_true", help="repeat it even if it is there")
    output.add_argument("--detach", action="store_true", help="run in the background")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run the sweep."""
    refuse_detached(args)
    check_output(args.json, "--json")
    from gmc_core.cli.runs import found_sentence, open_store
    from gmc_core.runs.store.run import LONG_KEY
    from gmc_core.runs.store.submitting import anywhere, source_of
    from gmc_core.runs.sweeps import SweepConfig, submit_or_find_sweep

    base = config_from_arguments(args, epsilon=args.epsilon[0], iterations=max(args.iterations))
    sweep = SweepConfig(base, args.epsilon, args.iterations, args.seeds)
    with open_store() as store:
        data = check_before_queueing(store, args, base, lambda scale: sweep.fits())
        if data is not None:
            store.remember_data(source_of(anywhere(base)), data)
        parent, new = submit_or_find_sweep(
            store,
            sweep,
            label=args.label,
            again=args.again,
            keep_models=args.keep_models,
            cost={LONG_KEY: True} if args.long else None,
        )
        if not new:
            note(f"{found_sentence(parent, 'sweep')} --again repeats it.")
        where = None if parent.state == "finished" else args.dask
        children = {child.id for child in store.runs(parent=parent.id)}
        with computing(store, where, children, parent.id) as ensure:
            if parent.state != "finished":
                ensure()
            if args.detach:
                print(parent.id)
                return
            try:
                parent = follow(store, parent, ensure)
            except KeyboardInterrupt:
                store.cancel(parent.id)
                note(f"stopped; gmc runs resume {parent.id} goes on")
                raise
        tell(store, parent, args.json)


def follow(store: Store, parent: Run, ensure: Callable[[], object]) -> Run:
    """Wait for the end, with progress on stderr.

    ensure : sees to it that the work goes on.
    """
    note(f"sweep {parent.id} of {sum(parent.children.values())} runs")
    told: set[str] = set()
    shown, steps = "", [""]
    while True:
        for child in reversed(store.runs(parent=parent.id)):
            if child.ended_for_good and child.id not in told:
                told.add(child.id)
                records = store.records(child.id)
                score = figure(records[-1][1].nmae) if records else "-"
                drawn = child.config.split_words(child.config.seed)
                name = f"epsilon {child.config.fit.epsilon:g}, {drawn}"
                line = f"[{len(told)}] {name}: {child.state}, NMAE {score} {child.message}"
                note(line.rstrip())
        running = store.runs(parent=parent.id, state="running")
        now = _now(running, parent, len(told))
        steps[0] = ", ".join(filter(None, (run.step_words for run in running)))
        if now != shown:
            shown = now
            doing(now, lambda: steps[0] or None)
        parent = store.run(parent.id)
        if parent.ended_for_good:
            return parent
        ensure()
        time.sleep(POLL_SECONDS)


def _now(running: Sequence[Run], parent: Run, ended: int) -> str:
    """What is being computed of a sweep."""
    text = f"{ended} of {sum(parent.children.values())} runs have ended"
    for child in running:
        drawn = child.config.split_words(child.config.seed)
        text += f"; epsilon {child.config.fit.epsilon:g}, {drawn}, "
        text += f"iteration {min(child.iteration + 1, child.iterations)} of {child.iterations}"
    return text


def tell(store: Store, parent: Run, json: str | None) -> None:
    """Print the results, means over the seeds."""
    from gmc_core.base.errors import GmcError
    from gmc_core.cli.runs import results_table
    from gmc_core.runs.sweeps import sweep_results

    results = sweep_results(store, parent.id)
    if json is not None:
        write_json(
            json,
            {
                "id": parent.id,
                "state": parent.state,
                "config": parent.config.as_dict(),
                "sweep": parent.sweep,
                "results": results.to_dict("records"),
            },
        )
    if json != "-":
        print(results_table(store, parent))
        means = results.groupby(["epsilon", "iterations"], as_index=False)["nmae"].mean().dropna()
        if len(means):
            best = means.loc[means["nmae"].idxmin()]
            print(
                f"\nlowest mean NMAE {figure(best['nmae'])} at epsilon {best['epsilon']:g}, "
                f"L = {int(best['iterations'])} (chosen on the test ratings)"
            )
    if parent.state != "finished":
        raise GmcError(
            f"The sweep is {parent.state}; gmc runs list --sweep {parent.id} tells which runs, and "
            f"gmc runs resume {parent.id} goes on."
        )
