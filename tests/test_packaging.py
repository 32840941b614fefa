"""What is given away: the archives, their metadata, the extras, and the names for programs."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import tomllib
import zipfile

import pytest
from building import ROOT, build, environment_with, unpacked, without_checkout
from commands import write_ratings
from packaging.requirements import Requirement
from packaging.version import Version

import gmc_core
from gmc_core import former
from gmc_core.base.errors import MissingPackageError
from gmc_core.base.extras import DISTRIBUTION, EXTRAS, require
from gmc_core.base.version import VERSION
from gmc_core.doctor.installed import CORE
from tests.tools.lowest import lowest

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRA = PROJECT["optional-dependencies"]
SOURCES = ("app.py", "pages", ".streamlit", "gmc_core", "gmc_dashboard")


def names_of(lines) -> set[str]:
    """The distributions that requirements name, this one left out."""
    return {Requirement(line).name for line in lines} - {DISTRIBUTION}


def listed(name: str) -> set[str]:
    """The requirements of a file, comments taken off."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    plain = (line.split("#")[0].strip() for line in lines)
    return {str(Requirement(line)) for line in plain if line and not line.startswith("-")}


def declared(*groups) -> set[str]:
    """The requirements of some lists of pyproject.toml, without its own extras."""
    lines = [Requirement(line) for group in groups for line in group]
    return {str(line) for line in lines if line.name != DISTRIBUTION}


# Archives ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """(sdist, wheel) of this tree."""
    wheel, sdist = sorted(
        build(ROOT, tmp_path_factory.mktemp("dist"), "wheel", "sdist"),
        key=lambda path: path.suffix != ".whl",
    )
    return sdist, wheel


def test_the_source_distribution_builds_the_same_wheel(archives, tmp_path):
    sdist, wheel = archives
    (again,) = build(unpacked(sdist, tmp_path / "tree"), tmp_path / "dist", "wheel")
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()


def test_the_wheel_is_the_whole_product(archives):
    with zipfile.ZipFile(archives[1]) as wheel:
        inside = {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}
    files = [
        path
        for top in SOURCES
        for path in ((ROOT / top).rglob("*") if (ROOT / top).is_dir() else [ROOT / top])
        if path.is_file() and "__pycache__" not in path.parts
    ]
    expected = {}
    for path in files:
        name = path.relative_to(ROOT).as_posix()
        own = name.startswith(("gmc_core/", "gmc_dashboard/"))
        expected[name if own else f"gmc_dashboard/_app/{name}"] = path.read_bytes()
    assert set(inside) == set(expected)
    assert [name for name, content in expected.items() if inside[name] != content] == []
    assert {"gmc_core/py.typed", "gmc_dashboard/py.typed"} <= set(inside)


def test_the_metadata_says_what_it_needs_and_promises_no_licence(archives):
    with zipfile.ZipFile(archives[1]) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith("/METADATA")]
        text = wheel.read(name).decode()
    head = text.split("\n\n")[0]
    assert f"Version: {VERSION}" in head
    assert "Requires-Python: >=3.11" in head
    tried = re.findall(r"^Classifier: .* Python :: (3\.\d+)$", head, flags=re.M)
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    words = " ".join(page.split("**Versions of Python.**")[1].split("**")[0].split())
    assert tried == sorted({found[:4] for found in re.findall(r"3\.\d+\.\d+", words)})
    assert "No licence has been chosen" in head
    assert "Classifier: License" not in head
    needed = re.findall(r"^Requires-Dist: (\S+?)[<>=]\S*$", head, flags=re.M)
    assert set(needed) == names_of(PROJECT["dependencies"])


