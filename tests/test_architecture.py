"""The imports go the way that the README's picture says."""

from __future__ import annotations

import ast
import os
import re
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


# The way of a rating, as in the README's picture: a room imports itself and those before it.
ROOMS = (
    "base",  # errors, files, version
    "data",  # a file → Ratings
    "protocol",  # Ratings → Split
    "gaussian",  # (μ, Σ) and the algorithm
    "model",  # what is fitted: predict, recommend, explain, save
    "fitting",  # one fit, experiments, their cost
    "tables",  # any quantities
    "comparison",  # other methods on the same splits
    "runs",  # store, worker, sweeps
    "paper",  # its tables and claims
    "doctor",  # what this machine has, with remedies
    "cli",
)
ON_TOP = ("lesson", "former", "__main__", "__init__")

# Inside the algorithm's room the steps are in order too; what a file may import of it.
ALGORITHM = {
    "linalg": {"linalg"},
    "signals": set(),
    "noise": set(),
    "covariance": {"linalg"},
    "parameters": {"covariance"},
    "covariates": {"parameters", "linalg", "signals"},
    "attributes": {"signals"},
    "estep": {"linalg", "covariance", "covariates", "parameters", "noise", "signals"},
    "mstep": {"linalg", "covariance", "parameters", "signals", "estep"},
    "iterate": {"linalg", "covariance", "parameters"},
    "objective": {"linalg", "covariance", "parameters", "noise", "signals", "estep"},
    "em": {
        "linalg", "covariance", "parameters", "noise", "signals", "estep", "mstep", "iterate",
        "objective",
    },
    "inverses": {
        "covariance", "covariates", "estep", "parameters", "linalg", "noise", "ordinal", "signals",
    },
    "ordinal": {"linalg"},
    "exact": {
        "linalg", "covariance", "covariates", "parameters", "noise", "signals", "estep", "mstep",
        "iterate", "inverses", "ordinal",
    },
    "lowrank": {"linalg", "signals", "estep"},
    "two_sided": {
        "linalg", "noise", "signals", "estep", "exact", "iterate", "lowrank",
    },
}  # fmt: skip


def modules() -> dict[str, Path]:
    """All modules of the core and of the dashboard's package, by dotted name."""
    files = [*CORE, *(ROOT / "gmc_dashboard").rglob("*.py")]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files]
    return {name.removesuffix(".__init__"): path for name, path in zip(names, files, strict=True)}


def targets(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules among ``known`` that a file imports, for types and inside functions too."""
    found: set[str] = set()
    for name in imported(path):
        if name in known:
            # A name taken from a package is one of its modules, or what its __init__ offers.
            found.add(name)
    return {name for name in found if not any(other.startswith(f"{name}.") for other in found)}


def rooms_of(names: set[str]) -> set[str]:
    return {name.split(".")[1] for name in names if name.startswith("gmc_core.")}


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_only_those_before_it(path):
    room = path.relative_to(ROOT / "gmc_core").parts[0].removesuffix(".py")
    if room in ON_TOP:
        return
    # Former names belong to no room.
    assert rooms_of(imported(path)) - {"former"} <= set(ROOMS[: ROOMS.index(room) + 1])


def test_every_folder_of_the_core_is_a_room():
    folders = {
        path.name for path in (ROOT / "gmc_core").iterdir() if (path / "__init__.py").exists()
    }
    assert folders == set(ROOMS)


@pytest.mark.parametrize(("name", "allowed"), ALGORITHM.items(), ids=list(ALGORITHM))
def test_the_algorithm_is_in_order(name, allowed):
    place = ROOT / "gmc_core" / "gaussian" / name
    files = place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]
    prefix = "gmc_core.gaussian."
    for path in files:
        used = {one.split(".")[2] for one in imported(path) if one.startswith(prefix)}
        assert used <= allowed | {name}


def test_no_modules_import_each_other_in_a_circle():
    known = modules()
    graph = {name: targets(path, known) - {name} for name, path in known.items()}
    while True:
        free = [name for name, used in graph.items() if not used & graph.keys()]
        if not free:
            break
        for name in free:
            del graph[name]
    while True:  # what only imports one of them is not meant
        meant = set().union(*graph.values()) if graph else set()
        if not graph.keys() - meant:
            break
        graph = {name: used for name, used in graph.items() if name in meant}
    assert graph == {}, "each of these imports another one of them"


@pytest.mark.parametrize("path", sorted((ROOT / "pages").glob("*.py")), ids=lambda p: p.name)
def test_pages_compute_nothing(path):
    tops = {name.split(".")[0] for name in imported(path)}
    assert not tops & {"numpy", "scipy", "plotly", "altair", "numba"}


def test_no_file_is_too_long_to_read_in_one_sitting():
    files = [*CORE, *(ROOT / "gmc_dashboard").rglob("*.py"), *(ROOT / "pages").glob("*.py")]
    lengths = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
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


def test_the_hash_of_a_file_is_written_once():
    again = re.compile(r"sha256\([^\n]*\.read_bytes\(\)|file_digest\([^\n]*sha256")
    found = [str(path.relative_to(ROOT)) for path in CORE if again.search(path.read_text("utf-8"))]
    assert found == [], "use gmc_core.data.hashes.file_sha256"


def test_what_the_command_line_repeats_to_start_quickly_equals_the_originals():
    from gmc_core.cli import runs
    from gmc_core.gaussian import settings, signals
    from gmc_core.runs.store import run

    assert runs.STATES == run.STATES
    assert settings.settings_of_a_fit()["signals"].kind.choices == signals.KINDS


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
