"""The imports go the way that the README's picture says."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORE = sorted((ROOT / "gmc_core").rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Names of all modules that a file imports, at any depth of its code."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def layer(path: Path) -> str:
    parts = path.relative_to(ROOT / "gmc_core").parts
    return parts[0].removesuffix(".py")


def test_the_core_is_found():
    assert len(CORE) > 30


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_core_imports_neither_streamlit_nor_the_dashboard(path):
    tops = {name.split(".")[0] for name in imported(path)}
    assert not tops & {"streamlit", "gmc_dashboard", "pages", "app", "altair"}


def test_importing_the_whole_core_loads_no_streamlit():
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in CORE
        if path.name not in ("__main__.py", "convert.py")
    ]
    code = (
        "import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name.removesuffix('.__init__'))\n"
        "assert 'streamlit' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


# Each layer may import only those named; errors and ratings are everybody's.
ALLOWED = {
    "errors": set(),
    "user_info": set(),
    "ratings": {"errors", "user_info"},
    "linalg": {"errors", "linalg"},
    "readers": {"errors", "ratings", "readers"},
    "filters": {"errors", "ratings"},
    "draws": {"errors"},
    "pairs": {"errors", "ratings"},
    "splits": {"errors", "ratings", "draws", "pairs"},
    "metrics": {"errors", "ratings"},
    "baselines": {"errors", "ratings", "splits", "metrics"},
    "signals": {"errors", "ratings"},
    "noise": {"errors"},
    "covariance": {"errors", "linalg"},
    "gaussian": {"covariance"},
    "covariates": {"errors", "gaussian", "linalg", "signals"},
    "attributes": {"errors", "ratings", "readers", "signals", "user_info"},
    "estep": {"errors", "linalg", "covariance", "covariates", "gaussian", "noise", "signals"},
    "mstep": {"errors", "linalg", "covariance", "gaussian", "signals", "estep"},
    "inverses": {
        "covariance", "covariates", "estep", "gaussian", "linalg", "noise", "ordinal", "signals",
    },
    "exact": {
        "errors", "linalg", "covariance", "covariates", "gaussian", "noise", "signals", "estep",
        "mstep", "em", "inverses", "ordinal",
    },
    "ordinal": {"errors", "linalg"},
    "em": {
        "errors", "linalg", "covariance", "gaussian", "noise", "signals", "estep", "mstep",
    },
}  # fmt: skip


ABOVE_THE_MODEL = {
    "cli", "store", "worker", "sweeps", "reproduction", "report_html", "claims", "__main__",
}  # fmt: skip


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(ROOT)))
def test_layers_import_only_what_lies_below(path):
    name = layer(path)
    used = {
        module.split(".")[1]
        for module in imported(path)
        if module.startswith("gmc_core.") and len(module.split(".")) > 1
    }
    if name in ALLOWED:
        assert used <= ALLOWED[name] | {name}
    elif name not in ABOVE_THE_MODEL:
        assert not used & {"cli", "store", "worker", "sweeps"}, "the model knows of no runs"


@pytest.mark.parametrize("path", sorted((ROOT / "pages").glob("*.py")), ids=lambda p: p.name)
def test_pages_compute_nothing(path):
    tops = {name.split(".")[0] for name in imported(path)}
    assert not tops & {"numpy", "scipy", "plotly", "altair", "numba"}


def test_no_file_is_too_long_to_read_in_one_sitting():
    files = [*CORE, *(ROOT / "gmc_dashboard").rglob("*.py"), *(ROOT / "pages").glob("*.py")]
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert {name: length for name, length in lengths.items() if length > 460} == {}


def test_no_pickle_eval_or_shell_in_the_product():
    for path in [*CORE, *(ROOT / "gmc_dashboard").rglob("*.py"), *(ROOT / "pages").glob("*.py")]:
        if path.name == "convert.py":
            continue  # reads the one source of the sample, run by hand
        text = path.read_text(encoding="utf-8")
        assert "import pickle" not in text
        assert "allow_pickle=True" not in text
        assert "shell=True" not in text
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), path


def test_what_the_command_line_repeats_to_start_quickly_equals_the_originals():
    from gmc_core.cli import arguments, runs
    from gmc_core.fitting import experiment
    from gmc_core.gaussian import settings, signals
    from gmc_core.runs.store import run

    assert runs.STATES == run.STATES
    # "pair" is what a data set with its own test file makes of the protocol.
    assert {*arguments.PROTOCOLS, "pair"} == set(experiment.PROTOCOLS)
    assert arguments.SIGNALS == signals.KINDS
    assert arguments.MODELS == settings.MODEL_KINDS


@pytest.mark.parametrize(("given", "expected"), [(None, "20"), ("26", "26")])
def test_blas_threads_do_not_spin_for_long_unless_asked_to(given, expected):
    """Read by OpenBLAS when NumPy loads it, so the package sets it before."""
    environment = {**os.environ, "OPENBLAS_THREAD_TIMEOUT": given or ""}
    if given is None:
        del environment["OPENBLAS_THREAD_TIMEOUT"]
    program = (
        "import sys, gmc_core, os; assert 'numpy' not in sys.modules; "
        "print(os.environ['OPENBLAS_THREAD_TIMEOUT'])"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected
