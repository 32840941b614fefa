"""A run as one HTML file: figures, curves, settings, data, and how to repeat it.

Nothing in the file asks for anything from elsewhere: curves are inline SVG.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from gmc_core.base.times import moment
from gmc_core.protocol.metrics import few_held_out, few_held_out_words
from gmc_core.runs.store import Run, Store

Points = Sequence[tuple[float, float]]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 16, 44

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid #8884; }
td.number, th.number { text-align: right; }
pre { overflow-x: auto; padding: .6rem; background: #8882; }
figure { margin: 1rem 0; } figcaption { font-size: .9rem; opacity: .8; }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: currentColor; } .wide { overflow-x: auto; }
"""


def report(store: Store, id: str) -> str:
    """The report of a run or a sweep."""
    run = store.run(id)
    parts = [f"<h1>{escape(run.title)}</h1>", _lead(run)]
    if run.note:
        parts.append(f"<p>{escape(run.note)}</p>")
    if run.sweep:
        parts += _sweep_parts(store, run)
    elif run.comparison is not None:
        parts += _comparison_parts(store, run)
    else:
        parts += _run_parts(store, run)
    parts += [
        "<h2>Settings</h2>", _pairs(flat(settings_of(run))),
        "<h2>Data</h2>", _pairs(flat(_without_reports(run.data or {}))),
        "<h2>The command that repeats this run</h2>", f"<pre>{escape(store.command(id))}</pre>",
        "<h2>Computed by</h2>", _pairs({"version": run.version, **flat(run.machine or {})}),
    ]  # fmt: skip
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(run.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body>\n</html>\n"
    )


def _lead(run: Run) -> str:
    when = moment(run.created, utc=True)
    text = f"Run {run.id}, {run.state}, submitted {when}. {run.message}"
    kind = f"<p>Kind of error: {escape(run.error)}</p>" if run.error else ""
    return f"<p>{escape(text.strip())}</p>{kind}"


def _run_parts(store: Store, run: Run) -> list[str]:
    records = store.records(run.id)
    parts = []
    if run.summary:
        names = ("nmae", "nmae_se", "mae", "rmse", "n", "seconds")
        parts += ["<h2>Result</h2>", _pairs({n: run.summary.get(n) for n in names})]
        parts += _baselines(run)
    for name, caption in (
        ("nmae", "NMAE on held-out ratings"),
        ("rmse", "RMSE on held-out ratings"),
        ("log_likelihood", "Log-likelihood of the observed ratings"),
    ):
        curves: dict[str, list[tuple[float, float]]] = {}
        for repetition, record in records:
            value = getattr(record, name)
            if value is not None:
                drawn = run.config.split_words(run.seeds[repetition])
                curves.setdefault(drawn, []).append((record.iteration, value))
        if curves:
            parts.append(_figure(line_chart(curves, "iteration", caption), caption))
    if records:
        rows = [{"repetition": r + 1, **record.as_dict()} for r, record in records]
        parts += ["<h2>Iterations</h2>", table(rows)]
    return parts


def _baselines(run: Run) -> list[str]:
    """What the result is to be compared with, and whether it can be."""
    parts = []
    if run.baselines:
        caption = "NMAE of the simplest predictions on the same held-out ratings"
        parts += [f"<p>{caption}:</p>", _pairs(run.baselines)]
    count, error = ((run.summary or {}).get(name) for name in ("n", "nmae_se"))
    if isinstance(count, int) and few_held_out(count, error):
        parts.append(f"<p>{few_held_out_words(count)}.</p>")
    return parts


def _sweep_parts(store: Store, run: Run) -> list[str]:
    from gmc_core.runs.sweeps import sweep_results

    results = sweep_results(store, run.id)
    parts = ["<h2>Result</h2>"]
    if results.empty:
        return [*parts, "<p>No run of this sweep has finished an iteration yet.</p>"]
    means = results.groupby(["iterations", "epsilon"], as_index=False)["nmae"].mean()
    curves = {
        f"L = {iterations}": list(zip(part["epsilon"], part["nmae"], strict=True))
        for iterations, part in means.groupby("iterations")
    }
    caption = "NMAE on held-out ratings against ε, mean over seeds"
    parts.append(_figure(line_chart(curves, "ε", caption, logarithmic=True), caption))
    return [*parts, table(results.drop(columns=["run"]).to_dict("records"))]


