"""Model selection: that auto chooses the settings of a run, what was asked, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gmc_core.base.errors import ConfigError
from gmc_core.fitting.auto import SECONDS

MOST = 1e9  # far above any number of a choice; refuses NaN as well


@dataclass(frozen=True)
class Selection:
    """Auto chooses the settings of a fit inside the training set of the run's one split.

    seconds, attributes, times : what was asked, see :func:`gmc_core.fitting.auto.choose`.
    tried : how many settings have been tried. best : the lowest NMAE among them, on ratings held
        out inside the training set; None before the first. spent : seconds so far.
    reason : why the run has the settings that it has; "" until they are chosen.

    Raises
    ------
    ConfigError
        If the time is not above 0, or what came of it is no number.
    """

    seconds: float = SECONDS
    attributes: bool = True
    times: bool = False
    tried: int = 0
    best: float | None = None
    spent: float = 0.0
    reason: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.seconds < math.inf:
            raise ConfigError(f"The time to choose in must be above 0 seconds, not {self.seconds}.")
        told = (self.tried, self.spent, self.best or 0.0)
        if not all(0 <= value < MOST for value in told):
            raise ConfigError(f"A choice has numbers of at least 0, not {told}.")

    @property
    def open(self) -> bool:
        """Whether the settings are still to be chosen."""
        return not self.reason

    @property
    def asked(self) -> dict[str, Any]:
        """What decides the choice besides the data."""
        return {"seconds": self.seconds, "attributes": self.attributes, "times": self.times}

    @property
    def arguments(self) -> list[str]:
        """The same for ``gmc auto``."""
        words = [f"--seconds={self.seconds:g}"]
        words += [] if self.attributes else ["--no-attributes"]
        return words + (["--times"] if self.times else [])

    def as_dict(self) -> dict[str, Any]:
        """For JSON; :meth:`from_dict` is the way back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Selection:
        """Read what :meth:`as_dict` wrote.

        Raises
        ------
        ConfigError, ValueError, TypeError, LookupError
            If it is anything else.
        """
        best = values["best"]
        return cls(
            float(values["seconds"]),
            bool(values["attributes"]),
            bool(values["times"]),
            int(values["tried"]),
            None if best is None else float(best),
            float(values["spent"]),
            str(values["reason"]),
        )
