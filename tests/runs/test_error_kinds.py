"""What a program decides by is an error's class and kind, never the words of its message."""

from __future__ import annotations

import ast
import json
import sqlite3
from pathlib import Path

import pytest
from store_workers import small
from stored_runs import opened, use_folders

from gmc_core.base import errors
from gmc_core.base.errors import GmcError, NotPositiveDefiniteError
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.gaussian.settings import FitSettings
from gmc_core.paper.claims.check import _goes_on, _measured
from gmc_core.protocol.filters import Filter
from gmc_core.runs.store import Store, schema
from gmc_core.runs.store.transfer import export, import_run
from gmc_core.runs.worker import work

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    ROOT / "app.py",
    *(
        path
        for part in ("gmc_core", "gmc_dashboard", "pages")
        for path in (ROOT / part).rglob("*.py")
    ),
]
MESSAGES = {"message", "args", "problem", "failure", "failures", "notes", "strerror"}
READERS = {
    "startswith", "endswith", "find", "rfind", "index", "count", "partition", "rpartition",
    "removeprefix", "removesuffix", "match", "search", "fullmatch", "findall", "finditer",
}  # fmt: skip


class Words(ast.NodeVisitor):
    """The lines of one function, or of a module outside its functions, that read messages."""

    def __init__(self, caught: frozenset[str] = frozenset()) -> None:
        self.errors, self.words, self.found = set(caught), set[str](), list[int]()

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.errors.add(node.name)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        inner = Words(frozenset(self.errors))
        for argument in (*node.args.args, *node.args.kwonlyargs):
            kind = ast.unparse(argument.annotation) if argument.annotation else ""
            if argument.arg in ("error", "exception") or "Error" in kind or "Exception" in kind:
                inner.errors.add(argument.arg)
        for part in node.body:
            inner.visit(part)
        self.found += inner.found

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Assign(self, node: ast.Assign) -> None:
        if self.is_message(node.value):
            self.words |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        by_words = any(isinstance(op, (ast.In, ast.NotIn, ast.Eq, ast.NotEq)) for op in node.ops)
        if by_words and any(map(self.is_message, sides)) and not any(map(is_empty, sides)):
            self.found.append(node.lineno)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr in READERS:
            self.found += [node.lineno] * any(map(self.is_message, (called.value, *node.args)))
        self.generic_visit(node)

    def is_message(self, node: ast.AST) -> bool:
        """Whether an expression is the text of an error, or made from it."""
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and part.attr in MESSAGES:
                of = part.value.id if isinstance(part.value, ast.Name) else ""
                if part.attr == "message" or of in self.errors:
                    return True
            if isinstance(part, ast.Name) and part.id in self.words:
                return True
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
                named = [arg.id for arg in part.args if isinstance(arg, ast.Name)]
                if part.func.id in ("str", "repr", "brief") and set(named) & self.errors:
                    return True
        return False


def is_empty(node: ast.AST) -> bool:
    """The empty text: whether there is a message is no question of its words."""
    return isinstance(node, ast.Constant) and node.value == ""


def lines_that_read_messages(source: str) -> list[int]:
    words = Words()
    words.visit(ast.parse(source))
    return sorted(set(words.found))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_decides_by_the_words_of_a_message(path: Path) -> None:
    assert lines_that_read_messages(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "decision",
    [
        "return run.state in STATES and 'positive definite' not in run.message",
        "at = re.search(r'Iteration (\\d+)', found.message)",
        "try: f()\n    except ValueError as problem:\n        text = str(problem)\n"
        "        if 'hash' in text.lower(): return 1",
        "try: f()\n    except OSError as e:\n        return str(e).startswith('No')",
        "if error.args[0] == 'disk full': return 2",
        "said = run.message.casefold()\n    return said.endswith('again.')",
        "return 'Cancelled.' == run.message",
    ],
)
def test_the_search_for_such_decisions_finds_them(decision: str) -> None:
    assert lines_that_read_messages(f"def decide(run, found, error):\n    {decision}\n")


def test_showing_a_message_is_none() -> None:
    shown = (
        "def show(run, error):\n    if run.message != '':\n        print(run.message, str(error))\n"
    )
    assert lines_that_read_messages(shown) == []


# Kinds ---------------------------------------------------------------------------------------


def all_errors(of: type[GmcError] = GmcError) -> set[type[GmcError]]:
    found = {of}
    for below in of.__subclasses__():
        found |= all_errors(below)
    return found


