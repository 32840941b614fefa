"""Parts of an exported run that people read: the records as CSV, and how to repeat the run."""

from __future__ import annotations

import csv
import io
from contextlib import suppress
from pathlib import Path
from typing import Any

from gmc_core.base.table_files import safe_text
from gmc_core.data.hashes import file_sha256, given_name, is_hash
from gmc_core.runs.store.run import Run
from gmc_core.runs.store.store import Store


def csv_of(store: Store, run: Run) -> str:
    """One line per record, of a comparison per method.

    No cell can be taken for a formula by a spreadsheet.
    """
    if run.sweep is not None:
        from gmc_core.runs.sweeps import sweep_results

        rows: list[dict[Any, Any]] = sweep_results(store, run.id).to_dict("records")
    elif run.comparison is not None:
        from gmc_core.comparison.table import lines
        from gmc_core.runs.comparisons import comparison_of

        comparison = comparison_of(store, run)
        rows = [] if comparison is None else lines(comparison.rows())  # type: ignore[arg-type]
    else:
        rows = [
            {"repetition": r, "seed": run.seeds[r], **record.as_dict()}
            for r, record in store.records(run.id)
        ]
        rows = [{"run": run.id, "name": run.title, "label": run.label, **row} for row in rows]
    output = io.StringIO()
    if rows:
        writer = csv.DictWriter(output, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {name: safe_text(v) if isinstance(v, str) else v for name, v in row.items()}
            for row in rows
        )
    return output.getvalue()


def repeating_files(store: Store, run: Run) -> dict[str, bytes]:
    """Name → content of what a person needs to repeat a run, without the data.

    The command with the files it reads, the report, and the file of noise variances if it
    is still the one that was used.
    """
    from gmc_core.runs.report_html import report

    files = {"report.html": report(store, run.id).encode()}
    noise = _noise_file(store, run)
    if noise is not None:
        files[noise[0]] = noise[1]
    files["repeat.txt"] = _instructions(store, run, noise and noise[0]).encode()
    return files


def _instructions(store: Store, run: Run, noise: str | None) -> str:
    """How to repeat it, in a few lines."""
    data = data_of(store, run)
    lines = [run.title, "", "The command that repeats this run:", "", store.command(run.id), ""]
    kept = data.get("files")
    hashes = kept if isinstance(kept, dict) else {}
    config = run.config
    for role, path in (
        ("data", config.data), ("train", config.train_file), ("test", config.test_file),
        ("noise", config.fit.noise),
    ):  # fmt: skip
        if not path or not isinstance(path, str):
            continue
        name = Path(given_name(path)).name
        where = "in this archive" if role == "noise" and noise else "not in this archive"
        sha256 = f", SHA-256 {hashes[role]}" if is_hash(hashes.get(role)) else ""
        lines.append(f"{role}: {name}{sha256} ({where})")
    if run.data_sha256 or data.get("sha256"):
        lines.append(f"ratings, as read and filtered: SHA-256 {run.data_sha256 or data['sha256']}")
    lines += [
        "Where a file lies elsewhere, change its path in the command; another file is refused.",
        f"Computed by version {run.version} of this program.",
    ]
    return "\n".join(lines) + "\n"


def _noise_file(store: Store, run: Run) -> tuple[str, bytes] | None:
    """The file of noise variances, unless it is gone or another by now."""
    if not isinstance(run.config.fit.noise, str):
        return None
    kept = data_of(store, run).get("files")
    wanted = kept.get("noise") if isinstance(kept, dict) else None
    path = Path(run.config.fit.noise)
    with suppress(OSError):
        if wanted == file_sha256(path):
            return path.name, path.read_bytes()
    return None


def data_of(store: Store, run: Run) -> dict[str, Any]:
    """What is known of the data; a sweep's fits know it."""
    seen = [run.data, *(child.data for child in store.runs(parent=run.id))]
    return next((data for data in seen if data is not None), {})
