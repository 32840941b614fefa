"""Which of the paper's tables a run can be held against, and which runs reproduce it.

Data are recognised by their numbers after the filter, not by their name: a table is
comparable if users, items and the rating scale are the paper's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.gaussian.settings import FitSettings
from gmc_core.paper.published import TABLES, ComparisonRow, PublishedTable, compare
from gmc_core.protocol.filters import Filter
from gmc_core.protocol.metrics import Scores
from gmc_core.runs.store import Run

TableProtocol = Literal["weak", "strong"]

REPETITIONS = 3

# EachMovie was published in more than one state; 1 % leaves room for that.
_TOLERANCE = 0.01


def table_for(data: Mapping[str, Any] | None) -> PublishedTable | None:
    """The paper's table for data, by their description; None if no table fits.

    data : of :func:`gmc_core.fitting.preparing.describe`: filtered ``users`` and ``items``,
        and ``scale`` (low, high, step).
    """
    if data is None:
        return None
    low, high, step = data["scale"]
    for table in TABLES.values():
        wanted = table.settings
        if (low, high, step) == (wanted.low, wanted.high, 1) and all(
            abs(data[name] / expected - 1) <= _TOLERANCE
            for name, expected in (("users", wanted.users), ("items", wanted.items))
        ):
            return table
    return None


def paper_nmae(table: PublishedTable, protocol: str) -> float | None:
    """The NMAE that the paper reports for its own method."""
    proposed = table.results[-1]
    return {"weak": proposed.weak, "strong": proposed.strong}.get(protocol)


def has_paper_settings(config: ExperimentConfig, data: Mapping[str, Any]) -> bool:
    """Whether filter, protocol and fit are the paper's.

    Precision does not count, nor whether the MAP objective was computed, nor the
    number of repetitions.
    """
    scale = RatingScale(*data["scale"])
    plain = replace(config.fit, dtype="float64", objective=False)
    # The block size has a meaning for blocks only, and rows are the paper's.
    plain = replace(plain, block=FitSettings().block) if plain.signals == "rows" else plain
    return (
        config.protocol in ("weak", "strong")
        and config.filter == Filter()
        and config.weak_users is None
        and config.strong_users is None
        and plain.resolved(scale) == FitSettings().resolved(scale)
    )


def reproducing_run(
    runs: Iterable[Run], table: PublishedTable, protocol: TableProtocol
) -> Run | None:
    """The finished run that reproduces a column of a table best.

    With the paper's settings on the table's data; the one with the most repetitions,
    in float64 before float32, the newest of equals.
    """
    matching = [
        run
        for run in runs
        if run.kind == "run"
        and run.state == "finished"
        and run.data is not None
        and run.summary is not None
        and run.summary.get("nmae") is not None
        and run.config.protocol == protocol
        and table_for(run.data) is table
        and has_paper_settings(run.config, run.data)
    ]
    return max(
        matching,
        key=lambda run: (run.repetitions, run.config.fit.dtype == "float64", run.created),
        default=None,
    )


@dataclass(frozen=True)
class Reproduction:
    """A table with the runs that reproduce its two columns, as far as there are any."""

    table: PublishedTable
    weak: Run | None
    strong: Run | None

    @property
    def rows(self) -> list[ComparisonRow]:
        """The table's lines, and the measured one if there is one."""
        return compare(self.table, _scores(self.weak), _scores(self.strong))

    def paper(self, protocol: TableProtocol) -> float:
        """The paper's own figure."""
        value = paper_nmae(self.table, protocol)
        assert value is not None
        return value


def reproduction(runs: Iterable[Run], table: PublishedTable) -> Reproduction:
    """A table with the best reproducing runs among ``runs``."""
    known = list(runs)
    return Reproduction(
        table,
        reproducing_run(known, table, "weak"),
        reproducing_run(known, table, "strong"),
    )


def _scores(run: Run | None) -> Scores | None:
    if run is None or run.summary is None:
        return None
    return Scores(**{field.name: run.summary[field.name] for field in fields(Scores)})
