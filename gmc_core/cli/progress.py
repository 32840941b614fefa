"""Running an experiment with its progress on stderr."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmc_core.cli.output import duration, figure, note, size

if TYPE_CHECKING:
    from gmc_core.experiment import Experiment, Prepared
    from gmc_core.fit import Fit, IterationRecord


def tell_prepared(prepared: Prepared) -> None:
    """What was read, dropped and filtered."""
    report = prepared.load_report
    if report is not None:
        for line in str(report).splitlines():
            note(line)
    if prepared.filter_report is not None:
        for line in str(prepared.filter_report).splitlines():
            note(f"filter: {line}")
    if prepared.pair is not None:
        note(f"{len(prepared.ratings):,} training and {prepared.pair.n_test:,} test ratings, as is")


def run_with_progress(experiment: Experiment) -> None:
    """Run it; one line per iteration, and the cost before the first."""
    _Progress(experiment).run()


class _Progress:
    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.repetitions = len(experiment.config.seeds)
        self.seconds = 0.0
        self.done = 0
        self.total = 0
        self.notes: set[str] = set()

    def run(self) -> None:
        self.experiment.run(self.record, self.start)

    def start(self, index: int, fit: Fit) -> None:
        if self.repetitions > 1:
            note(f"repetition {index + 1} of {self.repetitions}, seed {fit.split.seed}")
        if index == 0:
            self.total = self.repetitions * fit.settings.iterations
            self.tell_cost(fit)
        for text in fit.split.notes:
            if text not in self.notes:
                self.notes.add(text)
                note(text)

    def tell_cost(self, fit: Fit) -> None:
        from gmc_core.cost import gemm_rate

        cost, settings = fit.cost, fit.settings
        # The rate is measured with all threads; the estimate needs no more than that.
        each = cost.seconds(gemm_rate(settings.dtype))
        note(
            f"{cost.signals:,} signals of {cost.dimension:,} coordinates, "
            f"{len(fit.split.train):,} ratings; an iteration takes about "
            f"{cost.flops / 1e9:,.1f} GFLOP ({cost.e_flops / 1e9:,.1f} in the E-step; the "
            f"paper's formula gives {cost.paper_flops / 1e9:,.1f})"
        )
        note(
            f"estimate: {duration(each)} an iteration, {duration(each * self.total)} in all, "
            f"{size(cost.memory_bytes)} of memory beyond the ratings; "
            f"epsilon {settings.epsilon:g}, initial value {settings.initial:g}, {settings.dtype}"
        )
        if len(fit.groups):
            used = ", ".join(fit.groups.choices)
            note(f"the mean depends on the users' {used}; --no-attributes leaves that out")
        elif (
            settings.is_exact
            and settings.attributes
            and fit.split.train.user_info
            and settings.signals != "rows"
        ):
            note("users' attributes are left out: they need users as signals (rows)")
        if self.total and must_compile():
            note("the first run compiles the solvers, which takes 10 to 20 seconds once")

    def record(self, index: int, record: IterationRecord) -> None:
        self.done += 1
        self.seconds += record.seconds
        iterations = self.total // self.repetitions
        text = f"iteration {record.iteration:>{len(str(iterations))}} of {iterations}"
        if record.nmae is not None:
            text += f"  NMAE {figure(record.nmae)}  RMSE {figure(record.rmse)}"
        text += f"  log-likelihood {record.log_likelihood:,.0f}"
        if record.map_objective is not None:
            text += f"  objective {record.map_objective:,.0f}"
        if self.experiment.config.fit.learn_noise:
            text += f"  noise {record.noise:.3g}"
        text += f"  {duration(record.seconds)}"
        left = self.total - self.done
        if left:
            text += f", about {duration(self.seconds / self.done * left)} left"
        note(text)


def must_compile() -> bool:
    """Whether numba has nothing in its cache for the solvers as they are now.

    A guess from the files' times: numba itself tells only by compiling.
    """
    from gmc_core.linalg import solve

    function: Any = solve.solve_lanes
    source = Path(function.py_func.__code__.co_filename).stat().st_mtime
    tag = f"py{sys.version_info.major}{sys.version_info.minor}"
    try:
        folder = Path(function.stats.cache_path)
        found = folder.glob(f"solve.solve_lanes-*.{tag}.nbi")
        return not any(index.stat().st_mtime >= source for index in found)
    except (OSError, TypeError):
        return True
