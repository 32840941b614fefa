"""Verdicts that need the paper's tables, or other methods measured here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gmc_core.base.signs import signed
from gmc_core.gaussian.models import MODELS
from gmc_core.paper.claims.results import NotMeasured, Results
from gmc_core.paper.claims.verdict import Line, Verdict, Word, all_of, at_most, number, within
from gmc_core.paper.published import TABLES, PublishedTable
from gmc_core.paper.reproduction import paper_nmae
from gmc_core.paper.systems import METHODS
from gmc_core.protocol.metrics import PairedDifference, mean_with_interval

# Methods of a comparison that choose among this package's own models.
OWN_CHOSEN = ("auto", "paper-tuned")
OTHER_DATA = "The paper has no figure for these data; its tables are of MovieLens 1M and EachMovie."


def weak_table(results: Results) -> Verdict:
    """Is the weak NMAE within the margin of the printed one?"""
    return _reproduced(results, "weak", "paper")


def strong_table(results: Results) -> Verdict:
    """Is the strong NMAE within the margin of the printed one?"""
    return _reproduced(results, "strong", "strong")


def _reproduced(results: Results, protocol: str, name: str) -> Verdict:
    table = _table(results)
    printed = paper_nmae(table, protocol)
    assert printed is not None
    mean, splits = _nmae(results, name)
    line = _minus(f"measured against printed, {protocol}", mean, printed)
    return Verdict.by(
        line,
        within(line),
        f"{protocol.capitalize()} NMAE is {mean.mean:.4f} ± {mean.se:.4f} on {mean.n:,} held-out "
        f"ratings of {splits} splits, the paper prints {printed:.4f}. Its figure is taken as it "
        "is; from three repetitions it has an error of its own.",
        (line,),
        results.ids(name),
    )


def gap(results: Results) -> Verdict:
    """Is the measured NMAE at most the margin above that of the tables' best other method?"""
    printed = [
        Line(f"printed: {table.data_set}, {protocol}", own - best)
        for table in TABLES.values()
        for protocol in ("weak", "strong")
        if (own := paper_nmae(table, protocol)) is not None
        and (best := _best(table, protocol)) is not None
    ]
    largest = max(printed, key=lambda line: line.value)
    told = (
        "In the printed tables the gap to the best other method is "
        f"{signed(largest.value, 4)} at most "
        f"({largest.label.removeprefix('printed: ')})."
    )
    try:
        table = _table(results)
    except NotMeasured as reason:
        raise NotMeasured(f"{reason} {told}") from None
    closest, rest = [], []
    for protocol, name in (("weak", "paper"), ("strong", "strong")):
        others = _others(results, table, protocol, name)
        closest.append(max(others, key=lambda other: other.line.value))
        rest += [other.line for other in others if other.comparison and other is not closest[-1]]
    worst = max(closest, key=lambda other: other.line.interval[1])
    return Verdict.by(
        worst.line,
        all_of(at_most(other.line) for other in closest),
        f"{' '.join(other.told for other in closest)} {told}",
        (*(other.line for other in closest), *rest, *printed),
        results.ids("paper", "strong"),
        worst.comparison,
    )


@dataclass(frozen=True)
class _Other:
    """Another method of a table: the paper's NMAE less its own, and how that is said.

    comparison : that has it measured on the same held-out ratings; "" where it is as printed.
    """

    line: Line
    told: str
    comparison: str = ""


def _others(results: Results, table: PublishedTable, protocol: str, name: str) -> list[_Other]:
    """The table's other methods: measured where the store has a system, else as printed."""
    mean, _ = _nmae(results, name)
    systems = results.systems.get(protocol)
    rows = {} if systems is None else {row.name: row for row in systems.comparison.rows()}
    found = []
    for published in table.results[:-1]:
        printed, row = getattr(published, protocol), rows.get(METHODS[published.method])
        against = f"measured against {published.method}"
        begin = f"{protocol.capitalize()}: the best other is {published.method}"
        if systems and row and row.nmae is not None and row.scores is not None:
            gap, many = row.nmae.ratings, "one split" if row.splits == 1 else f"{row.splits} splits"
            line = Line(f"{against}, measured too, {protocol}", -gap.mean, -gap.high, -gap.low)
            told = (
                f"{begin}, measured here with {row.scores.nmae:.4f} on {many}; on the same ratings "
                f"the paper's method is {signed(line.value, 4)} from it."
            )
            found.append(_Other(line, told, systems.runs[0]))
        elif printed is not None:
            line = _minus(f"{against} as printed, {protocol}", mean, printed)
            told = (
                f"{begin} as printed with {printed:.4f}, which is not "
                "measured here; the paper's method, measured, is "
                f"{signed(line.value, 4)} from that."
            )
            found.append(_Other(line, told))
    return found


