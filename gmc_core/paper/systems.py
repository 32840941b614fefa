"""The systems of the paper's tables, measured here, beside what is printed of them.

All learn from the same splits, so each is also compared with the Gaussian by paired differences.
The verdict on a printed figure is a rule: measured within three standard errors of it, better, or
worse. Printed figures come without an error, so the rule takes that of the measured one alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gmc_core.comparison.compare import Comparison, Difference, Row
from gmc_core.paper.published import PublishedResult, PublishedTable

# Which method of the comparison is which line of a table; "GM" is the paper's own.
METHODS = {
    "URP": "urp",
    "Attitude": "attitude",
    "MMMF": "mmmf",
    "IPCF": "ipcf",
    "E-MMMF": "e-mmmf",
    "GPLVM": "gplvm",
    "M³F": "m3f",
    "NBMC": "nbmc",
}
OWN = "GM"
REACH = 3

WITHIN, BETTER, WORSE = "within 3 SE", "better", "worse"


def verdict(printed: float, measured: float, se: float) -> str:
    """Whether a measured NMAE is within three standard errors of the printed one, better or worse.

    se : of the measured one, above 0 or NaN, with which nothing is within.
    """
    if abs(measured - printed) <= REACH * se:
        return WITHIN
    return BETTER if measured < printed else WORSE


@dataclass(frozen=True)
class SystemRow:
    """A line of a table under one protocol.

    published : the line as printed. printed : its NMAE, None where there is none.
    measured : what this machine has found, None where it was not asked for.
    verdict : of :func:`verdict`; "" where one of the two is missing or they do not compare.
    """

    published: PublishedResult
    printed: float | None
    measured: Row | None
    verdict: str

    @property
    def difference(self) -> Difference | None:
        """NMAE less the Gaussian's on the same ratings."""
        return None if self.measured is None else self.measured.nmae

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "method": self.published.method,
            "printed": self.printed,
            "measured": self.measured and self.measured.as_dict(),
            "verdict": self.verdict,
        }


def system_rows(
    table: PublishedTable, protocol: str, comparison: Comparison, own: str, comparable: bool
) -> list[SystemRow]:
    """The table's lines under a protocol, "weak" or "strong".

    own : name of the method that is the paper's. comparable : whether data and settings are the
        table's; otherwise there are no verdicts.
    """
    found: Mapping[str, Row] = {row.name: row for row in comparison.rows()}
    rows = []
    for line in table.results:
        printed = line.weak if protocol == "weak" else line.strong
        measured = found.get(own if line.method == OWN else METHODS[line.method])
        word = ""
        if comparable and printed is not None and measured is not None and measured.scores:
            word = verdict(printed, measured.scores.nmae, measured.scores.nmae_se)
        rows.append(SystemRow(line, printed, measured, word))
    return rows
