"""How much of a step is done, for whoever wants to tell it while the step goes on.

The computation adds up work after each of its pieces, in Python; compiled code knows nothing of it,
and no figure depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class StepShare:
    """A step, and how much of it is done.

    step : its name, such as "E-step". share : 0 to 1; None where its work is not counted.
    """

    step: str
    share: float | None = None

    def __str__(self) -> str:
        """ "41 % of the E-step"; the name alone without a share."""
        if self.share is None:
            return self.step
        return f"{whole_percent(self.share)} % of the {self.step}"


def whole_percent(share: float) -> int:
    """Per cent that are done, rounded down: 100 is all. Rounding of the share itself aside."""
    return math.floor(100 * share + 1e-9)


class StepProgress:
    """What a computation is at; it writes, and any thread may read.

    Adding is not safe from several threads at once: :class:`gmc_core.gaussian.linalg.threads.
    ThreadPool` does it under its lock.
    """

    def __init__(self) -> None:
        self._step = ""
        self._total: float | None = None
        self._done = 0.0

    def begin(self, step: str = "") -> None:
        """The next step; none with ""."""
        self._total, self._done = None, 0.0
        self._step = step

    @contextmanager
    def counting(self, work: float) -> Iterator[None]:
        """Inside the ``with`` what is :meth:`add`-ed is a share of ``work``, in any unit (flops).

        Where one is inside another, the outer one counts: its work has the inner one's in it.
        """
        if self._total is not None or not work > 0:
            yield
            return
        self._done, self._total = 0.0, work
        try:
            yield
        finally:
            self._total = None

    def add(self, work: float) -> None:
        """So much more is done."""
        self._done += work

    def now(self) -> StepShare | None:
        """The step that goes on; None between steps."""
        step, total, done = self._step, self._total, self._done
        if not step:
            return None
        return StepShare(step, None if total is None else min(done / total, 1.0))
