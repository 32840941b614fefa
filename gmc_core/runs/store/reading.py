"""Looking at runs, their records and their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmc_core.fitting.fit import IterationRecord
from gmc_core.runs.store import artifacts
from gmc_core.runs.store.cells import Cell
from gmc_core.runs.store.database import Database
from gmc_core.runs.store.errors import StoreError, explained
from gmc_core.runs.store.run import Run, run_of
from gmc_core.runs.store.waiting import (
    Waiting,
    is_late,
    remaining,
    remaining_of_comparison,
    remaining_of_sweep,
    spent_in_iteration,
)

if TYPE_CHECKING:
    from gmc_core.model.gaussian_model import GaussianModel
    from gmc_core.model.pictures import Picture


class Reading(Database):
    """The part of a store that changes nothing."""

    def runs(
        self, *, state: str | None = None, parent: str | None = None, text: str = ""
    ) -> list[Run]:
        """Runs and sweeps, newest first; the children of ``parent`` if it is given.

        state : only these. text : only those whose id, label, note, data or settings
        contain it, without regard to case.
        """
        self.notice_dead()
        found = self._runs("parent IS ?", parent)
        wanted = text.casefold()
        return [
            run
            for run in found
            if (state is None or run.state == state)
            and (not wanted or wanted in _text_of(run).casefold())
        ]

    def run(self, id: str) -> Run:
        """One run.

        Raises
        ------
        StoreError
            If there is none with this id.
        """
        self.notice_dead()
        found = self._runs("id = ?", id)
        if not found:
            raise StoreError(
                f"There is no run {id!r}; it may have been deleted. See the list of runs."
            )
        return found[0]

    def find(self, text: str) -> Run:
        """The run whose id begins with ``text``, or whose label is ``text``."""
        rows = self.rows(
            "SELECT id FROM runs WHERE substr(id, 1, ?) = ? OR label = ? ORDER BY id = ? DESC",
            len(text), text, text, text,
        )  # fmt: skip
        if len(rows) > 1 and rows[0]["id"] != text:
            names = ", ".join(row["id"] for row in rows[:5])
            raise StoreError(f"Several runs are called {text!r} ({names}); give more of the id.")
        return self.run(rows[0]["id"] if rows and text else text)

    def _runs(self, where: str, *values: Any) -> list[Run]:
        rows = self.rows(f"SELECT * FROM runs WHERE {where} ORDER BY number DESC", *values)
        if not any(row["kind"] == "sweep" for row in rows):
            return [run_of(row, {}, row["disk"]) for row in rows]
        counts: dict[str, dict[str, int]] = {}
        disk: dict[str, int] = {}
        for row in self.rows(
            "SELECT parent, state, count(*) AS n, sum(disk) AS disk FROM runs "
            "WHERE parent IS NOT NULL GROUP BY parent, state"
        ):
            counts.setdefault(row["parent"], {})[row["state"]] = row["n"]
            disk[row["parent"]] = disk.get(row["parent"], 0) + row["disk"]
        return [
            run_of(row, counts.get(row["id"], {}), row["disk"] + disk.get(row["id"], 0))
            for row in rows
        ]

    def records(self, id: str) -> list[tuple[int, IterationRecord]]:
        """(repetition, record) of every finished iteration so far, in order."""
        rows = self.rows(
            "SELECT repetition, record FROM records WHERE run = ? ORDER BY repetition, iteration",
            id,
        )
        return [
            (row["repetition"], IterationRecord.from_dict(json.loads(row["record"])))
            for row in rows
        ]

    def children_records(self, id: str) -> dict[str, list[tuple[int, IterationRecord]]]:
        """The records of all children of a sweep, by the child's id."""
        found: dict[str, list[tuple[int, IterationRecord]]] = {}
        for row in self.rows(
            "SELECT run, repetition, record FROM records WHERE run IN "
            "(SELECT id FROM runs WHERE parent = ?) ORDER BY run, repetition, iteration",
            id,
        ):
            record = IterationRecord.from_dict(json.loads(row["record"]))
            found.setdefault(row["run"], []).append((row["repetition"], record))
        return found

    def remaining_seconds(self, id: str) -> float | None:
        """Estimated time to the end of a run or sweep that is queued or running, None if unknown.

        A queued one's own time, without its :meth:`waiting`.
        """
        run = self.run(id)
        if run.ended_for_good:
            return None
        if run.kind == "sweep":
            records = {
                child: [record for _, record in own]
                for child, own in self.children_records(id).items()
            }
            return remaining_of_sweep(self.runs(parent=id), records)
        if run.comparison is not None:
            return remaining_of_comparison(run.comparison, self.cells(id))
        return remaining(run, [record for _, record in self.records(id)])

    def waiting(self, id: str) -> Waiting:
        """What a queued run waits behind: the runs that the worker takes before it."""
        rows = self.rows(
            "SELECT id FROM runs WHERE kind != 'sweep' AND (state = 'running' OR (state = 'queued' "
            "AND number < (SELECT min(number) FROM runs WHERE kind != 'sweep' AND id = ? OR parent "
            "= ?))) AND id != ? AND parent IS NOT ? ORDER BY state = 'queued', number",
            id, id, id, id,
        )  # fmt: skip
        ahead = tuple(self.run(row["id"]) for row in rows)
        parts = [self.remaining_seconds(run.id) for run in ahead]
        known = [part for part in parts if part is not None]
        late, spent = False, 0.0
        for run in ahead[:1]:  # the one that is being computed, if any is
            late = is_late(run, [record for _, record in self.records(run.id)])
            spent = (spent_in_iteration(run) or 0.0) if run.comparison is None else 0.0
        seconds = max(sum(known) - spent, 0.0) if len(known) == len(parts) else None
        return Waiting(ahead, None if late else seconds, late)

    def results(self, id: str) -> list[dict[str, Any]]:
        """The finished repetitions, as :meth:`gmc_core.fitting.repetition.Repetition.as_dict`."""
        rows = self.rows("SELECT result FROM repetitions WHERE run = ? ORDER BY repetition", id)
        return [json.loads(row["result"]) for row in rows]

    def cells(self, id: str) -> list[Cell]:
        """The fits of a comparison that have begun, by split and then as they were computed."""
        rows = self.rows("SELECT record FROM cells WHERE run = ? ORDER BY split", id)
        cells = [Cell.from_dict(json.loads(row["record"])) for row in rows]
        return sorted(cells, key=lambda cell: (cell.split, cell.began))

    def messages(self, id: str | None = None) -> list[tuple[float, str, str]]:
        """(time, level, text) of a run's messages; of the store's own without an id."""
        rows = self.rows(
            "SELECT time, level, text FROM messages WHERE run IS ? ORDER BY number", id
        )
        return [(row["time"], row["level"], row["text"]) for row in rows]

    # Artifacts ------------------------------------------------------------------

    def folder(self, id: str) -> Path:
        """Where the artifacts of a run are; it may not exist."""
        if not id.isalnum():
            raise StoreError(f"{id!r} is not the id of a run.")
        return self.path / "runs" / id

    def model_path(self, id: str) -> Path | None:
        """The saved model of the last finished iteration reached, None if there is none."""
        path = self.folder(id) / artifacts.MODEL
        return path if path.is_file() else None

    def model(self, id: str) -> GaussianModel:
        """The saved model; each call loads it anew (keep it).

        Raises
        ------
        StoreError
            If the run has none.
        """
        from gmc_core.model.model_file import load_model

        run, path = self.run(id), self.model_path(id)
        if path is None:
            why = f"is {run.state} and has no model yet" if run.keeps_model else "keeps no model"
            raise StoreError(f"Run {id} {why}; run it again, keeping its model.")
        return load_model(path)

    def pictures(self, id: str) -> list[tuple[int, int]]:
        """(repetition, iteration) of the pictures that are there, in order."""
        return artifacts.picture_index(self.folder(id))

    def picture(self, id: str, iteration: int, repetition: int | None = None) -> Picture | None:
        """The :class:`gmc_core.model.pictures.Picture` of an iteration, None if there is none.

        repetition : default the last that has one.
        """
        from gmc_core.model.pictures import Picture

        found = [r for r, t in self.pictures(id) if t == iteration]
        if repetition is None and found:
            repetition = found[-1]
        if repetition not in found:
            return None
        with explained(self.path):
            return Picture.load(artifacts.picture_path(self.folder(id), repetition, iteration))

    def held_out(self, id: str, repetition: int = 0) -> artifacts.HeldOut | None:
        """Held-out ratings and their predictions of a finished repetition."""
        return artifacts.load_held_out(self.folder(id), repetition)


def _text_of(run: Run) -> str:
    data = (run.data or {}).get("name", "")
    return " ".join([run.id, run.title, run.note, data, json.dumps(run.config.as_dict())])
