"""The notebooks run as they stand, and what they show is stored for the site."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def cells(name: str) -> list[dict[str, Any]]:
    """The cells of code."""
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def execute(name: str) -> tuple[dict[str, Any], list[Any]]:
    """Run the cells in this process: the names that they leave, and what each would show."""
    names: dict[str, Any] = {}
    shown = []
    for number, cell in enumerate(cells(name)):
        where = f"{name}.ipynb, cell {number + 1}"
        tree = ast.parse("".join(cell["source"]), where)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, where, "exec"), names)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
        shown.append(value)
    return names, shown


@pytest.fixture
def _pictures(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib", reason="the pictures need matplotlib")
    matplotlib.use("agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def test_there_are_four():
    assert NAMES == ["explained", "fit", "sensitivity", "table"]


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_stored_and_without_errors(name):
    for cell in cells(name):
        assert [o for o in cell["outputs"] if o["output_type"] == "error"] == []
    assert sum(bool(cell["outputs"]) for cell in cells(name)) >= 3


@pytest.mark.usefixtures("_pictures")
def test_fit():
    names, shown = execute("fit")
    assert names["curve"] == [record.nmae for record in names["fitted"].history]
    assert names["curve"][-1] < names["means"]["item mean"]
    assert "<svg" in shown[2]._repr_html_() and "<td>epsilon</td>" in shown[2]._repr_html_()
    at, best = shown[3]
    assert at == best["at"] + 3


@pytest.mark.usefixtures("_pictures")
def test_sensitivity():
    names, _ = execute("sensitivity")
    errors = names["errors"]
    assert 0.03 < names["best"] < 3
    assert errors[0.03].mean() > errors[names["best"]].mean()


def test_table():
    names, _ = execute("table")
    assert 0.93 < names["inside"].mean() < 0.98
    truth, variance = names["slope"](names["tables"]["without blanks"])
    assert names["low"] < truth < names["high"]
    assert names["pooled"].sd > variance**0.5  # the blanks cost something


def test_explained():
    names, shown = execute("explained")
    assert names["why"].total == pytest.approx(names["found"][0].predicted)
    assert "Gaussian over 300 coordinates" in shown[0]._repr_html_()
    first, explained = names["found"][0].title, shown[3]._repr_html_()
    assert f"together: {first}" in explained
