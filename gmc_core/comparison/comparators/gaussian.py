"""This package's own models as methods of a comparison."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gmc_core.data.hashes import file_sha256
from gmc_core.fitting.config import MODEL_VERSIONS
from gmc_core.fitting.fit import run_fit
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.splits import Split


@dataclass(frozen=True)
class GaussianMethod:
    """A fit of :class:`gmc_core.fitting.fit.Fit` with given settings.

    label : as shown; the name by default.
    """

    name: str
    settings: FitSettings
    label: str = ""

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", self.name)

    @property
    def identity(self) -> str:
        """The settings, what a file of noise variances holds, and the model's version."""
        version = MODEL_VERSIONS[self.settings.model]
        content = {"settings": self.settings.as_dict(), "version": version}
        noise = self.settings.noise
        if isinstance(noise, str) and Path(noise).is_file():
            content["noise"] = file_sha256(Path(noise))
        return json.dumps(content, sort_keys=True)

    @property
    def reads_times(self) -> bool:
        """Whether the noise is shared by ratings of about the same time."""
        return self.settings.reads_times

    def predict(self, split: Split, team: ThreadPool) -> npt.NDArray[np.float64]:
        """(n_test,) predictions of the last iteration."""
        return fit_and_predict(split, self.settings, team)


def fit_and_predict(
    split: Split, settings: FitSettings, team: ThreadPool
) -> npt.NDArray[np.float64]:
    """(n_test,) predictions of the last iteration of a fit."""
    return run_fit(split, settings, team=team).predictions
