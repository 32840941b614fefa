"""Running an experiment with its progress on stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gmc_core.cli.activity import doing
from gmc_core.cli.output import duration, figure, note, size

if TYPE_CHECKING:
    from gmc_core.fitting.duration import Estimate
    from gmc_core.fitting.experiment import Experiment
    from gmc_core.fitting.inputs import AnyFit
    from gmc_core.fitting.preparing import Prepared
    from gmc_core.fitting.records import IterationRecord


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


def run_with_progress(experiment: Experiment, *, however_long: bool = True) -> None:
    """Run it; one line per iteration, and the cost before the first.

    however_long : also if it takes more than an hour; else a ConfigError says what to do instead.
    """
    _Progress(experiment, however_long).run()


class _Progress:
    def __init__(self, experiment: Experiment, however_long: bool) -> None:
        self.experiment = experiment
        self.however_long = however_long
        self.repetitions = len(experiment.config.seeds)
        self.records: list[IterationRecord] = []
        self.estimate: Estimate | None = None
        self.total = 0
        self.notes: set[str] = set()

    def run(self) -> None:
        doing("preparing")
        self.experiment.run(self.record, self.start)

    def start(self, index: int, fit: AnyFit) -> None:
        from gmc_core.fitting.time_notes import notes_on_times

        if self.repetitions > 1:
            drawn = self.experiment.config.split_words(self.experiment.config.seeds[index])
            note(f"repetition {index + 1} of {self.repetitions}, {drawn}")
        if index == 0:
            self.total = self.repetitions * fit.settings.iterations
            self.tell_cost(fit)
            self.compile(fit)
        for text in (*fit.split.notes, *notes_on_times(fit.split, fit.settings)):
            if text not in self.notes:
                self.notes.add(text)
                note(text)
        if self.total:
            self.iteration(fit, 1)
        else:
            doing("predicting", fit.team.progress.now)

    def iteration(self, fit: AnyFit, number: int) -> None:
        """Which one goes on from here."""
        iterations = self.total // self.repetitions
        doing(f"iteration {number} of {iterations}", fit.team.progress.now)

    def tell_cost(self, fit: AnyFit) -> None:
        from gmc_core.fitting.affordable import ON_THE_COMMAND_LINE, Wanted, check_affordable
        from gmc_core.fitting.duration import estimate_of_fit

        cost, settings = fit.cost, fit.settings
        self.estimate = expected = estimate_of_fit(fit, self.repetitions)
        each = expected.iterations[-1] if expected.iterations else 0.0
        note(
            f"{cost.signals:,} signals of {cost.dimension:,} coordinates, "
            f"{len(fit.split.train):,} ratings; an iteration takes about "
            f"{cost.flops / 1e9:,.1f} GFLOP ({cost.e_flops / 1e9:,.1f} in the E-step; the "
            f"paper's formula gives {cost.paper_flops / 1e9:,.1f})"
        )
        note(
            f"estimate: {duration(expected.computing - expected.starting)} in all "
            f"({duration(each)} for each of the later iterations), "
            f"{size(cost.memory_bytes)} of memory beyond the ratings; "
            f"epsilon {settings.epsilon:g}, initial value {settings.initial:g}, {settings.dtype}"
        )
        if not self.however_long:
            check_affordable(
                Wanted(settings, repetitions=self.repetitions), cost, expected,
                memory_limit=sys.maxsize, anyway=ON_THE_COMMAND_LINE,
            )  # fmt: skip
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

    def compile(self, fit: AnyFit) -> None:
        """Before the first iteration, so that none is slower for it."""
        from gmc_core.fitting import compiling

        if not self.total:
            return
        if compiling.must_compile(fit.settings):
            about = duration(compiling.compile_seconds(fit.settings))
            note(f"compiling the numerical code, once on this machine: about {about}")
        doing("preparing")
        compiling.compile_for(fit.settings)

    def record(self, index: int, record: IterationRecord) -> None:
        self.records.append(record)
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
        if len(self.records) < self.total and self.estimate is not None:
            text += f", about {duration(self.estimate.remaining(self.records))} left"
        note(text)
        if record.iteration < iterations and self.experiment.fit is not None:
            self.iteration(self.experiment.fit, record.iteration + 1)
        else:
            doing("finishing")
