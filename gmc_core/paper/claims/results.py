"""The experiments' results as the verdicts take them, independent of the store of runs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gmc_core.comparison.compare import Comparison
from gmc_core.fitting.fit import IterationRecord
from gmc_core.paper.claims.subject import Subject
from gmc_core.paper.measured import MeasuredSystems
from gmc_core.protocol.metrics import PairedDifference, normalized_errors, paired_difference
from gmc_core.runs.store import HeldOut
from gmc_core.runs.store.run import broke_down


class NotMeasured(Exception):
    """Why a claim has no verdict (yet), in a sentence; it stands for no fault."""


@dataclass(frozen=True, eq=False)
class Measured:
    """One experiment's outcome.

    run : its id. state, message, error_kind, error_iteration : as in
        :class:`gmc_core.runs.store.Run`.
    records : of each finished repetition (of a run that failed: of all begun).
    held_out : of each finished repetition.
    """

    run: str
    state: str
    message: str = ""
    records: tuple[tuple[IterationRecord, ...], ...] = ()
    held_out: tuple[HeldOut, ...] = ()
    error_kind: str | None = None
    error_iteration: int | None = None

    @property
    def finished(self) -> bool:
        """Whether all of it is there."""
        return self.state == "finished"

    @property
    def broke_down(self) -> bool:
        """Whether the numbers ended it, in whatever way: a result, see :attr:`Run.broke_down`."""
        return broke_down(self.state, self.error_kind)


@dataclass(frozen=True, eq=False)
class Results:
    """Everything that the verdicts are made from.

    measured : by the names of :meth:`Subject.experiments`, as far as there is a run.
    comparison : with other methods, None before it has a result. comparison_id : its id.
    systems : of the paper's tables, measured here, by protocol; those that have a result.
    """

    subject: Subject
    measured: dict[str, Measured] = field(default_factory=dict)
    comparison: Comparison | None = None
    comparison_id: str = ""
    systems: dict[str, MeasuredSystems] = field(default_factory=dict)

    def need(self, name: str) -> Measured:
        """A finished experiment.

        Raises
        ------
        NotMeasured
            If it is not there or not finished.
        """
        found = self.measured.get(name)
        if found is None:
            raise NotMeasured("Not computed yet.")
        if not found.finished:
            reason = f" {found.message}" if found.message else ""
            raise NotMeasured(f"Run {found.run} is {found.state}.{reason}")
        return found

    def ids(self, *names: str) -> tuple[str, ...]:
        """The ids of experiments that were found, in order."""
        return tuple(self.measured[name].run for name in names if name in self.measured)

    def pairs(self, *names: str) -> list[tuple[HeldOut, ...]]:
        """The held-out predictions of several experiments, split by split.

        Only the splits that all of them have; the same ratings in the same order.

        Raises
        ------
        NotMeasured
            If one is not finished, or its held-out ratings are others.
        """
        parts = [self.need(name).held_out for name in names]
        common = list(zip(*parts, strict=False))
        if not common:
            raise NotMeasured("The held-out predictions are missing; compute the run again.")
        for first, *others in common:
            if not all(first.same_ratings(other) for other in others):
                raise NotMeasured("The runs have other held-out ratings; compute them again.")
        return common

    def errors(self, held_out: HeldOut) -> npt.NDArray[np.float64]:
        """(n,) normalised errors after projection to the scale."""
        return normalized_errors(held_out.predictions, held_out.actual, self.subject.scale)

    def difference(self, name: str, other: str) -> PairedDifference:
        """NMAE of one experiment minus another's on the same held-out ratings.

        Raises
        ------
        NotMeasured
            As :meth:`pairs`.
        """
        pairs = self.pairs(name, other)
        one, two = (
            np.concatenate([self.errors(pair[index]) for pair in pairs]) for index in (0, 1)
        )
        return paired_difference(one, two)
