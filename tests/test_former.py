"""Modules are still found by the names that they had when all lay beside each other."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from gmc_core import former


@pytest.mark.parametrize("name", sorted(former._PLACES))
def test_a_former_name_is_the_same_module(name):
    sys.modules.pop(f"gmc_core.{name}", None)
    with pytest.warns(DeprecationWarning, match=f"gmc_core.{name} is now gmc_core."):
        found = importlib.import_module(f"gmc_core.{name}")
    place = former.place_of(f"gmc_core.{name}")
    assert found is importlib.import_module(place)
    assert found.__spec__.name == place


@pytest.mark.parametrize("name", ["linalg.opinions", *sorted(former._RENAMED)])
def test_a_module_that_got_another_name_is_found(name):
    name = f"gmc_core.{name.removeprefix('gmc_core.')}"
    place = former.place_of(name)
    sys.modules.pop(name, None)
    with pytest.warns(DeprecationWarning, match=f"is now {place}"):
        found = importlib.import_module(name)
    assert found is importlib.import_module(place)


@pytest.mark.parametrize(
    ("module", "name", "now"),
    [
        ("data.readers.sniff", "Layout", "TextLayout"),
        ("fitting.fit", "fit", "run_fit"),
        ("gaussian.linalg.threads", "Team", "ThreadPool"),
        ("model.pictures", "Painter", "HeatmapBinner"),
        ("runs.valley", "valley", "sensitivity_curve"),
        ("runs.valley", "Valley", "SensitivityCurve"),
        ("runs.worker.heart", "Heart", "Heartbeat"),
        ("comparison.comparison_files", "truth_of", "held_out_of"),
        ("comparison.comparators", "ItemProximity", "ItemKnn"),
        ("comparison.comparators.proximity", "ItemProximity", "ItemKnn"),
        ("comparison.comparators", "PeerMethod", "ExternalBaseline"),
        ("comparison.comparators.peers", "installed_peers", "installed_baselines"),
        ("comparison.comparators.chosen", "TunedRecipe", "TunedMapEm"),
    ],
)
def test_what_got_another_name_in_its_module_is_found(module, name, now):
    found = importlib.import_module(former.place_of(f"gmc_core.{module}") or f"gmc_core.{module}")
    with pytest.warns(DeprecationWarning, match=f"{name} is now called {now}"):
        assert getattr(found, name) is getattr(found, now)
    with pytest.raises(AttributeError, match="There is no Nothing"):
        _ = found.Nothing


def test_what_scripts_of_before_import_is_there():
    program = """
from gmc_core.comparators import ItemProximity, MatrixFactorisation
from gmc_core.valley import valley
from gmc_core.worker.heart import Heart
from gmc_core.comparison import compare
from gmc_core.experiment import ExperimentConfig, run_experiment
from gmc_core.gaussian import Gaussian
from gmc_core.imputer import GaussianImputer
from gmc_core.model import GaussianModel, Posterior
from gmc_core.readers import DelimitedOptions, load
from gmc_core.readers.sniff import sniff
from gmc_core.store import Store
from gmc_core.worker import ensure_worker
import gmc_core.data.readers.sniff, gmc_core.tables.imputer
assert sniff is gmc_core.data.readers.sniff.sniff
assert GaussianImputer is gmc_core.tables.imputer.GaussianImputer
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True
    )
    assert done.stderr == ""


def test_what_never_was_there_is_not():
    with pytest.raises(ImportError):
        importlib.import_module("gmc_core.nothing")
    with pytest.raises(ImportError):
        exec("from gmc_core.model import nothing")


def test_the_package_itself_uses_no_former_name():
    program = (
        "import sys, gmc_core.cli, gmc_core.fitting.experiment, gmc_core.runs.worker\n"
        "from gmc_core import former\n"
        "assert not [name for name in sys.modules if former.place_of(name)]"
    )
    subprocess.run([sys.executable, "-W", "error::DeprecationWarning", "-c", program], check=True)