def test_kinds_of_the_core_stay_as_they_were_released() -> None:
    kinds = {error.kind for error in all_errors() if error.__module__ == errors.__name__}
    assert kinds == {
        "error", "data", "settings", "numerical", "not-positive-definite", "not-finite", "memory",
        "download", "model-file", "unknown-id", "cluster",
    }  # fmt: skip
    assert errors.BREAKDOWNS == {"numerical", "not-positive-definite", "not-finite"}


def test_an_iterations_error_keeps_its_class() -> None:
    error = NotPositiveDefiniteError("Σ is singular.").during("Iteration 3", 3)
    assert type(error) is NotPositiveDefiniteError
    assert (str(error), error.iteration) == ("Iteration 3: Σ is singular.", 3)


# A breakdown, from the worker to the page ----------------------------------------------------


BREAKING = ExperimentConfig(
    filter=Filter(max_items=60), fit=FitSettings(epsilon=0.0, iterations=40, objective=True)
)


@pytest.fixture
def broken(tmp_path, monkeypatch):
    use_folders(tmp_path, monkeypatch)
    # Other words say the same: only the kind counts.
    monkeypatch.setattr(NotPositiveDefiniteError, "__str__", lambda self: "It went awry.")
    store = Store()
    run = store.submit(BREAKING)
    work(store, idle_seconds=0, polite=False)
    return store, store.run(run.id)


def test_a_breakdown_gives_its_kind_from_the_worker_to_the_page(broken, tmp_path) -> None:
    store, run = broken
    assert run.state == "failed"
    assert run.error_kind == "not-positive-definite"
    assert run.error_iteration is not None
    assert run.error_iteration >= 1
    assert "awry" in run.message
    assert run.broke_down
    assert not _goes_on(run)
    measured = _measured(store, run, run.data_sha256)
    assert measured.broke_down
    assert measured.error_iteration == run.error_iteration
    export(store, run.id, tmp_path / "run.zip")
    export(store, run.id, tmp_path / "run.html")
    kind = f"not-positive-definite, iteration {run.error_iteration}"
    assert kind in (tmp_path / "run.html").read_text()
    taken = import_run(Store(tmp_path / "other"), tmp_path / "run.zip")
    assert (taken.error_kind, taken.error_iteration) == (run.error_kind, run.error_iteration)
    at = opened("fit", run=run.id)
    assert "it would break down again" in at.error[0].value
    resumed = store.resume(run.id)
    assert (resumed.error_kind, resumed.error_iteration, resumed.broke_down) == (None, None, False)


def test_a_run_that_failed_otherwise_may_be_resumed(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("GMC_MEMORY_LIMIT", "0.0001")
    store = Store(tmp_path)
    run = store.submit(small())
    work(store, idle_seconds=0, polite=False)
    run = store.run(run.id)
    assert (run.state, run.error_kind, run.error_iteration) == ("failed", "memory", None)
    assert _goes_on(run)


def test_json_of_a_fit_that_broke_down_has_the_kind(tmp_path, capsys) -> None:
    from gmc_core.cli import main

    out = tmp_path / "out.json"
    code = main(
        ["fit", "--max-items=60", "--epsilon=0", "--iterations=40", "--objective", f"--json={out}"]
    )
    assert code != 0
    found = json.loads(out.read_text())
    assert found["error_kind"] == "not-positive-definite"
    assert found["error_iteration"] >= 1


# Older databases -------------------------------------------------------------------------


def test_an_old_database_keeps_its_breakdowns_as_results(tmp_path) -> None:
    old = sqlite3.connect(tmp_path / "runs.db")
    for statement in schema.MIGRATIONS[0].split(";"):
        old.execute(statement)
    old.execute("PRAGMA user_version = 1")
    config = json.dumps(ExperimentConfig().as_dict())
    rows = {
        "a": ("failed", "Iteration 12: The covariance is not positive definite in float64."),
        "b": ("failed", "Predictions of iteration 3: a matrix is not positive definite."),
        "c": ("failed", "The disk is full."),
        "d": ("finished", ""),
        "e": ("interrupted", "Iteration 1: positive definite."),
    }
    old.executemany(
        "INSERT INTO runs (id, kind, state, message, config, request, created, version) "
        "VALUES (?, 'run', ?, ?, ?, '', 0, '')",
        [(id, *row, config) for id, row in rows.items()],
    )
    old.commit()
    old.close()
    store = Store(tmp_path)
    found = {run.id: (run.error_kind, run.error_iteration) for run in store.runs()}
    assert found == {
        "a": ("not-positive-definite", 12),
        "b": ("not-positive-definite", None),
        "c": (None, None),
        "d": (None, None),
        "e": (None, None),
    }
    assert [run.id for run in store.runs() if _goes_on(run)] == ["e", "c"]
    assert all(run.reusable for run in store.runs())