def filled(results: Results) -> Verdict:
    """Is the printed share of known entries that of the data?"""
    share = 100 * float(results.subject.data["fill_ratio"])
    try:
        table = _table(results)
    except NotMeasured as reason:
        raise NotMeasured(f"{reason} Here {share:.2g} % of the entries are known.") from None
    wanted = table.settings.fill_percent
    word: Word = "holds" if abs(share - wanted) <= 0.05 else "does not hold"
    data = results.subject.data
    return Verdict(
        word,
        f"{data['ratings']:,} ratings of {data['users']:,} × {data['items']:,} entries are "
        f"{share:.2f} % (C = {100 / share:.1f}); the paper prints {wanted} %.",
        unit="%",
        value=share,
        lines=(Line("known entries", share, unit="%"), Line("printed", wanted, unit="%")),
    )


def ballpark(results: Results) -> Verdict:
    """Is the best other method at most the margin better, and more expensive?"""
    comparison = results.comparison
    if comparison is None:
        raise NotMeasured("The comparison with other methods has not been computed yet.")
    comparison = comparison.against("paper") if "paper" in comparison.labels else comparison
    rows = {row.name: row for row in comparison.rows()}
    own = rows.get("paper")
    rivals = [
        row
        for name, row in rows.items()
        if row.scores is not None and row.nmae is not None and not _is_own(name)
    ]
    if own is None or own.scores is None or not rivals:
        raise NotMeasured("The comparison with other methods has no result yet.")
    best = min(rivals, key=lambda row: row.nmae.ratings.mean if row.nmae else 0.0)
    assert best.nmae is not None
    gap = best.nmae.ratings
    error = Line(f"the paper's against {best.label}", -gap.mean, -gap.high, -gap.low)
    ratios = {row.name: _cost_ratio(results, row.name, f"CPU time ÷ {row.label}") for row in rivals}
    cost = ratios[best.name]
    cheaper: Word = {"holds": "holds", "does not hold": "does not hold"}.get(  # type: ignore[assignment]
        at_most(cost, 1.0), "not resolved"
    )
    word = all_of([at_most(error), cheaper])
    # What decided: the cost where the error alone would have another verdict.
    deciding = error if at_most(error) == word else cost
    others = tuple(
        line
        for row in rivals
        if row is not best and row.nmae is not None
        for line in (
            Line(f"the paper's against {row.label}", -row.nmae.ratings.mean, -row.nmae.ratings.high,
                 -row.nmae.ratings.low),
            ratios[row.name],
        )
    )  # fmt: skip
    return Verdict.by(
        deciding,
        word,
        f"The best of {len(rivals)} other methods measured is {best.label}: the paper's NMAE is "
        f"{signed(error.value, 4)} from it ({at_most(error)}: same ballpark), its CPU time "
        f"{number(cost.value, cost.unit)} times as much ({cheaper}: lower cost).",
        (error, cost, *others),
        comparison=results.comparison_id,
    )


def _cost_ratio(results: Results, name: str, label: str) -> Line:
    """CPU seconds of the paper's method over another's: geometric mean over the splits."""
    comparison = results.comparison
    assert comparison is not None
    logs = np.array(
        [
            np.log(ours.cpu_seconds / theirs.cpu_seconds)
            for key in comparison.held_out
            if (ours := comparison.outcomes.get(("paper", key))) is not None
            and (theirs := comparison.outcomes.get((name, key))) is not None
            and ours.cpu_seconds > 0
            and theirs.cpu_seconds > 0
        ]
    )
    if not len(logs):
        raise NotMeasured("The comparison has no times.")
    if len(logs) < 2:
        return Line(label, float(np.exp(logs[0])), unit="times")
    found = mean_with_interval(logs)
    mean, low, high = np.exp([found.mean, found.low, found.high])
    return Line(label, float(mean), float(low), float(high), "times")


def _is_own(name: str) -> bool:
    """Whether a method of the comparison is one of this package's Gaussians."""
    return name.partition(":")[0] in (*MODELS, *OWN_CHOSEN)


def _table(results: Results) -> PublishedTable:
    table = results.subject.table
    if table is None:
        raise NotMeasured(OTHER_DATA)
    return table


def _best(table: PublishedTable, protocol: str) -> float | None:
    """The smallest published NMAE of a method other than the paper's."""
    values = [getattr(row, protocol) for row in table.results[:-1]]
    return min((value for value in values if value is not None), default=None)


def _nmae(results: Results, name: str) -> tuple[PairedDifference, int]:
    """Mean error over all held-out ratings, and the splits."""
    parts = [results.errors(pair[0]) for pair in results.pairs(name)]
    return mean_with_interval(np.concatenate(parts)), len(parts)


def _minus(label: str, mean: PairedDifference, constant: float) -> Line:
    return Line(label, mean.mean - constant, mean.low - constant, mean.high - constant)
