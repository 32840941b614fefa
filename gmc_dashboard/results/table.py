"""A table of the paper with the measured row, as Markdown cells and as files."""

from __future__ import annotations

import html
import json

import pandas as pd

from gmc_core.paper.reproduction import Reproduction, TableProtocol
from gmc_dashboard.shared.units import signed

SOURCE = (
    "Léger, Yu and Sapiro, “Efficient Matrix Completion with Gaussian Models”, and this program"
)


def as_frame(found: Reproduction) -> pd.DataFrame:
    """The rows as numbers: one line per method."""
    return pd.DataFrame(
        [
            {
                "method": row.method,
                "source": row.reference,
                "weak_nmae": row.weak,
                "weak_se": row.weak_se,
                "weak_minus_measured": row.weak_gap,
                "strong_nmae": row.strong,
                "strong_se": row.strong_se,
                "strong_minus_measured": row.strong_gap,
                "measured": row.measured,
            }
            for row in found.rows
        ]
    )


def as_markdown(found: Reproduction) -> pd.DataFrame:
    """The rows as text for the screen: best published values and the measured row bold."""
    rows = []
    for row in found.rows:
        mark = "**" if row.measured else ""
        rows.append(
            {
                "Method": f"{mark}{row.method}{mark}",
                "Source": "the runs named below" if row.measured else row.reference,
                "Weak NMAE": _value(row.weak, row.weak_se, row.weak == found.table.best_weak),
                "− measured": _gap(row.weak_gap),
                "Strong NMAE": _value(
                    row.strong, row.strong_se, row.strong == found.table.best_strong
                ),
                "− measured ": _gap(row.strong_gap),
            }
        )
    # A gap to a value that was not measured would be an empty column.
    missing = {"− measured": found.weak is None, "− measured ": found.strong is None}
    return pd.DataFrame(rows).drop(columns=[name for name, empty in missing.items() if empty])


def measured_sentence(found: Reproduction, protocol: TableProtocol) -> str:
    """How a measured value compares with the paper's own."""
    run = found.weak if protocol == "weak" else found.strong
    assert run is not None
    assert run.summary is not None
    value, error = run.summary["nmae"], run.summary["nmae_se"]
    paper = found.paper(protocol)
    gap = value - paper
    many = "repetition" if run.repetitions == 1 else "repetitions"
    where = "below" if gap < 0 else "above"
    return (
        f"{protocol.capitalize()}: **{value:.4f} ± {error:.4f}** over {run.repetitions} {many}, "
        f"{abs(gap):.4f} {where} the paper’s {paper:.4f} ({abs(gap) / error:.1f} standard errors), "
        f"data {(run.data_sha256 or '')[:8]}."
    )


def as_csv(found: Reproduction) -> str:
    """The rows as CSV."""
    return as_frame(found).to_csv(index=False)


def as_json(found: Reproduction) -> str:
    """The rows with the runs that they come from as JSON."""
    frame = as_frame(found)
    content = {
        "data_set": found.table.data_set,
        "source": SOURCE,
        "weak_run": found.weak and found.weak.id,
        "strong_run": found.strong and found.strong.id,
        "rows": json.loads(frame.to_json(orient="records")),
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def as_html(found: Reproduction) -> str:
    """The rows as a page of its own."""
    title = html.escape(f"{found.table.data_set}: NMAE")
    table = as_frame(found).to_html(index=False, na_rep="n/a", float_format="{:.4f}".format)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<h1>{title}</h1>{table}<p>{html.escape(SOURCE)}</p></html>"
    )


def _value(value: float | None, error: float | None, best: bool) -> str:
    if value is None:
        return "n/a"
    text = f"{value:.4f}" if error is None else f"{value:.4f} ± {error:.4f}"
    return f"**{text}**" if best or error is not None else text


def _gap(value: float | None) -> str:
    return "" if value is None else signed(value, 4)
