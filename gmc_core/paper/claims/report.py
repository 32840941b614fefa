"""The verdicts as a self-contained HTML page, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from gmc_core.base.files import without_nan
from gmc_core.base.signs import signed, unsigned_zero
from gmc_core.base.version import package_version
from gmc_core.paper.claims.catalogue import CLAIMS, Claim, judge
from gmc_core.paper.claims.results import Results
from gmc_core.paper.claims.subject import Subject
from gmc_core.paper.claims.verdict import MARGIN, WORDS, Line, Verdict, number
from gmc_core.runs.report_html import STYLE, line_chart
from gmc_core.runs.report_html import table as html_table

# Larger differences stand at the edge of the chart, with their value.
SHOWN = 10 * MARGIN

TITLE = "The paper's claims, measured"
COLOURS = {
    "holds": "#0f8f6b",
    "does not hold": "#c8500a",
    "not resolved": "#b57a00",
    "not measured": "#7f7f7f",
}
_ONE = {
    "holds": "holds",
    "does not hold": "does not hold",
    "not resolved": "is not resolved",
    "not measured": "is not measured",
}
_MANY = {
    "holds": "hold",
    "does not hold": "do not hold",
    "not resolved": "are not resolved",
    "not measured": "are not measured",
}
CLAIM_STYLE = """
.verdict { font-weight: 600; white-space: nowrap; } .claim { border-top: 1px solid #8884; }
body { max-width: 56rem; } td.number { white-space: nowrap; }
.claim p { margin: .4rem 0; } .said { opacity: .85; } td { vertical-align: top; }
@media print { .claim { break-inside: avoid; } }
"""


def as_dict(results: Results) -> dict[str, Any]:
    """For JSON: data, and every claim with its verdict."""
    verdicts = judge(results)
    return {
        "data": results.subject.data,
        "margin": MARGIN,
        "splits": results.subject.splits,
        "version": package_version(),
        "claims": [
            {
                "name": claim.name,
                "title": claim.title,
                "statement": claim.statement,
                "section": claim.section,
                "measure": claim.measure,
                **verdicts[claim.name].as_dict(),
            }
            for claim in CLAIMS
        ],
    }


def as_json(results: Results) -> str:
    """:func:`as_dict` as text; NaN becomes null."""
    return json.dumps(without_nan(as_dict(results)), indent=1, ensure_ascii=False)


def summary_sentence(verdicts: Mapping[str, Verdict]) -> str:
    """How many claims have which verdict."""
    counts = {word: sum(v.verdict == word for v in verdicts.values()) for word in WORDS}
    parts = [
        f"{count} {(_ONE if count == 1 else _MANY)[word]}"
        for word, count in counts.items()
        if count
    ]
    return f"Of {len(verdicts)} claims {', '.join(parts)}."


def data_sentence(subject: Subject) -> str:
    """What was measured on."""
    data = subject.data
    return (
        f"{data['name']}: {data['users']:,} users, {data['items']:,} items, {data['ratings']:,} "
        f"ratings ({100 * data['fill_ratio']:.2g} % of the entries), scale {subject.scale}; "
        f"{subject.splits} splits."
    )


RULES = (
    f"Verdicts are computed: the margin is {MARGIN:g} NMAE, the largest difference that the paper "
    "calls marginal. Two settings are compared by paired differences over the same held-out "
    "ratings. A claim is decided where the whole 95 % interval lies on one side of the margin, and "
    "not resolved where it straddles it. Fits are in float32 except where the claim is about "
    "precision."
)


# Markdown ------------------------------------------------------------------------------


def as_markdown(results: Results) -> str:
    """A table of all claims, and what was found for each."""
    verdicts = judge(results)
    rows = [
        ("claim", "section", "verdict", "figure", "95 % interval", "run"),
        ("---",) * 6,
        *(
            (claim.title, claim.section, f"**{v.verdict}**", v.figure, v.interval, _source(v))
            for claim, v in _with(verdicts)
        ),
    ]
    lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows]
    parts = [data_sentence(results.subject), RULES, summary_sentence(verdicts), "\n".join(lines)]
    for claim, verdict in _with(verdicts):
        parts.append(
            f"**{claim.title}** ({verdict.verdict}). {claim.statement} ({claim.place}) "
            f"*Measured:* {claim.measure} *Found:* {verdict.sentence}"
        )
    return "\n\n".join(parts) + "\n"


def _source(verdict: Verdict) -> str:
    return ", ".join(verdict.runs) or (
        f"comparison {verdict.comparison}" if verdict.comparison else ""
    )


def _with(verdicts: Mapping[str, Verdict]) -> list[tuple[Claim, Verdict]]:
    return [(claim, verdicts[claim.name]) for claim in CLAIMS]


# HTML ------------------------------------------------------------------------------------


def as_html(results: Results) -> str:
    """The whole report as one file that asks for nothing from elsewhere."""
    verdicts = judge(results)
    parts = [
        f"<h1>{TITLE}</h1>",
        "<p>Léger, Yu and Sapiro, “Efficient Matrix Completion with Gaussian Models”.</p>",
        f"<p>{escape(data_sentence(results.subject))}</p>",
        f"<p>{escape(RULES)}</p>",
        f"<p><strong>{escape(summary_sentence(verdicts))}</strong></p>",
        _overview(verdicts),
        "<h2>Differences of NMAE, with 95 % intervals</h2>",
        f"<figure>{interval_chart(verdicts)}<figcaption>Each claim’s figures; the band is the "
        f"margin of ± {MARGIN:g}.</figcaption></figure>",
        *_courses(results),
        "<h2>One by one</h2>",
        *(_claim(claim, verdict) for claim, verdict in _with(verdicts)),
        f"<p>Computed by version {escape(package_version())} of this program.</p>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{TITLE}</title>\n<style>{STYLE}{CLAIM_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body>\n</html>\n"
    )


def _overview(verdicts: Mapping[str, Verdict]) -> str:
    rows = "".join(
        f'<tr><td><a href="#{claim.name}">{escape(claim.title)}</a></td>'
        f"<td>{_word(verdict)}</td>"
        f'<td class="number">{escape(verdict.figure)}</td>'
        f'<td class="number">{escape(verdict.interval)}</td></tr>'
        for claim, verdict in _with(verdicts)
    )
    return (
        '<div class="wide"><table><tr><th>claim</th><th>verdict</th><th class="number">figure</th>'
        f'<th class="number">95 % interval</th></tr>{rows}</table></div>'
    )


def _word(verdict: Verdict) -> str:
    colour = COLOURS[verdict.verdict]
    return f'<span class="verdict" style="color:{colour}">{escape(verdict.verdict)}</span>'


def _claim(claim: Claim, verdict: Verdict) -> str:
    figures = [
        {
            "figure": line.label + (f" (range of {line.range_of})" if line.range_of else ""),
            "value": f"{number(line.value, line.unit)} {line.unit}",
            "from": "" if line.low is None else number(line.low, line.unit),
            "to": "" if line.high is None else number(line.high, line.unit),
        }
        for line in verdict.lines
    ]
    source = _source(verdict)
    return (
        f'<section class="claim" id="{claim.name}"><h3>{escape(claim.title)}: {_word(verdict)}</h3>'
        f'<p class="said">The paper ({escape(claim.place)}): '
        f"{escape(claim.statement)}</p>"
        f"<p>Measured: {escape(claim.measure)}</p><p>Found: {escape(verdict.sentence)}</p>"
        + (html_table(figures) if figures else "")
        + (f"<p>From run {escape(source)}.</p>" if source else "")
        + "</section>"
    )


def _courses(results: Results) -> list[str]:
    """NMAE and objective by iteration, where they are there."""
    parts = []
    for name, field, caption in (
        ("longer", "nmae", "NMAE by iteration, a line for each split"),
        ("objective", "map_objective", "The MAP objective by iteration"),
    ):
        found = results.measured.get(name)
        if found is None or not found.finished:
            continue
        curves = {
            f"split {index + 1}": [
                (record.iteration, value)
                for record in curve
                if (value := getattr(record, field)) is not None
            ]
            for index, curve in enumerate(found.records)
        }
        svg = line_chart(curves, "iteration", caption)
        if svg:
            parts.append(f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>")
    return parts


def nmae_lines(verdicts: Mapping[str, Verdict]) -> list[tuple[Claim, Verdict, Line]]:
    """The differences of NMAE with an interval, in the order of the claims."""
    return [
        (claim, verdict, line)
        for claim, verdict in _with(verdicts)
        for line in verdict.lines
        if line.unit == "NMAE" and line.low is not None
    ]


def on_chart(line: Line) -> tuple[float, float, float, str]:
    """A figure's place on a chart from -``SHOWN`` to ``SHOWN``: low, value, high, remark.

    What lies outside is at the edge, and the remark is its value; else the remark is "".
    """
    low, high = line.interval
    parts = [min(max(value, -SHOWN), SHOWN) for value in (low, line.value, high)]
    outside = abs(line.value) > SHOWN
    return parts[0], parts[1], parts[2], signed(line.value, 3) if outside else ""


def interval_chart(verdicts: Mapping[str, Verdict]) -> str:
    """All differences of NMAE as intervals in SVG, with the margin as a band."""
    rows = nmae_lines(verdicts)
    if not rows:
        return ""
    width, left, right, step, top = 760, 330, 20, 22, 28
    ends = [end for *_, line in rows for end in on_chart(line)[:3]]
    low, high = min(*ends, -2 * MARGIN), max(*ends, 2 * MARGIN)
    height = top + step * len(rows) + 8

    def across(value: float) -> float:
        return left + (value - low) / (high - low) * (width - left - right)

    shapes = [
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="Differences of NMAE">',
        "<title>Differences of NMAE with 95 % intervals</title>",
        f'<rect x="{across(-MARGIN):.1f}" y="{top - 6}" '
        f'width="{across(MARGIN) - across(-MARGIN):.1f}" height="{height - top}" fill="#8883"/>',
    ]
    for value in _ticks(low, high):
        shapes.append(
            f'<line x1="{across(value):.1f}" x2="{across(value):.1f}" y1="{top - 6}" '
            f'y2="{height - 6}" stroke="#8885"/><text x="{across(value):.1f}" y="{top - 12}" '
            f'text-anchor="middle">{unsigned_zero(f"{value:+.3g}")}</text>'
        )
    for index, (_, verdict, line) in enumerate(rows):
        y = top + step * (index + 0.5)
        begin, middle, end, remark = on_chart(line)
        least, most = (signed(end, 4) for end in line.interval)
        said = f"{line.label}: {signed(line.value, 4)} [{least}, {most}]"
        colour = COLOURS[verdict.verdict]
        shapes.append(
            f'<text x="{left - 10}" y="{y + 4:.1f}" text-anchor="end">{escape(line.label)}</text>'
            f'<line x1="{across(begin):.1f}" x2="{across(end):.1f}" y1="{y:.1f}" y2="{y:.1f}" '
            f'stroke="{colour}" stroke-width="2"/><circle cx="{across(middle):.1f}" '
            f'cy="{y:.1f}" r="4" fill="{colour}"><title>{escape(said)}</title></circle>'
            + (
                f'<text x="{across(middle) - 8 * (1 if middle > 0 else -1):.1f}" y="{y + 4:.1f}" '
                f'text-anchor="{"end" if middle > 0 else "start"}">{remark}</text>'
                if remark
                else ""
            )
        )
    return "".join(shapes) + "</svg>"


def _ticks(low: float, high: float) -> Sequence[float]:
    """Multiples of a round step, 0 among them; about six."""
    steps = [size * power for power in (0.001, 0.01, 0.1, 1.0) for size in (1, 2, 5)]
    step = next((s for s in steps if (high - low) / s <= 7), steps[-1])
    first = int(low / step)
    return [step * k for k in range(first, int(high / step) + 1)]


def text_rows(verdicts: Mapping[str, Verdict]) -> list[tuple[str, ...]]:
    """Rows for a terminal: title, verdict, figure, interval, source."""
    return [
        (claim.title, v.verdict, v.figure, v.interval, _source(v)) for claim, v in _with(verdicts)
    ]
