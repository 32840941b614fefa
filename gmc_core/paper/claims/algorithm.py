"""Verdicts on the course of the algorithm: objective, rank, flops, time and memory."""

from __future__ import annotations

import numpy as np

from gmc_core.base.errors import NotFiniteError, NotPositiveDefiniteError
from gmc_core.paper.claims.results import Measured, NotMeasured, Results
from gmc_core.paper.claims.verdict import Line, Verdict, Word, at_most
from gmc_core.protocol.metrics import mean_with_interval

# A rise that rounding could have turned into a fall counts as none.
ROUNDING = 1e-9
NEGLIGIBLE = 0.1  # of an iteration
SAME_SIZE = 2.0  # of two amounts of arithmetic
FEW_MATRICES = 4.0  # of N × N numbers


def objective(results: Results) -> Verdict:
    """Does the MAP objective rise at every iteration?"""
    found = results.need("objective")
    curves = found.records
    plain = [[record.map_objective for record in curve] for curve in curves]
    penalised = [[record.penalised_objective for record in curve] for curve in curves]
    if not curves or any(value is None for curve in plain for value in curve):
        raise NotMeasured("The objective was not recorded; compute the run again.")
    falls, steps = _falls(plain), sum(len(curve) - 1 for curve in curves)
    where = sorted({t for t, _ in falls})
    also = len(_falls(penalised))
    text = (
        f"log p(f̃ | y, μ, Σ) rises at all {steps} steps"
        if not falls
        else f"log p(f̃ | y, μ, Σ) falls at {len(falls)} of {steps} steps (to iteration "
        f"{', '.join(map(str, where))}; by {max(size for _, size in falls):.2g} of its size at "
        "most)"
    )
    return Verdict(
        "does not hold" if falls else "holds",
        f"{text}. What the M-step with ε maximises, the objective less (Mε/2) tr Σ⁻¹, falls at "
        f"{also}.",
        unit="falls",
        value=float(len(falls)),
        lines=(
            Line("falls of the objective", float(len(falls)), unit="falls"),
            Line("falls of the penalised objective", float(also), unit="falls"),
            Line("steps", float(steps), unit="steps"),
        ),
        runs=results.ids("objective"),
    )


def _falls(curves: list[list[float | None]]) -> list[tuple[int, float]]:
    """(iteration, relative size) of every fall beyond rounding; iterations from 1."""
    found = []
    for curve in curves:
        values = [value for value in curve if value is not None]
        for t, (before, after) in enumerate(zip(values, values[1:], strict=False), start=2):
            size = (before - after) / max(abs(before), 1e-300)
            if size > ROUNDING:
                found.append((t, size))
    return found


def full_rank(results: Results) -> Verdict:
    """Does every fit with ε > 0 keep its covariances positive definite?"""
    results.need("paper")
    with_epsilon = {
        name: found
        for name, found in results.measured.items()
        if name != "singular" and (found.finished or found.broke_down)
    }
    configs = results.subject.experiments()
    total = sum(configs[name].repetitions for name in with_epsilon if name in configs)
    broken = [name for name, found in with_epsilon.items() if found.broke_down]
    contrast = _without_epsilon(results)
    word: Word = "does not hold" if broken else "holds"
    how = "; ".join(f"{name}: {_how(with_epsilon[name])}" for name in broken)
    text = (
        f"{len(broken)} of {total} fits with ε > 0 broke down ({how})"
        if broken
        else f"All {total} fits with ε > 0 kept every covariance positive definite"
    )
    return Verdict(
        word,
        f"{text}. {contrast}",
        unit="breakdowns",
        value=float(len(broken)),
        lines=(Line("fits with ε > 0 that broke down", float(len(broken)), unit="breakdowns"),
               Line("fits with ε > 0", float(total), unit="fits")),
        runs=results.ids("paper", *broken, "singular"),
    )  # fmt: skip


def _how(found: Measured) -> str:
    """In which way a fit broke down, and when."""
    at = found.error_iteration
    where = "" if at is None else f" in iteration {at}"
    words = {
        NotPositiveDefiniteError.kind: "a covariance became singular",
        NotFiniteError.kind: "a number was no longer finite",
    }
    return words.get(found.error_kind or "", "the computation broke down") + where


def _without_epsilon(results: Results) -> str:
    found = results.measured.get("singular")
    if found is None or found.state in ("queued", "running"):
        return "Without ε has not been tried yet."
    if found.broke_down:
        return f"With ε = 0 {_how(found)}, so it is needed here."
    if found.finished:
        return "With ε = 0 none became singular either within so many iterations."
    return f"Without ε: the run is {found.state}. {found.message}".strip()