def _comparison_parts(store: Store, run: Run) -> list[str]:
    from gmc_core.comparison.table import lines
    from gmc_core.runs.comparisons import comparison_of

    comparison = comparison_of(store, run)
    if comparison is None or not comparison.outcomes:
        return ["<h2>Result</h2>", "<p>No fit of this comparison has ended yet.</p>"]
    reference = escape(comparison.labels[comparison.reference])
    rows = comparison.rows()
    failures = [f"<p>{escape(f'{row.label}: {row.failure}')}</p>" for row in rows if row.failure]
    without = ("name", "failure")
    shown = [{k: v for k, v in line.items() if k not in without} for line in lines(rows)]
    return [
        "<h2>Result</h2>",
        f"<p>Differences to {reference}, below 0 where the method is better, with the ends of 95 % "
        "intervals over held-out ratings and over splits.</p>",
        table(shown),
        *failures,
    ]


def settings_of(run: Run) -> dict[str, Any]:
    """All that was chosen for a run; of a comparison, and where auto has
    still to choose, without the settings of a fit."""
    settings = run.config.as_dict()
    if run.comparison is not None:
        settings = {k: v for k, v in settings.items() if k not in ("fit", "seed", "repetitions")}
        plan = run.comparison.as_dict()
        for name in ("methods", "seeds", "pythons"):
            plan[name] = ", ".join(map(str, plan[name]))
        settings |= {k: v for k, v in plan.items() if k != "labels" and v not in (None, "")}
    if run.choosing:
        del settings["fit"]
    if run.selection is not None:
        settings["auto"] = run.selection.as_dict()
    return settings


# Pieces of HTML -------------------------------------------------------------------


def line_chart(
    curves: Mapping[str, Points], x_label: str, title: str, *, logarithmic: bool = False
) -> str:
    """Curves as SVG; points that are not finite are left out.

    curves : name → (x, y) in rising x. logarithmic : the x axis, where all x > 0.
    """
    known = {
        name: [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
        for name, points in curves.items()
    }
    every = [point for points in known.values() for point in points]
    if not every:
        return ""
    logarithmic = logarithmic and all(x > 0 for x, _ in every)
    place = math.log10 if logarithmic else float
    x_low, x_high = _room([place(x) for x, _ in every], 0)
    y_low, y_high = _room([y for _, y in every], 0.05)

    def across(x: float) -> float:
        return LEFT + (place(x) - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT)

    def down(y: float) -> float:
        return HEIGHT - BOTTOM - (y - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM)

    lines = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title>",
    ]
    for step in range(5):
        y = y_low + (y_high - y_low) * step / 4
        lines.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{down(y):.1f}" y2="{down(y):.1f}" '
            'stroke="#8884"/>'
            f'<text x="{LEFT - 6}" y="{down(y) + 4:.1f}" text-anchor="end">{y:.4g}</text>'
        )
    for x in _some(sorted({x for x, _ in every}), 8):
        lines.append(
            f'<text x="{across(x):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">'
            f"{x:.4g}</text>"
        )
    lines.append(
        f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 8}" text-anchor="middle">'
        f"{escape(x_label)}</text>"
    )
    for index, (name, points) in enumerate(known.items()):
        colour = COLOURS[index % len(COLOURS)]
        path = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in points)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lines += [
            f'<circle cx="{across(x):.1f}" cy="{down(y):.1f}" r="3" fill="{colour}">'
            f"<title>{escape(name)}: {x:.4g}, {y:.5g}</title></circle>"
            for x, y in points
        ]
        if index < 12:
            lines.append(
                f'<text x="{WIDTH - RIGHT}" y="{TOP + 14 * index + 4}" text-anchor="end" '
                f'style="fill:{colour}">{escape(name)}</text>'
            )
    return "".join(lines) + "</svg>"


def table(rows: Sequence[Mapping[Any, Any]]) -> str:
    """A table, with the keys of the first row as its columns."""
    if not rows:
        return ""
    head = "".join(f'<th class="number">{escape(str(name))}</th>' for name in rows[0])
    body = "".join(
        f"<tr>{''.join(cells)}</tr>"
        for cells in (
            (f'<td class="number">{escape(text(value))}</td>' for value in row.values())
            for row in rows
        )
    )
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def text(value: object) -> str:
    """A value for people; what is not known is a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values as one level: {"fit": {"epsilon": 1}} → {"fit.epsilon": 1}."""
    result: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            result |= flat(value, f"{prefix}{name}.")
        else:
            result[prefix + name] = value
    return result


def _pairs(values: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><th>{escape(str(name))}</th><td>{escape(text(value))}</td></tr>"
        for name, value in values.items()
    )
    return f"<table>{rows}</table>" if rows else "<p>Not known yet.</p>"


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>" if svg else ""


def _without_reports(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if not name.endswith("_report")}


def _room(values: Sequence[float], share: float) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = (high - low) * share or (0.0 if high > low else abs(high) * 0.05 or 1.0)
    return low - margin, high + margin


def _some(values: Sequence[float], most: int) -> Iterable[float]:
    """At most so many of the values, evenly chosen."""
    step = -(-len(values) // most)
    return values[::step]
