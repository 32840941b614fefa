"""Files in people's habits, read back and compared with what was written into them."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import known_files
import numpy as np
import pytest
from fuzzing import FILES, tried
from known_files import HABITS

from gmc_core.data.readers import load
from gmc_core.tables import table_notes
from gmc_core.tables.wide_reader import read_table


def wrong_ratings(path: Path, made: known_files.Ratings) -> str | None:
    """What a load does not answer for, None if all is right."""
    path.write_bytes(made.data)
    loaded = tried(load, path, path=path)
    if loaded is None:
        return None if made.refusable else "refused"
    found = loaded.ratings
    users = [str(value) for value in found.users.ids[found.rows].tolist()]
    items = [str(value) for value in found.items.ids[found.indices].tolist()]
    read = dict(zip(zip(users, items, strict=True), found.values.tolist(), strict=True))
    expected = made.records
    if set(made.habits) & {"quote within a cell", "quote that never closes"}:
        # The quote belongs to one user's id, or to none; no rating is lost with it.
        expected = Counter((item, value) for (_, item), value in expected.items())
        read = Counter((item, value) for (_, item), value in read.items())
    if read != expected:
        return f"{len(read)} ratings of {len(expected)}, or other values"
    if loaded.report.rows_read != len(made.records):
        return f"{loaded.report.rows_read} rows of {len(made.records)}"
    return None


def wrong_table(path: Path, made: known_files.Quantities) -> str | None:
    """The same of a table of quantities."""
    path.write_bytes(made.data)
    table = tried(read_table, path, path=path)
    if table is None:
        return None if made.refusable else "refused"
    expected = made.values
    if "total below" in made.habits:
        total = [np.nan] * (expected.shape[1] - 1) + [12.5]
        expected = np.vstack([expected, total])
        if not any("Total" in note for note in table.notes):
            return "a total that is not pointed out"
    if table.values.shape != expected.shape:
        return f"{table.values.shape} instead of {expected.shape}"
    return None if np.array_equal(table.values, expected, equal_nan=True) else "other values"


KINDS = {
    "ratings": (known_files.ratings, wrong_ratings),
    "table": (known_files.quantities, wrong_table),
}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_files_in_people_s_habits_are_read_as_written_or_refused(tmp_path, kind):
    make, wrong = KINDS[kind]
    tried_habits: Counter[str] = Counter()
    for seed in range(FILES["known"] // 2):
        made = make(random.Random(f"known {kind} {seed}"))
        tried_habits.update(made.habits)
        path = tmp_path / f"{seed}.csv"
        problem = wrong(path, made)
        assert problem is None, (problem, seed, made.habits, made.data[:300])
    assert len(tried_habits) >= len(HABITS) - 4


def test_the_oracle_sees_a_lost_row_and_a_changed_value(tmp_path, monkeypatch):
    made = known_files.ratings(random.Random(1), ())
    assert wrong_ratings(tmp_path / "a.csv", made) is None
    lines = made.data.split(b"\n")
    fewer = known_files.Ratings(b"\n".join(lines[:-3] + lines[-2:]), (), made.records)
    assert "ratings of" in (wrong_ratings(tmp_path / "a.csv", fewer) or "")
    table = known_files.quantities(random.Random(1), ())
    assert wrong_table(tmp_path / "a.csv", table) is None
    moved = known_files.Quantities(table.data, (), table.values + 1e-9)
    assert wrong_table(tmp_path / "a.csv", moved) == "other values"
    # A total is kept as a row, as nothing is dropped in silence, and pointed out.
    total = known_files.quantities(random.Random(1), ("total below",))
    assert wrong_table(tmp_path / "a.csv", total) is None
    monkeypatch.setattr(table_notes, "is_summary", lambda label: False)
    assert wrong_table(tmp_path / "a.csv", total) == "a total that is not pointed out"
