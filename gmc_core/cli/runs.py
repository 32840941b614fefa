"""``gmc runs``: the runs that the store keeps."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from gmc_core.base.errors import ConfigError
from gmc_core.base.times import moment
from gmc_core.cli.affordable import add_long_argument
from gmc_core.cli.output import duration, figure, note, size, table, write_json
from gmc_core.cli.parser import add_command

if TYPE_CHECKING:
    from gmc_core.cli.affordable import Fits
    from gmc_core.fitting.config import ExperimentConfig
    from gmc_core.runs.store import Run, Store

EXAMPLES = """\
  gmc fit --data ml-1m --detach         a run in the background; prints its id
  gmc runs list                         all runs, newest first
  gmc runs show 3f2a                    one of them; the beginning of its id is enough
  gmc runs compare 3f2a 90bc            what differs, and the scores
  gmc runs export 3f2a report.html      also .json, .csv, .zip (all of it), .npz (model)
  gmc runs export 3f2a --bundle p.zip   figures and tables for a paper
"""
STATES = ("queued", "running", "finished", "cancelled", "failed", "interrupted")


def add_parser(commands: Any) -> None:
    """Add the command ``runs`` with its own commands."""
    parser = add_command(
        commands, "runs", help="list, show, compare, export, resume runs", examples=EXAMPLES
    )
    parser.set_defaults(run=lambda args: parser.print_help())
    actions = parser.add_subparsers(title="commands", metavar="COMMAND")

    def add(name: str, function: Any, help: str, *ids: str) -> argparse.ArgumentParser:
        action = add_command(actions, name, help=help)
        for argument in ids:
            several = argument == "ids"
            action.add_argument(
                argument,
                metavar="ID",
                nargs="+" if several else None,
                help="id of a run, its beginning, or its label",
            )
        action.set_defaults(run=function)
        return action

    listing = add("list", list_runs, "all runs, newest first, and their disk use")
    listing.add_argument("--state", choices=STATES, help="only these")
    listing.add_argument("--text", default="", metavar="TEXT", help="only those that contain it")
    listing.add_argument("--sweep", metavar="ID", help="the runs of this sweep")
    listing.add_argument("--json", metavar="FILE", help="write them as JSON ('-' for stdout)")
    show = add("show", show_run, "state, scores, settings and messages of a run", "id")
    show.add_argument("--json", metavar="FILE", help="write all of it as JSON ('-' for stdout)")
    add("compare", compare, "settings that differ, and scores, side by side", "ids")
    export = add("export", export_run, "write a run to a file", "id")
    export.add_argument("file", metavar="FILE", nargs="?", help=".html, .json, .csv, .zip, or .npz")
    export.add_argument(
        "--format", choices=("json", "csv", "html", "zip", "model"), help="if not by the name"
    )
    export.add_argument(
        "--bundle",
        metavar="FILE.zip",
        help="for a paper: figures as PDF, SVG and PNG, tables as CSV and LaTeX, settings, the "
        "data's hash and the command that repeats it",
    )
    taken = add("import", import_run, "take in a run exported as .zip or .json")
    taken.add_argument("file", metavar="FILE")
    add("cancel", cancel, "stop runs, keeping what they have reached", "ids")
    resumed = add("resume", resume, "go on with interrupted, cancelled or failed runs", "ids")
    add_long_argument(resumed)
    add("delete", delete, "delete runs and their files", "ids")
    rename = add("rename", rename_run, "give a run a label", "id")
    rename.add_argument("label", metavar="LABEL")
    annotate = add("note", note_run, "give a run a note", "id")
    annotate.add_argument("text", metavar="TEXT")


def detach(args: argparse.Namespace, config: ExperimentConfig, fits: Fits) -> int:
    """Queue an experiment, see that someone computes it, and print its id."""
    from gmc_core.cli.affordable import check_before_queueing
    from gmc_core.runs.store import Store
    from gmc_core.runs.store.run import LONG_KEY
    from gmc_core.runs.worker import ensure_worker

    with Store() as store:
        data = check_before_queueing(store, args, config, fits)
        cost = {LONG_KEY: True} if args.long else None
        run, new = store.submit_or_find(config, again=args.again, data=data, cost=cost)
        if run.state == "queued":
            ensure_worker(store)
        print(run.id)
        if not new:
            note(f"{found_sentence(run, 'run')} --again repeats it.")
        if run.state == "finished":
            note(f"gmc runs show {run.id} has its result")
        else:
            note(f"{run.state}; gmc runs show {run.id} tells how far it is")
    return 0


def found_sentence(run: Run, what: str) -> str:
    """That a start has led to a run, or sweep, that is there already."""
    from gmc_core.runs.store.naming import found_words

    return f"this {what} {found_words(run)}; nothing new was started."


def open_store() -> Store:
    """Open the store; warn of a damaged one, and import older comparisons."""
    from gmc_core.cli.older_comparisons import take_in_older
    from gmc_core.runs.store import Store

    store = Store()
    if store.set_aside is not None:
        note(store.messages()[-1][2])
    for words in take_in_older(store):
        note(words)
    return store


def list_runs(args: argparse.Namespace) -> None:
    """``runs list``"""
    from gmc_core.runs.store.naming import distinct_names

    with open_store() as store:
        parent = store.find(args.sweep).id if args.sweep else None
        runs = store.runs(state=args.state, text=args.text, parent=parent)
        if args.json:
            write_json(args.json, [run.as_dict() for run in runs])
        if args.json == "-":
            return
        if not runs:
            note("there are no such runs; gmc fit --detach and gmc sweep make some")
            return
        names = distinct_names(runs)
        rows = [
            (
                run.id, run.state, names[run.id],
                moment(run.created), progress(run), figure(nmae(store, run)), size(run.disk_bytes),
            )
            for run in runs
        ]  # fmt: skip
        print(table(("id", "state", "run", "submitted", "done", "NMAE", "disk"), rows, left=4))
        note(f"{size(store.disk_usage())} in {store.path}")


def progress(run: Run) -> str:
    """How far it is."""
    if run.kind == "sweep":
        return f"{run.iteration}/{sum(run.children.values())} runs"
    if run.comparison is not None:
        return f"{run.iteration}/{run.comparison.total} fits"
    if run.choosing:
        return "choosing"
    done = f"{run.iteration}/{run.iterations}"
    return f"{run.repetition + 1}:{done}" if run.repetitions > 1 else done


def nmae(store: Store, run: Run) -> float | None:
    """The pooled NMAE, or the last one so far; of a sweep and a comparison the best."""
    if run.sweep is not None:
        from gmc_core.runs.sweeps import sweep_results

        means = sweep_results(store, run.id).groupby(["epsilon", "iterations"])["nmae"].mean()
        return float(means.min()) if len(means.dropna()) else None
    if run.summary is not None:
        return run.summary.get("nmae")
    records = store.records(run.id)
    return records[-1][1].nmae if records else None


def show_run(args: argparse.Namespace) -> None:
    """``runs show``"""
    from gmc_core.runs.report_html import flat, settings_of, text
    from gmc_core.runs.store.seal import NOT_OURS
    from gmc_core.runs.store.transfer import content_of

    with open_store() as store:
        run = store.find(args.id)
        if args.json:
            write_json(args.json, content_of(store, run))
        if args.json == "-":
            return
        lines = [f"{run.id}  {run.title}", f"{run.state}, {progress(run)}. {run.message}".strip()]
        if run.error:
            lines.append(f"kind of error: {run.error}")
        if not run.reusable:
            lines.append(NOT_OURS)
        if run.note:
            lines.append(run.note)
        left = store.remaining_seconds(run.id)
        if left is not None:
            lines.append(f"about {duration(left)} left")
        lines += ["", results_table(store, run), ""]
        result = {k: v for k, v in (run.summary or {}).items() if k != "table"}
        for name, values in (("settings", settings_of(run)), ("result", result)):
            lines += [f"{name}: " + ", ".join(f"{k} {text(v)}" for k, v in flat(values).items())]
        for at, level, said in store.messages(run.id):
            lines.append(f"{time.strftime('%H:%M:%S', time.localtime(at))} {level}: {said}")
        lines += ["", "repeat it with:", f"  {store.command(run.id)}"]
        print("\n".join(lines))


def results_table(store: Store, run: Run) -> str:
    """The records of a run, or the results of a sweep or a comparison so far."""
    if run.comparison is not None:
        from gmc_core.cli.comparison_tables import text_table
        from gmc_core.runs.comparisons import comparison_of

        comparison = comparison_of(store, run)
        return "no fit has ended yet" if comparison is None else text_table(comparison)
    if run.sweep is not None:
        from gmc_core.runs.sweeps import sweep_results

        results = sweep_results(store, run.id)
        return table(
            ("epsilon", "L", "seed", "NMAE", "± SE", "RMSE", "run"),
            [
                (
                    f"{row['epsilon']:g}", str(row["iterations"]), str(row["seed"]),
                    figure(row["nmae"]), figure(row["nmae_se"]), figure(row["rmse"]), row["run"],
                )
                for row in results.to_dict("records")
            ],
            left=0,
        )  # fmt: skip
    return table(
        ("seed", "L", "NMAE", "± SE", "RMSE", "log-likelihood", "time"),
        [
            (
                str(run.seeds[r]), str(record.iteration), figure(record.nmae),
                figure(record.nmae_se), figure(record.rmse), f"{record.log_likelihood:,.0f}",
                duration(record.seconds),
            )
            for r, record in store.records(run.id)
        ],
        left=0,
    )  # fmt: skip


def compare(args: argparse.Namespace) -> None:
    """``runs compare``"""
    from gmc_core.runs.report_html import flat, settings_of, text
    from gmc_core.runs.store.naming import distinct_names

    with open_store() as store:
        runs = [store.find(name) for name in args.ids]
        settings = [
            {
                **flat(settings_of(run)),
                "data": run.data_sha256,
                "attributes and genres": (run.data or {}).get("side_sha256", ""),
            }
            for run in runs
        ]
        names = {name: None for values in settings for name in values}
        rows = [
            (name, *(text(values.get(name))[:16] for values in settings))
            for name in names
            if len({text(values.get(name)) for values in settings}) > 1
        ]
        names_of = distinct_names(runs)
        rows.append(("state", *(run.state for run in runs)))
        rows.append(("NMAE", *(figure(nmae(store, run)) for run in runs)))
        for name, key in (("± SE", "nmae_se"), ("MAE", "mae"), ("RMSE", "rmse")):
            rows.append((name, *(figure((run.summary or {}).get(key)) for run in runs)))
        seconds = [(run.summary or {}).get("seconds") for run in runs]
        rows.append(("time", *("-" if s is None else duration(s) for s in seconds)))
        for run in runs:
            print(f"{run.id}  {names_of[run.id]}")
        print("\n" + table(("", *(run.id for run in runs)), rows))


def export_run(args: argparse.Namespace) -> None:
    """``runs export``"""
    from gmc_core.runs.store import transfer

    if args.file is None and args.bundle is None:
        raise ConfigError("runs export: give the name of a file, or --bundle FILE.zip.")
    if args.file is None and args.format is not None:
        raise ConfigError(
            "runs export: --format is of FILE, which is not given; --bundle is a zip."
        )
    with open_store() as store:
        id = store.find(args.id).id
        if args.bundle is not None:
            from gmc_core.runs.bundle.archive import export_bundle

            note(f"written to {export_bundle(store, id, args.bundle)}")
        if args.file is not None:
            path = transfer.export(store, id, args.file, args.format, tell=note)
            note(f"written to {path}")


def import_run(args: argparse.Namespace) -> None:
    """``runs import``"""
    from gmc_core.runs.store import transfer
    from gmc_core.runs.store.seal import NOT_OURS

    with open_store() as store:
        run = transfer.import_run(store, args.file)
        if not run.reusable:
            note(NOT_OURS)
        if run.message:
            note(run.message)
        note(f"imported {run.title}, {run.state}; gmc runs show {run.id} has it")
        print(run.id)


def cancel(args: argparse.Namespace) -> None:
    """``runs cancel``"""
    with open_store() as store:
        for name in args.ids:
            run = store.cancel(store.find(name).id)
            note(f"{run.id} {'is stopping' if run.state == 'running' else run.state}")


def resume(args: argparse.Namespace) -> None:
    """``runs resume``"""
    from gmc_core.runs.worker import ensure_worker

    with open_store() as store:
        for name in args.ids:
            run = store.resume(store.find(name).id, however_long=args.long)
            note(f"{run.id} {run.state}")
        ensure_worker(store)


def delete(args: argparse.Namespace) -> None:
    """``runs delete``"""
    with open_store() as store:
        for name in args.ids:
            run = store.find(name)
            note(f"{run.id} deleted, {size(store.delete(run.id))} freed")


def rename_run(args: argparse.Namespace) -> None:
    """``runs rename``"""
    with open_store() as store:
        store.rename(store.find(args.id).id, args.label)


def note_run(args: argparse.Namespace) -> None:
    """``runs note``"""
    with open_store() as store:
        store.annotate(store.find(args.id).id, args.text)
