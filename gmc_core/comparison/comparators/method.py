"""What a method is, and the simplest ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.baselines import bias, global_mean, item_mean, user_mean
from gmc_core.protocol.splits import Split

FloatVector = npt.NDArray[np.float64]


class Method(Protocol):
    """Predicts held-out ratings from the others.

    Attributes
    ----------
    name : short and unique, as typed on the command line.
    label : as shown in tables.
    identity : text that changes whenever the same split would get other predictions;
        stored predictions are found again by it.
    """

    @property
    def name(self) -> str:
        """See above."""

    @property
    def label(self) -> str:
        """See above."""

    @property
    def identity(self) -> str:
        """See above."""

    def predict(self, split: Split, team: ThreadPool) -> FloatVector:
        """(n_test,) raw predictions, in ratings, in the order of the split's test ratings.

        It may look at ``split.train`` and ``split.query`` and at the positions of the
        test ratings, never at ``split.test_values``.

        Raises
        ------
        GmcError
            If the method cannot work on this split.
        Cancelled
            If the pool's owner wants to stop.
        """


@dataclass(frozen=True)
class Baseline:
    """A mean or a bias of :mod:`gmc_core.protocol.baselines`."""

    name: str
    label: str
    function: Callable[[Split], FloatVector]
    version: int = 1

    @property
    def identity(self) -> str:
        """Name and version: there is nothing to set."""
        return f"{self.name} {self.version}"

    def predict(self, split: Split, team: ThreadPool) -> FloatVector:
        """(n_test,) predictions; see :mod:`gmc_core.protocol.baselines`."""
        team.check()
        return self.function(split)


def reads_times(method: Method) -> bool:
    """Whether its predictions depend on when ratings were given, those held out included."""
    return bool(getattr(method, "reads_times", False))


BASELINES = {
    method.name: method
    for method in (
        Baseline("global", "Global mean", global_mean),
        Baseline("user", "User mean", user_mean),
        Baseline("item", "Item mean", item_mean),
        Baseline("bias", "User and item bias", bias),
    )
}
