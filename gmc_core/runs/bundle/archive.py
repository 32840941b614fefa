"""The zip of a bundle; the same run gives the same bytes."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from gmc_core.base.errors import ConfigError
from gmc_core.base.extras import require
from gmc_core.base.files import without_nan, written_in_place
from gmc_core.runs.bundle.contents import Contents, contents_of
from gmc_core.runs.bundle.readme import readme
from gmc_core.runs.bundle.tables import Cell, Column, Table, csv_text
from gmc_core.runs.report_html import settings_of
from gmc_core.runs.store import Run, Store
from gmc_core.runs.store.export_parts import csv_of, data_of
from gmc_core.runs.store.folders import write_atomically
from gmc_core.runs.store.transfer import check_target

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOMENT = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can name: no date is told
Drawing = tuple[str, "Callable[[], Figure]"]  # caption, figure


def export_bundle(store: Store, id: str, path: str | os.PathLike[str]) -> Path:
    """Write the bundle of a run, a sweep or a comparison; returns its path.

    Raises
    ------
    MissingPackageError
        If Matplotlib is not installed.
    StoreError
        If there is nothing to show yet, or the file cannot be written.
    """
    require("figures", "A paper bundle")
    path = Path(path)
    _check(path)
    run = store.run(id)
    files = files_of(store, run)
    write_atomically(path, lambda file: _write(file, f"gmc-run-{run.id}", files))
    return path


def files_of(store: Store, run: Run) -> dict[str, bytes]:
    """Name → content of all files of a bundle."""
    from gmc_core.runs.bundle.figures import rendered

    contents = contents_of(store, run)
    data = data_of(store, run)
    command = store.command(run.id)
    figures, tables = drawings_of(contents), tables_of(contents)
    captions = {name: caption for name, (caption, _) in figures.items()}
    files: dict[str, bytes] = {
        "README.txt": readme(contents, command, data, captions, tables).encode(),
        "command.txt": f"{command}\n".encode(),
        "settings.json": _settings(run, data).encode(),
        "tables/records.csv": csv_of(store, run).encode(),
    }
    for table in tables:
        files[f"tables/{table.name}.csv"] = table.csv().encode()
        files[f"tables/{table.name}.tex"] = table.latex().encode()
    if contents.correlations is not None:
        shown = contents.correlations
        rows: list[list[Cell]] = [
            [title, *row] for title, row in zip(shown.titles, shown.matrix.tolist(), strict=True)
        ]
        files["tables/correlations.csv"] = csv_text(["title", *shown.titles], rows).encode()
    for name, (caption, draw) in figures.items():
        for ending, content in rendered(draw, caption).items():
            files[f"figures/{name}.{ending}"] = content
    return files


def drawings_of(contents: Contents) -> dict[str, Drawing]:
    """Name → caption and figure of everything that there is to draw."""
    from gmc_core.runs.bundle import figures

    found: dict[str, Drawing] = {}
    curve, sensitivity = contents.curve, contents.sensitivity
    correlations, rows, reference = contents.correlations, contents.comparison, contents.reference
    if curve is not None:
        name = "nmae" if curve.quantity == "NMAE" else "likelihood"
        what = "NMAE on held-out ratings" if name == "nmae" else "Log-likelihood of the ratings"
        caption = f"{what} after each iteration: {curve.label}."
        if len(curve.repetitions) > 1:
            caption += " Thin lines are repetitions, the thick one their mean."
        if curve.references:
            caption += " Dashed lines are baselines on the same held-out ratings."
        found[f"{name}-by-iteration"] = caption, lambda: figures.curve_figure(curve)
    if sensitivity is not None:
        best = sensitivity.found.best
        found["sensitivity"] = (
            f"NMAE against ε, mean of {_count(best.seeds, 'seed')}, with standard errors. The ring "
            f"is the lowest error ({best.nmae:.4f} at ε = {best.epsilon:.3g}, "
            f"L = {best.iterations}); grey are the ε within one standard error of it.",
            lambda: figures.sensitivity_figure(sensitivity),
        )
    if correlations is not None:
        found["correlations"] = (
            f"Correlations in Σ between the {len(correlations.titles)} most rated titles, similar "
            "ones side by side. Colours end at the 99th percentile.",
            lambda: figures.correlations_figure(correlations),
        )
    if any(row.nmae is not None for row in rows):
        found["comparison"] = (
            f"NMAE of each method minus that of {reference}, below 0 where the method is better. "
            "Thick: 95 % intervals over held-out ratings; thin: over splits.",
            lambda: figures.comparison_figure(rows, reference),
        )
    return found


def tables_of(contents: Contents) -> list[Table]:
    """All tables but the records."""
    scores = (
        Column("nmae", "NMAE", 4), Column("nmae_se", "± SE", 4), Column("mae", "MAE", 4),
        Column("rmse", "RMSE", 4),
    )  # fmt: skip
    found = []
    if contents.scores:
        found.append(
            Table(
                "scores",
                "Errors on held-out ratings, of the run and of baselines on the same ratings.",
                (Column("method", "Method"), *scores, Column("test_ratings", "Ratings")),
                tuple((s.label, s.nmae, s.nmae_se, s.mae, s.rmse, s.n) for s in contents.scores),
            )
        )
    if contents.steps:
        found.append(
            Table(
                "iterations",
                "After each iteration, means over the repetitions that have reached it.",
                (
                    Column("iteration", "t"), Column("repetitions", "Repetitions"), *scores,
                    Column("log_likelihood", "Log-likelihood", 1),
                ),
                tuple(
                    (s.iteration, s.repetitions, s.nmae, s.nmae_se, s.mae, s.rmse, s.log_likelihood)
                    for s in contents.steps
                ),
                words=0,
            )
        )  # fmt: skip
    if contents.sensitivity is not None:
        found += _of_sensitivity(contents)
    if contents.correlations is not None:
        shown = contents.correlations
        found.append(
            Table(
                "titles",
                "The titles of the heatmap, in its order: training ratings, mean and standard "
                "deviation of the fitted Gaussian.",
                (
                    Column("title", "Title"), Column("id", "Id"), Column("ratings", "Ratings"),
                    Column("mean", "μ", 2), Column("sd", "SD", 2),
                ),
                tuple(
                    zip(shown.titles, shown.ids, shown.counts, shown.mean, shown.sd, strict=True)
                ),
                words=2,
            )
        )  # fmt: skip
    if contents.comparison:
        found.append(_of_comparison(contents))
    return found


def _of_sensitivity(contents: Contents) -> list[Table]:
    assert contents.sensitivity is not None
    found = contents.sensitivity.found
    tables = [
        Table(
            "sensitivity",
            "NMAE of each ε and L: mean over the seeds, the difference to the lowest, which is "
            "paired over seeds from two seeds on, and whether it is within one standard error.",
            (
                Column("epsilon", "ε"), Column("iterations", "L"), Column("seeds", "Seeds"),
                Column("nmae", "NMAE", 4), Column("nmae_se", "± SE", 4),
                Column("difference", "Difference", 4), Column("difference_se", "± SE", 4),
                Column("within", "Within"),
            ),
            tuple(
                (
                    c.epsilon, c.iterations, c.seeds, c.nmae, c.se, c.gap, c.gap_se,
                    "yes" if c.within else "no",
                )
                for c in found.cells
            ),
            words=0,
        )
    ]  # fmt: skip
    references = contents.sensitivity.references
    if references:
        tables.append(
            Table(
                "baselines",
                "Baselines on the held-out ratings of the sweep, means over its seeds.",
                (Column("method", "Method"), Column("nmae", "NMAE", 4)),
                tuple(references.items()),
            )
        )
    return tables


def _of_comparison(contents: Contents) -> Table:
    rows = []
    for row in contents.comparison:
        scores, difference = row.scores, row.nmae
        over = None if difference is None else difference.ratings
        splits = None if difference is None else difference.splits
        rows.append(
            (
                row.label,
                row.splits,
                *((None,) * 3 if scores is None else (scores.nmae, scores.nmae_se, scores.rmse)),
                *((None,) * 3 if over is None else (over.mean, over.low, over.high)),
                *((None,) * 2 if splits is None else (splits.low, splits.high)),
                row.seconds,
            )
        )
    return Table(
        "comparison",
        f"Errors of each method, and the difference of NMAE to {contents.reference} with the ends "
        "of 95 % intervals over held-out ratings and over splits; seconds are per split.",
        (
            Column("method", "Method"), Column("splits", "Splits"), Column("nmae", "NMAE", 4),
            Column("nmae_se", "± SE", 4), Column("rmse", "RMSE", 4),
            Column("nmae_difference", "Difference", 4), Column("nmae_low", "from", 4),
            Column("nmae_high", "to", 4), Column("nmae_splits_low", "splits from", 4),
            Column("nmae_splits_high", "to", 4), Column("seconds", "Seconds", 2),
        ),
        tuple(rows),
    )  # fmt: skip


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _settings(run: Run, data: Mapping[str, Any]) -> str:
    content = {
        "run": run.id, "name": run.title, "state": run.state, "version": run.version,
        "settings": settings_of(run), "sweep": run.sweep, "data": dict(data),
        "summary": run.summary,
    }  # fmt: skip
    return json.dumps(without_nan(content), indent=1, ensure_ascii=False) + "\n"


def _check(path: Path) -> None:
    """Refuse, before any work, what cannot be written or would be misnamed."""
    if path.suffix.lower() != ".zip" and not written_in_place(path):
        raise ConfigError(f"A paper bundle is a zip: give a name that ends in .zip, not {path}.")
    check_target(path)


def _write(file: BinaryIO, folder: str, files: Mapping[str, bytes]) -> None:
    """Compressed, in one folder; names in order."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            about = zipfile.ZipInfo(f"{folder}/{name}", _MOMENT)
            about.external_attr = 0o644 << 16
            archive.writestr(about, files[name], zipfile.ZIP_DEFLATED)
