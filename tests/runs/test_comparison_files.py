"""Comparisons taken out of the store and into another one, and on the command line."""

from __future__ import annotations

import csv
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from compared_runs import NAMES, Counting, computed, home, submitted

from gmc_core.cli import main
from gmc_core.runs.comparisons import comparison_of
from gmc_core.runs.report_html import report
from gmc_core.runs.store import Store, StoreError
from gmc_core.runs.store.transfer import content_of, export, import_run
from gmc_core.runs.worker import work


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    return home(tmp_path, monkeypatch)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    return Counting(monkeypatch)


def test_exported_and_imported_it_is_the_same_and_still_answers(
    store: Store, tmp_path: Path
) -> None:
    run = computed(store)
    rows = [row.as_dict() for row in comparison_of(store, run).rows()]
    cells = store.cells(run.id)
    path = export(store, run.id, tmp_path / "c.zip")
    store.delete(run.id)
    back = import_run(store, path)
    assert (back.kind, back.state, back.reusable, back.key) == (
        "comparison",
        "finished",
        True,
        run.key,
    )
    assert [row.as_dict() for row in comparison_of(store, back).rows()] == rows
    assert store.cells(back.id) == cells
    assert [replace(c, began=0) for c in store.cells(back.id)][0].nmae == rows[0]["scores"][
        "nmae"
    ] or rows
    assert submitted(store).id == back.id
    other = Store(tmp_path / "other")
    foreign = import_run(other, path)
    assert not foreign.reusable and foreign.message == ""
    assert [row.as_dict() for row in comparison_of(other, foreign).rows()] == rows
    with zipfile.ZipFile(path) as archive:
        assert "gmc compare" in archive.read("repeat.txt").decode()


def test_without_its_predictions_it_answers_for_nothing(store: Store, tmp_path: Path) -> None:
    run = computed(store)
    back = import_run(store, export(store, run.id, tmp_path / "c.json"))
    assert not back.reusable and comparison_of(store, back) is None
    store.delete(run.id)
    assert submitted(store).id != back.id


def test_fits_of_a_foreign_comparison_are_computed_anew(
    store: Store, tmp_path: Path, counting: Counting
) -> None:
    path = export(store, computed(store).id, tmp_path / "c.zip")
    other = Store(tmp_path / "other")
    import_run(other, path)
    counting.fits.clear()
    submitted(other)
    work(other, idle_seconds=0, polite=False)
    assert len(counting.fits) == 6


def test_edited_figures_are_told(store: Store, tmp_path: Path) -> None:
    path = export(store, computed(store).id, tmp_path / "c.zip")
    edited = tmp_path / "e.zip"
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(edited, "w") as target:
        for member in archive.infolist():
            content = archive.read(member)
            if member.filename == "run.json":
                about = json.loads(content)
                about["summary"]["table"]["methods"][1]["scores"]["nmae"] = 0.1
                content = json.dumps(about).encode()
            target.writestr(member.filename, content)
    taken = import_run(store, edited)
    assert not taken.reusable
    assert "NMAE of Item mean is given as 0.1000" in taken.message


@pytest.mark.parametrize(
    "change",
    [
        {"cells": [{"split": 9, "method": "bias", "state": "done"}]},
        {"cells": [{"split": 0, "method": "other", "state": "done"}]},
        {"cells": [{"split": 0, "method": "bias", "state": "odd"}]},
        {"cells": [{"split": 0, "method": "bias", "state": "done", "nmae": "x"}]},
        {"cells": [{"split": 0.5, "method": "bias", "state": "done"}]},
        {"cells": [{"split": 0, "method": "bias", "state": "done", "split_key": 3}]},
        {"cells": "x"},
        {"comparison": {"methods": []}},
        {"comparison": 3},
    ],
)
def test_imports_that_make_no_sense_are_refused(store: Store, tmp_path: Path, change: dict) -> None:
    content = json.loads(json.dumps(content_of(store, submitted(store))))
    if "cells" in change:
        content |= change
    else:
        content["run"] |= change
    (tmp_path / "c.json").write_text(json.dumps(content))
    with pytest.raises(StoreError, match="damaged or is no exported run"):
        import_run(store, tmp_path / "c.json")


def test_table_and_report(store: Store, tmp_path: Path) -> None:
    run = computed(store)
    lines = list(csv.DictReader(export(store, run.id, tmp_path / "c.csv").open()))
    assert [line["name"] for line in lines] == list(NAMES)
    assert float(lines[0]["nmae"]) == comparison_of(store, run).rows()[0].scores.nmae
    assert lines[0]["nmae_difference"] == ""
    text = report(store, run.id)
    assert "Item mean" in text and "over splits" in text and "gmc compare" in text
    assert "<th>methods</th><td>bias, item, user</td>" in text
    with pytest.raises(StoreError, match="no model"):
        export(store, run.id, tmp_path / "c.npz")


def test_the_command_lists_shows_compares_and_imports(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    run = computed(store)
    assert main(["runs", "list"]) == 0
    assert "6/6 fits" in capsys.readouterr().out
    assert main(["runs", "show", run.id]) == 0
    out = capsys.readouterr().out
    assert "Item mean" in out and "methods bias, item, user" in out and "table" not in out
    assert main(["runs", "compare", run.id, submitted(store, "bias").id]) == 0
    assert "methods" in capsys.readouterr().out
    assert main(["runs", "export", run.id, str(tmp_path)]) == 2
    assert "is a folder; give the name of a file" in capsys.readouterr().err
    assert main(["runs", "export", run.id, str(tmp_path / "c.json")]) == 0
    assert main(["runs", "import", str(tmp_path / "c.json")]) == 0
    assert "imported Comparison of 3 methods" in capsys.readouterr().err