def test_the_installed_wheel_finds_all_it_needs_where_there_is_no_checkout(archives, tmp_path):
    programs, empty = environment_with(archives[1], tmp_path / "venv"), tmp_path / "empty"
    empty.mkdir()
    folders = {f"GMC_{name}": str(tmp_path / name.lower()) for name in ("HOME", "CACHE")}
    done = subprocess.run(
        [programs / "gmc", "doctor", "--json", "-"],
        cwd=empty, env=without_checkout() | folders, capture_output=True, text=True,
    )  # fmt: skip
    content = json.loads(done.stdout)
    assert content["version"] == VERSION
    found = {check["name"]: check for check in content["checks"]}
    assert {found[name]["status"] for name in ("python", *CORE)} == {"ok"}
    assert str(tmp_path / "venv") in found["compiled code"]["found"]
    assert not list(empty.iterdir())


# Versions and lists -----------------------------------------------------------------


def test_the_version_is_written_once_and_has_its_chapter():
    assert PROJECT["dynamic"] == ["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    chapters = re.findall(r"^## (\d+\.\d+\.\d+)", changes, flags=re.M)
    assert chapters[0] == VERSION
    assert chapters == sorted(chapters, key=Version, reverse=True)
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {VERSION}\n" in citation


def test_requirements_of_the_checkout_are_those_of_the_project():
    extras = (EXTRA["app"], EXTRA["download"], EXTRA["figures"])
    everything = declared(PROJECT["dependencies"], *extras)
    assert listed("requirements.txt") == everything
    assert declared(EXTRA["sklearn"]) <= listed("requirements-dev.txt")


def test_the_core_drags_no_dashboard_along():
    heavy = {"streamlit", "plotly", "pooch", "requests", "scikit-learn", "matplotlib"}
    assert not names_of(PROJECT["dependencies"]) & heavy
    assert set(CORE) == names_of(PROJECT["dependencies"])


def test_the_extras_are_those_that_messages_name():
    assert {*EXTRAS, "all"} == set(EXTRA)
    for extra, packages in EXTRAS.items():
        assert set(packages) == names_of(EXTRA[extra])
    (everything,) = EXTRA["all"]
    assert Requirement(everything).extras == set(EXTRAS)


def test_every_requirement_has_a_lowest_version():
    assert "numpy==2.2" in lowest(["numpy>=2.2,<3", f"{DISTRIBUTION}[app]"])
    assert len(lowest(PROJECT["dependencies"])) == len(PROJECT["dependencies"])
    with pytest.raises(ValueError, match="no lower bound"):
        lowest(["numpy<3"])


def test_every_dependency_has_its_licence_in_the_docs():
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([\w.-]+) \| ([^|]+) \|", page, flags=re.M))
    wanted = names_of(
        [*PROJECT["dependencies"], *(one for extra in EXTRA.values() for one in extra)]
    )
    assert wanted <= set(rows)
    assert all(rows[name].strip() for name in wanted)


# What is missing --------------------------------------------------------------------


def run_without(modules, code: str) -> subprocess.CompletedProcess[str]:
    """Python in which these modules cannot be imported, as if they were not installed."""
    block = f"import sys; sys.modules.update(dict.fromkeys({sorted(modules)!r}))\n"
    return subprocess.run([sys.executable, "-c", block + code], capture_output=True, text=True)


def test_the_core_works_without_what_only_extras_bring(tmp_path):
    model = str(tmp_path / "m.npz")
    absent = [module for packages in EXTRAS.values() for module in packages.values()]
    code = f"""
from gmc_core import *
from gmc_core.cli import main
result, fit = run_experiment(ExperimentConfig(
    filter=Filter(max_items=30), weak_users=50, fit=FitSettings(iterations=1)))
assert result["summary"]["nmae"] > 0
save_model(fit.model(), {model!r})
assert main(["recommend", "--model", {model!r}, "--rate", "id:1=5", "--top", "1"]) == 0
assert main(["data", "list"]) == 0
import gmc_core.runs.worker, gmc_core.comparison.compare, gmc_core.paper.claims
"""
    done = run_without(absent, code)
    assert done.returncode == 0, done.stderr


def test_what_is_missing_is_named_with_its_extra(tmp_path):
    absent = [module for packages in EXTRAS.values() for module in packages.values()]
    code = f"""
import os
os.environ["GMC_CACHE"] = {str(tmp_path)!r}
from gmc_core.cli import main
assert main(["app"]) == 2
assert main(["data", "fetch", "ml-100k"]) == 2
try:
    import gmc_core
    gmc_core.GaussianImputer
except ImportError as error:
    print(error, file=sys.stderr)
"""
    done = run_without(absent, code)
    assert done.returncode == 0, done.stderr
    # What is to be downloaded, and under which conditions, is said before.
    app, fetch = (line for line in done.stderr.splitlines() if line.startswith("gmc: error"))
    imputer = done.stderr.splitlines()[-1]
    assert "The dashboard needs streamlit and plotly" in app
    assert app.endswith(f"pip install '{DISTRIBUTION}[app]'")
    assert "Downloading needs pooch and requests" in fetch
    assert fetch.endswith("[download]'")
    assert "scikit-learn" in imputer
    assert imputer.endswith("[sklearn]'")


def test_what_is_there_is_not_refused(monkeypatch):
    require("app", "This test")
    monkeypatch.setitem(EXTRAS, "app", {"one": "no_such_module"})
    with pytest.raises(MissingPackageError, match="one, which is not installed"):
        require("app", "This test")


# Names for programs -----------------------------------------------------------------

PUBLIC = [
    "DelimitedOptions", "ExperimentConfig", "Filter", "Fit", "FitSettings", "GaussianModel",
    "GmcError", "IterationRecord", "RatingScale", "Ratings", "Scores", "Split", "apply_filter",
    "latest_split", "load", "load_model", "load_named", "no_split", "pair_split", "random_split",
    "run_experiment", "save_model", "score", "settings_for", "strong_split", "weak_split",
]  # fmt: skip


def test_the_public_names_are_these_and_no_others():
    """One that goes must first have warned for a version: see docs/python.md."""
    assert gmc_core.__all__ == PUBLIC
    assert set(gmc_core._PLACES) == {*PUBLIC, "GaussianImputer"}
    assert set(PUBLIC) <= set(dir(gmc_core))
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    assert [name for name in [*PUBLIC, "GaussianImputer"] if f"`{name}`" not in page] == []


@pytest.mark.parametrize("name", [*PUBLIC, "GaussianImputer"])
def test_a_public_name_is_there_and_explained(name):
    found = getattr(gmc_core, name)
    assert found.__name__ == name
    assert len(found.__doc__.strip()) > 20
    # It must not hide a module, of now or of before, that programs import by this name.
    assert name not in former._PLACES
    with pytest.raises(ImportError):
        importlib.import_module(f"gmc_core.{name}")


def test_importing_the_package_loads_nothing_slow():
    code = "import sys, gmc_core; gmc_core.GmcError; gmc_core.__version__; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    slow = {
        "numpy", "scipy", "numba", "pandas", "pyarrow", "psutil", "streamlit", "plotly", "sklearn",
        "requests", "pooch", "sqlite3",
    }  # fmt: skip
    assert not slow & set(done.stdout.split())
    assert gmc_core.__version__ == VERSION


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing"):
        _ = gmc_core.nothing
    with pytest.raises(ImportError):
        exec("from gmc_core import nothing")


def test_the_example_of_the_docs_works_as_it_stands(tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```", text, flags=re.S)
    monkeypatch.chdir(tmp_path)
    write_ratings(tmp_path / "ratings.csv")
    space: dict = {}
    exec(example[1], space)
    *iterations, last = capsys.readouterr().out.split()
    assert iterations[::2] == ["1", "2", "3", "4", "5"]
    assert float(iterations[-1]) == pytest.approx(float(last))
    kept = gmc_core.load_model("model.npz").ratings
    assert kept.sha256 == space["ratings"].sha256