def flops(results: Results) -> Verdict:
    """Is M N³ / (3 C³) about the Σ N_i³ / 3 that the E-step takes?"""
    counts = results.subject.user_counts.astype(np.float64)
    items = len(results.subject.item_counts)
    exact = float((counts**3).sum() / 3)
    fill = float(counts.sum()) / (len(counts) * items)
    formula = len(counts) * (items * fill) ** 3 / 3
    ratio = exact / formula
    word: Word = "holds" if 1 / SAME_SIZE <= ratio <= SAME_SIZE else "does not hold"
    return Verdict(
        word,
        f"The factorizations take Σ N_i³/3 = {exact / 1e9:.3g} GFLOP, M N³/(3C³) with C = "
        f"{1 / fill:.3g} is {formula / 1e9:.3g}: the formula puts the mean N_i "
        f"({counts.mean():.0f}) in place of each, and the largest is {counts.max():,.0f} (median "
        f"{np.median(counts):.0f}).",
        unit="times",
        value=ratio,
        lines=(
            Line("Σ N_i³/3", exact / 1e9, unit="GFLOP"),
            Line("M N³/(3C³)", formula / 1e9, unit="GFLOP"),
            Line("Σ N_i³/3 ÷ M N³/(3C³)", ratio, unit="times"),
        ),
    )


def m_step(results: Results) -> Verdict:
    """Does the M-step take at most a tenth of an iteration?"""
    curves = results.need("paper").records
    # The first iteration starts from a sparse table, and may be slowed by loading code.
    percents = [
        100 * record.m_seconds / (record.m_seconds + record.e_seconds)
        for curve in curves
        for record in curve[1:]
        if record.m_seconds + record.e_seconds > 0
    ]
    if len(percents) < 2:
        raise NotMeasured("There are fewer than two timed iterations.")
    share = mean_with_interval(percents)
    line = Line("M-step's share of an iteration's time", share.mean, share.low, share.high, "%")
    counts = results.subject.user_counts.astype(np.float64)
    items = len(results.subject.item_counts)
    ratio = len(counts) * items**2 / float((counts**3).sum() / 3)
    return Verdict.by(
        line,
        at_most(line, 100 * NEGLIGIBLE),
        f"The M-step takes {share.mean:.0f} % of an iteration here, over {share.n} iterations "
        f"(negligible: {100 * NEGLIGIBLE:g} %). By the paper's own counts M N² is {ratio:.2g} "
        "times Σ N_i³/3.",
        (line, Line("M N² ÷ (Σ N_i³/3)", ratio, unit="times")),
        results.ids("paper"),
    )


def memory(results: Results) -> Verdict:
    """Does a fit need no more than a few matrices of N × N numbers?"""
    comparison = results.comparison
    if comparison is None or "paper" not in comparison.labels:
        raise NotMeasured("Memory is measured by the comparison with other methods, which is open.")
    found = [
        outcome.peak_bytes
        for key in comparison.held_out
        if (outcome := comparison.outcomes.get(("paper", key))) is not None
        and np.isfinite(outcome.peak_bytes)
    ]
    # The first fit of the process also loads code, which is no part of the model.
    peaks = np.array(found[1:] or found)
    if not len(peaks):
        raise NotMeasured("The comparison has no memory figure of the paper's method.")
    items, users = len(results.subject.item_counts), len(results.subject.user_counts)
    matrix = items**2 * 8.0
    line = Line.over_splits("peak memory of a fit ÷ one N × N matrix", peaks / matrix, "times")
    if users < items and line.value < 1:
        more = (
            "Less than one: with fewer users than items Σ is kept as a factor of M × N numbers "
            "and never formed."
        )
    elif line.value <= FEW_MATRICES:
        more = "It holds the old and the new Σ, and the block in which the M-step sums."
    else:
        more = "So small a covariance is outweighed by the ratings' own arrays."
    return Verdict.by(
        line,
        at_most(line, FEW_MATRICES),
        f"A fit in float64 takes {peaks.mean() / 1e6:.3g} MB beyond the ratings at its peak, "
        f"{line.value:.2g} times the N² numbers of a covariance ({matrix / 1e6:.3g} MB; N = "
        f"{items:,}). {more}",
        (line,),
        comparison=results.comparison_id,
    )
