"""How wide a model's intervals must be, as :mod:`gmc_core.fitting.intervals` has learned it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

# The interval of a model that has not been calibrated: 90 % of a standard normal distribution lie
# within 1.64 standard deviations.
USUAL_LEVEL, USUAL_FACTOR = 0.9, 1.64
# A model whose fit took no longer is calibrated even if nobody asks for it.
AFFORDABLE_SECONDS = 120.0
UNCALIBRATED = (
    f"The interval is the model's own, ± {USUAL_FACTOR} posterior standard deviations. It would "
    f"hold {100 * USUAL_LEVEL:g} % of the ratings if the model were right; it has not been "
    "calibrated, and may hold far fewer."
)


@dataclass(frozen=True)
class Calibration:
    """How wide an interval must be to cover the share of ratings that it states.

    level : share of ratings that it shall cover, between 0 and 1.
    factor : the posterior standard deviations on either side of the prediction, 0 or more.
    ratings, users : on how many held-out ratings of how many users that was learned.
    when : seconds since 1970; 0 if unknown.
    """

    level: float
    factor: float
    ratings: int
    users: int
    when: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.level < 1 and math.isfinite(self.factor) and self.factor >= 0):
            raise ValueError(f"{self.level} and {self.factor} are no level and no factor")

    @property
    def sentence(self) -> str:
        """Which interval it is, for people."""
        return (
            f"Calibrated: {100 * self.level:.4g} % of {self.ratings:,} ratings held out inside the "
            f"training set, every one of {self.users:,} users weighing alike, fell into intervals "
            f"of ± {self.factor:.2f} posterior standard deviations."
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Calibration:
        """Read what :meth:`as_dict` wrote; names that a later version adds are left out."""
        return cls(
            level=float(values["level"]),
            factor=float(values["factor"]),
            ratings=int(values["ratings"]),
            users=int(values["users"]),
            when=float(values.get("when", 0.0)),
        )


def level_of(calibration: Calibration | None) -> float:
    """The share of ratings that a model's interval shall cover."""
    return USUAL_LEVEL if calibration is None else calibration.level


def factor_of(calibration: Calibration | None) -> float:
    """Half the width of a model's interval, in standard deviations."""
    return USUAL_FACTOR if calibration is None else calibration.factor


def note_of(calibration: Calibration | None) -> str:
    """Which interval a model's is, in a sentence or two."""
    return UNCALIBRATED if calibration is None else calibration.sentence


def described(calibration: Calibration | None) -> dict[str, Any]:
    """The same for JSON."""
    return {
        "level": level_of(calibration),
        "factor": factor_of(calibration),
        "calibrated": calibration is not None,
        "note": note_of(calibration),
    }
