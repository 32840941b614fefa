"""Verdicts from held-out errors: differences between settings, on the same ratings."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
from scipy import optimize

from gmc_core.base.signs import signed
from gmc_core.comparison.compare import rmse_difference
from gmc_core.gaussian.settings import PAPER_ITERATIONS
from gmc_core.paper.claims.results import NotMeasured, Results
from gmc_core.paper.claims.verdict import MARGIN, Line, Verdict, above, all_of, at_most, within
from gmc_core.protocol.metrics import paired_difference
from gmc_core.runs.store import HeldOut

Vector = npt.NDArray[np.float64]
Fitter = Callable[[Vector, Vector], tuple[float, float]]


def convergence(results: Results) -> Verdict:
    """Does NMAE stay within the margin from iteration 10 to twice as many?"""
    line = Line.of(
        f"{2 * PAPER_ITERATIONS} iterations against {PAPER_ITERATIONS}",
        results.difference("longer", "paper"),
    )
    curves = results.need("longer").records
    courses = [[r.nmae for r in curve if r.nmae is not None] for curve in curves]
    mean = np.mean([course for course in courses if len(course) == 2 * PAPER_ITERATIONS], axis=0)
    best = int(np.argmin(mean)) + 1
    moved = float(np.mean([curve[PAPER_ITERATIONS - 1].covariance_change or 0 for curve in curves]))
    return Verdict.by(
        line,
        within(line),
        f"From iteration {PAPER_ITERATIONS} to {2 * PAPER_ITERATIONS} NMAE changes by "
        f"{signed(line.value, 4)}; it is lowest at iteration {best} ({mean[best - 1]:.4f}, and "
        f"{mean[PAPER_ITERATIONS - 1]:.4f} at {PAPER_ITERATIONS}). Iteration {PAPER_ITERATIONS} "
        f"still moves Σ by {100 * moved:.2g} %.",
        (line,),
        results.ids("paper", "longer"),
    )


def epsilon(results: Results) -> Verdict:
    """Does half or double the paper's ε leave NMAE within the margin?"""
    names = results.subject.epsilons()
    lines = [
        Line.of(f"ε {value:g} against {results.subject.epsilon:g}",
                results.difference(name, "paper"))
        for name, value in names.items()
    ]  # fmt: skip
    return _same(results, lines, names, f"half and double the ε of {results.subject.epsilon:g}")


def initial_value(results: Results) -> Verdict:
    """Do other initial values leave NMAE within the margin?"""
    names = results.subject.initials()
    lines = [
        Line.of(f"initial value {value:g} against the paper's", results.difference(name, "paper"))
        for name, value in names.items()
    ]
    values = " and ".join(f"{value:g}" for value in names.values())
    return _same(results, lines, names, f"the initial values {values}")


def _same(results: Results, lines: list[Line], names: Iterable[str], what: str) -> Verdict:
    worst = max(lines, key=lambda line: max(map(abs, line.interval)))
    word = all_of(within(line) for line in lines)
    deciding = next((line for line in lines if within(line) == word), worst)
    if word == "holds":
        deciding = worst
    told = {
        "holds": f"{what[0].upper()}{what[1:]} stay within the margin",
        "does not hold": f"{what[0].upper()}{what[1:]} do not both stay within the margin",
        "not resolved": f"Whether {what} stay within the margin is not resolved",
    }[word]
    ids = results.ids("paper", *names)
    return Verdict.by(deciding, word, f"{told}: {_listed(lines)}.", lines, ids)


def signals(results: Results) -> Verdict:
    """Are columns and blocks worse than rows?"""
    names = [
        name for name in results.subject.experiments() if name.split()[0] in ("columns", "blocks")
    ]
    lines = [
        Line.of(f"{_signal_name(name)} against rows", results.difference(name, "paper"))
        for name in names
    ]
    word = all_of(above(line) for line in lines)
    closest = min(lines, key=lambda line: line.interval[0])
    far = [line for line in lines if line.interval[0] > MARGIN]
    more = ""
    if word == "holds":
        more = (
            " All by more than the margin, so “slightly” says too little."
            if len(far) == len(lines)
            else " The closest is within the margin, as “slightly” says."
            if closest.interval[1] <= MARGIN
            else ""
        )
    told = {
        "holds": "Rows are better than columns and blocks",
        "does not hold": "Rows are not better than every other choice",
        "not resolved": "Whether rows are better than every other choice is not resolved",
    }[word]
    ids = results.ids("paper", *names)
    return Verdict.by(closest, word, f"{told}: {_listed(lines)}.{more}", lines, ids)


def _signal_name(name: str) -> str:
    kind, _, side = name.partition(" ")
    return f"{kind} of {side} × {side}" if side else kind


def noise(results: Results) -> Verdict:
    """Does any noise variance lower NMAE by more than the margin?"""
    names = results.subject.noises()
    lines = [
        Line.of(f"no noise against {value:g}", results.difference("paper", name))
        for name, value in names.items()
    ]
    return _no_gain(
        results, lines, names,
        holds="Noise in the model does not lower NMAE by more than the margin",
        fails="Noise in the model lowers NMAE by more than the margin, so neglecting it costs",
        open_="Whether noise lowers NMAE by more than the margin is not resolved",
    )  # fmt: skip


def mixtures(results: Results) -> Verdict:
    """Do several Gaussians lower NMAE by more than the margin?"""
    names = {
        name: int(name.split()[1])
        for name in results.subject.experiments()
        if name.startswith("mixture ")
    }
    lines = [
        Line.of(f"one Gaussian against {count}", results.difference("paper", name))
        for name, count in names.items()
    ]
    return _no_gain(
        results, lines, names,
        holds="Several Gaussians do not lower NMAE by more than the margin",
        fails="Several Gaussians lower NMAE by more than the margin",
        open_="Whether several Gaussians lower NMAE by more than the margin is not resolved",
    )  # fmt: skip


