"""What a store has measured of the tables' systems; nothing is computed here.

Every comparison that is not the product of an import counts as far as it has come, whoever made it:
`gmc reproduce --systems`, the Results page, or a comparison of other methods with some of these
among them. What was computed by an earlier version of a system is left out, and so are other
filters and numbers of users than the paper's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gmc_core.base.errors import GmcError
from gmc_core.comparison.comparators import method_named
from gmc_core.comparison.comparators.gaussian import GaussianMethod
from gmc_core.comparison.comparators.method import Method
from gmc_core.comparison.compare import Comparison
from gmc_core.comparison.comparison_files import method_key
from gmc_core.comparison.systems import SYSTEMS
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.paper.published import PublishedTable
from gmc_core.paper.reproduction import has_paper_settings, table_for
from gmc_core.paper.systems import METHODS, OWN
from gmc_core.runs.comparisons import known_comparison
from gmc_core.runs.store import Run, Store

Data = Mapping[str, Any]


@dataclass(frozen=True)
class MeasuredSystems:
    """The systems under one protocol on one data set.

    data : of :func:`gmc_core.fitting.preparing.describe`. comparison : its reference is
        :data:`gmc_core.paper.systems.OWN`, the paper's MAP-EM, which may have no result; the others
        go by their names as methods. runs : ids of the comparisons that it is made of, the newest
        first.
    """

    data: Data
    comparison: Comparison
    runs: tuple[str, ...]

    def splits(self, name: str) -> int:
        """On how many splits there is a result of a method."""
        return sum(who == name for who, _ in self.comparison.outcomes)


def measured_systems(
    store: Store, runs: Iterable[Run], protocol: str, belongs: Callable[[Data], bool]
) -> MeasuredSystems | None:
    """All that is there of the paper's experiment on some data; None if that is nothing.

    runs : of the store, newest first. protocol : "weak" or "strong".
    belongs : whether a description of data is of those that are meant. Of several (copies that
        differ in a few ratings) the one with the most results is taken.
    """
    parts: dict[str, list[tuple[Run, Comparison]]] = defaultdict(list)
    for run in runs:
        if run.data is None or not belongs(run.data) or not _counts(run, protocol):
            continue
        found = known_comparison(store, run)
        if found is not None:
            parts[run.data["sha256"]].append((run, _current(store, run, found)))
    useful = {
        sha256: kept
        for sha256, pairs in parts.items()
        if (kept := [pair for pair in pairs if pair[1].outcomes])
    }
    if not useful:
        return None
    best = max(useful.values(), key=lambda pairs: len(_together(pairs).outcomes))
    data = best[0][0].data
    assert data is not None
    return MeasuredSystems(data, _together(best), tuple(run.id for run, _ in best))


def systems_under_way(runs: Iterable[Run], belongs: Callable[[Data], bool]) -> list[Run]:
    """Comparisons with systems of the tables that wait or run on these data.

    belongs : as of :func:`measured_systems`; a run that has not read its data yet counts.
    """
    return [
        run
        for run in runs
        if run.comparison is not None
        and run.state in ("queued", "running")
        and set(run.comparison.methods) & set(METHODS.values())
        and (run.data is None or belongs(run.data))
    ]


def of_table(table: PublishedTable) -> Callable[[Data], bool]:
    """Whether data are those of a table."""
    return lambda data: table_for(data) is table


def other_data(runs: Iterable[Run], most: int = 3) -> list[Data]:
    """Data sets on which systems were compared and that no table is of, newest first."""
    found: dict[str, Data] = {}
    for run in runs:
        if (
            run.comparison is not None
            and run.data is not None
            and set(run.comparison.methods) & set(METHODS.values())
            and table_for(run.data) is None
            and any(_counts(run, protocol) for protocol in ("weak", "strong"))
        ):
            found.setdefault(run.data["sha256"], run.data)
    return list(found.values())[:most]


def _counts(run: Run, protocol: str) -> bool:
    """Whether a comparison is of the paper's experiment under a protocol."""
    return (
        run.comparison is not None
        and run.data is not None
        and run.reusable
        and run.config.protocol == protocol
        and has_paper_settings(run.config, run.data)
    )


def _current(store: Store, run: Run, comparison: Comparison) -> Comparison:
    """The systems and the paper's own method, as they are in this version, each under one name."""
    plan = run.comparison
    assert plan is not None
    kept: dict[str, tuple[Method, str]] = {}
    for name in plan.methods:
        own = name.partition(":")[0] == "paper"
        if own or name in METHODS.values():
            try:
                method = method_named(name, comparison.scale)
            except GmcError:
                continue  # a setting of an earlier version
            if not own or _is_papers(method, run.config, run.data):
                kept[name] = method, OWN if own else name
    computed = {
        (cell.method, cell.split_key): cell.method_key
        for cell in store.cells(run.id)
        if cell.state == "done"
    }
    outcomes = {
        (kept[name][1], key): outcome
        for (name, key), outcome in comparison.outcomes.items()
        if name in kept
        and computed.get((name, key)) == method_key(kept[name][0], comparison.held_out[key])
    }
    return replace(comparison, labels=_labels(), reference=OWN, outcomes=outcomes, failures={})


def _is_papers(method: Method, config: ExperimentConfig, data: Data | None) -> bool:
    return (
        isinstance(method, GaussianMethod)
        and data is not None
        and has_paper_settings(replace(config, fit=method.settings), data)
    )


def _labels() -> dict[str, str]:
    shown = {system.name: system.label for system in SYSTEMS if system.name in METHODS.values()}
    return {OWN: "the paper's MAP-EM", **shown}


def _together(pairs: list[tuple[Run, Comparison]]) -> Comparison:
    """One comparison of several; what is there twice is taken of the newest.

    Only splits on which something was measured are kept, in the order of their seeds.
    """
    first = pairs[0][1]
    outcomes = {k: v for _, part in reversed(pairs) for k, v in part.outcomes.items()}
    measured = {key for _, key in outcomes}
    held = {k: v for _, part in pairs for k, v in part.held_out.items() if k in measured}
    order = sorted(held.items(), key=lambda item: (item[1].seed is None, item[1].seed or 0))
    return replace(first, held_out=dict(order), outcomes=outcomes)
