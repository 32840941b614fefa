"""A comparison as a table: for a terminal, and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gmc_core.base.signs import signed
from gmc_core.cli.output import figure, size, table

if TYPE_CHECKING:
    from gmc_core.comparison.compare import Comparison, Difference, Row
    from gmc_core.protocol.metrics import PairedDifference

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


def methods_table(external: dict[str, str]) -> str:
    """Names and labels of all methods, and which packages' are installed."""
    from gmc_core.comparison.comparators import EXTERNAL_LABELS, available

    lines = [(name, label, "") for name, label in available().items()]
    lines += [
        (name, label, external.get(name, "not installed; --peer-python names a Python that has it"))
        for name, label in EXTERNAL_LABELS.items()
    ]
    return table(("name", "method", ""), lines, left=3)


def _difference(difference: Difference | None) -> tuple[str, str, str]:
    if difference is None:
        return "", "", ""
    splits = difference.splits
    return (
        signed(difference.ratings.mean, 4),
        interval(difference.ratings),
        "-" if splits is None else interval(splits),
    )


def interval(difference: PairedDifference) -> str:
    """The ends of its 95 % interval."""
    return f"[{signed(difference.low, 4)}, {signed(difference.high, 4)}]"
