"""Modules by their former names, when all of them lay beside each other.

Scripts, notebooks and pickled estimators may still say ``gmc_core.experiment``: they get
the very same module, from its room, and a warning that names its place.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

# Room → what was directly in the package.
_ROOMS = {
    "base": "errors files version array_archive table_files",
    "data": "ratings user_info readers datasets downloads sample",
    "protocol": "filters draws splits pairs metrics baselines",
    "gaussian": (
        "linalg signals noise noise_files covariance estep mstep em inverses folding "
        "exact priors ordinal covariates attributes mixture mixture_start settings models"
    ),
    "model": ("mixture_model model_file completion analysis taste item_orders pictures"),
    "fitting": "cost fit experiment auto intervals",
    "tables": "table_model wide_reader wide_table imputer",
    "comparison": "comparators comparison_files",
    "runs": "store worker sweeps valley report_html",
    "paper": "claims published reproduction",
}
_PLACES = {name: room for room, names in _ROOMS.items() for name in names.split()}

# Modules that got another name in their room.
_RENAMED = {
    "gmc_core.base.words": "gmc_core.base.times",
    "gmc_core.comparison.comparators.names": "gmc_core.comparison.comparators.registry",
    "gmc_core.data.readers.codes": "gmc_core.data.readers.not_rated",
    "gmc_core.data.readers.kinds": "gmc_core.data.readers.file_kinds",
    "gmc_core.data.readers.rows": "gmc_core.data.readers.rows_as_text",
    "gmc_core.fitting.estimates": "gmc_core.fitting.duration",
    "gmc_core.protocol.holdout": "gmc_core.protocol.validation",
    "gmc_core.runs.store.checked": "gmc_core.runs.store.import_checks",
    "gmc_core.runs.store.places": "gmc_core.runs.store.folders",
    "gmc_core.runs.store.watch": "gmc_core.runs.store.liveness",
    "gmc_core.runs.worker.guard": "gmc_core.runs.worker.restarter",
    "gmc_core.comparison.comparators.peer_process": (
        "gmc_core.comparison.comparators.external_process"
    ),
    "gmc_core.comparison.comparators.peers": "gmc_core.comparison.comparators.external",
    "gmc_core.comparison.comparators.proximity": "gmc_core.comparison.comparators.item_knn",
    "gmc_core.gaussian.linalg.opinions": "gmc_core.gaussian.linalg.latent",
    "gmc_core.runs.valley": "gmc_core.runs.sensitivity",
    "gmc_core.runs.worker.heart": "gmc_core.runs.worker.heartbeat",
}


def place_of(name: str) -> str | None:
    """Where a module of a former name is now; None if it is no such name."""
    package, _, rest = name.partition(".")
    first, dot, inner = rest.partition(".")
    if name in _RENAMED:
        return _RENAMED[name]
    if package != "gmc_core" or first not in _PLACES:
        return None
    place = f"gmc_core.{_PLACES[first]}.{first}{dot}{inner}"
    return _RENAMED.get(place, place)


class _Found(Loader):
    """Gives the module that is there already, or is imported from its place."""

    def __init__(self, place: str) -> None:
        self.place = place

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        warnings.warn(f"{spec.name} is now {self.place}", DeprecationWarning, stacklevel=2)
        module = importlib.import_module(self.place)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # the import system had put in that of the former name


class _Finder(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        place = place_of(name)
        return None if place is None else ModuleSpec(name, _Found(place))


def install() -> None:
    """Let former names be imported."""
    sys.meta_path.insert(0, _Finder())


def room_of_its_own_name(place: str) -> Callable[[str], object]:
    """``__getattr__`` for a room that has the name of a former module, now at ``place``."""

    def find(name: str) -> object:
        if not name.startswith("__"):
            module = importlib.import_module(place)
            if hasattr(module, name):
                room = place.rpartition(".")[0]
                warnings.warn(f"{room}.{name} is now in {place}", DeprecationWarning, stacklevel=2)
                return getattr(module, name)
        raise AttributeError(f"There is no {name} in {place.rpartition('.')[0]}.")

    return find


def renamed(module: str, **names: str) -> Callable[[str], object]:
    """``__getattr__`` for a module with things that got another name: former name=name."""

    def find(name: str) -> object:
        if name not in names:
            raise AttributeError(f"There is no {name} in {module}.")
        warnings.warn(
            f"{module}.{name} is now called {names[name]}", DeprecationWarning, stacklevel=2
        )
        return getattr(importlib.import_module(module), names[name])

    return find
