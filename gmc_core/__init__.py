"""Matrix completion with one Gaussian: MAP-EM, its protocols, and what goes beyond them.

What most programs need can be imported from here:

>>> from gmc_core import ExperimentConfig, run_experiment
>>> result, fit = run_experiment(ExperimentConfig(data="sample"))    # doctest: +SKIP

The names are those of ``__all__`` and :class:`GaussianImputer`, which needs scikit-learn.
docs/python.md says how they go together, and how a name is ever taken away.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

# OpenBLAS's threads wait busily for 2^26 processor cycles (20 ms or more) after a product of many
# threads, and take the cores from the solves that follow it: a quarter of the sample's E-step.
# 2^20 are enough to go from one product to the next. OpenBLAS reads this when it is loaded, so
# it has no effect, and does no harm, where NumPy was imported first.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")

from gmc_core import former

if TYPE_CHECKING:
    from gmc_core.base.errors import GmcError
    from gmc_core.data.datasets import load_named
    from gmc_core.data.ratings import Ratings, RatingScale
    from gmc_core.data.readers import DelimitedOptions, load
    from gmc_core.fitting.config import ExperimentConfig
    from gmc_core.fitting.experiment import run_experiment
    from gmc_core.fitting.fit import Fit
    from gmc_core.fitting.records import IterationRecord
    from gmc_core.gaussian.models import settings_for
    from gmc_core.gaussian.settings import FitSettings
    from gmc_core.model.gaussian_model import GaussianModel
    from gmc_core.model.model_file import load_model, save_model
    from gmc_core.protocol.filters import Filter, apply_filter
    from gmc_core.protocol.latest_splits import latest_split
    from gmc_core.protocol.metrics import Scores, score
    from gmc_core.protocol.random_splits import random_split
    from gmc_core.protocol.splits import Split, no_split, pair_split, strong_split, weak_split
    from gmc_core.tables.imputer import GaussianImputer as GaussianImputer

__all__ = [
    "DelimitedOptions",
    "ExperimentConfig",
    "Filter",
    "Fit",
    "FitSettings",
    "GaussianModel",
    "GmcError",
    "IterationRecord",
    "RatingScale",
    "Ratings",
    "Scores",
    "Split",
    "apply_filter",
    "latest_split",
    "load",
    "load_model",
    "load_named",
    "no_split",
    "pair_split",
    "random_split",
    "run_experiment",
    "save_model",
    "score",
    "settings_for",
    "strong_split",
    "weak_split",
]

# Module → the names that it gives this package. They are imported when they are first asked for:
# the command line's help and a script that only reads ratings need not wait for the compiler.
_MODULES = {
    "base.errors": "GmcError",
    "data.datasets": "load_named",
    "data.ratings": "Ratings RatingScale",
    "data.readers": "DelimitedOptions load",
    "fitting.config": "ExperimentConfig",
    "fitting.experiment": "run_experiment",
    "fitting.fit": "Fit",
    "fitting.records": "IterationRecord",
    "gaussian.models": "settings_for",
    "gaussian.settings": "FitSettings",
    "model.gaussian_model": "GaussianModel",
    "model.model_file": "load_model save_model",
    "protocol.filters": "Filter apply_filter",
    "protocol.metrics": "Scores score",
    "protocol.latest_splits": "latest_split",
    "protocol.random_splits": "random_split",
    "protocol.splits": "Split no_split pair_split strong_split weak_split",
    # Not in __all__: a star import must not fail where scikit-learn is not installed.
    "tables.imputer": "GaussianImputer",
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}

former.install()


def __getattr__(name: str) -> object:
    """Import a public name from its module (PEP 562)."""
    if name == "__version__":
        return importlib.import_module("gmc_core.base.version").VERSION
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names besides what has been imported already."""
    return sorted({*globals(), *__all__})