def _no_gain(
    results: Results, lines: list[Line], names: Iterable[str], *, holds: str, fails: str, open_: str
) -> Verdict:
    word = all_of(at_most(line) for line in lines)
    largest = max(lines, key=lambda line: line.interval[1])
    if word == "does not hold":
        largest = max(lines, key=lambda line: line.interval[0])
    told = {"holds": holds, "does not hold": fails, "not resolved": open_}[word]
    ids = results.ids("paper", *names)
    return Verdict.by(largest, word, f"{told}: {_listed(lines)}.", lines, ids)


def projection(results: Results) -> Verdict:
    """Is NMAE lower after projection to the scale than before?"""
    scale = results.subject.scale
    if scale.step is None:
        raise NotMeasured("The rating scale is continuous, so there is nothing to project to.")
    held_out = [pair[0] for pair in results.pairs("paper")]
    projected = np.concatenate([results.errors(part) for part in held_out])
    raw = np.concatenate([np.abs(p.predictions - p.actual) for p in held_out]) / scale.nmae_divisor
    clipped = np.concatenate(
        [np.abs(np.clip(p.predictions, scale.low, scale.high) - p.actual) for p in held_out]
    )
    line = Line.of("projected against as predicted", paired_difference(projected, raw))
    only = Line.of(
        "projected against only clipped",
        paired_difference(projected, clipped / scale.nmae_divisor),
    )
    word = {"holds": "does not hold", "does not hold": "holds"}.get(above(line), "not resolved")
    return Verdict.by(
        line,
        word,  # type: ignore[arg-type]
        f"Projection to the scale ({scale}) takes NMAE from {raw.mean():.4f} to "
        f"{projected.mean():.4f}; against clipping alone the difference is "
        f"{signed(only.value, 4)}.",
        (line, only),
        results.ids("paper"),
    )


def optimality(results: Results) -> Verdict:
    """Can a straight line through the predictions lower MSE or MAE?

    The line a + c x is fitted on all splits but one, by least squares or least absolute
    deviations, and judged on that one. The gains are in units of the NMAE divisor.
    """
    held_out = [pair[0] for pair in results.pairs("paper")]
    held_out = held_out[: results.subject.splits]
    if len(held_out) < 2:
        raise NotMeasured("A line is fitted on one split and judged on another; two are needed.")
    divisor = results.subject.scale.nmae_divisor
    squares = _recalibrated(held_out, least_squares_line)
    absolutes = _recalibrated(held_out, least_deviations_line)
    actual = np.concatenate([part.actual for part in held_out])
    raw = np.concatenate([part.predictions for part in held_out])
    mae = paired_difference(np.abs(raw - actual) / divisor, np.abs(absolutes[0] - actual) / divisor)
    rmse = rmse_difference(((raw - actual) / divisor) ** 2, ((squares[0] - actual) / divisor) ** 2)
    lines = (
        Line.of("RMSE, the estimate against a line", rmse),
        Line.of("MAE, the estimate against a line", mae),
    )
    word = all_of(at_most(line) for line in lines)
    deciding = max(lines, key=lambda line: line.interval[0 if word == "does not hold" else 1])
    told = {
        "holds": "No straight line through the predictions is better by more than the margin",
        "does not hold": "A straight line through the predictions is better by more than the "
        "margin, so on these ratings the E-step's estimate is not the best",
        "not resolved": "Whether a straight line through the predictions is better is not resolved",
    }[word]
    return Verdict.by(
        deciding,
        word,
        f"{told}: {_listed(lines)} (÷ {divisor:.3g}; slope {squares[1]:.2f} for MSE, "
        f"{absolutes[1]:.2f} for MAE). Under the model's own assumptions, with (μ, Σ) known, the "
        "claim is a theorem: the posterior is Gaussian, so its mean is its median.",
        lines,
        results.ids("paper"),
    )


def _recalibrated(held_out: list[HeldOut], fit: Fitter) -> tuple[Vector, float]:
    """Predictions of every split by the line of the others, and the mean slope."""
    found, slopes = [], []
    for index, part in enumerate(held_out):
        others = [other for k, other in enumerate(held_out) if k != index]
        x = np.concatenate([other.predictions for other in others])
        y = np.concatenate([other.actual for other in others])
        offset, slope = fit(x, y)
        found.append(offset + slope * part.predictions)
        slopes.append(slope)
    return np.concatenate(found), float(np.mean(slopes))


def least_squares_line(x: Vector, y: Vector) -> tuple[float, float]:
    """(a, c) that minimise Σ (a + c x - y)²."""
    spread = float(((x - x.mean()) ** 2).sum())
    slope = float(((x - x.mean()) * (y - y.mean())).sum()) / spread if spread else 0.0
    return float(y.mean()) - slope * float(x.mean()), slope


def least_deviations_line(x: Vector, y: Vector) -> tuple[float, float]:
    """(a, c) that minimise Σ |a + c x - y|: for a given c, a is a median; convex in c."""

    def loss(slope: float) -> float:
        rest = y - slope * x
        return float(np.abs(rest - np.median(rest)).sum())

    slope = float(optimize.minimize_scalar(loss, bounds=(-1.0, 3.0), method="bounded").x)
    return float(np.median(y - slope * x)), slope


def _listed(lines: Iterable[Line]) -> str:
    return ", ".join(f"{line.label} {signed(line.value, 4)}" for line in lines)
