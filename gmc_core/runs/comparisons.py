"""Comparisons of methods as runs of the store.

    page or command ── plan, configuration ──▶ store.submit_comparison ──▶ a run in the queue
    worker (or the command itself) ── gmc_core.comparison.compare ──▶ cells, files in runs/<id>/
    comparison_of(store, run) ──▶ Comparison ──▶ table, figures, reports, claims

A run's files are those of :mod:`gmc_core.comparison.comparison_files`; its cells in the database
say which fit has which files. A fit that another comparison of the store has computed on the same
split with the same settings is not computed again: its file gets a second name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from gmc_core.comparison.compare import Comparison
from gmc_core.comparison.comparison_files import ResultFiles
from gmc_core.data.ratings import RatingScale
from gmc_core.runs.store import Run, Store, StoreError
from gmc_core.runs.store.cells import Cell


def comparison_of(store: Store, run: Run, reference: str | None = None) -> Comparison | None:
    """What a comparison has reached; None before its first split, and of other kinds of runs.

    reference : a method's name; the plan's by default.
    """
    plan = run.comparison
    if plan is None:
        return None
    scale = plan.scale if run.data is None else run.data["scale"]
    if scale is None:
        return None
    files = ResultFiles(store.folder(run.id))
    labels = dict(zip(plan.methods, plan.labels, strict=True))
    result = Comparison(RatingScale(*scale), labels, reference or plan.reference)
    for cell in store.cells(run.id):
        if cell.split_key not in result.held_out:
            held = files.held_out(cell.split_key) if cell.split_key else None
            if held is None:
                continue
            result.held_out[cell.split_key] = held
        place = (cell.method, cell.split_key)
        if cell.state == "failed":
            result.failures[place] = cell.failure
        elif cell.state == "done":
            outcome = files.outcome(cell.method_key, result.held_out[cell.split_key])
            if outcome is not None:
                result.outcomes[place] = outcome
    return result if result.held_out else None


def known_comparison(store: Store, run: Run) -> Comparison | None:
    """:func:`comparison_of`, read again only when a fit more of the run has ended."""
    return _compared(Hashed(store), run.id, run.state, run.iteration)


class Hashed:
    """A store as part of a cache's key: two of the same folder are the same."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __hash__(self) -> int:
        return hash(self.store.path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hashed) and self.store.path == other.store.path


@lru_cache(maxsize=32)
def _compared(holder: Hashed, identity: str, state: str, done: int) -> Comparison | None:
    return comparison_of(holder.store, holder.store.run(identity))


def summary_of(comparison: Comparison) -> dict[str, Any]:
    """What the run of a finished comparison keeps.

    ``nmae``, ``nmae_se``, ``mae``, ``rmse`` and ``n`` of the method with the lowest NMAE, which is
    ``best``; ``seconds`` of all fits; ``failed``, how many fits have failed; ``table``, of
    :meth:`gmc_core.comparison.compare.Comparison.as_dict`.
    """
    found = {row.name: row.scores for row in comparison.rows() if row.scores is not None}
    best = min(found, key=lambda name: found[name].nmae, default=None)
    scores = None if best is None else found[best]
    names = ("nmae", "nmae_se", "mae", "rmse", "n")
    return {
        **{name: None if scores is None else getattr(scores, name) for name in names},
        "best": best,
        "seconds": sum(outcome.seconds for outcome in comparison.outcomes.values()),
        "failed": len(comparison.failures),
        "table": comparison.as_dict(),
    }


def now_computed(run: Run, cells: Sequence[Cell]) -> tuple[str, float] | None:
    """The fit that a running comparison is at, in words, and since when; None between two."""
    plan = run.comparison
    current = next((cell for cell in reversed(cells) if cell.state == "running"), None)
    if plan is None or current is None or run.state != "running":
        return None
    words = dict(zip(plan.methods, plan.labels, strict=True)).get(current.method, current.method)
    if run.config.protocol != "pair":
        words += f", {run.config.split_words(plan.seeds[current.split])}"
    return words, current.began


def comparison_named(store: Store, text: str) -> Run:
    """A comparison by its id, or by the name of its folder in an earlier version.

    Raises
    ------
    StoreError
        If there is none.
    """
    rows = store.rows(
        "SELECT id FROM runs WHERE kind = 'comparison' AND (id = ? OR id = "
        "(SELECT run FROM older_comparisons WHERE folder = ?))",
        text, text,
    )  # fmt: skip
    if not rows:
        raise StoreError(
            f"There is no comparison {text[:64]!r} on this machine. Start one, or choose one of "
            "the earlier ones."
        )
    return store.run(rows[0]["id"])


def all_comparisons(store: Store) -> list[Run]:
    """All of the store, newest first."""
    return [run for run in store.runs() if run.comparison is not None]


def other_folders(store: Store, run: Run) -> list[Path]:
    """Where a run may find fits that are computed already; nowhere if it shall compute anew.

    Only in runs that answer for a new start: nothing shows that an imported file's predictions
    are those of its method.
    """
    if store.rows("SELECT 1 FROM runs WHERE id = ? AND again", run.id):
        return []
    rows = store.rows(
        "SELECT id FROM runs WHERE kind = 'comparison' AND answers AND id != ? "
        "ORDER BY number DESC",
        run.id,
    )
    return [store.folder(row["id"]) for row in rows]
